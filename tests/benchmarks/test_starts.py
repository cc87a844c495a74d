"""The benchmark of starts measures what it says: every run once, by the agent's own word, on schedules that are due then."""

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from activities.messages import RUN_WORKFLOW, SCHEDULES_QUEUE, RunScheduled
from benchmarks.due_schedules import (
    AGENT,
    answers,
    configuration,
    enable_all,
    now,
    open_entries,
    pause_all,
    stage,
)
from benchmarks.figures import Budget
from benchmarks.native_run import NATIVE_QUEUE, NATIVE_RUN
from benchmarks.native_schedules import NAME, every_second, once
from benchmarks.our_schedules import OurSchedules
from benchmarks.size import FULL, SHORT, SIZE
from benchmarks.stamping_agent import LOG, Stamping
from benchmarks.start_log import LostRuns, StartLog
from benchmarks.starts import (
    MEDIAN_BUDGETS,
    SIZES,
    Allowance,
    Load,
    Part,
    Size,
    Turn,
    chosen_size,
    herd_figures,
    lateness_figures,
    measured,
    names,
    p99,
    parts,
)
from benchmarks.stored_schedules import SCOPE, Contents, beat
from horarium.agents import AgentReport, CronStartEvent
from horarium.agents.events import RunBrief, ScheduleReference
from horarium.calendar import parse_calendar
from horarium.catalog import Catalog, presence
from horarium.catalog.environments import ensure_environment
from horarium.control import admission
from horarium.errors import Misconfigured
from horarium.schedule.identity import ActivationKey, RunKey, ScheduleKey
from tests.control.desk import FAR, NOON

OURS, NATIVE = OurSchedules.name, NAME


def run_of(number: int, nominal: datetime = NOON) -> RunKey:
    schedule = ScheduleKey(org_id="acme", environment_id="test", schedule_id=f"schedule-{number}")
    return RunKey(activation=ActivationKey(schedule=schedule, generation=1), nominal_time=nominal)


def line(run: RunKey, after: float) -> str:
    schedule, nominal = run.activation.schedule.schedule_id, run.nominal_time
    began = nominal.timestamp() + after
    return json.dumps({"schedule": schedule, "nominal": nominal.isoformat(), "began": began}) + "\n"


def test_lateness_is_from_the_nominal_second_in_the_order_of_the_runs(tmp_path):
    log = StartLog(tmp_path / "starts.jsonl")
    runs = [run_of(0), run_of(1), run_of(0, NOON + timedelta(days=1))]
    assert log.missing(runs) == 3
    log.path.write_text(line(runs[2], 0.25) + line(runs[1], 2.5) + line(run_of(7), 9))
    assert log.missing(runs) == 1
    with log.path.open("a") as file:
        file.write(line(runs[0], -0.5))
    assert log.missing(runs) == 0
    assert log.lateness(runs) == pytest.approx([-0.5, 2.5, 0.25], abs=1e-5)


def test_half_a_line_is_read_when_it_is_whole(tmp_path):
    log, whole = StartLog(tmp_path / "starts.jsonl"), line(run_of(0), 1)
    for written in (whole[:10], whole[:-1]):
        log.path.write_text(written)
        assert log.missing([run_of(0)]) == 1
    log.path.write_text(whole)
    assert log.lateness([run_of(0)]) == pytest.approx([1], abs=1e-5)


def test_there_is_no_figure_of_runs_that_were_lost_or_begun_twice(tmp_path):
    log = StartLog(tmp_path / "starts.jsonl")
    log.path.write_text(line(run_of(0), 1) + line(run_of(1), 1) + line(run_of(1), 2))
    with pytest.raises(LostRuns, match=r"schedule-2.*began 0 times"):
        log.lateness([run_of(0), run_of(2)])
    with pytest.raises(LostRuns, match=r"schedule-1.*began 2 times"):
        log.lateness([run_of(0), run_of(1)])


