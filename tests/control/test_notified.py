"""What is written down to be told: with what happened, in its transaction, and only where somebody wants to be told."""

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select, update

from horarium.catalog import endpoints
from horarium.catalog import notifications as notifications_of
from horarium.catalog.notification_tables import notifications
from horarium.catalog.schedules import find_live, require_schedule
from horarium.catalog.tables import schedules
from horarium.control import sweeping
from horarium.control.activation import send_to_review
from horarium.control.notifications import tell_if_overdue
from horarium.schedule.ledger import Disposition, Reason
from horarium.schedule.notifications import ASKED_FOR, Kind
from horarium.schedule.v0 import CONTRACT as V0
from tests.control.desk import NOON, SCOPE, Desk, Loop, every, seconds

HEARTBEAT = "heartbeat"


def listen(desk: Desk, *kinds: Kind, name: str = "pager", schedule_id: str | None = None) -> endpoints.Endpoint:
    return desk.write(
        endpoints.put_endpoint,
        SCOPE,
        name,
        url="https://pager.example/",
        secret="HORARIUM_SECRET_PAGER",
        private=False,
        kinds=kinds,
        schedule_id=schedule_id,
        by="ada",
        now=NOON,
    )


def told(desk: Desk) -> list[dict[str, Any]]:
    def found(connection: Any) -> list[dict[str, Any]]:
        row = require_schedule(connection, desk.key).row
        query = select(notifications).where(notifications.c.schedule == row).order_by(notifications.c.id)
        return [dict(each) for each in connection.execute(query).mappings()]

    return desk.read(found)


def kinds(desk: Desk) -> list[str]:
    return [each["kind"] for each in told(desk)]


def row_of(desk: Desk) -> Any:
    return desk.read(
        lambda connection: (
            connection.execute(select(schedules).where(schedules.c.schedule_id == desk.key.schedule_id))
            .mappings()
            .one()
        )
    )


def test_where_nobody_listens_nothing_is_written_down(own_desk):
    loop = own_desk.enabled(every(60, pause_on_failure=True))
    loop.step_at(58)
    loop.has_run(60, ends=65, disposition=Disposition.FAILED)
    assert own_desk.activation().ended_as == Reason.REVIEW
    assert told(own_desk) == []
    assert not row_of(own_desk)["troubled"]


def test_a_failed_run_is_told_with_its_run_and_the_next_success_as_a_recovery(own_desk):
    listen(own_desk, *ASKED_FOR)
    loop = own_desk.enabled(every(60))
    loop.step_at(58)
    loop.has_run(60, ends=65, disposition=Disposition.FAILED, reason=Reason.AGENT_REPORTED_FAILURE)
    (failed,) = told(own_desk)
    run = loop.run(60)
    assert failed["kind"] == "failed"
    assert (failed["generation"], failed["trigger"], failed["run_id"]) == (1, "schedule", run.run_id)
    assert (failed["first_at"], failed["last_at"], failed["count"]) == (NOON + seconds(60), NOON + seconds(60), 1)
    assert (failed["disposition"], failed["reason"]) == ("failed", "agent_reported_failure")
    assert (failed["at"], failed["spread"]) == (NOON + seconds(65), False)
    for offset in (120, 180):
        loop.step_at(offset - 2)
        loop.has_run(offset, ends=offset + 5)
    assert kinds(own_desk) == ["failed", "recovered"]
    assert told(own_desk)[1]["run_id"] == loop.run(120).run_id
    assert not row_of(own_desk)["troubled"]


def test_what_the_policy_sends_to_review_is_told_in_the_same_transaction(own_desk):
    listen(own_desk, Kind.REVIEW, Kind.FAILED)
    loop = own_desk.enabled(every(60, pause_on_failure=True))
    loop.step_at(58)
    loop.has_run(60, ends=65, disposition=Disposition.TIMED_OUT, reason=Reason.TIME_LIMIT)
    assert kinds(own_desk) == ["failed", "review"]
    assert " timed out (pause_on_failure, run " in told(own_desk)[1]["because"]


def test_what_is_rolled_back_is_not_told(own_desk):
    listen(own_desk, *ASKED_FOR)
    loop = own_desk.enabled(every(60))

    def fails(connection: Any) -> None:
        sweeping.review_if_live(connection, loop.key, because="It was found closed.", now=NOON)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        own_desk.write(fails)
    assert told(own_desk) == []
    assert own_desk.write(sweeping.review_if_live, loop.key, because="It was found closed.", now=NOON)
    assert [(each["kind"], each["because"]) for each in told(own_desk)] == [("review", "It was found closed.")]


def test_a_span_of_missed_instants_is_told_once_with_its_count(own_desk):
    listen(own_desk, *ASKED_FOR)
    loop = own_desk.enabled(every(60, window=10))
    loop.step_at(1_000)
    (missed,) = told(own_desk)
    (entry,) = [each for each in own_desk.entries() if each.disposition is Disposition.MISSED]
    assert (missed["kind"], missed["count"]) == ("missed", entry.count)
    assert (missed["first_at"], missed["last_at"]) == (entry.first_at, entry.last_at)
    assert entry.count > 10


