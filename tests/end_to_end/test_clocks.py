"""Machines whose clocks are apart, and are set while they work: no instant twice, none lost, none before its second."""

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from horarium.catalog import findings
from horarium.catalog.presence import ROLES, roles_present
from horarium.schedule.findings import Finding
from starter.child import Child
from tests.end_to_end.installation import installation, now, until

pytestmark = pytest.mark.server

PARTS = {
    "schedules right": ("schedules", 0),
    "schedules ahead": ("schedules", 10),
    "runs right": ("runs", 0),
    "runs ahead": ("runs", 10),
    "controller ahead": ("controller", 90),
    "agents behind": ("agents", -300),
}
"""What runs, and how many seconds its machine's clock is ahead at first."""
APPROXIMATELY = 5
"""Seconds. The way of a stamp from the server to here is part of what is found, and machines may be busy."""


@asynccontextmanager
async def machines(folder):
    """An installation with a machine for each part, and how to set the clock of one."""
    async with installation(folder, parts=()) as it:

        def set_clock(name, seconds):
            (folder / f"{name}.clock").write_text(str(seconds))

        for name, (part, ahead) in PARTS.items():
            set_clock(name, ahead)
            program = replace(
                it.program(part, name, crashing=False),
                argv=(sys.executable, "-m", "tests.end_to_end.skewed", part, str(folder / f"{name}.clock")),
            )
            it.children[name] = Child(program)
        await asyncio.gather(*(it.start(part, name=name) for name, (part, _) in PARTS.items()))
        yield it, set_clock


def skews(it, name):
    """By how many seconds the server was ahead, each time that a process has warned of it."""
    lines = [
        json.loads(line) for line in it.children[name].program.log.read_text().splitlines() if '"clock_skew"' in line
    ]
    return [line["skew_seconds"] for line in lines]


def test_clocks_that_are_apart_and_are_set_while_they_are_relied_on(tmp_path):
    asyncio.run(_set_while_they_are_relied_on(tmp_path))


async def _set_while_they_are_relied_on(folder):
    async with machines(folder) as (it, set_clock):
        keys = [await it.published(every=1, overlap="allow"), await it.published(every=3, overlap="skip")]
        for key in keys:
            await it.enabled(key)

        async def some_pass(count):
            answered = len(it.rows(keys[1]))
            await it.until_closed(keys[1], answered + count)
            with it.catalog.reading() as connection:
                assert roles_present(connection, now=now()) == set(ROLES)

        await some_pass(4)
        set_clock("runs ahead", -10)  # a jump back by twenty seconds, in the middle of waits
        set_clock("schedules ahead", -3_600)
        await some_pass(4)
        set_clock("runs right", 86_400)  # a jump forwards, so that no run worker has the right time
        set_clock("agents behind", 300)
        set_clock("controller ahead", -600)
        await some_pass(4)

        for key in keys:
            times = [
                (datetime.fromisoformat(line["nominal"]), datetime.fromisoformat(line["at"])) for line in it.begun(key)
            ]
            assert all(began >= nominal for nominal, began in times), "none before its nominal second"
            fates = {told.split()[0] for told in it.told(key)}
            assert not fates & {"missed", "dropped", "not_started"}, it.told(key)
            assert it.runtime(key) == ("active", None)
        for name, skew in (
            ("runs ahead", -10),
            ("runs ahead", 10),
            ("runs right", -86_400),
            ("controller ahead", -90),
            ("controller ahead", 600),
        ):
            assert any(abs(told - skew) < APPROXIMATELY for told in skews(it, name)), (name, skew, skews(it, name))
        await until(lambda: _found(it)[Finding.CLOCK_SKEW] >= 3, "the skews to be counted")
        await it.proven(*keys)
        for key in keys:
            runs = [run for _, run in it.rows(key) if run is not None and run.begun_at is not None]
            apart = [abs(run.begun_at - run.decided_at) for run in runs]
            assert max(apart) < timedelta(seconds=20), "both are told by the server's time"


def _found(it):
    with it.catalog.reading() as connection:
        return findings.totals(connection)