def test_the_agent_writes_what_the_log_reads(tmp_path, monkeypatch):
    nominal = datetime.now(UTC).replace(microsecond=0)
    log = StartLog(tmp_path / "starts.jsonl")
    monkeypatch.setenv(LOG, str(log.path))
    reference = ScheduleReference(
        org_id="acme", environment_id="test", schedule_id="schedule-3", revision=1, digest="d"
    )
    brief = RunBrief(
        run_id="r",
        schedule=reference,
        trigger="schedule",
        nominal_time=nominal,
        actual_time=nominal,
        agent_version=AGENT,
        input="in",
        output_target="out",
    )
    report = asyncio.run(Stamping().work(CronStartEvent(run=brief), None))
    assert report == AgentReport.succeeded("It began.")
    (late,) = log.lateness([run_of(3, nominal)])
    assert 0 <= late < 300


def test_a_load_is_due_so_often_in_each_of_its_seconds():
    load = Load(per_second=3, seconds=2)
    later = NOON + timedelta(seconds=1)
    assert load.due(NOON) == [(NOON,)] * 3 + [(later,)] * 3
    assert load.count == 6
    again = replace(load, again=True)
    assert again.due(NOON) == [(NOON, later)] * 3
    assert again.count == 3
    settling = replace(again, seconds=1, settling=1)
    assert settling.due(NOON) == again.due(NOON)
    assert settling.count == 3


@pytest.mark.parametrize("instant", [NOON, NOON.replace(hour=23, minute=59, second=58)])
def test_the_schedule_and_the_native_one_are_due_at_the_instant_and_a_day_later(instant):
    calendar = parse_calendar(configuration(instant)["calendar"])
    day = timedelta(days=1)
    assert list(calendar.between(instant - timedelta(hours=23), instant + day)) == [instant, instant + day]
    (spec,) = once(run_of(0).activation, (instant,)).spec.calendars
    told = [(each[0].start, each[0].end or each[0].start) for each in (spec.hour, spec.minute, spec.second)]
    assert told == [(each, each) for each in (instant.hour, instant.minute, instant.second)]


def test_a_native_schedule_starts_the_run_workflow_itself_with_the_run_as_its_input():
    action = once(run_of(0).activation, (NOON,)).action
    assert action.workflow == RUN_WORKFLOW
    assert list(action.args) == [RunScheduled(key=run_of(0))]
    assert action.task_queue == SCHEDULES_QUEUE


def test_what_is_due_every_second_is_due_in_each_from_the_first_to_the_last():
    instants = tuple(NOON + timedelta(seconds=second) for second in range(4))
    calendar = parse_calendar(configuration(*instants)["calendar"])
    assert list(calendar.between(NOON - timedelta(days=9), NOON + timedelta(days=9))) == list(instants)
    native = every_second(run_of(0).activation, instants)
    assert [each.every for each in native.spec.intervals] == [timedelta(seconds=1)]
    assert instants[0] - timedelta(seconds=1) < native.spec.start_at < instants[0]
    assert instants[-1] < native.spec.end_at < instants[-1] + timedelta(seconds=1)
    assert (native.action.workflow, native.action.task_queue) == (NATIVE_RUN, NATIVE_QUEUE)
    assert list(native.action.args) == [run_of(0).activation]


@pytest.fixture
def catalog(database, tmp_path):
    with database.migrated(tmp_path) as url:
        opened = Catalog.open(url)
        with opened.writing() as connection:
            ensure_environment(connection, SCOPE, mode="simulation", runtime_profile="embedded")
            beat(connection)
            discovery = {"is_schedulable": True, "task_queue": "agents", "max_run_seconds": 60, "idempotent": False}
            presence.register_agent(connection, SCOPE, AGENT, discovery, lease_until=FAR, now=now())
        yield opened
        opened.close()


