"""A due time that passes without anybody accounting for it shows, and shows no more once somebody does."""

from datetime import timedelta

import pytest
from sqlalchemy import select, update

from horarium.catalog.schedules import change_activation, find_activation, require_schedule
from horarium.catalog.tables import activations
from starter import punctuality as module
from starter.punctuality import GRACE
from starter.rotation import Rotation
from tests.control.desk import NOON, Desk, at, configuration, every, seconds
from tests.controller.known import Clock, Known, controller, runtime

PASSED = "has passed and no worker has accounted for it"


async def swept_until(one, clock, until) -> None:
    """Sweep every five seconds, as a controller does, until that time has passed."""
    while clock.now < until:
        clock.now += seconds(5)
        await one.sweep()


async def test_a_due_time_that_nobody_accounts_for_is_an_error_until_somebody_does(catalog):
    desk, clock = Desk(catalog), Clock()
    loop = desk.enabled(every(60))
    one = controller(catalog, Known(), clock)

    await swept_until(one, clock, at(60) + GRACE - seconds(5))
    assert runtime(catalog, desk.key) == ("active", None)
    await swept_until(one, clock, at(60) + GRACE)
    state, reason = runtime(catalog, desk.key)
    assert state == "error"
    assert reason.startswith(f"Its next due time, 2026-11-30T12:01:00Z, {PASSED}")
    await swept_until(one, clock, at(300))
    assert runtime(catalog, desk.key) == (state, reason)

    loop.step_at(301)  # the worker is back
    await swept_until(one, clock, at(305))
    assert runtime(catalog, desk.key) == ("active", None)


async def test_a_schedule_that_is_accounted_for_is_never_in_error_however_often_it_is_due(catalog):
    desk, clock = Desk(catalog), Clock()
    loop = desk.enabled(every(45))
    one = controller(catalog, Known(), clock)
    for number in range(1, 10):
        loop.step_at(45 * number - 3)
        loop.has_run(45 * number, ends=45 * number + 1)
        await swept_until(one, clock, at(45 * number + 40))
        assert runtime(catalog, desk.key) == ("active", None)


async def test_a_schedule_that_catches_up_is_not_in_error_while_its_mark_moves(catalog):
    """A thousand instants take a while, and all that time it is behind."""
    desk, clock = Desk(catalog), Clock()
    desk.enabled(every(1))
    one = controller(catalog, Known(), clock)
    await one.sweep()
    clock.now = at(600)
    for number in range(20):
        clock.now += seconds(5)
        desk.write(stand_at, desk, at(10 * number + 10), look_by=at(10 * number + 11))
        await one.sweep()
        assert runtime(catalog, desk.key) == ("active", None)
    await swept_until(one, clock, clock.now + GRACE + seconds(5))
    assert runtime(catalog, desk.key)[0] == "error"


async def test_a_blocked_schedule_is_in_error_only_once_its_promised_look_has_passed(catalog):
    desk, clock = Desk(catalog), Clock()
    desk.enabled(every(60))
    one = controller(catalog, Known(), clock)
    desk.write(stand_at, desk, at(60), look_by=at(600), waiting=True)
    await swept_until(one, clock, at(600) + GRACE - seconds(5))
    assert runtime(catalog, desk.key) == ("active", None)
    await swept_until(one, clock, at(600) + GRACE)
    state, reason = runtime(catalog, desk.key)
    assert (state, reason.split(",")[0]) == ("error", "Its next look at a free slot")


async def test_a_controller_that_has_just_started_takes_its_time_to_judge(catalog):
    """It cannot know yet whether the mark moves."""
    desk, clock = Desk(catalog), Clock()
    desk.enabled(every(60))
    clock.now = at(3_600)
    one = controller(catalog, Known(), clock)
    await one.sweep()
    assert runtime(catalog, desk.key) == ("active", None)
    await swept_until(one, clock, clock.now + GRACE + seconds(5))
    assert runtime(catalog, desk.key)[0] == "error"


async def test_a_new_generation_is_judged_anew_and_an_old_one_forgotten(catalog):
    desk, clock = Desk(catalog), Clock()
    desk.enabled(every(60))
    one = controller(catalog, Known(), clock)
    await swept_until(one, clock, at(110))
    assert runtime(catalog, desk.key)[0] == "error"
    desk.now = clock.now
    desk.enable()
    await one.sweep()
    assert runtime(catalog, desk.key) == ("active", None)
    desk.pause()
    await one.sweep()
    assert one.punctuality._behind == {}


@pytest.mark.parametrize("last", [NOON - timedelta(hours=1), None], ids=["exhausted", "damaged"])
async def test_what_has_no_due_time_is_late_for_none(catalog, last):
    desk, clock = Desk(catalog), Clock()
    desk.enabled(configuration([{"every_seconds": 60, "offset_seconds": 0}], "skip", end_at=last))
    if last is None:
        desk.write(lambda connection: connection.exec_driver_sql("UPDATE versions SET configuration = '{'"))
        desk.write(forget_look_by)
    one = controller(catalog, Known(), clock)
    await swept_until(one, clock, at(200))
    assert runtime(catalog, desk.key) == ("active", None)


@pytest.mark.parametrize("waiting", [False, True])
async def test_what_was_enabled_before_its_next_look_was_stored_is_reckoned_when_its_turn_comes(catalog, waiting):
    desk, clock = Desk(catalog), Clock()
    desk.enabled(every(60))
    desk.write(stand_at, desk, at(0), look_by=at(90), waiting=waiting)
    desk.write(forget_look_by)
    one = controller(catalog, Known(), clock)
    clock.now = at(5)
    await one.sweep()
    assert looks_by(desk) == (at(90) if waiting else at(60))
    assert runtime(catalog, desk.key) == ("active", None)


async def test_more_than_a_page_of_late_ones_take_turns_and_each_is_told(catalog, monkeypatch):
    monkeypatch.setattr(module, "LATE_AT_ONCE", 2)
    clock = Clock()
    desks = [Desk(catalog) for _ in range(5)]
    for desk in desks:
        desk.enabled(every(60))

    async def nobody(*_, **__):
        return []

    monkeypatch.setattr(Rotation, "page", nobody)
    one = controller(catalog, Known(), clock)
    clock.now = at(60)
    await swept_until(one, clock, at(160))
    assert {runtime(catalog, desk.key)[0] for desk in desks} == {"error"}
    assert len(one.punctuality._behind) == 5
    for desk in desks:
        desk.write(stand_at, desk, at(180), look_by=at(600))
    await swept_until(one, clock, at(175))
    assert {runtime(catalog, desk.key) for desk in desks} == {("active", None)}
    assert one.punctuality._behind == {}


def looks_by(desk):
    return desk.read(lambda connection: connection.execute(select(activations.c.look_by)).scalar_one())


def forget_look_by(connection):
    """As the migration leaves it."""
    connection.execute(update(activations).values(look_by=None))


def stand_at(connection, desk, mark, *, look_by, waiting=False):
    """Set the mark of a schedule's only activation, as a step does."""
    schedule = require_schedule(connection, desk.key)
    activation = find_activation(connection, schedule, schedule.generation)
    promised = look_by if waiting else None
    change_activation(
        connection, activation, accounted_through=mark, look_by=look_by, waiting=waiting, attended_until=promised
    )
