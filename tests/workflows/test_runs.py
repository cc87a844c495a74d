"""One run from its staging to its one answer, whatever its agent, its operator or its worker does."""

import asyncio
from datetime import UTC, timedelta

import pytest

from activities.admission import Admissions
from activities.timetable import Pace
from horarium.catalog import presence
from horarium.control.running import Outcome
from horarium.schedule.identity import RunKey
from horarium.schedule.ledger import Disposition
from tests.postgres.databases import KINDS
from tests.workflows.documents import every
from tests.workflows.house import AGENTS_QUEUE, SCOPE, Worked
from tests.workflows.lasting import LastingRun, Work
from workflows.options import admission_heartbeat

pytestmark = pytest.mark.parametrize("where", KINDS, indirect=True)

STAGED_EARLY = Pace(lead=timedelta(seconds=6), spread=timedelta(0))
SECOND = timedelta(seconds=1)
TASK_STARTED = "workflow_task_started_event_attributes"
SCHEDULED = "activity_task_scheduled_event_attributes"


async def due(house, **policy):
    """An hourly schedule, enabled just before its hour: `(schedule, activation, first run)`."""
    hour = await house.on_the_minute(multiple=60)
    key = await house.published(every(3_600, **policy))
    changed = await house.enabled(key)
    return key, changed.key, RunKey(activation=changed.key, nominal_time=hour)


async def test_a_run_that_succeeds_tells_what_it_is_about_and_leaves_its_summary(skipping):
    async with skipping() as house:
        key, _activation, run = await due(house)
        await house.advance(timedelta(hours=1))

        assert await house.workflow(run).result() == {"disposition": "succeeded", "reason": None}
        stored = house.runs(key)[0]
        assert (stored.decision, stored.summary) == ("admitted", "worked")
        assert stored.token_hash is None, "the token dies with the run"
        brief = house.agent.begun[0]
        assert (brief.run_id, brief.nominal_time, brief.previous_success) == (run.run_id, run.nominal_time, None)
        assert brief.schedule.schedule_id == key.schedule_id
        await house.advance(timedelta(hours=1))
        assert house.agent.begun[1].previous_success == run.nominal_time


@pytest.mark.parametrize(
    ("scripted", "disposition", "reason"),
    [
        (ValueError("no such folder"), "failed", "agent_reported_failure"),
        (30.0, "timed_out", "time_limit"),  # its limit is four seconds
    ],
    ids=["raises", "takes too long"],
)
async def test_an_agent_that_does_not_succeed_has_its_outcome_in_the_ledger(skipping, scripted, disposition, reason):
    async with skipping() as house:
        house.expected += ["agent_raised", "Completing activity as failed"]
        key, activation, run = await due(house)
        house.agent.script[run.nominal_time] = scripted
        await house.advance_to(run.nominal_time + SECOND)

        await house.until(
            lambda: [fate[2:] for fate in house.fates(key, since=run.nominal_time)] == [(disposition, reason)]
        )

        assert await house.workflow(run).result() == {"disposition": disposition, "reason": reason}
        assert house.activation(activation).is_live


async def test_all_attempts_of_an_idempotent_agent_share_the_time_limit_of_the_one_run(skipping, monkeypatch):
    """The hand-over may take the three seconds that the lease has left. Three attempts with their pauses would take six."""
    monkeypatch.setattr(Worked, "idempotent", True)
    monkeypatch.setattr(Worked, "max_run_seconds", 1)
    async with skipping() as house:
        house.expected.append("Completing activity as")
        key, activation, run = await due(house)
        house.agent.script[run.nominal_time] = 30.0
        lease_until = run.nominal_time + 3 * SECOND
        await house.catalog.write(
            presence.renew_lease, SCOPE, "worked@1", lease_until=lease_until, now=await house.now()
        )
        await house.advance_to(run.nominal_time + SECOND)

        assert await house.workflow(run).result() == {"disposition": "timed_out", "reason": "time_limit"}
        (stored,) = house.runs(key)
        assert len(house.begun) == 2
        assert stored.ended_at - run.nominal_time < timedelta(seconds=6)
        house.agent.begun.pop()  # the same run, begun again as its agent allows
        assert house.activation(activation).is_live


