"""The run worker's wait for a nominal second, and the clock that it waits by."""

import asyncio
import dataclasses
from datetime import UTC, datetime, timedelta

import pytest
import structlog
from temporalio.api.workflow.v1 import WorkflowExecutionInfo
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionResponse
from temporalio.client import WorkflowExecutionStatus
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import ActivityEnvironment

import activities.admission
import activities.clock
from activities.admission import LOOKED_AT_EVERY, WAITS, Admissions
from activities.clock import FRESH, WorkerClock
from activities.gateway import HttpGateway
from activities.messages import AdmitRun
from horarium.control import dispatching
from horarium.control.admission import WITHDRAWN, Admission
from horarium.schedule.ceilings import USUAL
from horarium.schedule.identity import ActivationKey, RunKey, ScheduleKey
from horarium.schedule.policy import MIN_CATCHUP_WINDOW
from worker.composition import ADMISSION_SLOTS
from workflows.options import admission_heartbeat

SCHEDULE = ScheduleKey(org_id="acme", environment_id="test", schedule_id="7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11")
NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


GATEWAY = HttpGateway("http://api.test")


class Decided:
    """A catalog that notes when it was asked to decide, by the clock that the decision was made by."""

    def __init__(self) -> None:
        self.at: list[datetime] = []

    async def read(self, _request_of, _key):
        """Of a run that asks for nothing."""

    async def write(self, _decide, _key, _content, *, owner, now, keys_of, ceilings):
        assert owner == "test-run"
        assert ceilings == USUAL
        assert keys_of == GATEWAY.keys_of
        self.at.append(now)
        return dispatching.Decided(admission=Admission(outcome=WITHDRAWN))


class Service:
    """What the server says of a run's workflow, and how often it was asked."""

    namespace = "default"

    def __init__(self, says: WorkflowExecutionStatus | RPCStatusCode = WorkflowExecutionStatus.RUNNING) -> None:
        self.workflow_service = self
        self.asked = 0
        self._says = says

    async def describe_workflow_execution(self, request, *, timeout):  # noqa: ASYNC109 - the name is that of the SDK
        assert request.execution.run_id == "test-run"
        self.asked += 1
        if isinstance(self._says, RPCStatusCode):
            raise RPCError("no", self._says, b"")
        return DescribeWorkflowExecutionResponse(workflow_execution_info=WorkflowExecutionInfo(status=self._says.value))


class Steered:
    """The machine's two clocks, in the test's hands. `wall` is what it takes for the time."""

    def __init__(self, wall: datetime) -> None:
        self.wall = wall
        self.monotonic_seconds = 1_000.0

    def now(self, zone) -> datetime:
        return self.wall.astimezone(zone)

    def monotonic(self) -> float:
        return self.monotonic_seconds

    def pass_(self, by: timedelta) -> None:
        self.wall += by
        self.monotonic_seconds += by.total_seconds()


@pytest.fixture
def machine(monkeypatch):
    steered = Steered(NOON)
    monkeypatch.setattr(activities.clock, "datetime", steered)
    monkeypatch.setattr(activities.clock, "time", steered)
    return steered


def admission_of(nominal: datetime, catalog: Decided, clock: WorkerClock, environment: ActivityEnvironment):
    return attempt_at(Admissions(catalog, None, Service(), clock, GATEWAY), nominal, environment)


def attempt_at(
    admissions: Admissions, nominal: datetime, environment: ActivityEnvironment, *, org_id: str = SCHEDULE.org_id
):
    schedule = dataclasses.replace(SCHEDULE, org_id=org_id)
    key = RunKey(activation=ActivationKey(schedule=schedule, generation=1), nominal_time=nominal)
    return asyncio.ensure_future(environment.run(admissions.admit_run, AdmitRun(key=key)))


def environment_stamped(at: datetime) -> ActivityEnvironment:
    environment = ActivityEnvironment()
    environment.info = dataclasses.replace(environment.info, started_time=at)
    return environment


async def test_a_run_is_never_decided_before_its_nominal_second_and_at_once_after_it():
    catalog = Decided()
    now = datetime.now(UTC)
    nominal = now + timedelta(seconds=0.7)

    await admission_of(nominal, catalog, WorkerClock(), environment_stamped(now))

    (decided,) = catalog.at
    assert nominal <= decided <= nominal + 10 * SECOND
    assert datetime.now(UTC) >= nominal


async def test_the_second_is_the_servers_where_the_clocks_disagree(machine):
    """By this machine's clock it is noon, by the server's an hour later: the run of half past twelve is due."""
    catalog = Decided()
    machine.wall = NOON
    due = NOON + timedelta(minutes=30)

    await asyncio.wait_for(
        admission_of(due, catalog, WorkerClock(), environment_stamped(NOON + timedelta(hours=1))), timeout=60
    )

    assert catalog.at == [NOON + timedelta(hours=1)]


