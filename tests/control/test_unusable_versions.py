"""A stored version that this release cannot use: its own schedule goes to review, and nobody else's notices."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import func, update

from horarium.catalog.audit_events import list_events
from horarium.catalog.schedules import require_schedule, require_version
from horarium.catalog.tables import versions
from horarium.control import records, stepping
from horarium.control.audit import audit, document
from horarium.control.sweeping import review_if_live
from horarium.errors import InvalidSchedule, Refused
from horarium.schedule.ledger import Disposition
from horarium.schedule.plan import plan
from tests.control.desk import SCOPE, Desk, at, every


def lose_the_zone(desk: Desk) -> None:
    """Zone data in which this schedule's zone is no more."""
    column = versions.c.configuration
    change(desk, func.replace(column, '"UTC"', '"Mars/Olympus_Mons"'))


def damage_the_row(desk: Desk) -> None:
    change(desk, "no JSON at all")


def lose_the_policy(desk: Desk) -> None:
    column = versions.c.configuration
    change(desk, func.replace(column, '"overlap"', '"overlook"'))


def change(desk: Desk, value: Any) -> None:
    def write(connection: Any) -> None:
        row = require_schedule(connection, desk.key).row
        connection.execute(update(versions).where(versions.c.schedule == row).values(configuration=value))

    desk.write(write)


HARMS = pytest.mark.parametrize("harm", [lose_the_zone, damage_the_row, lose_the_policy])
Harm = Callable[[Desk], None]


def events(desk: Desk) -> list[Any]:
    return list(desk.read(lambda c: list_events(c, require_schedule(c, desk.key), after=0, limit=50)))


@HARMS
def test_its_step_gathers_nothing_and_says_why(desk: Desk, harm: Harm) -> None:
    loop = desk.enabled(every(60))
    loop.step_at(57)
    harm(desk)
    desk.now = at(70)
    found = loop.gather()
    assert found.facts is None
    assert found.unusable is not None
    assert "Revision 1 cannot be used" in found.unusable
    desk.write(stepping.give_up, loop.key, because=found.unusable, now=desk.now)
    activation = desk.activation()
    assert (activation.ended_as, activation.ended_at, activation.is_live) == ("review", at(70), False)
    assert (activation.ended_reason or "").startswith("version_unusable: Revision 1 cannot be used")
    assert desk.told() == [("dropped", 60, 60, 1)]
    # It is told once, however often the step is repeated.
    desk.write(stepping.give_up, loop.key, because=found.unusable, now=at(80))
    assert desk.activation() == activation
    assert [event["kind"] for event in events(desk)] == ["published", "enabled", "uncounted", "review"]


@HARMS
@pytest.mark.parametrize("act", ["pause", "retire", "review"])
def test_it_can_be_ended_and_what_was_not_counted_is_told(desk: Desk, harm: Harm, act: str) -> None:
    loop = desk.enabled(every(60, overlap="buffer_all"))
    loop.step_at(57)
    desk.now = at(60)
    desk.admit(loop.run(60))
    loop.step_at(120.5)
    harm(desk)
    desk.now = at(500)
    if act == "review":
        assert desk.write(review_if_live, loop.key, because="its workflow is gone", now=desk.now)
    else:
        getattr(desk, act)()
    ended = desk.activation(1)
    assert (ended.ended_at, ended.is_live) == (at(500), False)
    assert ended.accounted_through == at(120.5)
    assert desk.told() == [("admitted", 60, 60, 1), ("dropped", 120, 120, 1)]
    [told] = [event for event in events(desk) if event["kind"] == "uncounted"]
    assert told["generation"] == 1
    assert "after 2026-11-30T12:02:00.500000Z and until 2026-11-30T12:08:20Z" in told["details"]["because"]
    assert desk.settle(loop.run(60)) is None
    assert desk.holding() == 0


@HARMS
def test_it_cannot_be_enabled_and_what_is_enabled_goes_on(desk: Desk, harm: Harm) -> None:
    desk.enabled(every(60))
    before = desk.activation()
    harm(desk)
    with pytest.raises(InvalidSchedule):
        desk.enable()
    assert desk.activation() == before


@HARMS
def test_its_runs_are_refused_before_they_begin(desk: Desk, harm: Harm) -> None:
    loop = desk.enabled(every(60))
    loop.step_at(57)
    harm(desk)
    desk.now = at(60)
    admission = desk.admit(loop.run(60))
    assert (admission.outcome, admission.reason) == ("refused", "version_unusable")
    assert desk.admit(loop.run(60)).outcome == "refused"
    row = desk.run_row(loop.run(60))
    assert row is not None
    assert "Revision 1 cannot be used" in (row.evidence or {})["sentence"]