async def test_a_run_that_no_agent_takes_is_not_started(skipping):
    """The hand-over is bounded by the agent's lease, here a few seconds behind the nominal time."""
    async with skipping(without=[AGENTS_QUEUE]) as house:
        key, _, run = await due(house)
        await house.host.register([], lease=timedelta(0))
        await house.catalog.write(
            presence.renew_lease,
            SCOPE,
            "worked@1",
            lease_until=run.nominal_time + 5 * SECOND,
            now=await house.now(),
        )
        await house.advance_to(run.nominal_time + SECOND)

        assert await house.workflow(run).result() == {"disposition": "not_started", "reason": "not_picked_up"}
        assert house.fates(key, since=run.nominal_time) == [(0, 0, "not_started", "not_picked_up")]


async def test_a_run_whose_agent_is_offline_is_refused_with_how_long(skipping):
    async with skipping() as house:
        key, activation, run = await due(house)
        await house.catalog.write(
            presence.renew_lease,
            SCOPE,
            "worked@1",
            lease_until=run.nominal_time - timedelta(minutes=5),
            now=await house.now(),
        )
        await house.advance_to(run.nominal_time + SECOND)

        assert await house.workflow(run).result() == {"disposition": "refused", "reason": "agent_offline"}
        assert house.runs(key)[0].evidence["offline_seconds"] == pytest.approx(300, abs=2)
        assert house.begun == []
        assert house.activation(activation).is_live, "a refusal is no failure"


@pytest.mark.parametrize("gone", ["input", "target"])
async def test_what_was_there_at_enabling_is_looked_at_again_at_the_occurrence(skipping, gone):
    async with skipping() as house:
        _, _, run = await due(house)
        if gone == "input":
            (house.content.inputs / "letters").unlink()
        else:
            (house.content.outputs / "reports").rmdir()
        await house.advance_to(run.nominal_time + SECOND)

        reason = {"input": "input_unreadable", "target": "output_missing"}[gone]
        assert await house.workflow(run).result() == {"disposition": "refused", "reason": reason}
        assert house.begun == []


async def test_an_admission_is_given_to_another_worker_by_how_long_it_has_to_wait(skipping):
    async with skipping(pace=STAGED_EARLY) as house:
        _key, _activation, run = await due(house)
        await house.advance(timedelta(hours=1))
        await house.workflow(run).result()

        events = (await house.workflow(run).fetch_history()).events
        (begun, *_) = [each.event_time.ToDatetime(UTC) for each in events if each.HasField(TASK_STARTED)]
        (admission, *_) = [getattr(each, SCHEDULED) for each in events if each.HasField(SCHEDULED)]
        assert run.nominal_time - begun > SECOND
        expected = admission_heartbeat(run.nominal_time - begun)
        assert abs(admission.heartbeat_timeout.ToTimedelta() - expected) < SECOND / 100


async def test_a_run_that_is_cancelled_while_it_waits_for_its_second_is_cancelled_in_the_ledger(skipping):
    async with skipping(pace=STAGED_EARLY) as house:
        house.expected.append("Completing activity as")
        key, activation, run = await due(house)
        await house.advance_to(run.nominal_time - 5 * SECOND)
        await house.until(lambda: house.entries(key))

        await (await house.known(run)).cancel()

        assert await house.workflow(run).result() == {"disposition": "cancelled", "reason": "cancelled_by_operator"}
        await asyncio.sleep(5.5)  # until its second has passed; the activity of a closed workflow stops the test server
        assert house.fates(key, since=run.nominal_time) == [(0, 0, "cancelled", "cancelled_by_operator")]
        assert house.begun == []
        assert house.activation(activation).is_live


async def test_a_run_that_is_cancelled_while_its_agent_works_is_cancelled_in_the_ledger(skipping):
    async with skipping() as house:
        house.expected.append("Completing activity as")
        key, activation, run = await due(house, pause_on_failure=True)
        house.agent.script[run.nominal_time] = 30.0
        await house.advance_to(run.nominal_time + SECOND)
        await house.until(lambda: house.begun)

        await house.workflow(run).cancel()

        assert await house.workflow(run).result() == {"disposition": "cancelled", "reason": "cancelled_by_operator"}
        assert house.fates(key, since=run.nominal_time) == [(0, 0, "cancelled", "cancelled_by_operator")]
        assert house.activation(activation).is_live, "an operator's hand is no failure"


