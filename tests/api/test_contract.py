"""What a caller can do and is refused, sentence by sentence of the contract on scheduling agent runs.

What the calendar and the policy refuse is proved in tests/calendar and tests/schedule, admission and overlap in tests/control;
here stands what a caller of the API meets.
"""

from urllib.parse import quote

import pytest
from sqlalchemy import update

from horarium.api.routes import schedules
from horarium.catalog import presence
from horarium.catalog.schedules import require_schedule
from horarium.catalog.tables import environments
from horarium.control.principals import WRITE_SCOPE
from horarium.schedule.identity import schedule_key
from tests.api.house import EXPECTED, PROGRAM, Api, new, publication, review, set_workers, token
from tests.control.caller import refusing
from tests.control.desk import NOON, SCOPE, every

CHANGES = ("enable", "pause", "retire", "trigger")


def code(answer):
    return answer.status_code, answer.json().get("code")


def record(api, receipt):
    return api.get(f"/schedules/{receipt['schedule_id']}").json()


# Publish the reviewed configuration


def test_publication_creates_an_immutable_version_and_does_not_enable_execution(api):
    first = api.publish()
    second = api.publish(first["schedule_id"], revision=1, configuration=every(60))
    version = api.get(f"/schedule-versions/{first['resource_id']}").json()
    assert version["reference"] == first["reference"]
    assert version["configuration"] == every(3600)
    assert version["head"] == second["reference"]
    assert version["activation"] is None


def test_schedule_reads_report_execution_ready(api):
    receipt = api.publish()
    set_workers(api.catalog, present=False)
    try:
        assert record(api, receipt)["execution_ready"] is False
        assert api.get("").json()["execution_ready"] is False
        assert {each["execution_ready"] for each in api.get("/schedules").json()["schedules"]} == {False}
    finally:
        set_workers(api.catalog, present=True)
    assert record(api, receipt)["execution_ready"] is True


def test_enabling_is_refused_while_the_execution_service_is_unavailable(api):
    receipt = api.publish()
    set_workers(api.catalog, present=False)
    try:
        answer = api.change(receipt, 0, "enable")
    finally:
        set_workers(api.catalog, present=True)
    assert code(answer) == (503, "execution_unavailable")
    assert int(answer.headers["retry-after"]) >= 1
    assert "schedules, runs" in answer.json()["detail"]
    assert record(api, receipt)["activation"] is None
    assert api.change(receipt, 0, "enable").status_code == 201


def test_the_first_version_expects_revision_zero_and_a_replacement_the_head(api):
    receipt = api.publish()
    again = api.post("/schedules", publication(receipt["schedule_id"]), key=new())
    assert code(again) == (409, "revision_conflict")
    assert code(api.post("/schedules", publication(revision=1), key=new())) == (409, "revision_conflict")
    assert api.publish(receipt["schedule_id"], revision=1)["reference"]["revision"] == 2


def test_a_replacement_does_not_silently_replace_an_enabled_version(api):
    receipt = api.publish()
    api.change(receipt, 0, "enable")
    newer = api.publish(receipt["schedule_id"], revision=1, configuration=every(60))
    found = record(api, receipt)
    assert found["head"] == newer["reference"]
    assert found["activation"]["version"] == receipt["reference"]
    assert found["activation"]["enabled"] is True


@pytest.mark.parametrize("missing", ["expected_environment_epoch", "expected_reset_generation", "expected_revision"])
def test_publication_names_every_precondition(api, missing):
    body = publication()
    del body[missing]
    answer = api.post("/schedules", body, key=new())
    assert code(answer) == (422, "invalid_schedule")
    assert [each["pointer"] for each in answer.json()["errors"]] == [f"/{missing}"]


@pytest.mark.parametrize("family", ["calendars", "intervals"])
def test_both_families_of_rules_are_required_and_null_is_invalid(api, family):
    configuration = every(60)
    configuration["calendar"][family] = None
    answer = api.post("/schedules", publication(configuration=configuration), key=new())
    assert code(answer) == (422, "invalid_schedule")
    assert answer.json()["errors"][0]["pointer"] == f"/configuration/calendar/{family}"


def test_all_faults_are_told_at_once_each_with_its_place(api):
    configuration = every(60)
    configuration["calendar"]["timezone"] = "europe/zurich"
    configuration["policy"]["catchup_window_seconds"] = 9
    del configuration["policy"]["pause_on_failure"]
    body = publication(configuration=configuration, expected_revision=True, extra=1)
    answer = api.post("/schedules", body, key=new())
    assert {each["pointer"] for each in answer.json()["errors"]} == {
        "/configuration/calendar/timezone",
        "/configuration/policy/catchup_window_seconds",
        "/configuration/policy/pause_on_failure",
        "/expected_revision",
        "/extra",
    }