def test_a_run_that_was_staged_for_somebody_else_to_start_is_admitted_as_any_other(catalog):
    due = [now().replace(microsecond=0) + timedelta(minutes=minutes) for minutes in (5, 9)]
    with catalog.writing() as connection:
        keys = enable_all(connection, SCOPE, [configuration(each) for each in due], Contents())
        runs = [stage(connection, key, instant) for key, instant in zip(keys, due, strict=True)]
    assert runs == [RunKey(activation=key, nominal_time=instant) for key, instant in zip(keys, due, strict=True)]
    with catalog.writing() as connection:
        assert open_entries(connection, SCOPE) == 2
        decided = admission.decide(connection, runs[0], Contents(), owner="one", now=due[0])
        assert decided.outcome == admission.ADMITTED
        assert answers(connection, keys) == {"admitted": 1, "staged": 1}
        assert answers(connection, keys[1:]) == {"staged": 1}
        assert stage(connection, keys[1], due[1]) == runs[1]
        assert open_entries(connection, SCOPE) == 2


def test_what_was_staged_and_is_taken_down_leaves_nothing_open(catalog):
    due = now().replace(microsecond=0) + timedelta(minutes=5)
    with catalog.writing() as connection:
        keys = enable_all(connection, SCOPE, [configuration(due)], Contents())
        stage(connection, keys[0], due)
        pause_all(connection, keys)
        assert open_entries(connection, SCOPE) == 0


def test_figures_are_medians_of_rounds_beside_native():
    late = {OURS: [[10, 20, 30], [40, 50, 600], [1, 2, 3]], NATIVE: [[100, 400, 900], [300, 400, 500], [1, 400, 800]]}
    middle, tail = lateness_figures("lateness at 1 runs/s", late, 20)
    assert (middle.name, middle.ours, middle.peer_value, middle.ratio) == ("lateness at 1 runs/s, median", 20, 400, 20)
    assert middle.holds is True
    assert (middle.runs, middle.spread) == (3, (50 - 2) / 20)
    assert (tail.name, tail.ours, tail.peer_value, tail.budget) == ("lateness at 1 runs/s, p99", 30, 800, None)


@pytest.mark.parametrize(("rate", "ours", "holds"), [(1, 20, True), (1, 21, False), (10, 100, True), (10, 101, False)])
def test_the_budget_of_a_rate_is_that_of_the_design(rate, ours, holds):
    (figure, _) = lateness_figures("lateness", {OURS: [[ours]], NATIVE: [[400]]}, MEDIAN_BUDGETS[rate])
    assert figure.holds is holds


def test_a_herd_is_as_late_as_its_last():
    (figure,) = herd_figures("herd", {OURS: [[1, 100, 2]], NATIVE: [[599, 5, 5]]}, Budget(least_ratio=6))
    assert (figure.ours, figure.peer_value, figure.holds) == (100, 599, False)


def test_p99_is_a_value_that_was_measured():
    assert p99(range(1, 1_001)) == 990
    assert p99([3, 1, 2]) == 3


def test_the_size_is_the_environments_and_a_wrong_one_is_told():
    assert chosen_size({}) == SIZES[FULL]
    assert chosen_size({SIZE: "short"}) == SIZES[SHORT]
    with pytest.raises(Misconfigured, match="it is one of full, short"):
        chosen_size({SIZE: "tiny"})


class Slow:
    """A contender that takes so many hours each time, and no time at all after that."""

    name, scope = "slow", SCOPE

    def __init__(self, clock, *hours):
        self.clock, self.hours = clock, list(hours)
        self.set_ups, self.taken_down = [], 0

    async def set_up(self, due):
        self.set_ups.append(due[0][0] - self.clock.now())
        self.clock.at += timedelta(hours=self.hours.pop(0) if self.hours else 0)
        return [run_of(number, instant) for number, (instant,) in enumerate(due)]

    async def take_down(self):
        self.taken_down += 1


class Clock:
    at = NOON

    def now(self):
        return self.at


class Installed:
    async def begun(self, runs, *, within):
        return [0.001 * number for number, _ in enumerate(runs)]

    async def settled(self, scope):
        assert scope == SCOPE


def taken(slow, monkeypatch):
    monkeypatch.setattr("benchmarks.starts.now", slow.clock.now)
    return asyncio.run(Turn(Installed(), slow, begin_within=1).take(Load(per_second=2)))


