"""The contract on scheduling agent runs, sentence by sentence: what a caller can do, and what a caller is refused.

A sentence that is held wholly by tests elsewhere stands in HELD with their names. Every other one has its test below, whose
docstring quotes it.
"""

import ast
from pathlib import Path

import pytest

from horarium.catalog import presence
from horarium.catalog.environments import ensure_environment
from horarium.catalog.schedules import require_schedule
from horarium.control.activation import Reviewed, send_to_review
from horarium.control.activation import present as found_by_change
from horarium.schedule.identity import Scope, schedule_key
from horarium.schedule.ledger import Disposition
from tests.api.house import EXPECTED, make_catalog, new, publication, review, set_workers, token
from tests.control.desk import NOON, SCOPE, Desk, at, every

TESTS = Path(__file__).parents[1]

HELD = {
    # Schedule agent runs
    "A schedule version binds a name, calendar, overlap policy and the exact request used to admit an agent run.": (
        "control/test_records.py::test_the_record_has_exactly_the_parts_of_the_contract",
        "schedule/test_configuration.py::test_a_fault_is_told_with_its_place_and_code_and_alone",
    ),
    "It does not enable execution.": (
        "api/test_contract.py::test_publication_creates_an_immutable_version_and_does_not_enable_execution",
    ),
    "enabling is refused while the execution service is unavailable.": (
        "api/test_contract.py::test_enabling_is_refused_while_the_execution_service_is_unavailable",
        "control/test_operations.py::test_it_is_refused_while_a_runtime_worker_is_missing",
    ),
    # Publish the reviewed configuration
    "Test simulation, paid Test Compute and Live retain their normal authority and funding requirements.": (
        "control/test_rules.py::test_each_usage_class_fits_one_mode",
        "control/test_rules.py::test_a_simulation_costs_nothing",
        "control/test_rules.py::test_a_test_run_needs_no_approval",
        "control/test_scheduled_authority.py::test_a_live_schedule_outlasts_no_approval_and_a_new_version_has_none",
        "schedule/test_configuration.py::test_a_fault_is_told_with_its_place_and_code_and_alone",
    ),
    "A calendar does not extend a grant, consent or content lifetime.": (
        "control/test_scheduled_authority.py::test_a_calendar_that_goes_on_for_years_extends_nothing_by_a_second",
    ),
    "A scheduled run pays the way its budget pays: credits, or the wallet a budget is paid from.": (
        "control/test_money.py::test_a_run_that_was_begun_costs_what_it_reports_and_its_reservation_where_it_reports_nothing",
        "control/test_money.py::test_a_wallet_that_owes_its_limit_pays_again_once_it_was_collected_from",
        "control/test_rules.py::test_credits_need_no_wallet_and_a_wallet_that_is_gone_pays_nothing",
    ),
    "Each occurrence is admitted against the wallet like a run started by hand,": (
        "control/test_scheduled_authority.py::test_an_occurrence_is_admitted_against_the_wallet_like_a_run_by_hand",
    ),
    "so an occurrence is refused while the wallet owes its unpaid limit or has a failed collection.": (
        "control/test_scheduled_authority.py::test_an_occurrence_is_admitted_against_the_wallet_like_a_run_by_hand",
        "control/test_rules.py::test_a_wallet_that_owes_its_limit_pays_no_more",
        "end_to_end/test_every_reason.py::test_a_fact_that_changes_refuses_the_next_occurrence_by_its_code_and_the_schedule_goes_on",
    ),
    "A schedule cannot pay its runs with x402, and cannot use a budget paid per run.": (
        "control/test_scheduled_authority.py::test_no_schedule_pays_with_x402_or_per_run_neither_at_enabling_nor_later",
    ),
    "Each scheduled run reads the input as the person who enabled the schedule, so the agent needs no share or grant": (
        "control/test_scheduled_authority.py::test_whoever_enables_has_to_be_able_to_read_the_input_then_and_at_each_occurrence",
        "api/test_inputs.py::test_a_run_reads_its_input_with_its_token",
        "control/test_reading.py::test_a_platform_s_authority_is_asked_with_the_identity_of_the_person",
    ),
    "Enabling checks that the person can read the input, and every occurrence checks it again.": (
        "control/test_scheduled_authority.py::test_whoever_enables_has_to_be_able_to_read_the_input_then_and_at_each_occurrence",
    ),
    "If they lose access or leave, a run already started stops reading it and later occurrences are refused.": (
        "api/test_inputs.py::test_what_is_lost_stops_the_next_read_and_later_occurrences_and_is_written_down_once",
        "control/test_reading.py::test_a_refused_read_is_an_event_that_says_who_may_not_and_why",
    ),
    "Use expected_revision: 0 for its first version, or the current head revision when publishing a replacement.": (
        "api/test_contract.py::test_the_first_version_expects_revision_zero_and_a_replacement_the_head",
    ),
    "A replacement does not silently replace an enabled version.": (
        "api/test_contract.py::test_a_replacement_does_not_silently_replace_an_enabled_version",
    ),
    "The calendar requires both calendars and intervals arrays. Use [] for an unused family; null is invalid.": (
        "calendar/test_documents.py::test_a_bad_document_is_refused_at_its_place",
        "calendar/test_documents.py::test_the_ends_of_every_bound_are_accepted",
        "api/test_contract.py::test_both_families_of_rules_are_required_and_null_is_invalid",
    ),
    "Supply an exact IANA timezone name and canonical UTC start_at and end_at timestamps ending in Z.": (
        "calendar/test_documents.py::test_a_bad_document_is_refused_at_its_place",
        "calendar/test_documents.py::test_the_ends_of_every_bound_are_accepted",
    ),
    "The bounds are inclusive.": ("calendar/test_known_answers.py::test_both_bounds_are_part_of_the_calendar",),
    "Local times are evaluated in the named timezone, including its daylight-saving transitions;": (
        "calendar/test_known_answers.py::test_a_canonical_rule_selects_what_the_wall_clock_shows",
    ),
    "your computer's timezone does not determine occurrences.": (
        "calendar/test_zones.py::test_neither_the_hosts_zone_nor_its_zone_files_change_an_instant",
    ),
    "A range has explicit integer start, end and step.": (
        "calendar/test_documents.py::test_a_bad_document_is_refused_at_its_place",
    ),
    "Fields within a rule must all match; matching any rule selects an occurrence.": (
        "calendar/test_known_answers.py::test_a_canonical_rule_selects_what_the_wall_clock_shows",
        "calendar/test_known_answers.py::test_what_two_rules_select_is_due_once",
    ),
    "Ranges must be ordered, disjoint and within their field bounds. Each field allows at most 64 ranges.": (
        "calendar/test_documents.py::test_a_bad_document_is_refused_at_its_place",
        "calendar/test_documents.py::test_the_ends_of_every_bound_are_accepted",
    ),
    "Calendar and interval rules together allow 1-32 entries.": (
        "calendar/test_documents.py::test_both_lists_empty_is_refused",
        "calendar/test_documents.py::test_a_bad_document_is_refused_at_its_place",
        "calendar/test_documents.py::test_the_ends_of_every_bound_are_accepted",
    ),
    "Interval rules specify every_seconds from 1 through 316,224,000 and offset_seconds from zero to less than it.": (
        "calendar/test_documents.py::test_a_bad_document_is_refused_at_its_place",
        "calendar/test_documents.py::test_the_ends_of_every_bound_are_accepted",
    ),
    "They select UTC instants at epoch plus offset plus whole intervals, within the explicit time bounds.": (
        "calendar/test_known_answers.py::test_intervals_count_from_1970_in_utc",
        "calendar/test_known_answers.py::test_both_bounds_are_part_of_the_calendar",
    ),
    "Duplicate rules are refused.": (
        "calendar/test_documents.py::test_a_bad_document_is_refused_at_its_place",
        "calendar/test_documents.py::test_the_order_of_members_does_not_hide_a_duplicate",
    ),
    "The policy selects skip, buffer_one, buffer_all or allow for overlapping occurrences.": (
        "schedule/test_configuration.py::test_what_lies_on_a_bound_is_accepted",
        "schedule/test_configuration.py::test_a_fault_is_told_with_its_place_and_code_and_alone",
        "workflows/test_overlap.py::test_every_policy_decides_as_its_table_says",
    ),
    "catchup_window_seconds must be 10-86,400; older missed occurrences are outside that window.": (
        "schedule/test_configuration.py::test_what_lies_on_a_bound_is_accepted",
        "schedule/test_configuration.py::test_a_fault_is_told_with_its_place_and_code_and_alone",
        "control/test_admission.py::test_the_window_is_inclusive_at_admission_too",
        "schedule/test_plan.py::test_the_judge",
    ),
    "Set pause_on_failure explicitly.": (
        "schedule/test_configuration.py::test_a_fault_is_told_with_its_place_and_code_and_alone",
    ),
    "Python provides client.schedules.publish, get_version, get, list, set_enabled and retire.": (
        "client/test_with_the_api.py::test_a_schedule_is_published_reviewed_enabled_run_paused_and_retired",
        "client/test_with_the_api.py::test_pages_are_walked_to_their_end",
    ),
    "SDKs snapshot requests before asynchronous authentication": (
        "client/test_requests.py::test_a_request_is_copied_before_the_token_is_awaited",
    ),
    "and never retry these mutations automatically.": (
        "client/test_failures.py::test_a_server_that_drops_its_response_has_seen_exactly_one_request",
        "client/test_failures.py::test_a_mutation_whose_answer_is_lost_is_sent_once_and_its_outcome_unknown",
    ),
    # Enable, pause or retire
    "Schedule operations require synapse:schedules:write.": (
        "api/test_contract.py::test_schedule_operations_require_the_scope_reads_included",
        "api/test_tenancy.py::test_no_route_answers_without_the_scope",
    ),
    "Publication and reads accept an appropriately scoped key or human session.": (
        "api/test_contract.py::test_publication_and_reads_accept_a_key_or_a_human_session",
    ),
    "Enable, pause and retire require a human session.": (
        "api/test_contract.py::test_enable_pause_retire_and_run_now_require_a_human_session",
    ),
    "Review the exact version reference and activation generation before changing activation.": (
        "api/test_contract.py::test_enabling_names_the_exact_version_and_generation",
        "control/test_operations.py::test_whoever_reviewed_something_else_changes_nothing",
    ),
    "Use generation zero when no activation exists.": (
        "api/test_contract.py::test_generation_zero_stands_for_no_activation",
    ),
    "An enabled version can differ from the publication head: inspect activation.version before pausing it.": (
        "api/test_contract.py::test_pausing_names_the_enabled_version_and_not_the_head",
    ),
    "Publishing another version cannot revive a retired schedule.": (
        "api/test_contract.py::test_retirement_is_permanent_and_publishing_cannot_revive_it",
    ),
    # Inspect and recover an uncertain request
    "list accepts limit from 1-50, an optional after schedule UUID and include_retired. The default limit is 25.": (
        "api/test_contract.py::test_list_accepts_1_to_50_and_defaults_to_25",
        "api/test_contract.py::test_retired_schedules_are_listed_where_that_is_asked_for",
        "api/test_limits.py::test_a_parameter_is_refused_with_its_place",
    ),
    "Continue with the returned next_cursor.": (
        "api/test_contract.py::test_list_continues_with_the_returned_next_cursor",
        "api/test_pages.py::test_a_thousand_schedules_under_concurrent_insertion_are_each_listed_once",
    ),
    "get reads the current publication head; getVersion reads an exact immutable version.": (
        "api/test_contract.py::test_get_reads_the_current_head_and_get_version_an_exact_version",
    ),
    "Keep the reviewed request, selected account and environment, and caller-generated idempotency key": (
        "api/test_openapi.py::test_the_cautions_of_the_contract_stand_where_a_caller_reads",
        "client/test_with_the_api.py::test_a_lost_answer_is_recovered_by_the_same_key_and_body",
    ),
    "Do not rebuild the request from a newer head": (
        "api/test_contract.py::test_the_same_key_with_another_body_is_refused",
    ),
    "A reset or revoked authority can refuse recovery; retain the uncertain request for investigation.": (
        "api/test_contract.py::test_a_reset_refuses_recovery",
        "api/test_contract.py::test_revoked_authority_refuses_recovery",
        "control/test_receipts.py::test_lost_authority_refuses_to_recover_a_request",
    ),
    "A completed receipt confirms that operation, while current activation may have changed afterward.": (
        "api/test_contract.py::test_a_receipt_confirms_an_operation_while_the_activation_may_have_changed_afterward",
    ),
    # Read runtime observations
    "Every record and directory entry includes runtime.state, runtime.generation": (
        "api/test_contract.py::test_every_record_and_directory_entry_includes_the_runtime_state_and_its_generation",
    ),
    "and an optional runtime.observed_at.": (
        "api/test_contract.py::test_what_the_controller_observed_is_shown_with_its_time",
    ),
    "unconfigured: No runtime profile is enrolled for the environment mode, even if activation metadata exists.": (
        "control/test_records.py::test_the_runtime_state_is_of_the_present_generation",
        "api/test_contract.py::test_without_a_runtime_profile_everything_is_unconfigured_and_enabling_is_refused",
    ),
    "pending: The controller has not established active execution for the requested generation.": (
        "control/test_records.py::test_the_runtime_state_is_of_the_present_generation",
    ),
    "active: The controller reports the generation active;": (
        "control/test_records.py::test_the_runtime_state_is_of_the_present_generation",
    ),
    "each occurrence still needs current admission authority.": (
        "workflows/test_runs.py::test_what_was_there_at_enabling_is_looked_at_again_at_the_occurrence",
    ),
    "paused: The runtime is stopped, including a never-activated schedule at generation zero.": (
        "control/test_records.py::test_the_runtime_state_is_of_the_present_generation",
    ),
    "stopping: Pause or retirement is recorded, but native cleanup remains pending.": (
        "control/test_records.py::test_the_runtime_state_is_of_the_present_generation",
        "control/test_records.py::test_a_retired_schedule_is_listed_only_where_asked_for",
    ),
    "error: The controller could not establish the requested runtime state.": (
        "controller/test_isolation.py::test_a_schedule_that_cannot_be_looked_at_is_in_error_until_it_can_be",
    ),
    "The optional observation time is the last controller check, including a failed attempt.": (
        "catalog/test_query_plans.py::test_a_clean_sweep_is_the_last_check_of_what_did_not_change",
        "controller/test_isolation.py::test_a_schedule_that_cannot_be_looked_at_is_in_error_until_it_can_be",
    ),
    "It is not proof of successful execution.": (
        "api/test_openapi.py::test_the_cautions_of_the_contract_stand_where_a_caller_reads",
    ),
    "No occurrence preview is implied by these fields.": (
        "control/test_records.py::test_the_record_has_exactly_the_parts_of_the_contract",
        "api/test_openapi.py::test_the_cautions_of_the_contract_stand_where_a_caller_reads",
    ),
}
"""What holds a sentence: tests by their file below `tests` and their name. Two halves of a sentence may stand apart."""