# Enable, pause or retire


@pytest.mark.parametrize("scope", ["", "synapse:schedules:read", WRITE_SCOPE.upper()])
@pytest.mark.parametrize("path", ["", "/schedules", "/receipts/k", "/runs", "/occurrences"])
def test_schedule_operations_require_the_scope_reads_included(api, path, scope):
    assert code(api.get(path, by=token(scope=scope))) == (403, "scope_missing")


@pytest.mark.parametrize("by", [PROGRAM, token(sub="grace")], ids=["key", "human"])
def test_publication_and_reads_accept_a_key_or_a_human_session(api, by):
    receipt = api.publish(by=by)
    for path in (
        f"/schedules/{receipt['schedule_id']}",
        f"/schedule-versions/{receipt['resource_id']}",
        "/schedules",
        "",
    ):
        assert api.get(path, by=by).status_code == 200


@pytest.mark.parametrize("what", CHANGES)
def test_enable_pause_retire_and_run_now_require_a_human_session(api, what):
    receipt = api.publish()
    assert code(api.change(receipt, 0, what, by=PROGRAM)) == (403, "human_session_required")
    assert record(api, receipt)["activation"] is None


def test_enabling_names_the_exact_version_and_generation(api):
    receipt = api.publish()
    other = {**receipt["reference"], "digest": "sha256:" + "0" * 64}
    wrong = {
        "wrong digest": ({"version": other}, "digest_conflict"),
        "wrong generation": ({"expected_generation": 1}, "generation_conflict"),
    }
    for name, (change, expected) in wrong.items():
        assert code(api.change(receipt, 0, "enable", **change)) == (409, expected), name
    assert api.change(receipt, 0, "enable").status_code == 201


@pytest.mark.parametrize("precondition", sorted(EXPECTED))
@pytest.mark.parametrize("what", CHANGES)
def test_a_change_names_both_preconditions_of_the_environment(api, what, precondition):
    receipt = api.publish()
    answer = api.change(receipt, 0, what, **{precondition: 7})
    expected = "environment_reset" if "reset" in precondition else "environment_epoch_changed"
    assert code(answer) == (409, expected)


def test_the_enabled_boolean_is_explicit(api):
    receipt = api.publish()
    answer = api.post(f"/schedules/{receipt['schedule_id']}/activation", review(receipt, 0), key=new())
    assert code(answer) == (422, "invalid_schedule")
    assert answer.json()["errors"] == [
        {"pointer": "/enabled", "code": "missing_field", "detail": "The field enabled is required."}
    ]


def test_generation_zero_stands_for_no_activation(api):
    receipt = api.publish()
    assert record(api, receipt)["runtime"] == {"state": "paused", "generation": 0}
    assert api.change(receipt, 0, "enable").json()["generation"] == 1


def test_pausing_names_the_enabled_version_and_not_the_head(api):
    receipt = api.publish()
    api.change(receipt, 0, "enable")
    newer = api.publish(receipt["schedule_id"], revision=1, configuration=every(60))
    assert code(api.change(newer, 1, "pause")) == (409, "version_conflict")
    paused = api.change(receipt, 1, "pause")
    assert (paused.status_code, paused.json()["generation"], paused.json()["enabled"]) == (201, 2, False)
    assert code(api.change(receipt, 2, "pause")) == (409, "already_paused")


def test_retirement_is_permanent_and_publishing_cannot_revive_it(api):
    receipt = api.publish()
    key = new()
    assert api.change(receipt, 0, "retire", key=key).status_code == 201
    assert code(api.post("/schedules", publication(receipt["schedule_id"], revision=1), key=new())) == (
        409,
        "schedule_retired",
    )
    assert code(api.change(receipt, 1, "enable")) == (409, "schedule_retired")
    # It erases neither versions nor receipts.
    assert api.get(f"/schedule-versions/{receipt['resource_id']}").json()["retired"] is True
    assert api.get(f"/receipts/{key}").json()["operation"] == "retire"


def test_retirement_takes_no_enabled_boolean(api):
    receipt = api.publish()
    answer = api.change(receipt, 0, "retire", enabled=False)
    assert code(answer) == (422, "invalid_schedule")
    assert answer.json()["errors"][0]["pointer"] == "/enabled"