@HARMS
def test_a_commit_that_meets_it_changes_nothing(desk: Desk, harm: Harm) -> None:
    loop = desk.enabled(every(60))
    desk.now = at(57)
    found = loop.gather()
    assert found.facts is not None
    harm(desk)
    assert loop.commit(plan(found.facts)).status is stepping.Status.STALE
    assert desk.entries() == []


@HARMS
@pytest.mark.parametrize("begun", [False, True])
def test_a_run_that_was_admitted_is_settled_and_frees_its_slot(desk: Desk, harm: Harm, begun: bool) -> None:
    loop = desk.enabled(every(60, pause_on_failure=True))
    loop.step_at(57)
    desk.now = at(60)
    desk.admit(loop.run(60))
    if begun:
        desk.begin(loop.run(60))
    harm(desk)
    if not begun and harm is not lose_the_zone:
        with pytest.raises(Refused, match="cannot be begun") as refused:
            desk.begin(loop.run(60))
        assert refused.value.code == "not_admitted"
        assert desk.admit(loop.run(60)).outcome == "withdrawn"
    desk.settle(loop.run(60), Disposition.NOT_STARTED if not begun else Disposition.FAILED)
    assert desk.holding() == 0
    if begun and harm is lose_the_zone:
        # Its policy is as readable as ever.
        assert desk.activation().ended_as == "review"


@HARMS
def test_the_directory_shows_the_others_and_its_trouble(desk: Desk, harm: Harm) -> None:
    other = Desk(desk.catalog)
    other.enabled(every(60))
    desk.enabled(every(60))
    harm(desk)
    mine = desk.key.schedule_id
    just_before = str(uuid.UUID(int=uuid.UUID(desk.key.schedule_id).int - 1))
    page = desk.read(records.directory, SCOPE, after=just_before, limit=50, now=at(1))
    shown = {each["schedule_id"]: each for each in page["schedules"]}
    assert "cannot be used" in shown[mine]["problem"]
    assert shown[mine]["next_due"] is None
    assert shown[mine]["name"] == ("A schedule" if harm is lose_the_zone else "(unreadable)")
    assert "problem" not in shown[other.key.schedule_id]
    assert shown[other.key.schedule_id]["next_due"] == "2026-11-30T12:01:00Z"
    record = desk.read(records.record, desk.key, now=at(1))
    assert "cannot be used" in record["problem"]
    assert (record["configuration"] == {}) == (harm is damage_the_row)


@HARMS
def test_the_audit_proves_the_others_and_names_it(desk: Desk, harm: Harm) -> None:
    other = Desk(desk.catalog)
    other.enabled(every(60)).step_at(57)
    loop = desk.enabled(every(60))
    loop.step_at(57)
    loop.has_run(60, ends=70)
    harm(desk)
    result = desk.read(audit, desk.key, now=at(75))
    [one] = result.schedules
    [problem] = one.problems
    assert (problem.kind, problem.generation, problem.first, problem.count) == ("unusable", 1, at(0), 0)
    assert "cannot be used" in problem.sentence
    assert not result.clean
    assert (one.due, one.dispositions) == (1, {"succeeded": 1})
    told = document(result)
    assert (told["unusable"], told["unclosed"], told["missing"]) == (1, 0, 0)
    everything = desk.read(audit, SCOPE, now=at(75))
    assert [each.problems for each in everything.schedules if each.key == other.key] == [()]


def test_a_later_release_with_other_rules_still_reads_what_was_stored(desk: Desk) -> None:
    """The rules for what people write may become stricter; what they wrote then still runs."""
    desk.publish(every(60))
    column = versions.c.configuration
    change(desk, func.replace(func.replace(column, '"in"', '"../in"'), '"A schedule"', '" "'))
    version = desk.read(lambda c: require_version(c, require_schedule(c, desk.key), 1))
    assert version.fault is None
    assert version.configuration.run.input == "../in"


def test_configurations_are_kept_by_what_they_say(desk: Desk) -> None:
    version = desk.publish(every(60)).version
    again = desk.read(lambda c: require_version(c, require_schedule(c, desk.key), 1))
    assert again.configuration is version.configuration
    lose_the_zone(desk)
    assert desk.read(lambda c: require_version(c, require_schedule(c, desk.key), 1)).fault is not None
