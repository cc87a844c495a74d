"""The words of notifications: what each end of an entry is told as, and when one is tried again."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horarium.schedule.identity import Scope
from horarium.schedule.ledger import Disposition, Reason
from horarium.schedule.notifications import (
    ASKED_FOR,
    GIVE_UP_AFTER,
    MOST_ATTEMPTS,
    Kind,
    asked_pause,
    is_given_up,
    kind_of,
    kinds_of_text,
    kinds_text,
    message,
    pause_after,
)

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("disposition", "reason", "kind"),
    [
        (Disposition.SUCCEEDED, None, Kind.HEARTBEAT),
        (Disposition.FAILED, Reason.AGENT_LOST, Kind.FAILED),
        (Disposition.TIMED_OUT, Reason.TIME_LIMIT, Kind.FAILED),
        (Disposition.NOT_STARTED, Reason.NOT_PICKED_UP, Kind.FAILED),
        (Disposition.REFUSED, Reason.BUDGET_EXHAUSTED, Kind.REFUSED),
        (Disposition.MISSED, Reason.OUTSIDE_WINDOW, Kind.MISSED),
        (Disposition.DROPPED, Reason.CATCHUP_LIMIT, Kind.MISSED),
        (Disposition.DROPPED, Reason.BUFFER_FULL, Kind.MISSED),
        (Disposition.DROPPED, Reason.PAUSED, None),
        (Disposition.DROPPED, Reason.REVIEW, None),
        (Disposition.SKIPPED, Reason.OVERLAP, None),
        (Disposition.CANCELLED, Reason.CANCELLED_BY_OPERATOR, None),
        (Disposition.TERMINATED, Reason.TERMINATED_BY_OPERATOR, None),
    ],
)
def test_each_end_is_told_as_what_it_means_to_people(disposition, reason, kind):
    assert kind_of(disposition, reason) is kind


def test_every_end_has_been_thought_of():
    told = {disposition for disposition in Disposition if not disposition.is_open}
    assert len(told) == 10
    assert all(kind_of(each, None) is None or kind_of(each, None) in Kind for each in told)


@given(attempts=st.integers(1, 10_000), spread=st.floats(0, 1))
def test_a_pause_doubles_up_to_an_hour_and_chance_takes_away_up_to_half(attempts, spread):
    whole = min(timedelta(seconds=2 ** min(attempts - 1, 20)), HOUR)
    assert whole / 2 <= pause_after(attempts, spread=spread) <= whole
    assert pause_after(attempts, spread=0) == whole
    assert pause_after(attempts, spread=1) == whole / 2


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("0", 0),
        ("30", 30),
        (" 0030 ", 30),
        ("3600", 3_600),
        ("3601", 3_600),
        ("9" * 5_000, 3_600),
        ("Mon, 30 Nov 2026 12:00:45 GMT", 45),
        ("Mon, 30 Nov 2026 12:00:45 -0000", 45),
        ("Monday, 30-Nov-26 12:00:45 GMT", 45),
        ("Mon Nov 30 12:00:45 2026", 45),
        ("Mon, 30 Nov 2026 11:00:00 GMT", 0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 3_600),
    ],
)
def test_a_receiver_may_ask_for_a_pause_of_an_hour_at_the_most(said, seconds):
    assert asked_pause(said, now=NOON) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "said",
    [None, "", "soon", "-1", "1.5", "1e3", "\u0661\u0662", "Mon, 30 Feb 2026 12:00:45 GMT", "Mon, 99 Nov 2026", "\0"],
)
def test_what_is_no_pause_asks_for_none(said):
    assert asked_pause(said, now=NOON) is None


@given(st.text())
def test_whatever_a_receiver_says_is_a_pause_that_can_be_made_or_none(said):
    asked = asked_pause(said, now=NOON)
    assert asked is None or timedelta(0) <= asked <= HOUR


@pytest.mark.parametrize("spread", [0, 1])
def test_a_notification_is_tried_for_a_day_and_no_longer(spread):
    now, attempts = NOON, 0
    while True:
        attempts += 1
        if is_given_up(Kind.FAILED, since=NOON, attempts=attempts, now=now):
            break
        now += pause_after(attempts, spread=spread)
    assert attempts < MOST_ATTEMPTS
    assert timedelta(0) <= now - NOON - GIVE_UP_AFTER <= HOUR


def test_a_clock_that_is_set_back_does_not_make_it_try_for_ever():
    assert is_given_up(Kind.FAILED, since=NOON, attempts=MOST_ATTEMPTS, now=NOON - HOUR)


def test_a_heartbeat_that_is_an_hour_old_says_nothing_any_more():
    assert is_given_up(Kind.HEARTBEAT, since=NOON, attempts=1, now=NOON + HOUR)
    assert not is_given_up(Kind.FAILED, since=NOON, attempts=1, now=NOON + HOUR)


@given(st.sets(st.sampled_from(Kind)))
def test_kinds_are_stored_as_words_and_read_again(kinds):
    assert kinds_of_text(kinds_text(kinds)) == kinds
    assert len(kinds_text(Kind)) <= 200


def test_words_of_a_later_release_are_let_be():
    assert kinds_of_text("failed tomorrow") == {Kind.FAILED}


def test_what_there_is_none_of_is_left_out():
    nothing = dict.fromkeys(
        ("schedule_id", "name", "span", "generation", "trigger", "disposition", "reason", "run_id", "because")
    )
    told = message(Kind.TEST, at=NOON, scope=Scope(org_id="acme", environment_id="test"), **nothing)
    assert told == {
        "type": "test",
        "timestamp": "2026-11-30T12:00:00Z",
        "data": {"org_id": "acme", "environment_id": "test"},
    }
    assert Kind.TEST not in ASKED_FOR
