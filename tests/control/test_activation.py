"""Enabling, pausing, retiring: what each asks first, what it ends, and from when on the next one fires."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from horarium.catalog import presence
from horarium.catalog.audit_events import list_events
from horarium.catalog.environments import ensure_environment
from horarium.catalog.schedules import list_activations, require_schedule
from horarium.control.activation import Reviewed
from horarium.errors import Conflict, NotFound, Refused, Unavailable
from horarium.schedule.identity import Scope, schedule_key
from horarium.schedule.ledger import Disposition
from tests.control.desk import AGENT, FAR, NOON, Desk, Loop, at, every, seconds


def test_enabling_fires_nothing_of_the_past(desk: Desk) -> None:
    desk.now = at(60)
    loop = desk.enabled(every(60, overlap="allow", window=86_400))
    assert desk.activation().activated_at == at(60)
    loop.step_at(119)
    assert desk.told() == [("staged", 120, 120, 1)]


def test_time_spent_paused_is_never_caught_up(desk: Desk) -> None:
    loop = desk.enabled(every(1, overlap="allow", window=86_400))
    loop.step_at(0.5)
    desk.now = at(0.9)
    desk.pause()
    assert desk.entries() == []
    desk.now = at(3_600.5)
    again = Loop(desk, desk.enable().key)
    again.step_at(3_600.6)
    assert [told[1] for told in desk.told()] == [3_601, 3_602, 3_603, 3_604]
    desk.check_ledger()


def test_a_pause_inside_the_lead_withdraws_what_was_staged(desk: Desk) -> None:
    loop = desk.enabled(every(60))
    loop.step_at(57)
    desk.now = at(58)
    changed = desk.pause()
    assert changed.ended == loop.key
    assert desk.entries() == []
    assert desk.run_row(loop.run(60)) is None
    ended, paused = desk.activation(1), desk.activation()
    assert (ended.ended_at, ended.ended_as, ended.accounted_through) == (at(58), "paused", at(58))
    assert (paused.enabled, paused.is_live, paused.activated_at, paused.ended_at) == (False, False, at(58), at(58))
    desk.now = at(60)
    assert desk.admit(loop.run(60)).outcome == "withdrawn"
    assert loop.step().value == "ended"


def test_enabling_again_inside_the_lead_gives_the_instant_to_the_new_generation(desk: Desk) -> None:
    first = desk.enabled(every(60))
    first.step_at(57)
    desk.now = at(58)
    desk.pause()
    desk.now = at(59)
    second = Loop(desk, desk.enable().key)
    second.step()
    assert [(entry.generation, entry.first_at) for entry in desk.entries()] == [(3, at(60))]
    desk.now = at(60)
    assert desk.admit(first.run(60)).outcome == "withdrawn"
    assert desk.admit(second.run(60)).outcome == "admitted"
    desk.check_ledger()


def test_what_was_due_and_undecided_is_dropped_with_the_reason(desk: Desk) -> None:
    """Staged and past its time, waiting, and not even looked at: none of them was decided."""
    loop = desk.enabled(every(60, overlap="buffer_all"))
    loop.step_at(130)
    desk.now = at(200)
    desk.retire()
    assert desk.told() == [("dropped", 60, 60, 1), ("dropped", 120, 180, 2)]
    assert {str(entry.reason) for entry in desk.entries()} == {"retired"}
    desk.now = at(201)
    assert desk.admit(loop.run(60)).outcome == "withdrawn"
    desk.check_ledger()


def test_an_activation_ends_with_the_latest_instant_that_was_decided(desk: Desk) -> None:
    """A run worker whose clock is ahead has admitted a run that is not due yet by the clock of the one who pauses."""
    loop = desk.enabled(every(60))
    loop.step_at(57)
    desk.now = at(59.2)
    assert desk.admit(loop.run(60), now=at(60)).outcome == "admitted"
    desk.pause()
    assert desk.activation(1).ended_at == at(60)
    assert desk.activation().activated_at == at(60)
    desk.now = at(59.4)
    enabled = desk.enable().activation
    assert enabled.activated_at == at(60)
    assert desk.told() == [("admitted", 60, 60, 1)]
    desk.check_ledger()


def test_one_whose_clock_is_behind_withdraws_what_waits_in_its_future(desk: Desk) -> None:
    """Otherwise the instant would be the next generation's too, and its entry in the way."""
    loop = desk.enabled(every(60, overlap="buffer_all"))
    loop.step_at(57)
    desk.now = at(60)
    desk.admit(loop.run(60))
    loop.step_at(120.3)
    assert desk.told()[-1] == ("buffered", 120, 120, 1)
    desk.now = at(119.5)
    second = Loop(desk, desk.enable().key)
    assert desk.told() == [("admitted", 60, 60, 1)]
    second.step_at(120.4)
    assert [entry.generation for entry in desk.entries()] == [1, 2]
    desk.check_ledger()