def code(answer):
    return answer.status_code, answer.json().get("code")


def pointers(answer):
    assert code(answer) == (422, "invalid_schedule"), answer.text
    return [each["pointer"] for each in answer.json()["errors"]]


def record(api, receipt):
    return api.get(f"/schedules/{receipt['schedule_id']}").json()


def version(api, receipt):
    return api.get(f"/schedule-versions/{receipt['resource_id']}").json()


def calendar(**changed):
    """A canonical calendar of one rule: at midnight of every day in UTC, unless told otherwise."""
    rule = {
        "second": [span(0)],
        "minute": [span(0)],
        "hour": [span(0)],
        "day_of_month": [span(1, 31)],
        "month": [span(1, 12)],
        "day_of_week": [span(0, 6)],
        **changed,
    }
    bounds = {"start_at": "1970-01-01T00:00:00Z", "end_at": "9999-12-31T23:59:59Z"}
    return {"timezone": "UTC", "calendars": [rule], "intervals": [], **bounds}


def span(start, end=None, step=1):
    return {"start": start, "end": start if end is None else end, "step": step}


def due(api, spec, first, last):
    answer = api.post("/schedule-previews", {"spec": spec, "from": first, "until": last})
    assert answer.status_code == 200, answer.text
    return answer.json()["occurrences"]


