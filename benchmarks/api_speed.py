"""How long publishing, reading, listing and enabling take with 1,000 and with 100,000 schedules stored, and how many
requests a core answers beside a bare FastAPI route.

Every number is of a whole request over a socket: token, validation, catalog, answer. The two sizes take turns, request by
request, so that what else the machine does meets both alike. PostgreSQL is a server of its own: it waits for its disk as in
production, and takes whatever core is free.
"""

import asyncio
import json
import random
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from time import perf_counter

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from benchmarks.api_server import ALGORITHM, KEY_NAME
from benchmarks.figures import Budget, Figure
from benchmarks.http_peer import Connection, beside_the_servers, connected, requests_per_second, serving
from benchmarks.stored_schedules import ENGINES, SCOPE, Empty, Stored, beat, configuration, store
from horarium.catalog import Catalog
from horarium.catalog.presence import HEARTBEAT_LIFETIME
from horarium.control.principals import WRITE_SCOPE
from horarium.schedule.canonical import digest

FEW, MANY = 1_000, 100_000
SAMPLES = 1_000
"""Requests of each kind and size: no more than there are schedules in the smaller catalog, since each changes another one."""
_PATIENCE_SECONDS = 30
"""For one kind. A machine that is busy with something else makes fewer requests, and its figures say how many."""
_ROUNDS = 5
_WARM_UP = 100
_SECONDS = 1.5
"""That one rate is measured for, at a time."""
_AT_ONCE = 16
_FLAT = Budget(least_ratio=0.5)
"""The 99th percentile with many stored is at most twice that with few (DESIGN.md, section 15)."""
_BASE = f"/v1/organizations/{SCOPE.org_id}/environments/{SCOPE.environment_id}"
_EXPECTED = {"expected_environment_epoch": 1, "expected_reset_generation": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One request of a kind. `key` is set for what changes something."""

    method: str
    path: str
    body: bytes = b""
    key: str | None = None


Ask = Callable[[Stored, int], Question]
"""Makes the request about the schedule with that number."""


def measure() -> Iterator[Figure]:
    """Measure each engine. Values are milliseconds, or requests a second where a figure says so."""
    for engine, opened in ENGINES.items():
        with opened() as url, TemporaryDirectory(prefix="horarium-bench-") as folder:
            yield from _measure(engine, url, Path(folder))


def _measure(engine: str, url: Empty, folder: Path) -> list[Figure]:
    key = Ed25519PrivateKey.generate()
    public = key.public_key().public_bytes_raw().hex()
    figures: list[Figure] = []
    with ExitStack() as stack:
        stored = {}
        for size in (FEW, MANY):
            (folder / str(size)).mkdir()
            stored[size] = store(url(folder / str(size)), size)
        ports = {size: stack.enter_context(serving(each.url, public)) for size, each in stored.items()}
        bare = stack.enter_context(serving("bare"))
        stack.enter_context(beside_the_servers())
        headers = {"Authorization": f"Bearer {_token(key)}"}

        async def ask() -> None:
            async with _workers_beat(stored.values()):
                figures.extend([figure async for figure in _latencies(engine, stored, ports, headers)])
            figures.extend(await _rates(engine, stored[MANY], ports[MANY], bare, headers))

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
    engine: str, stored: Mapping[int, Stored], ports: Mapping[int, int], headers: Mapping[str, str]
) -> AsyncIterator[Figure]:
    async with connected(ports[FEW], headers) as few, connected(ports[MANY], headers) as many:
        ends = {FEW: few[0], MANY: many[0]}
        for name, ask in _KINDS.items():
            numbers = {size: random.Random(name).sample(range(each.count), SAMPLES) for size, each in stored.items()}
            taken: dict[int, list[float]] = {FEW: [], MANY: []}
            if name in _READS:
                await _warm_up(ends, stored, ask)
            stop = perf_counter() + _PATIENCE_SECONDS
            for turn in range(SAMPLES):
                for size, end in ends.items():
                    taken[size].append(await _timed(end, ask(stored[size], numbers[size][turn])))
                if perf_counter() > stop:
                    break
            for part, value in (("median", median), ("p99", _p99)):
                yield _figure(f"{name} on {engine}, {part}", taken[MANY], taken[FEW], value, part)


async def _warm_up(ends: Mapping[int, Connection], stored: Mapping[int, Stored], ask: Ask) -> None:
    for number in range(_WARM_UP):
        for size, end in ends.items():
            await _timed(end, ask(stored[size], number))


async def _timed(end: Connection, question: Question) -> float:
    return await end.timed(question.method, question.path, body=question.body, key=question.key)


def _figure(name: str, many: list[float], few: list[float], value: Callable[[list[float]], float], part: str) -> Figure:
    size = len(many) // _ROUNDS
    rounds = [value(many[turn * size : (turn + 1) * size]) for turn in range(_ROUNDS)]
    return Figure(
        name=name,
        unit="ms",
        ours=value(many),
        peer=f"with {FEW:,} stored",
        peer_value=value(few),
        budget=_FLAT if part == "p99" else None,
        runs=len(many),
        spread=(max(rounds) - min(rounds)) / median(rounds),
    )


async def _rates(engine: str, stored: Stored, port: int, bare: int, headers: Mapping[str, str]) -> list[Figure]:
    """Requests a second on the servers' core. The ratio is how many times the bare route's are ours."""
    chance = random.Random(1)
    paths = {
        "get": f"{_BASE}/schedules/{chance.choice(stored.ids)}",
        "list 25": f"{_BASE}/schedules?limit=25",
        "environment": _BASE,
    }
    rates: dict[str, list[float]] = {name: [] for name in (*paths, "bare")}
    async with connected(port, headers, _AT_ONCE) as ours, connected(bare, {}, _AT_ONCE) as theirs:
        for turn in range(_ROUNDS + 1):
            for name, measured in rates.items():
                ends, path = (theirs, "/bare") if name == "bare" else (ours, paths[name])
                rate = await requests_per_second(ends, path, seconds=_SECONDS)
                if turn:  # the first turn fills caches and is thrown away
                    measured.append(rate)
    return [
        Figure(
            name=f"requests a second on one core: {name} on {engine}",
            unit="1/s",
            ours=median(rates[name]),
            peer="bare FastAPI route",
            peer_value=median(rates["bare"]),
            runs=_ROUNDS,
            spread=(max(rates[name]) - min(rates[name])) / median(rates[name]),
        )
        for name in paths
    ]


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


def _p99(values: list[float]) -> float:
    return quantiles(values, n=100)[98]


def _token(key: Ed25519PrivateKey) -> str:
    claims = {"sub": "ada", "kind": "human", "org": SCOPE.org_id, "scope": WRITE_SCOPE, "exp": int(time.time()) + 3_600}
    return jwt.encode(claims, key, algorithm=ALGORITHM, headers={"kid": KEY_NAME})
