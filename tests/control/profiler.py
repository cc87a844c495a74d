"""One who saves a cron profile and looks at what becomes of it, for the tests of profiles and of their threads."""

import copy
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from horarium.catalog import presence
from horarium.control import profiles
from horarium.control.audit import audit
from horarium.control.principals import OPERATOR_SCOPE, Principal
from horarium.control.receipts import Receipt
from horarium.schedule.identity import ActivationKey, Scope, schedule_key
from horarium.schedule.ledger import Disposition
from horarium.schedule.profiles import profile_schedule_id
from tests.control.caller import new_key, principal
from tests.control.desk import AGENT, FAR, SCOPE, Desk, Loop, seconds
from tests.control.operators import Operator
from tests.control.world import Work, World
from tests.schedule.test_profiles import RUN

TRIAGE = "Triage"
CHAT, CHAT_AGENT = "Chat", "chat@1"
"""A class that talks to users and takes no cron start."""
EVERY_MINUTE = {
    "minute": "*",
    "hour": "*",
    "day_of_month": "*",
    "month": "*",
    "day_of_week": "*",
    "timezone": "UTC",
}
BOUND = {**RUN, "agent_version": AGENT}
SCHEMA = {"type": "object", "properties": {"folder": {"type": "string"}}, "additionalProperties": False}

_ids = itertools.count(1)


def discovery(agent_class: str = TRIAGE, *start_events: str, **more: Any) -> dict[str, Any]:
    """What a runner reports of a class that handles these events."""
    return {
        "agent_class": agent_class,
        "version": "1",
        "description": f"An agent of class {agent_class}.",
        "start_events": list(start_events or ("CronStartEvent", "UserMessageEvent")),
        "is_conversational": not start_events or "UserMessageEvent" in start_events,
        "is_schedulable": not start_events or "CronStartEvent" in start_events,
        "max_run_seconds": 60,
        "idempotent": False,
        "task_queue": "agents",
        **more,
    }


def saved(cron: Any = EVERY_MINUTE, *, tenant_id: str | None = None, **config: Any) -> dict[str, Any]:
    """What is saved of a profile."""
    return {"config": {**config, "cron": copy.deepcopy(cron)}, "tenant_id": tenant_id}


@dataclass(slots=True)
class Profiler:
    """Saves one profile of its own. The desk's schedule is the one behind it, from the first save with a cron on."""

    desk: Desk
    who: Principal = field(default_factory=principal)
    scope: Scope = SCOPE
    agent_class: str = TRIAGE
    agent_id: str = field(default_factory=lambda: f"profile-{next(_ids):04}")

    def bind(self, **run: Any) -> None:
        """What an operator says that runs for it."""
        Operator(self.desk.catalog, self.scope).declare(
            "binding", f"cron:{self.agent_class}/{self.agent_id}", run={**BOUND, **run}
        )

    def register(self, agent_version: str = AGENT, **discovered: Any) -> None:
        """What a runner reports."""
        found = {**discovery(), "agent_version": agent_version, **discovered}
        self.desk.write(presence.register_agent, self.scope, agent_version, found, lease_until=FAR, now=self.desk.now)

    def save(self, document: Any = None, key: str | None = None, **more: Any) -> Receipt:
        receipt = self.desk.write(
            profiles.save,
            self.who,
            self.scope,
            self.agent_class,
            self.agent_id,
            saved() if document is None else document,
            key or new_key(),
            content=self.desk.content,
            now=self.desk.now,
            **more,
        )
        self.look_at()
        return receipt

    def look_at(self) -> None:
        self.desk.key = schedule_key(self.scope, profile_schedule_id(self.scope, self.agent_class, self.agent_id))

    def clear(self, key: str | None = None) -> Receipt:
        return self._named(self.desk.write, profiles.clear, key or new_key(), now=self.desk.now)

    def delete(self, key: str | None = None) -> Receipt:
        return self._named(self.desk.write, profiles.delete, key or new_key(), now=self.desk.now)

    def trigger(self, event: str = "CronStartEvent", document: Any = None, key: str | None = None) -> Receipt:
        sent = {} if document is None else document
        return self._named(self.desk.write, profiles.trigger, event, sent, key or new_key(), now=self.desk.now)

    def show(self) -> dict[str, Any]:
        return self._named(self.desk.read, profiles.show, now=self.desk.now)

    def thread(self, **page: Any) -> dict[str, Any]:
        operator = principal("grace", scopes=OPERATOR_SCOPE)
        return self.desk.read(profiles.thread, operator, self.scope, self.agent_class, self.agent_id, **page)

    def told(self) -> list[tuple[str, dict[str, Any]]]:
        """What happened in its thread: kind and data of each."""
        return [(each["kind"], each["data"]) for each in self.thread()["events"]]

    def loop(self) -> Loop:
        return Loop(self.desk, ActivationKey(schedule=self.desk.key, generation=self.desk.activation().generation))

    def world(self, *, takes: float = 1, ends_as: Disposition = Disposition.SUCCEEDED) -> World:
        """The processes around it; each run takes so many seconds."""
        world = World(self.desk, lambda _: Work(takes=seconds(takes), ends_as=ends_as))
        current = self.desk.activation()
        if current.is_live:
            loop = self.loop()
            loop.wake = self.desk.now
            world.loops[current.generation] = loop
        return world

    def check(self) -> None:
        self.desk.check_ledger()
        found = self.desk.read(audit, self.desk.key, now=self.desk.now)
        assert found.clean, found.schedules

    def _named(self, through: Callable[..., Any], act: Callable[..., Any], *args: Any, **more: Any) -> Any:
        return through(act, self.who, self.scope, self.agent_class, self.agent_id, *args, **more)


def profiler_of(desk: Desk, **more: Any) -> Profiler:
    """A profile whose class is known and whose binding is declared; it is not saved yet."""
    made = Profiler(desk, **more)
    made.register(submission_schema=SCHEMA, form=[{"name": "folder"}, {"name": "cron"}])
    made.register(CHAT_AGENT, **discovery(CHAT, "UserMessageEvent"))
    made.bind()
    made.look_at()
    return made
