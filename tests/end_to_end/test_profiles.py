"""Cron profiles on a real server (seed 004): they run each minute as the system, and by a person as that person.

Each story has an environment of its own. All are told at the same time, since they mostly wait for the next minute.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from structlog.testing import capture_logs

from horarium.control import operations, profiles
from horarium.control.principals import OPERATOR_SCOPE, WRITE_SCOPE, Principal, PrincipalKind
from horarium.control.receipts import Receipt
from horarium.schedule.identity import ActivationKey
from horarium.schedule.ledger import Disposition, Reason
from horarium.schedule.profiles import thread_id
from tests.end_to_end.strict import AGENT, Place, Strict, now, strict_house
from tests.workflows.house import workers_beat

pytestmark = pytest.mark.server

CLASS = "Worked"
EVERY_MINUTE = {
    "minute": "*",
    "hour": "*",
    "day_of_month": "*",
    "month": "*",
    "day_of_week": "*",
    "timezone": "Europe/Zurich",
}
PATIENCE = 150.0
"""Seconds: two minutes until an instant has come for sure, and a busy machine."""


@dataclass(kw_only=True)
class Profiled:
    """A place with one profile of the agent that is registered there."""

    place: Place
    logs: list[Any]
    agent_id: str = "support"
    person: Principal = field(init=False)

    def __post_init__(self) -> None:
        org_id = self.place.operator.scope.org_id
        scopes = frozenset({WRITE_SCOPE, OPERATOR_SCOPE})
        self.person = Principal(name="ada", kind=PrincipalKind.HUMAN, org_id=org_id, scopes=scopes)
        run = {
            "agent_version": AGENT,
            "input": "letters",
            "output_target": "reports",
            "grants": ["mail.read"],
            "budget_id": None,
            "usage_class": "test_simulation",
        }
        self.place.declare_usual()
        self.place.operator.declare("binding", f"cron:{CLASS}/{self.agent_id}", run=run)

    async def save(self, cron: dict[str, str] | None = EVERY_MINUTE) -> Receipt:
        """Save the profile, and do what the API and the controller do after the commit."""
        house, scope = self.place.house, self.place.operator.scope
        await house.catalog.write(workers_beat, at=now())
        receipt: Receipt = await house.catalog.write(
            profiles.save,
            self.person,
            scope,
            CLASS,
            self.agent_id,
            {"config": {"cron": cron}, "tenant_id": "acme-support"},
            str(uuid4()),
            content=house.content.of(scope),
            now=now(),
        )
        self.place.schedule_id = receipt.document["schedule_id"]
        ended = operations.activation_to_nudge(scope, receipt)
        if ended is not None:
            await house.temporal.signal(ended, "pause")
        if receipt.document["enabled"]:
            key = ActivationKey(schedule=self.place.key, generation=receipt.document["generation"])
            assert await house.temporal.start_schedule(key)
        return receipt

    async def trigger(self) -> str:
        """The person starts a run by the event of the calendar; the run's id."""
        house, scope = self.place.house, self.place.operator.scope
        await house.catalog.write(workers_beat, at=now())
        receipt: Receipt = await house.catalog.write(
            profiles.trigger,
            self.person,
            scope,
            CLASS,
            self.agent_id,
            "CronStartEvent",
            {},
            str(uuid4()),
            now=now(),
        )
        run = operations.run_to_start(scope, receipt)
        assert run is not None
        await house.starter.start(run)
        return run.run_id

    def thread(self) -> dict[str, Any]:
        with self.place.house.catalog.reading() as connection:
            return profiles.thread(
                connection, self.person, self.place.operator.scope, CLASS, self.agent_id, after=0, limit=100
            )

    def logged(self, event: str) -> list[dict[str, Any]]:
        """What was logged about this environment's schedule."""
        return [
            each
            for each in self.logs
            if each["event"] == event and self.place.operator.scope.org_id in str(each.get("org_id", each))
        ]

    async def until_ended(self, run_id: str) -> tuple[Disposition, str | None]:
        """How a run ended, once it has."""

        def found() -> list[tuple[Disposition, str | None]]:
            return [
                (entry.disposition, entry.reason)
                for entry, run in self.place.rows()
                if run is not None and run.run_id == run_id and entry.closed_at
            ]

        await self.place.until(found, within=PATIENCE)
        return found()[0]


