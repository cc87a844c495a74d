"""A success that is overdue is found when it is, by looking only at the schedules of which it may be."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import insert, select

from horarium.catalog import expected
from horarium.catalog.environments import ensure_environment
from horarium.catalog.notification_tables import expected as table
from horarium.catalog.schedules import require_schedule
from horarium.catalog.tables import schedules
from horarium.control.expectations import (
    LIMIT_UNKNOWN,
    LOOK_AGAIN,
    OVERDUE_AGAIN,
    Due,
    look_where_due,
    overdue_page,
)
from horarium.schedule.identity import Scope
from horarium.schedule.ledger import Disposition
from tests.catalog.test_query_plans import work
from tests.control.desk import NOON, SCOPE, Desk, at, every

WINDOW = 300
LIMIT = 60
"""What the desk's agent may take."""
TICK = timedelta(seconds=5)
OTHER = Scope(org_id="acme", environment_id="other")


@pytest.fixture
def desk(own_desk: Desk) -> Desk:
    return own_desk


def look(desk: Desk, *, now: datetime, limit: int = 500, scope: Scope = SCOPE) -> Due:
    """What a notifier does: look, and write down when to look again."""
    found: Due = desk.read(look_where_due, scope, limit=limit, now=now)
    desk.write(expected.look_again, found.following)
    desk.write(expected.expect_no_more, found.ended)
    return found


def found_at(desk: Desk, *, since: datetime, until: datetime) -> tuple[datetime | None, datetime | None]:
    """When an overdue success is found by looks every few seconds, and when by looking at everything at each of them."""
    now, sooner, by_all = since, None, None
    while now < until and (sooner is None or by_all is None):
        if sooner is None and look(desk, now=now).overdue:
            sooner = now
        if by_all is None and desk.read(overdue_page, after=0, now=now).overdue:
            by_all = now
        now += TICK
    return sooner, by_all


def looks(desk: Desk) -> dict[int, datetime]:
    return desk.read(lambda c: {row.schedule: row.look_at for row in c.execute(select(table))})


def succeeds(desk: Desk) -> Any:
    loop = desk.enabled(every(60, window=WINDOW))
    loop.step_at(57)
    loop.has_run(60, ends=65)
    return loop


def never_looked_at(desk: Desk) -> None:
    desk.enabled(every(60, window=WINDOW))


def succeeded_once(desk: Desk) -> None:
    succeeds(desk)


def fails(desk: Desk) -> None:
    loop = succeeds(desk)
    for offset in (120, 180):
        loop.step_at(offset - 3)
        loop.has_run(offset, ends=offset + 5, disposition=Disposition.FAILED)


def hangs(desk: Desk) -> None:
    loop = succeeds(desk)
    loop.step_at(117)
    desk.now = at(120)
    desk.admit(loop.run(120))
    desk.begin(loop.run(120))


@pytest.mark.parametrize(
    ("lives", "expected_after"),
    [
        (never_looked_at, 60 + WINDOW + LIMIT_UNKNOWN.total_seconds()),
        (succeeded_once, 120 + WINDOW + LIMIT),
        (fails, 120 + WINDOW + LIMIT),
        (hangs, 120 + WINDOW + LIMIT),
    ],
)
def test_it_is_found_when_looking_at_everything_would_find_it(
    lives: Callable[[Desk], None], expected_after: float, desk: Desk
) -> None:
    lives(desk)
    sooner, by_all = found_at(desk, since=desk.now, until=NOON + timedelta(hours=3))
    assert sooner == by_all
    assert sooner is not None
    assert timedelta(0) < sooner - at(expected_after) <= TICK


def test_a_silence_that_goes_on_is_looked_at_each_minute_and_after_it_the_next_is_found(desk: Desk) -> None:
    loop = succeeds(desk)
    silent_at = at(120 + WINDOW + LIMIT + 1)
    look(desk, now=at(70))
    assert look(desk, now=silent_at).overdue
    assert look(desk, now=silent_at + OVERDUE_AGAIN - TICK).count == 0
    assert look(desk, now=silent_at + OVERDUE_AGAIN).overdue
    loop.step_at(597)
    (caught_up,) = (each for each in desk.entries() if each.disposition is Disposition.STAGED)
    loop.has_run(round((caught_up.first_at - NOON).total_seconds()), starts=600, ends=605)
    sooner, by_all = found_at(desk, since=at(610), until=at(3_600))
    assert sooner is not None
    assert by_all is not None
    assert by_all > at(605) + timedelta(seconds=WINDOW + LIMIT)
    assert timedelta(0) <= sooner - by_all <= OVERDUE_AGAIN


