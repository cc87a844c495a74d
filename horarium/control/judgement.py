"""The one place that asks whether a run may start: for enabling, for occurrences, for buffered starts and for manual runs."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from horarium.authority import sql
from horarium.authority.asking import Answers, Content, require_asked
from horarium.authority.declared import Agent
from horarium.authority.facts import Facts, Presence, Question, Stop, Surroundings, evidence_of
from horarium.authority.rules import Objection, input_objections, objections, person_objections, reservation_of
from horarium.catalog import ledger
from horarium.catalog.declarations import ORGANIZATION, Halts, find_halts
from horarium.catalog.environments import Environment, require_environment
from horarium.catalog.presence import RegisteredAgent
from horarium.catalog.schedules import Activation, Schedule
from horarium.catalog.versions import Version
from horarium.control.registrations import registration
from horarium.schedule.identity import instant_text
from horarium.schedule.ledger import Reason
from horarium.schedule.profiles import CONTRACT as CRON_PROFILES

PERSONLESS = frozenset({CRON_PROFILES})
"""The contracts whose runs by the calendar are on nobody's word (DESIGN.md, section 8)."""
TRIED_ONCE = frozenset({CRON_PROFILES})
"""The contracts whose runs are not tried a second time, even by an agent that is idempotent (seed 004)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What speaks against a run now, in order, and what was looked at.

    `reserves` is what an admitted run takes of its budget.
    """

    objections: tuple[Objection, ...]
    facts: Facts
    evidence: dict[str, Any]
    registered: RegisteredAgent | None
    reserves: int
    remote: bool

    @property
    def agent(self) -> Agent:
        """The agent of a run that nothing speaks against."""
        assert self.facts.agent is not None, "an agent without objection is there"
        return self.facts.agent


def person_of(schedule: Schedule, activation: Activation, run: ledger.Run) -> str | None:
    """On whose word a run runs: of whoever asked for it, or else of whoever enabled the schedule, as `enabler_of` has it."""
    return run.triggered_by or enabler_of(schedule, activation.changed_by)


def enabler_of(schedule: Schedule, person: str) -> str | None:
    """On whose word a schedule runs that a person enables; None where that is nobody's."""
    return None if schedule.contract in PERSONLESS else person


def question_about(schedule: Schedule, version: Version, *, person: str | None) -> Question:
    """What has to be asked before a run of a version, on the word of a person or on nobody's."""
    return Question(
        scope=schedule.key.scope,
        request=version.configuration.run,
        person=person,
        digest=version.digest,
    )


def judge(
    connection: Connection,
    question: Question,
    content: Content,
    *,
    now: datetime,
    environment: Environment | None = None,
    activation: Activation | None = None,
    due: datetime | None = None,
    lock: bool = False,
) -> Judgement:
    """Judge a question by everything that is true now.

    `content` answers at once, or holds the answers of the authority that was asked before; without them `NotAsked` is raised,
    and `Unavailable` where it gave none. `activation` is the one that an occurrence belongs to and `due` when it fell due, or
    a manual run was asked for; both None at enabling. With `lock`, the money of the budget stays as it was found until the
    transaction ends.
    """
    require_asked(content, question)
    environment = environment or require_environment(connection, question.scope)
    halts = find_halts(connection, question.scope)
    registered = registration(connection, question.scope, question.request.agent_version)
    told = content.facts if isinstance(content, Answers) else None
    facts = told or sql.gather(
        connection,
        question,
        readable=content.has_input(question.request.input),
        writable=content.has_output_target(question.request.output_target),
        development=environment.development,
        registered=registered,
        lock=lock,
    )
    around = Surroundings(
        mode=environment.mode,
        runtime_profile=environment.runtime_profile,
        live_needs_approval=environment.live_needs_approval,
        environment_epoch=environment.authority_epoch,
        environment_reset_generation=environment.reset_generation,
        epoch=None if activation is None else activation.environment_epoch,
        reset_generation=None if activation is None else activation.reset_generation,
        stop=_stop(halts),
        presence=_presence(facts.agent, registered),
        due=due,
        lifted_at=None if due is None else halts.lifted_at,
    )
    return Judgement(
        objections=tuple(objections(question, facts, around, now=now)),
        facts=facts,
        evidence=evidence_of(question, facts, around),
        registered=registered,
        reserves=reservation_of(question, facts),
        remote=told is not None,
    )


def judge_reading(connection: Connection, question: Question, content: Content, *, now: datetime) -> Objection | None:
    """What speaks against a started run's reading its input now (seed 000); None where nothing does."""
    require_asked(content, question)
    environment = require_environment(connection, question.scope)
    told = content.facts if isinstance(content, Answers) else None
    facts = told or sql.gather(
        connection,
        question,
        readable=content.has_input(question.request.input),
        writable=True,
        development=environment.development,
        registered=None,
        lock=False,
    )
    against = (*person_objections(question, facts), *input_objections(question, facts, now=now))
    return against[0] if against else None


def halt_of(
    connection: Connection, environment: Environment, activation: Activation, *, decided_at: datetime | None = None
) -> tuple[Reason, str] | None:
    """What keeps a run that was admitted a moment ago from being begun now; None where nothing does.

    A stop means that nothing starts any more, nor after it was lifted what was admitted before; and a new epoch or a reset
    that nothing starts on what was enabled before.
    """
    halts = find_halts(connection, environment.scope)
    if halts.stop is not None:
        return Reason.STOPPED_BY_OPERATOR, f"{halts.stop.by} stopped everything: {halts.stop.because}"
    if halts.lifted_at is not None and decided_at is not None and decided_at <= halts.lifted_at:
        lifted_at = instant_text(halts.lifted_at)
        return Reason.STOPPED_BY_OPERATOR, f"It was admitted before the stop was lifted at {lifted_at}."
    for reason, enabled_under, now_at in (
        (Reason.ENVIRONMENT_EPOCH_CHANGED, activation.environment_epoch, environment.authority_epoch),
        (Reason.ENVIRONMENT_RESET, activation.reset_generation, environment.reset_generation),
    ):
        if enabled_under not in {None, now_at}:
            return reason, reason.sentence
    return None


def _stop(halts: Halts) -> Stop | None:
    found = halts.stop
    if found is None:
        return None
    return Stop(everywhere=found.environment_id == ORGANIZATION, since=found.since, by=found.by, because=found.because)


def _presence(agent: Agent | None, registered: RegisteredAgent | None) -> Presence | None:
    if agent is not None and agent.gateway == "http":
        return Presence(lifecycle=agent.lifecycle, lease_until=agent.lease_until)
    if registered is None:
        return None
    return Presence(lifecycle=registered.lifecycle, lease_until=registered.lease_until)
