"""What people reported of other schedulers, as far as it happens in time: each timeline told by the same functions as ours.

Seconds count from noon. `tests/control/scenarios.py` lists every scenario and what holds it.
"""

import ast
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from horarium.catalog import Catalog
from horarium.errors import Conflict
from horarium.schedule.identity import ActivationKey, instant_text
from horarium.schedule.ledger import Disposition
from tests.control.caller import Caller
from tests.control.desk import NOON, Desk, Loop, at, configuration, every, offsets, seconds
from tests.control.scenarios import HELD_BY, NOT_OURS
from tests.control.world import Work, World

HOUR, DAY = 3_600, 86_400
REPOSITORY = Path(__file__).parents[2]
SHARED = REPOSITORY.parent / "shared" / "cases" / "scenarios.jsonl"

Act = Callable[[World], None]
Told = list[tuple[str, int, int, int]]


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """What is declared, what happens, and what the ledger must say in the end.

    `takes` is how long the run of an instant takes, `usually` that of all others. While the workers are `down` nothing is
    decided. `starts` maps an instant to when its run must have begun, None where that is the instant itself; `others` are
    the ledger's lines without a run.
    """

    document: dict[str, Any]
    until: float
    enabled: float = -0.5
    takes: Mapping[int, Work] = field(default_factory=dict)
    usually: float = 0.1
    down: tuple[float, float] | None = None
    acts: Mapping[float, Act] = field(default_factory=dict)
    starts: Mapping[int, float | None] = field(default_factory=dict)
    others: Told = field(default_factory=list)


def lasting(count: float, ends_as: Disposition = Disposition.SUCCEEDED) -> Work:
    return Work(takes=seconds(count), ends_as=ends_as)


def from_noon(interval: int, **policy: Any) -> dict[str, Any]:
    """Due each `interval` seconds, however long, from noon on."""
    overlap = policy.pop("overlap", "skip")
    offset = int(NOON.timestamp()) % interval
    return configuration([{"every_seconds": interval, "offset_seconds": offset}], overlap, **policy)


def by_rule(*, window: int, **fields: int) -> dict[str, Any]:
    """Due by one rule, in UTC, and in the year 2026 only."""
    full = {"second": (0, 0), "minute": (0, 0), "hour": (0, 0), "day_of_month": (1, 31), "month": (1, 12)}
    bounds = {**full, "day_of_week": (0, 6), "year": (2026, 2026), **{name: (at_, at_) for name, at_ in fields.items()}}
    rule = {name: [{"start": start, "end": end, "step": 1}] for name, (start, end) in bounds.items()}
    document = configuration([{"every_seconds": 1, "offset_seconds": 0}], "skip", window=window)
    document["calendar"] |= {"calendars": [rule], "intervals": []}
    return document


def paused(world: World) -> None:
    world.desk.pause()


def enabled(world: World) -> None:
    world.establish(world.desk.enable())


def published_and_enabled(document: dict[str, Any]) -> Act:
    def act(world: World) -> None:
        world.desk.publish(document)
        enabled(world)

    return act


SUNDAY = int((NOON.replace(month=12, day=6, hour=3) - NOON).total_seconds())
ONCE = HOUR

