"""A year of scheduler v0's crons (seed 002), through both changes of the clock, with the real workflows."""

from datetime import UTC, datetime, time, timedelta
from typing import Any
from uuid import uuid4
from zoneinfo import ZoneInfo

from horarium.control import v0
from horarium.control.audit import audit
from horarium.control.principals import local_principal
from horarium.schedule.identity import ActivationKey, ScheduleKey, schedule_key
from horarium.schedule.ledger import Disposition
from tests.control.operators import Operator
from tests.schedule.test_v0 import CRON
from tests.workflows.documents import every
from tests.workflows.house import SCOPE, House, workers_beat

NEW_YORK = ZoneInfo("America/New_York")
DAY = timedelta(days=1)


async def created(house: House, spec: dict[str, Any]) -> ActivationKey:
    """A schedule of the contract with the example's target, enabled and started."""
    Operator(house.catalog, SCOPE).declare("binding", "v0:ws-001/opencode", run=every(1)["run"])
    at = await house.now()
    await house.catalog.write(workers_beat, at=at)
    who, asked = local_principal("ada", SCOPE), {**CRON, "spec": spec}
    receipt = await house.catalog.write(v0.create, who, SCOPE, asked, str(uuid4()), content=house.content, now=at)
    key = ActivationKey(schedule=schedule_key(SCOPE, receipt.document["schedule_id"]), generation=1)
    assert await house.temporal.start_schedule(key)
    return key


async def proven(house: House, key: ScheduleKey, wanted: list[datetime]) -> None:
    """Each instant ran once and on time, and the contract's events say so."""
    entries = house.entries(key)
    assert [entry.first_at for entry in entries] == wanted
    assert {(entry.count, entry.disposition) for entry in entries} == {(1, Disposition.SUCCEEDED)}
    assert house.begun == wanted
    with house.catalog.reading() as connection:
        assert audit(connection, key, now=await house.now()).clean
        told = v0.events(connection, local_principal("ada", SCOPE), SCOPE, key.schedule_id, limit=1_000)
    kinds = [each["kind"] for each in told if each["kind"].isupper()]
    assert kinds == ["SCHEDULE_CREATED", *["SCHEDULE_TRIGGERED"] * len(wanted)]


async def test_a_daily_cron_at_half_past_two_in_new_york_runs_once_on_every_day_of_a_year(skipping):
    """In March there is no half past two on one day, and it runs at three; in November the hour before it comes twice."""
    async with skipping() as house:
        activation = await created(house, {"expr": "30 2 * * *", "timezone": "America/New_York"})
        since = house.activation(activation).activated_at

        await house.advance(366 * DAY)

        until = await house.now()
        days = [since.astimezone(NEW_YORK).date() + count * DAY for count in range(368)]
        wanted = [at for day in days if since < (at := half_past_two(day)) <= until]
        assert len(wanted) in {365, 366}
        assert len({at.astimezone(NEW_YORK).date() for at in wanted}) == len(wanted), "once on each day"
        in_the_gap = [at for at in wanted if at.astimezone(NEW_YORK).hour == 3]
        assert [at.astimezone(NEW_YORK).minute for at in in_the_gap] == [0], "the first instant after the gap"
        assert {at.hour for at in wanted} == {6, 7}, "both of the year's offsets were met"
        await proven(house, activation.schedule, wanted)


def half_past_two(day: Any) -> datetime:
    """That wall time in New York, or the end of the gap that swallows it: reckoned here from the zone alone."""
    there = datetime.combine(day, time(2, 30), NEW_YORK)
    instant = there.astimezone(UTC)
    if instant.astimezone(NEW_YORK).time() == time(2, 30):
        return instant
    return datetime.combine(day, time(3), NEW_YORK).astimezone(UTC)


async def test_the_quarters_of_the_contracts_own_cron_follow_the_wall_clock_through_both_changes(skipping):
    """A day and a half around each change: the repeated hour has its four quarters twice, and the missing one has none."""
    async with skipping() as house:
        for change in changes_after(await house.now()):
            await house.advance_to(change - DAY / 2)
            house.agent.begun.clear()
            activation = await created(house, {"expr": "*/15 * * * *", "timezone": "America/New_York"})
            since = house.activation(activation).activated_at

            await house.advance_to(change + DAY / 2 + timedelta(minutes=5))

            wanted = quarters_between(since, await house.now())
            assert len(wanted) in range(95, 99)
            await proven(house, activation.schedule, wanted)
            await house.retired(activation.schedule)
            assert await house.workflow(activation).result() == "ended"


def changes_after(instant: datetime) -> list[datetime]:
    """The next two changes of New York's clock, to the hour."""
    hour = instant.replace(minute=0, second=0, microsecond=0)
    offsets = [(hour + timedelta(hours=each)) for each in range(1, 366 * 24)]
    changed = [
        at
        for at in offsets
        if at.astimezone(NEW_YORK).utcoffset() != (at - timedelta(hours=1)).astimezone(NEW_YORK).utcoffset()
    ]
    return changed[:2]


def quarters_between(since: datetime, until: datetime) -> list[datetime]:
    """What the wall clock shows as a quarter: New York's offsets are whole hours, so these are the quarters of any clock."""
    first = since.replace(minute=0, second=0, microsecond=0)
    return [at for count in range(200) if since < (at := first + count * timedelta(minutes=15)) <= until]
