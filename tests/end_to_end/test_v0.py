"""Scheduler v0 (seed 002) on a real server: its events with their metadata, its examples as they stand, and who may run."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import pytest

from horarium.catalog.schedules import list_schedules
from horarium.control import v0
from horarium.control.audit import audit, document
from horarium.control.principals import Principal, local_principal
from horarium.control.receipts import Receipt
from horarium.errors import NotAdmissible
from horarium.schedule.identity import ActivationKey, instant_text
from horarium.schedule.ledger import Disposition, Reason
from tests.end_to_end.stories import Stories
from tests.end_to_end.strict import AGENT, Place, now, strict_house
from tests.schedule.test_v0 import CRON, ONE_SHOT
from tests.workflows.house import workers_beat

pytestmark = pytest.mark.server

SECOND = timedelta(seconds=1)
LEAD = 2 * SECOND
"""How early the workers of this house stage at the most."""
TARGET = {"workspace_id": "ws-001", "agent_id": "codex"}
RUN = {
    "agent_version": AGENT,
    "input": "letters",
    "output_target": "reports",
    "grants": ["mail.read"],
    "budget_id": None,
    "usage_class": "test_simulation",
}

stories = Stories()


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory, request):
    with pytest.MonkeyPatch.context() as monkeypatch:
        make = partial(strict_house, monkeypatch=monkeypatch)
        return stories.told(tmp_path_factory.mktemp("v0"), request, make)


def every(seconds: int, misfire: str = "skip", **policy: Any) -> dict[str, Any]:
    spec = {"every_seconds": seconds}
    return {"type": "interval", "spec": spec, "target": TARGET, "policy": {"misfire": misfire, **policy}}


def once(instant: datetime) -> dict[str, Any]:
    return {**ONE_SHOT, "spec": {"run_at": instant_text(instant)}}


@dataclass(kw_only=True)
class Scheduler:
    """Ada, who asks in the words of the contract, in a place of her own. The workers do what the controller has started."""

    place: Place

    @property
    def who(self) -> Principal:
        return local_principal("ada", self.place.operator.scope)

    @property
    def current(self) -> ActivationKey:
        return ActivationKey(schedule=self.place.key, generation=self.show()["generation"])

    async def create(self, asked: dict[str, Any], **more: Any) -> Receipt:
        receipt = await self._ask(v0.create, asked, content=self._content, **more)
        self.place.schedule_id = receipt.document["schedule_id"]
        return await self._started(receipt)

    async def update(self, asked: dict[str, Any]) -> Receipt:
        schedule_id = self.place.schedule_id
        return await self._started(await self._ask(v0.update, asked, schedule_id=schedule_id, content=self._content))

    async def pause(self) -> Receipt:
        return await self._ask(v0.pause, self.place.schedule_id)

    async def resume(self) -> Receipt:
        return await self._started(await self._ask(v0.resume, self.place.schedule_id, content=self._content))

    async def disable(self) -> Receipt:
        return await self._ask(v0.disable, self.place.schedule_id)

    def show(self) -> dict[str, Any]:
        with self.place.house.catalog.reading() as connection:
            return v0.show(connection, self.who, self.place.operator.scope, self.place.schedule_id)

    def told(self, kind: str | None = None) -> list[dict[str, Any]]:
        """The events of the contract, in their order; those of one kind, if one is given."""
        with self.place.house.catalog.reading() as connection:
            found = v0.events(connection, self.who, self.place.operator.scope, self.place.schedule_id, limit=1_000)
        return [each for each in found if each["kind"].isupper() and kind in {None, each["kind"]}]

    def kinds(self) -> list[str]:
        return [each["kind"] for each in self.told()]

    async def until_told(self, kind: str, count: int = 1) -> dict[str, Any]:
        await self.place.until(lambda: len(self.told(kind)) >= count)
        return self.told(kind)[count - 1]

    async def proven(self) -> None:
        """End the schedule; let its runs end, its workflow close, and ledger, events and audit agree."""
        current = self.current
        if self.show()["state"] != "disabled":
            await self.disable()
        place = self.place
        await place.until(lambda: all(entry.closed_at for entry, _ in place.rows()))
        result = await place.house.catalog.read(audit, place.key, now=now(), grace=timedelta(0))
        assert result.clean, document(result)
        assert result.not_entered == 0, document(result)
        assert sum(result.dispositions.values()) == result.due, document(result)
        misfired = sum(each["details"]["count"] for each in self.told("MISFIRED_SKIPPED"))
        ended_so = {Disposition.MISSED, Disposition.SKIPPED}
        assert misfired == sum(entry.count for entry, _ in place.rows() if entry.disposition in ended_so), place.told()
        # Whoever is not told of an end finds it at the next look; here nobody waits for that.
        await place.house.temporal.signal(current, "retire")
        await place.proven()

    @property
    def _content(self) -> Any:
        return self.place.house.content.of(self.place.operator.scope)

    async def _ask(self, act: Callable[..., Receipt], *asked: Any, **more: Any) -> Receipt:
        catalog = self.place.house.catalog
        await catalog.write(workers_beat, at=now())
        key = more.pop("key", None) or str(uuid4())
        scope = self.place.operator.scope
        receipt: Receipt = await catalog.write(act, self.who, scope, *asked, key, now=now(), **more)
        return receipt

    async def _started(self, receipt: Receipt) -> Receipt:
        """As the controller does, and as it would not do again."""
        if receipt.document["enabled"]:
            assert await self.place.house.temporal.start_schedule(self.current)
        return receipt


def scheduler(strict: Any, name: str, *, mode: str = "simulation", **environment: Any) -> Scheduler:
    """Ada in a new environment, where an operator has said what stands behind the targets of the contract's examples."""
    place = strict.place(name, mode=mode, **environment)
    place.declare_usual()
    place.operator.declare("budget", "live", usage_classes=["live"], pays_by="credits", limit=1_000, currency="CHF")
    paid = {"usage_class": "live", "budget_id": "live"} if mode == "live" else {}
    for agent in ("codex", "opencode"):
        place.operator.declare("binding", f"v0:ws-001/{agent}", run={**RUN, **paid})
    return Scheduler(place=place)