async def test_a_machine_that_is_ahead_does_not_decide_early(machine):
    """By this machine's clock it is noon, by the server's an hour earlier."""
    catalog = Decided()
    attempt = admission_of(NOON, catalog, WorkerClock(), environment_stamped(NOON - timedelta(hours=1)))
    await asyncio.sleep(3 * LOOKED_AT_EVERY.total_seconds())
    assert catalog.at == []

    machine.pass_(timedelta(hours=1))
    await asyncio.wait_for(attempt, timeout=60)

    assert catalog.at == [NOON]


async def test_a_wait_is_silent_since_its_timeout_knows_how_long_it_is():
    """Each beat would be a write of the server, and an action that is paid for."""
    beats = []
    now = datetime.now(UTC)
    environment = environment_stamped(now)
    environment.on_heartbeat = lambda *_: beats.append(None)

    await admission_of(now + timedelta(seconds=2.2), Decided(), WorkerClock(), environment)

    assert beats == []


@pytest.mark.parametrize(("left", "silent_for"), [(12, 8), (6, 8), (5.5, 7.5), (0, 2), (-3_600, 2)], ids=str)
def test_a_worker_that_is_killed_in_a_wait_is_missed_two_seconds_after_the_nominal_time(left, silent_for):
    assert admission_heartbeat(timedelta(seconds=left)) == timedelta(seconds=silent_for)


def test_whatever_a_killed_worker_costs_no_run_is_missed_for_it():
    assert admission_heartbeat(timedelta(days=1)) < MIN_CATCHUP_WINDOW


async def test_a_long_wait_says_now_and_then_that_it_lives(monkeypatch):
    monkeypatch.setattr(activities.admission, "SILENT_WAIT", timedelta(seconds=0.5))
    monkeypatch.setattr(activities.admission, "LOOKED_AT_EVERY", timedelta(seconds=0.1))
    beats: asyncio.Queue[None] = asyncio.Queue()
    now = datetime.now(UTC)
    environment = environment_stamped(now)
    environment.on_heartbeat = lambda *_: beats.put_nowait(None)
    catalog = Decided()

    attempt = admission_of(now + timedelta(hours=1), catalog, WorkerClock(), environment)
    for _ in range(2):
        await asyncio.wait_for(beats.get(), timeout=60)

    assert catalog.at == []
    environment.worker_shutdown()
    with pytest.raises(ApplicationError):
        await attempt


@pytest.mark.parametrize(
    "says", [WorkflowExecutionStatus.TERMINATED, WorkflowExecutionStatus.CANCELED, RPCStatusCode.NOT_FOUND], ids=str
)
async def test_a_run_whose_workflow_was_ended_by_hand_while_it_waited_is_not_decided(says):
    catalog, service = Decided(), Service(says)
    now = datetime.now(UTC)
    admissions = Admissions(catalog, None, service, WorkerClock(), GATEWAY)

    with pytest.raises(ApplicationError) as ended:
        await attempt_at(admissions, now + timedelta(seconds=2), environment_stamped(now))

    assert (ended.value.type, ended.value.non_retryable, service.asked) == ("workflow_ended", True, 1)
    assert catalog.at == []


@pytest.mark.parametrize(
    "says", [WorkflowExecutionStatus.RUNNING, RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED], ids=str
)
async def test_a_run_is_decided_where_its_workflow_goes_on_or_the_server_does_not_say(says):
    catalog, service = Decided(), Service(says)
    now = datetime.now(UTC)

    await attempt_at(
        Admissions(catalog, None, service, WorkerClock(), GATEWAY), now + timedelta(seconds=2), environment_stamped(now)
    )

    assert (service.asked, len(catalog.at)) == (1, 1)


async def test_a_run_that_does_not_wait_asks_for_nothing():
    service = Service()
    now = datetime.now(UTC)

    await attempt_at(Admissions(Decided(), None, service, WorkerClock(), GATEWAY), now, environment_stamped(now))

    assert service.asked == 0


async def test_a_decision_that_takes_long_goes_on_saying_that_it_lives():
    beats: asyncio.Queue[None] = asyncio.Queue()
    now = datetime.now(UTC)
    environment = environment_stamped(now)
    environment.on_heartbeat = lambda *_: beats.put_nowait(None)

    class Slow(Decided):
        async def write(self, *args, **kwargs):
            for _ in range(2):
                await beats.get()
            return await super().write(*args, **kwargs)

    slow = Slow()
    await asyncio.wait_for(admission_of(now, slow, WorkerClock(), environment), timeout=60)

    assert len(slow.at) == 1


