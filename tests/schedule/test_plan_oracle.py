"""The whole machinery against an oracle that knows nothing of it: a second-by-second reading of DESIGN.md, section 6."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import cycle, islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horarium.catalog import Catalog
from horarium.schedule.ledger import BY_CALENDAR
from tests.control.desk import NOON, Desk, at, configuration, offsets, open_catalog, seconds
from tests.control.world import Work, World

HORIZON = 90


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    opened = open_catalog(tmp_path_factory.mktemp("catalog"))
    yield opened
    opened.close()


def is_due(intervals: list[tuple[int, int]], second: int) -> bool:
    return any((second + int(NOON.timestamp())) % every == offset for every, offset in intervals)


@dataclass
class Oracle:
    """Time in half seconds from noon, on which the activation begins, so that what is due at noon is not of it."""

    intervals: list[tuple[int, int]]
    overlap: str
    slots: int
    durations: Iterator[int]
    active: list[int] = field(default_factory=list)
    waiting: deque[int] = field(default_factory=deque)
    starts: dict[int, float] = field(default_factory=dict)
    gone: list[int] = field(default_factory=list)

    def run(self) -> "Oracle":
        for half in range(1, HORIZON * 2 + 1):
            self.active = [end for end in self.active if end > half]
            second, fraction = divmod(half, 2)
            if not fraction and is_due(self.intervals, second):
                self.fall_due(second, half)
            while self.waiting and len(self.active) < self.slots:
                self.start(self.waiting.popleft(), half)
        return self

    def fall_due(self, second: int, half: int) -> None:
        if self.overlap == "allow" or (len(self.active) < self.slots and not self.waiting):
            self.start(second, half)
        elif self.overlap == "buffer_all" or (self.overlap == "buffer_one" and not self.waiting):
            self.waiting.append(second)
        else:
            self.gone.append(second)

    def start(self, second: int, half: int) -> None:
        self.starts[second] = half / 2
        self.active.append(half + next(self.durations))


# Durations are in half seconds. None is zero: a run that takes no time at all frees its slot at the instant that took it.
DURATIONS = st.lists(st.integers(1, 60), min_size=1, max_size=6)
INTERVALS = st.lists(
    st.integers(1, 30).flatmap(lambda every: st.tuples(st.just(every), st.integers(0, every - 1))),
    min_size=1,
    max_size=3,
    unique=True,
)


@settings(max_examples=100)
@given(
    INTERVALS,
    st.sampled_from(["skip", "buffer_one", "buffer_all", "allow"]),
    st.integers(1, 3),
    DURATIONS,
)
def test_prompt_steps_give_each_instant_the_fate_of_the_oracle(
    catalog: Catalog,
    intervals: list[tuple[int, int]],
    overlap: str,
    slots: int,
    durations: list[int],
) -> None:
    expected = Oracle(intervals, overlap, 10_000 if overlap == "allow" else slots, cycle(durations)).run()

    desk = Desk(catalog)
    takes = cycle(durations)
    world = World(desk, lambda _run: Work(takes=seconds(next(takes) / 2)))
    rules = [{"every_seconds": every, "offset_seconds": offset} for every, offset in intervals]
    desk.publish(configuration(rules, overlap, runs=slots))
    world.establish(desk.enable())
    world.pass_until(at(HORIZON))
    # What a blocked schedule has left for later is judged now.
    world.step(world.loops[1])
    desk.check_ledger()

    entries = [entry for entry in desk.entries() if entry.first_at <= at(HORIZON)]
    gone = [
        instant
        for entry in entries
        if entry.disposition.value in {"skipped", "dropped", "missed"}
        for instant in world_instants(intervals, entry.first_at, entry.last_at)
    ]
    assert {run.nominal_time: start for run, start in world.actual_starts.items() if run.trigger == BY_CALENDAR} == {
        at(nominal): at(start) for nominal, start in expected.starts.items()
    }
    assert gone == expected.gone
    waiting = offsets([entry.first_at for entry in entries if entry.disposition.value == "buffered"])
    assert waiting == list(expected.waiting)


def world_instants(intervals: list[tuple[int, int]], first: datetime, last: datetime) -> list[int]:
    start, end = offsets([first, last])
    return [second for second in range(start, end + 1) if is_due(intervals, second)]


def test_the_oracle_keeps_the_earliest_of_those_that_overlap() -> None:
    """The published example: runs of six seconds, due each second, `buffer_one`."""
    oracle = Oracle([(1, 0)], "buffer_one", 1, cycle([12])).run()
    assert list(islice(oracle.starts.items(), 3)) == [(1, 1.0), (2, 7.0), (8, 13.0)]
