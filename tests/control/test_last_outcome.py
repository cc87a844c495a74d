"""Whoever sees that a schedule is enabled also sees what became of it last: it may be refused each time."""

from typing import Any

import pytest
from sqlalchemy import update
from structlog.testing import capture_logs

from horarium.catalog.tables import agents, declarations
from horarium.control import admission, profile_fits, profiles
from horarium.schedule.ceilings import Ceilings
from tests.control.desk import SCOPE, Desk, at
from tests.control.operators import Operator
from tests.control.profiler import BOUND, SCHEMA, Profiler, profiler_of, saved
from tests.control.test_v0 import MINUTES, Scheduler


@pytest.fixture
def profiler(desk: Desk) -> Profiler:
    return profiler_of(desk)


def in_directory(profiler: Profiler) -> dict[str, Any]:
    found = profiler.desk.read(
        profiles.directory, profiler.who, SCOPE, profiler.agent_class, limit=50, now=profiler.desk.now
    )
    (mine,) = [each for each in found["profiles"] if each["agent_id"] == profiler.agent_id]
    return dict(mine)


def test_nothing_is_told_before_the_first(profiler: Profiler) -> None:
    profiler.save(saved(None))
    assert profiler.show()["last_outcome"] is None
    profiler.save()
    assert profiler.show()["last_outcome"] is None


def test_one_that_is_refused_each_time_says_so(profiler: Profiler) -> None:
    profiler.save()
    profiler.world().pass_until(at(70))
    told = {"disposition": "succeeded", "reason": None, "nominal_time": "2026-11-30T12:01:00Z"}
    assert profiler.show()["last_outcome"] == told
    loop = profiler.loop()
    for minute in (2, 3):
        loop.step_at(60 * minute - 3)
        run = loop.run(60 * minute)
        lowered = Ceilings(per_profile=720)
        profiler.desk.now = at(60 * minute)
        found = profiler.desk.write(
            admission.decide, run, profiler.desk.content, owner="execution", now=profiler.desk.now, ceilings=lowered
        )
        assert found.reason == "ceiling_exceeded"
        told = {
            "disposition": "refused",
            "reason": "ceiling_exceeded",
            "nominal_time": f"2026-11-30T12:0{minute}:00Z",
        }
        assert (profiler.show()["state"], profiler.show()["last_outcome"]) == ("enabled", told)
        assert in_directory(profiler) == profiler.show()


def test_what_ended_last_is_told_and_not_what_fell_due_last(profiler: Profiler) -> None:
    profiler.save()
    profiler.world(takes=90).pass_until(at(155))
    assert profiler.show()["last_outcome"]["nominal_time"] == "2026-11-30T12:01:00Z"


def test_of_scheduler_v0_too(desk: Desk) -> None:
    target = MINUTES["target"]
    Operator(desk.catalog, SCOPE).declare("binding", f"v0:{target['workspace_id']}/{target['agent_id']}", run=BOUND)
    scheduler = Scheduler(desk)
    scheduler.create(MINUTES)
    assert scheduler.show()["last_outcome"] is None
    scheduler.world().pass_until(at(70))
    told = {"disposition": "succeeded", "reason": None, "nominal_time": "2026-11-30T12:01:00Z"}
    assert scheduler.show()["last_outcome"] == told
    assert scheduler.show() in scheduler.listed()


class TestSettings:
    def test_those_that_do_not_fit_any_more_are_told_with_what_to_do(self, profiler: Profiler) -> None:
        profiler.agent_class, first, second = "Settled", "settled@1", "settled@2"
        newer = {"type": "object", "properties": {"mailbox": {"type": "string"}}, "additionalProperties": False}
        profiler.register(first, agent_class="Settled", submission_schema=SCHEMA)
        profiler.bind(agent_version=first)
        profiler.save(saved(folder="INBOX"))
        assert profiler.show()["fault"] is None
        profiler.register(second, agent_class="Settled", submission_schema=newer)
        assert profiler.show()["fault"] is None
        profiler.bind(agent_version=second)
        assert "which its binding names" in profiler.show()["fault"]
        assert "/config/folder" in profiler.show()["fault"]
        profiler.bind(agent_version=first)
        profiler.register(first, agent_class="Settled", submission_schema=newer)
        with capture_logs() as logs:
            shown = profiler.show()
        assert logs == []
        assert "does not fit settled@1, which its runs are handed to" in shown["fault"]
        assert "Save the profile with settings that fit." in shown["fault"]
        assert (shown["state"], in_directory(profiler)) == ("enabled", shown)
        profiler.save(saved(mailbox="INBOX"))
        assert profiler.show()["fault"] is None

    def test_a_damaged_declaration_or_report_hides_nothing(self, own_desk: Desk) -> None:
        profiler = profiler_of(own_desk)
        profiler.save(saved(folder="INBOX"))
        own_desk.write(lambda c: c.execute(update(declarations).values(facts={"run": 7})))
        own_desk.write(lambda c: c.execute(update(agents).values(discovery=[])))
        assert profiler.show()["fault"] is None

    def test_a_page_is_looked_at_within_bounds(self, profiler: Profiler, monkeypatch: pytest.MonkeyPatch) -> None:
        profiler.agent_class = "Bounded"
        strings = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}}
        profiler.register("bounded@1", agent_class="Bounded", submission_schema=strings)
        profiler.bind(agent_version="bounded@1")
        profiler.save(saved(a=["x"] * 30))
        numbers = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}}
        profiler.register("bounded@1", agent_class="Bounded", submission_schema=numbers)
        assert "There are 30 faults" in profiler.show()["fault"]
        monkeypatch.setattr(profile_fits, "MAX_LOOKS", 12)
        assert "There are 10 faults" in profiler.show()["fault"]
        monkeypatch.setattr(profile_fits, "MAX_LOOKS", 1)
        assert profiler.show()["fault"] is None