async def test_a_run_that_is_cancelled_while_its_outcome_is_being_stored_keeps_its_outcome(skipping):
    """A workflow never completes before its settlement: the slot would stay taken until somebody finds out."""
    async with skipping(run_workflow=LastingRun) as house:
        house.expected += ["is tried again", "Completing activity as failed"]
        key, _, run = await due(house)
        house.script.usual = Work(lasts=timedelta(minutes=5))
        await house.advance_to(run.nominal_time + timedelta(minutes=4))
        assert house.begun
        house.catalog.is_out = True
        await house.advance_to(run.nominal_time + timedelta(minutes=8))

        await house.workflow(run).cancel()
        await house.advance(timedelta(minutes=3))
        house.catalog.is_out = False

        await house.advance(timedelta(minutes=3))
        assert await house.workflow(run).result() == {"disposition": "succeeded", "reason": None}
        assert house.fates(key, since=run.nominal_time) == [(0, 0, "succeeded", None)]


async def test_an_admission_that_dies_and_is_tried_again_has_the_same_decision(skipping, monkeypatch):
    """The first attempt commits its decision and dies before it can report it."""
    from activities import admission  # noqa: PLC0415 - patched here

    attempts = []

    async def dies_once(client, key):
        attempts.append(key)
        if len(attempts) == 1:
            raise RuntimeError("the worker dies here")

    monkeypatch.setattr(admission, "nudge", dies_once)
    async with skipping() as house:
        house.expected.append("the worker dies here")
        key, _, run = await due(house)
        await house.advance_to(run.nominal_time + SECOND)

        assert (await house.workflow(run).result())["disposition"] == "succeeded"
        assert len(attempts) == 2
        assert house.begun == [run.nominal_time]
        assert house.runs(key)[0].owner == (await house.workflow(run).describe()).run_id


async def test_a_run_that_finds_no_room_to_wait_is_decided_at_its_time_all_the_same(skipping, monkeypatch):
    """Coming back leaves nothing in its history, which has a budget (DESIGN.md, section 15)."""
    monkeypatch.setitem(Admissions.__init__.__kwdefaults__, "waits", 0)
    async with skipping(pace=STAGED_EARLY) as house:
        key, _, run = await due(house)
        await house.advance_to(run.nominal_time + SECOND)

        assert await house.workflow(run).result() == {"disposition": "succeeded", "reason": None}
        (stored,) = house.runs(key)
        assert timedelta(0) <= stored.decided_at - run.nominal_time <= 10 * SECOND
        history = await house.workflow(run).fetch_history()
        assert len(history.events) <= 18
        # Staged early, it was sent away, came back when little was left, and then for good.
        (admission, agent) = (each.attempt for each in attempts(history))
        assert (admission in {2, 3}, agent) == (True, 1)


def attempts(history) -> list:
    """The starts of the run's activities: its admission, then its agent."""
    started = [event.activity_task_started_event_attributes for event in history.events]
    return [each for each in started if each.attempt]


async def test_a_run_that_was_settled_by_somebody_else_is_not_settled_again(skipping):
    """As the controller does with a run that it takes for lost."""
    from horarium.control import running  # noqa: PLC0415 - used here only

    async with skipping(run_workflow=LastingRun) as house:
        house.script.usual = Work(lasts=timedelta(minutes=5))
        key, _, run = await due(house)
        await house.advance_to(run.nominal_time + timedelta(minutes=1))
        lost = Outcome(disposition=Disposition.TERMINATED, reason=None)
        await house.catalog.write(running.settle, run, lost, now=await house.now())

        await house.advance(timedelta(minutes=10))

        assert house.fates(key, since=run.nominal_time) == [(0, 0, "terminated", None)]


async def test_two_workers_never_let_an_agent_begin_one_run_twice(skipping):
    async with skipping() as house:
        _, _, run = await due(house)
        await house.advance_to(run.nominal_time + SECOND)
        await house.workflow(run).result()

        results = await asyncio.gather(
            *(house.host.begin(run.run_id, at=run.nominal_time) for _ in range(3)), return_exceptions=True
        )

        assert {getattr(result, "code", None) for result in results} == {"not_admitted"}
