"""The contract on cron profiles, decision by decision and consequence by consequence: what holds it, or what answers it instead.

A sentence that is held by tests elsewhere stands in HELD with their names. What the contract decides about a scheduler that ticks
over Redis, and this design answers in another way, stands in ANSWERED with the answer and the tests that hold that. Every
other one has its test below, whose docstring quotes it.
"""

import functools

import pytest

from horarium.agents import Agent, AgentReport, CronStartEvent, RunContext, UserMessageEvent, handles
from horarium.agents.cron import CronInput, CronSchedule
from horarium.agents.events import RunBrief
from horarium.catalog.tables import metadata
from horarium.schedule.ceilings import EVERY_MINUTE, Ceilings
from tests.api.house import new
from tests.api.profile_house import (
    CRON,
    HERE,
    ROOT,
    RUN,
    at,
    furnish_profiles,
    report,
    submission,
)
from tests.api.test_seed_000 import names_in
from tests.control.desk import SCOPE
from tests.control.operators import Operator

HELD = {
    # Decision drivers
    "Opt-in must be impossible to get half-right: handling without registering, or the reverse, is not representable.": (
        "agents/test_agent.py::test_capabilities_are_derived_from_the_handled_events",
        "agents/test_agent.py::test_what_is_no_agent_or_handles_nothing_is_refused_by_the_runner",
        "api/test_seed_004.py::test_a_flag_makes_nothing_schedulable",
    ),
    "No new execution-identity concept: no 'run as user' for unattended runs.": (
        "control/test_profiles.py::test_who_saved_it_may_have_left_since",
        "control/test_threads.py::test_a_run_by_the_calendar_has_no_user",
        "end_to_end/test_profiles.py::the_calendar_starts_it_as_the_system_and_a_person_as_that_person",
    ),
    "Correct under horizontal scaling, including a replica dying mid-tick.": (
        "end_to_end/test_killed_at_a_point.py::test_a_schedule_worker_that_dies_between_commit_and_start_has_its_run_started_by_the_next",
        "end_to_end/test_killed_at_a_point.py::test_a_schedule_worker_that_dies_between_start_and_history_starts_nothing_twice",
        "end_to_end/test_on_a_real_server.py::test_two_of_everything_do_nothing_twice_and_each_may_be_stopped_amid_its_work",
        "chaos/test_one_minute.py::test_whatever_dies_for_a_minute_every_promise_holds_afterwards",
    ),
    # 1. Schedulability is derived from a new CronStartEvent
    "An agent becomes schedulable by handling CronStartEvent, exactly as it becomes conversational by UserMessageEvent.": (
        "agents/test_agent.py::test_capabilities_are_derived_from_the_handled_events",
        "agents/test_serving.py::test_an_event_that_derives_from_the_calendars_makes_schedulable_and_is_what_starts_the_runs",
        "api/test_profiles.py::test_classes_say_what_they_can_do_by_what_they_handle",
    ),
    "AgentRunner derives is_schedulable during discovery; it is persisted and surfaced through the agent DTOs.": (
        "agents/test_agent.py::test_discovery_says_everything_about_an_agent",
        "control/test_profiles.py::test_versions_of_one_class_are_one_and_can_what_the_newest_can",
        "api/test_profiles.py::test_classes_say_what_they_can_do_by_what_they_handle",
        "client/test_profiles.py::test_a_profile_is_saved_run_cleared_and_deleted",
        "cli/test_profiles.py::test_classes_show_which_agents_reported_themselves",
    ),
    "A schedulable agent that handles no UserMessageEvent stays out of the chat UI for free.": (
        "control/test_profiles.py::test_a_class_that_handles_no_user_message_is_no_conversational_one",
        "api/test_profiles.py::test_a_class_without_a_user_message_is_absent_from_the_conversational_list",
    ),
    # 2. The schedule is per-profile configuration, owned by the platform
    "The five cron positions plus an IANA timezone form CronSchedule, a data-mode model paired with CronInput.": (
        "schedule/test_profiles.py::test_six_texts_are_a_schedule",
        "agents/test_cron.py::test_the_form_element_is_one_object_that_json_holds",
        "agents/test_cron.py::test_every_preset_is_a_whole_schedule_on_the_clock_of_its_zone",
    ),
    "The field is cron, it lives on the AgentConfig base, and its value lands in config_data like every other setting.": (
        "agents/test_config.py::test_the_schedules_field_is_the_platforms_own",
        "control/test_profiles.py::test_it_is_shown_as_it_came_with_how_it_stands",
        "control/test_profiles.py::test_an_agent_is_told_its_profiles_configuration_and_the_calendars_event",
    ),
    "Positions are stored separately so the UI can offer per-position editing and presets without parsing.": (
        "agents/test_cron.py::test_the_bounds_and_names_that_are_shown_are_those_that_the_calendar_takes",
        "agents/test_config.py::test_a_published_element_says_what_a_user_interface_needs",
    ),
    "An invalid position is rejected at the field that caused it.": (
        "schedule/test_profiles.py::test_a_bad_position_is_refused_at_itself",
        "agents/test_cron.py::test_a_bad_position_is_refused_at_itself_with_the_calendars_own_sentence",
        "api/test_profiles.py::test_what_is_wrong_is_refused_with_400_at_its_place",
        "cli/test_profiles.py::test_every_fault_of_a_file_is_named_with_the_file_and_its_place",
    ),
    "Every position is required. A schedule must be stated, never inferred.": (
        "schedule/test_profiles.py::test_nothing_is_inferred_from_what_is_missing",
        "schedule/test_profiles.py::test_an_empty_cron_misses_all_six",
        "agents/test_cron.py::test_nothing_is_filled_in_for_whoever_leaves_it_out",
        "control/test_profiles.py::test_what_states_no_schedule_starts_none",
    ),
    "A form-mode CronInput dict that reached storage must not validate silently into an hourly schedule.": (
        "schedule/test_profiles.py::test_the_form_that_a_schedule_is_filled_in_with_is_none",
        "schedule/test_profiles.py::test_a_form_with_six_texts_in_it_is_none_either",
        "agents/test_cron.py::test_a_form_is_no_schedule_whatever_it_is_written_as",
        "agents/test_config.py::test_a_form_element_is_made_by_code_and_never_read_from_data",
    ),
    "AgentConfig.as_form() deliberately leaves cron unset.": (
        "agents/test_config.py::test_as_form_leaves_the_schedule_unset",
    ),
    "AgentRunner sets the form element for schedulable classes and clears it otherwise.": (
        "agents/test_config.py::test_without_settings_of_its_own_a_schedulable_agent_shows_its_schedule_alone",
        "agents/test_config.py::test_an_agent_that_is_not_schedulable_shows_no_schedule_anywhere",
        "agents/test_config.py::test_a_schedule_that_the_blueprint_shows_by_itself_does_not_count",
    ),
    "A field is configurable only while its value is a form element: form and submission model both derive from it.": (
        "agents/test_config.py::test_the_schedule_is_last_and_only_what_has_a_form_element_is_configurable",
        "agents/test_config.py::test_a_submission_is_exactly_what_is_configurable",
        "agents/test_config.py::test_the_schema_is_that_of_the_submission_and_refuses_other_members",
    ),
    "A non-schedulable agent advertises no schedule anywhere, and no blueprint needs a cron= line of its own.": (
        "agents/test_config.py::test_an_agent_that_is_not_schedulable_shows_no_schedule_anywhere",
        "agents/test_config.py::test_without_a_configuration_a_runner_has_the_form_of_the_class",
        "api/test_profiles.py::test_the_form_shows_the_schedule_last_and_only_of_a_schedulable_class",
    ),
    "The runner keeps this published view beside the config it was handed rather than over it.": (
        "agents/test_config.py::test_what_is_published_stands_beside_what_was_handed_over_and_never_over_it",
    ),
    "AgentTestRunner serves that config back as a run's actual configuration.": (
        "agents/test_config.py::test_a_test_runner_hands_out_the_plain_configuration_itself_and_publishes_the_form_beside_it",
        "agents/test_serving.py::test_the_form_is_refused_as_a_configuration",
    ),
    "The control is appended after the blueprint's own settings.": (
        "agents/test_config.py::test_the_schedule_is_last_and_only_what_has_a_form_element_is_configurable",
        "api/test_profiles.py::test_the_form_shows_the_schedule_last_and_only_of_a_schedulable_class",
    ),
    "CronSchedule is a plain BaseModel, not a Form: it survives its own model_dump().": (
        "agents/test_cron.py::test_a_schedule_survives_its_own_dump_in_python_and_in_json",
        "api/test_seed_004.py::test_a_schedule_is_no_form_element_and_a_form_element_no_schedule",
    ),
    "Nullable: a config may have no schedule.": (
        "agents/test_cron.py::test_a_config_may_have_no_schedule",
        "api/test_profiles.py::test_a_profile_may_have_no_schedule_at_all",
    ),
    "What this replaced: a field of another name was advertised, saved, and never fired. Owning it removes that.": (
        "agents/test_config.py::test_a_form_that_could_never_work_is_refused_where_it_is_written",
        "agents/test_config.py::test_the_schedules_field_is_the_platforms_own",
    ),
    # 4. Scheduled runs are system runs, sharing one thread per profile
    "The run carries user=None and fires into a thread with no members.": (
        "control/test_threads.py::test_a_run_by_the_calendar_has_no_user",
        "control/test_threads.py::test_it_is_there_from_the_first_run_on",
        "control/test_profiles.py::test_its_input_is_nobodys_by_the_calendar_and_a_persons_by_hand",
        "control/test_profiles.py::test_no_other_question_is_left_out",
    ),
    "Every scheduled run of one profile lands in the same thread, whose id is derived from sha256.": (
        "schedule/test_profiles.py::test_a_threads_id_is_the_hash_of_class_and_profile",
        "control/test_threads.py::test_all_runs_of_a_profile_share_it_and_its_age_stays",
        "control/test_threads.py::test_each_profile_has_its_own",
        "end_to_end/test_profiles.py::the_calendar_starts_it_as_the_system_and_a_person_as_that_person",
    ),
    "Two replicas racing converge on one document instead of creating a second.": (
        "control/test_threads.py::test_first_runs_that_begin_at_once_make_one_thread",
        "control/test_threads.py::test_whoever_makes_a_thread_at_the_same_moment_makes_one",
        "control/test_threads.py::test_one_profile_that_is_saved_by_all_at_once_is_one_schedule",
    ),
    "A scheduled thread's age must be read from created_at.": (
        "control/test_threads.py::test_all_runs_of_a_profile_share_it_and_its_age_stays",
    ),
    "Where an agent needs a tenant it reads one from its own profile, which is admin-set.": (
        "control/test_threads.py::test_the_tenant_is_the_profiles_when_the_run_begins",
    ),
    "Tenant authorization is enforced at the HTTP boundary.": (
        "api/test_profiles.py::test_another_organizations_environment_is_told_of_as_one_that_is_not_there",
        "api/test_profiles.py::test_the_organization_is_that_of_the_token",
        "control/test_threads.py::test_another_environment_has_another_thread_of_the_same_id",
        "control/test_profiles.py::test_another_environments_profiles_are_not_there",
    ),
    # 6. Ticks work in windows, with a bounded catch-up
    "'Every day at 12:00' survives DST shifts as a wall-clock time; occurrences are returned in UTC.": (
        "calendar/test_cron_clock_changes.py::test_a_change_of_the_clock",
        "calendar/test_clock_changes_brute.py::test_fixed_cron_times_run_once_around_the_changes_of_every_zone",
        "workflows/test_a_year.py::test_a_profile_runs_once_on_every_day_of_a_year_at_its_wall_time_as_the_system",
    ),
    "The window start is clamped to now - 15 minutes.": (
        "control/test_profiles.py::test_what_is_later_than_a_quarter_of_an_hour_never_runs",
        "schedule/test_profiles.py::test_it_runs_beside_itself_in_a_quarter_of_an_hour_and_pauses_on_nothing",
    ),
    "Occurrences dropped by the clamp are logged, not silently discarded.": (
        "control/test_profile_logs.py::test_what_an_outage_left_behind_is_told_as_one_span",
    ),
    "A cold start adopts the current time and fires nothing.": (
        "control/test_profiles.py::test_it_fires_from_its_next_instant_on",
        "control/test_profiles.py::test_a_change_is_a_new_version_and_nothing_of_the_past_fires",
    ),
    # 9. A schedule's cost is checked when it is saved, not metered while it runs
    "The question is answerable while an admin is still looking at the form: enforced from the config save path.": (
        "control/test_ceilings.py::test_every_minute_is_43_200_runs_and_not_one_less_at_saving",
        "api/test_profiles.py::test_a_schedule_with_more_runs_than_the_deployment_allows_is_refused_at_saving",
        "cli/test_profiles.py::test_the_ceilings_of_the_installation_hold_on_the_folder_too",
    ),
    "SCHEDULER_MAX_RUNS_PER_PROFILE_PER_MONTH defaults to 43,200, so out of the box it rejects nothing.": (
        "worker/test_ceiling_settings.py::test_by_default_a_profile_may_run_each_minute_and_nothing_else_is_on",
        "control/test_ceilings.py::test_by_default_it_refuses_nothing_that_five_positions_can_say",
        "schedule/test_ceilings.py::test_the_densest_cron_declares_what_a_profile_may_by_default_whatever_the_clocks_do",
    ),
    "SCHEDULER_MAX_TOTAL_RUNS_PER_MONTH bounds every schedule together: 400 hourly profiles are 288,000.": (
        "control/test_ceilings.py::test_four_hundred_hourly_profiles_are_288_000_runs",
        "control/test_ceilings.py::test_it_counts_every_contract_and_every_organization",
    ),
    "Disabled by default: a check that can reject a save has to be something an operator turned on.": (
        "worker/test_ceiling_settings.py::test_by_default_a_profile_may_run_each_minute_and_nothing_else_is_on",
    ),
    "Both are paired with a scan-side skip: lowering a ceiling must not leave the profiles firing forever.": (
        "control/test_ceilings.py::test_so_it_is_at_the_occurrence_and_the_schedule_goes_on",
        "control/test_profiles.py::test_one_that_was_allowed_more_hears_of_the_lowered_ceiling_when_it_is_saved",
        "end_to_end/test_ceilings.py::test_a_lowered_ceiling_stops_what_was_enabled_under_the_old_one_and_a_raised_one_lets_it_go_on",
    ),
    # Consequences
    "A malformed stored schedule is skipped, logged at error level, and starves no other schedule.": (
        "control/test_profiles.py::test_it_is_told_with_its_fault_and_hides_no_other",
        "control/test_profiles.py::test_a_version_that_cannot_be_used_fires_no_more_and_starves_nobody",
        "control/test_profiles.py::test_a_damaged_row_is_put_right_by_saving_it",
        "control/test_profile_logs.py::test_a_damaged_version_is_told_by_its_profile_too",
        "api/test_profiles.py::test_a_malformed_stored_row_is_told_and_starves_nobody",
    ),
    "SCHEDULER_EVENT_RETENTION_DAYS prunes events past a configurable age, disabled by default.": (
        "control/test_threads.py::test_a_controller_prunes_where_an_operator_has_said_so",
        "control/test_threads.py::test_what_is_young_stays",
        "worker/test_ceiling_settings.py::test_all_three_are_read_under_the_names_of_the_seed",
    ),
    "Only the events go; threads are identified by recomputing the derived id from live profiles.": (
        "control/test_threads.py::test_events_go_and_nothing_else_does",
        "control/test_threads.py::test_threads_are_found_by_the_profiles_that_are_there_and_by_nothing_else",
    ),
    "The cost: a deleted profile orphans its events.": (
        "control/test_threads.py::test_a_deleted_profile_leaves_its_events_until_it_is_there_again",
        "api/test_profiles.py::test_a_deleted_profile_fires_no_more_and_is_taken_up_again_when_it_is_saved",
    ),
    "Occurrences due while a blueprint is offline are dropped, not queued.": (
        "end_to_end/test_profiles.py::what_is_due_while_its_class_is_offline_is_dropped",
    ),
    "Each drop is logged with the class, the profile, and how long it has been offline.": (
        "control/test_profile_logs.py::test_an_occurrence_of_an_absent_class_is_dropped_with_how_long_it_has_been_away",
        "control/test_profile_logs.py::test_so_it_is_where_its_runner_has_left_in_good_order",
        "end_to_end/test_profiles.py::what_is_due_while_its_class_is_offline_is_dropped",
    ),
    "A run that fails to start is not retried.": (
        "control/test_profiles.py::test_nothing_is_tried_twice_even_where_the_agent_would_allow_it",
        "control/test_profiles.py::test_a_failure_pauses_nothing",
    ),
    "One unreachable broker cannot cost every other profile its due occurrences.": (
        "control/test_profiles.py::test_runs_do_not_wait_for_each_other",
        "controller/test_isolation.py::test_a_schedule_that_cannot_be_looked_at_is_in_error_until_it_can_be",
    ),
    "Each lost run is logged by class, profile, and occurrence.": (
        "control/test_profile_logs.py::test_a_run_that_no_agent_began_is_told_by_class_profile_and_occurrence",
    ),
    "The first failure carries the traceback and the rest carry the identity, with a summary giving the total.": (
        "control/test_profile_logs.py::test_in_a_burst_the_first_carries_the_traceback",
        "control/test_starts.py::test_the_first_carries_the_traceback_the_rest_who_they_are_and_a_total_follows",
    ),
    "Discovery auto-registers a REST endpoint per start event; POST .../CronStartEvent does carry a real user.": (
        "api/test_profiles.py::test_every_start_event_of_a_class_is_a_route_and_the_user_is_whoever_asks",
        "api/test_profiles.py::test_an_event_that_the_class_does_not_declare_is_not_there",
        "control/test_profiles.py::test_it_has_a_user_and_the_event_that_was_sent",
        "control/test_profiles.py::test_the_calendars_event_starts_what_the_calendar_would",
        "end_to_end/test_profiles.py::the_calendar_starts_it_as_the_system_and_a_person_as_that_person",
    ),
    "A malformed schedule is rejected at save time: the raw submission is re-validated and 400 returned.": (
        "api/test_profiles.py::test_what_is_wrong_is_refused_with_400_at_its_place",
        "api/test_profiles.py::test_all_faults_of_a_submission_are_told_at_once",
        "control/test_profiles.py::test_a_bad_position_is_refused_there_and_nothing_is_stored",
    ),
    "Scheduled runs are invisible in the UI: a thread with no members appears in nobody's thread list.": (
        "control/test_threads.py::test_only_operators_read_it",
        "api/test_profiles.py::test_a_thread_is_there_from_the_first_run_on_and_is_read_by_operators",
    ),
    "Still open: a circuit breaker against the scheduler itself misfiring.": (
        "control/test_breaker.py::test_a_plan_that_starts_a_span_again_is_stopped_at_its_first_run",
        "control/test_breaker.py::test_a_correct_schedule_starts_all_that_it_may_after_any_outage_and_never_meets_it",
    ),
}
"""What holds a sentence: tests, or stories that a test tells, by their file below `tests` and their name."""

