"""Whatever is wrong with one schedule, the controller and the other schedules go on."""

import asyncio
import sqlite3

import pytest
import structlog
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from temporalio.service import RPCError, RPCStatusCode

from horarium.catalog import presence
from horarium.catalog.tables import sweeps
from horarium.errors import Unavailable
from starter import controller as module
from starter import looks, rotation
from starter.apart import AT_ONCE
from starter.controller import Controller
from starter.temporal import Found
from starter.unsettled import OVERDUE
from tests.control.desk import Desk, every
from tests.controller.known import Clock, Known, controller, runtime


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        (RPCError("Not enough hosts.", RPCStatusCode.UNAVAILABLE, b""), "Temporal: Not enough hosts."),
        (
            AssertionError("an entry has its activation"),
            "The controller could not look at it: AssertionError. Its log says more.",
        ),
        (KeyError("superseded"), "The controller could not look at it: KeyError. Its log says more."),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_a_schedule_that_cannot_be_looked_at_is_in_error_until_it_can_be(catalog, trouble, reason):
    bad, good = Desk(catalog), Desk(catalog)
    temporal = Known()
    keys = [desk.enabled(every(60)).key for desk in (bad, good)]
    temporal.broken[keys[0].workflow_id] = trouble
    one = controller(catalog, temporal, Clock())

    with structlog.testing.capture_logs() as logged:
        await one.tick()
        await one.sweep()

    assert runtime(catalog, bad.key) == ("error", reason)
    assert runtime(catalog, good.key) == ("active", None)
    unforeseen = [each for each in logged if each.get("exc_info")]
    assert [each["workflow_id"] for each in unforeseen] == (
        [] if isinstance(trouble, RPCError) else [keys[0].workflow_id] * 2
    )
    temporal.broken.clear()
    await one.sweep()
    assert runtime(catalog, bad.key) == ("active", None)


async def test_a_schedule_in_error_is_looked_at_by_sweeps_and_not_by_every_tick(catalog):
    desk, temporal = Desk(catalog), Known()
    activation = desk.enabled(every(60)).key
    temporal.broken[activation.workflow_id] = RPCError("Not enough hosts.", RPCStatusCode.UNAVAILABLE, b"")
    one = controller(catalog, temporal, Clock())
    for _ in range(10):
        await one.tick()
    assert temporal.described[activation.workflow_id] == 1
    await one.sweep()
    assert temporal.described[activation.workflow_id] == 2


async def test_an_observation_that_cannot_be_written_hides_no_other_and_leaves_the_sweep_unclean(catalog, monkeypatch):
    """Written in one transaction, they would all be lost with it."""
    bad, *good = (Desk(catalog) for _ in range(4))
    for desk in (bad, *good):
        desk.enabled(every(60))
    observe_all, refused = presence.observe_all, []

    def picky(connection, seen, *, now):
        if any(each.row == 1 for each in seen) and not refused:
            raise IntegrityError("INSERT INTO runtime", {}, sqlite3.IntegrityError("FOREIGN KEY"))
        observe_all(connection, seen, now=now)

    monkeypatch.setattr(looks, "observe_all", picky)
    clock = Clock()
    one = controller(catalog, Known(), clock)
    await one.sweep()
    assert [runtime(catalog, desk.key) for desk in (bad, *good)] == [None, *[("active", None)] * 3]
    assert swept(catalog) is None

    refused.append("enough")
    await one.sweep()
    assert runtime(catalog, bad.key) == ("active", None)
    assert swept(catalog) == clock.now


async def test_a_part_of_a_sweep_that_fails_leaves_the_others_to_be_done(catalog, monkeypatch):
    desk = Desk(catalog)
    loop = desk.enabled(every(60))
    loop.step_at(57)

    def fails(*_args, **_rest):
        raise AssertionError("a seal has events")

    monkeypatch.setattr(module.seals, "is_due", fails)
    monkeypatch.setattr(rotation, "note_sweep", fails)
    clock = Clock(desk.now)
    clock.now += OVERDUE * 3
    temporal = Known(found={loop.run(60).workflow_id: Found.TERMINATED, loop.key.workflow_id: Found.RUNNING})
    await controller(catalog, temporal, clock).sweep()
    assert runtime(catalog, desk.key) == ("active", None)
    assert desk.told()[0][0] == "not_started"


@pytest.mark.parametrize(
    "trouble",
    [KeyError("superseded"), AssertionError("no"), Unavailable("catalog_unavailable", "It is out.")],
    ids=repr,
)
async def test_a_controller_outlives_a_tick_that_fails(catalog, monkeypatch, trouble):
    desk, temporal = Desk(catalog), Known()
    failures = [trouble] * 2
    look = module.Lingering.look

    async def fails_twice(self):
        if failures:
            raise failures.pop()
        return await look(self)

    monkeypatch.setattr(module.Lingering, "look", fails_twice)
    desk.enabled(every(60))
    serving = asyncio.create_task(controller(catalog, temporal, Clock()).serve())
    try:
        with structlog.testing.capture_logs() as logged:
            async with asyncio.timeout(60):
                while failures or runtime(catalog, desk.key) != ("active", None):  # noqa: ASYNC110 - it is in a database
                    await asyncio.sleep(0.05)
    finally:
        serving.cancel()
    troubles = [each for each in logged if each["log_level"] != "info"]
    assert [each["event"] for each in troubles] == ["tick_failed"] * 2
    assert all(bool(each["exc_info"]) != isinstance(trouble, Unavailable) for each in troubles)


async def test_a_change_is_taken_up_while_a_sweep_of_many_is_under_way(catalog):
    """However soon that is: the sweep of this test never ends."""
    temporal = Known()
    many = [Desk(catalog) for _ in range(3 * AT_ONCE)]
    for desk in many:
        activation = desk.enabled(every(60)).key
        temporal.found[activation.workflow_id] = Found.RUNNING
    one: Controller = controller(catalog, temporal, Clock())
    await one.tick()
    ticked = temporal.described.total()
    for workflow_id in temporal.found:
        temporal.held[workflow_id] = asyncio.Event()  # the server is slow to say how these stand
    new = Desk(catalog)

    serving = asyncio.create_task(one.serve())
    try:
        async with asyncio.timeout(60):
            while temporal.described.total() == ticked:  # noqa: ASYNC110 - until the sweep asks
                await asyncio.sleep(0.02)
            new.enabled(every(60))
            while runtime(catalog, new.key) != ("active", None):  # noqa: ASYNC110 - it is in a database
                await asyncio.sleep(0.02)
    finally:
        serving.cancel()


def swept(catalog):
    """When the environment was swept last; None where it never was."""
    with catalog.reading() as connection:
        return connection.execute(select(sweeps.c.swept_at)).scalar_one_or_none()
