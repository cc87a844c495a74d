"""Scheduler v0's contract, sentence by sentence: what a caller can do, what is refused, and what is told of it.

A sentence that is held by tests elsewhere stands in HELD with their names; most have a test below as well, whose docstring
quotes it.
"""

from datetime import UTC, datetime, timedelta

import pytest

from horarium.catalog import presence
from horarium.control.audit import audit
from horarium.schedule.identity import ActivationKey, Scope, schedule_key
from horarium.schedule.ledger import Disposition
from tests.api.house import OPERATOR, new
from tests.api.test_seed_000 import names_in
from tests.api.v0_house import BOUND, FAR_OFF, NOBODY, V0, bind, code, faults
from tests.control.desk import AGENT, FAR, SCOPE, Desk, Loop
from tests.control.operators import Operator
from tests.control.world import Work, World
from tests.schedule.test_v0 import CRON, ONE_SHOT, changed

TYPES = {
    "one-shot": FAR_OFF,
    "interval": {"type": "interval", "spec": {"every_seconds": 60}, "target": CRON["target"]},
    "cron": CRON,
}
MINUTES = TYPES["interval"]

HELD = {
    # Terminology
    "Misfire: missed schedule window.": (
        "control/test_v0.py::test_one_that_nobody_listened_to_is_missed",
        "control/test_v0.py::test_one_that_came_too_late_to_its_admission_is_missed_too",
        "schedule/test_v0.py::test_skip_is_a_window_of_ten_seconds",
    ),
    "Defer-once: one-time delayed execution after a miss.": (
        "control/test_defer_once.py::test_after_an_outage_of_ten_instants_there_is_one_deferred_run",
        "control/test_defer_once.py::test_a_run_that_starts_late_answers_for_all_that_is_due_until_it_starts",
    ),
    # Normative Spec
    "Scheduler v0 MUST support: one-shot, interval, cron": (
        "schedule/test_v0.py::test_the_one_shot_of_the_contract_as_it_stands",
        "schedule/test_v0.py::test_the_cron_of_the_contract_as_it_stands",
        "schedule/test_v0.py::test_an_interval_counts_from_the_epoch",
        "schedule/test_v0.py::test_what_is_stored_is_due_when_the_document_says",
    ),
    "Schedule target MUST bind stable identity: workspace_id, agent_id": (
        "control/test_v0.py::test_what_runs_is_what_the_binding_said_when_it_was_saved",
        "schedule/test_v0.py::test_it_is_refused_where_the_fault_stands",
    ),
    "session_id MUST NOT be used as schedule identity.": (
        "schedule/test_v0.py::test_it_is_refused_where_the_fault_stands",
    ),
    "Default misfire policy: skip. Default max_concurrent_runs SHOULD be 1 for a single schedule.": (
        "schedule/test_v0.py::test_without_a_policy_it_skips_and_runs_one_at_a_time",
    ),
    "Scheduler triggers intent only; execution still requires Gateway command": (
        "control/test_dispatching.py::test_a_run_that_is_taken_has_begun_and_its_token_opens_its_input",
        "control/test_dispatching.py::test_a_run_that_is_refused_is_not_claimed",
        "control/test_dispatching.py::test_what_changed_since_the_decision_keeps_it_from_being_sent",
    ),
    "+ valid lease.": (
        "control/test_rules.py::test_a_lease_is_valid_until_its_end_and_with_it",
        "control/test_activation.py::test_an_agent_whose_lease_lapsed_and_for_how_long",
    ),
    "Recommended allowed states for execution: running, ready.": (
        "control/test_rules.py::test_an_agent_that_does_not_say_that_it_takes_runs_gets_none",
        "control/test_activation.py::test_an_agent_whose_runner_left",
    ),
    "Scheduler SHOULD emit": (
        "control/test_v0.py::test_every_change_is_an_event_with_its_version_and_receipt",
        "control/test_v0.py::test_skip_tells_each_span_with_its_count",
        "control/test_v0.py::test_an_outage_is_one_deferral_and_one_span",
    ),
    # Error & Recovery
    "Invalid type/spec mismatch: reject schedule. Invalid misfire policy for one-shot: reject.": (
        "schedule/test_v0.py::test_it_is_refused_where_the_fault_stands",
    ),
    # Security & Audit
    "Production actions remain subject to platform approval policies.": (
        "control/test_v0.py::test_it_waits_for_approval_where_live_runs_do_and_the_digest_is_known_before",
        "control/test_scheduled_authority.py::test_a_live_schedule_outlasts_no_approval_and_a_new_version_has_none",
    ),
}
"""What holds a sentence beside the tests below: tests by their file below `tests` and their name."""


