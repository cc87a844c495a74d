"""Cron profiles' documents (seed 004): what is accepted, what is refused and where, and what they compile to."""

import copy
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from horarium.errors import InvalidSchedule
from horarium.schedule.canonical import digest
from horarium.schedule.configuration import read_stored
from horarium.schedule.identity import Scope
from horarium.schedule.policy import Overlap
from horarium.schedule.profiles import (
    MAX_CONFIG_BYTES,
    MAX_EVENT_BYTES,
    binding_name,
    can_name,
    parse_event,
    parse_profile,
    profile_schedule_id,
    stored_document,
    thread_id,
)

CRON = {
    "minute": "0",
    "hour": "12",
    "day_of_month": "*",
    "month": "*",
    "day_of_week": "1-5",
    "timezone": "Europe/Zurich",
}
RUN = {
    "agent_version": "triage@1",
    "input": "in",
    "output_target": "out",
    "grants": [],
    "budget_id": None,
    "usage_class": "test_simulation",
}
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["folder", "cron"],
    "properties": {
        "folder": {"type": "string", "minLength": 1, "maxLength": 10},
        "limit": {"type": "integer", "minimum": 1, "exclusiveMaximum": 100, "default": 5},
        "kind": {"enum": ["all", "new"]},
        "labels": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
        "store": {"anyOf": [{"$ref": "#/$defs/Store"}, {"type": "null"}]},
        "cron": {"type": "string", "description": "Whatever stands here is not looked at."},
    },
    "$defs": {"Store": {"type": "object", "required": ["uri"], "properties": {"uri": {"type": "string"}}}},
}


def profile(cron: Any = CRON, **config: Any) -> dict[str, Any]:
    return {"config": {**config, "cron": copy.deepcopy(cron)}}


def with_cron(**changes: Any) -> dict[str, Any]:
    return profile({**CRON, **changes})


def faults_of(document: Any, schema: dict[str, Any] | None = None) -> list[tuple[str, str]]:
    with pytest.raises(InvalidSchedule) as refused:
        parse_profile(document, schema)
    assert all(fault.sentence for fault in refused.value.faults)
    return [(fault.pointer, fault.code) for fault in refused.value.faults]


class TestAccepted:
    def test_six_texts_are_a_schedule(self) -> None:
        parsed = parse_profile({**profile(folder="INBOX"), "tenant_id": "acme"})
        assert (parsed.cron, parsed.tenant_id, parsed.config["folder"]) == (CRON, "acme", "INBOX")
        assert parsed.calendar is not None
        friday_noon = datetime(2027, 1, 29, 11, tzinfo=UTC)
        assert parsed.calendar.after(friday_noon - timedelta(seconds=1)) == friday_noon
        assert parsed.calendar.after(friday_noon) == friday_noon + timedelta(days=3)

    @pytest.mark.parametrize("document", [{"config": {}}, profile(None), {"config": {}, "tenant_id": None}])
    def test_a_profile_without_a_cron_has_no_schedule(self, document: dict[str, Any]) -> None:
        parsed = parse_profile(document)
        assert (parsed.cron, parsed.calendar, parsed.tenant_id) == (None, None, None)

    def test_it_keeps_no_part_of_the_callers_document(self) -> None:
        document = profile(nested={"a": [1]})
        parsed = parse_profile(document)
        document["config"]["nested"]["a"].append(2)
        document["config"]["cron"]["minute"] = "1"
        assert parsed.config == profile(nested={"a": [1]})["config"]
        assert parsed.cron == CRON


