"""Admission: whether a run may start, judged on what is true at that second.

Enabling and every occurrence are judged by the same function (`horarium.control.judgement`), so that no path can leave a
question out.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Connection

from horarium.authority.asking import Answers, Content
from horarium.authority.facts import Question
from horarium.authority.rules import Objection, may_cost
from horarium.catalog import ledger, ledger_changes, money, tallies
from horarium.catalog.generations import find_generation
from horarium.catalog.presence import RegisteredAgent, find_agent
from horarium.catalog.schedules import Activation, Schedule, find_activation
from horarium.catalog.versions import Version
from horarium.control import breaker, profile_logs, threads, v0_events
from horarium.control.ceilings import keep_count
from horarium.control.ceilings import objection as over_ceiling
from horarium.control.deferral import is_answered_for
from horarium.control.judgement import TRIED_ONCE, Judgement, judge, person_of, question_about
from horarium.errors import Unavailable
from horarium.schedule.ceilings import USUAL, Ceilings
from horarium.schedule.facts import OVERDUE
from horarium.schedule.identity import ActivationKey, RunKey, instant_text
from horarium.schedule.ledger import BY_CALENDAR, Disposition, Reason
from horarium.schedule.profiles import CRON_START_EVENT


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatch:
    """What the gateway needs to hand an admitted run to its agent.

    `task_queue` is where runners of a `temporal` agent take it. `destination` names the registered address of an `http` one,
    and `outcome` says how its end is learnt: by `callback`, or by `poll`.
    """

    run_id: str
    agent_version: str
    task_queue: str
    max_run_seconds: int
    pick_up_seconds: float
    idempotent: bool
    gateway: str = "temporal"
    destination: str | None = None
    outcome: str = "callback"


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
CLOSED = "closed"
"""How a decision is stored that let nothing start: the entry tells which it was."""
WITHDRAWN = "withdrawn"
ADMISSION = "system:admission"
"""Who acts where a run is decided."""
_DECIDED = ("owner", "decided_at", "decision", "agent_version", "destination", "evidence", "ended_at")
"""What a decision says of a run."""


def decide(
    connection: Connection, key: RunKey, content: Content, *, owner: str, now: datetime, ceilings: Ceilings = USUAL
) -> Admission:
    """Decide a staged run, once. A later attempt of the same owner is given the same decision; another owner, none.

    `content` was asked about the run's request before, outside of the transaction. Raises `Unavailable` before the nominal
    time: whoever asks waits, by its own clock, and asks again; and where the content did not answer, as long as the run is
    inside its window. `ceilings` are those that the installation is set up with.
    """
    if now < key.nominal_time:
        early = (key.nominal_time - now).total_seconds()
        raise Unavailable(
            "too_early",
            f"Run {key.run_id} is due at {instant_text(key.nominal_time)}, in {early:.3f} s, and is not decided before.",
            next_step="Ask again then.",
        )
    found = find_generation(connection, key.activation, lock=True)
    if found is None:
        return Admission(outcome=WITHDRAWN)
    schedule, activation, version = found.schedule, found.activation, found.version
    entry, run = ledger.find_entry_and_run(connection, schedule, key) or (None, None)
    if entry is None or run is None:
        return Admission(outcome=WITHDRAWN)
    if run.decision is not None:
        return _repeated(connection, schedule, version, entry, run, owner=owner, now=now)
    if entry.disposition is not Disposition.STAGED or not activation.is_live:
        return Admission(outcome=WITHDRAWN)
    run = replace(run, owner=owner, decided_at=now, decision=CLOSED)
    if version.fault is not None:
        # The schedule's next step sends the activation to review for the same.
        v0_events.tell_decided(connection, schedule, version, entry, run, key=key, by=ADMISSION, now=now)
        unusable = Objection(reason=Reason.VERSION_UNUSABLE, sentence=version.fault, evidence={})
        return _refused(connection, schedule, entry, key, unusable, run=run, looked_at={}, now=now)
    person = person_of(schedule, activation, run)
    late = now - run.window_from > version.configuration.policy.catchup_window
    if late or is_answered_for(connection, schedule, activation, version, entry, now=now):
        return _misfired(connection, schedule, version, entry, run, key=key, content=content, late=late, now=now)
    v0_events.tell_decided(connection, schedule, version, entry, run, key=key, by=ADMISSION, now=now)
    question = question_about(schedule, version, person=person)
    judgement = judge(
        connection,
        question,
        content,
        now=now,
        environment=found.environment,
        activation=activation,
        due=_due(entry),
        lock=True,
    )
    against = (
        _unselected(key, activation, version),
        next(iter(judgement.objections), None),
        _unreserved(question, content, judgement),
        _over_ceiling(connection, schedule, version, activation, ceilings, key=key, now=now),
        breaker.objection(connection, schedule, activation, key),
    )
    objection = next((each for each in against if each is not None), None)
    if objection is not None:
        if isinstance(content, Answers) and content.reserved:
            # Written down, so that it is released below and the platform's authority is told.
            _reserve(connection, question, key, content, judgement, now=now)
        refused = _refused(connection, schedule, entry, key, objection, run=run, looked_at=judgement.evidence, now=now)
        breaker.open_for(connection, schedule, activation, objection, now=now)
        return refused
    _reserve(connection, question, key, content, judgement, now=now)
    breaker.count_start(connection, schedule, activation, key)
    ledger_changes.set_disposition(connection, entry, Disposition.ADMITTED)
    evidence = {
        **judgement.evidence,
        "version": {"revision": version.revision, "digest": version.digest},
        "dispatch": _way(schedule, judgement),
    }
    run = replace(
        run,
        decision=ADMITTED,
        agent_version=question.request.agent_version,
        destination=judgement.agent.destination,
        evidence=evidence,
    )
    _keep(connection, entry, run, Disposition.ADMITTED)
    return _admitted(connection, schedule, version, entry, run=run, agent=judgement.registered, decided_at=now, now=now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A run that is not decided yet: what has to be asked about it, which never changes, and its catch-up window.

    Without a question, its version cannot be used, and nothing has to be asked.
    """

    question: Question | None
    window_from: datetime
    until: datetime


