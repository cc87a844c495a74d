"""Admission: whether a run may start, judged on what is true at that second.

Enabling and every occurrence ask the same questions (`objections`), so that no path can leave one out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from horarium.catalog import ledger
from horarium.catalog.presence import RegisteredAgent, find_agent
from horarium.catalog.schedules import Activation, Schedule, Version, find_live, require_version
from horarium.control.contents import Content, require_asked
from horarium.errors import Unavailable
from horarium.schedule.configuration import RunRequest
from horarium.schedule.facts import OVERDUE
from horarium.schedule.identity import ActivationKey, RunKey, Scope, instant_text
from horarium.schedule.ledger import BY_CALENDAR, Disposition, Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Objection:
    """One reason against a run, with what was looked at. No secrets: it is kept in the ledger."""

    reason: Reason
    sentence: str
    evidence: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatch:
    """What the gateway needs to hand an admitted run to its agent."""

    run_id: str
    agent_version: str
    task_queue: str
    max_run_seconds: int
    pick_up_seconds: float
    idempotent: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """The decision on one run.

    `outcome` is `admitted`; the disposition that the run was closed with; or `withdrawn` where the run is nobody's any
    more, or another execution's, and nothing shall happen. `nudge` names a schedule that waits for the slot just freed, or for
    this decision.
    """

    outcome: str
    reason: Reason | None = None
    dispatch: Dispatch | None = None
    nudge: ActivationKey | None = None


ADMITTED = "admitted"
WITHDRAWN = "withdrawn"


def decide(connection: Connection, key: RunKey, content: Content, *, owner: str, now: datetime) -> Admission:
    """Decide a staged run, once. A later attempt of the same owner is given the same decision; another owner, none.

    `content` was asked about the run's request before, outside of the transaction. Raises `Unavailable` before the nominal
    time: whoever asks waits, by its own clock, and asks again; and where the content did not answer, as long as the run is
    inside its window.
    """
    if now < key.nominal_time:
        early = (key.nominal_time - now).total_seconds()
        raise Unavailable(
            "too_early",
            f"Run {key.run_id} is due at {instant_text(key.nominal_time)}, in {early:.3f} s, and is not decided before.",
            next_step="Ask again then.",
        )
    found = find_live(connection, key.activation, lock=True)
    if found is None:
        return Admission(outcome=WITHDRAWN)
    schedule, activation = found
    entry = ledger.find_entry(connection, schedule, key)
    run = None if entry is None else ledger.find_run(connection, key.run_id)
    if entry is None or run is None:
        return Admission(outcome=WITHDRAWN)
    version = require_version(connection, schedule, activation.revision)
    if run.decision is not None:
        return _repeated(connection, schedule, version, entry, run, owner=owner, now=now)
    if entry.disposition is not Disposition.STAGED or not activation.is_live:
        return Admission(outcome=WITHDRAWN)
    ledger.change_run(connection, key.run_id, owner=owner, decided_at=now, decision="closed")
    if version.fault is not None:
        # The schedule's next step sends the activation to review for the same.
        unusable = Objection(reason=Reason.VERSION_UNUSABLE, sentence=version.fault, evidence={})
        return _refused(connection, schedule, entry, key, unusable, now=now)
    policy = version.configuration.policy
    if now - run.window_from > policy.catchup_window:
        ledger.close(connection, entry, Disposition.MISSED, Reason.OUTSIDE_WINDOW, now=now)
        ledger.change_run(connection, key.run_id, ended_at=now)
        return _closed(connection, schedule, Disposition.MISSED, Reason.OUTSIDE_WINDOW)
    objection = _first_objection(connection, key, version, content, now=now)
    if objection is not None:
        return _refused(connection, schedule, entry, key, objection, now=now)
    agent = find_agent(connection, schedule.key.scope, version.configuration.run.agent_version)
    assert agent is not None, "an agent without objection is registered"
    ledger.set_disposition(connection, entry, Disposition.ADMITTED)
    ledger.change_run(
        connection,
        key.run_id,
        decision=ADMITTED,
        agent_version=agent.agent_version,
        evidence={
            "agent": {"lifecycle": agent.lifecycle, "lease_until": agent.lease_until.isoformat()},
            "version": {"revision": version.revision, "digest": version.digest},
        },
    )
    return _admitted(connection, schedule, version, entry, run=run, agent=agent, decided_at=now, now=now)


def request_of(connection: Connection, key: RunKey) -> RunRequest | None:
    """What a run will ask for, which never changes; None where there is no such run, or its version cannot be used."""
    found = find_live(connection, key.activation)
    if found is None:
        return None
    version = require_version(connection, found[0], found[1].revision)
    return None if version.is_damaged else version.configuration.run


def _first_objection(
    connection: Connection, key: RunKey, version: Version, content: Content, *, now: datetime
) -> Objection | None:
    configuration = version.configuration
    if key.trigger == BY_CALENDAR and not configuration.calendar.selects(key.nominal_time):
        return Objection(reason=Reason.NOT_IN_CALENDAR, sentence=Reason.NOT_IN_CALENDAR.sentence, evidence={})
    found = objections(connection, key.activation.schedule.scope, configuration.run, content, now=now)
    return next(found, None)


def objections(
    connection: Connection, scope: Scope, request: RunRequest, content: Content, *, now: datetime
) -> Iterator[Objection]:
    """Everything that speaks against running a request now, in the order of DESIGN.md, section 8.

    `content` answers at once: see `horarium.control.contents`, of which this raises what that raises.
    """
    require_asked(content, request)
    agent = find_agent(connection, scope, request.agent_version)
    name = {"agent_version": request.agent_version}
    if agent is None:
        yield Objection(
            reason=Reason.AGENT_MISSING,
            sentence=f"No runner has registered agent {request.agent_version!r} in {scope.org_id}/{scope.environment_id}.",
            evidence=name,
        )
    else:
        if not agent.discovery.get("is_schedulable", False):
            yield Objection(
                reason=Reason.AGENT_NOT_SCHEDULABLE,
                sentence=f"Agent {request.agent_version!r} handles no CronStartEvent.",
                evidence=name,
            )
        yield from _presence(agent, now=now)
    if not content.has_input(request.input):
        yield Objection(
            reason=Reason.INPUT_UNREADABLE,
            sentence=f"The input {request.input!r} does not exist or cannot be read.",
            evidence={"input": request.input},
        )
    if not content.has_output_target(request.output_target):
        yield Objection(
            reason=Reason.OUTPUT_MISSING,
            sentence=f"The output target {request.output_target!r} does not exist.",
            evidence={"output_target": request.output_target},
        )


def _presence(agent: RegisteredAgent, *, now: datetime) -> Iterator[Objection]:
    evidence = {
        "agent_version": agent.agent_version,
        "lifecycle": agent.lifecycle,
        "lease_until": agent.lease_until.isoformat(),
    }
    seconds = round((now - agent.lease_until).total_seconds(), 1)
    if agent.lifecycle not in {"ready", "running"}:
        yield Objection(
            reason=Reason.AGENT_NOT_READY,
            sentence=f"Agent {agent.agent_version!r} is {agent.lifecycle} for {max(seconds, 0.0)} s.",
            evidence=evidence,
        )
    elif seconds > 0:
        yield Objection(
            reason=Reason.AGENT_OFFLINE,
            sentence=f"Agent {agent.agent_version!r} is offline: its lease lapsed {seconds} s ago.",
            evidence={**evidence, "offline_seconds": seconds},
        )


def nudge_if_waiting(connection: Connection, schedule: Schedule) -> ActivationKey | None:
    """The current activation, if it has said that it waits for a slot. The caller holds the lock that it said so under."""
    key = ActivationKey(schedule=schedule.key, generation=schedule.generation)
    found = find_live(connection, key)
    return key if found is not None and _waits(found[1]) else None


def _waits(activation: Activation) -> bool:
    return activation.is_live and activation.waiting


def _refused(
    connection: Connection, schedule: Schedule, entry: ledger.Entry, key: RunKey, objection: Objection, *, now: datetime
) -> Admission:
    ledger.close(connection, entry, Disposition.REFUSED, objection.reason, now=now)
    evidence = {"sentence": objection.sentence, **objection.evidence}
    ledger.change_run(connection, key.run_id, evidence=evidence, ended_at=now)
    return _closed(connection, schedule, Disposition.REFUSED, objection.reason)


def _closed(connection: Connection, schedule: Schedule, disposition: Disposition, reason: Reason) -> Admission:
    return Admission(outcome=disposition, reason=reason, nudge=nudge_if_waiting(connection, schedule))


def _repeated(
    connection: Connection,
    schedule: Schedule,
    version: Version,
    entry: ledger.Entry,
    run: ledger.Run,
    *,
    owner: str,
    now: datetime,
) -> Admission:
    if run.owner != owner:
        return Admission(outcome=WITHDRAWN)
    if run.decision != ADMITTED:
        # The nudge of the first attempt may have been lost with it.
        return _closed(connection, schedule, entry.disposition, entry.reason or Reason.RUN_LOST)
    if entry.closed_at is not None or run.agent_version is None or version.is_damaged:
        return Admission(outcome=WITHDRAWN)
    agent = find_agent(connection, schedule.key.scope, run.agent_version)
    assert agent is not None, "agents are never forgotten"
    decided_at = run.decided_at or now
    return _admitted(connection, schedule, version, entry, run=run, agent=agent, decided_at=decided_at, now=now)


def _admitted(
    connection: Connection,
    schedule: Schedule,
    version: Version,
    entry: ledger.Entry,
    *,
    run: ledger.Run,
    agent: RegisteredAgent,
    decided_at: datetime,
    now: datetime,
) -> Admission:
    """The way to the agent. A decision that was overdue is told to the schedule, which may have left instants until then."""
    overdue = decided_at - max(entry.first_at, entry.held_since or entry.first_at) > OVERDUE
    return Admission(
        outcome=ADMITTED,
        dispatch=_dispatch(version, run, agent, now=now),
        nudge=nudge_if_waiting(connection, schedule) if overdue else None,
    )


def _dispatch(version: Version, run: ledger.Run, agent: RegisteredAgent, *, now: datetime) -> Dispatch:
    """What is left of the window bounds the hand-over, and at most the lease: nothing is queued for an absent agent."""
    left = (run.window_from + version.configuration.policy.catchup_window - now).total_seconds()
    lease = (agent.lease_until - now).total_seconds()
    return Dispatch(
        run_id=run.run_id,
        agent_version=agent.agent_version,
        task_queue=str(agent.discovery["task_queue"]),
        max_run_seconds=int(agent.discovery["max_run_seconds"]),
        pick_up_seconds=max(1.0, min(left, lease)),
        idempotent=bool(agent.discovery["idempotent"]),
    )