@pytest.fixture
def caller(api):
    bind(api.catalog)
    return V0(api=api)


def each_minute(**policy):
    """An interval of a minute that is due half a minute from now for the first time, so that no boundary is near."""
    offset = int(datetime.now(UTC).timestamp() + 30) % 60
    return {**MINUTES, "spec": {"every_seconds": 60, "offset_seconds": offset}, "policy": policy}


def policy(caller, schedule_id):
    """The policy that its newest version runs on."""
    return caller.api.get(f"/schedules/{schedule_id}").json()["configuration"]["policy"]


class Lived:
    """A schedule that was made over the API, and the processes around it from now on, as the clock of a desk goes."""

    def __init__(self, api, schedule_id, *, takes=1, ends_as=Disposition.SUCCEEDED):
        self.desk = Desk(api.catalog, now=datetime.now(UTC))
        self.desk.key = schedule_key(SCOPE, schedule_id)
        self.world = World(self.desk, lambda _: Work(takes=timedelta(seconds=takes), ends_as=ends_as))
        current = self.desk.activation()
        if current.is_live:
            key = ActivationKey(schedule=self.desk.key, generation=current.generation)
            self.world.loops[current.generation] = Loop(self.desk, key, wake=self.desk.now)

    def for_(self, seconds):
        self.until(self.desk.now + timedelta(seconds=seconds))

    def until(self, instant):
        self.world.pass_until(instant)
        found = self.desk.read(audit, self.desk.key, now=self.desk.now)
        assert found.clean, found.schedules


@pytest.mark.parametrize("sentence", HELD)
def test_the_tests_that_hold_a_sentence_are_there(sentence):
    missing = [each for each in HELD[sentence] if each.partition("::")[2] not in names_in(each.partition("::")[0])]
    assert missing == []


# Examples


def test_the_first_example_has_passed_so_it_is_accepted_missed_and_never_runs(caller):
    """{"type": "one-shot", "spec": {"run_at": "2026-03-25T09:00:00Z"}, …}"""
    answer = caller.create(ONE_SHOT)
    assert answer.status_code == 201
    receipt = answer.json()
    assert (receipt["enabled"], receipt["warnings"]) == (
        False,
        ["2026-03-25T09:00:00Z has passed: it is entered as missed, and never runs."],
    )
    schedule_id = receipt["schedule_id"]
    assert caller.fates(schedule_id) == [("missed", "already_passed", 1)]
    assert caller.told(schedule_id) == ["SCHEDULE_CREATED", "MISFIRED_SKIPPED"]
    shown = caller.get(schedule_id)
    assert (shown["schedule"], shown["state"]) == (ONE_SHOT, "review")
    assert shown["reason"].startswith("calendar_exhausted")
    lived = Lived(caller.api, schedule_id)
    lived.for_(3_600)
    assert lived.desk.started == set()
    assert caller.fates(schedule_id) == [("missed", "already_passed", 1)]


def test_the_second_example_runs_at_each_quarter(caller):
    """{"type": "cron", "spec": {"expr": "*/15 * * * *"}, …}"""
    schedule_id = caller.created(CRON)
    shown = caller.get(schedule_id)
    assert (shown["schedule"], shown["state"]) == (CRON, "enabled")
    lived = Lived(caller.api, schedule_id)
    enabled = lived.desk.activation().activated_at
    quarter = enabled.replace(minute=enabled.minute - enabled.minute % 15, second=0, microsecond=0)
    lived.until(quarter + timedelta(minutes=62))
    due = [quarter + timedelta(minutes=minutes) for minutes in (15, 30, 45, 60)]
    entries = lived.desk.entries()
    assert [(each.first_at, each.disposition) for each in entries] == [(each, Disposition.SUCCEEDED) for each in due]
    assert caller.told(schedule_id).count("SCHEDULE_TRIGGERED") == 4


