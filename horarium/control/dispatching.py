"""Handing an admitted run to an agent behind the gateway `http`: the transactions around the POST.

An attempt first claims: it looks at the run, the stop and the destination again, and writes down that it is about to send.
Then it sends, and concludes with what came of it. At an agent that is not idempotent only a claim that found nothing sent may
send, so that two attempts of one admission never do (DESIGN.md, section 5).
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection

from horarium.authority.asking import Content
from horarium.authority.declared import Destination
from horarium.authority.signing import Keys, keys_named
from horarium.catalog import ledger, ledger_changes
from horarium.catalog.declarations import find_declarations
from horarium.catalog.generations import Generation, find_generation
from horarium.catalog.schedules import Activation, Schedule
from horarium.catalog.versions import Version
from horarium.control import admission, threads
from horarium.control.admission import ADMITTED, WITHDRAWN, Admission, nudge_if_waiting
from horarium.control.judgement import halt_of
from horarium.control.running import Outcome, config_of, hash_of, settle, tenant_of
from horarium.errors import Misconfigured
from horarium.schedule.ceilings import USUAL, Ceilings
from horarium.schedule.identity import ActivationKey, RunKey, Scope
from horarium.schedule.ledger import Disposition, Reason

HTTP = "http"
"""The gateway's name."""
_AT_LEAST = timedelta(seconds=1)
"""What a run that was decided at the end of its window still has for being handed over."""


class Answer(StrEnum):
    """What a POST came to."""

    TAKEN = "taken"
    """The destination said that it has the run."""
    REFUSED = "refused"
    """It said that it does not want it, or its address may not be used."""
    UNSENT = "unsent"
    """No connection was made, so nothing can have arrived."""
    UNKNOWN = "unknown"
    """It may have arrived, and it may not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The right to send a run once, and what is sent. `first` says that nothing was sent before.

    `until` is when its window ends. The token opens the run's input; it is the same for every attempt, since the first of them
    may have arrived. `start_event`, `event`, `config` and `tenant_id` are those of `running.Begun`.
    """

    key: RunKey
    destination_name: str
    destination: Destination
    version: Version
    decided_at: datetime
    previous_success: datetime | None
    sent_at: datetime
    deadline: datetime
    until: datetime
    first: bool
    idempotent: bool
    token: str = field(repr=False)
    start_event: str | None = None
    event: Mapping[str, Any] = field(default_factory=dict, repr=False)
    config: Mapping[str, Any] = field(default_factory=dict, repr=False)
    tenant_id: str | None = None

    @property
    def run_id(self) -> str:
        return self.key.run_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """Its agent has the run. `outcome` says how its end is learnt."""

    outcome: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The run is over, or is nobody's: as `Admission` tells it."""

    outcome: str
    reason: Reason | None
    nudge: ActivationKey | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """It is to be sent again, until then."""

    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Handed:
    """A run that is given to an agent behind the gateway, with everything that is about it."""

    key: RunKey
    generation: Generation
    entry: ledger.Entry
    run: ledger.Run

    @property
    def schedule(self) -> Schedule:
        return self.generation.schedule

    @property
    def activation(self) -> Activation:
        return self.generation.activation

    @property
    def destination_name(self) -> str:
        return str(self.run.destination)

    @property
    def idempotent(self) -> bool:
        return bool(self._way["idempotent"])

    @property
    def limit(self) -> timedelta:
        """How long the run may take."""
        return timedelta(seconds=int(self._way["max_run_seconds"]))

    @property
    def was_cancelled_after_sending(self) -> bool:
        """Whether its agent may be doing what nobody waits for."""
        return self.run.dispatch_sent is not None and self.entry.disposition is Disposition.CANCELLED

    @property
    def _way(self) -> dict[str, Any]:
        assert self.run.evidence is not None, "a decision has its evidence"
        way: dict[str, Any] = self.run.evidence["dispatch"]
        return way


def find_handed(connection: Connection, key: RunKey, *, lock: bool) -> Handed | None:
    """A run that was admitted for an agent behind the gateway, or None."""
    found = find_generation(connection, key.activation, lock=lock)
    if found is None:
        return None
    entry, run = ledger.find_entry_and_run(connection, found.schedule, key) or (None, None)
    if entry is None or run is None or run.decision != ADMITTED or run.destination is None:
        return None
    return Handed(key=key, generation=found, entry=entry, run=run)