class TestRefused:
    @pytest.mark.parametrize("position", ["minute", "hour", "day_of_month", "month", "day_of_week"])
    def test_a_bad_position_is_refused_at_itself(self, position: str) -> None:
        assert [at for at, _ in faults_of(with_cron(**{position: "99"}))] == [f"/config/cron/{position}"]

    def test_a_bad_zone_is_refused_at_itself(self) -> None:
        assert [at for at, _ in faults_of(with_cron(timezone="Mars/Olympus_Mons"))] == ["/config/cron/timezone"]

    @pytest.mark.parametrize("name", CRON)
    def test_nothing_is_inferred_from_what_is_missing(self, name: str) -> None:
        cron = {key: text for key, text in CRON.items() if key != name}
        assert faults_of(profile(cron)) == [(f"/config/cron/{name}", "missing_field")]

    def test_an_empty_cron_misses_all_six(self) -> None:
        found = faults_of(profile({}))
        assert {at.rpartition("/")[2] for at, code in found if code == "missing_field"} == set(CRON)

    def test_the_form_that_a_schedule_is_filled_in_with_is_none(self) -> None:
        form = {"$formkit": "cron", "name": "cron", "label": "Schedule", "value": None}
        found = faults_of(profile(form))
        assert {at for at, code in found if code == "unknown_field"} == {f"/config/cron/{each}" for each in form}
        assert len([code for _, code in found if code == "missing_field"]) == 6

    def test_a_form_with_six_texts_in_it_is_none_either(self) -> None:
        assert faults_of(with_cron(**{"$formkit": "cron"})) == [("/config/cron/$formkit", "unknown_field")]

    @pytest.mark.parametrize("cron", ["0 12 * * *", "", 5, True, False, [], ["0", "12"]])
    def test_what_is_no_object_is_no_schedule(self, cron: Any) -> None:
        assert faults_of(profile(cron)) == [("/config/cron", "not_a_cron")]

    @pytest.mark.parametrize("value", [None, 0, 5.0, True, ["0"], {}])
    def test_a_position_is_a_text(self, value: Any) -> None:
        assert faults_of(with_cron(minute=value)) == [("/config/cron/minute", "not_a_cron")]

    @pytest.mark.parametrize("name", ["start_at", "end_at", "second", "year"])
    def test_a_member_that_is_not_known_is_refused(self, name: str) -> None:
        assert faults_of(with_cron(**{name: "2027-01-01T00:00:00Z"})) == [(f"/config/cron/{name}", "unknown_field")]

    def test_all_faults_are_told_at_once(self) -> None:
        document = {**with_cron(minute="60", month="13", extra="x"), "tenant_id": 5, "user": "ada"}
        assert {at for at, _ in faults_of(document)} == {
            "/user",
            "/config/cron/extra",
            "/config/cron/minute",
            "/config/cron/month",
            "/tenant_id",
        }

    @pytest.mark.parametrize(
        ("document", "at"),
        [
            ([], ""),
            ({}, "/config"),
            ({"config": None}, "/config"),
            ({"config": []}, "/config"),
            ({"config": {}, "tenant_id": ""}, "/tenant_id"),
            ({"config": {}, "tenant_id": "a\nb"}, "/tenant_id"),
            ({"config": {}, "tenant_id": "x" * 201}, "/tenant_id"),
            ({"config": {"x": float("nan")}}, "/config/x"),
            ({"config": {"x": "y" * MAX_CONFIG_BYTES}}, "/config"),
        ],
    )
    def test_what_is_no_submission_is_refused(self, document: Any, at: str) -> None:
        assert [place for place, _ in faults_of(document)] == [at]


