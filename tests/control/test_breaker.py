"""A fault of ours may cost a run, never a flood (DESIGN.md, section 5). Each fault here is built in by hand."""

from collections.abc import Iterable
from typing import Any

import pytest
from sqlalchemy import delete, update

from horarium.calendar import Calendar
from horarium.catalog import Catalog, findings
from horarium.catalog.schedules import require_schedule
from horarium.catalog.tables import activations, entries, runs
from horarium.control import stepping
from horarium.control.stepping import Status
from horarium.schedule.findings import Finding
from horarium.schedule.plan import Plan, plan
from tests.control.caller import events
from tests.control.desk import Desk, Loop, at, every, seconds
from tests.control.profiler import profiler_of
from tests.control.world import Work, World

AGAIN = range(180, 601, 60)
"""Eight instants that were skipped, in the middle and at the end of their span."""


@pytest.fixture(autouse=True)
def _no_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    """The count of slots, which would stop many of these faults before, fails too."""
    monkeypatch.setattr(stepping, "_slots_agree", lambda *_, **__: True)


def skipped(desk: Desk) -> Loop:
    """A schedule of each minute that has run once, for so long that the nine instants after it were skipped."""
    loop = desk.enabled(every(60))
    loop.step_at(57)
    desk.now = at(60)
    assert desk.admit(loop.run(60)).outcome == "admitted"
    desk.begin(loop.run(60))
    loop.step_at(600)
    desk.settle(loop.run(60))
    loop.step_at(601)
    assert desk.told() == [("succeeded", 60, 60, 1), ("skipped", 120, 600, 9)]
    return loop


def start(loop: Loop, offsets: Iterable[int], *, mark: float | None = None) -> None:
    """Commit a plan as no correct one is."""
    base = loop.desk.activation().accounted_through
    faulty = Plan(
        base=base,
        promotions=(),
        starts=tuple(at(offset) for offset in offsets),
        waits=(),
        fates=(),
        accounted_through=base if mark is None else at(mark),
        wake_at=None,
        blocked=False,
        exhausted=False,
        catchup_started=0,
    )
    assert loop.commit(faulty).status is Status.DONE


def outcomes(loop: Loop, offsets: Iterable[int]) -> list[str]:
    """What becomes of the runs, each begun and ended at once where it is admitted."""
    told = []
    for offset in offsets:
        run = loop.run(offset)
        told.append(loop.desk.admit(run).outcome)
        if told[-1] == "admitted":
            loop.desk.begin(run)
            loop.desk.settle(run)
    return told


def opened(catalog: Catalog) -> int:
    with catalog.reading() as connection:
        return findings.totals(connection)[Finding.BREAKER_OPENED]


def test_a_plan_that_starts_a_span_again_is_stopped_at_its_first_run(desk: Desk) -> None:
    loop = skipped(desk)
    start(loop, AGAIN)
    assert outcomes(loop, AGAIN) == ["refused", *["withdrawn"] * 7]
    assert [entry.disposition for entry in desk.entries()][2:] == ["refused", *["dropped"] * 7]


def test_it_costs_no_more_runs_than_fell_due_beside_it(desk: Desk) -> None:
    loop = skipped(desk)
    desk.now = at(657)
    start(loop, [660, *AGAIN], mark=660)
    desk.now = at(660)
    assert outcomes(loop, [*AGAIN, 660]) == ["admitted", "refused", *["withdrawn"] * 7]


def test_a_long_silence_before_it_lets_no_more_through(desk: Desk) -> None:
    """What was declared and skipped meanwhile is past: it does not add up to an allowance."""
    loop = desk.enabled(every(1))
    loop.step_at(0)
    desk.now = at(1)
    desk.admit(loop.run(1))
    for offset in range(60, 3_600, 60):
        loop.step_at(offset)
    start(loop, range(3_000, 3_100), mark=3_540)
    assert set(outcomes(loop, range(3_000, 3_100))) == {"refused", "withdrawn"}