async def the_calendar_starts_it_as_the_system_and_a_person_as_that_person(profiled: Profiled) -> None:
    place = profiled.place
    await profiled.save()
    saved_at = now()
    entry, run = await place.until_decided(since=saved_at, within=PATIENCE)
    assert (entry.disposition, entry.first_at.second) == (Disposition.SUCCEEDED, 0), place.told()
    assert (run.begun_at or saved_at) - entry.first_at < timedelta(seconds=60)

    by_hand = await profiled.trigger()
    assert await profiled.until_ended(by_hand) == (Disposition.SUCCEEDED, None)

    # Who saved it leaves. That stops what this person asks for, and nothing that the system runs.
    place.operator.declare("person", "ada", left=True)
    left_at = now()
    refused = await profiled.trigger()
    assert await profiled.until_ended(refused) == (Disposition.REFUSED, Reason.PRINCIPAL_LEFT)

    def after_that() -> list[Disposition]:
        return [
            each.disposition
            for each, _ in place.rows()
            if each.trigger == "schedule" and each.first_at > left_at and each.closed_at
        ]

    await place.until(after_that, within=PATIENCE)
    assert after_that()[0] is Disposition.SUCCEEDED, place.told()

    thread = profiled.thread()
    assert thread["thread_id"] == thread_id(CLASS, profiled.agent_id)
    assert (thread["members"], thread["tenant_id"]) == ([], "acme-support")
    started = [each for each in thread["events"] if each["kind"] == "run_started"]
    assert {each["data"]["by"] for each in started if each["run_id"] != by_hand} == {None}
    assert [each["data"]["by"] for each in started if each["run_id"] == by_hand] == ["ada"]
    assert {each["data"]["start_event"] for each in started} == {"CronStartEvent"}
    kinds = {each["run_id"]: [] for each in thread["events"]}
    for each in thread["events"]:
        kinds[each["run_id"]].append(each["kind"])
    assert kinds[run.run_id] == kinds[by_hand] == ["run_started", "run_ended"]
    assert kinds[refused] == ["run_refused"]
    assert datetime.fromisoformat(thread["created_at"]) >= entry_time(place)
    await place.proven()


def entry_time(place: Place) -> datetime:
    """The first nominal time in the ledger: the thread was made by that run, and not by saving."""
    return min(entry.first_at for entry, _ in place.rows())


async def clearing_the_cron_pauses_it(profiled: Profiled) -> None:
    place = profiled.place
    receipt = await profiled.save()
    await place.until_decided(since=now() - timedelta(seconds=5), within=PATIENCE)
    cleared = await profiled.save(cron=None)
    cleared_at = now()
    assert cleared.document["ended_generation"] == receipt.document["generation"]
    handle = place.house.workflow(ActivationKey(schedule=place.key, generation=receipt.document["generation"]))
    async with asyncio.timeout(60):
        await handle.result()
    await asyncio.sleep((cleared_at.replace(second=0, microsecond=0) + timedelta(seconds=63) - now()).total_seconds())
    assert [each for each, _ in place.rows() if each.first_at > cleared_at] == []
    await place.proven()


async def what_is_due_while_its_class_is_offline_is_dropped(profiled: Profiled) -> None:
    place = profiled.place
    await profiled.save()
    place.register(lease=timedelta(seconds=1))
    lapsed_at = now() + timedelta(seconds=1)
    await asyncio.sleep(1.5)
    entry, run = await place.until_decided(since=lapsed_at, within=PATIENCE)
    # In the ledger's words admission refuses it.
    assert (entry.disposition, entry.reason) == (Disposition.REFUSED, Reason.AGENT_OFFLINE), place.told()
    assert [each["kind"] for each in profiled.thread()["events"]] == ["run_refused"]
    assert run.begun_at is None
    (told,) = profiled.logged("occurrence_dropped_offline")[:1]
    assert (told["agent_class"], told["profile"]) == (CLASS, profiled.agent_id)
    assert told["offline_seconds"] > 0
    # It is dropped and not queued: once the class is back, the next minute runs, and nothing of the time before.
    place.register()
    back_at = now()
    entry, _ = await place.until_decided(since=back_at, due_since=back_at, within=PATIENCE)
    assert entry.disposition is Disposition.SUCCEEDED, place.told()
    before = {each.disposition for each, _ in place.rows() if each.first_at < back_at - timedelta(minutes=1)}
    assert before <= {Disposition.REFUSED}, place.told()
    await place.proven()


STORIES: dict[str, Callable[[Profiled], Awaitable[None]]] = {
    each.__name__.replace("_", "-"): each
    for each in (
        the_calendar_starts_it_as_the_system_and_a_person_as_that_person,
        clearing_the_cron_pauses_it,
        what_is_due_while_its_class_is_offline_is_dropped,
    )
}


@pytest.fixture(scope="module")
def ends(tmp_path_factory) -> dict[str, BaseException | None]:
    """How each story ended."""

    async def told(strict: Strict, logs: list[Any]) -> list[BaseException | None]:
        places = [strict.place(f"story-{number}", mode="simulation") for number, _ in enumerate(STORIES)]
        work = zip(STORIES.values(), places, strict=True)
        return await asyncio.gather(
            *(story(Profiled(place=place, logs=logs)) for story, place in work), return_exceptions=True
        )

    async def live() -> list[BaseException | None]:
        with capture_logs() as logs:
            async with strict_house(tmp_path_factory.mktemp("profiles"), monkeypatch) as strict:
                return await told(strict, logs)

    with pytest.MonkeyPatch.context() as monkeypatch:
        return dict(zip(STORIES, asyncio.run(live()), strict=True))


@pytest.mark.parametrize("story", STORIES)
def test_a_profile_on_a_real_server(ends, story):
    if (failure := ends[story]) is not None:
        raise failure
