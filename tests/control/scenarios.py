"""Every scenario that people reported of other schedulers, with the tests that hold it here, or why it is not ours."""

from collections.abc import Mapping

_TIMELINES = "tests/control/test_scenarios.py::test_a_timeline_that_others_get_wrong_ends_as_it_should"
_CALENDARS = "tests/calendar/test_scenarios.py::test_a_calendar_that_others_get_wrong_selects_what_it_should"
_CRONS = "tests/calendar/test_scenarios.py::test_a_cron_that_others_take_for_something_else_is_refused_at_once"
_BAD = "tests/calendar/test_scenarios.py::test_a_calendar_that_others_accept_and_never_run_is_refused_at_once"
_ZONES = "tests/calendar/test_scenarios.py::test_a_name_that_is_no_zone_is_one_fault_of_the_zone"
_SPARSE = "tests/calendar/test_scenarios.py::test_a_date_that_is_far_away_is_found_at_once"
_REAL = "tests/end_to_end/test_overlap_on_a_real_server.py"
_ONCE = "tests/control/test_scenarios.py::test_a_single_instant_leaves_its_record_when_its_calendar_has_ended"

HELD_BY: Mapping[str, tuple[str, ...]] = {
    "cron-name-range-wrap": (_CALENDARS,),
    "cron-hour-wrap": (
        _CRONS,
        "tests/calendar/test_cron_text.py::test_a_reversed_range_is_answered_with_one_that_wraps",
    ),
    "cron-macros-and-tz-prefix": (_CRONS,),
    "cron-out-of-range": (_CRONS,),
    "cal-feb-29-sunday": (_CALENDARS,),
    "cal-quarterly-8th-wednesday": (_CALENDARS,),
    "cron-empty-and-huge": (
        _CRONS,
        "tests/calendar/test_cron_text.py::test_a_text_of_a_thousand_characters_is_accepted_and_not_one_more",
    ),
    "interval-start-at-half-second": (_CALENDARS,),
    "calendar-start-at-half-second": (_CALENDARS,),
    "interval-bad-values": (_BAD,),
    "calendar-second-60": (_BAD,),
    "interval-state-survives-edit": (
        _TIMELINES,
        "tests/calendar/test_scenarios.py::test_an_interval_has_no_memory_of_the_one_before_it",
    ),
    "interval-missed-does-not-wait-a-cycle": (_TIMELINES,),
    "bound-2100": (_CALENDARS,),
    # DESIGN.md, section 4, wins: ours are the years 1970 to 9999.
    "bound-year-field": (_BAD, "tests/calendar/test_scenarios.py::test_years_that_others_refuse_are_years"),
    "cal-step-zero-negative": (_BAD,),
    "cal-empty-field-list": (_BAD,),
    "tz-name-validation": (
        _ZONES,
        "tests/calendar/test_scenarios.py::test_a_name_of_a_zone_is_kept_as_it_was_written",
    ),
    "tz-unloadable-at-runtime": (
        "tests/control/test_unusable_versions.py::test_its_step_gathers_nothing_and_says_why",
        "tests/control/test_unusable_versions.py::test_the_directory_shows_the_others_and_its_trouble",
    ),
    "ts-formats": (
        "tests/calendar/test_instants_and_timing.py::test_an_instant_is_due_once_at_its_second",
        "tests/calendar/test_instants_and_timing.py::test_what_is_no_instant_is_refused",
    ),
    "oneshot-missed-beyond-window": (_ONCE,),
    "overlap-skip-stuck-run": (
        _TIMELINES,
        f"{_REAL}::test_a_stuck_run_is_freed_by_its_time_limit",
        f"{_REAL}::test_a_stuck_run_is_freed_by_a_person_who_cancels_it_and_that_is_no_failure",
        f"{_REAL}::test_a_stuck_run_is_freed_by_terminating_it_in_temporal_and_that_is_no_failure",
    ),
    "overlap-skip-no-late-start": (
        _TIMELINES,
        "tests/workflows/test_overlap.py::test_every_policy_decides_as_its_table_says",
    ),
    "overlap-buffer-one-keeps-earliest": (
        _TIMELINES,
        "tests/control/test_stepping.py::test_the_published_example_of_buffer_one",
    ),
    "overlap-buffer-all-bounded": (
        "tests/control/test_stepping.py::test_a_run_that_never_ends_fills_the_buffer_and_no_more",
        "tests/schedule/test_plan.py::test_a_full_buffer_drops_the_newest",
    ),
    "overlap-buffer-vs-catchup": (_TIMELINES,),
    "overlap-continue-as-new-is-one-run": (
        _TIMELINES,
        "tests/workflows/test_runs.py::test_all_attempts_of_an_idempotent_agent_share_the_time_limit_of_the_one_run",
    ),
    "overlap-reused-workflow-id": (
        f"{_REAL}::test_a_workflow_that_is_started_by_hand_with_the_id_of_a_run_that_ended_holds_no_slot",
    ),
    "overlap-manual-trigger": (
        f"{_REAL}::test_a_run_by_hand_is_an_overlap_for_what_falls_due_meanwhile",
        "tests/control/test_manual.py::test_it_holds_a_slot_against_what_falls_due_meanwhile",
    ),
    "pof-buffered-starts": (_TIMELINES, f"{_REAL}::test_the_first_failure_is_the_last_run_that_is_decided"),
    "pof-vs-concurrent-update": (
        "tests/control/test_scenarios.py::test_an_update_that_was_prepared_before_the_review_does_not_end_it",
    ),
    # There is no call that publishes and enables: what is published enables nothing, and pauses nothing.
    "create-paused": (
        "tests/control/test_publication.py::test_publishing_enables_nothing_and_replaces_no_enabled_version",
    ),
    "pause-is-not-catchup": (_TIMELINES, f"{_REAL}::test_time_that_was_spent_paused_is_never_caught_up"),
    # DESIGN.md, section 5, wins: what nobody has decided when its activation ends is dropped with a reason.
    "update-at-tick": (
        _TIMELINES,
        "tests/end_to_end/test_on_a_real_server.py::test_pausing_around_the_nominal_second_loses_nothing_and_repeats_nothing",
        "tests/workflows/test_ending.py::test_enabling_again_takes_over_at_once_and_the_old_workflow_ends",
    ),
    "update-not-retroactive": (_TIMELINES,),
    "completion-must-not-reenable": (
        _TIMELINES,
        "tests/control/test_scenarios.py::test_a_pause_that_a_run_outlives_is_not_undone_by_its_end",
    ),
    "list-after-create": (
        "tests/api/test_pages.py::test_a_thousand_schedules_under_concurrent_insertion_are_each_listed_once",
    ),
    "list-vs-describe": (
        "tests/api/test_contract.py::test_every_record_and_directory_entry_includes_the_runtime_state_and_its_generation",
    ),
    "pagination-ties": ("tests/api/test_pages.py::test_a_ledger_is_the_same_on_pages_of_any_size",),
    "pagination-precision": ("tests/api/test_pages.py::test_a_cursor_is_read_as_it_was_written",),
    "idempotency-same-body": (
        "tests/control/test_receipts.py::test_fifty_requests_of_one_key_and_body_at_once_are_one_receipt",
    ),
    "idempotency-failed-validation": ("tests/control/test_receipts.py::test_a_refused_request_binds_no_key",),
    "catchup-12s-allow": (
        _TIMELINES,
        "tests/end_to_end/test_outages.py::test_what_falls_due_while_the_workers_are_down_is_caught_up_within_the_window_and_missed_beyond",
    ),
    # Each schedule is bounded by itself; that only the latest is wanted is said by `skip` or `buffer_one`.
    "catchup-agent-cost": (
        "tests/schedule/test_plan.py::test_a_step_starts_a_hundred_and_the_next_one_waits_ten_seconds",
        "tests/schedule/test_plan.py::test_an_outage_starts_a_thousand_late_runs_and_drops_the_rest",
    ),
    "catchup-suspend-long": (_TIMELINES,),
    "catchup-late-add-refires": (
        "tests/control/test_scenarios.py::test_what_is_added_later_starts_nothing_of_another_schedule_again",
    ),
    "catchup-host-asleep": (_TIMELINES,),
    "recovery-exactly-once-crash": (
        "tests/end_to_end/test_killed_at_a_point.py::test_a_schedule_worker_that_dies_between_commit_and_start_has_its_run_started_by_the_next",
        "tests/end_to_end/test_killed_at_a_point.py::test_a_schedule_worker_that_dies_between_start_and_history_starts_nothing_twice",
    ),
    "recovery-replay-determinism": ("tests/workflows/test_replay.py::test_a_recorded_history_replays",),
    "recovery-two-schedulers": (
        "tests/end_to_end/test_on_a_real_server.py::test_two_of_everything_do_nothing_twice_and_each_may_be_stopped_amid_its_work",
        "tests/workflows/test_ending.py::test_a_second_workflow_for_the_same_activation_does_no_harm",
    ),
    "recovery-exhausted-record": (_ONCE,),
    "recovery-poison-schedule": (
        "tests/calendar/test_search.py::test_what_can_never_be_due_is_told_at_once",
        "tests/control/test_unusable_versions.py::test_the_directory_shows_the_others_and_its_trouble",
    ),
    "recovery-evaluator-no-progress": (
        "tests/calendar/test_clock_changes_brute.py::test_what_comes_after_an_instant_is_later_and_the_first_such",
        "tests/calendar/test_search.py::test_all_questions_agree",
    ),
    "recovery-history-growth": (
        "tests/workflows/test_continue_as_new.py::test_continuing_as_new_after_so_many_steps_loses_nothing_and_does_nothing_twice",
    ),
    "recovery-signal-at-rollover": (
        "tests/workflows/test_continue_as_new.py::test_continuing_as_new_after_so_many_steps_loses_nothing_and_does_nothing_twice",
        "tests/workflows/test_ending.py::test_signals_that_come_in_floods_cost_steps_and_change_nothing",
    ),
    # Our sleeps are timers of the server's; the one wait in a worker is for the nominal second.
    "clock-backwards-sleep": (
        "tests/workflows/test_waiting.py::test_a_clock_that_was_set_after_many_good_stamps_is_believed_no_more",
    ),
    "clock-forwards": ("tests/schedule/test_plan.py::test_a_clock_that_went_back_decides_nothing_twice",),
    "clock-early-timer": (
        "tests/workflows/test_waiting.py::test_a_run_is_never_decided_before_its_nominal_second_and_at_once_after_it",
    ),
    "perf-sparse-next": (_SPARSE,),
    "perf-zone-object-per-step": (_SPARSE,),
    "perf-many-rules": (_BAD,),
}
"""The tests, by scenario, as `path::name`."""

NOT_OURS: Mapping[str, str] = {
    "oneshot-in-the-past": (
        "A single instant is the contract v0's, which accepts one that has passed, writes it down as missed and never runs it "
        "(DESIGN.md, section 6)."
    ),
    "update-and-pause-together": "No call both publishes and pauses; each change is one transaction under the schedule's lock.",
}
"""Why nothing holds a scenario."""
