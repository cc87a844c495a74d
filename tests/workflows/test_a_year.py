"""A year of a weekday schedule, through both changes of the clock."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from horarium.schedule.ledger import Disposition
from tests.workflows.documents import weekdays

ZURICH = ZoneInfo("Europe/Zurich")


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
