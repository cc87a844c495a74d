"""Agent classes as they are stored: many of them, with long reports, and some of them damaged."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import event, insert, text
from structlog.testing import capture_logs

from horarium.catalog.tables import agents
from horarium.control import profiles, registrations
from horarium.control.once import Once
from horarium.errors import NotAdmissible, NotFound, Refused
from tests.control.caller import principal
from tests.control.desk import AGENT, FAR, NOON, SCOPE, Desk, at, every
from tests.control.profiler import CHAT, CHAT_AGENT, TRIAGE, Profiler, discovery, profiler_of
from tests.control.test_profiles import code_of

LONG = {"type": "object", "properties": {f"field_{n}": {"type": "string"} for n in range(500)}}


@pytest.fixture
def desk(own_desk: Desk) -> Desk:
    return own_desk


@pytest.fixture
def profiler(desk: Desk) -> Profiler:
    return profiler_of(desk)


def damage(desk: Desk, agent_version: str, stored: str) -> None:
    """As by a hand that meant well. PostgreSQL keeps a column of JSON from being none."""
    here = "org_id = :org AND environment_id = :environment AND agent_version = :version"
    said = {"org": SCOPE.org_id, "environment": SCOPE.environment_id, "version": agent_version, "stored": stored}
    column = "CAST(:stored AS json)" if desk.catalog.engine.dialect.name == "postgresql" else ":stored"
    desk.write(lambda c: c.execute(text(f"UPDATE agents SET discovery = {column} WHERE {here}"), said))


def damages(desk: Desk) -> list[str]:
    wrong = [
        *(("start_events", value) for value in (5, None, [5])),
        *(("submission_schema", value) for value in ("abc", 5, [])),
        *(("form", value) for value in (7, [7], {})),
        *(("event_schemas", value) for value in (7, {"CronStartEvent": 7})),
        *((name, []) for name in ("is_schedulable", "idempotent", "max_run_seconds", "calendar_event", "task_queue")),
    ]
    told = [json.dumps({**discovery(), "form": [{"a": "?"}]}).replace('"?"', each) for each in ("1e999", '"\\ud800"')]
    common = ["[]", "7", "null", *(json.dumps({**discovery(), name: value}) for name, value in wrong), *told]
    return (
        common
        if desk.catalog.engine.dialect.name == "postgresql"
        else [*common, told[0].replace("1e999", "NaN"), "{", "", "[" * 100_000]
    )


def classes(desk: Desk, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = desk.read(profiles.classes, principal(), SCOPE, now=desk.now, **more)
    return found


def names(found: dict[str, Any]) -> list[str]:
    return [each["agent_class"] for each in found["agent_classes"]]


class TestDamaged:
    def test_a_damaged_report_of_another_class_keeps_nothing_from_being_done(
        self, desk: Desk, profiler: Profiler
    ) -> None:
        for stored in damages(desk):
            damage(desk, CHAT_AGENT, stored)
            assert profiler.save().document["enabled"]
            assert profiler.trigger().document["start_event"] == "CronStartEvent"
            assert names(classes(desk)) == [TRIAGE]

    def test_it_is_told_to_the_log_as_an_error_and_once(
        self, desk: Desk, profiler: Profiler, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(registrations, "_TOLD", Once())
        profiler.register("told@1", agent_class="Told")
        damage(desk, "told@1", "[]")
        with capture_logs() as logs:
            for _ in range(5):
                classes(desk)
        assert logs == [
            {
                "event": "registration_malformed",
                "log_level": "error",
                "agent_version": "told@1",
                "agent_class": "Told",
                "org_id": "acme",
                "environment_id": "test",
                "fault": "It is no object.",
            }
        ]

    def test_the_next_newest_version_speaks_for_the_class(self, desk: Desk, profiler: Profiler) -> None:
        desk.now = at(60)
        profiler.register("worked@2", start_events=["CronStartEvent"], is_conversational=False)
        damage(desk, "worked@2", "[]")
        [found] = [each for each in classes(desk)["agent_classes"] if each["agent_class"] == TRIAGE]
        assert found["is_conversational"]
        assert [each["agent_version"] for each in found["agent_versions"]] == [AGENT, "worked@2"]

    def test_a_class_of_which_nothing_can_be_read_is_none(self, desk: Desk, profiler: Profiler) -> None:
        damage(desk, AGENT, "[]")
        assert names(classes(desk)) == [CHAT]
        assert code_of(profiler.save, Refused) == "agent_class_not_found"

    @pytest.mark.parametrize("near", [str.lower, str.upper, lambda name: name[:-1]])
    def test_a_class_that_may_have_been_meant_is_named(self, profiler: Profiler, near: Callable[[str], str]) -> None:
        profiler.agent_class = near(TRIAGE)
        with pytest.raises(NotFound, match=f"Did you mean '{TRIAGE}'"):
            profiler.save()
        profiler.agent_class = "Elsewhere"
        with pytest.raises(NotFound) as caught:
            profiler.save()
        assert "Did you mean" not in str(caught.value)

    def test_a_version_that_cannot_be_read_is_vouched_for_by_nobody(self, desk: Desk) -> None:
        loop = desk.enabled(every(60))
        damage(desk, AGENT, "[]")
        loop.step_at(57)
        desk.now = at(60)
        assert desk.admit(loop.run(60)).outcome == "refused"
        with pytest.raises(NotAdmissible):
            desk.enable()

    def test_its_runner_repairs_it_by_reporting_again(self, desk: Desk, profiler: Profiler) -> None:
        damage(desk, AGENT, "[]")
        profiler.register()
        assert names(classes(desk)) == [CHAT, TRIAGE]


class TestMany:
    def crowd(self, desk: Desk, count: int, agent_class: str | None = None) -> None:
        """So many versions with long reports, each of a class of its own where none is named."""
        kept = {
            "lifecycle": "ready",
            "lease_until": FAR,
            "seen_at": NOON,
            "registered_at": NOON,
            "description": "Long.",
        }
        key = {"org_id": SCOPE.org_id, "environment_id": SCOPE.environment_id}
        rows = []
        for number in range(count):
            name = agent_class or f"Crowd{number:04}"
            told = discovery(name, submission_schema=LONG, form=[{"name": "x" * 1_000}])
            rows.append({**key, **kept, "agent_version": f"{name}-{number}@1", "agent_class": name, "discovery": told})
        desk.write(lambda connection: connection.execute(insert(agents), rows))

    def test_a_page_goes_on_behind_the_one_before(self, desk: Desk, profiler: Profiler) -> None:
        self.crowd(desk, 7)
        found, after = [], None
        while True:
            page = classes(desk, after=after, limit=3)
            found += names(page)
            after = page["next_cursor"]
            if after is None:
                break
            assert len(page["agent_classes"]) == 3
        assert found == [CHAT, *(f"Crowd{number:04}" for number in range(7)), TRIAGE]

    @pytest.mark.parametrize("limit", [0, 51, -1])
    def test_a_page_is_bounded(self, desk: Desk, limit: int) -> None:
        assert code_of(lambda: classes(desk, limit=limit), Refused) == "invalid_limit"

    def test_a_filter_leaves_the_place_to_go_on(self, desk: Desk, profiler: Profiler) -> None:
        page = classes(desk, limit=1, is_schedulable=True)
        assert (names(page), page["next_cursor"]) == ([], CHAT)
        assert names(classes(desk, limit=1, after=CHAT, is_schedulable=True)) == [TRIAGE]

    def test_of_many_versions_the_newest_are_shown(self, desk: Desk, profiler: Profiler) -> None:
        self.crowd(desk, 150, TRIAGE)
        desk.now = at(60)
        profiler.register("worked@2")
        found = desk.read(profiles.class_of, principal(), SCOPE, TRIAGE, now=desk.now)
        shown = [each["agent_version"] for each in found["agent_versions"]]
        assert len(shown) == 100
        assert "worked@2" in shown
        assert found["offline_since"] is None

    def test_to_save_or_to_start_a_profile_reads_one_report_however_many_there_are(
        self, desk: Desk, profiler: Profiler
    ) -> None:
        read: list[int] = []

        def count(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
            if "agents.discovery" in statement:
                read.append(1)

        profiler.save()
        for others in (0, 300):
            if others:
                self.crowd(desk, others)
                self.crowd(desk, others, TRIAGE)
            engine = desk.catalog.engine
            event.listen(engine, "after_cursor_execute", count)
            profiler.save()
            profiler.trigger()
            event.remove(engine, "after_cursor_execute", count)
        assert len(set(read)) == 1
