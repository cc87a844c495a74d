"""The judge, by tables. Times are seconds after noon; each calendar is due at noon and every so many seconds."""

import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest

from horarium.calendar import Calendar, parse_calendar
from horarium.schedule.facts import MAX_NAMED, Facts, Hold, instants_after, stretches
from horarium.schedule.plan import Plan, plan
from horarium.schedule.policy import Overlap, Policy
from tests.control.desk import at, configuration, offsets, seconds

LEAD = seconds(4)


def calendar(every: int, *, until: float | None = None) -> Calendar:
    rules = [{"every_seconds": every, "offset_seconds": 0}]
    document = configuration(rules, "skip", end_at=None if until is None else at(until))
    return parse_calendar(document["calendar"])


def policy(overlap: str, *, window: float = 3600, runs: int = 1, pause_on_failure: bool = False) -> Policy:
    return Policy(
        overlap=Overlap(overlap),
        catchup_window=seconds(window),
        pause_on_failure=pause_on_failure,
        max_concurrent_runs=runs,
    )


def facts(
    timing: Calendar,
    rules: Policy,
    *,
    mark: float,
    now: float,
    held: int = 0,
    holds: tuple[Hold, ...] = (),
    waiting: tuple[float, ...] = (),
    attended: float | None = None,
    catchup: int = 0,
    undecided: int = 0,
    lead: timedelta = LEAD,
    awaits: bool = False,
) -> Facts:
    told, told_through = stretches(
        timing,
        rules,
        holds,
        accounted_through=at(mark),
        attended_until=None if attended is None else at(attended),
        now=at(now),
    )
    behind = max(at(mark), at(now))
    ahead = instants_after(timing, behind, until=max(behind, at(now) + lead), limit=100)
    return Facts(
        now=at(now),
        accounted_through=at(mark),
        policy=rules,
        held=held,
        holds=holds,
        waiting=len(waiting),
        waiting_head=tuple(at(instant) for instant in waiting[:100]),
        undecided=undecided,
        stretches=told,
        told_through=told_through,
        ahead=ahead,
        following=timing.after(ahead[-1] if ahead else behind),
        lead=lead,
        catchup_started=catchup,
        awaits=awaits,
    )


def told(decided: Plan) -> dict[str, Any]:
    """What a plan does, in seconds after noon; what it does nothing of is left out."""
    does: dict[str, Any] = {
        "promotes": offsets(decided.promotions),
        "starts": offsets(decided.starts),
        "waits": offsets(decided.waits),
    }
    for fate in decided.fates:
        span = (*offsets([fate.span.first, fate.span.last]), fate.span.count)
        does.setdefault(fate.reason.value, []).append(span)
    return {name: value for name, value in does.items() if value}


def open_hold(since: float, until: float | None = None) -> Hold:
    return Hold(since=at(since), until=None if until is None else at(until))


@dataclass(frozen=True)
class Case:
    name: str
    facts: Facts
    does: dict[str, Any]
    blocked: bool = False
    wake: float | None = None