TIMELINES = {
    # Skips are counted and shown, and whoever ends the run by hand frees the slot; what was skipped is not made up for.
    "overlap-skip-stuck-run": Timeline(
        document=every(HOUR),
        takes={0: lasting(3.5 * HOUR, Disposition.TERMINATED)},
        until=4 * HOUR + 1,
        starts={0: None, 4 * HOUR: None},
        others=[("skipped", HOUR, 3 * HOUR, 3)],
    ),
    # The window resurrects no instant that overlapped.
    "overlap-skip-no-late-start": Timeline(
        document=every(60, window=300),
        takes={0: lasting(90)},
        until=121,
        starts={0: None, 120: None},
        others=[("skipped", 60, 60, 1)],
    ),
    "overlap-buffer-one-keeps-earliest": Timeline(
        document=every(1, overlap="buffer_one"),
        usually=6,
        until=14.1,
        starts={0: None, 1: 6, 7: 12},
        others=[("skipped", 2, 6, 5), ("skipped", 8, 12, 5), ("buffered", 13, 13, 1), ("skipped", 14, 14, 1)],
    ),
    # What waits for its slot does not expire (DESIGN.md, section 6).
    "overlap-buffer-vs-catchup": Timeline(
        document=every(60, overlap="buffer_all", window=10),
        takes={0: lasting(600)},
        usually=1,
        until=650,
        starts={0: None, **{60 * each: 599 + each for each in range(1, 11)}},
    ),
    # One run is one claim on the slot, of however many workflows and attempts it may consist.
    "overlap-continue-as-new-is-one-run": Timeline(
        document=every(2),
        takes={0: lasting(8.5)},
        until=10.1,
        starts={0: None, 10: None},
        others=[("skipped", 2, 8, 4)],
    ),
    # No start follows the failure: what waits is dropped in the transaction that settles it, and counted.
    "pof-buffered-starts": Timeline(
        document=every(2, overlap="buffer_all", pause_on_failure=True),
        takes={0: lasting(7, Disposition.FAILED)},
        until=30,
        starts={0: None},
        others=[("dropped", 2, 6, 3)],
    ),
    "pause-is-not-catchup": Timeline(
        document=every(1, overlap="allow", window=DAY),
        acts={2.5: paused, 2.5 + HOUR: enabled},
        until=HOUR + 5.5,
        starts=dict.fromkeys((0, 1, 2, HOUR + 3, HOUR + 4, HOUR + 5)),
    ),
    "catchup-suspend-long": Timeline(
        document=every(HOUR, window=DAY),
        acts={1: paused, 1 + 3 * DAY: enabled},
        until=3 * DAY + HOUR + 1,
        starts={0: None, 3 * DAY + HOUR: None},
    ),
    # Four are missed. The first of them was staged before the outage, so its line is its run's.
    "catchup-12s-allow": Timeline(
        document=every(5, overlap="allow", window=12),
        enabled=21,
        down=(34, 66),
        until=76,
        starts={25: None, 30: None, 55: 66, 60: 66, 65: 66, 70: None, 75: None},
        others=[("missed", 35, 35, 1), ("missed", 40, 50, 3)],
    ),
    "catchup-host-asleep": Timeline(
        document=by_rule(hour=3, day_of_week=0, window=6 * HOUR),
        down=(SUNDAY - HOUR, SUNDAY + 5 * HOUR),
        until=SUNDAY + 6 * HOUR,
        starts={SUNDAY: SUNDAY + 5 * HOUR},
    ),
    "catchup-host-asleep, beyond the window": Timeline(
        document=by_rule(hour=3, day_of_week=0, window=HOUR),
        down=(SUNDAY - HOUR, SUNDAY + 5 * HOUR),
        until=SUNDAY + 6 * HOUR,
        others=[("missed", SUNDAY, SUNDAY, 1)],
    ),
    "interval-missed-does-not-wait-a-cycle": Timeline(
        document=from_noon(2 * DAY, window=60),
        down=(2 * DAY - 30, 2 * DAY + HOUR),
        until=4 * DAY + 1,
        starts={0: None, 4 * DAY: None},
        others=[("missed", 2 * DAY, 2 * DAY, 1)],
    ),
    "interval-state-survives-edit": Timeline(
        document=every(HOUR),
        acts={4 * HOUR + 1_200: published_and_enabled(every(3 * HOUR))},
        until=9 * HOUR + 1,
        starts={each * HOUR: None for each in (0, 1, 2, 3, 4, 6, 9)},
    ),
    "update-not-retroactive": Timeline(
        document=every(HOUR, window=HOUR),
        acts={1_800: published_and_enabled(every(600, window=HOUR))},
        until=HOUR + 1,
        starts={0: None, 2_400: None, 3_000: None, HOUR: None},
    ),
    "update-at-tick": Timeline(
        document=every(300),
        acts={1_200.01: published_and_enabled(every(300))},
        until=1_501,
        starts=dict.fromkeys(range(0, 1501, 300)),
    ),
    # Decided by nobody when its activation ended: told so, once, and not taken up by the next generation.
    "update-at-tick, undecided": Timeline(
        document=every(300),
        down=(1_195, 1_200.02),
        acts={1_200.01: published_and_enabled(every(300))},
        until=1_501,
        starts=dict.fromkeys((0, 300, 600, 900, 1_500)),
        others=[("dropped", 1_200, 1_200, 1)],
    ),
    "completion-must-not-reenable": Timeline(
        document=every(10),
        takes={0: lasting(5)},
        acts={2: paused},
        until=60,
        starts={0: None},
    ),
}


def told(desk: Desk) -> Told:
    return [each for each in desk.told() if each[0] in {"skipped", "missed", "dropped", "buffered", "refused"}]


def play(desk: Desk, line: Timeline) -> World:
    world = World(desk, lambda run: line.takes.get(*offsets([run.nominal_time]), lasting(line.usually)))
    desk.now = at(line.enabled)
    desk.publish(line.document)
    enabled(world)
    down, up = line.down or (line.until, line.until)
    events: list[tuple[float, Callable[[], None]]] = [
        (when, lambda act=act: act(world)) for when, act in line.acts.items()
    ]
    events += [(down, lambda: switch(world, up=False)), (up, lambda: switch(world, up=True))]
    for when, happen in sorted(events, key=lambda each: each[0]):
        world.pass_until(at(when))
        happen()
    world.pass_until(at(line.until))
    if (loop := world.current()) is not None:
        # What a blocked schedule has left for later is judged now.
        world.step(loop)
    return world