def pending(connection: Connection, key: RunKey) -> Pending | None:
    """What is to be decided; None where nothing is: there is no such run, or it was decided already."""
    found = find_generation(connection, key.activation)
    run = ledger.find_run(connection, key.run_id)
    if found is None or run is None or run.decision is not None:
        return None
    version = found.version
    if version.is_damaged:
        return Pending(question=None, window_from=run.window_from, until=run.window_from)
    return Pending(
        question=question_about(found.schedule, version, person=person_of(found.schedule, found.activation, run)),
        window_from=run.window_from,
        until=run.window_from + version.configuration.policy.catchup_window,
    )


def announce(connection: Connection, key: RunKey, question: Question, *, now: datetime) -> bool:
    """Before a platform's authority is asked to reserve for a run: write down that it may, whoever dies meanwhile.

    False where the run was decided, or is nobody's any more, and must not be asked about.
    """
    run = ledger.find_run(connection, key.run_id)
    entry = None if run is None else ledger.entry_of(connection, run)
    if run is None or entry is None or run.decision is not None or entry.disposition is not Disposition.STAGED:
        return False
    if question.request.budget_id is not None and may_cost(question.request):
        money.announce(connection, question.scope, key.run_id, budget=question.request.budget_id, now=now)
    return True


def _due(entry: ledger.Entry) -> datetime:
    """Since when a run is owed: since its instant, or since it was asked for by hand, in the middle of a second."""
    return entry.first_at if entry.trigger == BY_CALENDAR else entry.held_since or entry.first_at


def _unselected(key: RunKey, activation: Activation, version: Version) -> Objection | None:
    """What the calendar has against an instant: it does not select it, or what was enabled does not answer for it."""
    if key.trigger != BY_CALENDAR:
        return None
    if key.nominal_time <= activation.activated_at:
        since = instant_text(activation.activated_at)
        sentence = f"Its activation answers for what is due after {since}; the run was stopped as a fault of ours."
    elif not version.configuration.calendar.selects(key.nominal_time):
        sentence = Reason.NOT_IN_CALENDAR.sentence
    else:
        return None
    return Objection(reason=Reason.NOT_IN_CALENDAR, sentence=sentence, evidence={})