# Schedule Types


@pytest.mark.parametrize("kind", TYPES)
def test_each_type_is_accepted_and_enabled(caller, kind):
    """Scheduler v0 MUST support: one-shot, interval, cron."""
    schedule_id = caller.created(TYPES[kind])
    shown = caller.get(schedule_id)
    assert (shown["schedule"], shown["state"]) == (TYPES[kind], "enabled")


def test_a_one_shot_runs_once_at_its_instant(caller):
    """Scheduler v0 MUST support: one-shot."""
    instant = (datetime.now(UTC) + timedelta(minutes=30)).replace(microsecond=0)
    schedule_id = caller.created(changed(ONE_SHOT, "spec/run_at", instant.isoformat()))
    lived = Lived(caller.api, schedule_id)
    lived.for_(3_600)
    assert [(each.first_at, each.disposition) for each in lived.desk.entries()] == [(instant, Disposition.SUCCEEDED)]
    assert caller.get(schedule_id)["state"] == "review"


@pytest.mark.parametrize("kind", ["daily", "One-Shot", "one_shot", "", 1, None, ["cron"]])
def test_any_other_type_is_refused(caller, kind):
    """Schedule types: one-shot, interval, cron."""
    assert faults(caller.create({**CRON, "type": kind})) == [("/type", "unknown_value")]


# Target Binding


def test_what_runs_is_bound_to_workspace_and_agent(caller):
    """Schedule target MUST bind stable identity: workspace_id, agent_id."""
    operator = Operator(caller.api.catalog, SCOPE)
    for workspace, agent, read in (("ws-1", "a", "first"), ("ws-2", "a", "second"), ("ws-1", "b", "third")):
        operator.declare("binding", f"v0:{workspace}/{agent}", run={**BOUND, "input": read})
        schedule_id = caller.created({**CRON, "target": {"workspace_id": workspace, "agent_id": agent}})
        stored = caller.api.get(f"/schedules/{schedule_id}").json()["configuration"]
        assert (stored["run"]["input"], stored["run"]["agent_version"]) == (read, AGENT)


@pytest.mark.parametrize(
    ("target", "missing"),
    [
        ({"agent_id": "codex"}, ["/target/workspace_id"]),
        ({"workspace_id": "ws-001"}, ["/target/agent_id"]),
        ({}, ["/target/workspace_id", "/target/agent_id"]),
        (None, ["/target"]),
    ],
)
def test_without_a_target_it_is_refused(caller, target, missing):
    """Missing target identity (workspace_id + agent_id): reject."""
    document = changed(CRON, "target") if target is None else {**CRON, "target": target}
    assert faults(caller.create(document)) == [(each, "missing_field") for each in missing]
    schedule_id = caller.created()
    assert faults(caller.update(schedule_id, document)) == [(each, "missing_field") for each in missing]
    assert caller.get(schedule_id)["schedule"] == CRON


def test_a_target_that_nobody_stands_behind_is_refused(caller):
    """Schedule target MUST bind stable identity."""
    answer = caller.create(NOBODY)
    assert code(answer) == (409, "binding_missing")
    assert "v0:ws-001/nobody" in answer.json()["next_step"]


@pytest.mark.parametrize("place", ["session_id", "target/session_id", "policy/session_id", "spec/session_id"])
def test_a_session_is_refused_wherever_it_stands(caller, place):
    """session_id MUST NOT be used as schedule identity."""
    document = changed(CRON, place, "s-1")
    refused = [(f"/{place}", "session_identity")]
    assert faults(caller.create(document)) == refused
    schedule_id = caller.created()
    assert faults(caller.update(schedule_id, document)) == refused
    assert "session" not in str(caller.get(schedule_id))


def test_a_session_in_place_of_a_target_is_refused_with_what_is_needed(caller):
    """session_id MUST NOT be used as schedule identity."""
    answer = caller.create({**CRON, "target": {"session_id": "s-1"}})
    assert faults(answer) == [
        ("/target/workspace_id", "missing_field"),
        ("/target/agent_id", "missing_field"),
        ("/target/session_id", "session_identity"),
    ]
    assert "workspace_id and agent_id" in answer.json()["errors"][2]["detail"]


# Misfire Policy


