"""How long publishing, reading, listing and enabling take with 1,000 and with 100,000 schedules stored, and how many
requests a core answers beside a bare FastAPI route.

Every number is of a whole request over a socket: token, validation, catalog, answer. The two sizes take turns, request by
request, so that what else the machine does meets both alike. PostgreSQL is a server of its own: it waits for its disk as in
production, and takes whatever core is free.
"""

import asyncio
import json
import os
import random
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from time import perf_counter

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from benchmarks.apart import each_apart
from benchmarks.api_server import ALGORITHM, KEY_NAME
from benchmarks.figures import Budget, Figure
from benchmarks.http_peer import Connection, beside_the_servers, connected, requests_per_second, serving
from benchmarks.size import SHORT, chosen
from benchmarks.stored_schedules import ENGINES, SCOPE, Empty, Stored, beat, configuration, store
from horarium.catalog import Catalog
from horarium.catalog.presence import HEARTBEAT_LIFETIME
from horarium.control.principals import WRITE_SCOPE
from horarium.schedule.canonical import digest

_PATIENCE_SECONDS = 30
"""For one kind. A machine that is busy with something else makes fewer requests, and its figures say how many."""
_ROUNDS = 5
_AT_ONCE = 16
_FLAT = Budget(least_ratio=0.5)
"""The 99th percentile with many stored is at most twice that with few (DESIGN.md, section 15)."""
_BASE = f"/v1/organizations/{SCOPE.org_id}/environments/{SCOPE.environment_id}"
_EXPECTED = {"expected_environment_epoch": 1, "expected_reset_generation": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How many schedules are stored in each of the two catalogs, and how much is asked of them.

    `samples` are requests of each kind and size: no more than there are schedules in the smaller catalog, since each changes
    another one. One rate is measured for so many `seconds` at a time.
    """

    few: int = 1_000
    many: int = 100_000
    samples: int = 1_000
    warm_up: int = 100
    seconds: float = 1.5


WHOLE = Sizes()
TRIED = Sizes(few=100, many=1_000, samples=50, warm_up=5, seconds=0.2)
"""For a minute, to see whether it runs: its figures are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One request of a kind. `key` is set for what changes something."""

    method: str
    path: str
    body: bytes = b""
    key: str | None = None


Ask = Callable[[Stored, int], Question]
"""Makes the request about the schedule with that number."""


def names() -> list[str]:
    """The names of all figures, in their order."""
    return [
        name
        for engine in ENGINES
        for name in (
            *(_latency_name(kind, engine, part) for kind in _KINDS for part in _PARTS),
            *(_rate_name(path, engine) for path in _RATED),
        )
    ]


def measure() -> Iterator[Figure]:
    """Measure each engine. Values are milliseconds, or requests a second where a figure says so.

    With HORARIUM_BENCH=short in the environment only a little, to try it.
    """
    sizes = TRIED if chosen(os.environ) == SHORT else WHOLE
    yield from each_apart({f"requests on {engine}": partial(_measure, engine, sizes) for engine in ENGINES})


def _measure(engine: str, sizes: Sizes) -> list[Figure]:
    with ENGINES[engine]() as url, TemporaryDirectory(prefix="horarium-bench-") as folder:
        return _measured(engine, url, Path(folder), sizes)


def _measured(engine: str, url: Empty, folder: Path, sizes: Sizes) -> list[Figure]:
    key = Ed25519PrivateKey.generate()
    public = key.public_key().public_bytes_raw().hex()
    figures: list[Figure] = []
    with ExitStack() as stack:
        stored = {}
        for size in (sizes.few, sizes.many):
            (folder / str(size)).mkdir()
            stored[size] = store(url(folder / str(size)), size)
        ports = {size: stack.enter_context(serving(each.url, public)) for size, each in stored.items()}
        bare = stack.enter_context(serving("bare"))
        stack.enter_context(beside_the_servers())
        headers = {"Authorization": f"Bearer {_token(key)}"}

        async def ask() -> None:
            async with _workers_beat(stored.values()):
                figures.extend([figure async for figure in _latencies(engine, stored, ports, headers, sizes)])
            figures.extend(await _rates(engine, stored[sizes.many], (ports[sizes.many], bare), headers, sizes.seconds))

        asyncio.run(ask())
    return figures


@asynccontextmanager
async def _workers_beat(stored: Iterable[Stored]) -> AsyncIterator[None]:
    """Both runtime workers are there meanwhile."""
    catalogs = [Catalog.open(each.url) for each in stored]

    async def go_on() -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_LIFETIME.total_seconds() / 3)
            await asyncio.gather(*(catalog.write(beat) for catalog in catalogs))

    await asyncio.gather(*(catalog.write(beat) for catalog in catalogs))
    beats = asyncio.create_task(go_on())
    try:
        yield
    finally:
        beats.cancel()
        await asyncio.gather(beats, return_exceptions=True)
        for catalog in catalogs:
            catalog.close()


async def _latencies(
    engine: str, stored: Mapping[int, Stored], ports: Mapping[int, int], headers: Mapping[str, str], sizes: Sizes
) -> AsyncIterator[Figure]:
    async with connected(ports[sizes.few], headers) as few, connected(ports[sizes.many], headers) as many:
        ends = {sizes.few: few[0], sizes.many: many[0]}
        for name, ask in _KINDS.items():
            numbers = {
                size: random.Random(name).sample(range(each.count), sizes.samples) for size, each in stored.items()
            }
            taken: dict[int, list[float]] = {size: [] for size in ends}
            if name in _READS:
                await _warm_up(ends, stored, ask, sizes.warm_up)
            stop = perf_counter() + _PATIENCE_SECONDS
            for turn in range(sizes.samples):
                for size, end in ends.items():
                    taken[size].append(await _timed(end, ask(stored[size], numbers[size][turn])))
                if perf_counter() > stop:
                    break
            for part in _PARTS:
                yield _figure(_latency_name(name, engine, part), taken, part)


async def _warm_up(ends: Mapping[int, Connection], stored: Mapping[int, Stored], ask: Ask, count: int) -> None:
    for number in range(count):
        for size, end in ends.items():
            await _timed(end, ask(stored[size], number))


async def _timed(end: Connection, question: Question) -> float:
    return await end.timed(question.method, question.path, body=question.body, key=question.key)


def _figure(name: str, taken: Mapping[int, list[float]], part: str) -> Figure:
    value, few, many = _PARTS[part], min(taken), max(taken)
    size = len(taken[many]) // _ROUNDS
    rounds = [value(taken[many][turn * size : (turn + 1) * size]) for turn in range(_ROUNDS)]
    return Figure(
        name=name,
        unit="ms",
        ours=value(taken[many]),
        peer=f"with {few:,} stored",
        peer_value=value(taken[few]),
        budget=_FLAT if part == _P99 else None,
        runs=len(taken[many]),
        spread=(max(rounds) - min(rounds)) / median(rounds),
    )


async def _rates(
    engine: str, stored: Stored, ports: tuple[int, int], headers: Mapping[str, str], seconds: float
) -> list[Figure]:
    """Requests a second on the servers' core. The ratio is how many times the bare route's are ours.

    `ports` are ours and the bare one's; one rate is measured for so many `seconds` at a time.
    """
    chance = random.Random(1)
    paths = {name: path.format(chance.choice(stored.ids)) for name, path in _RATED.items()}
    rates: dict[str, list[float]] = {name: [] for name in (*paths, "bare")}
    async with connected(ports[0], headers, _AT_ONCE) as ours, connected(ports[1], {}, _AT_ONCE) as theirs:
        for turn in range(_ROUNDS + 1):
            for name, measured in rates.items():
                ends, path = (theirs, "/bare") if name == "bare" else (ours, paths[name])
                rate = await requests_per_second(ends, path, seconds=seconds)
                if turn:  # the first turn fills caches and is thrown away
                    measured.append(rate)
    return [
        Figure(
            name=_rate_name(name, engine),
            unit="1/s",
            ours=median(rates[name]),
            peer="bare FastAPI route",
            peer_value=median(rates["bare"]),
            runs=_ROUNDS,
            spread=(max(rates[name]) - min(rates[name])) / median(rates[name]),
        )
        for name in paths
    ]


def _latency_name(kind: str, engine: str, part: str) -> str:
    return f"{kind} on {engine}, {part}"


def _rate_name(kind: str, engine: str) -> str:
    return f"requests a second on one core: {kind} on {engine}"


def _get(stored: Stored, number: int) -> Question:
    return Question(method="GET", path=f"{_BASE}/schedules/{stored.ids[number]}")


def _list(stored: Stored, number: int) -> Question:
    return Question(method="GET", path=f"{_BASE}/schedules?limit=25&after={stored.ids[number]}")


def _publish(stored: Stored, number: int) -> Question:
    request = {
        "schedule_id": stored.ids[number],
        "expected_revision": 1,
        **_EXPECTED,
        "configuration": configuration(number + 500_000),
    }
    return _change(f"{_BASE}/schedules", request)


def _enable(stored: Stored, number: int) -> Question:
    schedule_id = stored.ids[number]
    version = {"schedule_id": schedule_id, "revision": 1, "digest": digest(configuration(number))}
    request = {"version": version, "expected_generation": 1, **_EXPECTED, "enabled": True}
    return _change(f"{_BASE}/schedules/{schedule_id}/activation", request)


def _change(path: str, request: Mapping[str, object]) -> Question:
    return Question(method="POST", path=path, body=json.dumps(request).encode(), key=str(uuid.uuid4()))


_READS = {"get": _get, "list 25": _list}
_KINDS: Mapping[str, Ask] = {**_READS, "publish": _publish, "activation": _enable}
_RATED = {"get": f"{_BASE}/schedules/{{}}", "list 25": f"{_BASE}/schedules?limit=25", "environment": _BASE}
"""Paths, the first of which names a schedule."""


def _p99(values: list[float]) -> float:
    return quantiles(values, n=100)[98]


_P99 = "p99"
_PARTS: Mapping[str, Callable[[list[float]], float]] = {"median": median, _P99: _p99}


def _token(key: Ed25519PrivateKey) -> str:
    claims = {"sub": "ada", "kind": "human", "org": SCOPE.org_id, "scope": WRITE_SCOPE, "exp": int(time.time()) + 3_600}
    return jwt.encode(claims, key, algorithm=ALGORITHM, headers={"kid": KEY_NAME})
