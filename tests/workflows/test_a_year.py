"""A year of a weekday schedule, through both changes of the clock."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from horarium.control import profiles
from horarium.control.principals import OPERATOR_SCOPE, WRITE_SCOPE, Principal, PrincipalKind
from horarium.schedule.identity import ActivationKey, schedule_key
from horarium.schedule.ledger import Disposition
from tests.control.operators import Operator
from tests.workflows.documents import weekdays
from tests.workflows.house import SCOPE, workers_beat

ZURICH = ZoneInfo("Europe/Zurich")
ADA = Principal(
    name="ada", kind=PrincipalKind.HUMAN, org_id=SCOPE.org_id, scopes=frozenset({WRITE_SCOPE, OPERATOR_SCOPE})
)
CRON = {
    "minute": "30",
    "hour": "2",
    "day_of_month": "*",
    "month": "*",
    "day_of_week": "*",
    "timezone": "Europe/Zurich",
}
RUN = {
    "agent_version": "worked@1",
    "input": "letters",
    "output_target": "reports",
    "grants": [],
    "budget_id": None,
    "usage_class": "test_simulation",
}


async def test_a_weekday_schedule_runs_once_on_every_weekday_of_a_year_at_its_wall_time(skipping):
    async with skipping() as house:
        key = await house.published(weekdays(7, 30, "Europe/Zurich"))
        changed = await house.enabled(key)
        since = changed.activation.activated_at

        await house.advance(timedelta(days=366))

        until = await house.now()
        days = [since.date() + timedelta(days=count) for count in range(368)]
        wanted = [datetime.combine(day, time(7, 30), ZURICH).astimezone(UTC) for day in days if day.isoweekday() < 6]
        wanted = [instant for instant in wanted if since < instant <= until]
        assert len(wanted) in {261, 262}
        entries = house.entries(key)
        assert [entry.first_at for entry in entries] == wanted
        assert {(entry.count, entry.disposition) for entry in entries} == {(1, Disposition.SUCCEEDED)}
        assert house.begun == wanted
        assert {instant.hour for instant in wanted} == {5, 6}, "both of the year's offsets were met"
        calendar = changed.version.configuration.calendar
        assert wanted == list(calendar.between(since, until))


async def test_a_profile_runs_once_on_every_day_of_a_year_at_its_wall_time_as_the_system(skipping):
    """At half past two, which one day of the year does not have and another has twice."""
    async with skipping() as house:
        Operator(house.catalog, SCOPE).declare("binding", "cron:Worked/nightly", run=RUN)
        since = await house.now()
        await house.catalog.write(workers_beat, at=since)
        receipt = await house.catalog.write(
            profiles.save,
            ADA,
            SCOPE,
            "Worked",
            "nightly",
            {"config": {"cron": CRON}, "tenant_id": "acme-support"},
            "key",
            content=house.content,
            now=since,
        )
        key = schedule_key(SCOPE, receipt.document["schedule_id"])
        assert await house.temporal.start_schedule(ActivationKey(schedule=key, generation=1))

        await house.advance(timedelta(days=366))

        until = await house.now()
        days = [since.date() + timedelta(days=count) for count in range(-1, 368)]
        # The standard library takes a time in the gap by the offset before it, and a repeated one for the first.
        told = {datetime.combine(day, time(2, 30), ZURICH).astimezone(UTC) for day in days}
        wanted = sorted(_after_a_gap(instant) for instant in told if since < _after_a_gap(instant) <= until)
        assert len(wanted) in {365, 366}
        entries = house.entries(key)
        assert [entry.first_at for entry in entries] == wanted
        assert {(entry.count, entry.disposition) for entry in entries} == {(1, Disposition.SUCCEEDED)}
        assert house.begun == wanted
        with house.catalog.reading() as connection:
            thread = profiles.thread(connection, ADA, SCOPE, "Worked", "nightly", after=0, limit=1_000)
        assert (thread["members"], thread["tenant_id"]) == ([], "acme-support")
        started = [each for each in thread["events"] if each["kind"] == "run_started"]
        assert len(thread["events"]) == 2 * len(wanted)
        assert {each["data"]["by"] for each in started} == {None}
        assert [datetime.fromisoformat(each["data"]["nominal_time"]) for each in started] == wanted


def _after_a_gap(instant: datetime) -> datetime:
    """The first moment after the gap, for a time that fell into one: 02:30 runs at 03:00."""
    local = instant.astimezone(ZURICH)
    return instant - timedelta(minutes=30) if local.hour == 3 else instant
