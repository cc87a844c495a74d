"""Cron profiles' operations (seed 004) against a real catalog: saved, changed, cleared, deleted, taken up again, run by hand."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import func, select, update
from structlog.testing import capture_logs

from horarium.catalog import Catalog, presence
from horarium.catalog.schedules import list_activations, require_schedule
from horarium.catalog.tables import profiles as rows
from horarium.catalog.tables import versions
from horarium.control import operations, profiles, running, stepping, threads
from horarium.control.judgement import judge_reading
from horarium.control.once import Once
from horarium.control.operations import activation_to_nudge, run_to_start
from horarium.control.principals import PrincipalKind
from horarium.control.receipts import find_receipt
from horarium.errors import Conflict, Forbidden, InvalidSchedule, NotAdmissible, NotFound, Refused
from horarium.schedule.ceilings import Ceilings
from horarium.schedule.identity import RunKey, Scope
from horarium.schedule.ledger import Disposition
from horarium.schedule.profiles import thread_id
from tests.control.caller import Caller, change_environment, events, new_key, principal
from tests.control.desk import AGENT, FAR, SCOPE, Desk, at, every, furnish
from tests.control.operators import Operator
from tests.control.profiler import (
    BOUND,
    CHAT,
    CHAT_AGENT,
    EVERY_MINUTE,
    SCHEMA,
    TRIAGE,
    Profiler,
    discovery,
    profiler_of,
    saved,
)

HOURLY = {**EVERY_MINUTE, "minute": "0"}
_numbers = itertools.count(1)


@pytest.fixture
def profiler(desk: Desk) -> Profiler:
    return profiler_of(desk)


def code_of(act: Callable[[], Any], kind: type[Refused] = Refused) -> str:
    with pytest.raises(kind) as caught:
        act()
    assert caught.value.sentence
    return caught.value.code


def places_of(act: Callable[[], Any]) -> list[str]:
    with pytest.raises(InvalidSchedule) as caught:
        act()
    return [fault.pointer for fault in caught.value.faults]


def two_versions(profiler: Profiler, **newer: Any) -> str:
    """Give the profile a class of its own, bound to the first of two versions of it; the name of the second."""
    number = next(_numbers)
    profiler.agent_class = f"Rolled{number}"
    first, second = (f"rolled{number}@{version}" for version in (1, 2))
    profiler.register(first, agent_class=profiler.agent_class, submission_schema=SCHEMA)
    profiler.desk.now = at(10)
    profiler.register(second, agent_class=profiler.agent_class, **newer)
    profiler.bind(agent_version=first)
    return second


def is_not_stored(profiler: Profiler) -> bool:
    return code_of(profiler.show, NotFound) == "profile_not_found"


class TestSaving:
    def test_it_fires_from_its_next_instant_on(self, profiler: Profiler) -> None:
        document = profiler.save(saved(folder="INBOX", tenant_id="acme")).document
        assert (document["operation"], document["enabled"], document["generation"]) == ("profile_save", True, 1)
        assert (document["agent_class"], document["agent_id"]) == (TRIAGE, profiler.agent_id)
        assert document["thread_id"] == thread_id(TRIAGE, profiler.agent_id)
        assert (document["ended_generation"], document["warnings"]) == (None, [])
        profiler.world().pass_until(at(130))
        assert profiler.desk.told() == [("succeeded", 60, 60, 1), ("succeeded", 120, 120, 1)]
        profiler.check()

    def test_it_is_shown_as_it_came_with_how_it_stands(self, profiler: Profiler) -> None:
        receipt = profiler.save(saved(HOURLY, folder="INBOX", tenant_id="acme")).document
        assert profiler.show() == {
            "agent_class": TRIAGE,
            "agent_id": profiler.agent_id,
            "tenant_id": "acme",
            "config": {"folder": "INBOX", "cron": HOURLY},
            "cron": HOURLY,
            "fault": None,
            "schedule_id": receipt["schedule_id"],
            "state": "enabled",
            "reason": None,
            "thread_id": receipt["thread_id"],
            "generation": 1,
            "reference": receipt["reference"],
            "next_due": "2026-11-30T13:00:00Z",
            "changed_at": "2026-11-30T12:00:00Z",
            "changed_by": "ada",
            "last_outcome": None,
        }

    def test_it_is_audited_as_any_change_is(self, profiler: Profiler) -> None:
        first = profiler.save().document["receipt_id"]
        second = profiler.delete().document["receipt_id"]
        told = [(each["kind"], each["actor"], each["details"]["receipt_id"]) for each in events(profiler.desk)]
        assert told == [("published", "ada", first), ("enabled", "ada", first), ("paused", "ada", second)]

    def test_a_bad_position_is_refused_there_and_nothing_is_stored(self, profiler: Profiler) -> None:
        key = new_key()
        bad = saved({**EVERY_MINUTE, "minute": "60"})
        assert places_of(lambda: profiler.save(bad, key)) == ["/config/cron/minute"]
        assert is_not_stored(profiler)
        assert not profiler.save(key=key).replayed

    @pytest.mark.parametrize("cron", [{}, "* * * * *", {"$formkit": "cron", "name": "cron"}, {**HOURLY, "hour": None}])
    def test_what_states_no_schedule_starts_none(self, profiler: Profiler, cron: Any) -> None:
        assert places_of(lambda: profiler.save(saved(cron)))
        assert is_not_stored(profiler)

    def test_its_settings_are_those_of_its_class(self, profiler: Profiler) -> None:
        bad = saved({**EVERY_MINUTE, "hour": "24"}, folder=5, colour="red")
        assert set(places_of(lambda: profiler.save(bad))) == {"/config/cron/hour", "/config/folder", "/config/colour"}
        assert is_not_stored(profiler)

    def test_its_settings_are_judged_by_the_version_that_is_bound(self, profiler: Profiler) -> None:
        newer = two_versions(profiler, is_schedulable=False, start_events=["UserMessageEvent"], submission_schema={})
        assert places_of(lambda: profiler.save(saved(colour="red"))) == ["/config/colour"]
        profiler.save(saved(folder="INBOX"))
        profiler.bind(agent_version=newer)
        assert code_of(lambda: profiler.save(saved(colour="red"))) == "agent_class_not_schedulable"
        profiler.save(saved(None, colour="red"))

    def test_a_class_that_nobody_reported_has_no_profiles(self, profiler: Profiler) -> None:
        profiler.agent_class = "Nobody"
        assert code_of(profiler.save, NotFound) == "agent_class_not_found"

    def test_a_class_that_takes_no_cron_start_has_profiles_without_a_cron(self, profiler: Profiler) -> None:
        profiler.agent_class = CHAT
        profiler.bind(agent_version=CHAT_AGENT)
        assert code_of(profiler.save) == "agent_class_not_schedulable"
        assert is_not_stored(profiler)
        assert not profiler.save(saved(None)).document["enabled"]

    def test_without_a_binding_nothing_can_run(self, profiler: Profiler) -> None:
        profiler.agent_id = "unbound"
        assert code_of(profiler.save) == "binding_missing"
        assert is_not_stored(profiler)
        receipt = profiler.save(saved(None)).document
        assert (receipt["schedule_id"], receipt["reference"], receipt["generation"]) == (None, None, None)
        shown = profiler.show()
        assert (shown["state"], shown["schedule_id"], shown["next_due"]) == ("unscheduled", None, None)

    def test_a_binding_to_another_class_is_refused(self, profiler: Profiler) -> None:
        profiler.bind(agent_version=CHAT_AGENT)
        assert code_of(profiler.save) == "binding_mismatch"
        assert is_not_stored(profiler)

    def test_what_speaks_against_its_runs_speaks_against_saving_it(self, profiler: Profiler) -> None:
        profiler.desk.content.writable = False
        assert code_of(profiler.save, NotAdmissible) == "output_missing"
        assert is_not_stored(profiler)

    @pytest.mark.parametrize("agent_id", ["", "a/b", "a b", "x" * 201, "ä"])
    def test_an_id_is_one_word(self, profiler: Profiler, agent_id: str) -> None:
        profiler.agent_id = agent_id
        assert code_of(profiler.save) == "invalid_agent_id"

    def test_it_needs_a_person_with_the_scope_in_the_organization(self, profiler: Profiler) -> None:
        for who, code in (
            (principal("ci", PrincipalKind.KEY), "human_session_required"),
            (principal(scopes="other"), "scope_missing"),
        ):
            profiler.who = who
            for act in (profiler.save, profiler.clear, profiler.delete, profiler.trigger):
                assert code_of(act, Forbidden) == code
        profiler.who = principal(org_id="other")
        for act in (profiler.save, profiler.clear, profiler.delete, profiler.trigger, profiler.show):
            assert code_of(act, NotFound) == "environment_not_found"

    def test_what_never_had_a_cron_has_no_schedule_to_tell_of_it_but_receipts_and_who_changed_it(
        self, profiler: Profiler
    ) -> None:
        key = new_key()
        assert profiler.save({"config": {"folder": "a"}}, key).document["schedule_id"] is None
        assert code_of(lambda: events(profiler.desk), NotFound) == "schedule_not_found"
        assert profiler.show()["changed_by"] == "ada"
        found = profiler.desk.read(find_receipt, profiler.scope, profiler.who, key)
        assert (found.document["operation"], found.document["agent_id"]) == ("profile_save", profiler.agent_id)

    def test_a_lost_answer_is_asked_for_again(self, profiler: Profiler) -> None:
        keys = [new_key() for _ in range(4)]
        acts: list[Callable[[], Any]] = [
            lambda: profiler.save(key=keys[0]),
            lambda: profiler.trigger(key=keys[1]),
            lambda: profiler.clear(keys[2]),
            lambda: profiler.delete(keys[3]),
        ]
        for act in acts:
            first, again = act(), act()
            assert (first.replayed, again.replayed) == (False, True)
            assert first.document["receipt_id"] == again.document["receipt_id"]
        assert code_of(lambda: profiler.save(saved(HOURLY), keys[0]), Conflict) == "idempotency_key_reused"

    def test_it_is_told_whatever_the_class_has_become_meanwhile(self, profiler: Profiler) -> None:
        save, by_hand = new_key(), new_key()
        profiler.save(saved(folder="a"), save)
        profiler.trigger("UserMessageEvent", key=by_hand)
        profiler.register(start_events=["CronStartEvent"], submission_schema={"additionalProperties": False})
        assert profiler.save(saved(folder="a"), save).replayed
        assert profiler.trigger("UserMessageEvent", key=by_hand).replayed
        assert places_of(lambda: profiler.save(saved(folder="a"))) == ["/config/folder"]

    def test_what_is_no_json_is_refused_at_its_place(self, profiler: Profiler) -> None:
        assert places_of(lambda: profiler.save(saved(folder=float("nan")))) == ["/config/folder"]
        profiler.save()
        assert places_of(lambda: profiler.trigger("UserMessageEvent", {"event": {"n": 2**60}})) == ["/event/n"]


class TestChanging:
    def test_the_same_again_is_a_receipt_and_nothing_else(self, profiler: Profiler) -> None:
        profiler.save(saved(folder="a"))
        before = len(events(profiler.desk))
        profiler.desk.now = at(90)
        again = profiler.save(saved(folder="a")).document
        assert (again["generation"], again["reference"]["revision"], again["enabled"]) == (1, 1, True)
        assert again["ended_generation"] is None
        assert len(events(profiler.desk)) == before

    def test_a_change_is_a_new_version_and_nothing_of_the_past_fires(self, profiler: Profiler) -> None:
        profiler.save(saved(folder="a"))
        profiler.desk.now = at(150)
        receipt = profiler.save(saved(folder="b")).document
        assert (receipt["generation"], receipt["reference"]["revision"]) == (2, 2)
        assert activation_to_nudge(SCOPE, profiler.save(saved(folder="c"))) is not None
        profiler.world().pass_until(at(200))
        assert profiler.desk.told() == [("dropped", 60, 120, 2), ("succeeded", 180, 180, 1)]
        profiler.check()

    def test_another_binding_is_taken_up_when_it_is_saved_again(self, profiler: Profiler) -> None:
        profiler.save()
        profiler.bind(input="other")
        assert profiler.show()["reference"]["revision"] == 1
        assert profiler.save().document["reference"]["revision"] == 2

    def test_clearing_the_cron_pauses_it(self, profiler: Profiler) -> None:
        profiler.save()
        cleared = profiler.save(saved(None, folder="a")).document
        assert (cleared["enabled"], cleared["ended_generation"]) == (False, 1)
        shown = profiler.show()
        assert (shown["state"], shown["cron"], shown["config"]) == ("unscheduled", None, {"folder": "a", "cron": None})
        profiler.world().pass_until(at(130))
        assert profiler.desk.told() == []
        assert profiler.desk.read(require_schedule, profiler.desk.key).retired_at is None
        # Clearing what is cleared ends nothing.
        assert profiler.save(saved(None)).document["ended_generation"] is None

    def test_leaving_the_cron_out_pauses_it_too(self, profiler: Profiler) -> None:
        profiler.save()
        assert not profiler.save({"config": {}}).document["enabled"]

    def test_deleting_pauses_it_and_recreating_takes_the_same_schedule_up_again(self, profiler: Profiler) -> None:
        first = profiler.save().document
        profiler.world().pass_until(at(70))
        deleted = profiler.delete().document
        assert (deleted["enabled"], deleted["ended_generation"]) == (False, 1)
        assert is_not_stored(profiler)
        for act in (profiler.delete, profiler.trigger):
            assert code_of(act, NotFound) == "profile_not_found"
        profiler.desk.now = at(150)
        again = profiler.save().document
        assert again["schedule_id"] == first["schedule_id"]
        assert (again["generation"], again["reference"]) == (3, first["reference"])
        profiler.world().pass_until(at(190))
        assert profiler.desk.told() == [("succeeded", 60, 60, 1), ("succeeded", 180, 180, 1)]
        assert len(profiler.thread()["events"]) == 4
        profiler.check()

    def test_one_that_an_operator_paused_is_enabled_by_saving_it(self, profiler: Profiler) -> None:
        profiler.save()
        profiler.desk.pause()
        assert profiler.show()["state"] == "paused"
        again = profiler.save().document
        assert (again["enabled"], again["reference"]["revision"], again["generation"]) == (True, 1, 3)

    def test_one_that_was_enabled_before_a_reset_is_enabled_anew(self, desk: Desk) -> None:
        profiler = strict(desk)
        profiler.save()
        change_environment(profiler.desk, authority_epoch=9)
        again = profiler.save().document
        assert (again["generation"], again["reference"]["revision"]) == (2, 1)

    def test_one_whose_schedule_was_retired_is_not_revived(self, profiler: Profiler) -> None:
        profiler.save()
        profiler.desk.retire()
        assert code_of(profiler.save, Conflict) == "schedule_retired"
        shown = profiler.show()
        assert shown["state"] == "paused"
        assert shown["reason"].startswith("schedule_retired")
        assert not profiler.delete().document["enabled"]

    def test_the_canonical_contract_publishes_nothing_over_it(self, profiler: Profiler) -> None:
        profiler.save()
        assert code_of(lambda: Caller(profiler.desk).publish(every(60), expected=1), Conflict) == "other_contract"

    @pytest.mark.parametrize("state", ["enabled", "paused", "deleted", "changed"])
    def test_the_canonical_contract_neither_enables_nor_retires_it(self, profiler: Profiler, state: str) -> None:
        reference = profiler.save(saved(folder="a")).document["reference"]
        if state == "paused":
            profiler.desk.pause()
        elif state == "deleted":
            profiler.delete()
        elif state == "changed":
            profiler.save(saved(folder="b"))
        caller, generation = Caller(profiler.desk), profiler.desk.activation().generation
        before = profiler.desk.activation()
        for ask in (
            lambda: caller.set(caller.about(reference, generation, enabled=True)),
            lambda: caller.retire(caller.about(reference, generation)),
        ):
            with pytest.raises(Conflict) as caught:
                ask()
            assert caught.value.code == "other_contract"
            assert f"{TRIAGE}/{profiler.agent_id}" in caught.value.sentence
            assert "the profile" in caught.value.next_step
        assert profiler.desk.activation() == before
        # What it advises for each of both is done, and is not refused.
        profiler.save()
        profiler.delete()

    def test_the_canonical_contract_still_stops_it(self, profiler: Profiler) -> None:
        reference = profiler.save().document["reference"]
        caller = Caller(profiler.desk)
        assert not caller.set(caller.about(reference, 1, enabled=False)).document["enabled"]
        assert profiler.show()["state"] == "paused"


class TestClearing:
    def test_it_takes_the_cron_out_and_leaves_the_rest_as_it_is(self, profiler: Profiler) -> None:
        first = profiler.save(saved(folder="a", tenant_id="acme")).document
        profiler.desk.now = at(30)
        receipt = profiler.clear().document
        assert (receipt["operation"], receipt["enabled"], receipt["ended_generation"]) == ("profile_clear", False, 1)
        assert (receipt["schedule_id"], receipt["warnings"]) == (first["schedule_id"], [])
        shown = profiler.show()
        assert (shown["state"], shown["config"], shown["tenant_id"]) == (
            "unscheduled",
            {"folder": "a", "cron": None},
            "acme",
        )
        assert shown["changed_at"] == "2026-11-30T12:00:30Z"
        profiler.save(saved(folder="a"))
        profiler.check()

    def test_what_the_class_has_become_keeps_nobody_from_it(self, profiler: Profiler) -> None:
        two_versions(profiler)
        profiler.save(saved(folder="a"))
        profiler.register(
            f"{profiler.agent_class.lower()}@1",
            agent_class=profiler.agent_class,
            start_events=["UserMessageEvent"],
            is_schedulable=False,
            submission_schema={"additionalProperties": False},
        )
        assert places_of(lambda: profiler.save(saved(None, folder="a"))) == ["/config/folder"]
        profiler.clear()
        assert profiler.show()["config"] == {"folder": "a", "cron": None}

    def test_a_config_that_cannot_be_read_is_left_and_told_and_fires_no_more(self, profiler: Profiler) -> None:
        profiler.save(saved(folder="a"))
        damage_config(profiler)
        receipt = profiler.clear().document
        assert not receipt["enabled"]
        (warning,) = receipt["warnings"]
        assert "left as it is" in warning
        assert profiler.desk.read(stored_config, profiler) == "no JSON at all"
        assert profiler.show()["state"] == "paused"

    def test_a_cron_that_is_none_is_cleared_too(self, profiler: Profiler) -> None:
        profiler.save(saved(folder="a"))
        damage_cron(profiler)
        profiler.clear()
        assert (profiler.show()["fault"], profiler.show()["config"]) == (None, {"folder": "a", "cron": None})

    def test_what_has_no_cron_is_left_as_it_is(self, profiler: Profiler) -> None:
        profiler.save({"config": {"folder": "a"}})
        profiler.desk.now = at(30)
        receipt = profiler.clear().document
        assert (receipt["schedule_id"], receipt["enabled"], receipt["ended_generation"]) == (None, False, None)
        shown = profiler.show()
        assert (shown["config"], shown["changed_at"]) == ({"folder": "a"}, "2026-11-30T12:00:00Z")

    def test_it_loses_nothing_that_another_has_saved_meanwhile(self, profiler: Profiler) -> None:
        profiler.save(saved(folder="a"))
        profiler.show()
        profiler.save(saved(folder="b"))
        profiler.clear()
        assert profiler.show()["config"] == {"folder": "b", "cron": None}

    def test_what_is_not_there_cannot_be_cleared(self, profiler: Profiler) -> None:
        assert code_of(profiler.clear, NotFound) == "profile_not_found"
        profiler.save()
        profiler.delete()
        assert code_of(profiler.clear, NotFound) == "profile_not_found"


class TestCeilings:
    def test_every_minute_is_the_most_that_can_be_said(self, profiler: Profiler) -> None:
        refused = Ceilings(per_profile=43_199)
        assert code_of(lambda: profiler.save(ceilings=refused), NotAdmissible) == "ceiling_exceeded"
        assert is_not_stored(profiler)
        profiler.save(ceilings=Ceilings(per_profile=43_200))
        assert profiler.show()["state"] == "enabled"

    def test_one_that_was_allowed_more_hears_of_the_lowered_ceiling_when_it_is_saved(self, profiler: Profiler) -> None:
        profiler.save()
        lowered = Ceilings(per_profile=720)
        assert code_of(lambda: profiler.save(ceilings=lowered), NotAdmissible) == "ceiling_exceeded"
        assert profiler.save(saved(HOURLY), ceilings=lowered).document["enabled"]


def strict(desk: Desk, **run: Any) -> Profiler:
    """A profile in an environment of its own, in which everything is declared that it needs."""
    scope = Scope(org_id="acme", environment_id=f"strict{next(_numbers)}{desk.catalog.engine.dialect.name}")
    profiler = Profiler(desk, scope=scope)
    operator = Operator(desk.catalog, scope)
    operator.open()
    operator.declare_usual()
    operator.declare("person", "ada")
    profiler.register()
    profiler.bind(usage_class="test_compute", budget_id="team", **run)
    profiler.look_at()
    return profiler


class TestOnNobodysWord:
    @pytest.fixture
    def operator(self, profiler: Profiler) -> Operator:
        return Operator(profiler.desk.catalog, profiler.scope)

    @pytest.fixture
    def profiler(self, desk: Desk) -> Profiler:
        return strict(desk)

    def due(self, profiler: Profiler, offset: int = 60) -> RunKey:
        loop = profiler.loop()
        loop.step_at(offset - 3)
        profiler.desk.now = at(offset)
        return loop.run(offset)

    def by_hand(self, profiler: Profiler) -> RunKey:
        run = run_to_start(profiler.scope, profiler.trigger())
        assert run is not None
        return run

    def test_who_saved_it_may_have_left_since(self, profiler: Profiler, operator: Operator) -> None:
        profiler.save()
        operator.declare("person", "ada", left=True)
        assert profiler.desk.admit(self.due(profiler)).outcome == "admitted"
        refused = profiler.desk.admit(self.by_hand(profiler))
        assert (refused.outcome, refused.reason) == ("refused", "principal_left")

    def test_a_run_by_the_canonical_route_is_on_the_word_of_who_asks(
        self, profiler: Profiler, operator: Operator
    ) -> None:
        reference = profiler.save().document["reference"]
        operator.declare("person", "ada", left=True)
        caller = Caller(profiler.desk)
        run = run_to_start(profiler.scope, caller.trigger(caller.about(reference, 1)))
        assert run is not None
        refused = profiler.desk.admit(run)
        assert (refused.outcome, refused.reason) == ("refused", "principal_left")

    def test_its_input_is_nobodys_by_the_calendar_and_a_persons_by_hand(
        self, profiler: Profiler, operator: Operator
    ) -> None:
        operator.declare("input", "in", readers=["bob"])
        profiler.save()
        assert profiler.desk.admit(self.due(profiler)).outcome == "admitted"
        refused = profiler.desk.admit(self.by_hand(profiler))
        assert (refused.outcome, refused.reason) == ("refused", "input_unreadable")
        operator.declare("person", "bob")
        profiler.who = principal("bob")
        assert profiler.desk.admit(self.by_hand(profiler)).outcome == "admitted"

    def test_a_started_run_reads_as_whoever_it_runs_for(self, profiler: Profiler, operator: Operator) -> None:
        profiler.save()
        readers = []
        for run in (self.due(profiler), self.by_hand(profiler)):
            profiler.desk.admit(run)
            token = profiler.desk.begin(run).token
            question = profiler.desk.read(running.opened, run.run_id, token).question
            operator.declare("input", "in", readers=["nobody"])
            against = profiler.desk.read(judge_reading, question, profiler.desk.content, now=profiler.desk.now)
            readers.append((question.person, None if against is None else against.reason))
            operator.declare("input", "in", readers=["*"])
        assert readers == [(None, None), ("ada", "input_unreadable")]

    @pytest.mark.parametrize(
        ("code", "spoil"),
        [
            ("stopped_by_operator", lambda operator: operator.stop()),
            ("usage_class_mismatch", lambda operator: operator.change(mode="live")),
            (
                "agent_withdrawn",
                lambda operator: operator.declare("agent", AGENT, max_cost=10, max_run_seconds=60, withdrawn=True),
            ),
            ("budget_missing", lambda operator: operator.withdraw("budget", "team")),
            ("output_missing", lambda operator: operator.withdraw("output", "out")),
        ],
    )
    def test_no_other_question_is_left_out(
        self, profiler: Profiler, operator: Operator, code: str, spoil: Callable[[Operator], None]
    ) -> None:
        profiler.save()
        run = self.due(profiler)
        spoil(operator)
        refused = profiler.desk.admit(run)
        assert (refused.outcome, refused.reason) == ("refused", code)


class TestRuns:
    def admitted(self, profiler: Profiler, offset: int = 60) -> RunKey:
        loop = profiler.loop()
        loop.step_at(offset - 3)
        profiler.desk.now = at(offset)
        return loop.run(offset)

    def test_nothing_is_tried_twice_even_where_the_agent_would_allow_it(self, profiler: Profiler) -> None:
        profiler.register(idempotent=True)
        profiler.save()
        run = self.admitted(profiler)
        dispatch = profiler.desk.admit(run).dispatch
        assert dispatch is not None
        assert not dispatch.idempotent
        profiler.desk.begin(run)
        assert code_of(lambda: profiler.desk.begin(run, again=True)) == "already_begun"
        profiler.register()

    def test_an_agent_is_told_its_profiles_configuration_and_the_calendars_event(self, profiler: Profiler) -> None:
        profiler.save(saved(folder="a"))
        run = self.admitted(profiler)
        profiler.save(saved(folder="b"))
        assert profiler.desk.admit(run).outcome == "withdrawn"
        run = self.admitted(profiler, 120)
        profiler.desk.admit(run)
        begun = profiler.desk.begin(run)
        assert (begun.start_event, begun.event) == (None, {})
        assert begun.config == {"folder": "b", "cron": EVERY_MINUTE}

    def test_runs_do_not_wait_for_each_other(self, profiler: Profiler) -> None:
        profiler.save()
        profiler.world(takes=200).pass_until(at(125))
        assert profiler.desk.told() == [("started", 60, 60, 1), ("started", 120, 120, 1)]

    def test_a_failure_pauses_nothing(self, profiler: Profiler) -> None:
        profiler.save()
        profiler.world(ends_as=Disposition.FAILED).pass_until(at(125))
        assert [each[0] for each in profiler.desk.told()] == ["failed", "failed"]
        assert profiler.show()["state"] == "enabled"

    def test_what_is_later_than_a_quarter_of_an_hour_never_runs(self, profiler: Profiler) -> None:
        profiler.save()
        world = profiler.world()
        world.schedules_up = False
        world.pass_until(at(3_600))
        world.schedules_up = True
        world.pass_until(at(3_601))
        missed = [each for each in profiler.desk.told() if each[0] == "missed"]
        assert missed == [("missed", 60, 2_640, 44)]
        assert min(each[1] for each in profiler.desk.told() if each[0] != "missed") == 2_700


class TestByHand:
    def test_it_has_a_user_and_the_event_that_was_sent(self, profiler: Profiler) -> None:
        profiler.save(saved(HOURLY))
        profiler.desk.now = at(7.5)
        receipt = profiler.trigger("UserMessageEvent", {"event": {"text": "Hello"}})
        run = run_to_start(SCOPE, receipt)
        assert run is not None
        document = receipt.document
        assert (document["operation"], document["run_id"]) == ("profile_trigger", run.run_id)
        assert (document["start_event"], document["nominal_time"]) == ("UserMessageEvent", "2026-11-30T12:00:07Z")
        row = profiler.desk.run_row(run)
        assert row is not None
        assert row.triggered_by == "ada"
        assert profiler.desk.admit(run).outcome == "admitted"
        begun = profiler.desk.begin(run)
        assert (begun.start_event, begun.event) == ("UserMessageEvent", {"text": "Hello"})
        told = [each["details"] for each in events(profiler.desk) if each["kind"] == "triggered"]
        assert [(each["start_event"], each["receipt_id"]) for each in told] == [
            ("UserMessageEvent", document["receipt_id"])
        ]

    def test_the_calendars_event_starts_what_the_calendar_would(self, profiler: Profiler) -> None:
        profiler.save(saved(HOURLY))
        run = run_to_start(SCOPE, profiler.trigger())
        assert run is not None
        profiler.desk.admit(run)
        begun = profiler.desk.begin(run)
        assert (begun.start_event, begun.event, begun.config["cron"]) == (None, {}, HOURLY)

    def test_it_waits_for_no_other_run(self, profiler: Profiler) -> None:
        profiler.save()
        profiler.trigger()
        profiler.trigger()
        assert profiler.desk.holding() == 2

    @pytest.mark.parametrize("event", ["Nothing", "cronstartevent", "thread"])
    def test_an_event_that_the_class_does_not_declare_is_not_there(self, profiler: Profiler, event: str) -> None:
        profiler.save()
        assert code_of(lambda: profiler.trigger(event), NotFound) == "start_event_not_found"

    def test_an_event_is_bounded_and_told_its_run_by_us(self, profiler: Profiler) -> None:
        profiler.save()
        for event in ({"run": {}}, {"text": "x" * 70_000}):
            assert places_of(lambda event=event: profiler.trigger("UserMessageEvent", {"event": event}))
        assert profiler.desk.holding() == 0

    def test_fields_that_do_not_fit_what_the_class_reports_are_refused_and_nothing_is_staged(
        self, profiler: Profiler
    ) -> None:
        text = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
        profiler.register(event_schemas={"UserMessageEvent": text})
        profiler.save()
        for event, place in (({}, "/event/text"), ({"text": 1}, "/event/text")):
            told = places_of(lambda event=event: profiler.trigger("UserMessageEvent", {"event": event}))
            assert told == [place]
        assert profiler.desk.holding() == 0
        profiler.trigger("UserMessageEvent", {"event": {"text": "Hello"}})
        profiler.trigger()
        profiler.register()

    def test_fields_are_held_against_the_version_that_would_run(self, profiler: Profiler) -> None:
        text = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
        newer = two_versions(profiler, event_schemas={"UserMessageEvent": text})
        profiler.save()
        profiler.bind(agent_version=newer)
        profiler.trigger("UserMessageEvent")
        profiler.save()
        assert places_of(lambda: profiler.trigger("UserMessageEvent")) == ["/event/text"]

    def test_whoever_asks_again_is_answered_whatever_the_class_reports_meanwhile(self, profiler: Profiler) -> None:
        profiler.save()
        key = new_key()
        profiler.trigger("UserMessageEvent", key=key)
        profiler.register(event_schemas={"UserMessageEvent": {"required": ["text"]}})
        assert profiler.trigger("UserMessageEvent", key=key).replayed
        profiler.register()

    @pytest.mark.parametrize("stops", ["never_scheduled", "cleared", "paused"])
    def test_what_does_not_fire_runs_by_nobodys_hand_until_it_is_saved_with_a_cron(
        self, profiler: Profiler, stops: str
    ) -> None:
        if stops != "never_scheduled":
            profiler.save()
        if stops == "paused":
            profiler.desk.pause()
        else:
            profiler.save(saved(None))
        with pytest.raises(Conflict) as caught:
            profiler.trigger()
        assert caught.value.code == "not_enabled"
        assert caught.value.next_step.startswith("Save it with a cron")
        profiler.save()
        profiler.trigger()

    def test_a_class_that_takes_no_cron_start_has_no_schedule_and_so_no_run(self, profiler: Profiler) -> None:
        profiler.agent_class = CHAT
        profiler.bind(agent_version=CHAT_AGENT)
        assert code_of(lambda: profiler.trigger("UserMessageEvent"), NotFound) == "profile_not_found"
        profiler.save(saved(None))
        with pytest.raises(Refused) as caught:
            profiler.trigger("UserMessageEvent")
        assert caught.value.code == "agent_class_not_schedulable"
        # What it advises is done, and is not refused then.
        assert caught.value.next_step.startswith("Have the class handle CronStartEvent, then save")
        profiler.register(CHAT_AGENT, **discovery(CHAT))
        profiler.save()
        profiler.trigger("UserMessageEvent")

    def test_one_whose_schedule_was_retired_is_told_so(self, profiler: Profiler) -> None:
        profiler.save()
        profiler.desk.retire()
        assert code_of(profiler.trigger, Conflict) == "schedule_retired"

    def test_the_calendars_event_is_there_for_a_class_that_handles_one_derived_from_it(
        self, profiler: Profiler
    ) -> None:
        profiler.register(start_events=["Sweep"], is_conversational=False, calendar_event="Sweep")
        profiler.save(saved(HOURLY))
        for event, named in (("CronStartEvent", None), ("Sweep", "Sweep")):
            run = run_to_start(SCOPE, profiler.trigger(event))
            assert run is not None
            profiler.desk.admit(run)
            assert profiler.desk.begin(run).start_event == named
        profiler.register()

    def test_an_event_is_asked_of_the_version_that_would_run(self, profiler: Profiler) -> None:
        newer = two_versions(profiler, start_events=["CronStartEvent", "Newer"])
        profiler.save()
        profiler.bind(agent_version=newer)
        assert code_of(lambda: profiler.trigger("Newer"), NotFound) == "start_event_not_found"
        profiler.save()
        profiler.trigger("Newer")

    def test_the_canonical_way_to_run_it_now_has_a_user_too(self, profiler: Profiler) -> None:
        reference = profiler.save().document["reference"]
        caller = Caller(profiler.desk)
        run = run_to_start(SCOPE, caller.trigger(caller.about(reference, 1)))
        assert run is not None
        row = profiler.desk.run_row(run)
        assert row is not None
        assert (row.triggered_by, row.start_event) == ("ada", None)

    def test_the_canonical_way_advises_nothing_that_is_refused_then(self, profiler: Profiler) -> None:
        reference = profiler.save().document["reference"]
        profiler.save(saved(None))
        caller = Caller(profiler.desk)
        with pytest.raises(Conflict) as caught:
            caller.trigger(caller.about(reference, 2))
        assert caught.value.code == "not_enabled"
        assert caught.value.next_step == "Save the profile with a cron, then try again."


def damage_config(profiler: Profiler) -> None:
    _set(profiler, config="no JSON at all")


def stored_config(connection: Any, profiler: Profiler) -> Any:
    mine = (rows.c.agent_class == profiler.agent_class) & (rows.c.agent_id == profiler.agent_id)
    return connection.execute(select(rows.c.config).where(mine)).scalar_one()


def damage_cron(profiler: Profiler) -> None:
    _set(profiler, config=func.replace(rows.c.config, '"minute":"*"', '"minute":"60"'))


def damage_version(profiler: Profiler) -> None:
    def act(connection: Any) -> None:
        row = require_schedule(connection, profiler.desk.key).row
        connection.execute(update(versions).where(versions.c.schedule == row).values(configuration="[]"))

    profiler.desk.write(act)


def _set(profiler: Profiler, **values: Any) -> None:
    mine = (rows.c.agent_class == profiler.agent_class) & (rows.c.agent_id == profiler.agent_id)
    profiler.desk.write(lambda connection: connection.execute(update(rows).where(mine).values(**values)))


class TestMalformed:
    @pytest.fixture(autouse=True)
    def a_new_process(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Which has told nothing yet."""
        monkeypatch.setattr(threads, "_TOLD", Once())

    @pytest.fixture
    def three(self, own_catalog: Catalog) -> list[Profiler]:
        furnish(own_catalog)
        made = [profiler_of(Desk(own_catalog), agent_id=f"p{n}") for n in range(3)]
        for each in made:
            each.save(saved(folder=each.agent_id))
        return made

    def listed(self, profiler: Profiler) -> tuple[dict[str, Any], list[Any]]:
        with capture_logs() as logs:
            found = profiler.desk.read(profiles.directory, profiler.who, profiler.scope, TRIAGE, now=profiler.desk.now)
        return {each["agent_id"]: each for each in found["profiles"]}, logs

    @pytest.mark.parametrize(
        ("harm", "told"),
        [
            (damage_config, "cannot be shown"),
            (damage_cron, "is none that could be saved"),
            (damage_version, "cannot be used"),
        ],
    )
    def test_it_is_told_with_its_fault_and_hides_no_other(
        self, three: list[Profiler], harm: Callable[[Profiler], None], told: str
    ) -> None:
        harm(three[1])
        found, logs = self.listed(three[0])
        assert [name for name, each in found.items() if each["fault"] is None] == ["p0", "p2"]
        assert told in found["p1"]["fault"]
        assert [(each["log_level"], each["agent_class"], each["profile"]) for each in logs] == [("error", TRIAGE, "p1")]
        assert three[1].show()["fault"] == found["p1"]["fault"]

    def test_whoever_reads_it_again_and_again_does_not_fill_the_log(self, three: list[Profiler]) -> None:
        damage_cron(three[1])
        with capture_logs() as logs:
            for _ in range(5):
                three[0].show()
                three[1].show()
        assert [each["profile"] for each in logs] == ["p1"]
        with capture_logs() as logs:
            damage_config(three[1])
            for _ in range(5):
                three[1].show()
        assert [each["profile"] for each in logs] == ["p1"], "another fault is told anew"
        assert three[1].show()["fault"] is not None

    def test_a_version_that_cannot_be_used_fires_no_more_and_starves_nobody(self, three: list[Profiler]) -> None:
        damage_version(three[1])
        for each in three:
            each.desk.now = at(57)
        with capture_logs() as logs:
            for each in three:
                loop = each.loop()
                found = loop.gather()
                if found.unusable is not None:
                    each.desk.write(stepping.give_up, loop.key, because=found.unusable, now=at(57))
                else:
                    each.world().pass_until(at(70))
        assert [(each["log_level"], each["event"], each["profile"]) for each in logs] == [
            ("error", "profile_malformed", "p1")
        ]
        assert [each.show()["state"] for each in three] == ["enabled", "review", "enabled"]
        assert [each.desk.told()[0][0] for each in (three[0], three[2])] == ["succeeded", "succeeded"]

    def test_a_damaged_row_is_put_right_by_saving_it(self, three: list[Profiler]) -> None:
        for harm in (damage_config, damage_version):
            harm(three[1])
            three[1].save(saved(folder="p1"))
            assert (three[1].show()["fault"], three[1].show()["state"]) == (None, "enabled")