@stories.story
async def test_each_event_of_the_contract_is_told_with_its_metadata(strict):
    ada = scheduler(strict, "events")
    place, slow = ada.place, strict.slow
    slow.add(place.operator.scope)
    receipts = {"SCHEDULE_CREATED": await ada.create(every(3, "defer_once"))}
    triggered = await ada.until_told("SCHEDULE_TRIGGERED")
    deferred = await ada.until_told("MISFIRED_DEFERRED")
    skipped = await ada.until_told("MISFIRED_SKIPPED")
    slow.discard(place.operator.scope)
    again = await ada.until_told("SCHEDULE_TRIGGERED", 2)
    for kind, act in (
        ("SCHEDULE_UPDATED", lambda: ada.update(every(4))),
        ("SCHEDULE_PAUSED", ada.pause),
        ("SCHEDULE_RESUMED", ada.resume),
        ("SCHEDULE_DISABLED", ada.disable),
    ):
        receipts[kind] = await act()
    await ada.proven()

    runs = {run.run_id: entry for entry, run in place.rows() if run is not None}
    for event, by in ((triggered, "system:admission"), (deferred, "system:schedule"), (again, "system:admission")):
        entry = runs[event["details"]["run_id"]]
        nominal = instant_text(entry.first_at)
        assert event["details"] == {
            "nominal_time": nominal,
            "run_id": event["details"]["run_id"],
            "trigger": "schedule",
        }
        assert (event["actor"], event["generation"]) == (by, 1)
    assert again["details"]["run_id"] == deferred["details"]["run_id"], "what waited is what was triggered next"
    details = skipped["details"]
    assert set(details) == {"first_at", "last_at", "count", "disposition", "reason"}
    assert (details["disposition"], details["reason"]) in {("skipped", "already_waiting"), ("skipped", "coalesced")}
    for kind, receipt in receipts.items():
        (event,) = ada.told(kind)
        said = receipt.document
        assert (event["actor"], event["details"]["receipt_id"]) == ("ada", said["receipt_id"]), kind
        assert event["details"]["reference"]["schedule_id"] == place.schedule_id
        assert event["details"]["reference"]["digest"].startswith("sha256:")
        assert event["details"]["reference"]["revision"] == event["revision"]
    order = [kind for kind in ada.kinds() if kind in receipts]
    assert order == list(receipts)
    assert [ada.told(kind)[0]["revision"] for kind in receipts] == [1, 2, 2, 2, 2]
    assert set(ada.kinds()) == {
        *receipts,
        "SCHEDULE_TRIGGERED",
        "MISFIRED_DEFERRED",
        "MISFIRED_SKIPPED",
    }, "all eight"