def test_runs_of_the_time_in_which_a_load_settles_are_not_counted(monkeypatch):
    slow = Slow(Clock())
    monkeypatch.setattr("benchmarks.starts.now", slow.clock.now)
    turn = Turn(Installed(), slow, begin_within=1)
    assert asyncio.run(turn.take(Load(per_second=1, seconds=2, settling=1))) == [1, 2]


def test_what_was_not_ready_before_it_was_due_is_taken_down_and_made_again_with_more_time(monkeypatch):
    slow = Slow(Clock(), 1)
    assert taken(slow, monkeypatch) == [0, 1]
    assert slow.taken_down == 2
    assert slow.set_ups[0] < timedelta(minutes=1)
    assert slow.set_ups[1] > timedelta(hours=1)


def test_what_is_never_ready_is_given_up_and_taken_down(monkeypatch):
    slow = Slow(Clock(), 1, 2, 4, 8)
    with pytest.raises(TimeoutError, match="2 schedules were not ready in time, 4 times"):
        taken(slow, monkeypatch)
    assert slow.taken_down == len(slow.set_ups) == 4


def test_what_took_longer_is_given_longer_the_next_time():
    allowance = Allowance(least=timedelta(seconds=5), each=timedelta(seconds=0.1))
    assert allowance.of(10) == timedelta(seconds=6)
    allowance.learn(timedelta(seconds=8), 10)
    assert allowance.of(10) == timedelta(seconds=15)
    assert allowance.of(20) == timedelta(seconds=7)


def test_both_kinds_of_load_are_held_to_the_same_budget():
    """The budget was written for the same ones each second; nobody shall say that we chose the kind that suits us."""
    values = {OURS: [[1.0]], NATIVE: [[1.0]]}
    budgets = {
        (part.load.per_second, part.load.again): part.figures(part.name, values)[0].budget for part in parts(Size())
    }
    for rate, times in {1: 20, 10: 4, 25: 2}.items():
        assert budgets[rate, True] == budgets[rate, False] == Budget(least_ratio=times)
    assert budgets[300, False] == Budget(least_ratio=6)
    assert [(part.load.restart, part.load.per_second) for part in parts(Size())][-2:] == [(False, 300), (True, 300)]


def test_every_figure_has_a_name_of_its_own(monkeypatch):
    monkeypatch.delenv(SIZE, raising=False)
    assert len(set(names())) == len(names())
    assert "lateness at 25 runs/s, the same each second, median" in names()


class Contending:
    """Takes no time, and loses the runs of some loads."""

    def __init__(self, name, lost):
        self.name, self.contender, self.lost = name, self, lost

    async def take(self, load):
        if load.per_second in self.lost:
            raise LostRuns(f"{load.per_second} runs have not begun.")
        return [float(load.per_second)]


def test_a_load_whose_runs_are_lost_is_told_and_the_others_have_their_figures():
    installed = []

    @asynccontextmanager
    async def turns():
        installed.append(1)
        both = [Contending(name, {2, 4}) for name in (OURS, NATIVE)]
        yield {True: both, False: both}

    several = [
        Part(
            name=f"{rate}",
            load=Load(per_second=rate),
            rounds=2,
            figures=lambda name, late: herd_figures(name, late, None),
        )
        for rate in (1, 2, 3, 4)
    ]
    found = []

    async def collect():
        async for figure in measured(several, turns):
            found.append(figure)  # noqa: PERF401 # what came before the error is looked at

    with pytest.raises(ExceptionGroup, match="2 of 4 loads have no figure"):
        asyncio.run(collect())
    assert [(figure.name, figure.ours, figure.runs) for figure in found] == [("1", 1, 2), ("3", 3, 2)]
    assert len(installed) == 3 - 1  # one after the first loss; after the last one nothing was left


def test_there_is_no_end_of_nothing_without_an_installation():
    @asynccontextmanager
    async def turns():
        raise TimeoutError("the server does not come up")
        yield

    async def collect():
        return [figure async for figure in measured(parts(Size()), turns)]

    with pytest.raises(TimeoutError, match="does not come up"):
        asyncio.run(collect())
