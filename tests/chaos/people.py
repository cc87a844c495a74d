"""People who change schedules through the API the whole time, and ask again with the same key where an answer was lost."""

import asyncio
import random
import uuid
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Self

import horarium
from horarium.client import ClientError, OutcomeUnknown, Problem, Receipt, Record, Unreachable, problems
from horarium.control.principals import WRITE_SCOPE
from starter.keys import load_key, mint
from tests.chaos.fleet import Fleet
from tests.chaos.schedules import Planned, changed

MAX_RETIRED = 3
"""Of twenty; the others go on."""
_IMPATIENT = timedelta(milliseconds=25)
"""So little that an answer is often lost on its way, though the request was carried out."""
_PATIENT = timedelta(seconds=8)


@dataclass(kw_only=True)
class Asked:
    """One mutation under one key: what was asked, and what was heard of it in the end."""

    person: str
    operation: str
    schedule_id: str
    request: Mapping[str, Any]
    key: str
    receipt: Receipt | None = None
    refused: str | None = None
    lost: int = 0
    """Answers that did not come."""
    failures: list[str] = field(default_factory=list)
    """What the server said when it failed in another way than it should."""


@dataclass
class Person:
    """A human session that acts at random."""

    name: str
    fleet: Fleet
    chance: random.Random
    asked: list[Asked]
    retired: set[str]
    _patient: list[horarium.Client] = field(default_factory=list)
    _impatient: list[horarium.Client] = field(default_factory=list)
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def __aenter__(self) -> Self:
        for clients, within in ((self._patient, _PATIENT), (self._impatient, _IMPATIENT)):
            for url in self.fleet.apis:
                client = horarium.Client(url, token=self._token(), answer_within=within)
                clients.append(await self._stack.enter_async_context(client))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @property
    def client(self) -> horarium.Client:
        """One of the two APIs."""
        return self.chance.choice(self._patient)

    @property
    def scope(self) -> Mapping[str, str]:
        """Where everything is."""
        named = self.fleet.settings.scope
        return {"org_id": named.org_id, "environment_id": named.environment_id}

    async def act_at_random(self, schedules: Sequence[Planned]) -> None:
        """Change something every now and then, until cancelled; what is under way is then left for `finish`."""
        while True:
            await asyncio.sleep(self.chance.uniform(0.2, 2))
            with suppress(ClientError):  # reads may fail, and nothing has happened then
                await self._act(self.chance.choice(schedules))

    async def finish(self) -> None:
        """Ask again for whatever was left open, until it has its answer."""
        for each in self.asked:
            if each.person == self.name and each.receipt is None and each.refused is None:
                async with asyncio.timeout(180):
                    await self._until_answered(each)

    async def publish(self, schedule_id: str, document: Mapping[str, Any], *, revision: int) -> Asked:
        """Publish a version."""
        request = {
            "schedule_id": schedule_id,
            "expected_revision": revision,
            "expected_environment_epoch": 1,
            "expected_reset_generation": 1,
            "configuration": document,
        }
        return await self._ask("publish", schedule_id, request)

    async def enable(self, record: Record) -> Asked:
        """Enable what is published."""
        return await self._ask("set_enabled", record.schedule_id, _change(record, record.head, enabled=True))

    async def pause(self, record: Record) -> Asked:
        """Pause what is enabled."""
        version = record.head if record.activation is None else record.activation.version
        return await self._ask("set_enabled", record.schedule_id, _change(record, version, enabled=False))

    async def _act(self, schedule: Planned) -> None:
        record = await self.client.schedules.get(self.scope, schedule.schedule_id)
        if record.retired:
            return
        live = record.activation is not None and record.activation.enabled
        match self.chance.choices(("publish", "enable", "pause", "retire", "trigger"), weights=(3, 4, 2, 0.3, 4))[0]:
            case "publish":
                document = changed(dict(record.configuration), self.chance)
                await self.publish(schedule.schedule_id, document, revision=record.head.revision)
            case "pause" if live:
                await self.pause(record)
            case "retire" if len(self.retired) < MAX_RETIRED:
                self.retired.add(schedule.schedule_id)
                version = record.head if record.activation is None else record.activation.version
                await self._ask("retire", schedule.schedule_id, _change(record, version))
            case "trigger" if live:
                assert record.activation is not None
                request = _change(record, record.activation.version)
                if self.chance.random() < 0.4:
                    request["overlap"] = "allow"
                await self._ask("trigger", schedule.schedule_id, request)
            case _:
                await self.enable(record)

    async def _ask(self, operation: str, schedule_id: str, request: Mapping[str, Any]) -> Asked:
        key = str(uuid.UUID(int=self.chance.getrandbits(128), version=4))
        asked = Asked(person=self.name, operation=operation, schedule_id=schedule_id, request=request, key=key)
        self.asked.append(asked)
        if self.chance.random() < 0.3:
            await self._once(self.chance.choice(self._impatient), asked)
        await self._until_answered(asked)
        return asked

    async def _until_answered(self, asked: Asked) -> None:
        pause = 0.2
        while asked.receipt is None and asked.refused is None:
            await self._once(self.client, asked)
            await asyncio.sleep(pause)
            pause = min(2 * pause, 3)

    async def _once(self, client: horarium.Client, asked: Asked) -> None:
        try:
            asked.receipt = await getattr(client.schedules, asked.operation)(self.scope, asked.request, asked.key)
        except OutcomeUnknown as error:
            asked.lost += 1
            if isinstance(error.__cause__, Problem):
                asked.failures.append(f"{error.__cause__.code}: {error.__cause__.sentence}")
        except (Unreachable, problems.Unavailable, problems.TooManyRequests):
            pass  # nothing has happened
        except Problem as error:
            asked.refused = error.code

    def _token(self) -> str:
        claims = {
            "sub": self.name,
            "kind": "human",
            "org": self.fleet.settings.scope.org_id,
            "scope": WRITE_SCOPE,
        }
        key = load_key(self.fleet.settings.key_file)
        return mint(key, claims, now=datetime.now(UTC), lifetime=timedelta(hours=12))


def _change(record: Record, version: Any, *, enabled: bool | None = None) -> dict[str, Any]:
    request = {
        "version": version.as_document(),
        "expected_generation": 0 if record.activation is None else record.activation.generation,
        "expected_environment_epoch": 1,
        "expected_reset_generation": 1,
    }
    return request if enabled is None else {**request, "enabled": enabled}