class TestDirectory:
    def test_it_is_read_page_by_page(self, desk: Desk) -> None:
        profiler = Profiler(desk, agent_class="Paged")
        profiler.register("paged@1", agent_class="Paged")
        for name in ("c", "a", "B", "d", "gone"):
            profiler.agent_id = name
            profiler.save(saved(None))
        profiler.delete()

        def page(**more: Any) -> tuple[list[str], str | None]:
            found = desk.read(profiles.directory, profiler.who, SCOPE, "Paged", now=desk.now, **more)
            return [each["agent_id"] for each in found["profiles"]], found["next_cursor"]

        whole, cursor = page()
        assert (sorted(whole), cursor) == (["B", "a", "c", "d"], None)
        first, cursor = page(limit=3)
        rest, end = page(limit=3, after=cursor)
        assert (first + rest, cursor, end) == (whole, whole[2], None)

    def test_another_environments_profiles_are_not_there(self, profiler: Profiler) -> None:
        profiler.save(saved(None))
        other = strict(profiler.desk)
        found = profiler.desk.read(profiles.directory, principal(), other.scope, TRIAGE, now=profiler.desk.now)
        assert found == {"profiles": [], "next_cursor": None}
        other.agent_id = profiler.agent_id
        assert is_not_stored(other)

    def test_a_page_has_bounds_and_a_class_a_name(self, profiler: Profiler) -> None:
        def ask(agent_class: str, limit: int) -> Any:
            return profiler.desk.read(
                profiles.directory, profiler.who, SCOPE, agent_class, limit=limit, now=profiler.desk.now
            )

        for limit in (0, 51):
            assert code_of(lambda limit=limit: ask(TRIAGE, limit)) == "invalid_limit"
        assert code_of(lambda: ask("Nobody", 5), NotFound) == "agent_class_not_found"