@pytest.mark.parametrize("left_out", ["policy", "policy/misfire"])
def test_without_a_misfire_policy_what_is_missed_is_gone(caller, left_out):
    """Default misfire policy: skip."""
    schedule_id = caller.created(changed(each_minute(misfire="defer_once"), left_out))
    assert policy(caller, schedule_id) == {
        "overlap": "skip",
        "catchup_window_seconds": 10,
        "pause_on_failure": False,
        "max_concurrent_runs": 1,
    }
    lived = Lived(caller.api, schedule_id, takes=90)
    lived.for_(180)
    assert caller.fates(schedule_id) == [("succeeded", None, 1), ("skipped", "overlap", 1), ("started", None, 1)]
    assert "MISFIRED_DEFERRED" not in caller.told(schedule_id)


@pytest.mark.parametrize("kind", ["interval", "cron"])
def test_interval_and_cron_may_defer_once(caller, kind):
    """defer_once MAY be used only for interval and cron."""
    schedule_id = caller.created({**TYPES[kind], "policy": {"misfire": "defer_once"}})
    assert policy(caller, schedule_id)["defer_once"] is True


def test_a_deferred_instant_runs_late_once_and_answers_for_the_rest(caller):
    """defer_once: one-time delayed execution after a miss."""
    schedule_id = caller.created(each_minute(misfire="defer_once"))
    lived = Lived(caller.api, schedule_id)
    lived.world.schedules_up = False
    lived.world.pass_until(lived.desk.now + timedelta(seconds=300))
    lived.world.schedules_up = True
    lived.for_(10)
    assert caller.fates(schedule_id) == [("succeeded", None, 1), ("skipped", "coalesced", 4)]
    assert caller.told(schedule_id) == [
        "SCHEDULE_CREATED",
        "MISFIRED_SKIPPED",
        "MISFIRED_DEFERRED",
        "SCHEDULE_TRIGGERED",
    ]


def test_a_one_shot_skips_and_nothing_else(caller):
    """one-shot uses skip only. Invalid misfire policy for one-shot: reject."""
    refused = [("/policy/misfire", "one_shot_skips")]
    deferring = changed(FAR_OFF, "policy/misfire", "defer_once")
    assert faults(caller.create(deferring)) == refused
    schedule_id = caller.created(FAR_OFF)
    assert faults(caller.update(schedule_id, deferring)) == refused
    assert caller.get(schedule_id)["schedule"] == FAR_OFF
    for document in (FAR_OFF, changed(FAR_OFF, "policy"), changed(FAR_OFF, "policy/misfire")):
        assert "defer_once" not in policy(caller, caller.created(document))


# Concurrency


@pytest.mark.parametrize("left_out", ["policy", "policy/max_concurrent_runs"])
def test_one_run_at_a_time_unless_told_otherwise(caller, left_out):
    """Default max_concurrent_runs SHOULD be 1 for a single schedule."""
    schedule_id = caller.created(changed(each_minute(max_concurrent_runs=3), left_out))
    assert policy(caller, schedule_id)["max_concurrent_runs"] == 1
    lived = Lived(caller.api, schedule_id, takes=1_000)
    lived.for_(240)
    assert lived.desk.holding() == 1


def test_as_many_runs_as_the_policy_says(caller):
    """max_concurrent_runs"""
    schedule_id = caller.created(each_minute(max_concurrent_runs=2))
    lived = Lived(caller.api, schedule_id, takes=1_000)
    lived.for_(240)
    assert lived.desk.holding() == 2


# Trigger Gate


@pytest.mark.parametrize("gone", ["agent_offline", "agent_not_ready"])
def test_a_trigger_is_an_intent_and_admission_refuses_what_has_no_lease_or_another_state(caller, gone):
    """Scheduler triggers intent only; execution still requires Gateway command + valid lease. Allowed: running, ready."""
    desk = Desk(caller.api.catalog, now=datetime.now(UTC))
    agent = f"{gone}@1"
    discovery = {"is_schedulable": True, "task_queue": "agents", "max_run_seconds": 60, "idempotent": False}
    desk.write(presence.register_agent, SCOPE, agent, discovery, lease_until=FAR, now=desk.now)
    Operator(caller.api.catalog, SCOPE).declare("binding", f"v0:ws-001/{gone}", run={**BOUND, "agent_version": agent})
    schedule_id = caller.created({**each_minute(), "target": {"workspace_id": "ws-001", "agent_id": gone}})
    if gone == "agent_offline":
        desk.write(presence.register_agent, SCOPE, agent, discovery, lease_until=desk.now, now=desk.now)
    else:
        desk.write(presence.release_agent, SCOPE, agent, now=desk.now)
    lived = Lived(caller.api, schedule_id)
    lived.for_(120)
    assert caller.fates(schedule_id) == [("refused", gone, 1)] * 2
    assert caller.told(schedule_id) == ["SCHEDULE_CREATED", "SCHEDULE_TRIGGERED", "SCHEDULE_TRIGGERED"]
    assert lived.world.actual_starts == {}