def test_enabling_what_is_enabled_is_a_new_generation(desk: Desk) -> None:
    loop = desk.enabled(every(60))
    loop.step_at(57)
    desk.publish(every(30))
    desk.now = at(58)
    changed = desk.enable()
    assert (changed.key.generation, changed.activation.revision) == (2, 2)
    assert changed.ended == loop.key
    assert desk.activation(1).ended_as == "superseded"
    second = Loop(desk, changed.key)
    second.step_at(58.5)
    assert [(entry.generation, entry.first_at) for entry in desk.entries()] == [(2, at(60))]


def test_a_new_version_says_nothing_about_the_time_before_it(desk: Desk) -> None:
    """Hourly until half past, then every ten minutes: ten, twenty and half past are not made up for."""
    desk.enabled(every(3_600))
    desk.publish(every(600))
    desk.now = at(1_800)
    second = Loop(desk, desk.enable().key)
    second.step_at(2_400.1)
    assert desk.told() == [("staged", 2_400, 2_400, 1)]


def test_an_older_version_may_be_enabled_by_name(desk: Desk) -> None:
    first = desk.publish(every(60)).version
    desk.publish(every(90))
    changed = desk.enable(Reviewed(revision=1, digest=first.digest, generation=0))
    assert changed.version == first
    assert desk.activation().revision == 1


def enabled_then(desk: Desk) -> None:
    desk.publish(every(60))
    desk.publish(every(90))
    desk.enable(Reviewed(revision=1))


CONFLICTS: list[tuple[str, str, Reviewed, str]] = [
    ("enable", "another generation", Reviewed(generation=0), "generation_conflict"),
    ("enable", "another digest", Reviewed(revision=2, digest="sha256:0"), "digest_conflict"),
    ("pause", "another generation", Reviewed(generation=2), "generation_conflict"),
    ("pause", "the head, which is not what is enabled", Reviewed(revision=2), "version_conflict"),
    ("pause", "another digest", Reviewed(revision=1, digest="sha256:0"), "digest_conflict"),
    ("retire", "another generation", Reviewed(generation=0), "generation_conflict"),
    ("retire", "the head, which is not what is enabled", Reviewed(revision=2), "version_conflict"),
]


@pytest.mark.parametrize(("act", "what", "reviewed", "code"), CONFLICTS)
def test_whoever_reviewed_something_else_changes_nothing(
    desk: Desk, act: str, what: str, reviewed: Reviewed, code: str
) -> None:
    enabled_then(desk)
    before = desk.activation()
    with pytest.raises(Conflict) as refused:
        getattr(desk, act)(reviewed)
    assert refused.value.code == code, what
    assert refused.value.next_step
    assert desk.activation() == before


def test_a_version_that_was_never_published_cannot_be_enabled(desk: Desk) -> None:
    desk.publish(every(60))
    with pytest.raises(NotFound, match="has no revision 7; its newest is 1"):
        desk.enable(Reviewed(revision=7))


def test_pausing_what_is_paused_or_never_was_enabled_is_a_conflict(desk: Desk) -> None:
    desk.publish(every(60))
    with pytest.raises(Conflict, match="nothing to pause"):
        desk.pause()
    desk.enable()
    desk.pause()
    with pytest.raises(Conflict, match="nothing to pause"):
        desk.pause()
    assert desk.activation().generation == 2


@pytest.mark.parametrize("enabled_before", [False, True])
def test_retirement_is_final(desk: Desk, enabled_before: bool) -> None:
    desk.publish(every(60))
    if enabled_before:
        desk.enable()
    desk.retire(Reviewed(revision=1, generation=int(enabled_before)))
    for act in (desk.enable, desk.pause, desk.retire):
        with pytest.raises(Conflict, match="that is final") as refused:
            act()
        assert refused.value.code == "schedule_retired"
    activation = desk.activation()
    assert (activation.enabled, activation.ended_as) == (False, "retired")