def _over_ceiling(
    connection: Connection,
    schedule: Schedule,
    version: Version,
    activation: Activation,
    ceilings: Ceilings,
    *,
    key: RunKey,
    now: datetime,
) -> Objection | None:
    """What the ceilings have against one more occurrence. A run by hand is none."""
    if key.trigger != BY_CALENDAR:
        return None
    keep_count(connection, version, activation, now=now)
    return over_ceiling(connection, schedule, version, activation, ceilings, now=now)


def _misfired(
    connection: Connection,
    schedule: Schedule,
    version: Version,
    entry: ledger.Entry,
    run: ledger.Run,
    *,
    key: RunKey,
    content: Content,
    late: bool,
    now: datetime,
) -> Admission:
    """Its window has passed, because the authority gave no answer or nobody decided; or another run answers for it."""
    if late and isinstance(content, Answers) and content.question is not None and not content.are_there:
        # It used its slot, and it was the authority that did not let it pass.
        v0_events.tell_decided(connection, schedule, version, entry, run, key=key, by=ADMISSION, now=now)
        unanswered = Objection(
            reason=Reason.AUTHORITY_UNAVAILABLE,
            sentence=content.unanswered or Reason.AUTHORITY_UNAVAILABLE.sentence,
            evidence={},
        )
        return _refused(connection, schedule, entry, key, unanswered, run=run, looked_at={}, now=now)
    disposition, reason = (
        (Disposition.MISSED, Reason.OUTSIDE_WINDOW) if late else (Disposition.SKIPPED, Reason.COALESCED)
    )
    ledger_changes.close(connection, schedule, entry, disposition, reason, now=now)
    run = replace(run, ended_at=now)
    _keep(connection, entry, run, disposition)
    v0_events.tell_missed(connection, schedule, key, reason, disposition=disposition, by=ADMISSION, now=now)
    threads.tell_ended(connection, schedule, key, run, disposition=disposition, reason=reason, now=now)
    profile_logs.tell_one(connection, schedule, key.nominal_time, disposition, reason)
    money.release(connection, key.run_id, now=now)
    return _closed(connection, schedule, disposition, reason)


def _reserve(
    connection: Connection, question: Question, key: RunKey, content: Content, judgement: Judgement, *, now: datetime
) -> None:
    """Take what the run may cost off its budget. There is room: the judgement found it, under the lock of the account."""
    budget = question.request.budget_id
    remote = content.reserved if isinstance(content, Answers) else None
    amount = judgement.reserves if not judgement.remote else remote or 0
    if budget is None or (amount == 0 and not (judgement.remote and may_cost(question.request))):
        return
    wallet = None if judgement.facts.budget is None else judgement.facts.budget.wallet
    money.reserve(
        connection,
        question.scope,
        key.run_id,
        budget=budget,
        wallet=wallet,
        amount=amount,
        remote=judgement.remote,
        now=now,
    )


def _unreserved(question: Question, content: Content, judgement: Judgement) -> Objection | None:
    """A platform's authority that holds the money has to have reserved what the run may cost: there may have been room when it
    looked, and none any more."""
    if not judgement.remote or not may_cost(question.request):
        return None
    reserved = (content.reserved if isinstance(content, Answers) else None) or 0
    if reserved >= judgement.reserves:
        return None
    return Objection(
        reason=Reason.BUDGET_EXHAUSTED,
        sentence=f"The authority has reserved {reserved} minor units in the budget {question.request.budget_id!r}, and a run "
        f"reserves {judgement.reserves}.",
        evidence={"budget": question.request.budget_id, "reserved": reserved, "needed": judgement.reserves},
    )


def _way(schedule: Schedule, judgement: Judgement) -> dict[str, object]:
    """How the run reaches its agent, as it was when it was decided. It is repeated to whoever asks again."""
    agent, registered = judgement.agent, judgement.registered
    once = schedule.contract in TRIED_ONCE
    if agent.gateway == "http" or registered is None:
        return {
            "gateway": agent.gateway,
            "destination": agent.destination,
            "max_run_seconds": agent.max_run_seconds,
            "idempotent": agent.idempotent and not once,
        }
    discovered = registered.discovery
    return {
        "gateway": agent.gateway,
        "task_queue": str(discovered["task_queue"]),
        "max_run_seconds": min(agent.max_run_seconds, int(discovered["max_run_seconds"])),
        "idempotent": bool(discovered["idempotent"]) and not once,
        "calendar_event": str(discovered.get("calendar_event") or CRON_START_EVENT),
    }


