"""What nobody reports among many is found: by the list of closed workflows, when its turn comes, or when all are looked at."""

from datetime import timedelta

import pytest
from sqlalchemy import select, update
from temporalio.service import RPCError, RPCStatusCode

from horarium.catalog.tables import activations, sweeps
from horarium.control import administration
from horarium.errors import Unavailable
from starter import closures
from starter import controller as module
from starter.closures import LAG, Closures
from starter.temporal import ClosedSchedule, Found
from tests.control.caller import new_key
from tests.control.desk import NOON, SCOPE, Desk, at, every, seconds
from tests.controller.known import Clock, Known, controller, runtime
from tests.controller.test_moved_on import CHANGE, OPERATOR


@pytest.fixture
def desks(catalog):
    made = [Desk(catalog) for _ in range(7)]
    for desk in made:
        desk.enabled(every(86_400))
    return made


@pytest.fixture
def few(monkeypatch):
    """Two looks a sweep, by turns."""
    monkeypatch.setattr(module, "LOOKS_AT_ONCE", 2)


def workflow(desk: Desk) -> str:
    return f"schedule/{desk.key.path}/{desk.activation().generation}"


async def established(catalog, desks, clock):
    temporal = Known()
    one = controller(catalog, temporal, clock)
    await one.tick()
    assert {runtime(catalog, desk.key) for desk in desks} == {("active", None)}
    return one, temporal


async def test_a_workflow_that_is_listed_as_closed_is_looked_at_by_the_next_sweep(catalog, desks, few):
    clock = Clock()
    one, temporal = await established(catalog, desks, clock)
    ended, fine = desks[6], desks[5]
    temporal.found[workflow(ended)] = Found.TERMINATED
    # The list is wrong about the second one.
    temporal.listed = [ClosedSchedule(workflow_id=workflow(desk), closed_at=at(1)) for desk in (ended, fine)]
    clock.now = at(5)
    await one.sweep()
    assert runtime(catalog, ended.key)[0] == "review"
    assert runtime(catalog, fine.key) == ("active", None)
    before = temporal.described[workflow(fine)]
    await one.sweep()
    assert temporal.described[workflow(fine)] == before, "what was told once is told"


async def test_one_that_is_listed_is_looked_at_later_where_the_catalog_was_lost(catalog, desks, few, monkeypatch):
    clock = Clock()
    one, temporal = await established(catalog, desks, clock)
    temporal.found[workflow(desks[6])] = Found.TERMINATED
    temporal.listed = [ClosedSchedule(workflow_id=workflow(desks[6]), closed_at=at(1))]
    really, calls = module.watching.current, []

    def fails_once(*given):
        calls.append(given)
        if len(calls) == 1:
            raise Unavailable("catalog_unavailable", "The catalog does not answer.")
        return really(*given)

    monkeypatch.setattr(module.watching, "current", fails_once)
    for lost in (True, False):
        clock.now += seconds(5)
        await one.sweep()
        assert (runtime(catalog, desks[6].key)[0] == "review") is not lost


@pytest.mark.parametrize("ended", range(7))
async def test_one_that_the_list_does_not_name_is_found_when_its_turn_comes(catalog, desks, few, ended):
    clock = Clock()
    one, temporal = await established(catalog, desks, clock)
    temporal.found[workflow(desks[ended])] = Found.TERMINATED
    before = temporal.described.total()
    for _ in range(4):
        clock.now += seconds(5)
        await one.sweep()
    assert temporal.described.total() - before == 7
    await one.tick()
    assert [runtime(catalog, desk.key)[0] == "review" for desk in desks] == [place == ended for place in range(7)]


async def test_when_each_was_looked_at_is_told_at_the_end_of_a_round_by_its_beginning(catalog, desks, few):
    clock = Clock()
    one, _ = await established(catalog, desks, clock)
    told = []
    for number in range(8):
        clock.now = at(5 * number)
        await one.sweep()
        told.append(swept_at(catalog))
    assert told == [None] * 3 + [at(0)] * 4 + [at(20)]


async def test_a_round_in_which_a_page_was_lost_is_none(catalog, desks, few, monkeypatch):
    clock = Clock()
    one, _ = await established(catalog, desks, clock)
    really, told = one.punctuality.overdue, []

    async def fails_once(live, *, now):
        if number == 2:
            raise RuntimeError("lost")
        return await really(live, now=now)

    monkeypatch.setattr(module.Punctuality, "overdue", lambda _self, live, *, now: fails_once(live, now=now))
    for number in range(8):
        clock.now = at(5 * number)
        await one.sweep()
        told.append(swept_at(catalog))
    assert told == [None] * 7 + [at(20)]


