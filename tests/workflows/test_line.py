"""Runs that are due in the same second are staged one after the other, and not all by the same lead."""

from datetime import UTC, datetime, timedelta

from activities.line import LONGEST, Line
from horarium.schedule.identity import ActivationKey, ScheduleKey

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
NOTHING = timedelta(0)


def schedule(number: int) -> ActivationKey:
    key = ScheduleKey(org_id="acme", environment_id="test", schedule_id=f"schedule-{number}")
    return ActivationKey(schedule=key, generation=1)


def test_one_that_is_alone_keeps_its_own_lead():
    line = Line()
    assert line.extra_of(schedule(1)) == NOTHING
    assert line.stand(schedule(1), NOON) == NOTHING
    assert line.stand(schedule(2), NOON + SECOND) == NOTHING


def test_each_of_a_herd_is_staged_a_little_before_the_one_behind_it():
    line = Line(per_second=50)
    extras = [line.stand(schedule(number), NOON) for number in range(300)]
    assert extras == [timedelta(seconds=number / 50) for number in range(300)]


def test_no_lead_grows_beyond_the_longest_and_those_too_many_share_the_time():
    line = Line(per_second=10, longest=2 * SECOND)
    extras = [line.stand(schedule(number), NOON) for number in range(210)]
    assert max(extras) == 2 * SECOND
    assert {extras.count(each) for each in set(extras)} == {10}
    assert max(Line().stand(schedule(number), NOON) for number in range(3)) <= LONGEST


def test_one_that_is_due_again_soon_is_staged_no_earlier_than_is_of_use():
    line = Line(per_second=1)
    for number, (at_most, extra) in enumerate([(None, 0), (5, 1), (1.5, 1.5), (-3, 0), (None, 4)]):
        bound = None if at_most is None else at_most * SECOND
        assert line.stand(schedule(number), NOON, at_most=bound) == line.extra_of(schedule(number)) == extra * SECOND


def test_a_schedule_is_told_the_same_of_the_same_instant():
    """It wakes by what it was told, and has to find its instant within its lead then."""
    line = Line()
    told = [line.stand(schedule(number), NOON) for number in range(10)]
    for number in (3, 9, 0):
        assert line.stand(schedule(number), NOON) == line.extra_of(schedule(number)) == told[number]


def test_who_moves_on_to_another_instant_leaves_its_place():
    line = Line(per_second=1)
    for number in range(3):
        line.stand(schedule(number), NOON)
    for number in range(3):
        assert line.stand(schedule(number), NOON + SECOND) == number * SECOND
    assert line.stand(schedule(7), NOON) == NOTHING


def test_no_more_are_remembered_than_was_said():
    line = Line(per_second=1, remembers=2)
    for number in range(100):
        line.stand(schedule(number), NOON + number * SECOND)
    assert len(line._places) == len(line._standing) == 2
    assert line.extra_of(schedule(0)) == NOTHING