def nudge_if_waiting(
    connection: Connection, schedule: Schedule, *, held: Activation | None = None
) -> ActivationKey | None:
    """The current activation, if it has said that it waits for a slot. The caller holds the lock that it said so under.

    `held` is an activation that the caller has read under that lock and not changed. Where it is the current one nothing is
    asked.
    """
    current = held
    if current is None or current.generation != schedule.generation:
        current = find_activation(connection, schedule, schedule.generation)
    if current is None or not (current.is_live and current.waiting):
        return None
    return ActivationKey(schedule=schedule.key, generation=schedule.generation)


def _keep(connection: Connection, entry: ledger.Entry, run: ledger.Run, became: Disposition) -> None:
    """Store what was decided on a run, all at once."""
    decided = {name: getattr(run, name) for name in _DECIDED}
    ledger_changes.change_run(
        connection, run.run_id, **{name: value for name, value in decided.items() if value is not None}
    )
    assert run.decided_at is not None
    since = max(entry.first_at, entry.held_since or entry.first_at)
    tallies.time_decided(connection, became, since=since, decided_at=run.decided_at)


def _refused(
    connection: Connection,
    schedule: Schedule,
    entry: ledger.Entry,
    key: RunKey,
    objection: Objection,
    *,
    run: ledger.Run,
    looked_at: dict[str, object],
    now: datetime,
) -> Admission:
    ledger_changes.close(connection, schedule, entry, Disposition.REFUSED, objection.reason, now=now)
    money.release(connection, key.run_id, now=now)
    evidence = {**looked_at, "sentence": objection.sentence, **objection.evidence}
    run = replace(run, evidence=evidence, ended_at=now)
    _keep(connection, entry, run, Disposition.REFUSED)
    threads.tell_refused(connection, schedule, key, run, reason=objection.reason, sentence=objection.sentence, now=now)
    profile_logs.tell_refused(connection, schedule, key, objection)
    return _closed(connection, schedule, Disposition.REFUSED, objection.reason)


def _closed(connection: Connection, schedule: Schedule, disposition: Disposition, reason: Reason | None) -> Admission:
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
    if run.decision != ADMITTED or entry.closed_at is not None:
        # The nudge of the first attempt may have been lost with it.
        return _closed(connection, schedule, entry.disposition, entry.reason)
    if run.agent_version is None or version.is_damaged:
        return Admission(outcome=WITHDRAWN)
    decided_at = run.decided_at or now
    agent = find_agent(connection, schedule.key.scope, run.agent_version)
    return _admitted(connection, schedule, version, entry, run=run, agent=agent, decided_at=decided_at, now=now)


def _admitted(
    connection: Connection,
    schedule: Schedule,
    version: Version,
    entry: ledger.Entry,
    *,
    run: ledger.Run,
    agent: RegisteredAgent | None,
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


def _dispatch(version: Version, run: ledger.Run, agent: RegisteredAgent | None, *, now: datetime) -> Dispatch:
    """What is left of the window bounds the hand-over, and at most the lease: nothing is queued for an absent agent."""
    left = (run.window_from + version.configuration.policy.catchup_window - now).total_seconds()
    assert run.agent_version is not None
    way = (run.evidence or {}).get("dispatch")
    if way is None:
        # Decided by a release that did not keep the way.
        assert agent is not None, "agents are never forgotten"
        way = agent.discovery
    if agent is not None and way.get("gateway", "temporal") == "temporal":
        left = min(left, (agent.lease_until - now).total_seconds())
    return Dispatch(
        run_id=run.run_id,
        agent_version=run.agent_version,
        task_queue=str(way.get("task_queue", "")),
        max_run_seconds=int(way["max_run_seconds"]),
        pick_up_seconds=max(1.0, left),
        idempotent=bool(way["idempotent"]),
        gateway=str(way.get("gateway", "temporal")),
        destination=way.get("destination"),
    )
