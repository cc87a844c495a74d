"""What one unblocked occurrence costs, and what an enabled schedule costs while nothing is due.

On a real development server: history events and bytes, actions that a hosted Temporal would bill (the rule is told in
`benchmarks.counting.actions_of`), requests to Temporal, database statements and transactions, bytes of the catalog. The
schedules are of a short interval; an occurrence of a long one is the same. Where a native schedule has the like, it stands
beside ours, measured at the same time on the same server: its own workflow against the schedule's, since what it starts is
less than a run. What a native schedule is billed is the rule alone.

Steps and settlements are the schedule worker's, admissions the run worker's, and an agent claims its run. Each figure is the
mean of so many schedules or runs as it has `runs`; where that is 1 it was counted for all of them together.
"""

import asyncio
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory

from sqlalchemy import text
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

from benchmarks import idle
from benchmarks.apart import each_apart
from benchmarks.counted import PARTS, Counted, counted, since
from benchmarks.counting import HEARTBEAT, SCHEDULE_STARTS, actions_of
from benchmarks.figures import Budget, Figure
from benchmarks.histories import Chain, chain_of
from benchmarks.native_scheduler import Native, native
from benchmarks.occurrences import Life
from benchmarks.size import SHORT, chosen
from benchmarks.stored_schedules import ENGINES, SCOPE, store
from horarium.catalog import Catalog
from horarium.schedule.identity import ActivationKey, RunKey, schedule_key

EVERY = 8
"""Seconds between two occurrences of a schedule: more than a run is staged ahead, so that none waits for the one before."""
EVENTS_OF_SCHEDULE, EVENTS_OF_RUN = Budget(at_most=8), Budget(at_most=18)
"""DESIGN.md, section 15."""
NATIVE = "native schedule"
_STORED = 50
_WARM_UP = 2
"""Occurrences of each schedule before anything is counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How many schedules, how many occurrences of each, how many occurrences in a catalog alone; and what idles."""

    schedules: int = 10
    occurrences: int = 27
    """A history is continued after some 25."""
    stored: int = 2_000
    engines: tuple[str, ...] = tuple(ENGINES)
    idling: idle.Sizes = field(default_factory=idle.Sizes)


WHOLE = Sizes()
TRIED = Sizes(
    schedules=3,
    occurrences=3,
    stored=200,
    engines=("SQLite",),
    idling=idle.Sizes(few=10, enabled=90, lots=2, settle_seconds=2, watch_seconds=5),
)
"""For a minute, to see whether it runs: its figures are none."""


def names() -> list[str]:
    """The names of all figures, in their order."""
    sizes = _chosen_sizes()
    turn = Chain(events=[HistoryEvent(event_type=EventType.EVENT_TYPE_TIMER_FIRED)] * 3, size_bytes=1)
    nothing = Histories(schedules=[turn], runs=[turn], native=[turn])
    return [
        *(each.name for each in figures(nothing, {}, {}, occurrences=1)),
        *(_name_of_bytes(engine) for engine in sizes.engines),
        *_names_of_idling(sizes.idling),
    ]


def _names_of_idling(sizes: idle.Sizes) -> list[str]:
    seen = [
        idle.Seen(enabled=enabled, resident={"schedules": enabled, "temporal": enabled})
        for enabled in (sizes.few, sizes.enabled)
    ]
    parts = ("all processes", "Temporal server", "controller", "both workers")
    kept, *others = (each.name for each in idle.memory(seen, capacity=sizes.enabled))
    return [
        kept,
        f"memory of the schedule worker per schedule beyond a full cache ({sizes.few})",
        *others,
        *(f"idle CPU with {sizes.enabled:,} enabled, {part}" for part in parts),
        f"CPU of a schedule worker that starts, and {sizes.settle_seconds:g} s more, with {sizes.enabled:,} asleep",
    ]


def _chosen_sizes() -> Sizes:
    return TRIED if chosen(os.environ) == SHORT else WHOLE


def measure() -> Iterator[Figure]:
    """Measure all of it. With HORARIUM_BENCH=short in the environment only a little, to try it."""
    sizes = _chosen_sizes()
    yield from each_apart(
        {
            "occurrences": lambda: asyncio.run(_occurrences(sizes)),
            **{_name_of_bytes(engine): partial(_bytes, engine, sizes.stored) for engine in sizes.engines},
            "idle schedules": lambda: asyncio.run(idle.measure(sizes.idling)),
        }
    )