def test_admitted_runs_go_on_after_a_pause_and_are_settled(desk: Desk) -> None:
    loop = desk.enabled(every(60))
    loop.step_at(57)
    desk.now = at(60)
    desk.admit(loop.run(60))
    desk.now = at(61)
    desk.pause()
    desk.begin(loop.run(60))
    assert desk.told() == [("started", 60, 60, 1)]
    desk.now = at(90)
    assert desk.settle(loop.run(60)) is None
    assert desk.told() == [("succeeded", 60, 60, 1)]
    assert desk.holding() == 0
    assert not desk.activation().enabled
    desk.check_ledger()


def test_a_review_keeps_its_generation_and_only_a_new_one_fires_again(desk: Desk) -> None:
    loop = desk.enabled(every(60, pause_on_failure=True))
    loop.step_at(57)
    loop.has_run(60, ends=70, disposition=Disposition.FAILED)
    reviewed = desk.activation()
    assert (reviewed.generation, reviewed.enabled, reviewed.is_live, reviewed.ended_as) == (1, True, False, "review")
    desk.now = at(80)
    changed = desk.enable(Reviewed(generation=1))
    assert changed.key.generation == 2
    assert changed.activation.activated_at == at(80)


def test_one_in_review_may_be_paused(desk: Desk) -> None:
    loop = desk.enabled(every(60, pause_on_failure=True))
    loop.step_at(57)
    loop.has_run(60, ends=70, disposition=Disposition.FAILED)
    desk.now = at(80)
    desk.pause()
    assert desk.activation(1).ended_as == "review"
    assert desk.activation().ended_as == "paused"
    desk.check_ledger()


def test_every_change_leaves_an_event_with_its_author(desk: Desk) -> None:
    desk.publish(every(60))
    desk.enable()
    desk.pause()
    desk.retire()

    def told(connection: Any) -> list[tuple[Any, ...]]:
        schedule = require_schedule(connection, desk.key)
        events = list_events(connection, schedule, after=0, limit=50)
        return [(event["kind"], event["actor"], event["generation"], event["revision"]) for event in events]

    assert desk.read(told) == [
        ("published", "ada", None, 1),
        ("enabled", "ada", 1, 1),
        ("paused", "ada", 2, 1),
        ("retired", "ada", 3, 1),
    ]


def test_generations_follow_one_another_without_overlap(desk: Desk) -> None:
    desk.publish(every(60))
    for number in range(5):
        desk.now = at(number * 7.5)
        desk.enable()
        desk.now += seconds(2.25)
        desk.pause()
    activations = desk.read(lambda c: list_activations(c, require_schedule(c, desk.key)))
    assert [each.generation for each in activations] == list(range(1, 11))
    for earlier, later in pairwise(activations):
        assert earlier.ended_at is not None
        assert later.activated_at >= earlier.ended_at


class TestEnablingAsksWhatAnOccurrenceWouldMeet:
    @pytest.fixture
    def scope(self, desk: Desk) -> Scope:
        """An environment of its own, whose agent the test may spoil."""
        scope = Scope(org_id="acme", environment_id=f"env{desk.key.schedule_id[-6:]}")
        desk.key = schedule_key(scope, desk.key.schedule_id)
        desk.write(ensure_environment, scope, mode="simulation", runtime_profile="embedded")
        desk.publish(every(60))
        return scope

    def agent(self, desk: Desk, scope: Scope, *, schedulable: bool = True, lease_until: Any = FAR) -> None:
        discovery = {"is_schedulable": schedulable, "task_queue": "q", "max_run_seconds": 60, "idempotent": False}
        desk.write(presence.register_agent, scope, AGENT, discovery, lease_until=lease_until, now=NOON)

    def refused(self, desk: Desk) -> Refused:
        with pytest.raises(Refused) as refused:
            desk.enable()
        assert desk.read(lambda c: require_schedule(c, desk.key)).generation == 0
        return refused.value

    def test_an_agent_that_nobody_registered(self, desk: Desk, scope: Scope) -> None:
        refused = self.refused(desk)
        assert refused.code == "agent_missing"
        assert "'worked@1'" in refused.sentence

    def test_an_agent_that_handles_no_schedule(self, desk: Desk, scope: Scope) -> None:
        self.agent(desk, scope, schedulable=False)
        assert self.refused(desk).code == "agent_not_schedulable"

    def test_an_agent_whose_lease_lapsed_and_for_how_long(self, desk: Desk, scope: Scope) -> None:
        self.agent(desk, scope, lease_until=at(-42))
        refused = self.refused(desk)
        assert refused.code == "agent_offline"
        assert "lapsed 42.0 s ago" in refused.sentence

    def test_an_agent_whose_runner_left(self, desk: Desk, scope: Scope) -> None:
        self.agent(desk, scope)
        desk.write(presence.release_agent, scope, AGENT, now=at(-3))
        assert self.refused(desk).code == "agent_not_ready"

    def test_every_reason_at_once(self, desk: Desk, scope: Scope) -> None:
        desk.content.readable = desk.content.writable = False
        refused = self.refused(desk)
        for part in ("'worked@1'", "The input 'in'", "The output target 'out'"):
            assert part in refused.sentence
        self.agent(desk, scope)
        assert self.refused(desk).code == "input_unreadable"
        desk.content.readable = desk.content.writable = True
        assert desk.enable().key.generation == 1