def test_enabling_is_refused_while_nothing_could_be_admitted(caller):
    """Execution still requires a valid lease."""
    Operator(caller.api.catalog, SCOPE).declare(
        "binding", "v0:ws-001/absent", run={**BOUND, "agent_version": "absent@1"}
    )
    answer = caller.create({**CRON, "target": {"workspace_id": "ws-001", "agent_id": "absent"}})
    assert code(answer) == (409, "agent_missing")


# Event Requirements


def test_all_eight_events_are_told_in_the_audit_stream_with_their_metadata(caller):
    """Scheduler SHOULD emit … Schedule updates and triggers MUST be auditable via metadata events."""
    receipts = [caller.create(CRON).json()]
    schedule_id = receipts[0]["schedule_id"]
    receipts.append(caller.update(schedule_id, each_minute(misfire="defer_once")).json())
    receipts += [caller.move(schedule_id, what).json() for what in ("pause", "resume")]
    lived = Lived(caller.api, schedule_id, takes=150)
    lived.for_(195)
    receipts.append(caller.move(schedule_id, "disable").json())
    stream = caller.ask("GET", f"/{schedule_id}/events").json()["events"]
    told = [each for each in stream if each["kind"].isupper()]
    assert [each["kind"] for each in told] == [
        "SCHEDULE_CREATED",
        "SCHEDULE_UPDATED",
        "SCHEDULE_PAUSED",
        "SCHEDULE_RESUMED",
        "SCHEDULE_TRIGGERED",
        "MISFIRED_DEFERRED",
        "MISFIRED_SKIPPED",
        "SCHEDULE_TRIGGERED",
        "SCHEDULE_DISABLED",
    ]
    changes = [each for each in told if "receipt_id" in each["details"]]
    assert [each["details"]["receipt_id"] for each in changes] == [each["receipt_id"] for each in receipts]
    assert [each["details"]["reference"] for each in changes] == [each["reference"] for each in receipts]
    assert {each["actor"] for each in changes} == {"ada"}
    lines = caller.api.get(f"/schedules/{schedule_id}/occurrences").json()["occurrences"]
    run, deferred, skipped = ((each["first_at"], each["run_id"]) for each in lines)
    first, waits, span, late = (each["details"] for each in told[4:8])
    assert [(each["nominal_time"], each["run_id"]) for each in (first, waits, late)] == [run, deferred, deferred]
    assert span == {
        "first_at": skipped[0],
        "last_at": skipped[0],
        "count": 1,
        "disposition": "skipped",
        "reason": "already_waiting",
    }
    assert {each["generation"] for each in told[4:8]} == {4}
    # They stand beside our own, in the one stream that is sealed.
    assert stream == caller.api.get(f"/schedules/{schedule_id}/events").json()["events"]


# Error & Recovery


@pytest.mark.parametrize(
    ("kind", "other"), [(kind, other) for kind in TYPES for other in TYPES if kind != other], ids="-".join
)
def test_a_spec_of_another_type_is_refused(caller, kind, other):
    """Invalid type/spec mismatch: reject schedule."""
    document = {**TYPES[kind], "spec": TYPES[other]["spec"]}
    places = [("/spec/" + name, "type_spec_mismatch") for name in TYPES[other]["spec"]]
    assert faults(caller.create(document))[: len(places)] == places
    schedule_id = caller.created(TYPES[kind])
    assert faults(caller.update(schedule_id, document))[: len(places)] == places
    assert caller.get(schedule_id)["schedule"] == TYPES[kind]