def test_a_mark_that_is_moved_back_declares_nothing_anew(desk: Desk) -> None:
    loop = skipped(desk)
    for offset in AGAIN:
        desk.write(lambda c: c.execute(update(activations).values(accounted_through=at(170)).where(_is(c, desk))))
        start(loop, [offset], mark=600)
    assert "admitted" not in outcomes(loop, AGAIN)


def test_a_ledger_that_forgets_its_runs_does_not_let_them_run_again(desk: Desk) -> None:
    """The account is kept beside the ledger."""
    loop = desk.enabled(every(60, overlap="allow"))
    loop.step_at(57)
    desk.now = at(60)
    told = []
    for _ in range(5):
        told += outcomes(loop, [60])
        desk.write(_forget, desk)
        if desk.activation().is_live:
            desk.stage(loop.run(60))
    assert told[:2] == ["admitted", "refused"]
    assert "admitted" not in told[2:]


def test_instants_of_its_own_making_are_refused_one_by_one_and_the_schedule_goes_on(desk: Desk) -> None:
    loop = desk.enabled(every(60, overlap="allow"))
    start(loop, [60, *range(61, 70)], mark=60)
    desk.now = at(70)
    assert outcomes(loop, range(61, 70)) == ["refused"] * 9
    assert {entry.reason for entry in desk.entries() if entry.first_at > at(60)} == {"not_in_calendar"}
    assert outcomes(loop, [60]) == ["admitted"]
    loop.step_at(117)
    desk.now = at(120)
    assert outcomes(loop, [120]) == ["admitted"]


