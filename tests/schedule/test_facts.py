"""Stretches tell every due instant once, and spans are counted, not walked."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from horarium.calendar import Calendar, parse_calendar
from horarium.schedule.facts import Hold, Stretch, instants_after, span_between, stretches
from horarium.schedule.policy import Overlap, Policy
from tests.control.desk import at, configuration, offsets, seconds

MICRO = timedelta(microseconds=1)
# Whole seconds meet due instants; a microsecond beside one is where an instant is lost or told twice.
MOMENTS = st.builds(
    lambda second, beside: at(second) + beside * MICRO, st.integers(0, 40), st.sampled_from([-1, 0, 0, 0, 1])
)


def calendar(*rules: int) -> Calendar:
    intervals = [{"every_seconds": every, "offset_seconds": 0} for every in rules]
    return parse_calendar(configuration(intervals, "skip")["calendar"])


def instants(timing: Calendar, stretch: Stretch) -> Iterator[datetime]:
    yield from stretch.head
    if stretch.rest is not None:
        found = list(timing.between(stretch.rest.first, stretch.rest.last))
        assert len(found) == stretch.rest.count
        assert (found[0], found[-1]) == (stretch.rest.first, stretch.rest.last)
        yield from found


@given(
    st.sets(st.integers(1, 9), min_size=1, max_size=2),
    st.sampled_from(list(Overlap)),
    st.integers(1, 3),
    MOMENTS,
    MOMENTS,
    st.none() | MOMENTS,
    st.lists(st.tuples(MOMENTS, st.none() | MOMENTS), max_size=4),
)
def test_each_due_instant_is_told_once_and_nothing_happens_within_a_stretch(
    rules: set[int],
    overlap: Overlap,
    runs: int,
    mark: datetime,
    now: datetime,
    attended_until: datetime | None,
    claims: list[tuple[datetime, datetime | None]],
) -> None:
    timing = calendar(*sorted(rules))
    policy = Policy(overlap=overlap, catchup_window=seconds(10), pause_on_failure=False, max_concurrent_runs=runs)
    holds = [Hold(since=since, until=until) for since, until in claims]
    told, told_through = stretches(
        timing, policy, holds, accounted_through=mark, attended_until=attended_until, now=now
    )
    assert told_through == now
    due = list(timing.between(mark + MICRO, now)) if now > mark else []
    assert [instant for stretch in told for instant in instants(timing, stretch)] == due
    assert all(earlier.since < later.since for earlier, later in pairwise(told))
    for stretch in told:
        for instant in instants(timing, stretch):
            assert instant >= stretch.since
            for hold in holds:
                assert hold.covers(instant) == hold.covers(max(stretch.since, mark + MICRO))
            assert stretch.attended == (attended_until is not None and instant < attended_until)
        late = {now - instant > policy.catchup_window for instant in instants(timing, stretch)}
        assert len(late) <= 1


@given(MOMENTS, MOMENTS, st.sets(st.integers(1, 9), min_size=1, max_size=2))
def test_a_span_has_the_first_the_last_and_the_count(after: datetime, until: datetime, rules: set[int]) -> None:
    timing = calendar(*sorted(rules))
    due = list(timing.between(after + MICRO, until)) if until > after else []
    span = span_between(timing, after, until)
    if not due:
        assert span is None
    else:
        assert span is not None
        assert (span.first, span.last, span.count) == (due[0], due[-1], len(due))


def test_the_last_instant_of_a_sparse_span_is_found_without_walking() -> None:
    """29 February at noon, over two centuries: 48 leap years, since 2100 and 2200 are none."""
    document = configuration([], "skip")["calendar"] | {
        "calendars": [
            {
                name: [{"start": value, "end": value, "step": 1}]
                for name, value in {"second": 0, "minute": 0, "hour": 12, "day_of_month": 29, "month": 2}.items()
            }
            | {"day_of_week": [{"start": 0, "end": 6, "step": 1}]}
        ],
        "end_at": "2300-01-01T00:00:00Z",
    }
    span = span_between(parse_calendar(document), at(0), at(200 * 366 * 86_400))
    assert span is not None
    assert (span.first.year, span.last.year, span.count) == (2028, 2224, 48)


def test_instants_after_are_limited_by_number_and_by_time() -> None:
    timing = calendar(5)
    assert offsets(instants_after(timing, at(0), until=at(100), limit=3)) == [5, 10, 15]
    assert offsets(instants_after(timing, at(0), until=at(10), limit=9)) == [5, 10]
    assert instants_after(timing, at(0), until=at(100), limit=0) == ()
