"""What an occurrence is said to cost is what was counted: by the published rule, in whole turns, per schedule that is kept."""

import asyncio

import pytest
from sqlalchemy import text
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

from benchmarks import cost
from benchmarks.counting import Statements, actions_of
from benchmarks.histories import Chain
from benchmarks.idle import Seen, memory
from benchmarks.occurrences import Life
from benchmarks.stored_schedules import SCOPE, store
from horarium.catalog import Catalog
from horarium.control.audit import audit
from horarium.schedule.identity import ActivationKey, schedule_key


def event(kind, **attributes):
    return HistoryEvent(event_type=EventType.Value(f"EVENT_TYPE_{kind}"), **attributes)


def marker(task):
    return event("MARKER_RECORDED", marker_recorded_event_attributes={"workflow_task_completed_event_id": task})


def test_markers_of_one_workflow_task_are_one_action():
    assert actions_of([marker(4), marker(4), marker(9)]) == {"record_activity_markers": 2}


def test_an_activity_is_an_action_and_so_is_each_of_its_retries():
    started = event("ACTIVITY_TASK_STARTED", activity_task_started_event_attributes={"attempt": 3})
    assert actions_of([event("ACTIVITY_TASK_SCHEDULED"), started]) == {"schedule_activity": 1, "retry_activity": 2}


def test_what_the_server_does_by_itself_is_no_action():
    kinds = ["WORKFLOW_TASK_SCHEDULED", "WORKFLOW_TASK_STARTED", "WORKFLOW_TASK_COMPLETED", "TIMER_FIRED"]
    kinds += ["ACTIVITY_TASK_COMPLETED", "WORKFLOW_EXECUTION_COMPLETED", "WORKFLOW_EXECUTION_CONTINUED_AS_NEW"]
    assert not actions_of(event(kind) for kind in kinds)


def test_starts_timers_and_signals_are_actions():
    kinds = ["WORKFLOW_EXECUTION_STARTED", "TIMER_STARTED", "TIMER_STARTED", "WORKFLOW_EXECUTION_SIGNALED"]
    assert actions_of(event(kind) for kind in kinds) == {"start_workflow": 1, "start_timer": 2, "signal_workflow": 1}


def test_retries_of_local_activities_are_actions():
    metered = {"metering_metadata": {"nonfirst_local_activity_execution_attempts": 2}}
    completed = event("WORKFLOW_TASK_COMPLETED", workflow_task_completed_event_attributes=metered)
    assert actions_of([completed]) == {"retry_activity_local": 2}


def test_turns_are_whole_ones():
    fired, other = event("TIMER_FIRED"), event("TIMER_STARTED")
    chain = Chain(events=[other, other, fired, other, fired, other, other, fired, other], size_bytes=900)
    assert chain.turns == 2
    assert list(chain.within_turns) == [other, fired, other, other, fired]
    assert chain.bytes_of_turns == pytest.approx(500)


def test_a_chain_without_a_whole_turn_has_none():
    assert Chain(events=[event("TIMER_FIRED")], size_bytes=1).turns == 0
    assert Chain(events=[event("TIMER_STARTED")], size_bytes=1).turns == 0


def seen(enabled, worker, server):
    return Seen(enabled=enabled, resident={"schedules": worker, "temporal": server})


def test_memory_is_per_schedule_that_came():
    worker, server = memory([seen(100, 1_000, 50), seen(200, 9_000, 150), seen(300, 19_000, 250)], capacity=1_000)
    assert (worker.ours, worker.runs, worker.holds) == (90, 2, True)
    assert worker.spread == pytest.approx(20 / 90)
    assert (server.ours, server.holds) == (1, None)


def test_what_a_full_cache_does_not_keep_is_not_counted_as_kept():
    worker, server = memory([seen(100, 0, 0), seen(300, 40_000, 400), seen(500, 40_000, 800)], capacity=200)
    assert (worker.ours, worker.runs, worker.holds) == (400, 1, False)
    assert (server.ours, server.runs) == (2, 2)


def test_statements_and_transactions_are_counted_by_part(tmp_path):
    stored, counts = store(f"sqlite:///{tmp_path / 'catalog.db'}", 2), Statements()
    catalog = Catalog.open(stored.url)
    try:
        counts.watch(catalog.engine, "some")
        with catalog.reading() as connection:
            connection.execute(text("SELECT 1"))
            connection.execute(text("SELECT 2"))
        with catalog.writing() as connection:
            connection.execute(text("SELECT 3"))
    finally:
        catalog.close()
    assert counts.counted == {
        "some: statements": 3,
        "some: reading transactions": 1,
        "some: writing transactions": 1,
    }


def test_a_life_in_the_catalog_is_one_that_an_audit_finds_clean(database, tmp_path):
    with database.empty(tmp_path) as url:
        stored = store(url, 3)
        catalog = Catalog.open(stored.url)
        try:
            key = schedule_key(SCOPE, stored.ids[1])
            life = Life(catalog=catalog, key=ActivationKey(schedule=key, generation=1))
            for _ in range(3):
                life.live()
            due = life.next_due()
            with catalog.reading() as connection:
                found = audit(connection, key, now=due)
        finally:
            catalog.close()
    assert found.clean
    assert found.dispositions["succeeded"] == 3


@pytest.mark.server
@pytest.mark.timeout(240)
def test_an_occurrence_on_a_real_server_is_counted_whole(monkeypatch):
    monkeypatch.setattr(cost, "_WARM_UP", 1)
    sizes = cost.Sizes(schedules=1, occurrences=2)
    found = {each.name: each for each in asyncio.run(cost._occurrences(sizes))}
    assert found["history events, schedule workflow"].peer_value is not None
    assert found["billable actions until the run is started"].peer_value == 3
    # Gathered, committed and settled; admitted; claimed.
    writing = [found[f"database writing transactions{part}"].ours for part in ("", *_PARTS)]
    assert writing == [4, 2, 1, 1]
    # The run is started, its admission and its agent scheduled: what is billed beside is heartbeats, which quick runs have none of.
    beats = found["billable heartbeats"].ours
    assert found["billable actions in all"].ours - beats >= 3
    assert beats <= 1, "none, where this machine is not busy"


_PARTS = (", schedule worker", ", run worker", ", agent")
