"""Whether a run may start: the rules of admission, in their order (DESIGN.md, section 8). Pure: told the facts and the time."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from horarium.authority.facts import Facts, Question, Surroundings
from horarium.schedule.configuration import RunRequest, UsageClass
from horarium.schedule.identity import instant_text
from horarium.schedule.ledger import Reason

RUNS = frozenset({"ready", "running"})
"""The states of an agent's lifecycle in which it takes runs (seed 002, Trigger Gate)."""
MODE_OF = {
    UsageClass.TEST_SIMULATION: "simulation",
    UsageClass.TEST_COMPUTE: "test",
    UsageClass.LIVE: "live",
}
"""The mode that an environment has to have for runs of each usage class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objection:
    """One reason against a run, with what was looked at. No secrets: it is kept in the ledger."""

    reason: Reason
    sentence: str
    evidence: dict[str, Any]


def objections(question: Question, facts: Facts, around: Surroundings, *, now: datetime) -> Iterator[Objection]:
    """Everything that speaks against a run now; the first wins where only one is kept."""
    for rule in (_environment, _person, _usage, _agent, _input, _grants, _budget, _output):
        yield from rule(question, facts, around, now)


def may_cost(request: RunRequest) -> bool:
    """Whether an admitted run of a request reserves anything."""
    return request.budget_id is not None and request.usage_class is not UsageClass.TEST_SIMULATION


def reservation_of(question: Question, facts: Facts) -> int:
    """What an admitted run reserves in its budget, in minor units: what its agent may cost at the most."""
    if question.request.usage_class is UsageClass.TEST_SIMULATION or facts.agent is None:
        return 0
    return facts.agent.max_cost


def _environment(question: Question, _facts: Facts, around: Surroundings, _now: datetime) -> Iterator[Objection]:
    name = question.scope.environment_id
    if around.runtime_profile is None:
        yield _against(
            Reason.RUNTIME_UNCONFIGURED, f"Environment {name!r} has no runtime profile, so nothing runs in it."
        )
    if around.stop is not None:
        stop = around.stop
        what = f"organization {question.scope.org_id!r}" if stop.everywhere else f"environment {name!r}"
        yield _against(
            Reason.STOPPED_BY_OPERATOR,
            f"Everything in {what} was stopped at {instant_text(stop.since)} by {stop.by}: {stop.because}",
            since=instant_text(stop.since),
            by=stop.by,
        )
    elif around.due is not None and around.lifted_at is not None and around.due <= around.lifted_at:
        lifted_at = instant_text(around.lifted_at)
        yield _against(
            Reason.STOPPED_BY_OPERATOR,
            f"It fell due before the stop was lifted at {lifted_at}, and lifting it catches nothing up.",
            lifted_at=lifted_at,
        )
    if around.epoch is not None and around.epoch != around.environment_epoch:
        yield _against(
            Reason.ENVIRONMENT_EPOCH_CHANGED,
            f"It was enabled under authority epoch {around.epoch}; the environment is at {around.environment_epoch}.",
            enabled_under=around.epoch,
            now_at=around.environment_epoch,
        )
    if around.reset_generation is not None and around.reset_generation != around.environment_reset_generation:
        yield _against(
            Reason.ENVIRONMENT_RESET,
            f"It was enabled under reset generation {around.reset_generation}; the environment is at "
            f"{around.environment_reset_generation}.",
            enabled_under=around.reset_generation,
            now_at=around.environment_reset_generation,
        )


def _person(question: Question, facts: Facts, _around: Surroundings, _now: datetime) -> Iterator[Objection]:
    yield from person_objections(question, facts)


def person_objections(question: Question, facts: Facts) -> Iterator[Objection]:
    """What speaks against acting on the word of the person."""
    if question.person is not None and not facts.member:
        yield _against(
            Reason.PRINCIPAL_LEFT,
            f"{question.person!r}, on whose word this runs, is no member of organization {question.scope.org_id!r}.",
            person=question.person,
        )


def _usage(question: Question, facts: Facts, around: Surroundings, now: datetime) -> Iterator[Objection]:
    usage = question.request.usage_class
    if around.mode != MODE_OF[usage]:
        yield _against(
            Reason.USAGE_CLASS_MISMATCH,
            f"Usage class {usage.value!r} needs an environment in mode {MODE_OF[usage]!r}; this one is in {around.mode!r}.",
            usage_class=usage.value,
            mode=around.mode,
        )
    if usage is not UsageClass.LIVE or not around.live_needs_approval:
        return
    if facts.approval is None:
        yield _against(
            Reason.APPROVAL_MISSING,
            f"Live runs need an approval of exactly this version, and nobody has approved {question.digest}.",
            digest=question.digest,
        )
    elif facts.approval.expires_at <= now:
        yield _against(
            Reason.APPROVAL_EXPIRED,
            f"The approval of this version by {facts.approval.by} expired at {instant_text(facts.approval.expires_at)}.",
            digest=question.digest,
            by=facts.approval.by,
        )


def _agent(question: Question, facts: Facts, around: Surroundings, now: datetime) -> Iterator[Objection]:
    name, agent = question.request.agent_version, facts.agent
    if agent is None:
        yield _against(
            Reason.AGENT_MISSING,
            f"There is no agent {name!r} in {question.scope.org_id}/{question.scope.environment_id}.",
            agent_version=name,
        )
        return
    if not agent.schedulable:
        yield _against(Reason.AGENT_NOT_SCHEDULABLE, f"Agent {name!r} handles no CronStartEvent.", agent_version=name)
    if agent.withdrawn:
        yield _against(Reason.AGENT_WITHDRAWN, f"Agent {name!r} was withdrawn.", agent_version=name)
    presence = around.presence
    if presence is None:
        yield _against(
            Reason.AGENT_OFFLINE, f"Agent {name!r} is offline: no runner has ever reported it.", agent_version=name
        )
        return
    lease = presence.lease_until
    looked: dict[str, Any] = {
        "agent_version": name,
        "lifecycle": presence.lifecycle,
        "lease_until": None if lease is None else lease.isoformat(),
    }
    lapsed = 0.0 if lease is None else round((now - lease).total_seconds(), 1)
    if lapsed > 0:
        looked["offline_seconds"] = lapsed
    if presence.lifecycle not in RUNS:
        for_how_long = f" for {lapsed} s" if lapsed > 0 else ""
        yield _against(Reason.AGENT_NOT_READY, f"Agent {name!r} is {presence.lifecycle}{for_how_long}.", **looked)
    elif lapsed > 0:
        yield _against(
            Reason.AGENT_OFFLINE,
            f"Agent {name!r} is offline: its lease lapsed {lapsed} s ago.",
            **looked,
        )


def _input(question: Question, facts: Facts, _around: Surroundings, now: datetime) -> Iterator[Objection]:
    yield from input_objections(question, facts, now=now)


def input_objections(question: Question, facts: Facts, *, now: datetime) -> Iterator[Objection]:
    """What speaks against reading the input now: asked at admission, and again at each read of a run (seed 000)."""
    name, found = question.request.input, facts.input
    if question.person is None:
        # A run that is nobody's, as those of cron profiles, has no person whose reading could be asked about.
        return
    if found is None or not found.readable:
        yield _against(
            Reason.INPUT_UNREADABLE,
            f"The input {name!r} does not exist, or {question.person!r} cannot read it.",
            input=name,
            person=question.person,
        )
        return
    if found.expires_at is not None and found.expires_at <= now:
        yield _against(
            Reason.INPUT_EXPIRED, f"The input {name!r} expired at {instant_text(found.expires_at)}.", input=name
        )
    if found.consent_withdrawn:
        yield _against(Reason.CONSENT_EXPIRED, f"The consent to use the input {name!r} was withdrawn.", input=name)
    elif found.consent_expires_at is not None and found.consent_expires_at <= now:
        yield _against(
            Reason.CONSENT_EXPIRED,
            f"The consent to use the input {name!r} ended at {instant_text(found.consent_expires_at)}.",
            input=name,
        )


def _grants(question: Question, facts: Facts, _around: Surroundings, now: datetime) -> Iterator[Objection]:
    agent = question.request.agent_version
    for name in question.request.grants:
        grant = facts.grants.get(name)
        if grant is None or (grant.agents is not None and agent not in grant.agents):
            yield _against(Reason.GRANT_MISSING, f"Agent {agent!r} does not hold the grant {name!r}.", grant=name)
            continue
        if grant.expires_at is not None and grant.expires_at <= now:
            yield _against(
                Reason.GRANT_EXPIRED, f"The grant {name!r} expired at {instant_text(grant.expires_at)}.", grant=name
            )
        if grant.revoked:
            yield _against(Reason.GRANT_REVOKED, f"The grant {name!r} was revoked.", grant=name)


def _budget(question: Question, facts: Facts, _around: Surroundings, _now: datetime) -> Iterator[Objection]:
    name, usage = question.request.budget_id, question.request.usage_class
    if name is None and usage is UsageClass.TEST_SIMULATION:
        return
    budget = facts.budget
    if budget is None:
        yield _against(Reason.BUDGET_MISSING, f"There is no budget {name!r}.", budget=name)
        return
    if usage.value not in budget.usage_classes:
        yield _against(
            Reason.BUDGET_USAGE_CLASS,
            f"The budget {name!r} is for {', '.join(budget.usage_classes) or 'nothing'}, not for {usage.value}.",
            budget=name,
        )
    if budget.pays_by == "x402":
        yield _against(Reason.PAYMENT_X402, f"The budget {name!r} pays with x402, which no schedule can.", budget=name)
    if budget.per_run:
        yield _against(
            Reason.PAYMENT_PER_RUN, f"The budget {name!r} is paid per run, which no schedule can use.", budget=name
        )
    needed = reservation_of(question, facts)
    if usage is not UsageClass.TEST_SIMULATION and (facts.room is None or facts.room < max(needed, 1)):
        yield _against(
            Reason.BUDGET_EXHAUSTED,
            f"The budget {name!r} has {max(facts.room or 0, 0)} {budget.currency} minor units left, "
            f"and a run reserves {needed}.",
            budget=name,
            room=facts.room,
            needed=needed,
        )
    if budget.pays_by == "wallet":
        yield from _wallet(budget.wallet, facts)


def _wallet(name: str | None, facts: Facts) -> Iterator[Objection]:
    wallet = facts.wallet
    if wallet is None or facts.owed >= wallet.unpaid_limit:
        limit = 0 if wallet is None else wallet.unpaid_limit
        yield _against(
            Reason.WALLET_UNPAID_LIMIT,
            f"The wallet {name!r} owes {facts.owed} minor units; its unpaid limit is {limit}."
            if wallet is not None
            else f"There is no wallet {name!r} to pay from.",
            wallet=name,
            owed=facts.owed,
        )
    if wallet is not None and wallet.collection_failed:
        yield _against(
            Reason.WALLET_COLLECTION_FAILED, f"A collection from the wallet {name!r} has failed.", wallet=name
        )


def _output(question: Question, facts: Facts, _around: Surroundings, _now: datetime) -> Iterator[Objection]:
    name = question.request.output_target
    if facts.output is None:
        yield _against(Reason.OUTPUT_MISSING, f"The output target {name!r} does not exist.", output_target=name)
    elif not facts.output.writable:
        yield _against(
            Reason.OUTPUT_FORBIDDEN,
            f"This environment may not write to the output target {name!r}.",
            output_target=name,
        )


def _against(reason: Reason, sentence: str, **evidence: Any) -> Objection:
    return Objection(reason=reason, sentence=sentence, evidence=evidence)