ANSWERED = {
    "3. The scheduler lives in packages/core, wired from the API.": (
        "The clock is a workflow of Temporal, on workers that are processes of their own. The API hosts nothing that ticks.",
        ("end_to_end/test_on_a_real_server.py::test_a_schedule_runs_its_agent_at_each_instant_with_few_events",),
    ),
    "5. A leader lease stops two replicas ticking concurrently.": (
        "There is no leader: of any number of workers, Temporal gives one the step, and its commit checks that the facts hold.",
        (
            "control/test_side_by_side.py::test_a_plan_is_carried_out_once",
            "end_to_end/test_on_a_real_server.py::test_two_of_everything_do_nothing_twice_and_each_may_be_stopped_amid_its_work",
        ),
    ),
    "5. A per-occurrence claim stops the same occurrence firing twice when a leader dies mid-tick.": (
        "The claim is a unique key in the catalog, the workflow id that follows from it, and the agent's claim of its run.",
        (
            "control/test_side_by_side.py::test_a_run_is_decided_for_one_owner",
            "control/test_side_by_side.py::test_a_run_is_begun_once",
            "end_to_end/test_killed_at_a_point.py::test_a_run_worker_that_dies_between_decision_and_dispatch_does_not_decide_again",
        ),
    ),
    "6. Each tick fires every occurrence in (watermark, now].": (
        "Each step accounts for what was due after the activation's own mark, `accounted_through`, and through its now.",
        ("schedule/test_plan.py::test_the_judge",),
    ),
    "7. The watermark stays free to move backwards, and says so in the log.": (
        "The mark is each activation's own, and moves in the transaction that writes the ledger. One ahead of the clock is told.",
        (
            "controller/test_findings.py::test_a_mark_ahead_of_the_clock_is_an_error_that_says_until_when",
            "schedule/test_plan.py::test_a_clock_that_went_back_decides_nothing_twice",
            "control/test_breaker.py::test_a_mark_that_is_moved_back_declares_nothing_anew",
        ),
    ),
    "7. A tick whose duration exceeded the lease is logged.": (
        "There is no lease to exceed. A sweep that takes too long, and a due time that passes, are findings.",
        (
            "controller/test_findings.py::test_a_sweep_that_takes_too_long_says_how_long",
            "controller/test_findings.py::test_a_due_time_that_passes_counts_once_and_the_next_one_again",
        ),
    ),
    "8. croniter for cron parsing.": (
        "croniter parses and validates. Its evaluation errs at clock changes, so ours evaluates, held against it and cronsim.",
        (
            "calendar/test_cron_text.py::test_what_is_accepted_is_what_croniter_and_cronsim_accept_too",
            "calendar/test_oracles.py::test_a_random_cron_runs_when_cronsim_and_croniter_say",
        ),
    ),
    "9. What one run costs is not metered; spend is bounded elsewhere.": (
        "A budget of its binding bounds what runs cost, by the calendar too, and is reserved for at admission.",
        (
            "control/test_profiles.py::test_no_other_question_is_left_out",
            "control/test_money.py::test_a_run_that_was_begun_costs_what_it_reports_and_its_reservation_where_it_reports_nothing",
        ),
    ),
    "Consequences: the leader lease becomes dead code once the scheduler moves.": (
        "There is none.",
        ("control/test_side_by_side.py::test_a_plan_is_carried_out_once",),
    ),
    "Consequences: occurrences missed beyond the catch-up window never run; it silently skips work beyond a warning.": (
        "They never run, and are in the ledger as missed, beside the warning.",
        ("control/test_profiles.py::test_what_is_later_than_a_quarter_of_an_hour_never_runs",),
    ),
    "Consequences: the tick reads Mongo off the event loop.": (
        "The API reads the catalog in threads, and nothing that ticks shares its process.",
        ("api/test_loop.py::test_a_slow_read_does_not_stall_the_loop_and_others_are_answered_meanwhile",),
    ),
    "Consequences: there is no migration mechanism in this repo to write a backfill with.": (
        "Here is one, and profiles and threads came by it.",
        (
            "catalog/test_migrate.py::test_the_migrations_make_exactly_the_tables",
            "catalog/test_migrate.py::test_a_catalog_of_any_release_keeps_a_row_of_each_table",
        ),
    ),
}
"""What this design answers in another way: the answer, and the tests that hold it."""