class TestSettings:
    """What the class reports of its other settings."""

    def test_what_fits_is_accepted(self) -> None:
        fitting = profile(folder="INBOX", limit=99, kind="new", labels=["a"], store={"uri": "x"})
        assert parse_profile(fitting, SCHEMA).config == fitting["config"]
        assert parse_profile(profile(folder="INBOX", store=None, limit=5.0), SCHEMA).cron == CRON

    @pytest.mark.parametrize(
        ("config", "at"),
        [
            ({}, "/config/folder"),
            ({"folder": ""}, "/config/folder"),
            ({"folder": "x" * 11}, "/config/folder"),
            ({"folder": 5}, "/config/folder"),
            ({"folder": "a", "limit": True}, "/config/limit"),
            ({"folder": "a", "limit": 0}, "/config/limit"),
            ({"folder": "a", "limit": 100}, "/config/limit"),
            ({"folder": "a", "limit": 2.5}, "/config/limit"),
            ({"folder": "a", "kind": "some"}, "/config/kind"),
            ({"folder": "a", "labels": [1]}, "/config/labels/0"),
            ({"folder": "a", "labels": ["1", "2", "3"]}, "/config/labels"),
            ({"folder": "a", "store": {}}, "/config/store/uri"),
            ({"folder": "a", "store": {"uri": 5}}, "/config/store/uri"),
            ({"folder": "a", "folders": "b"}, "/config/folders"),
        ],
    )
    def test_what_does_not_is_refused_at_itself(self, config: dict[str, Any], at: str) -> None:
        assert [place for place, _ in faults_of(profile(**config), SCHEMA)] == [at]

    def test_its_faults_are_told_with_those_of_the_cron(self) -> None:
        document = profile({**CRON, "minute": "60"}, folder=5)
        assert {at for at, _ in faults_of(document, SCHEMA)} == {"/config/cron/minute", "/config/folder"}

    def test_the_platform_alone_says_what_a_cron_is(self) -> None:
        assert parse_profile(profile(folder="a"), SCHEMA).cron == CRON
        assert parse_profile({"config": {"folder": "a"}}, SCHEMA).cron is None

    @pytest.mark.parametrize(
        "schema",
        [
            {},
            {"type": "no such type", "properties": 5, "required": "folder", "$defs": []},
            {"$ref": "#/$defs/Circle", "$defs": {"Circle": {"$ref": "#/$defs/Circle"}}},
            {"properties": {"folder": {"$ref": "#/$defs/No"}}},
            {
                "properties": {"folder": {"$ref": "#/$defs/Wide"}},
                "$defs": {"Wide": {"allOf": [{"$ref": "#/$defs/Wide"}] * 10}},
            },
        ],
    )
    def test_what_is_no_schema_refuses_nothing_and_ends(self, schema: dict[str, Any]) -> None:
        assert parse_profile(profile(folder="a"), schema).cron == CRON


class TestEvents:
    @pytest.mark.parametrize("document", [{}, {"event": {}}])
    def test_the_calendars_event_has_nothing_of_its_own(self, document: Any) -> None:
        assert parse_event(document, "CronStartEvent") == {}

    def test_another_event_has_its_own_fields(self) -> None:
        assert parse_event({"event": {"text": "Hello"}}, "UserMessageEvent") == {"text": "Hello"}

    @pytest.mark.parametrize(
        ("document", "event", "at"),
        [
            ([], "UserMessageEvent", ""),
            ({"text": "Hello"}, "UserMessageEvent", "/text"),
            ({"event": None}, "UserMessageEvent", "/event"),
            ({"event": {"run": {}}}, "UserMessageEvent", "/event/run"),
            ({"event": {"text": "x" * MAX_EVENT_BYTES}}, "UserMessageEvent", "/event"),
            ({"event": {"text": "Hello"}}, "CronStartEvent", "/event"),
            ({"event": {"n": 2**60}}, "UserMessageEvent", "/event/n"),
        ],
    )
    def test_what_is_no_event_is_refused(self, document: Any, event: str, at: str) -> None:
        with pytest.raises(InvalidSchedule) as refused:
            parse_event(document, event)
        assert [fault.pointer for fault in refused.value.faults] == [at]

    @pytest.mark.parametrize(
        ("event", "places"),
        [
            ({}, ["/event/folder"]),
            ({"folder": 1, "cron": 2, "other": 3}, ["/event/other", "/event/cron", "/event/folder"]),
            ({"run": {}, "folder": 1}, ["/event/run", "/event/folder"]),
        ],
    )
    def test_fields_that_do_not_fit_what_the_class_reports_are_told_all_at_once(
        self, event: dict[str, Any], places: list[str]
    ) -> None:
        """None of them is the platform's, as `cron` is in a configuration."""
        schema = {
            "type": "object",
            "properties": {"folder": {"type": "string"}, "cron": {"type": "string"}},
            "required": ["folder"],
            "additionalProperties": False,
        }
        assert parse_event({"event": {"folder": "INBOX"}}, "Sweep", schema) == {"folder": "INBOX"}
        with pytest.raises(InvalidSchedule) as refused:
            parse_event({"event": event}, "Sweep", schema)
        assert sorted(fault.pointer for fault in refused.value.faults) == sorted(places)

    @pytest.mark.parametrize("schema", [None, {}, [], "object", {"properties": 7}, {"$ref": "#/$defs/Nothing"}])
    def test_what_is_no_schema_says_nothing_against_an_event(self, schema: Any) -> None:
        assert parse_event({"event": {"folder": 1}}, "Sweep", schema) == {"folder": 1}


