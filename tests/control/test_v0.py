"""Scheduler v0's operations (seed 002) against a real catalog: created, updated, paused, resumed, disabled, and its events."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from sqlalchemy import event, update

from horarium.catalog import Catalog, presence
from horarium.catalog.schedules import require_schedule
from horarium.catalog.tables import versions
from horarium.control import activation, v0
from horarium.control.audit import audit
from horarium.control.principals import Principal, PrincipalKind
from horarium.control.publication import publish
from horarium.control.receipts import Receipt
from horarium.control.records import record
from horarium.errors import Conflict, Forbidden, InvalidSchedule, NotAdmissible, NotFound, Refused
from horarium.schedule.identity import Scope, instant_text, schedule_key
from horarium.schedule.ledger import Disposition
from tests.control.caller import events, new_key, principal
from tests.control.desk import AGENT, FAR, NOON, SCOPE, Desk, Loop, at, every, seconds
from tests.control.operators import Operator
from tests.control.world import Work, World
from tests.schedule.test_v0 import CRON, ONE_SHOT, RUN

BOUND = {**RUN, "agent_version": AGENT}
MINUTES = {"type": "interval", "spec": {"every_seconds": 60}, "target": CRON["target"]}


def once(offset: float) -> dict[str, Any]:
    return {**ONE_SHOT, "spec": {"run_at": instant_text(at(offset))}}


def deferring(document: dict[str, Any]) -> dict[str, Any]:
    return {**document, "policy": {"misfire": "defer_once"}}


@dataclass(slots=True)
class Scheduler:
    """One who asks in the words of the contract, for the schedule of a desk once it is created."""

    desk: Desk
    who: Principal = field(default_factory=principal)

    def create(self, document: Any, key: str | None = None) -> Receipt:
        receipt = self.desk.write(
            v0.create,
            self.who,
            self.desk.key.scope,
            document,
            key or new_key(),
            content=self.desk.content,
            now=self.desk.now,
        )
        self.desk.key = schedule_key(self.desk.key.scope, receipt.document["schedule_id"])
        return receipt

    def update(self, document: Any, key: str | None = None) -> Receipt:
        return self.desk.write(
            v0.update,
            self.who,
            self.desk.key.scope,
            document,
            key or new_key(),
            schedule_id=self.desk.key.schedule_id,
            content=self.desk.content,
            now=self.desk.now,
        )

    def _ask(self, act: Callable[..., Receipt], key: str | None, **more: Any) -> Receipt:
        key = key or new_key()
        scope, schedule_id = self.desk.key.scope, self.desk.key.schedule_id
        return self.desk.write(act, self.who, scope, schedule_id, key, now=self.desk.now, **more)

    def pause(self, key: str | None = None) -> Receipt:
        return self._ask(v0.pause, key)

    def resume(self, key: str | None = None) -> Receipt:
        return self._ask(v0.resume, key, content=self.desk.content)

    def disable(self, key: str | None = None) -> Receipt:
        return self._ask(v0.disable, key)

    def show(self) -> dict[str, Any]:
        return self.desk.read(v0.show, self.who, self.desk.key.scope, self.desk.key.schedule_id)

    def page(self, **parts: Any) -> dict[str, Any]:
        return self.desk.read(v0.directory, self.who, SCOPE, **parts)

    def listed(self, *, limit: int = 50) -> list[dict[str, Any]]:
        """Every page: other tests made schedules in this catalog, too."""
        found: list[dict[str, Any]] = []
        after = None
        while True:
            page = self.page(after=after, limit=limit)
            found += page["schedules"]
            after = page["next_cursor"]
            if after is None:
                return found

    def events(self, **parts: Any) -> list[dict[str, Any]]:
        return self.desk.read(v0.events, self.who, SCOPE, self.desk.key.schedule_id, **parts)

    def told(self) -> list[str]:
        """The events of the contract, in their order."""
        return [each["kind"] for each in events(self.desk) if each["kind"].isupper()]

    def world(self, *, takes: float = 1) -> World:
        """The processes around the activation that was made last; each run takes so many seconds."""
        world = World(self.desk, lambda _: Work(takes=seconds(takes)))
        current = self.desk.activation()
        changed = activation.ActivationKey(schedule=self.desk.key, generation=current.generation)
        if current.is_live:
            world.loops[current.generation] = Loop(self.desk, changed, wake=self.desk.now)
        return world

    def check(self) -> None:
        self.desk.check_ledger()
        found = self.desk.read(audit, self.desk.key, now=self.desk.now)
        assert found.clean, found.schedules


@pytest.fixture
def scheduler(desk: Desk) -> Scheduler:
    for target in (ONE_SHOT["target"], CRON["target"]):
        name = f"v0:{target['workspace_id']}/{target['agent_id']}"
        Operator(desk.catalog, SCOPE).declare("binding", name, run=BOUND)
    return Scheduler(desk)


def code_of(act: Callable[[], Any], kind: type[Refused] = Conflict) -> str:
    with pytest.raises(kind) as caught:
        act()
    assert caught.value.sentence
    return caught.value.code


class TestCreating:
    def test_the_contracts_own_cron_runs_from_its_next_quarter_on(self, scheduler: Scheduler) -> None:
        receipt = scheduler.create(CRON)
        assert (receipt.document["enabled"], receipt.document["generation"]) == (True, 1)
        scheduler.world().pass_until(at(1_000))
        assert scheduler.desk.told() == [("succeeded", 900, 900, 1)]
        assert scheduler.told() == ["SCHEDULE_CREATED", "SCHEDULE_TRIGGERED"]
        scheduler.check()

    def test_what_runs_is_what_the_binding_said_when_it_was_saved(self, scheduler: Scheduler) -> None:
        scheduler.create(CRON)
        Operator(scheduler.desk.catalog, SCOPE).declare(
            "binding", "v0:ws-001/opencode", run={**BOUND, "input": "other"}
        )
        shown = scheduler.desk.read(record, scheduler.desk.key, now=NOON)["configuration"]
        assert (shown["contract"], shown["source"], shown["run"]) == ("v0", CRON, BOUND)
        assert scheduler.show()["schedule"] == CRON

    def test_without_a_binding_it_is_refused_and_nothing_is_stored(self, scheduler: Scheduler) -> None:
        document = {**CRON, "target": {"workspace_id": "ws-001", "agent_id": "nobody"}}
        key = new_key()
        assert code_of(lambda: scheduler.create(document, key), Refused) == "binding_missing"
        assert not scheduler.create(CRON, key).replayed

    def test_a_document_with_faults_is_refused_with_all_of_them(self, scheduler: Scheduler) -> None:
        with pytest.raises(InvalidSchedule) as refused:
            scheduler.create({"type": "cron", "spec": {}, "target": {"session_id": "s"}})
        assert len(refused.value.faults) == 4

    def test_it_needs_a_person(self, scheduler: Scheduler) -> None:
        scheduler.who = principal("ci", PrincipalKind.KEY)
        assert code_of(lambda: scheduler.create(CRON), Forbidden) == "human_session_required"

    def test_the_same_key_creates_one_schedule(self, scheduler: Scheduler) -> None:
        key = new_key()
        first, again = scheduler.create(CRON, key), scheduler.create(CRON, key)
        assert (again.replayed, again.document["schedule_id"]) == (True, first.document["schedule_id"])
        assert code_of(lambda: scheduler.create(MINUTES, key)) == "idempotency_key_reused"

    def test_it_waits_for_approval_where_live_runs_do_and_the_digest_is_known_before(self, catalog: Catalog) -> None:
        desk = Desk(catalog)
        scope = Scope(org_id="acme", environment_id="production")
        desk.key = schedule_key(scope, desk.key.schedule_id)
        operator = Operator(catalog, scope)
        operator.open(mode="live", live_needs_approval=True)
        operator.declare_usual()
        operator.declare("budget", "live", usage_classes=["live"], pays_by="credits", limit=1_000, currency="CHF")
        bound = {**BOUND, "usage_class": "live", "budget_id": "live"}
        operator.declare("binding", "v0:ws-001/opencode", run=bound)
        discovery = {"is_schedulable": True, "task_queue": "agents", "max_run_seconds": 60, "idempotent": False}
        desk.write(presence.register_agent, scope, AGENT, discovery, lease_until=FAR, now=NOON)
        scheduler = Scheduler(desk)
        with pytest.raises(NotAdmissible) as refused:
            scheduler.create(CRON)
        (objection,) = refused.value.objections
        assert objection["code"] == "approval_missing"
        digest = objection["evidence"]["digest"]
        operator.declare("approval", digest, by="grace", expires_at=instant_text(FAR))
        assert scheduler.create(CRON).document["reference"]["digest"] == digest


class TestOneShot:
    def test_it_runs_once_and_has_nothing_left_then(self, scheduler: Scheduler) -> None:
        scheduler.create(once(60))
        scheduler.world().pass_until(at(120))
        assert scheduler.desk.told() == [("succeeded", 60, 60, 1)]
        assert scheduler.show()["state"] == "review"
        assert scheduler.show()["reason"].startswith("calendar_exhausted")
        assert scheduler.told() == ["SCHEDULE_CREATED", "SCHEDULE_TRIGGERED"]
        scheduler.check()

    @pytest.mark.parametrize(
        "document", [ONE_SHOT, once(-3), once(0)], ids=["of the contract", "a moment ago", "this very second"]
    )
    def test_one_that_has_passed_is_accepted_missed_and_never_runs(
        self, scheduler: Scheduler, document: dict[str, Any]
    ) -> None:
        receipt = scheduler.create(document)
        assert not receipt.document["enabled"]
        assert "never runs" in receipt.document["warnings"][0]
        (entry,) = scheduler.desk.entries()
        assert (entry.disposition, entry.reason, entry.count) == (Disposition.MISSED, "already_passed", 1)
        assert scheduler.told() == ["SCHEDULE_CREATED", "MISFIRED_SKIPPED"]
        scheduler.world().pass_until(at(60))
        assert not scheduler.desk.started
        assert scheduler.show()["state"] == "review"
        scheduler.check()

    def test_one_that_nobody_listened_to_is_missed(self, scheduler: Scheduler) -> None:
        scheduler.create(once(60))
        world = scheduler.world()
        world.schedules_up = False
        world.pass_until(at(80))
        world.schedules_up = True
        world.pass_until(at(90))
        assert scheduler.desk.told() == [("missed", 60, 60, 1)]
        assert scheduler.told() == ["SCHEDULE_CREATED", "MISFIRED_SKIPPED"]
        scheduler.check()

    def test_one_that_came_too_late_to_its_admission_is_missed_too(self, scheduler: Scheduler) -> None:
        scheduler.create(once(60))
        world = scheduler.world()
        world.runs_up = False
        world.pass_until(at(80))
        world.runs_up = True
        world.pass_until(at(90))
        assert scheduler.desk.told() == [("missed", 60, 60, 1)]
        assert scheduler.told() == ["SCHEDULE_CREATED", "MISFIRED_SKIPPED"]
        scheduler.check()

    def test_a_spent_one_goes_on_with_the_instant_of_its_update(self, scheduler: Scheduler) -> None:
        scheduler.create(once(60))
        scheduler.world().pass_until(at(120))
        scheduler.update(once(180))
        # It had stopped: to the contract that is an update, and then a schedule that fires again.
        told = ["SCHEDULE_CREATED", "SCHEDULE_TRIGGERED", "SCHEDULE_UPDATED", "SCHEDULE_RESUMED"]
        assert scheduler.told() == told
        scheduler.world().pass_until(at(240))
        assert [each[1] for each in scheduler.desk.told()] == [60, 180]
        assert scheduler.told() == [*told, "SCHEDULE_TRIGGERED"]
        scheduler.check()

    def test_a_time_that_was_answered_for_has_no_room_for_another_instant(self, scheduler: Scheduler) -> None:
        scheduler.create(once(60))
        scheduler.desk.now = at(30)
        assert code_of(lambda: scheduler.update(once(10))) == "run_at_passed"
        assert scheduler.show()["schedule"] == once(60)

    def test_one_that_passes_while_paused_is_missed_when_it_is_resumed(self, scheduler: Scheduler) -> None:
        scheduler.create(once(60))
        scheduler.pause()
        scheduler.desk.now = at(120)
        assert not scheduler.resume().document["enabled"]
        assert scheduler.desk.told() == [("missed", 60, 60, 1)]
        scheduler.check()


class TestChanging:
    def test_an_update_of_an_enabled_schedule_replaces_what_fires(self, scheduler: Scheduler) -> None:
        scheduler.create(MINUTES)
        scheduler.desk.now = at(30)
        receipt = scheduler.update({**MINUTES, "spec": {"every_seconds": 100, "offset_seconds": 20}})
        assert (receipt.document["generation"], receipt.document["ended_generation"]) == (2, 1)
        scheduler.world().pass_until(at(170))
        assert [each[1] for each in scheduler.desk.told()] == [120]
        assert scheduler.told()[:2] == ["SCHEDULE_CREATED", "SCHEDULE_UPDATED"]
        scheduler.check()

    def test_an_update_of_a_paused_schedule_leaves_it_paused(self, scheduler: Scheduler) -> None:
        scheduler.create(MINUTES)
        scheduler.pause()
        assert not scheduler.update(CRON).document["enabled"]
        assert scheduler.show()["state"] == "paused"
        scheduler.resume()
        scheduler.world().pass_until(at(1_000))
        assert scheduler.desk.told() == [("succeeded", 900, 900, 1)]

    def test_every_change_is_an_event_with_its_version_and_receipt(self, scheduler: Scheduler) -> None:
        receipts = [
            scheduler.create(MINUTES),
            scheduler.pause(),
            scheduler.update(CRON),
            scheduler.resume(),
            scheduler.disable(),
        ]
        told = [each for each in events(scheduler.desk) if each["kind"].isupper()]
        assert [each["kind"] for each in told] == [
            "SCHEDULE_CREATED",
            "SCHEDULE_PAUSED",
            "SCHEDULE_UPDATED",
            "SCHEDULE_RESUMED",
            "SCHEDULE_DISABLED",
        ]
        assert [each["details"]["receipt_id"] for each in told] == [each.document["receipt_id"] for each in receipts]
        assert {each["actor"] for each in told} == {"ada"}
        assert [each["revision"] for each in told] == [1, 1, 2, 2, 2]

    def test_what_is_disabled_is_so_for_good(self, scheduler: Scheduler) -> None:
        scheduler.create(MINUTES)
        scheduler.disable()
        assert scheduler.show()["state"] == "disabled"
        for act in (scheduler.pause, scheduler.resume, scheduler.disable, lambda: scheduler.update(CRON)):
            with pytest.raises(Conflict, match=r"was disabled on 20.*; that is final") as caught:
                act()
            assert (caught.value.code, caught.value.next_step) == ("schedule_retired", "Create another schedule.")

    def test_pausing_and_resuming_twice_are_conflicts(self, scheduler: Scheduler) -> None:
        scheduler.create(MINUTES)
        assert code_of(scheduler.resume) == "not_paused"
        scheduler.pause()
        with pytest.raises(Conflict, match="`horarium v0 get`") as caught:
            scheduler.pause()
        assert caught.value.code == "already_paused"

    def test_a_lost_answer_is_asked_for_again(self, scheduler: Scheduler) -> None:
        scheduler.create(MINUTES)
        key = new_key()
        assert [scheduler.pause(key).replayed, scheduler.pause(key).replayed] == [False, True]

    def test_a_schedule_of_another_contract_is_not_there(self, scheduler: Scheduler) -> None:
        scheduler.desk.publish(every(60))
        for act in (scheduler.show, scheduler.pause, scheduler.disable, lambda: scheduler.update(CRON)):
            assert code_of(act, NotFound) == "schedule_not_found"

    def test_the_canonical_contract_publishes_nothing_over_it(self, scheduler: Scheduler) -> None:
        scheduler.create(MINUTES)
        assert code_of(lambda: scheduler.desk.publish(every(60))) == "other_contract"

    def test_an_operator_may_pause_it_by_the_canonical_way_and_the_event_is_told(self, scheduler: Scheduler) -> None:
        scheduler.create(MINUTES)
        scheduler.desk.pause()
        assert scheduler.told() == ["SCHEDULE_CREATED", "SCHEDULE_PAUSED"]


class TestReading:
    def test_the_directory_has_the_schedules_of_the_contract_alone_by_uuid(self, scheduler: Scheduler) -> None:
        desk = scheduler.desk
        first = desk.key.schedule_id
        desk.publish(every(60))
        made = []
        for _ in range(3):
            scheduler.create(CRON)
            made.append(scheduler.show())
        scheduler.disable()
        made[-1] = scheduler.show()
        assert made[-1]["state"] == "disabled"
        listed = scheduler.listed(limit=2)
        assert [each["schedule_id"] for each in listed] == sorted(each["schedule_id"] for each in listed)
        assert first not in {each["schedule_id"] for each in listed}
        assert all(each in listed for each in made)

    def test_the_last_page_says_so(self, scheduler: Scheduler) -> None:
        scheduler.create(CRON)
        *_, last = scheduler.listed()
        count = len(scheduler.listed())
        page = scheduler.page(limit=min(50, count))
        assert (page["schedules"][-1], page["next_cursor"]) == (last, None)
        assert scheduler.page(after=last["schedule_id"]) == {"schedules": [], "next_cursor": None}

    @pytest.mark.parametrize("limit", [0, 51])
    def test_a_page_has_one_to_fifty(self, scheduler: Scheduler, limit: int) -> None:
        assert code_of(lambda: scheduler.page(limit=limit), Refused) == "invalid_limit"

    def test_a_page_asks_as_many_questions_for_many_schedules_as_for_one(self, scheduler: Scheduler) -> None:
        for _ in range(4):
            scheduler.create(CRON)
        asked: list[str] = []
        with scheduler.desk.catalog.reading() as connection:
            event.listen(connection, "before_cursor_execute", lambda *parts: asked.append(parts[2]))
            assert len(v0.directory(connection, scheduler.who, SCOPE, limit=1)["schedules"]) == 1
            of_one = len(asked)
            assert len(v0.directory(connection, scheduler.who, SCOPE, limit=4)["schedules"]) == 4
        assert len(asked) == 2 * of_one

    def test_one_whose_version_is_damaged_says_so_and_hides_no_other(self, scheduler: Scheduler) -> None:
        scheduler.create(CRON)
        damaged = scheduler.desk.key
        scheduler.create(CRON)
        with scheduler.desk.catalog.writing() as connection:
            row = require_schedule(connection, damaged).row
            connection.execute(update(versions).where(versions.c.schedule == row).values(configuration="[]"))
        listed = {each["schedule_id"]: each for each in scheduler.listed()}
        broken = listed[damaged.schedule_id]
        assert (broken["schedule"], listed[scheduler.desk.key.schedule_id]["schedule"]) == ({}, CRON)
        assert "cannot be used" in broken["problem"]
        assert "problem" not in listed[scheduler.desk.key.schedule_id]
        scheduler.desk.key = damaged
        assert scheduler.show() == broken

    def test_the_events_are_those_of_the_schedule_a_page_at_a_time(self, scheduler: Scheduler) -> None:
        scheduler.create(MINUTES)
        scheduler.pause()
        whole = scheduler.events()
        assert [each["kind"] for each in whole] == [
            "published",
            "SCHEDULE_CREATED",
            "enabled",
            "paused",
            "SCHEDULE_PAUSED",
        ]
        assert scheduler.events(limit=2) == whole[:2]
        assert scheduler.events(after=whole[1]["id"]) == whole[2:]

    def test_another_organization_and_another_contract_are_not_there(self, scheduler: Scheduler) -> None:
        scheduler.create(MINUTES)
        ours, scheduler.who = scheduler.who, principal("eve", org_id="globex")
        for act in (scheduler.show, scheduler.page, scheduler.events):
            assert code_of(act, NotFound) == "environment_not_found"
        scheduler.who = ours
        scheduler.desk.key = schedule_key(SCOPE, str(uuid.uuid4()))
        scheduler.desk.publish(every(60))
        for act in (scheduler.show, scheduler.events):
            assert code_of(act, NotFound) == "schedule_not_found"

    def test_reading_needs_the_scope(self, scheduler: Scheduler) -> None:
        scheduler.create(MINUTES)
        scheduler.who = principal(scopes="openid")
        for act in (scheduler.show, scheduler.page, scheduler.events):
            assert code_of(act, Forbidden) == "scope_missing"


class TestMisfires:
    def test_skip_tells_each_span_with_its_count(self, scheduler: Scheduler) -> None:
        scheduler.create(MINUTES)
        world = scheduler.world(takes=150)
        world.pass_until(at(250))
        assert scheduler.desk.told()[:3] == [
            ("succeeded", 60, 60, 1),
            ("skipped", 120, 180, 2),
            ("started", 240, 240, 1),
        ]
        told = [each["details"] for each in events(scheduler.desk) if each["kind"] == "MISFIRED_SKIPPED"]
        assert sum(each["count"] for each in told) == 2
        assert {(each["disposition"], each["reason"]) for each in told} == {("skipped", "overlap")}

    def test_defer_once_tells_what_waits_and_when_it_is_triggered(self, scheduler: Scheduler) -> None:
        scheduler.create(deferring(MINUTES))
        world = scheduler.world(takes=70)
        world.pass_until(at(135))
        assert scheduler.told() == ["SCHEDULE_CREATED", "SCHEDULE_TRIGGERED", "MISFIRED_DEFERRED", "SCHEDULE_TRIGGERED"]

    def test_an_outage_is_one_deferral_and_one_span(self, scheduler: Scheduler) -> None:
        scheduler.create(deferring(MINUTES))
        world = scheduler.world()
        world.pass_until(at(30))
        world.schedules_up = world.runs_up = False
        world.pass_until(at(650))
        world.schedules_up = world.runs_up = True
        world.pass_until(at(651.5))
        assert scheduler.desk.told() == [("succeeded", 60, 60, 1), ("skipped", 120, 600, 9)]
        assert scheduler.told() == ["SCHEDULE_CREATED", "MISFIRED_SKIPPED", "MISFIRED_DEFERRED", "SCHEDULE_TRIGGERED"]
        scheduler.check()

    def test_a_run_that_nobody_decided_for_a_while_is_told_as_deferred_when_it_begins(
        self, scheduler: Scheduler
    ) -> None:
        """Its slot was taken in time, and only the run workers were away."""
        scheduler.create(deferring(MINUTES))
        world = scheduler.world()
        world.runs_up = False
        world.pass_until(at(248))
        assert scheduler.told() == ["SCHEDULE_CREATED"]
        world.runs_up = True
        world.pass_until(at(252))
        assert scheduler.desk.told()[0] == ("succeeded", 60, 60, 1)
        told = [each for each in events(scheduler.desk) if each["kind"].isupper()]
        deferred, triggered = told[1:3]
        assert [each["kind"] for each in (deferred, triggered)] == ["MISFIRED_DEFERRED", "SCHEDULE_TRIGGERED"]
        assert deferred["details"] == triggered["details"]
        assert deferred["details"]["nominal_time"] == instant_text(at(60))
        assert triggered["at"] == at(248)
        scheduler.check()

    def test_what_waited_is_not_told_as_deferred_again_where_it_begins_late(self, scheduler: Scheduler) -> None:
        scheduler.create(deferring(MINUTES))
        world = scheduler.world(takes=110)
        world.pass_until(at(175))
        assert scheduler.told().count("MISFIRED_DEFERRED") == 1
        assert scheduler.told()[-1] == "SCHEDULE_TRIGGERED"

    def test_a_run_that_a_pause_withdraws_is_never_told_as_triggered(self, scheduler: Scheduler) -> None:
        scheduler.create(MINUTES)
        scheduler.world().pass_until(at(58))
        (entry,) = scheduler.desk.entries()
        assert entry.disposition is Disposition.STAGED
        run = entry.run_key(scheduler.desk.key)
        scheduler.pause()
        scheduler.desk.now = at(60)
        assert scheduler.desk.admit(run).outcome == "withdrawn"
        assert scheduler.told() == ["SCHEDULE_CREATED", "SCHEDULE_PAUSED"]
        scheduler.check()

    def test_a_run_is_told_once_by_whichever_attempt_decides_it(self, scheduler: Scheduler) -> None:
        scheduler.create(MINUTES)
        world = scheduler.world()
        world.runs_up = False
        world.pass_until(at(58))
        assert scheduler.told() == ["SCHEDULE_CREATED"]
        (entry,) = scheduler.desk.entries()
        run = entry.run_key(scheduler.desk.key)
        scheduler.desk.now = at(60)
        for owner in ("first", "first", "second"):
            scheduler.desk.admit(run, owner=owner)
        assert scheduler.told() == ["SCHEDULE_CREATED", "SCHEDULE_TRIGGERED"]
        told = events(scheduler.desk)[-1]
        assert (told["at"], told["actor"]) == (at(60), "system:admission")

    def test_other_contracts_are_told_of_in_our_words_alone(self, desk: Desk) -> None:
        desk.write(publish, desk.key, every(60), expected_revision=0, by="ada", now=desk.now)
        world = World(desk, lambda _: Work(takes=seconds(1)))
        world.establish(desk.enable())
        world.pass_until(at(70))
        assert not [each["kind"] for each in events(desk) if each["kind"].isupper()]