names = functools.cache(names_in)


def missing(tests):
    return [each for each in tests if each.partition("::")[2] not in names(each.partition("::")[0])]


@pytest.mark.parametrize("sentence", HELD)
def test_the_tests_that_hold_a_sentence_are_there(sentence):
    assert HELD[sentence]
    assert missing(HELD[sentence]) == []


@pytest.mark.parametrize("sentence", ANSWERED)
def test_what_is_answered_in_another_way_says_how_and_by_which_tests(sentence):
    answer, tests = ANSWERED[sentence]
    assert answer.endswith(".")
    assert tests
    assert missing(tests) == []


def test_a_name_that_no_test_has_would_be_found():
    assert missing(["api/test_seed_004.py::test_of_nothing"]) == ["api/test_seed_004.py::test_of_nothing"]


@pytest.fixture(scope="module")
def classes(catalog):
    """The catalog, with agent classes in it."""
    furnish_profiles(catalog)
    return catalog


class Flagged(Agent):
    """Says of itself what it does not do."""

    name = "flagged"
    version = "1"
    is_schedulable = True
    is_conversational = False

    @handles(UserMessageEvent)
    async def answer(self, _event: UserMessageEvent, _context: RunContext) -> AgentReport:
        return AgentReport.succeeded("Answered.")