async def test_a_herd_of_one_organization_makes_no_other_wait_for_more_than_those_that_are_being_decided():
    decided = []
    now = datetime.now(UTC)

    class Noting(Decided):
        async def write(self, decide, key, *args, **kwargs):
            await asyncio.sleep(0.01)
            decided.append(key.activation.schedule.org_id)
            return await super().write(decide, key, *args, **kwargs)

    admissions = Admissions(Noting(), None, Service(), WorkerClock(), GATEWAY, at_once=2)
    many = [attempt_at(admissions, now, environment_stamped(now), org_id="many") for _ in range(40)]
    for _ in range(3):
        await asyncio.sleep(0)  # all of them are in line
    few = [attempt_at(admissions, now, environment_stamped(now), org_id="few") for _ in range(3)]

    await asyncio.wait_for(asyncio.gather(*few), timeout=60)
    before = decided.count("many")
    await asyncio.gather(*many)

    assert before <= 2 * len(few) + 4
    assert len(decided) == 43


async def test_the_wait_fails_at_once_when_its_worker_shuts_down(monkeypatch):
    monkeypatch.setattr(
        activities.admission, "LOOKED_AT_EVERY", timedelta(hours=1)
    )  # it does not wait for the next one
    catalog = Decided()
    now = datetime.now(UTC)
    environment = environment_stamped(now)
    attempt = admission_of(now + timedelta(hours=1), catalog, WorkerClock(), environment)
    await asyncio.sleep(0.1)

    environment.worker_shutdown()

    with pytest.raises(ApplicationError) as failed:
        await asyncio.wait_for(attempt, timeout=60)
    assert (failed.value.type, failed.value.non_retryable) == ("worker_shutdown", False)
    assert catalog.at == []


async def test_a_shutdown_does_not_stop_a_decision_that_is_due():
    catalog = Decided()
    now = datetime.now(UTC)
    environment = environment_stamped(now)
    environment.worker_shutdown()

    await admission_of(now - SECOND, catalog, WorkerClock(), environment)

    assert len(catalog.at) == 1


@pytest.mark.parametrize(
    ("left", "comes_back_after"), [(3_600, 3_599), (4, 3), (2.5, 1.5), (2, 2), (0.25, 0.25)], ids=str
)
async def test_a_run_that_finds_no_room_to_wait_comes_back_a_second_before_its_time_and_then_at_its_time(
    machine, left, comes_back_after
):
    admissions = Admissions(Decided(), None, Service(), WorkerClock(), GATEWAY, waits=0)

    with pytest.raises(ApplicationError) as sent_away:
        await attempt_at(admissions, NOON + timedelta(seconds=left), environment_stamped(NOON))

    assert (sent_away.value.type, sent_away.value.non_retryable) == ("no_room_to_wait", False)
    assert sent_away.value.next_retry_delay == timedelta(seconds=comes_back_after)


async def test_runs_that_are_due_are_decided_while_every_place_to_wait_is_taken():
    """And a place is free again once its run was decided or its attempt has ended."""
    now = datetime.now(UTC)
    catalog = Decided()
    admissions = Admissions(catalog, None, Service(), WorkerClock(), GATEWAY, waits=2)
    soon = attempt_at(admissions, now + timedelta(seconds=3), environment_stamped(now))
    ends = environment_stamped(now)
    later = attempt_at(admissions, now + timedelta(hours=1), ends)
    await asyncio.sleep(0.1)

    await attempt_at(admissions, now, environment_stamped(now))

    assert len(catalog.at) == 1
    with pytest.raises(ApplicationError, match="All places to wait are taken"):
        await attempt_at(admissions, now + timedelta(minutes=1), environment_stamped(now))
    await soon
    ends.worker_shutdown()
    with pytest.raises(ApplicationError, match="shutting down"):
        await later
    for _ in range(2):  # one after the other, since both places are free
        await attempt_at(admissions, datetime.now(UTC) + timedelta(seconds=0.1), environment_stamped(now))
    assert len(catalog.at) == 4


def test_a_fifth_of_the_slots_of_a_run_worker_is_never_taken_by_waiting():
    assert ADMISSION_SLOTS >= 2_000
    assert ADMISSION_SLOTS - WAITS >= ADMISSION_SLOTS / 5


@pytest.mark.parametrize("skew", [timedelta(0), SECOND, -SECOND, timedelta(seconds=0.4)])
def test_a_skew_within_the_tolerance_is_ignored(machine, skew):
    clock = WorkerClock()
    clock.observe(NOON + skew)
    assert (clock.skew, clock.now()) == (timedelta(0), NOON)