CASES = [
    Case(
        "nothing is due, and the next instant is beyond the lead",
        facts(calendar(60), policy("skip"), mark=0, now=1),
        {},
        wake=56,
    ),
    Case(
        "the next instant is staged as soon as it is within the lead",
        facts(calendar(60), policy("skip"), mark=0, now=56),
        {"starts": [60]},
        wake=116,
    ),
    Case(
        "a timer that fires early stages nothing",
        facts(calendar(60), policy("skip"), mark=0, now=55.8),
        {},
        wake=56,
    ),
    Case(
        "a staged instant is not staged again before its time",
        facts(calendar(60), policy("skip"), mark=60, now=57, held=1, undecided=1),
        {},
        wake=116,
    ),
    Case(
        "skip: an instant during a run is gone, though its window is long, and the one after the run starts",
        facts(calendar(60), policy("skip", window=300), mark=0, now=121, holds=(open_hold(0, 90),)),
        {"overlap": [(60, 60, 1)], "starts": [120]},
        wake=176,
    ),
    Case(
        "skip: a slot that was freed at exactly a nominal time is free for it",
        facts(calendar(60), policy("skip"), mark=0, now=60.1, holds=(open_hold(0, 60),)),
        {"starts": [60]},
        wake=116,
    ),
    Case(
        "skip: so it is for a step at that very microsecond",
        facts(calendar(60), policy("skip"), mark=0, now=60, holds=(open_hold(0, 60),)),
        {"starts": [60]},
        wake=116,
    ),
    Case(
        "skip: a microsecond later it is not",
        facts(calendar(60), policy("skip"), mark=0, now=60.1, holds=(open_hold(0, 60.000001),)),
        {"overlap": [(60, 60, 1)]},
        wake=116,
    ),
    Case(
        "skip: while the run goes on and the next instant is near, the schedule waits for its end",
        facts(calendar(60), policy("skip"), mark=0, now=57, held=1),
        {},
        blocked=True,
    ),
    Case(
        "skip: a run that ends before the next instant frees the slot for staging it",
        facts(calendar(60), policy("skip"), mark=0, now=58, holds=(open_hold(0, 57.5),)),
        {"starts": [60]},
        wake=116,
    ),
    Case(
        "skip: a late step starts one instant, and the others overlap with it",
        facts(calendar(10), policy("skip"), mark=0, now=35),
        {"starts": [10], "overlap": [(20, 30, 2)]},
        wake=36,
    ),
    Case(
        "skip: with three slots a late step starts three",
        facts(calendar(10), policy("skip", runs=3), mark=0, now=55),
        {"starts": [10, 20, 30], "overlap": [(40, 50, 2)]},
        wake=56,
    ),
    Case(
        "skip: a run that a person triggered holds a slot",
        facts(calendar(60), policy("skip"), mark=0, now=60.5, holds=(open_hold(55),)),
        {"overlap": [(60, 60, 1)]},
        wake=116,
    ),
    Case(
        "skip: a person's run that began and ended between two instants disturbs neither",
        facts(calendar(60), policy("skip"), mark=0, now=61, holds=(open_hold(20, 50),)),
        {"starts": [60]},
        wake=116,
    ),
    Case(
        "skip: a person's run that took the slot after the instant and before the step leaves none",
        facts(calendar(60), policy("skip"), mark=0, now=60.5, holds=(open_hold(60.2),)),
        {"overlap": [(60, 60, 1)]},
        wake=116,
    ),
    Case(
        "buffer_one: the first that overlaps waits and the others are gone",
        facts(calendar(1), policy("buffer_one"), mark=0, now=5.5, held=1),
        {"waits": [1], "already_waiting": [(2, 5, 4)]},
        blocked=True,
    ),
    Case(
        "buffer_one: the earliest starts when the run ends, what is due then is gone, and the next waits",
        facts(calendar(1), policy("buffer_one"), mark=5, now=7.5, holds=(open_hold(0, 6),), waiting=(1,)),
        {"promotes": [1], "already_waiting": [(6, 6, 1)], "waits": [7]},
        blocked=True,
    ),
    Case(
        "buffer_one: a late step tells gone instants on both sides of one that waits apart",
        facts(calendar(1), policy("buffer_one"), mark=0, now=9.5, holds=(open_hold(0, 6.5),)),
        {"waits": [1, 7], "promotes": [1], "already_waiting": [(2, 6, 5), (8, 9, 2)]},
        blocked=True,
    ),
    Case(
        "buffer_all: all wait, and are promoted oldest first",
        facts(
            calendar(10),
            policy("buffer_all", runs=2),
            mark=30,
            now=45,
            holds=(open_hold(0, 41),),
            held=1,
            waiting=(20, 30),
        ),
        {"promotes": [20], "waits": [40]},
        blocked=True,
    ),
    Case(
        "buffer_all: an instant that waits does not age out, whatever the window",
        facts(
            calendar(60),
            policy("buffer_all", window=10),
            mark=540,
            now=600.5,
            holds=(open_hold(0, 600.2),),
            waiting=(60, 120),
        ),
        {"promotes": [60], "waits": [600]},
        blocked=True,
    ),
    Case(
        "buffer_all: nothing overtakes what waits",
        facts(
            calendar(60), policy("buffer_all", runs=2), mark=0, now=61, held=1, holds=(open_hold(0, 60.5),), waiting=()
        ),
        {"waits": [60], "promotes": [60]},
        wake=116,
        blocked=False,
    ),
    Case(
        "allow: all start, however many run",
        facts(calendar(10), policy("allow"), mark=0, now=35, held=0),
        {"starts": [10, 20, 30]},
        wake=36,
    ),
    Case(
        "allow: what is within the lead is staged too",
        facts(calendar(1), policy("allow"), mark=0, now=0.5),
        {"starts": [1, 2, 3, 4]},
        wake=1,
    ),
    Case(
        "catch-up: an instant exactly as old as the window is handled, one that is older is missed",
        facts(calendar(5), policy("allow", window=12), mark=30, now=62),
        {"outside_window": [(35, 45, 3)], "starts": [50, 55, 60, 65]},
        wake=66,
    ),
    Case(
        "catch-up: a microsecond more and it is missed",
        facts(calendar(5), policy("allow", window=12), mark=30, now=62.000001),
        {"outside_window": [(35, 50, 4)], "starts": [55, 60, 65]},
        wake=66,
    ),
    Case(
        "catch-up: the published outage of half a minute, with every 5 s, a window of 12 s and allow",
        # Ran at :25 and :30, away from :34 to 45:06. Noon stands for 20:44:00.
        facts(calendar(5), policy("allow", window=12), mark=30, now=66),
        {"outside_window": [(35, 50, 4)], "starts": [55, 60, 65, 70]},
        wake=71,
    ),
    Case(
        "catch-up: a host asleep from two to eight runs its three o'clock job inside a window of six hours",
        facts(calendar(3 * 3600), policy("skip", window=21_600), mark=3 * 3600 - 3_600, now=8 * 3600),
        {"starts": [3 * 3600], "overlap": [(6 * 3600, 6 * 3600, 1)]},
        wake=9 * 3600 - 4,
    ),
    Case(
        "catch-up: and misses it with a window of one hour, in sight of everyone",
        facts(calendar(3 * 3600), policy("skip", window=3_600), mark=3 * 3600 - 3_600, now=8 * 3600),
        {"outside_window": [(3 * 3600, 6 * 3600, 2)]},
        wake=9 * 3600 - 4,
    ),
    Case(
        "catch-up: a run that ended in the outage is seen at its end, and what it held back was not missed by anybody else",
        facts(calendar(10), policy("skip", window=60), mark=0, now=55, holds=(open_hold(0, 33),)),
        {"overlap": [(10, 30, 3), (50, 50, 1)], "starts": [40]},
        wake=56,
    ),
    Case(
        "attended: what a blocked schedule left for later is judged late as if it were in time",
        facts(calendar(5), policy("skip", window=10), mark=0, now=60.5, held=1, attended=60),
        {"overlap": [(5, 60, 12)]},
        wake=61,
    ),
    Case(
        "attended: beyond its promise it was away, and the window counts",
        facts(calendar(5), policy("skip", window=10), mark=0, now=100.5, held=1, attended=60),
        {"overlap": [(5, 55, 11), (95, 100, 2)], "outside_window": [(60, 90, 7)]},
        wake=101,
    ),
    Case(
        "attended: buffer_all keeps what it left for later",
        facts(calendar(20), policy("buffer_all", window=10), mark=0, now=60.5, held=1, attended=60),
        {"waits": [20, 40, 60]},
        blocked=True,
    ),
    Case(
        "attended: with a nudge lost, an instant with a free slot is missed once it is older than the window",
        facts(calendar(20), policy("skip", window=10), mark=0, now=60.5, holds=(open_hold(0, 30),), attended=60),
        {"overlap": [(20, 20, 1)], "outside_window": [(40, 40, 1)], "starts": [60]},
        wake=76,
    ),
    Case(
        "attended: with a nudge lost, the buffer is promoted at the late look",
        facts(
            calendar(20),
            policy("buffer_all", window=10),
            mark=20,
            now=60.5,
            holds=(open_hold(0, 30),),
            waiting=(20,),
            attended=60,
        ),
        {"promotes": [20], "waits": [40, 60]},
        blocked=True,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_judge(case: Case) -> None:
    decided = plan(case.facts)
    assert told(decided) == case.does
    assert decided.blocked == case.blocked
    assert decided.wake_at == (None if case.wake is None else at(case.wake))
    assert decided.base == case.facts.accounted_through
    assert decided.accounted_through >= case.facts.now
    assert not decided.more


def run_through(timing: Calendar, rules: Policy, *, mark: float, now: float, limit: int = 60) -> list[Plan]:
    """Steps after an outage, each when the one before asked for it, while no run ends."""
    plans: list[Plan] = []
    held, catchup, waiting, clock = 0, 0, 0, at(now)
    behind = at(mark)
    while len(plans) < limit:
        known = facts(
            timing,
            rules,
            mark=(behind - at(0)).total_seconds(),
            now=(clock - at(0)).total_seconds(),
            held=held,
            waiting=tuple(range(waiting)),
            catchup=catchup,
        )
        decided = plan(known)
        plans.append(decided)
        held += len(decided.starts) if rules.slots is not None else 0
        waiting += len(decided.waits)
        catchup, behind = decided.catchup_started, decided.accounted_through
        if not decided.more:
            return plans
        assert decided.wake_at is not None
        clock = decided.wake_at
    pytest.fail("the backlog never ends")


def test_a_step_starts_a_hundred_and_the_next_one_waits_ten_seconds() -> None:
    """Ten a second, without a burst of more than a hundred."""
    first = plan(facts(calendar(1), policy("allow", window=86_400), mark=0, now=3_000))
    assert offsets(first.starts) == list(range(1, 101))
    assert first.accounted_through == at(100)
    assert first.more
    assert not first.blocked
    assert first.wake_at == at(3_010)
    assert first.catchup_started == 100


def test_an_outage_starts_a_thousand_late_runs_and_drops_the_rest() -> None:
    plans = run_through(calendar(1), policy("allow", window=86_400), mark=0, now=3_000)
    late = [instant for each in plans[:10] for instant in each.starts]
    assert offsets(late) == list(range(1, 1_001))
    assert [told(each) for each in plans[9:]] == [
        {"starts": list(range(901, 1_001)), "catchup_limit": [(1_001, 3_079, 2_079)]},
        # What fell due between the two steps is late as well by now; what is at most ten seconds late, or ahead, is not.
        {"catchup_limit": [(3_080, 3_089, 10)], "starts": list(range(3_090, 3_105))},
    ]
    assert plans[-1].catchup_started == 0


def test_the_count_of_late_starts_begins_anew_with_the_next_outage() -> None:
    assert plan(facts(calendar(60), policy("allow"), mark=0, now=130, catchup=999)).catchup_started == 0


@pytest.mark.parametrize("waiting", [999, 1_000])
def test_a_full_buffer_drops_the_newest(waiting: int) -> None:
    decided = plan(facts(calendar(10), policy("buffer_all"), mark=0, now=35, held=1, waiting=tuple(range(waiting))))
    expected = {999: {"waits": [10], "buffer_full": [(20, 30, 2)]}, 1_000: {"buffer_full": [(10, 30, 3)]}}
    assert told(decided) == expected[waiting]
    assert decided.blocked


def test_a_hundred_waiting_instants_are_promoted_in_one_step_and_the_rest_in_the_next() -> None:
    waiting = tuple(range(150))
    decided = plan(facts(calendar(3_600), policy("buffer_all", runs=1_000), mark=0, now=10, waiting=waiting))
    assert offsets(decided.promotions) == list(range(100))
    assert decided.more
    assert decided.accounted_through == at(0)
    assert decided.wake_at == at(20)


@pytest.mark.parametrize("overlap", ["skip", "buffer_one", "buffer_all", "allow"])
@pytest.mark.parametrize("window", [10, 3_600, 86_400])
def test_a_day_of_outage_of_a_per_second_schedule_is_at_most_three_entries_beside_the_runs(
    overlap: str, window: int
) -> None:
    """Facts and plan of such a step take less than a second, and its ledger has no entry for each second."""
    began = time.perf_counter()
    first = plan(facts(calendar(1), policy(overlap, window=window), mark=0, now=86_400))
    assert time.perf_counter() - began < 1
    plans = [first, *run_through(calendar(1), policy(overlap, window=window), mark=0, now=86_400)[1:]]
    kinds = [fate.reason for each in plans for fate in each.fates]
    assert len(kinds) <= 3, kinds
    named = sum(len(each.starts) + len(each.waits) for each in plans)
    counted = sum(fate.span.count for each in plans for fate in each.fates)
    assert named + counted == (plans[-1].accounted_through - at(0)).total_seconds() // 1


def test_more_runs_that_ended_than_one_step_can_tell_are_told_in_several() -> None:
    """A thousand slots whose runs ended one by one in an outage: the facts stay small, and no instant is lost."""
    holds = tuple(open_hold(0, 10 + 20 * number) for number in range(1_000))
    rules = policy("buffer_all", window=86_400, runs=1_000)
    known = facts(calendar(1), rules, mark=0, now=25_000, holds=holds)
    named = [instant for stretch in known.stretches for instant in stretch.head]
    assert MAX_NAMED <= len(named) < MAX_NAMED + 1_100
    assert known.told_through < known.now
    decided = plan(known)
    assert decided.more
    assert len(decided.starts) + len(decided.promotions) <= 100
    decided_upon = len(decided.starts) + len(decided.waits) + sum(fate.span.count for fate in decided.fates)
    assert decided_upon == (decided.accounted_through - at(0)).total_seconds() // 1


class TestAnOverdueAdmission:
    """A run that was staged before an outage and is undecided after it: whether it ran at all is not known yet."""

    @pytest.mark.parametrize("overlap", ["skip", "buffer_one", "buffer_all"])
    def test_what_is_due_behind_it_is_left_until_it_is_decided(self, overlap: str) -> None:
        decided = plan(facts(calendar(60), policy(overlap), mark=60, now=300, held=1, undecided=1, awaits=True))
        assert told(decided) == {}
        assert (decided.blocked, decided.awaits, decided.wake_at) == (True, True, None)
        assert decided.accounted_through == at(60)

    def test_what_is_missed_anyhow_is_not(self) -> None:
        """So an outage is told as one, and what was left on purpose as that."""
        decided = plan(
            facts(calendar(60), policy("skip", window=100), mark=60, now=300, held=1, undecided=1, awaits=True)
        )
        assert told(decided) == {"outside_window": [(120, 180, 2)]}
        assert decided.accounted_through == at(180)
        assert decided.awaits

    def test_nothing_is_due_behind_it_so_nothing_is_left(self) -> None:
        decided = plan(facts(calendar(60), policy("skip"), mark=60, now=90, held=1, undecided=1, awaits=True))
        assert not decided.awaits
        assert decided.wake_at == at(116)

    def test_whoever_waits_longer_takes_a_slot_that_is_free_whatever_it_says(self) -> None:
        known = facts(
            calendar(60), policy("buffer_all", runs=3), mark=60, now=150, held=1, undecided=1, waiting=(0,), awaits=True
        )
        decided = plan(known)
        assert told(decided) == {"promotes": [0]}
        assert decided.awaits

    def test_once_it_was_missed_the_oldest_that_is_eligible_starts(self) -> None:
        """It held nothing, so the facts have no claim of it any more. All were left for later on purpose."""
        decided = plan(facts(calendar(60), policy("skip"), mark=60, now=300.5, attended=360))
        assert told(decided) == {"starts": [120], "overlap": [(180, 300, 3)]}

    def test_once_it_was_admitted_they_overlap_with_it(self) -> None:
        decided = plan(facts(calendar(60), policy("skip"), mark=60, now=300.5, held=1, attended=360))
        assert told(decided) == {"overlap": [(120, 300, 4)]}

    def test_the_end_of_the_calendar_waits_for_it(self) -> None:
        known = facts(calendar(60, until=150), policy("skip"), mark=60, now=300, held=1, undecided=1, awaits=True)
        assert not plan(known).exhausted


class TestExhausted:
    """A calendar whose last instant was at 60 s."""

    def at(self, mark: float, now: float, **more: Any) -> Plan:
        return plan(facts(calendar(60, until=90), policy("skip"), mark=mark, now=now, **more))

    def test_while_the_last_run_is_staged_there_is_something_left(self) -> None:
        decided = self.at(0, 57)
        assert offsets(decided.starts) == [60]
        assert not decided.exhausted
        assert decided.wake_at == at(57 + 4 + 10)

    def test_while_it_is_undecided_too(self) -> None:
        decided = self.at(60, 58, held=1, undecided=1)
        assert not decided.exhausted
        assert decided.wake_at == at(58 + 4 + 10)

    def test_once_it_is_decided_nothing_is_left_though_it_still_runs(self) -> None:
        decided = self.at(60, 71, held=1)
        assert decided.exhausted
        assert decided.wake_at is None

    def test_while_an_instant_waits_something_is_left(self) -> None:
        decided = plan(facts(calendar(60, until=90), policy("buffer_all"), mark=60, now=71, held=1, waiting=(60,)))
        assert not decided.exhausted
        assert decided.blocked

    def test_a_calendar_that_never_was_due_is_exhausted_at_once(self) -> None:
        decided = plan(facts(calendar(60, until=-3_600), policy("allow"), mark=0, now=1))
        assert decided.exhausted
        assert told(decided) == {}


def test_a_clock_that_went_back_decides_nothing_twice() -> None:
    decided = plan(facts(calendar(10), policy("allow"), mark=100, now=35))
    assert told(decided) == {}
    assert decided.accounted_through == at(100)
    assert decided.wake_at == at(106)


def test_a_slot_counts_as_taken_though_its_end_is_known_to_lie_in_the_future() -> None:
    assert not Hold(since=at(0), until=at(60)).covers(at(60))
    assert Hold(since=at(0), until=at(60)).covers(at(59.999999))
    assert Hold(since=at(0)).covers(datetime.max.replace(tzinfo=at(0).tzinfo))
    assert not Hold(since=at(0)).covers(at(-1))