class TestCompiled:
    def stored(self, document: dict[str, Any] | None = None) -> dict[str, Any]:
        parsed = parse_profile(document or {**profile(folder="INBOX"), "tenant_id": "acme"})
        return stored_document(parsed, RUN, agent_class="Triage", agent_id="inbox")

    def test_it_runs_beside_itself_in_a_quarter_of_an_hour_and_pauses_on_nothing(self) -> None:
        read = read_stored(self.stored())
        assert (read.name, read.timing) == ("Triage/inbox", {"cron": CRON})
        assert (read.policy.overlap, read.policy.slots) == (Overlap.ALLOW, None)
        assert read.policy.catchup_window == timedelta(minutes=15)
        assert not read.policy.pause_on_failure

    def test_it_names_the_profile_and_what_configures_it(self) -> None:
        stored = self.stored()
        assert stored["contract"] == "cron_profiles"
        assert stored["run"] == RUN
        assert stored["source"] == {
            "agent_class": "Triage",
            "agent_id": "inbox",
            "tenant_id": "acme",
            "config": {"folder": "INBOX", "cron": CRON},
        }

    def test_one_profile_is_one_document(self) -> None:
        assert digest(self.stored()) == digest(
            self.stored(copy.deepcopy({**profile(folder="INBOX"), "tenant_id": "acme"}))
        )
        assert digest(self.stored()) != digest(self.stored({**profile(folder="INBOX"), "tenant_id": "other"}))


class TestIds:
    def test_a_threads_id_is_the_hash_of_class_and_profile(self) -> None:
        # `printf Triage/support-inbox | sha256sum`
        assert (
            thread_id("Triage", "support-inbox") == "010b1c16fad40a4f5d65c966e669cc29f1733c33071846eed7d27270f336c9c6"
        )

    def test_a_schedules_id_follows_from_the_profile_and_its_environment(self) -> None:
        scopes = [Scope(org_id="acme", environment_id=each) for each in ("test", "live")]
        names = [("Triage", "a"), ("Triage", "b"), ("Report", "a")]
        ids = [profile_schedule_id(scope, *name) for scope in scopes for name in names]
        assert len(set(ids)) == len(ids)
        assert ids == [profile_schedule_id(scope, *name) for scope in scopes for name in names]
        assert [str(uuid.UUID(each)) for each in ids] == ids
        # What is stored under it must be found by the next release too.
        assert ids[0] == "8e122409-cc9d-59dc-ae29-d10c8c5bece9"

    def test_a_binding_names_class_and_profile(self) -> None:
        assert binding_name("Triage", "inbox") == "cron:Triage/inbox"


@pytest.mark.parametrize("agent_id", ["support", "a", "x" * 200, "a.b_c@d:e-f", "...", ".a"])
def test_a_profile_is_called_by_one_word(agent_id: str) -> None:
    assert can_name("Triage", agent_id)


@pytest.mark.parametrize(
    ("agent_class", "agent_id"),
    [
        ("Triage", ""),
        ("Triage", "x" * 201),
        ("Triage", "a/b"),
        ("Triage", "a b"),
        ("Triage", "\0"),
        ("Triage", "\ud800"),
        ("Triage", "support\n"),
        ("Triage", "."),
        ("Triage", ".."),
        ("", "support"),
        ("Tri age", "support"),
        ("a/b", "support"),
        ("\ud800", "support"),
        ("\0", "support"),
    ],
)
def test_what_can_be_no_name_is_none(agent_class: str, agent_id: str) -> None:
    """A step in a path among it: its address could not be written."""
    assert not can_name(agent_class, agent_id)
