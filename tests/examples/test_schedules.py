"""The example schedules are valid, and due when their comments say."""

from datetime import UTC, datetime
from pathlib import Path

import examples
from horarium.schedule.configuration import UsageClass, parse_configuration
from horarium.schedule.policy import Overlap
from starter.documents import read_document

EXAMPLES = Path(examples.__file__).parent


def test_the_schedule_of_the_demo_is_due_every_five_seconds_and_its_weekday_instant_is_one_of_them():
    configuration = parse_configuration(read_document(EXAMPLES / "ingestion/schedule.yaml"))
    day = (datetime(2026, 11, 30, tzinfo=UTC), datetime(2026, 11, 30, 23, 59, 59, tzinfo=UTC))
    assert configuration.calendar.count(*day) == 17_280
    assert configuration.calendar.selects(datetime(2026, 11, 30, 6, 30, tzinfo=UTC))
    assert configuration.policy.overlap is Overlap.SKIP
    assert configuration.policy.catchup_window.total_seconds() == 60
    assert not configuration.policy.pause_on_failure
    assert configuration.run.agent_version == "ingestion-check@1"
    assert configuration.run.usage_class is UsageClass.TEST_SIMULATION


def test_the_weekday_review_follows_the_wall_clock_of_zurich_into_summer():
    configuration = parse_configuration(read_document(EXAMPLES / "weekday-review.yaml"))
    due = configuration.calendar.between(datetime(2027, 3, 25, tzinfo=UTC), datetime(2027, 3, 30, tzinfo=UTC))
    assert [instant.isoformat() for instant in due] == [
        "2027-03-25T06:30:00+00:00",
        "2027-03-26T06:30:00+00:00",
        "2027-03-29T05:30:00+00:00",
    ]
    assert configuration.policy.pause_on_failure