def test_a_flag_makes_nothing_schedulable(api, classes):
    """The capability is the handled event, so there is nothing to keep in sync."""
    report(classes, Flagged())
    found = api.get(f"{ROOT}/Flagged?{HERE}").json()
    assert (found["is_schedulable"], found["is_conversational"]) == (False, True)
    answer = api.ask("PUT", at("x", agent_class="Flagged"), json={"config": {"cron": CRON}}, key=new())
    assert answer.json()["code"] == "agent_class_not_schedulable"


def test_a_capability_goes_with_the_handler_that_made_it(api, classes):
    """A blueprint that handles the event but forgets to register itself, or registers itself but handles nothing, should not be
    representable."""

    class Handling(Agent):
        name = "handling"
        version = "1"

        @handles(CronStartEvent)
        async def run(self, _event: CronStartEvent, _context: RunContext) -> AgentReport:
            return AgentReport.succeeded("Ran.")

    class Later(Flagged):
        name = "handling"
        version = "2"

    Later.__name__ = "Handling"
    report(classes, Handling())
    assert api.get(f"{ROOT}/Handling?{HERE}").json()["is_schedulable"] is True
    report(classes, Later())
    assert api.get(f"{ROOT}/Handling?{HERE}").json()["is_schedulable"] is False


def test_a_schedule_is_no_form_element_and_a_form_element_no_schedule():
    """CronSchedule is a plain BaseModel, not a Form, even though it is the data half of a duality pair."""
    schedule = CronSchedule(**CRON)
    assert set(schedule.model_dump()) == set(CRON)
    assert not isinstance(schedule, CronInput)
    assert not issubclass(CronInput, CronSchedule)
    with pytest.raises(ValueError, match="minute"):
        CronSchedule.model_validate(CronInput().published())