def test_enabling_refuses_an_unreadable_input_and_tells_every_reason(api):
    receipt = api.publish()
    api.content.readable = api.content.writable = False
    try:
        answer = api.change(receipt, 0, "enable")
    finally:
        api.content.readable = api.content.writable = True
    assert code(answer) == (409, "input_unreadable")
    assert [(each["code"], each["evidence"]) for each in answer.json()["errors"]] == [
        ("input_unreadable", {"input": "in", "person": "ada"}),
        ("output_missing", {"output_target": "out"}),
    ]


def test_a_run_by_hand_obeys_overlap_and_is_started_after_the_commit(api):
    receipt = api.publish()
    assert code(api.change(receipt, 0, "trigger")) == (409, "not_enabled")
    api.change(receipt, 0, "enable")
    api.hands.calls.clear()
    key = new()
    first = api.change(receipt, 1, "trigger", key=key)
    assert first.status_code == 201
    ((what, run),) = api.hands.calls
    assert (what, run.run_id, run.trigger) == ("start_run", first.json()["run_id"], first.json()["trigger"])
    assert api.change(receipt, 1, "trigger", key=key).json()["run_id"] == run.run_id
    assert code(api.change(receipt, 1, "trigger")) == (409, "overlap")
    assert api.change(receipt, 1, "trigger", overlap="allow").status_code == 201
    shown = api.get(f"/runs/{run.run_id}").json()
    assert (shown["disposition"], shown["triggered_by"]) == ("staged", "ada")


# Inspect and recover an uncertain request


def test_list_accepts_1_to_50_and_defaults_to_25(api):
    for _ in range(30):
        api.publish()
    assert len(api.get("/schedules").json()["schedules"]) == 25
    assert len(api.get("/schedules?limit=1").json()["schedules"]) == 1
    assert api.get("/schedules?limit=50").status_code == 200
    for refused in ("0", "51", "-1", "1.0", "1_0", "%201", "x", "9" * 30):
        assert code(api.get(f"/schedules?limit={refused}")) == (422, "invalid_parameter"), refused


def test_list_continues_with_the_returned_next_cursor(api):
    api.publish()
    api.publish()
    first = api.get("/schedules?limit=1").json()
    second = api.get(f"/schedules?limit=1&after={first['next_cursor']}").json()
    assert first["next_cursor"] == first["schedules"][0]["schedule_id"]
    assert second["schedules"][0]["schedule_id"] > first["next_cursor"]


def test_retired_schedules_are_listed_where_that_is_asked_for(api):
    receipt = api.publish("00000000-0000-4000-8000-000000000000")
    api.change(receipt, 0, "retire")
    shown = {
        flag: api.get(f"/schedules?include_retired={flag}&limit=1").json()["schedules"] for flag in ("true", "false")
    }
    assert shown["true"][0]["schedule_id"] == receipt["schedule_id"]
    assert shown["false"][0]["schedule_id"] != receipt["schedule_id"]


def test_get_reads_the_current_head_and_get_version_an_exact_version(api):
    first = api.publish()
    second = api.publish(first["schedule_id"], revision=1, configuration=every(60))
    assert record(api, first)["reference"] == second["reference"]
    assert api.get(f"/schedule-versions/{first['resource_id']}").json()["reference"] == first["reference"]
    assert api.get(f"/schedules/{first['schedule_id']}?revision=1").json()["reference"] == first["reference"]


def test_the_same_body_and_key_return_the_same_receipt(api):
    body, key = publication(), new()
    first = api.post("/schedules", body, key=key)
    again = api.post("/schedules", body, key=key)
    assert (first.json()["replayed"], again.json()["replayed"]) == (False, True)
    assert {**again.json(), "replayed": False} == first.json()
    assert record(api, first.json())["head"]["revision"] == 1


def test_so_they_do_where_this_release_would_refuse_the_body(api, monkeypatch):
    body, key = publication(), new()
    first = api.post("/schedules", body, key=key)
    monkeypatch.setattr(schedules, "read_publication", refusing)
    assert api.post("/schedules", body, key=key).json() == {**first.json(), "replayed": True}
    assert api.post("/schedules", body, key=new()).status_code == 422


def test_the_same_key_with_another_body_is_refused(api):
    body, key = publication(), new()
    api.post("/schedules", body, key=key)
    other = {**body, "configuration": every(60)}
    assert code(api.post("/schedules", other, key=key)) == (409, "idempotency_key_reused")


def test_a_refused_request_does_not_use_up_its_key(api):
    key = new()
    assert api.post("/schedules", publication(revision=5), key=key).status_code == 409
    assert api.post("/schedules", publication(), key=key).status_code == 201