def test_a_schedule_that_is_paused_is_looked_at_no_more_and_one_that_is_enabled_again_is(desk: Desk) -> None:
    desk.enabled(every(60, window=WINDOW))
    row = desk.read(require_schedule, desk.key).row
    assert looks(desk) == {row: NOON}
    desk.pause()
    assert look(desk, now=at(3_600)).ended == {row}
    assert looks(desk) == {}
    desk.now = at(3_600)
    desk.enable()
    assert looks(desk) == {row: at(3_600)}
    # Whoever read it before and found it not live takes nothing away.
    desk.write(expected.expect_no_more, [row])
    assert looks(desk) == {row: at(3_600)}


def test_what_was_enabled_since_it_was_read_is_looked_at_as_it_is_now(desk: Desk) -> None:
    desk.enabled(every(60, window=WINDOW))
    found = desk.read(look_where_due, SCOPE, now=at(10))
    desk.pause()
    desk.now = at(20)
    desk.enable()
    desk.write(expected.look_again, found.following)
    assert set(looks(desk).values()) == {at(20)}


def test_it_is_looked_at_again_within_ten_minutes_since_a_run_may_take_less_time_than_before(desk: Desk) -> None:
    desk.enabled(every(86_400 * 3))
    look(desk, now=at(1))
    assert set(looks(desk).values()) == {at(1) + LOOK_AGAIN}


def test_what_was_put_off_by_a_clock_that_was_ahead_is_looked_at_all_the_same(desk: Desk) -> None:
    desk.enabled(every(60, window=WINDOW))
    look(desk, now=NOON + timedelta(days=30))
    sooner, by_all = found_at(desk, since=desk.now, until=NOON + timedelta(hours=3))
    assert sooner == by_all is not None


def test_more_than_a_page_is_looked_at_page_after_page(desk: Desk) -> None:
    for each in [desk, *(Desk(desk.catalog) for _ in range(4))]:
        each.enabled(every(60, window=WINDOW))
    later = at(7_200)
    found = [look(desk, now=later, limit=2) for _ in range(4)]
    assert [each.count for each in found] == [2, 2, 1, 0]
    assert len({each.schedule for page in found for each in page.overdue}) == 5


def test_each_environment_is_looked_at_by_its_own_controller(desk: Desk) -> None:
    desk.enabled(every(60, window=WINDOW))
    desk.write(lambda c: ensure_environment(c, OTHER, mode="simulation", runtime_profile="embedded"))
    assert look(desk, now=at(7_200), scope=OTHER).count == 0
    assert look(desk, now=at(7_200)).count == 1


def test_a_thousand_schedules_that_succeed_in_time_cost_nothing_until_they_may_be_overdue(desk: Desk) -> None:
    if desk.catalog.engine.dialect.name != "sqlite":
        pytest.skip("SQLite counts its operations; test_figures holds PostgreSQL to its plans")
    succeeds(desk)
    look(desk, now=at(70))
    row = desk.read(require_schedule, desk.key).row
    statements, operations = work(desk.catalog, lambda: look(desk, now=at(80)))

    def crowd(connection: Any) -> None:
        kept = connection.execute(select(table).where(table.c.schedule == row)).mappings().one()
        like = dict(connection.execute(select(schedules).where(schedules.c.id == row)).mappings().one())
        for number in range(1_000, 2_000):
            connection.execute(insert(schedules), {**like, "id": number, "schedule_id": f"crowd-{number}"})
            connection.execute(insert(table), {**kept, "schedule": number})

    desk.write(crowd)
    again, more = work(desk.catalog, lambda: look(desk, now=at(80)))
    assert again == statements
    assert more <= operations + 3