def test_a_calendar_that_selects_too_much_at_admission_meets_the_count(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = desk.enabled(every(60, overlap="allow"))
    monkeypatch.setattr(Calendar, "selects", lambda *_: True)
    start(loop, range(51, 121), mark=120)
    desk.now = at(120)
    assert outcomes(loop, range(51, 121)) == ["admitted", "admitted", "refused", *["withdrawn"] * 67]


def test_an_instant_of_an_earlier_generation_is_not_started_by_a_later_one(desk: Desk) -> None:
    skipped(desk)
    again = Loop(desk, desk.enable().key)
    start(again, AGAIN)
    assert outcomes(again, AGAIN) == ["refused"] * 8
    refused = desk.run_row(again.run(600))
    assert refused is not None
    assert refused.evidence is not None
    assert refused.evidence["sentence"].startswith("Its activation answers for what is due after 2026-11-30T12:10:01Z")


def test_what_an_earlier_generation_staged_is_nobodys(desk: Desk) -> None:
    loop = desk.enabled(every(60))
    loop.step_at(57)
    desk.now = at(58)
    again = Loop(desk, desk.enable().key)
    again.step_at(58)
    desk.now = at(60)
    assert (outcomes(loop, [60]), outcomes(again, [60])) == (["withdrawn"], ["admitted"])


def test_an_open_breaker_is_told_to_everybody_who_may_look(desk: Desk, catalog: Catalog) -> None:
    loop, before = skipped(desk), opened(catalog)
    start(loop, AGAIN)
    admission = desk.admit(loop.run(180))
    assert (admission.outcome, admission.reason) == ("refused", "breaker_open")
    sentence = "Every start that the calendar declares until 2026-11-30T12:10:00Z was made or is past"
    run = desk.run_row(loop.run(180))
    assert run is not None
    assert run.evidence is not None
    assert run.evidence["sentence"] == f"{sentence}, and this would be one more."
    assert run.evidence["breaker"] == {"allowance": 0, "declared_until": "2026-11-30T12:10:00Z"}
    activation = desk.activation()
    assert (activation.ended_as, activation.is_live) == ("review", False)
    assert (activation.ended_reason or "").startswith(f"breaker_open: {sentence}")
    told = events(desk)[-1]
    assert (told["kind"], told["actor"]) == ("review", "system:breaker")
    assert told["details"]["because"] == activation.ended_reason
    assert opened(catalog) == before + 1


def test_a_schedule_that_is_enabled_again_runs_as_if_nothing_had_been(desk: Desk) -> None:
    loop = skipped(desk)
    start(loop, AGAIN)
    outcomes(loop, AGAIN)
    again = Loop(desk, desk.enable().key)
    for offset in (660, 720, 780):
        again.step_at(offset - 3)
        desk.now = at(offset)
        assert outcomes(again, [offset]) == ["admitted"]


def test_a_profile_is_to_be_saved_again_and_then_runs(desk: Desk) -> None:
    profiler = profiler_of(desk)
    profiler.save()
    loop = profiler.loop()
    loop.step_at(57)
    spent = {"allowance": 0, "declared_until": at(60)}
    desk.write(lambda c: c.execute(update(activations).values(**spent)))
    desk.now = at(60)
    assert outcomes(loop, [60]) == ["refused"]
    shown = profiler.show()
    assert shown["state"] == "review"
    assert shown["reason"].endswith("then save the profile again.")
    profiler.save()
    again = profiler.loop()
    again.step_at(117)
    desk.now = at(120)
    assert outcomes(again, [120]) == ["admitted"]


def test_runs_by_hand_take_nothing_from_the_calendars(desk: Desk) -> None:
    loop = desk.enabled(every(60, overlap="allow"))
    loop.step_at(57)
    desk.now = at(58)
    for number in range(5):
        by_hand = desk.hold_by_hand(f"breaker {number}")
        assert desk.admit(by_hand).outcome == "admitted"
    desk.now = at(60)
    assert outcomes(loop, [60]) == ["admitted"]


@pytest.mark.parametrize("first", ["a step", "an admission"])
def test_what_an_earlier_release_enabled_has_an_account_from_its_first_touch_on(desk: Desk, first: str) -> None:
    loop = desk.enabled(every(60, overlap="allow"))
    loop.step_at(57)
    desk.write(lambda c: c.execute(update(activations).values(allowance=None, declared_until=None).where(_is(c, desk))))
    if first == "a step":
        loop.step_at(58)
    desk.now = at(60)
    assert outcomes(loop, [60]) == ["admitted"]
    assert (desk.activation().allowance, desk.activation().declared_until) == (0, at(60))
    loop.step_at(117)
    desk.now = at(120)
    assert outcomes(loop, [120]) == ["admitted"]


@pytest.mark.parametrize("overlap", ["skip", "buffer_one", "buffer_all", "allow"])
def test_a_correct_schedule_starts_all_that_it_may_after_any_outage_and_never_meets_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, overlap: str
) -> None:
    monkeypatch.undo()
    world = World(desk, lambda _: Work(takes=seconds(2.5)))
    desk.publish(every(3, overlap=overlap, window=120))
    world.establish(desk.enable())
    world.pass_until(at(20))
    world.schedules_up = False
    world.pass_until(at(220))
    world.schedules_up = True
    world.pass_until(at(240))
    world.runs_up = False
    world.pass_until(at(260))
    world.runs_up = True
    world.pass_until(at(300))
    assert desk.activation().is_live
    assert "breaker_open" not in {entry.reason for entry in desk.entries()}
    desk.check_ledger()


def test_a_plan_that_is_made_twice_counts_once(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    loop = desk.enabled(every(60, overlap="allow"))
    desk.now = at(57)
    facts = loop.gather().facts
    assert facts is not None
    decided = plan(facts)
    assert [loop.commit(decided).status for _ in range(3)] == [Status.DONE, Status.STALE, Status.STALE]
    assert desk.activation().allowance == 1


def _is(connection: Any, desk: Desk) -> Any:
    return activations.c.schedule == require_schedule(connection, desk.key).row


def _forget(connection: Any, desk: Desk) -> None:
    """Lose the entries of a schedule, with their runs."""
    mine = entries.c.schedule == require_schedule(connection, desk.key).row
    found = connection.execute(entries.select().where(mine)).scalars().all()
    connection.execute(delete(runs).where(runs.c.entry.in_(found)))
    connection.execute(delete(entries).where(entries.c.id.in_(found)))