@pytest.mark.parametrize("ends_as", [Disposition.FAILED, Disposition.TIMED_OUT])
def test_a_failed_run_is_not_repeated_and_the_schedule_goes_on(caller, ends_as):
    """Recovery of failed task execution is handled by self-heal/task policy, not by scheduler replay loops."""
    schedule_id = caller.created(each_minute())
    lived = Lived(caller.api, schedule_id, ends_as=ends_as)
    lived.for_(180)
    assert [each[0] for each in caller.fates(schedule_id)] == [ends_as.value] * 3
    assert caller.told(schedule_id) == ["SCHEDULE_CREATED", *["SCHEDULE_TRIGGERED"] * 3]
    assert caller.get(schedule_id)["state"] == "enabled"


# Security & Audit


LIVE = "!/v1/organizations/acme/environments/production-v0"


def declare_live(api, **approvals):
    """Apply a file that makes a live environment with a binding, in which live runs need an approval."""
    run = {**BOUND, "usage_class": "live", "budget_id": "live"}
    budget = {"usage_classes": ["live"], "pays_by": "credits", "limit": 1_000, "currency": "CHF"}
    file = {
        "organization": "acme",
        "environment": "production-v0",
        "mode": "live",
        "runtime_profile": "embedded",
        "live_needs_approval": True,
        "people": {"ada": {}},
        "agents": {AGENT: {"max_cost": 10, "max_run_seconds": 60}},
        "inputs": {"in": {"readers": ["*"]}},
        "outputs": {"out": {}},
        "budgets": {"live": budget},
        "bindings": {"v0:ws-001/opencode": {"run": run}},
        "approvals": {digest: {"by": "grace", "expires_at": until} for digest, until in approvals.items()},
    }
    answer = api.ask("PUT", f"{LIVE}/authority", by=OPERATOR, key=new(), json=file)
    assert answer.status_code == 200, answer.text
    scope = Scope(org_id="acme", environment_id="production-v0")
    discovery = {"is_schedulable": True, "task_queue": "agents", "max_run_seconds": 60, "idempotent": False}
    with api.catalog.writing() as connection:
        presence.register_agent(connection, scope, AGENT, discovery, lease_until=FAR, now=datetime.now(UTC))


def test_a_live_environment_keeps_its_approval_rule(caller):
    """Production actions remain subject to platform approval policies."""
    api, until = caller.api, "2099-01-01T00:00:00Z"
    live = V0(api=api, environment="production-v0")
    declare_live(api)
    answer = live.create(CRON)
    assert code(answer) == (409, "approval_missing")
    first = answer.json()["errors"][0]["evidence"]["digest"]
    assert live.ask("GET", "").json()["schedules"] == []

    declare_live(api, **{first: until})
    receipt = live.create(CRON)
    assert (receipt.status_code, receipt.json()["reference"]["digest"]) == (201, first)
    schedule_id = receipt.json()["schedule_id"]

    # Another version needs an approval of its own, and what was approved goes on.
    answer = live.update(schedule_id, MINUTES)
    assert code(answer) == (409, "approval_missing")
    second = answer.json()["errors"][0]["evidence"]["digest"]
    assert (second != first, live.get(schedule_id)["schedule"]) == (True, CRON)
    live.move(schedule_id, "pause")
    declare_live(api, **{second: until})
    assert code(live.move(schedule_id, "resume")) == (409, "approval_missing")
    assert live.update(schedule_id, MINUTES).status_code == 201
    assert live.move(schedule_id, "resume").json()["reference"]["digest"] == second


def test_who_changed_what_and_when_is_told(caller):
    """Schedule updates and triggers MUST be auditable via metadata events."""
    before = datetime.now(UTC)
    schedule_id = caller.created()
    receipt = caller.update(schedule_id, MINUTES).json()
    (event,) = [
        each
        for each in caller.ask("GET", f"/{schedule_id}/events").json()["events"]
        if each["kind"] == "SCHEDULE_UPDATED"
    ]
    assert (event["actor"], event["revision"]) == ("ada", 2)
    assert event["details"] == {"reference": receipt["reference"], "receipt_id": receipt["receipt_id"]}
    assert before <= datetime.fromisoformat(event["at"]) <= datetime.now(UTC)