@stories.story
async def test_the_one_shot_of_the_contract_has_passed_and_is_accepted_missed_and_never_runs(strict):
    ada = scheduler(strict, "past")
    receipt = await ada.create(ONE_SHOT)
    assert not receipt.document["enabled"]
    # Nothing starts its workflow; if somebody does, it ends by itself.
    assert await ada.place.house.temporal.start_schedule(ada.current)
    assert await ada.place.house.workflow(ada.current).result() == "ended"
    ((entry, run),) = ada.place.rows()
    assert (entry.disposition, entry.reason, entry.count, run) == (Disposition.MISSED, Reason.ALREADY_PASSED, 1, None)
    assert entry.first_at == datetime(2026, 3, 25, 9, tzinfo=UTC)
    shown = ada.show()
    assert (shown["state"], shown["schedule"]) == ("review", ONE_SHOT)
    assert shown["reason"].startswith(v0.EXHAUSTED)
    assert ada.kinds() == ["SCHEDULE_CREATED", "MISFIRED_SKIPPED"]
    assert ada.told("MISFIRED_SKIPPED")[0]["details"] == {
        "first_at": "2026-03-25T09:00:00Z",
        "last_at": "2026-03-25T09:00:00Z",
        "count": 1,
        "disposition": "missed",
        "reason": "already_passed",
    }
    assert not [scope for scope, _ in strict.starts if scope == ada.place.operator.scope]
    await ada.proven()


@stories.story
async def test_the_cron_of_the_contract_waits_for_its_next_quarter(strict):
    ada = scheduler(strict, "quarters")
    created = now()
    receipt = await ada.create(CRON)
    assert receipt.document["enabled"]
    workflow = ada.place.house.workflow(ada.current)
    quarters = [quarter_after(created), quarter_after(created + timedelta(minutes=15))]
    async with asyncio.timeout(120):
        while (described := await workflow.query("describe"))["next_look"] is None:  # noqa: ASYNC110 - it has to step first
            await asyncio.sleep(0.1)
    looks = datetime.fromisoformat(described["next_look"])
    assert any(timedelta(0) < quarter - looks <= LEAD for quarter in quarters), described
    assert ada.show()["schedule"] == CRON
    await ada.proven()
    assert await workflow.result() == "ended"


