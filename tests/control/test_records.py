"""What is stored, as documents: the record of the contract, the directory, the ledger and the events."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import event, update

from horarium.catalog import ledger, ledger_changes, presence
from horarium.catalog.environments import ensure_environment
from horarium.catalog.schedules import change_activation, find_activation, insert_activation, require_schedule
from horarium.catalog.tables import environments
from horarium.control.activation import Reviewed, retire, send_to_review
from horarium.control.publication import publish
from horarium.control.records import directory, events, occurrences, record
from horarium.errors import NotFound, Refused
from horarium.schedule.identity import ActivationKey, RunKey, ScheduleKey, Scope
from horarium.schedule.ledger import Disposition, Fate, Reason, Span

SCOPE = Scope(org_id="acme", environment_id="test")
NOW = datetime(2027, 3, 1, 9, 0, 0, 250_000, tzinfo=UTC)
DUE = datetime(2027, 3, 1, 9, 1, tzinfo=UTC)
ID = "7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11"


def key(schedule_id: str = ID) -> ScheduleKey:
    return ScheduleKey(org_id="acme", environment_id="test", schedule_id=schedule_id)


def configuration(name: str = "Daily review") -> dict:
    return {
        "name": name,
        "calendar": {
            "timezone": "UTC",
            "calendars": [],
            "intervals": [{"every_seconds": 60, "offset_seconds": 0}],
            "start_at": "2026-01-01T00:00:00Z",
            "end_at": "2035-12-31T23:59:59Z",
        },
        "policy": {"overlap": "skip", "catchup_window_seconds": 3600, "pause_on_failure": True},
        "run": {
            "agent_version": "agent@1",
            "input": "in",
            "output_target": "out",
            "grants": ["read"],
            "budget_id": None,
            "usage_class": "test_simulation",
        },
    }


@pytest.fixture
def connection(own_catalog):
    with own_catalog.writing() as connection:
        ensure_environment(connection, SCOPE, mode="simulation", runtime_profile="embedded")
        yield connection


def published(connection, schedule_id: str = ID, *, name: str = "Daily review"):
    return publish(connection, key(schedule_id), configuration(name), expected_revision=None, by="ada", now=NOW)


def activated(connection, *, revision: int = 1, ended_as: Reason | None = None):
    schedule = require_schedule(connection, key())
    return insert_activation(connection, schedule, revision=revision, by="ada", now=NOW, since=NOW, ended_as=ended_as)


def test_the_record_has_exactly_the_parts_of_the_contract(connection):
    first = published(connection).version
    head = published(connection, name="Daily review, earlier").version
    activated(connection)
    told = record(connection, key(), revision=1, now=NOW)
    reference = {"schedule_id": ID, "revision": 1, "digest": first.digest}
    assert json.loads(json.dumps(told)) == {
        "schedule_id": ID,
        "resource_id": first.resource_id,
        "reference": reference,
        "configuration": configuration(),
        "head": {"schedule_id": ID, "revision": 2, "digest": head.digest},
        "retired": False,
        "published_at": "2027-03-01T09:00:00.250000Z",
        "published_by": "ada",
        "activation": {
            "version": reference,
            "generation": 1,
            "enabled": True,
            "changed_at": "2027-03-01T09:00:00.250000Z",
            "changed_by": "ada",
        },
        "runtime": {"state": "pending", "generation": 1},
        "execution_ready": False,
    }


def test_the_record_is_of_the_head_unless_a_revision_is_named(connection):
    published(connection)
    published(connection, name="Second")
    assert record(connection, key(), now=NOW)["reference"]["revision"] == 2
    with pytest.raises(NotFound, match="no revision 3; its newest is 2"):
        record(connection, key(), revision=3, now=NOW)


def test_execution_is_ready_while_both_workers_beat(connection):
    published(connection)
    for role in presence.ROLES:
        assert record(connection, key(), now=NOW)["execution_ready"] is False
        presence.beat(connection, instance=role, role=role, tzdata="2026a", now=NOW)
    assert record(connection, key(), now=NOW + timedelta(seconds=14))["execution_ready"] is True
    assert record(connection, key(), now=NOW + timedelta(seconds=15))["execution_ready"] is False


def observe(connection, generation: int, state: str, reason: str | None = None):
    row = require_schedule(connection, key()).row
    presence.observe(connection, row, generation=generation, state=state, reason=reason, now=DUE)


SEEN = "2027-03-01T09:01:00Z"


def no_profile(connection):
    activated(connection)
    observe(connection, 1, "active")
    connection.execute(update(environments).values(runtime_profile=None))


def reviewed(connection):
    schedule = require_schedule(connection, key())
    observe(connection, 1, "active")
    send_to_review(
        connection, schedule, activated(connection), because="calendar_exhausted: over.", by="system", now=NOW
    )


def paused(connection, *, seen: int):
    activated(connection)
    ended = find_activation(connection, require_schedule(connection, key()), 1)
    change_activation(connection, ended, ended_at=NOW, ended_as="paused")
    observe(connection, seen, "active" if seen == 1 else "paused")
    activated(connection, ended_as=Reason.PAUSED)


STATES = {
    "never enabled": (lambda c: None, {"state": "paused", "generation": 0}),
    "no runtime profile": (no_profile, {"state": "unconfigured", "generation": 1, "observed_at": SEEN}),
    "enabled, not yet observed": (activated, {"state": "pending", "generation": 1}),
    "enabled and active": (
        lambda c: (activated(c), observe(c, 1, "active")),
        {"state": "active", "generation": 1, "observed_at": SEEN},
    ),
    "in error": (
        lambda c: (activated(c), observe(c, 1, "error", "Temporal does not answer.")),
        {"state": "error", "generation": 1, "observed_at": SEEN, "reason": "Temporal does not answer."},
    ),
    "in review before the controller came by": (
        reviewed,
        {"state": "review", "generation": 1, "observed_at": SEEN, "reason": "calendar_exhausted: over."},
    ),
    "paused, the old generation observed": (
        lambda c: paused(c, seen=1),
        {"state": "stopping", "generation": 2},
    ),
    "paused and cleaned up": (
        lambda c: paused(c, seen=2),
        {"state": "paused", "generation": 2, "observed_at": SEEN},
    ),
}


@pytest.mark.parametrize(("arrange", "runtime"), STATES.values(), ids=STATES)
def test_the_runtime_state_is_of_the_present_generation(connection, arrange, runtime):
    published(connection)
    arrange(connection)
    assert record(connection, key(), now=NOW)["runtime"] == runtime
    assert directory(connection, SCOPE, now=NOW)["schedules"][0]["runtime"] == runtime


def test_a_retired_schedule_is_listed_only_where_asked_for(connection):
    published(connection)
    retire(connection, key(), Reviewed(), by="ada", now=NOW)
    assert record(connection, key(), now=NOW)["retired"] is True
    assert record(connection, key(), now=NOW)["runtime"] == {"state": "stopping", "generation": 1}
    assert directory(connection, SCOPE, now=NOW)["schedules"] == []
    assert len(directory(connection, SCOPE, include_retired=True, now=NOW)["schedules"]) == 1


def test_the_directory_has_pages_by_uuid(connection):
    ids = [f"0000000{number}-0000-4000-8000-000000000000" for number in range(4)]
    for each in reversed(ids):
        published(connection, each, name=each[:8])
    first = directory(connection, SCOPE, limit=3, now=NOW)
    assert [each["name"] for each in first["schedules"]] == [each[:8] for each in ids[:3]]
    assert first["next_cursor"] == ids[2]
    second = directory(connection, SCOPE, limit=3, after=ids[2], now=NOW)
    assert [each["schedule_id"] for each in second["schedules"]] == ids[3:]
    assert second["next_cursor"] is None
    exact = directory(connection, SCOPE, limit=4, now=NOW)
    assert exact["next_cursor"] is None


@pytest.mark.parametrize("limit", [0, 51, -1])
def test_a_page_has_one_to_fifty_schedules(connection, limit):
    with pytest.raises(Refused, match="invalid_limit"):
        directory(connection, SCOPE, limit=limit, now=NOW)


def test_a_cursor_is_a_uuid(connection):
    with pytest.raises(Refused, match="invalid_schedule_id"):
        directory(connection, SCOPE, after="x", now=NOW)


def test_the_directory_tells_when_a_live_activation_is_next_due(connection):
    published(connection)
    assert directory(connection, SCOPE, now=NOW)["schedules"][0]["next_due"] is None
    activated(connection)
    assert directory(connection, SCOPE, now=NOW)["schedules"][0]["next_due"] == "2027-03-01T09:01:00Z"


def test_a_page_of_the_directory_asks_as_many_questions_for_fifty_schedules_as_for_one(connection):
    ids = [f"{number:08}-0000-4000-8000-000000000000" for number in range(51)]
    for number, each in enumerate(ids):
        for revision in range(1 + number % 3):
            published(connection, each, name=f"{number}, {revision}")
        for generation in range(number % 4):
            schedule = require_schedule(connection, key(each))
            ended_as = Reason.PAUSED if generation == 1 else None
            insert_activation(connection, schedule, revision=1, by="ada", now=NOW, since=NOW, ended_as=ended_as)
    asked = []
    event.listen(connection, "before_cursor_execute", lambda *parts: asked.append(parts[2]))
    assert len(directory(connection, SCOPE, limit=1, now=NOW)["schedules"]) == 1
    of_one = len(asked)
    page = directory(connection, SCOPE, limit=50, now=NOW)["schedules"]
    assert (len(page), len(asked)) == (50, 2 * of_one)
    for number, entry in enumerate(page):
        shown = record(connection, key(ids[number]), now=NOW)
        assert entry.pop("name") == shown.pop("configuration")["name"] == f"{number}, {number % 3}"
        assert (entry.pop("next_due") is None) == (number % 4 in {0, 2})
        assert entry == shown


def run_key(due: datetime) -> RunKey:
    return RunKey(activation=ActivationKey(schedule=key(), generation=1), nominal_time=due)


@pytest.fixture
def told(connection):
    """A run that succeeded, one that was refused, a span that was skipped, and one that goes on."""
    published(connection)
    activated(connection)
    schedule = require_schedule(connection, key())
    minute = timedelta(minutes=1)

    def stage(number: int) -> tuple[RunKey, ledger.Entry]:
        run = run_key(DUE + number * minute)
        ledger_changes.stage(connection, schedule, run, now=run.nominal_time - timedelta(seconds=4))
        entry = ledger.find_entry(connection, schedule, run)
        assert entry is not None
        return run, entry

    run, entry = stage(0)
    ledger_changes.change_run(
        connection,
        run.run_id,
        agent_version="agent@1",
        begun_at=DUE + timedelta(milliseconds=24, microseconds=900),
        ended_at=DUE + timedelta(seconds=3),
        summary="3 files are stale",
        outputs=["out/report.md"],
        cost=7,
        evidence={"agent": {"lifecycle": "ready"}},
    )
    ledger_changes.close(connection, schedule, entry, Disposition.SUCCEEDED, None, now=DUE + timedelta(seconds=3))
    run, entry = stage(1)
    ledger_changes.change_run(
        connection, run.run_id, evidence={"sentence": "The lease lapsed 4 s ago."}, ended_at=DUE + minute
    )
    ledger_changes.close(connection, schedule, entry, Disposition.REFUSED, Reason.AGENT_OFFLINE, now=DUE + minute)
    span = Span(first=DUE + 2 * minute, last=DUE + 4 * minute, count=3)
    fate = Fate(span=span, disposition=Disposition.SKIPPED, reason=Reason.OVERLAP)
    ledger_changes.write_fate(connection, schedule, generation=1, fate=fate, now=DUE + 4 * minute)
    stage(5)
    return connection


def test_an_occurrence_tells_its_whole_story(told):
    first = occurrences(told, key())[0]
    assert json.loads(json.dumps(first)) == {
        "first_at": "2027-03-01T09:01:00Z",
        "last_at": "2027-03-01T09:01:00Z",
        "count": 1,
        "disposition": "succeeded",
        "reason": None,
        "sentence": None,
        "generation": 1,
        "trigger": "schedule",
        "triggered_by": None,
        "run_id": run_key(DUE).run_id,
        "workflow_id": run_key(DUE).workflow_id,
        "agent_version": "agent@1",
        "begun_at": "2027-03-01T09:01:00.024900Z",
        "lateness_ms": 24,
        "ended_at": "2027-03-01T09:01:03Z",
        "summary": "3 files are stale",
        "outputs": ["out/report.md"],
        "cost": 7,
        "evidence": {"agent": {"lifecycle": "ready"}},
    }


def test_every_occurrence_has_the_same_fields(told):
    assert len({tuple(row) for row in occurrences(told, key())}) == 1


def test_the_sentence_is_that_of_the_evidence_or_else_that_of_the_reason(told):
    _, refused, skipped, staged = occurrences(told, key())
    assert refused["sentence"] == "The lease lapsed 4 s ago."
    assert skipped["sentence"] == Reason.OVERLAP.sentence
    assert staged["sentence"] is None


MINUTE = timedelta(minutes=1)
CHOICES = {
    "everything": ({}, ["succeeded", "refused", "skipped", "staged"]),
    "newest first": ({"newest_first": True, "limit": 2}, ["staged", "skipped"]),
    "from the middle of a span": ({"since": DUE + 3 * MINUTE}, ["skipped", "staged"]),
    "until the middle of a span": ({"until": DUE + 3 * MINUTE}, ["succeeded", "refused", "skipped"]),
    "some dispositions": ({"dispositions": [Disposition.REFUSED, Disposition.STAGED]}, ["refused", "staged"]),
    "another generation": ({"generation": 2}, []),
    "open or closed lately": ({"touched_since": DUE + 2 * MINUTE}, ["skipped", "staged"]),
}


@pytest.mark.parametrize(("choice", "found"), CHOICES.values(), ids=CHOICES)
def test_the_ledger_can_be_asked_for_parts(told, choice, found):
    assert [row["disposition"] for row in occurrences(told, key(), **choice)] == found


def test_events_tell_who_did_what_in_order(connection):
    published(connection)
    retire(connection, key(), Reviewed(), by="grace", now=DUE)
    everything = events(connection, key())
    assert [(each["kind"], each["actor"], each["at"]) for each in everything] == [
        ("published", "ada", "2027-03-01T09:00:00.250000Z"),
        ("retired", "grace", "2027-03-01T09:01:00Z"),
    ]
    assert events(connection, key(), after=everything[0]["id"]) == everything[1:]


@pytest.mark.parametrize(
    "read", [lambda c: record(c, key(), now=NOW), lambda c: occurrences(c, key()), lambda c: events(c, key())]
)
def test_a_schedule_that_is_not_there_is_not_found(connection, read):
    with pytest.raises(NotFound, match="schedule_not_found"):
        read(connection)


def test_an_environment_that_is_not_there_is_not_found(connection):
    with pytest.raises(NotFound, match="environment_not_found"):
        directory(connection, Scope(org_id="acme", environment_id="other"), now=NOW)