def find_destination(connection: Connection, scope: Scope, name: str) -> Destination | None:
    """A destination as operators registered it; None where there is none, or it was withdrawn."""
    found = find_declarations(connection, scope, {("destination", name)}).get(("destination", name))
    return None if found is None else Destination.model_validate(found.facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A decision, and the right to send the run, where it is admitted for an agent behind the gateway.

    Without that right, `unusable` says what is wrong with the destination's secret here.
    """

    admission: Admission
    claimed: Claim | Begun | Ended | None = None
    unusable: str | None = None


def decide(
    connection: Connection,
    key: RunKey,
    content: Content,
    *,
    owner: str,
    now: datetime,
    keys_of: Callable[[str], Keys] = keys_named,
    ceilings: Ceilings = USUAL,
) -> Decided:
    """Decide a run as `admission.decide` does, and claim it in the same transaction, so that nothing changes in between."""
    decided = admission.decide(connection, key, content, owner=owner, now=now, ceilings=ceilings)
    if decided.dispatch is None or decided.dispatch.gateway != HTTP:
        return Decided(admission=decided)
    try:
        claimed = claim(connection, key, owner=owner, now=now, keys_of=keys_of)
    except Misconfigured as error:
        return Decided(admission=decided, unusable=str(error))
    return Decided(admission=decided, claimed=claimed)


def claim(
    connection: Connection, key: RunKey, *, owner: str, now: datetime, keys_of: Callable[[str], Keys] = keys_named
) -> Claim | Begun | Ended:
    """Claim the right to send a run, or say what became of it.

    Raises `Misconfigured` where the destination's secret is not there: nothing is written down then, and nothing was sent.
    """
    handed = find_handed(connection, key, lock=True)
    if handed is None or handed.run.owner != owner:
        return Ended(outcome=WITHDRAWN, reason=None, nudge=None)
    run, scope = handed.run, handed.schedule.key.scope
    destination = find_destination(connection, scope, handed.destination_name)
    if handed.entry.closed_at is not None:
        return _as_it_ended(connection, handed)
    if run.begun_at is not None:
        return _begun(destination)
    if run.dispatch_sent is not None and not handed.idempotent:
        return _end(connection, handed, _unknown("An attempt to hand it over died before it had an answer."), now=now)
    version = handed.generation.version
    until = _window_end(handed, version, now=now)
    against = _against(connection, handed, destination, until=until, now=now)
    if against is not None:
        return _end(connection, handed, against, now=now)
    assert destination is not None, "nothing speaks against it"
    keys = keys_of(destination.secret)
    nonce, sent_at = run.token_nonce or secrets.token_hex(16), run.dispatch_sent or now
    token = _token(keys, run.run_id, nonce)
    ledger_changes.change_run(
        connection, run.run_id, dispatch_sent=sent_at, token_nonce=nonce, token_hash=hash_of(token)
    )
    return Claim(
        key=key,
        destination_name=handed.destination_name,
        destination=destination,
        version=version,
        decided_at=run.decided_at or now,
        previous_success=ledger.previous_success(connection, handed.schedule, handed.entry.first_at),
        sent_at=sent_at,
        deadline=sent_at + handed.limit,
        until=until,
        first=run.dispatch_sent is None,
        idempotent=handed.idempotent,
        token=token,
        start_event=run.start_event,
        event=run.event_data or {},
        config=config_of(version),
        tenant_id=tenant_of(version),
    )


def conclude(
    connection: Connection, claimed: Claim, answer: Answer, *, sentence: str, trace: str = "", now: datetime
) -> Begun | Ended | Again:
    """Write down what became of a run that was sent. `sentence` is for a person who asks why it did not start, and `trace` the
    traceback for the log, if there is one.

    Its agent may have reported the end already, and then that counts. A refusal after an attempt that may have arrived is no
    proof that the run did not happen.
    """
    handed = find_handed(connection, claimed.key, lock=True)
    if handed is None:
        return Ended(outcome=WITHDRAWN, reason=None, nudge=None)
    if handed.entry.closed_at is not None:
        return _as_it_ended(connection, handed)
    if handed.run.begun_at is not None:
        return _begun(claimed.destination)
    match answer:
        case Answer.TAKEN:
            mark_begun(connection, handed, at=now)
            return _begun(claimed.destination)
        case Answer.REFUSED:
            refused = Outcome(disposition=Disposition.NOT_STARTED, reason=Reason.DISPATCH_REFUSED, summary=sentence)
            ends_as = refused if claimed.first else _unknown(sentence)
            return _end(connection, handed, replace(ends_as, trace=trace), now=now)
        case Answer.UNSENT:
            unsent = claimed.first and handed.run.dispatch_sent == claimed.sent_at
            if unsent:
                ledger_changes.change_run(connection, claimed.run_id, dispatch_sent=None)
            failed = Outcome(disposition=Disposition.NOT_STARTED, reason=Reason.DISPATCH_FAILED, summary=sentence)
            ends_as, repeatable = failed if unsent else _unknown(sentence), True
        case Answer.UNKNOWN:
            # Another attempt, whose connection failed, may have taken back that something was sent.
            ledger_changes.change_run(
                connection, claimed.run_id, dispatch_sent=handed.run.dispatch_sent or claimed.sent_at
            )
            ends_as, repeatable = _unknown(sentence), claimed.idempotent
    if repeatable and now < claimed.until:
        return Again(until=claimed.until)
    return _end(connection, handed, replace(ends_as, trace=trace), now=now)


def mark_begun(connection: Connection, handed: Handed, *, at: datetime) -> None:
    """The agent has the run."""
    ledger_changes.set_disposition(connection, handed.entry, Disposition.STARTED)
    sent = handed.run.dispatch_sent or at
    ledger_changes.change_run(connection, handed.run.run_id, begun_at=at, dispatch_sent=sent)
    ledger_changes.note_begun(connection, handed.schedule, handed.entry, handed.run, at=at)
    tenant_id = tenant_of(handed.generation.version)
    threads.tell_begun(connection, handed.schedule, handed.key, handed.run, tenant_id=tenant_id, now=at)


def _window_end(handed: Handed, version: Version, *, now: datetime) -> datetime:
    decided_at = handed.run.decided_at or now
    if version.is_damaged:
        return decided_at + _AT_LEAST
    return max(handed.run.window_from + version.configuration.policy.catchup_window, decided_at + _AT_LEAST)


def _against(
    connection: Connection, handed: Handed, destination: Destination | None, *, until: datetime, now: datetime
) -> Outcome | None:
    """What keeps a run from being sent now. It may have been decided hours ago, and its address is reached only now."""
    name, environment = handed.destination_name, handed.generation.environment
    halt = halt_of(connection, environment, handed.activation, decided_at=handed.run.decided_at)
    if halt is not None:
        reason, sentence = halt
    elif destination is None:
        reason, sentence = Reason.DISPATCH_REFUSED, f"The destination {name!r} is not registered any more."
    elif now > until:
        reason, sentence = Reason.DISPATCH_FAILED, f"It could not be sent to {name!r} inside its window."
    else:
        return None
    if handed.run.dispatch_sent is not None:
        return _unknown(f"{sentence} An earlier attempt may have arrived.")
    return Outcome(disposition=Disposition.NOT_STARTED, reason=reason, summary=sentence)


def _unknown(sentence: str) -> Outcome:
    return Outcome(disposition=Disposition.NOT_STARTED, reason=Reason.START_UNKNOWN, summary=sentence)


def _begun(destination: Destination | None) -> Begun:
    return Begun(outcome="callback" if destination is None else destination.outcome)


def _end(connection: Connection, handed: Handed, outcome: Outcome, *, now: datetime) -> Ended:
    nudge = settle(connection, handed.key, outcome, now=now)
    return Ended(outcome=outcome.disposition, reason=outcome.reason, nudge=nudge)


def _as_it_ended(connection: Connection, handed: Handed) -> Ended:
    # The nudge of whoever ended it may have been lost.
    nudge = nudge_if_waiting(connection, handed.schedule)
    return Ended(outcome=handed.entry.disposition, reason=handed.entry.reason, nudge=nudge)


def _token(keys: Keys, run_id: str, nonce: str) -> str:
    """A run's token. It need not be kept, since it can be made again as long as the secret is the same."""
    made = hmac.digest(keys.first, f"horarium-run-token.{run_id}.{nonce}".encode(), hashlib.sha256)
    return base64.urlsafe_b64encode(made).decode().rstrip("=")