@pytest.mark.parametrize("skew", [timedelta(seconds=1.001), timedelta(hours=-3), timedelta(days=400)])
def test_beyond_the_tolerance_the_servers_time_goes_on_by_the_monotonic_clock(machine, skew):
    clock = WorkerClock()
    clock.observe(NOON + skew)
    with structlog.testing.capture_logs():
        assert clock.now() == NOON + skew
        machine.monotonic_seconds += 5
        machine.wall += timedelta(seconds=77)  # somebody sets the machine's clock; the offsets are not observed anew
        assert clock.now() == NOON + skew + timedelta(seconds=5)


def test_a_skew_is_warned_of_once_and_named(machine):
    clock = WorkerClock()
    with structlog.testing.capture_logs() as logged:
        for _ in range(5):
            clock.observe(machine.wall + timedelta(seconds=10))
            clock.now()
            machine.pass_(SECOND)
    assert logged == [
        {"event": "clock_skew", "log_level": "warning", "skew_seconds": 10.0, "taken": "the server's time"}
    ]


def test_another_skew_is_warned_of_again_and_a_clock_that_was_set_right_is_believed(machine):
    clock = WorkerClock(recent=1)
    with structlog.testing.capture_logs() as logged:
        for skew in (10, 10.5, 20, 0, 10):
            clock.observe(NOON + timedelta(seconds=skew))
            assert abs(clock.now() - (NOON + timedelta(seconds=skew))) <= SECOND
    assert [event["skew_seconds"] for event in logged] == [10.0, 20.0, 10.0]


def test_the_smallest_recent_distance_counts_since_the_way_from_the_server_only_adds_to_it(machine):
    """Stamps that were long on their way look like a clock that is ahead; one that came at once tells the truth."""
    clock = WorkerClock(recent=3)
    for delay in (8, 0.2, 5):
        clock.observe(NOON - timedelta(seconds=delay))
    assert clock.now() == NOON
    with structlog.testing.capture_logs():
        for _ in range(3):  # until the one that came at once is forgotten
            clock.observe(NOON - timedelta(seconds=5))
        assert clock.now() == NOON - timedelta(seconds=5)


@pytest.mark.parametrize("jump", [timedelta(hours=1), -timedelta(hours=1), timedelta(seconds=3), -timedelta(seconds=3)])
@pytest.mark.parametrize("stamped_after", [False, True])
def test_a_clock_that_was_set_after_many_good_stamps_is_believed_no_more(machine, jump, stamped_after):
    """A run that waits at that moment is told nothing new by the server, and must not be decided early or late."""
    clock = WorkerClock()
    truth = NOON
    for _ in range(20):
        clock.observe(truth)
        truth += SECOND
        machine.pass_(SECOND)
    assert (clock.skew, clock.now()) == (timedelta(0), truth)

    machine.wall += jump

    with structlog.testing.capture_logs() as logged:
        if stamped_after:
            clock.observe(truth)
        assert clock.now() == truth
        machine.pass_(SECOND)
        assert clock.now() == truth + SECOND
    assert [event["skew_seconds"] for event in logged] == [-jump.total_seconds()]


def test_a_clock_that_was_wrong_and_is_set_right_is_believed_at_once(machine):
    machine.wall = NOON + timedelta(minutes=3)
    clock = WorkerClock()
    with structlog.testing.capture_logs():
        for _ in range(20):
            clock.observe(NOON)
        assert clock.now() == NOON

    machine.wall = NOON

    assert (clock.skew, clock.now()) == (timedelta(0), NOON)


def test_a_machine_that_slept_is_believed_again_with_the_first_stamp_after_it(machine):
    """Its clock is right, and the monotonic one stood still."""
    clock = WorkerClock()
    for _ in range(20):
        clock.observe(NOON)
    machine.wall += timedelta(hours=8)

    clock.observe(NOON + timedelta(hours=8))

    assert clock.now() == NOON + timedelta(hours=8)


def test_a_server_whose_clock_was_set_back_is_believed_once_the_old_stamps_are_stale(machine):
    clock = WorkerClock()
    clock.observe(NOON)
    machine.pass_(FRESH + SECOND)
    with structlog.testing.capture_logs():
        clock.observe(machine.wall - timedelta(hours=1))
        assert clock.now() == machine.wall - timedelta(hours=1)


def test_the_last_stamp_counts_however_old_it_is(machine):
    clock = WorkerClock()
    with structlog.testing.capture_logs():
        clock.observe(NOON + timedelta(minutes=1))
        machine.pass_(timedelta(hours=2))
        assert clock.now() == machine.wall + timedelta(minutes=1)


def test_without_a_stamp_the_machine_is_believed(machine):
    assert WorkerClock().now() == NOON