async def _occurrences(sizes: Sizes) -> list[Figure]:
    async with counted() as it, native(it.address, sizes.schedules, every=EVERY) as peer:
        keys = [
            await it.start(every=EVERY, offset=number * EVERY // sizes.schedules) for number in range(sizes.schedules)
        ]
        await _until_answered(it, sizes.schedules * _WARM_UP)
        begun = await it.answers()
        statements, requests = Counter(it.statements.counted), it.requests.read()
        await _until_answered(it, begun + sizes.schedules * sizes.occurrences, requests=it.requests.read)
        ended = await it.answers()
        asked = since(it.statements.counted, statements)
        requested = since(it.requests.read(), requests)
        histories = await _histories(it, keys, peer)
    return list(figures(histories, asked, requested, occurrences=ended - begun))


async def _until_answered(it: Counted, count: int, *, requests: Callable[[], object] = lambda: None) -> None:
    """Wait until so many occurrences have ended. What was requested is taken up meanwhile, before its buffer is full."""
    while await it.answers() < count:
        await asyncio.sleep(0.2)
        requests()


@dataclass(frozen=True, slots=True, kw_only=True)
class Histories:
    """What the server keeps of our schedules, of their runs, and of native schedules."""

    schedules: Sequence[Chain]
    runs: Sequence[Chain]
    native: Sequence[Chain]


async def _histories(it: Counted, keys: Sequence[ActivationKey], peer: Native) -> Histories:
    runs = []
    for key in keys:
        for entry in await it.ended(key):
            run = RunKey(activation=key, nominal_time=entry.first_at)
            await it.client.get_workflow_handle(run.workflow_id).result()
            runs.append(await chain_of(it.client, run.workflow_id))
    return Histories(
        schedules=[await chain_of(it.client, key.workflow_id) for key in keys],
        runs=runs,
        native=await peer.chains(),
    )


def figures(
    histories: Histories, asked: Mapping[str, int], requested: Mapping[str, int], *, occurrences: int
) -> Iterator[Figure]:
    """The figures of an occurrence, from what was kept and what was counted while so many ended."""
    schedules, runs = histories.schedules, histories.runs
    yield _figure(
        "history events, schedule workflow",
        "events",
        [len(each.within_turns) / each.turns for each in schedules],
        [len(each.within_turns) / each.turns for each in histories.native],
        EVENTS_OF_SCHEDULE,
    )
    yield _figure("history events, run workflow", "events", [len(each.events) for each in runs], budget=EVENTS_OF_RUN)
    yield _figure(
        "history bytes, schedule workflow",
        "bytes",
        [each.bytes_of_turns / each.turns for each in schedules],
        [each.bytes_of_turns / each.turns for each in histories.native],
    )
    yield _figure("history bytes, run workflow", "bytes", [each.size_bytes for each in runs])
    deciding = [actions_of(each.within_turns).total() / each.turns for each in schedules]
    running = [actions_of(each.events).total() for each in runs]
    # That a run's workflow is started is its first action; it is the third of a native schedule.
    yield _figure(
        "billable actions until the run is started", "actions", [each + 1 for each in deciding], [SCHEDULE_STARTS]
    )
    yield _figure("billable actions of the run, started, without heartbeats", "actions", [each - 1 for each in running])
    heartbeats = requested.get(HEARTBEAT, 0) / occurrences
    yield _figure("billable heartbeats", "actions", [heartbeats])
    yield _figure("billable actions in all", "actions", [mean(deciding) + mean(running) + heartbeats])
    calls = sum(count for operation, count in requested.items() if not operation.startswith("Poll"))
    yield _figure("requests to Temporal, polls aside", "requests", [calls / occurrences])
    for what in ("statements", "reading transactions", "writing transactions"):
        parts = {part: asked.get(f"{part}: {what}", 0) / occurrences for part in PARTS}
        yield _figure(f"database {what}", what.split()[-1], [sum(parts.values())])
        for part, count in parts.items():
            yield _figure(f"database {what}, {_NAMES[part]}", what.split()[-1], [count])


_NAMES = {"schedules": "schedule worker", "runs": "run worker", "agents": "agent"}


def _figure(
    name: str, unit: str, ours: Sequence[float], theirs: Sequence[float] = (), budget: Budget | None = None
) -> Figure:
    middle = mean(ours)
    return Figure(
        name=name,
        unit=unit,
        ours=middle,
        peer=NATIVE if theirs else None,
        peer_value=mean(theirs) if theirs else None,
        budget=budget,
        runs=len(ours),
        spread=(max(ours) - min(ours)) / middle if middle else 0,
    )


def _name_of_bytes(engine: str) -> str:
    return f"catalog bytes on {engine}"


def _bytes(engine: str, occurrences: int) -> Iterator[Figure]:
    """What a catalog grows by, per occurrence, while it lives through so many of a few schedules.

    With all indexes; on PostgreSQL after a VACUUM, as autovacuum does it in time.
    """
    chance = random.Random(occurrences)
    with ENGINES[engine]() as url, TemporaryDirectory(prefix="horarium-bench-") as folder:
        stored = store(url(Path(folder)), _STORED)
        catalog = Catalog.open(stored.url)
        try:
            sizes = [_size(catalog)]
            lots = 4
            for _ in range(lots):
                for _ in range(occurrences // lots):
                    key = schedule_key(SCOPE, chance.choice(stored.ids))
                    Life(catalog=catalog, key=ActivationKey(schedule=key, generation=1)).live()
                sizes.append(_size(catalog))
        finally:
            catalog.close()
    grown = [(after - before) / (occurrences // lots) for before, after in pairwise(sizes)]
    yield Figure(
        name=_name_of_bytes(engine),
        unit="bytes",
        ours=mean(grown),
        runs=lots,
        spread=(max(grown) - min(grown)) / median(grown),
    )


def _size(catalog: Catalog) -> int:
    with catalog.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        if catalog.engine.dialect.name == "postgresql":
            connection.exec_driver_sql("SET statement_timeout = 0")
            connection.exec_driver_sql("VACUUM")
            size: int = connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one()
            connection.invalidate()  # with what was set for it
            return size
    with catalog.reading() as connection:
        pages, each = (
            connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in ("page_count", "page_size")
        )
        return int(pages) * int(each)