async def test_a_list_that_does_not_answer_hides_nothing_else(catalog, desks, few):
    clock = Clock()
    one, temporal = await established(catalog, desks, clock)

    async def fails(*_, **__):
        raise RPCError("No visibility.", RPCStatusCode.INTERNAL, b"")

    temporal.closed_schedules = fails
    for _ in range(4):
        await one.sweep()
    assert swept_at(catalog) == clock.now


async def test_all_are_looked_at_once_and_again_after_the_server_was_lost(catalog, desks, few, monkeypatch):
    monkeypatch.setattr(module, "CONFIRM_PAGE", 3)
    clock = Clock()
    one, temporal = await established(catalog, desks, clock)
    looked = []
    for lost in (False, False, True, False):
        before = temporal.described.total()
        if lost:
            temporal.broken[workflow(desks[0])] = RPCError("Gone.", RPCStatusCode.UNAVAILABLE, b"")
            while runtime(catalog, desks[0].key)[0] != "error":
                await one.sweep()
            before = temporal.described.total()
            temporal.broken.clear()
        await one.confirm()
        looked.append(temporal.described.total() - before)
    assert looked == [7, 0, 7, 0]
    assert runtime(catalog, desks[0].key) == ("active", None)


async def test_a_server_that_stays_lost_is_asked_for_a_part_of_them_only(catalog, desks, monkeypatch):
    monkeypatch.setattr(module, "CONFIRM_PAGE", 3)
    one, temporal = await established(catalog, desks, Clock())
    for desk in desks:
        temporal.broken[workflow(desk)] = RPCError("Gone.", RPCStatusCode.UNAVAILABLE, b"")
    before = temporal.described.total()
    await one.confirm()
    assert temporal.described.total() - before == 3
    assert swept_at(catalog) is None


@pytest.mark.parametrize("lost", ["page", "done"])
async def test_all_are_looked_at_again_where_the_catalog_was_lost_meanwhile(catalog, desks, monkeypatch, lost):
    """It is as likely as not to be busy when a controller starts."""
    one, temporal = await established(catalog, desks, Clock())
    really, calls = getattr(module.Rotation, lost), []

    async def fails_once(self, **given):
        calls.append(given)
        if len(calls) == 1:
            raise Unavailable("catalog_unavailable", "The catalog does not answer.")
        return await really(self, **given)

    monkeypatch.setattr(module.Rotation, lost, fails_once)
    with pytest.raises(Unavailable):
        await one.confirm()
    before = temporal.described.total()
    await one.confirm()
    assert temporal.described.total() - before == 7


async def test_where_more_are_listed_than_are_read_at_once_all_are_looked_at(catalog, desks, few, monkeypatch):
    monkeypatch.setattr(closures, "LISTED_AT_ONCE", 2)
    clock = Clock()
    one, temporal = await established(catalog, desks, clock)
    await one.confirm()
    for desk in desks[2:]:
        temporal.found[workflow(desk)] = Found.TERMINATED
    temporal.listed = [ClosedSchedule(workflow_id=workflow(desk), closed_at=NOON) for desk in desks[2:]]
    await one.sweep()
    await one.confirm()
    await one.tick()
    assert [runtime(catalog, desk.key)[0] for desk in desks] == ["active"] * 2 + ["review"] * 5


async def test_one_that_was_enabled_under_what_a_reset_has_ended_is_found_when_its_turn_comes(catalog, desks, few):
    """It was enabled while the reset went through the others, by a transaction that had read what was before."""
    clock = Clock()
    one, _ = await established(catalog, desks, clock)
    desks[0].write(administration.reset, OPERATOR, SCOPE, CHANGE, new_key(), now=NOON)
    await one.sweep()
    desks[3].now = NOON
    desks[3].enable()
    desks[3].write(
        lambda connection: connection.execute(
            update(activations).where(activations.c.ended_at.is_(None)).values(reset_generation=1)
        )
    )
    for _ in range(4):
        await one.sweep()
    assert not desks[3].activation().is_live


async def test_the_list_is_asked_for_what_closed_since_the_last_time_and_somewhat_before():
    asked = []

    class Lists(Known):
        async def closed_schedules(self, _scope, *, since, limit):
            asked.append(since)
            return [ClosedSchedule(workflow_id="schedule/acme/test/one/1", closed_at=at(90))]

    clock = Clock()
    looks = Closures(Lists(), SCOPE, clock)
    news = []
    for _ in range(2):
        found, more = await looks.look()
        news.append(([each.schedule_id for each in found], more))
        clock.now += timedelta(minutes=5)
    assert asked == [NOON - LAG, at(90) - LAG]
    assert news == [(["one"], False), ([], False)]


def swept_at(catalog):
    with catalog.reading() as connection:
        return connection.execute(select(sweeps.c.swept_at)).scalar_one_or_none()