def test_what_a_run_is_told_names_no_user_and_no_tenant():
    """This is safe because the agent runtime never reads tenancy from the initiating user."""
    assert [name for name in RunBrief.model_fields if "user" in name or "tenant" in name or name == "by"] == []


def test_a_threads_id_encodes_no_time_and_its_row_has_one():
    """The cost is that the id no longer encodes a creation time, so a scheduled thread's age must be read from created_at."""
    assert "created_at" in metadata.tables["threads"].c
    assert [column.name for column in metadata.tables["threads"].c if "member" in column.name] == []


def test_one_profile_is_the_same_in_every_answer(api, classes):
    """Its value lands in config_data like every other setting, reusing the existing persistence, validation, and DTO paths."""
    Operator(classes, SCOPE).declare("binding", "cron:Triage/everywhere", run=RUN)
    saved = api.ask("PUT", at("everywhere"), json=submission(), key=new()).json()
    shown = api.get(at("everywhere")).json()
    (listed,) = (
        each
        for each in api.get(f"{ROOT}/Triage/profiles?{HERE}").json()["profiles"]
        if each["agent_id"] == "everywhere"
    )
    stored = api.get(f"/schedules/{saved['schedule_id']}").json()["configuration"]
    assert shown == listed
    assert shown["config"] == stored["source"]["config"] == submission()["config"]
    assert shown["cron"] == CRON


def test_the_platforms_own_number_bounds_nobody():
    """It exists for a deployment that wants to allow less, not as a number the platform picked on a customer's behalf."""
    assert Ceilings() == Ceilings(per_profile=EVERY_MINUTE, total=None)
    assert EVERY_MINUTE == 30 * 24 * 60
