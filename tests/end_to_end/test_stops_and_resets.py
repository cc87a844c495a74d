"""What operators do to a whole environment while runs are staged, waiting and running, on a real server."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from horarium.catalog import money
from horarium.control import administration
from horarium.control.principals import Principal, local_principal
from horarium.control.sweeping import review_all_enabled_before
from horarium.schedule.ledger import Disposition
from tests.end_to_end.strict import Place, Strict, now, strict_house

pytestmark = pytest.mark.server

FREE = {"usage_class": "test_simulation", "budget_id": None}
PAID = {"usage_class": "test_compute", "budget_id": "team"}
BUDGET = {"usage_classes": ["test_compute"], "pays_by": "credits", "limit": 10_000, "currency": "CHF"}
SECOND = timedelta(seconds=1)

Story = Callable[[Strict], Awaitable[None]]
STORIES: dict[str, Story] = {}


def story(told: Story) -> Callable[[dict[str, BaseException | None]], None]:
    """Declare what is told with the others on one server, and is a test of its own."""
    STORIES[told.__name__] = told

    def test(outcomes: dict[str, BaseException | None]) -> None:
        if (failure := outcomes[told.__name__]) is not None:
            raise failure

    test.__name__ = test.__qualname__ = told.__name__
    test.__doc__ = told.__doc__
    return test


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory, request) -> dict[str, BaseException | None]:
    wanted = [name for name in STORIES if any(item.name == name for item in request.session.items)]

    async def told() -> list[BaseException | None]:
        async with strict_house(tmp_path_factory.mktemp("operated"), monkeypatch, lead=5 * SECOND) as strict:
            return await asyncio.gather(*(STORIES[name](strict) for name in wanted), return_exceptions=True)

    with pytest.MonkeyPatch.context() as monkeypatch:
        return dict(zip(wanted, asyncio.run(told()), strict=True))


def operator_of(place: Place) -> Principal:
    return local_principal("grace", place.operator.scope)


async def act(place: Place, what: Any, **request: Any) -> datetime:
    """An operator does something; the time of the commit."""
    scope, catalog = place.operator.scope, place.house.catalog
    await catalog.write(what, operator_of(place), scope, request, str(uuid4()), now=now())
    committed = now()
    if what in {administration.reset, administration.advance_epoch}:
        await review_all_enabled_before(catalog, scope, now=now)
    return committed


async def changed(place: Place, what: Any) -> datetime:
    """A reset or a new epoch of what was reviewed."""
    expected = {"expected_environment_epoch": 1, "expected_reset_generation": 1}
    return await act(place, what, because="A drill.", **expected)


def begun_after(place: Place, instant: datetime) -> list[str]:
    return [run.run_id for _, run in place.rows() if run is not None and run.begun_at and run.begun_at > instant]


def open_as(place: Place, disposition: Disposition) -> list[datetime]:
    return [entry.first_at for entry, _ in place.rows() if entry.disposition is disposition]


async def placed(strict: Strict, name: str, seconds: int, *, run: dict[str, Any] = FREE, **policy: Any) -> Place:
    place = strict.place(name, mode="simulation" if run is FREE else "test")
    place.declare_usual()
    place.operator.declare("budget", "team", **BUDGET)
    await place.publish(seconds, run=run, **policy)
    return place


async def goes_on_once_it_is_enabled_again(place: Place, *, generation: int) -> None:
    again = await place.enable()
    assert again.activation.generation == generation
    await place.until(
        lambda: any(
            entry.generation == generation and entry.disposition is Disposition.SUCCEEDED for entry, _ in place.rows()
        )
    )
    await place.proven()


async def review_ends_all(strict: Strict, name: str, what: Any, code: str) -> None:
    """A run is running and others wait behind it: it ends as it would have, they are given up, and nothing else starts."""
    place = await placed(strict, name, 2, run=PAID, overlap="buffer_all")
    strict.slow.add(place.operator.scope)
    await place.enable()
    await place.until(lambda: open_as(place, Disposition.BUFFERED) and open_as(place, Disposition.STARTED))
    running, waiting = open_as(place, Disposition.STARTED), open_as(place, Disposition.BUFFERED)

    at = await changed(place, what)

    strict.slow.discard(place.operator.scope)
    activation = place.activation(1)
    assert (activation.ended_as, activation.is_live) == ("review", False)
    assert activation.ended_reason.startswith(f"{code}: it was enabled under 1")
    await place.until(lambda: all(entry.closed_at for entry, _ in place.rows()))
    fates = {entry.first_at: (entry.disposition, entry.reason) for entry, _ in place.rows()}
    assert [fates[instant] for instant in running] == [("succeeded", None)], "what runs goes on"
    assert {fates[instant] for instant in waiting} == {("dropped", "review")}
    assert begun_after(place, at) == []
    assert money_of(place) == (0, 10 * len([1 for entry, _ in place.rows() if entry.disposition == "succeeded"]))
    assert place.events()[-1] == "review"
    await goes_on_once_it_is_enabled_again(place, generation=2)


def money_of(place: Place) -> tuple[int, int]:
    """What is reserved and spent of the budget."""
    with place.house.catalog.reading() as connection:
        counted = money.account(connection, place.operator.scope, money.BUDGET, "team")
    return counted.reserved, counted.spent


@story
async def test_a_reset_lets_what_runs_end_and_gives_up_what_waits(strict):
    await review_ends_all(strict, "reset", administration.reset, "environment_reset")


@story
async def test_a_new_epoch_does_the_same(strict):
    await review_ends_all(strict, "epoch", administration.advance_epoch, "environment_epoch_changed")


async def staged_is_given_up(strict: Strict, name: str, what: Any) -> None:
    place = await placed(strict, name, 6)
    await place.enable()
    staged: list[datetime] = []

    def ahead() -> list[datetime]:
        staged[:] = [at for at in open_as(place, Disposition.STAGED) if at - now() > 2 * SECOND]
        return staged

    await place.until(ahead)

    at = await changed(place, what)

    assert at < staged[0], "the machine was too slow to do it inside the lead"
    # It was not due, so it is nobody's: its run closes without an entry.
    assert staged[0] not in [entry.first_at for entry, _ in place.rows()]
    assert open_as(place, Disposition.STAGED) == []
    await asyncio.sleep(3)
    assert begun_after(place, at) == []
    await goes_on_once_it_is_enabled_again(place, generation=2)


@story
async def test_a_run_that_is_staged_ahead_when_its_environment_is_reset_is_withdrawn(strict):
    await staged_is_given_up(strict, "reset-staged", administration.reset)


@story
async def test_a_run_that_is_due_before_the_reset_has_sent_its_schedule_to_review_is_refused(strict):
    """The operator's command dies right behind its commit, and no controller is there.

    Its next step sends the schedule to review. Where the machine lets that come before the instant that is due, it is tried again.
    """
    place = await placed(strict, "reset-due", 2)
    for generation in range(1, 9):
        await place.enable()
        await place.until(lambda: any(0.3 * SECOND < at - now() < SECOND for at in open_as(place, Disposition.STAGED)))
        place.operator.change(reset_generation=generation + 1)
        at = now()
        await place.until(lambda g=generation: not place.activation(g).is_live)
        fates = {
            (entry.disposition, entry.reason)
            for entry, run in place.rows()
            if entry.first_at > at or (run is not None and run.decided_at and run.decided_at > at)
        }
        assert fates <= {("refused", "environment_reset"), ("dropped", "review")}
        assert place.activation(generation).ended_as == "review"
        assert begun_after(place, at) == []
        if ("refused", "environment_reset") in fates:
            await goes_on_once_it_is_enabled_again(place, generation=generation + 1)
            return
    pytest.fail(f"a step came before each instant that was due: {place.told()}")


@story
async def test_a_stop_lets_nothing_start_and_lifting_it_catches_nothing_up(strict):
    """Staged, waiting, manual and due ones; what runs already goes on."""
    place = await placed(strict, "stopped", 2, run=PAID, overlap="buffer_all")
    strict.slow.add(place.operator.scope)
    await place.enable()
    await place.until(lambda: open_as(place, Disposition.BUFFERED) and open_as(place, Disposition.STARTED))
    running, waiting = open_as(place, Disposition.STARTED), open_as(place, Disposition.BUFFERED)

    stopped_at = await act(place, administration.stop, because="A wave of nonsense.", everywhere=True)

    strict.slow.discard(place.operator.scope)
    by_hand = await place.trigger()
    await place.until(
        lambda: all(entry.closed_at for entry, _ in place.rows() if entry.first_at in {*running, *waiting})
    )
    await asyncio.sleep(3)
    before_lift = now()
    lifted_at = await act(place, administration.lift, everywhere=True)
    await place.until(lambda: any(run.begun_at for _, run in place.decided(since=lifted_at)))
    await place.until(lambda: all(entry.closed_at for entry, _ in place.rows() if entry.first_at <= lifted_at))

    fates = {
        entry.first_at: (entry.disposition, entry.reason) for entry, _ in place.rows() if entry.trigger == "schedule"
    }
    assert [fates[instant] for instant in running] == [("succeeded", None)]
    assert {fates[instant] for instant in waiting} == {("refused", "stopped_by_operator")}
    [manual] = [entry for entry, run in place.rows() if run is not None and run.run_id == by_hand.run_id]
    assert (manual.disposition, manual.reason) == ("refused", "stopped_by_operator")
    while_stopped = {fates[at] for at in fates if stopped_at < at < before_lift}
    assert while_stopped == {("refused", "stopped_by_operator")}, place.told()
    assert begun_after(place, stopped_at) == begun_after(place, lifted_at)
    sentence = next(run.evidence["sentence"] for _, run in place.decided(since=stopped_at))
    assert "stopped" in sentence
    assert "by grace: A wave of nonsense." in sentence
    assert place.activation(1).is_live
    await place.proven()
    assert money_of(place)[0] == 0


@story
async def test_a_run_that_was_admitted_just_before_a_stop_is_not_begun_and_costs_nothing(strict):
    place = await placed(strict, "admitted", 4, run=PAID)
    strict.held.add(place.operator.scope)
    await place.enable()
    await place.until(lambda: open_as(place, Disposition.ADMITTED))
    at = await act(place, administration.stop, because="Just in time.")
    strict.held.discard(place.operator.scope)
    await place.until(lambda: place.rows()[0][0].closed_at)
    entry, run = place.rows()[0]
    assert (entry.disposition, entry.reason, run.begun_at) == ("not_started", "stopped_by_operator", None)
    assert begun_after(place, at) == []
    assert money_of(place) == (0, 0)
    await place.proven()


@story
async def test_what_waits_behind_a_run_through_a_whole_stop_does_not_start_after_it(strict):
    """The run goes on for longer than the stop lasts, so that nothing comes to its decision while it is on."""
    place = await placed(strict, "through", 2, run=PAID, overlap="buffer_all")
    strict.slow.add(place.operator.scope)
    await place.enable()
    await place.until(lambda: open_as(place, Disposition.BUFFERED) and open_as(place, Disposition.STARTED))
    running, waiting = open_as(place, Disposition.STARTED), open_as(place, Disposition.BUFFERED)

    await act(place, administration.stop, because="For a moment.")
    lifted_at = await act(place, administration.lift)

    assert open_as(place, Disposition.STARTED) == running, "it is still with its agent"
    strict.slow.discard(place.operator.scope)
    await place.until(lambda: any(run.begun_at for _, run in place.decided(since=lifted_at)))
    fates = {entry.first_at: (entry.disposition, entry.reason) for entry, _ in place.rows()}
    assert [fates[instant] for instant in running] == [("succeeded", None)]
    assert {fates[instant] for instant in waiting} == {("refused", "stopped_by_operator")}
    refused = next(run.evidence for entry, run in place.rows() if entry.first_at in waiting)
    assert "lifting it catches nothing up" in refused["sentence"]
    await place.proven()


@story
async def test_from_the_second_of_a_stop_no_agent_is_given_a_run(strict):
    """Ten schedules of one environment, each due every second. The delay is from the answer to the operator."""
    first = await placed(strict, "measured", 1)
    places = [first, *(Place(strict=strict, operator=first.operator) for _ in range(9))]
    for place in places[1:]:
        await place.publish(1, run=FREE)
    for place in places:
        await place.enable()
    scope = first.operator.scope
    await first.until(lambda: sum(each == scope for each, _ in strict.starts) >= 40)

    stopped_at = await act(first, administration.stop, because="A drill.")

    await asyncio.sleep(4)
    last = max(at for each, at in strict.starts if each == scope)
    print(f"the last start was {(last - stopped_at).total_seconds():+.3f} s from the answer to the stop")
    for place in places:
        await place.until(lambda place=place: place.decided(since=stopped_at))
        assert begun_after(place, stopped_at) == []
        assert {entry.reason for entry, _ in place.decided(since=stopped_at)} == {"stopped_by_operator"}
        await place.proven()
    # Whatever was given to the agent had begun before, by the catalog: how soon it hears of it is the machine's affair.
    begun = sum(run is not None and run.begun_at is not None for place in places for _, run in place.rows())
    assert sum(each == scope for each, _ in strict.starts) == begun


@story
async def test_a_run_that_was_admitted_just_before_a_reset_is_not_begun_and_costs_nothing(strict):
    place = await placed(strict, "admitted-reset", 4, run=PAID)
    strict.held.add(place.operator.scope)
    await place.enable()
    await place.until(lambda: open_as(place, Disposition.ADMITTED))
    at = await changed(place, administration.reset)
    strict.held.discard(place.operator.scope)
    await place.until(lambda: place.rows()[0][0].closed_at)
    entry, run = place.rows()[0]
    assert (entry.disposition, entry.reason, run.begun_at) == ("not_started", "environment_reset", None)
    assert begun_after(place, at) == []
    assert money_of(place) == (0, 0)
    await goes_on_once_it_is_enabled_again(place, generation=2)


@story
async def test_an_agent_that_goes_offline_for_a_while_finds_nothing_that_was_kept_for_it(strict):
    """Seed 002's trigger gate: no run without a lease, and none is queued."""
    place = await placed(strict, "offline", 1)
    await place.enable()
    await place.until(lambda: open_as(place, Disposition.SUCCEEDED))
    place.register(lease=timedelta(seconds=-5))
    away = now()
    await place.until(lambda: len([1 for each, _ in place.decided(since=away) if each.closed_at]) >= 3)
    refused = [run for each, run in place.decided(since=away) if each.reason == "agent_offline"]
    for run in refused:
        lapsed = run.evidence["offline_seconds"]
        assert f"is offline: its lease lapsed {lapsed} s ago." in run.evidence["sentence"]
        assert 5 <= lapsed <= (run.decided_at - away).total_seconds() + 6
    assert len(refused) >= 3
    place.release()
    gone = now()
    entry, run = await place.until_decided(since=gone)
    assert (entry.reason, run.evidence["lifecycle"]) == ("agent_not_ready", "stopped")
    kept_from_it = {run.run_id for each, run in place.decided(since=away) if each.disposition is Disposition.REFUSED}
    place.register()
    back = now()
    await place.until(lambda: any(run.begun_at for _, run in place.decided(since=back)))
    assert not kept_from_it & set(begun_after(place, away)), "nothing was kept"
    await place.proven()