@pytest.mark.parametrize("key", ["plain", "a key, with signs: /?#%", "~" * 200, "é".encode().hex()])
def test_a_receipt_is_found_by_its_key(api, key):
    receipt = api.post("/schedules", publication(), key=key).json()
    assert api.get(f"/receipts/{quote(key, safe='')}").json() == {**receipt, "replayed": True}


def test_a_receipt_confirms_an_operation_while_the_activation_may_have_changed_afterward(api):
    receipt = api.publish()
    key = new()
    api.change(receipt, 0, "enable", key=key)
    api.change(receipt, 1, "pause")
    assert api.get(f"/receipts/{key}").json()["enabled"] is True
    assert record(api, receipt)["activation"]["enabled"] is False


def test_another_caller_of_the_organization_does_not_see_the_receipt(api):
    key = new()
    api.post("/schedules", publication(), key=key)
    assert code(api.get(f"/receipts/{key}", by=token(sub="grace"))) == (404, "receipt_not_found")


def test_a_reset_refuses_recovery(api):
    body, key = publication(), new()
    api.post("/schedules", body, key=key)
    _set_environment(api, reset_generation=2)
    try:
        assert code(api.post("/schedules", body, key=key)) == (409, "environment_reset")
    finally:
        _set_environment(api, reset_generation=1)


def test_revoked_authority_refuses_recovery(api):
    body, key = publication(), new()
    api.post("/schedules", body, key=key, by=token(sub="leaver"))
    assert code(api.post("/schedules", body, key=key, by=token(sub="leaver", scope=""))) == (403, "scope_missing")


# Read runtime observations


def test_every_record_and_directory_entry_includes_the_runtime_state_and_its_generation(api):
    receipt = api.publish("00000000-0000-4000-8000-000000000001")
    api.change(receipt, 0, "enable")
    listed = api.get("/schedules?limit=1").json()["schedules"][0]
    for shown in (listed, record(api, receipt), api.get(f"/schedule-versions/{receipt['resource_id']}").json()):
        assert shown["runtime"] == {"state": "pending", "generation": 1}


@pytest.mark.parametrize("state", ["active", "review", "error", "stopping", "paused"])
def test_what_the_controller_observed_is_shown_with_its_time(api, state):
    receipt = api.publish()
    api.change(receipt, 0, "enable")
    with api.catalog.writing() as connection:
        row = require_schedule(connection, schedule_key(SCOPE, receipt["schedule_id"])).row
        presence.observe(connection, row, generation=1, state=state, reason=None, now=NOON)
    assert record(api, receipt)["runtime"] == {"state": state, "generation": 1, "observed_at": "2026-11-30T12:00:00Z"}


def test_without_a_runtime_profile_everything_is_unconfigured_and_enabling_is_refused(api):
    receipt = api.publish()
    _set_environment(api, runtime_profile=None)
    try:
        assert record(api, receipt)["runtime"]["state"] == "unconfigured"
        assert code(api.change(receipt, 0, "enable")) == (409, "runtime_unconfigured")
    finally:
        _set_environment(api, runtime_profile="embedded")


def test_every_accepted_change_is_an_event_with_who_and_from_where_to_where(api):
    receipt = api.publish()
    api.change(receipt, 0, "enable")
    api.change(receipt, 1, "pause", by=token(sub="grace"))
    page = api.get(f"/schedules/{receipt['schedule_id']}/events").json()
    assert [(each["kind"], each["actor"], each["generation"]) for each in page["events"]] == [
        ("published", "ada", None),
        ("enabled", "ada", 1),
        ("paused", "grace", 2),
    ]
    assert page["events"][2]["details"]["from"]["generation"] == 1


def test_an_ended_activation_is_told_so_after_the_commit(api):
    receipt = api.publish()
    api.change(receipt, 0, "enable")
    api.hands.calls.clear()
    api.change(receipt, 1, "pause")
    api.change(receipt, 2, "retire")
    assert api.hands.calls[0] == ("nudge", (1, "pause"))


def test_publication_reads_and_changes_work_while_temporal_is_down(catalog):
    down = Api(catalog)
    down.hands.reachable = False
    try:
        receipt = down.publish()
        assert down.change(receipt, 0, "enable").status_code == 201
        assert down.change(receipt, 1, "trigger").status_code == 201
        assert down.change(receipt, 1, "pause").status_code == 201
        assert record(down, receipt)["activation"]["enabled"] is False
    finally:
        down.close()


def _set_environment(api, **values):
    with api.catalog.writing() as connection:
        connection.execute(update(environments).where(environments.c.org_id == SCOPE.org_id).values(**values))
