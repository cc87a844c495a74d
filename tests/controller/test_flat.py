"""The steady load of a controller is flat: a tick and a sweep do as much for two thousand live activations as for few."""

from dataclasses import dataclass

from sqlalchemy import insert, select

from horarium.catalog import Catalog
from horarium.catalog.schedules import require_schedule
from horarium.catalog.tables import activations, runtime, schedules, versions
from horarium.schedule.identity import ActivationKey, ScheduleKey
from starter.controller import Controller
from starter.temporal import Found
from tests.control.desk import SCOPE, Desk, every, seconds
from tests.controller.known import Clock, Known, controller
from tests.controller.test_sweeps import statements

FEW, MANY = 250, 2_000
"""Live activations: already as many as a sweep looks at, and far more."""


@dataclass(frozen=True)
class Cost:
    statements: list[str]
    described: int


async def cost(catalog: Catalog, temporal: Known, act) -> Cost:
    """What one tick or sweep asks of the catalog, and of how many workflows it asks Temporal."""
    before = temporal.described.total()
    made = await statements(catalog, act)
    return Cost(made, temporal.described.total() - before)


async def test_a_tick_and_a_sweep_do_no_more_for_two_thousand_schedules_than_for_a_few(catalog):
    desk, temporal, clock = Desk(catalog), Known(), Clock()
    desk.enabled(every(86_400))
    one = controller(catalog, temporal, clock)
    costs = []
    there = 1
    for count in (FEW, MANY):
        crowd(desk, temporal, there, count)
        there = count
        await settled(one)
        ticked = [await cost(catalog, temporal, one.tick) for _ in range(2)]
        swept = []
        for _ in range(4):
            clock.now += seconds(5)
            swept.append(await cost(catalog, temporal, one.sweep))
        costs.append((ticked, swept))
    few, many = ([[(len(each.statements), each.described) for each in kind] for kind in costs[n]] for n in (0, 1))
    assert max(many[0]) == max(few[0])
    assert max(many[1]) <= max(few[1])
    assert max(described for _, described in many[1]) <= FEW


async def settled(one: Controller) -> None:
    """Everything that is done once is done."""
    for _ in range(2):
        await one.tick()
        await one.sweep()


def crowd(desk: Desk, temporal: Known, first: int, count: int) -> None:
    """Schedules like that of the desk, so many with it: live, observed as active, and their workflows run."""

    def write(connection) -> None:
        row = require_schedule(connection, desk.key).row
        like = {
            table: dict(connection.execute(select(table).where(table.c[column] == row)).mappings().one())
            for table, column in ((schedules, "id"), (activations, "schedule"), (versions, "schedule"))
        }
        rows = [(1_000_000 + number, f"00000000-0000-0000-0009-{number:012}") for number in range(first, count)]
        connection.execute(
            insert(schedules),
            [{**like[schedules], "id": row, "schedule_id": name, "unobserved": False} for row, name in rows],
        )
        connection.execute(insert(activations), [{**like[activations], "id": row, "schedule": row} for row, _ in rows])
        connection.execute(
            insert(versions),
            [{**like[versions], "id": row, "schedule": row, "resource_id": name} for row, name in rows],
        )
        connection.execute(
            insert(runtime),
            [
                {"schedule": row, "generation": 1, "state": "active", "reason": None, "observed_at": desk.now}
                for row, _ in rows
            ],
        )
        for _, name in rows:
            key = ActivationKey(
                schedule=ScheduleKey(org_id=SCOPE.org_id, environment_id=SCOPE.environment_id, schedule_id=name),
                generation=1,
            )
            temporal.found[key.workflow_id] = Found.RUNNING

    desk.write(write)