@pytest.fixture(scope="module")
def elsewhere(api):
    """Another environment of the same organization, whose two numbers happen to be the same."""
    with api.catalog.writing() as connection:
        scope = Scope(org_id=SCOPE.org_id, environment_id="elsewhere")
        ensure_environment(connection, scope, mode="simulation", runtime_profile="embedded")
    return "!/v1/organizations/acme/environments/elsewhere"


def names_in(path):
    found = (node for node in ast.walk(ast.parse((TESTS / path).read_text())))
    return {node.name for node in found if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize("sentence", HELD)
def test_the_tests_that_hold_a_sentence_are_there(sentence):
    missing = [each for each in HELD[sentence] if each.partition("::")[2] not in names_in(each.partition("::")[0])]
    assert missing == []


# Schedule agent runs


def test_a_version_stays_as_it_was_published_whatever_becomes_of_its_schedule(api):
    """Publication creates an immutable version."""
    receipt = api.publish()
    own = ("resource_id", "reference", "configuration", "published_at", "published_by")
    before = {name: version(api, receipt)[name] for name in own}
    for method in ("PUT", "PATCH", "DELETE", "POST"):
        path = f"/schedule-versions/{receipt['resource_id']}"
        assert code(api.ask(method, path, json={}, key=new())) == (405, "method_not_allowed")
    api.publish(receipt["schedule_id"], revision=1, configuration=every(60), by=token(sub="grace"))
    for generation, what in enumerate(("enable", "pause", "retire")):
        assert api.change(receipt, generation, what, by=token(sub="grace")).status_code == 201
        assert {name: version(api, receipt)[name] for name in own} == before


@pytest.mark.parametrize("missing", presence.ROLES)
def test_every_read_reports_execution_ready_which_needs_both_workers(api, missing):
    """Schedule reads report execution_ready. It reports whether both runtime workers started."""
    receipt = api.publish()

    def reported():
        return {
            record(api, receipt)["execution_ready"],
            version(api, receipt)["execution_ready"],
            api.get("").json()["execution_ready"],
            *(each["execution_ready"] for each in api.get("/schedules").json()["schedules"]),
        }

    with api.catalog.writing() as connection:
        presence.leave(connection, instance=missing)
    try:
        assert reported() == {False}
    finally:
        set_workers(api.catalog, present=True)
    assert reported() == {True}


def test_execution_is_ready_though_no_schedule_is_active_and_no_run_was_ever_completed(api):
    """Availability does not establish that a worker has completed a run, nor that this schedule is active."""
    receipt = api.publish()
    shown = record(api, receipt)
    assert (shown["execution_ready"], shown["runtime"]["state"], shown["activation"]) == (True, "paused", None)
    assert api.get(f"/schedules/{receipt['schedule_id']}/occurrences").json()["occurrences"] == []


# Publish the reviewed configuration


@pytest.mark.parametrize("part", ["agent_version", "input", "output_target", "grants", "budget_id", "usage_class"])
def test_a_run_request_names_each_of_its_six_parts(api, part):
    """Prepare a run request with its exact agent version, input reference, output target, grants, budget and usage class."""
    configuration = every(60)
    del configuration["run"][part]
    answer = api.post("/schedules", publication(configuration=configuration), key=new())
    assert pointers(answer) == [f"/configuration/run/{part}"]


def test_publication_includes_the_environments_numbers_as_they_were_read(api):
    """Read the environment before publication; include its expected_environment_epoch and expected_reset_generation."""
    environment = api.get("").json()
    read = {
        "expected_environment_epoch": environment["authority_epoch"],
        "expected_reset_generation": environment["reset_generation"],
    }
    body = publication(**read)
    for name, refusal in (
        ("expected_environment_epoch", "environment_epoch_changed"),
        ("expected_reset_generation", "environment_reset"),
    ):
        for stale in (read[name] - 1, read[name] + 1):
            assert code(api.post("/schedules", {**body, name: stale}, key=new())) == (409, refusal)
            assert api.get(f"/schedules/{body['schedule_id']}").status_code == 404
    assert api.post("/schedules", body, key=new()).status_code == 201


def test_the_schedules_uuid_is_the_callers_choice(api):
    """Choose a schedule UUID."""
    chosen = new()
    assert api.publish(chosen)["schedule_id"] == chosen
    for other in ("daily-review", "", chosen[:-1], "{" + chosen + "}", chosen.replace("-", ""), None, 7):
        body = {**publication(), "schedule_id": other}
        assert pointers(api.post("/schedules", body, key=new())) == ["/schedule_id"], other


def test_a_calendar_rule_names_six_fields_and_without_a_year_permits_every_year(api):
    """Each rule requires second, minute, hour, day_of_month, month and day_of_week. year is optional."""
    for field in ("second", "minute", "hour", "day_of_month", "month", "day_of_week"):
        spec = calendar()
        del spec["calendars"][0][field]
        answer = api.post("/schedule-previews", {"spec": spec})
        assert pointers(answer) == [f"/spec/calendars/0/{field}"]
    new_year = calendar(day_of_month=[span(1)], month=[span(1)])
    for year in ("1970", "2027", "2100", "9999"):
        assert due(api, new_year, f"{year}-01-01T00:00:00Z", f"{year}-12-31T00:00:00Z") == [f"{year}-01-01T00:00:00Z"]
    only = calendar(day_of_month=[span(1)], month=[span(1)], year=[span(2028)])
    assert due(api, only, "2027-01-01T00:00:00Z", "2030-12-31T00:00:00Z") == ["2028-01-01T00:00:00Z"]


def test_seconds_from_0_to_59_by_15_are_0_15_30_and_45(api):
    """Bounds are inclusive: seconds 0..59 with step 15 select 0, 15, 30 and 45."""
    by_15 = calendar(second=[span(0, 59, 15)])
    minute = [f"2027-01-31T00:00:{second:02}Z" for second in (0, 15, 30, 45)]
    assert due(api, by_15, "2027-01-31T00:00:00Z", "2027-01-31T00:00:59Z") == minute
    to_45 = calendar(second=[span(0, 45, 15)])
    assert due(api, to_45, "2027-01-31T00:00:00Z", "2027-01-31T00:00:59Z") == minute


@pytest.mark.parametrize("weekday", range(7))
def test_weekdays_count_from_sunday(api, weekday):
    """Weekdays use Sunday 0 through Saturday 6. (31 January 2027 is a Sunday.)"""
    on = due(api, calendar(day_of_week=[span(weekday)]), "2027-01-31T00:00:00Z", "2027-02-06T23:59:59Z")
    assert on == [f"2027-{'01-31' if weekday == 0 else f'02-0{weekday}'}T00:00:00Z"]


def test_buffered_work_needs_authority_that_is_valid_when_its_execution_is_attempted(tmp_path):
    """Buffered work still needs valid authority when execution is attempted."""
    catalog = make_catalog(tmp_path)
    desk = Desk(catalog)
    loop = desk.enabled(every(60, overlap="buffer_one"))
    loop.step_at(57)
    desk.now = at(60)
    assert desk.admit(loop.run(60)).outcome == "admitted"
    desk.begin(loop.run(60))
    loop.step_at(121)
    assert ("buffered", 120, 120, 1) in desk.told()
    desk.content.readable = False
    desk.now = at(130)
    desk.settle(loop.run(60))
    loop.step_at(131)
    assert desk.admit(loop.run(120)).outcome == "refused"
    refused = next(entry for entry in desk.entries() if entry.first_at == at(120))
    assert (refused.disposition, str(refused.reason)) == (Disposition.REFUSED, "input_unreadable")
    catalog.close()


# Enable, pause or retire


def test_pausing_and_retiring_work_while_nothing_can_be_enabled(api):
    """Enabling also requires execution_ready: true. What stops a schedule must not."""
    receipt = api.publish()
    assert api.change(receipt, 0, "enable").status_code == 201
    set_workers(api.catalog, present=False)
    try:
        assert code(api.change(receipt, 1, "enable")) == (503, "execution_unavailable")
        assert api.change(receipt, 1, "pause").status_code == 201
        assert api.change(receipt, 2, "retire").status_code == 201
    finally:
        set_workers(api.catalog, present=True)


PARTS = ("version", "expected_generation", *EXPECTED)


@pytest.mark.parametrize(("path", "part"), [("activation", part) for part in (*PARTS, "enabled")])
def test_a_change_of_activation_submits_every_part(api, path, part):
    """Submit version, expected_generation, both environment preconditions and the explicit enabled boolean."""
    receipt = api.publish()
    body = {**review(receipt, 0), "enabled": True}
    del body[part]
    assert pointers(api.post(f"/schedules/{receipt['schedule_id']}/{path}", body, key=new())) == [f"/{part}"]
    assert record(api, receipt)["activation"] is None


@pytest.mark.parametrize("part", [*PARTS, "enabled"])
def test_retirement_submits_the_same_preconditions_without_enabled(api, part):
    """Retirement submits the same exact reference and generation preconditions without enabled."""
    receipt = api.publish()
    body = review(receipt, 0)
    if part == "enabled":
        body["enabled"] = False
    else:
        del body[part]
    path = f"/schedules/{receipt['schedule_id']}/retirement"
    assert pointers(api.post(path, body, key=new())) == [f"/{part}"]
    assert record(api, receipt)["retired"] is False


def test_retirement_erases_no_version_no_receipt_no_event_and_no_line_of_the_ledger(api):
    """It permanently retires that schedule identity; it does not erase historical versions or receipts."""
    keys = [new() for _ in range(4)]
    schedule_id = new()
    first = api.post("/schedules", publication(schedule_id), key=keys[0]).json()
    second = api.post("/schedules", publication(schedule_id, revision=1), key=keys[1]).json()
    api.change(first, 0, "enable", key=keys[2])
    run = api.change(first, 1, "trigger", key=keys[3]).json()
    receipts = [api.get(f"/receipts/{key}").json() for key in keys]
    events = api.get(f"/schedules/{schedule_id}/events").json()["events"]
    assert api.change(first, 1, "retire").status_code == 201
    for published in (first, second):
        kept = version(api, published)
        assert (kept["reference"], kept["retired"]) == (published["reference"], True)
    assert record(api, first)["reference"] == second["reference"]
    assert [api.get(f"/receipts/{key}").json() for key in keys] == receipts
    assert api.get(f"/schedules/{schedule_id}/events").json()["events"][: len(events)] == events
    assert api.get(f"/runs/{run['run_id']}").status_code == 200
    for what in ("enable", "pause", "retire", "trigger"):
        assert code(api.change(first, 2, what)) == (409, "schedule_retired")


# Inspect and recover an uncertain request


def test_a_request_is_recovered_for_the_same_account_only(api):
    """Explicitly retry the same body and key only after confirming the same account: another one's is another request."""
    body, key = publication(), new()
    first = api.post("/schedules", body, key=key).json()
    assert code(api.post("/schedules", body, key=key, by=token(sub="grace"))) == (409, "revision_conflict")
    again = api.post("/schedules", body, key=key).json()
    assert (again["receipt_id"], again["replayed"]) == (first["receipt_id"], True)


def test_a_request_is_recovered_in_the_same_environment_only(api, elsewhere):
    """Retry only after confirming the same scope: in another environment the request is carried out, as a new one."""
    body, key = publication(), new()
    first = api.post("/schedules", body, key=key).json()
    assert code(api.get(f"{elsewhere}/receipts/{key}")) == (404, "receipt_not_found")
    other = api.post(f"{elsewhere}/schedules", body, key=key)
    assert (other.status_code, other.json()["replayed"]) == (201, False)
    assert other.json()["resource_id"] != first["resource_id"]


def test_a_replaced_key_makes_a_new_request_which_its_precondition_refuses(api):
    """Do not replace the key: the same body under another one recovers nothing."""
    body = publication()
    first = api.post("/schedules", body, key=new()).json()
    assert code(api.post("/schedules", body, key=new())) == (409, "revision_conflict")
    assert api.change(first, 0, "enable").status_code == 201
    assert code(api.change(first, 0, "enable")) == (409, "generation_conflict")


def test_a_recovered_publication_enables_nothing(api):
    """Do not automatically enable after a recovered publication: nothing does."""
    body, key = publication(), new()
    first = api.post("/schedules", body, key=key).json()
    assert api.post("/schedules", body, key=key).json()["replayed"] is True
    shown = record(api, first)
    assert (shown["activation"], shown["runtime"]) == (None, {"state": "paused", "generation": 0})


def test_a_recovered_activation_does_not_bring_back_what_was_changed_since(api):
    """Inspect current state: to retry an activation that was carried out and then paused leaves it paused."""
    receipt, key = api.publish(), new()
    api.change(receipt, 0, "enable", key=key)
    api.change(receipt, 1, "pause")
    again = api.change(receipt, 0, "enable", key=key).json()
    assert (again["generation"], again["replayed"]) == (1, True)
    activation = record(api, receipt)["activation"]
    assert (activation["generation"], activation["enabled"]) == (2, False)


# Read runtime observations


def test_the_runtimes_generation_is_the_activations_and_can_be_of_an_older_version_than_the_head(api):
    """The generation is the canonical activation generation. It can refer to an older version than the head."""
    receipt = api.publish()
    api.change(receipt, 0, "enable")
    api.change(receipt, 1, "enable")
    newer = api.publish(receipt["schedule_id"], revision=1, configuration=every(60))
    listed = api.get(f"/schedules?limit=1&after={_just_before(receipt['schedule_id'])}").json()["schedules"][0]
    for shown in (record(api, receipt), listed, version(api, newer), version(api, receipt)):
        assert shown["runtime"]["generation"] == shown["activation"]["generation"] == 2
        assert shown["activation"]["version"] == receipt["reference"]
        assert shown["head"] == newer["reference"]


def test_a_schedule_in_review_resumes_by_a_new_explicit_generation_and_by_nothing_else(api):
    """A new explicit activation generation is required; it does not resume automatically. Inspect fresh metadata before."""
    receipt = api.publish()
    api.change(receipt, 0, "enable")
    key = schedule_key(SCOPE, receipt["schedule_id"])
    with api.catalog.writing() as connection:
        _, schedule, activation = found_by_change(connection, key, Reviewed())
        send_to_review(connection, schedule, activation, because="run_failed: it failed.", by="system", now=NOON)
    newer = api.publish(receipt["schedule_id"], revision=1)
    with api.catalog.writing() as connection:
        row = require_schedule(connection, key).row
        presence.observe(connection, row, generation=1, state="active", reason=None, now=NOON)
    assert record(api, receipt)["runtime"]["state"] == "review"
    assert code(api.change(newer, 0, "enable")) == (409, "generation_conflict")
    assert api.change(newer, 1, "enable").json()["generation"] == 2
    assert record(api, receipt)["runtime"] == {"state": "pending", "generation": 2}


def _just_before(schedule_id):
    """The UUID before this one."""
    number = int(schedule_id.replace("-", ""), 16) - 1
    text = f"{number:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