def test_a_refusal_is_told_with_its_reason(own_desk):
    listen(own_desk, *ASKED_FOR)
    loop = own_desk.enabled(every(60))
    loop.step_at(58)
    own_desk.content.readable = False
    own_desk.now = NOON + seconds(60)
    assert own_desk.admit(loop.run(60)).outcome == "refused"
    assert [(each["kind"], each["reason"]) for each in told(own_desk)] == [("refused", "input_unreadable")]


@pytest.mark.parametrize("disposition", [Disposition.CANCELLED, Disposition.TERMINATED])
def test_what_a_person_did_is_not_told(own_desk, disposition):
    listen(own_desk, *ASKED_FOR)
    loop = own_desk.enabled(every(60))
    loop.step_at(58)
    loop.has_run(60, ends=65, disposition=disposition)
    own_desk.pause()
    assert told(own_desk) == []


def test_only_what_is_wanted_is_written_down_and_trouble_is_remembered_all_the_same(own_desk):
    listen(own_desk, Kind.RECOVERED)
    loop = own_desk.enabled(every(60))
    loop.step_at(58)
    loop.has_run(60, ends=65, disposition=Disposition.FAILED)
    assert row_of(own_desk)["troubled"]
    loop.step_at(118)
    loop.has_run(120, ends=125)
    assert kinds(own_desk) == ["recovered"]


def test_a_silence_is_told_once_whatever_is_found_to_have_been_due_and_again_only_after_it_has_ended(own_desk):
    listen(own_desk, Kind.OVERDUE)
    loop = own_desk.enabled(every(60, window=10))
    later = NOON + seconds(2 * 3_600)
    assert own_desk.write(tell_if_overdue, own_desk.key, now=later)
    assert row_of(own_desk)["silent_since"] == NOON + seconds(60)
    # Of what was due then nothing is left, as after an archive.
    own_desk.write(lambda c: c.execute(update(schedules).values(silent_since=NOON + seconds(30))))
    assert not own_desk.write(tell_if_overdue, own_desk.key, now=later)
    loop.step_at(7_198)
    loop.has_run(7_200, ends=7_205)
    assert row_of(own_desk)["silent_since"] is None
    assert own_desk.write(tell_if_overdue, own_desk.key, now=NOON + seconds(5 * 3_600))
    assert kinds(own_desk) == ["overdue", "overdue"]


@pytest.mark.parametrize("ends", ["paused", "reviewed", "enabled"])
def test_nobody_is_silent_of_whom_nothing_is_expected(own_desk, ends):
    listen(own_desk, Kind.OVERDUE)
    loop = own_desk.enabled(every(60, window=10))
    own_desk.now = NOON + seconds(2 * 3_600)
    assert own_desk.write(tell_if_overdue, own_desk.key, now=own_desk.now)
    match ends:
        case "paused":
            own_desk.pause()
        case "reviewed":
            own_desk.write(sweeping.review_if_live, loop.key, because="It was found closed.", now=own_desk.now)
        case "enabled":
            own_desk.enable()
    assert row_of(own_desk)["silent_since"] is None
    assert own_desk.read(notifications_of.silences, SCOPE, [own_desk.key.schedule_id]) == {
        own_desk.key.schedule_id: None
    }
    again = own_desk.now + seconds(3 * 3_600)
    assert own_desk.write(tell_if_overdue, own_desk.key, now=again) is (ends == "enabled")


def test_a_heartbeat_beats_with_each_success_by_the_calendar_of_its_schedule_alone(own_desk):
    other = Desk(own_desk.catalog)
    loop, others = own_desk.enabled(every(60)), other.enabled(every(60))
    endpoint = listen(own_desk, Kind.HEARTBEAT, name="heartbeat:x", schedule_id=own_desk.key.schedule_id)
    for each in (loop, others):
        each.step_at(58)
        each.has_run(60, ends=65)
    assert [(each["kind"], each["endpoint"]) for each in told(own_desk)] == [("heartbeat", endpoint.row)]
    assert told(other) == []
    own_desk.write(endpoints.remove_endpoint, SCOPE, endpoint)
    loop.step_at(118)
    loop.has_run(120, ends=125)
    assert kinds(own_desk) == ["heartbeat"]
    assert own_desk.read(endpoints.listened_for, SCOPE) == frozenset()


def test_the_end_of_a_one_shot_of_scheduler_v0_needs_nobody_and_is_not_told(own_desk):
    listen(own_desk, Kind.REVIEW)
    loop = own_desk.enabled(every(60))
    spent = "calendar_exhausted: the calendar selects no further instant."

    def ends(connection: Any, contract: str, because: str) -> None:
        found = find_live(connection, loop.key, lock=True)
        assert found is not None
        send_to_review(
            connection, replace(found[0], contract=contract), found[1], because=because, by="system", now=NOON
        )

    own_desk.write(ends, V0, spent)
    assert kinds(own_desk) == []
    loop = Loop(own_desk, own_desk.enable().key)
    own_desk.write(ends, "schedules", spent)
    loop = Loop(own_desk, own_desk.enable().key)
    own_desk.write(ends, V0, "breaker_open: more runs started than it declares.")
    assert kinds(own_desk) == ["review", "review"]