def switch(world: World, *, up: bool) -> None:
    world.schedules_up = world.runs_up = up


@pytest.mark.parametrize("scenario", TIMELINES)
def test_a_timeline_that_others_get_wrong_ends_as_it_should(desk: Desk, scenario: str) -> None:
    line = TIMELINES[scenario]
    world = play(desk, line)
    begun = {
        run.nominal_time: start for run, start in world.actual_starts.items() if run.nominal_time <= at(line.until)
    }
    expected = {nominal: nominal if start is None else start for nominal, start in line.starts.items()}
    assert dict(zip(offsets(list(begun)), offsets(list(begun.values())), strict=True)) == expected
    assert told(desk) == line.others
    assert len(world.actual_starts) == len({run.nominal_time for run in world.actual_starts}), (
        "no instant started twice"
    )
    desk.check_ledger()


def test_a_pause_that_a_run_outlives_is_not_undone_by_its_end(desk: Desk) -> None:
    """The scenario completion-must-not-reenable, from the other side: what the row says in the end."""
    play(desk, TIMELINES["completion-must-not-reenable"])
    activation = desk.activation()
    assert (activation.enabled, activation.is_live, activation.generation) == (False, False, 2)


@pytest.mark.parametrize("down", [None, (ONCE - 5, ONCE + 60)], ids=["attended", "beyond the window"])
def test_a_single_instant_leaves_its_record_when_its_calendar_has_ended(
    desk: Desk, down: tuple[float, float] | None
) -> None:
    """The scenarios oneshot-missed-beyond-window and recovery-exhausted-record."""
    document = by_rule(hour=13, month=11, day_of_month=30, window=10)
    document["calendar"]["end_at"] = instant_text(at(ONCE))
    play(desk, Timeline(document=document, down=down, until=ONCE + 90))
    assert desk.told() == [("succeeded" if down is None else "missed", ONCE, ONCE, 1)]
    activation = desk.activation()
    assert (activation.ended_as, activation.is_live) == ("review", False)
    assert activation.ended_reason is not None
    assert activation.ended_reason.startswith("calendar_exhausted")


def test_what_is_added_later_starts_nothing_of_another_schedule_again(desk: Desk, catalog: Catalog) -> None:
    """The scenario catchup-late-add-refires: all of it inside the window of both."""
    world = play(desk, Timeline(document=every(HOUR, window=HOUR), until=HOUR + 300))
    other = Desk(catalog, now=desk.now)
    added = play(other, Timeline(document=every(HOUR, window=HOUR), enabled=HOUR + 300, until=HOUR + 600))
    world.pass_until(at(HOUR + 600))
    assert sorted(offsets([run.nominal_time for run in world.actual_starts])) == [0, HOUR]
    assert added.actual_starts == {}


def test_an_update_that_was_prepared_before_the_review_does_not_end_it(desk: Desk) -> None:
    """The scenario pof-vs-concurrent-update: what a person publishes enables nothing."""
    caller = Caller(desk)
    reference = caller.enabled(every(2, pause_on_failure=True))
    world = World(desk, lambda _run: lasting(0.5, Disposition.FAILED))
    world.loops[1] = Loop(desk, ActivationKey(schedule=desk.key, generation=1), wake=desk.now)
    update = caller.publication(every(5), expected=1)
    world.pass_until(at(10))
    caller.send_publication(update)
    world.pass_until(at(30))
    activation = desk.activation()
    assert (activation.generation, activation.ended_as) == (1, "review")
    assert activation.ended_reason is not None
    assert "pause_on_failure" in activation.ended_reason
    assert len(world.actual_starts) == 1
    caller.set(caller.about(reference, 1, enabled=False))
    with pytest.raises(Conflict):
        caller.set(caller.about(reference, 1, enabled=True))


@cache
def names_in(path: str) -> frozenset[str]:
    tree = ast.parse((REPOSITORY / path).read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("scenario", HELD_BY)
def test_what_holds_a_scenario_is_there(scenario: str) -> None:
    for node in HELD_BY[scenario]:
        path, _, name = node.partition("::")
        assert name in names_in(path), node


def test_each_timeline_is_listed() -> None:
    assert {name.partition(",")[0] for name in TIMELINES} <= HELD_BY.keys()


def test_no_scenario_is_both_held_and_not_ours() -> None:
    assert HELD_BY.keys() & NOT_OURS.keys() == set()
    assert all(reason.endswith(".") for reason in NOT_OURS.values())


@pytest.mark.skipif(not SHARED.is_file(), reason="there is no folder shared/cases beside the checkout")
def test_every_scenario_is_listed() -> None:
    known = {json.loads(line)["id"] for line in SHARED.read_text().splitlines()}
    assert known == HELD_BY.keys() | NOT_OURS.keys()