def quarter_after(instant: datetime) -> datetime:
    return instant.replace(minute=0, second=0, microsecond=0) + timedelta(minutes=15 * (instant.minute // 15 + 1))


@stories.story
async def test_a_one_shot_that_is_to_come_runs_once_and_then_has_nothing_left(strict):
    ada = scheduler(strict, "once")
    instant = now().replace(microsecond=0) + 12 * SECOND
    receipt = await ada.create(once(instant))
    assert receipt.document["enabled"], "the machine was too slow to ask before its time"
    assert await ada.place.house.workflow(ada.current).result() == "ended"
    ((entry, run),) = ada.place.rows()
    assert (entry.first_at, entry.disposition) == (instant, Disposition.SUCCEEDED)
    assert run.begun_at >= instant
    assert [scope for scope, _ in strict.starts].count(ada.place.operator.scope) == 1
    assert ada.show()["state"] == "review"
    assert ada.show()["reason"].startswith(v0.EXHAUSTED)
    assert ada.kinds() == ["SCHEDULE_CREATED", "SCHEDULE_TRIGGERED"]
    await ada.proven()


@stories.story
async def test_instants_that_fall_due_during_a_run_are_one_deferred_run(strict):
    ada = scheduler(strict, "overlap")
    place = ada.place
    strict.slow.add(place.operator.scope)
    await ada.create(every(3, "defer_once"))
    await place.until(lambda: any(run is not None and run.begun_at for _, run in place.rows()))
    (first, _), *_ = place.rows()
    await place.until(lambda: now() - first.first_at > 13 * SECOND)
    strict.slow.discard(place.operator.scope)
    await place.until(lambda: len([1 for _, run in place.rows() if run is not None and run.ended_at]) >= 3)
    await ada.proven()

    (held, long), (deferred, late), *rest = place.rows()
    assert (held.first_at, deferred.first_at) == (first.first_at, first.first_at + 3 * SECOND), place.told()
    assert [held.disposition, deferred.disposition] == [Disposition.SUCCEEDED] * 2
    assert late.begun_at >= long.ended_at
    before = [entry for entry, _ in rest if entry.first_at < late.begun_at]
    assert {(entry.disposition, run) for entry, run in rest if entry in before} == {(Disposition.SKIPPED, None)}
    assert {entry.reason for entry in before} <= {"already_waiting", "coalesced"}
    assert sum(entry.count for entry in before) >= 3
    waited = [event["details"]["nominal_time"] for event in ada.told("MISFIRED_DEFERRED")]
    assert waited[0] == instant_text(deferred.first_at)


@stories.story
async def test_with_skip_what_falls_due_during_a_run_is_gone(strict):
    ada = scheduler(strict, "skip")
    place = ada.place
    strict.slow.add(place.operator.scope)
    await ada.create(every(3))
    await ada.until_told("MISFIRED_SKIPPED")
    strict.slow.discard(place.operator.scope)
    await place.until(lambda: len([1 for _, run in place.rows() if run is not None and run.ended_at]) >= 2)
    await ada.proven()
    fates = {(str(entry.disposition), entry.reason) for entry, run in place.rows() if run is None}
    assert ("skipped", "overlap") in fates
    assert "MISFIRED_DEFERRED" not in ada.kinds()


@stories.story
async def test_a_trigger_is_an_intent_and_a_lease_that_is_gone_refuses_the_run(strict):
    ada = scheduler(strict, "offline")
    place = ada.place
    await ada.create(every(3))
    await place.until(lambda: any(entry.disposition is Disposition.SUCCEEDED for entry, _ in place.rows()))
    place.register(lease=timedelta(seconds=-30))
    gone = now()
    entry, run = await place.until_decided(since=gone)
    assert (entry.disposition, entry.reason, run.begun_at) == (Disposition.REFUSED, Reason.AGENT_OFFLINE, None)
    assert run.run_id in [event["details"]["run_id"] for event in ada.told("SCHEDULE_TRIGGERED")], "the intent"
    assert ada.show()["state"] == "enabled", "a refusal ends nothing"
    place.register()
    back = now()
    entry, _ = await place.until_decided(since=back, due_since=back)
    assert entry.disposition is Disposition.SUCCEEDED
    await ada.proven()


@stories.story
async def test_a_live_environment_admits_what_was_approved_and_refuses_to_create_anything_else(strict):
    ada = scheduler(strict, "live", mode="live", live_needs_approval=True)
    place, asked = ada.place, every(3)
    key = str(uuid4())
    with pytest.raises(NotAdmissible) as refused:
        await ada.create(asked, key=key)
    (objection,) = refused.value.objections
    assert objection["code"] == Reason.APPROVAL_MISSING
    with place.house.catalog.reading() as connection:
        stored = list(list_schedules(connection, place.operator.scope, after=None, limit=10, include_retired=True))
    assert stored == []

    until = instant_text(now().replace(microsecond=0) + timedelta(hours=1))
    digest = objection["evidence"]["digest"]
    place.operator.declare("approval", digest, by="grace", expires_at=until)
    receipt = await ada.create(asked, key=key)
    assert receipt.document["reference"]["digest"] == digest
    await place.until(lambda: any(entry.disposition is Disposition.SUCCEEDED for entry, _ in place.rows()))

    place.operator.withdraw("approval", digest)
    entry, _ = await place.until_decided(since=now())
    assert (entry.disposition, entry.reason) == (Disposition.REFUSED, Reason.APPROVAL_MISSING)
    await ada.proven()