class TestEnablingNeedsBothWorkers:
    @pytest.fixture(autouse=True)
    def seen(self, desk: Desk) -> Iterator[None]:
        """Heartbeats are the test's own, and afterwards everybody is there again."""
        desk.publish(every(60))
        desk.workers_beat = False
        yield
        for role in presence.ROLES:
            self.beat(desk, role, 0)

    def beat(self, desk: Desk, role: str, ago: float) -> None:
        desk.write(presence.beat, instance=role, role=role, tzdata="t", now=desk.now - seconds(ago))

    def refused(self, desk: Desk) -> Unavailable:
        with pytest.raises(Unavailable) as refused:
            desk.enable()
        assert desk.read(lambda c: require_schedule(c, desk.key)).generation == 0
        return refused.value

    def test_one_that_left_is_missed(self, desk: Desk) -> None:
        self.beat(desk, "schedules", 0)
        self.beat(desk, "runs", 0)
        desk.write(presence.leave, instance="runs")
        assert "no heartbeat of: runs." in self.refused(desk).sentence

    @pytest.mark.parametrize(("ago", "there"), [(15, False), (14.9, True), (-14.9, True), (-15, True)])
    def test_its_heartbeat_is_fifteen_seconds_from_now_at_the_most(self, desk: Desk, ago: float, there: bool) -> None:
        self.beat(desk, "schedules", 0)
        self.beat(desk, "runs", ago)
        if there:
            assert desk.enable().key.generation == 1
        else:
            assert self.refused(desk).code == "execution_unavailable"

    def test_a_clock_that_is_behind_the_workers_enables_nothing(self, desk: Desk) -> None:
        """What was due since then would fire, and it is the past."""
        for role in presence.ROLES:
            self.beat(desk, role, -600)
        refused = self.refused(desk)
        assert refused.code == "clock_skew"
        assert "600 s behind" in refused.sentence
        assert not desk.read(presence.execution_ready, now=desk.now)

    def test_a_clock_that_is_ahead_of_them_enables_nothing_either(self, desk: Desk) -> None:
        for role in presence.ROLES:
            self.beat(desk, role, 600)
        refused = self.refused(desk)
        assert refused.code == "execution_unavailable"
        assert "compare their clocks" in refused.next_step

    def test_a_clock_that_is_a_little_behind_begins_with_the_workers_last_sign(self, desk: Desk) -> None:
        self.beat(desk, "schedules", -3)
        self.beat(desk, "runs", -7)
        changed = desk.enable()
        assert changed.activation.activated_at == desk.now + seconds(7)

    def test_so_what_it_ends_ends_there_too_and_nothing_falls_between_them(self, desk: Desk) -> None:
        for role in presence.ROLES:
            self.beat(desk, role, 0)
        desk.enable()
        desk.now = at(55)
        for role in presence.ROLES:
            self.beat(desk, role, -7)
        desk.enable()
        assert desk.activation(1).ended_at == desk.activation(2).activated_at == at(62)
        assert desk.told() == [("dropped", 60, 60, 1)]
        desk.check_ledger()

    def test_a_heartbeat_of_the_future_is_forgotten_when_another_worker_lives(self, desk: Desk) -> None:
        desk.write(presence.beat, instance="astray", role="runs", tzdata="t", now=desk.now + seconds(86_400))
        assert self.refused(desk).code == "clock_skew"
        for role in presence.ROLES:
            self.beat(desk, role, 0)
        assert desk.enable().key.generation == 1