class TestClasses:
    @pytest.fixture
    def desk(self, own_desk: Desk) -> Desk:
        return own_desk

    def classes(self, desk: Desk, **filters: bool) -> dict[str, dict[str, Any]]:
        found = desk.read(profiles.classes, principal(), SCOPE, now=desk.now, **filters)
        return {each["agent_class"]: each for each in found["agent_classes"]}

    def test_versions_of_one_class_are_one_and_can_what_the_newest_can(self, desk: Desk, profiler: Profiler) -> None:
        desk.now = at(60)
        profiler.register("worked@2", start_events=["CronStartEvent"], is_conversational=False, description="New.")
        found = self.classes(desk)[TRIAGE]
        assert [each["agent_version"] for each in found["agent_versions"]] == [AGENT, "worked@2"]
        assert (found["start_events"], found["is_conversational"], found["is_schedulable"]) == (
            ["CronStartEvent"],
            False,
            True,
        )
        assert found["agent_versions"][1]["description"] == "New."
        # Whose lease was renewed last, or who had to report itself again, is no newer for that.
        desk.now = at(120)
        profiler.register()
        desk.write(presence.renew_lease, SCOPE, AGENT, lease_until=FAR, now=at(130))
        assert not self.classes(desk)[TRIAGE]["is_conversational"]
        # One that was taken back is what the class was.
        desk.write(presence.release_agent, SCOPE, "worked@2", now=at(140))
        assert self.classes(desk)[TRIAGE]["is_conversational"]

    def test_a_class_that_handles_no_user_message_is_no_conversational_one(
        self, desk: Desk, profiler: Profiler
    ) -> None:
        profiler.register("ingest@1", agent_class="Ingest", start_events=["CronStartEvent"], is_conversational=False)
        assert set(self.classes(desk)) == {CHAT, "Ingest", TRIAGE}
        assert set(self.classes(desk, is_conversational=True)) == {CHAT, TRIAGE}
        assert set(self.classes(desk, is_conversational=False)) == {"Ingest"}
        assert set(self.classes(desk, is_schedulable=True)) == {"Ingest", TRIAGE}
        assert set(self.classes(desk, is_schedulable=True, is_conversational=True)) == {TRIAGE}

    def test_a_class_shows_what_its_profiles_are_filled_in_with(self, desk: Desk, profiler: Profiler) -> None:
        found = desk.read(profiles.class_of, principal(), SCOPE, TRIAGE, now=desk.now)
        assert found == self.classes(desk)[TRIAGE]
        assert found["submission_schema"] == SCHEMA
        assert [each["name"] for each in found["form"]] == ["folder", "cron"]

    def test_one_that_reports_nothing_is_no_class(self, desk: Desk) -> None:
        # As the runner of a release before classes were reported.
        assert self.classes(desk) == {}
        assert (
            code_of(lambda: desk.read(profiles.class_of, principal(), SCOPE, TRIAGE, now=desk.now), NotFound)
            == "agent_class_not_found"
        )

    def test_it_is_offline_since_the_last_lease_of_any_version_ended(self, desk: Desk, profiler: Profiler) -> None:
        assert self.classes(desk)[TRIAGE]["offline_since"] is None
        for version, ends in ((AGENT, 30), ("worked@2", 40)):
            profiler.register(version)
            desk.write(presence.renew_lease, SCOPE, version, lease_until=at(ends), now=desk.now)
        desk.now = at(39)
        assert self.classes(desk)[TRIAGE]["offline_since"] is None
        desk.now = at(100)
        assert self.classes(desk)[TRIAGE]["offline_since"] == "2026-11-30T12:00:40Z"
        desk.write(presence.renew_lease, SCOPE, AGENT, lease_until=FAR, now=desk.now)
        assert self.classes(desk)[TRIAGE]["offline_since"] is None
        desk.write(presence.release_agent, SCOPE, AGENT, now=desk.now)
        assert self.classes(desk)[TRIAGE]["offline_since"] == "2026-11-30T12:01:40Z"


def test_every_generation_of_a_profile_is_kept(profiler: Profiler) -> None:
    profiler.save(saved(folder="a"))
    profiler.save(saved(folder="b"))
    profiler.delete()
    profiler.save(saved(folder="b"))
    schedule = profiler.desk.read(require_schedule, profiler.desk.key)
    found = profiler.desk.read(list_activations, schedule)
    assert [(each.revision, each.enabled, each.is_live) for each in found] == [
        (1, True, False),
        (2, True, False),
        (2, False, False),
        (2, True, True),
    ]
    assert BOUND["agent_version"] == AGENT
    assert operations.run_to_start(SCOPE, profiler.save()) is None
