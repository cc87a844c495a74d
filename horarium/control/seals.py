"""Seals: what was told of a change cannot be altered later without a trace (DESIGN.md, section 7).

Once a minute, whatever audit events of an environment no seal covers yet are sealed: a digest over their canonical JSON and
over the digest of the seal before. The events are taken by what is committed and uncovered, not by their times. So a
transaction that commits late, or whose clock is behind, finds its events in the next seal and never in the past of one.

Whoever can write to the catalog can also compute every seal anew. Against that, note the newest digest elsewhere: no history
but this one leads to it.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from typing import Any

from sqlalchemy import Connection

from horarium.catalog import seals
from horarium.catalog.archiving import pruned_seal
from horarium.catalog.environments import find_environment
from horarium.catalog.redactions import redactions
from horarium.catalog.seals import EVENTS_AT_ONCE, Seal, SealedEvent
from horarium.errors import InvalidSchedule
from horarium.schedule.canonical import canonical_json
from horarium.schedule.identity import Scope, instant_text

BACKDATED = timedelta(hours=1)
"""An event is stored within seconds of its time. One that says it is so much older than a seal that missed it was made up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SealFault:
    """One thing that is wrong with the sealed events. `number` is the seal where it shows."""

    number: int
    code: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """The seals of an environment, computed anew. `unsealed` counts the events that wait for the next one.

    `archived` counts those events of seals that are in archives alone. Their seals are held against one another here, and
    against the events by whoever has the archive. `redacted` counts the seals under which a person's name was replaced.
    """

    count: int
    events: int
    archived: int
    redacted: int
    unsealed: int
    last: Seal | None
    faults: tuple[SealFault, ...]


def is_due(connection: Connection, scope: Scope, *, now: datetime) -> bool:
    """Whether `seal_due` would find something to seal."""
    last = seals.last_seal(connection, scope)
    return (last is None or last.minute < _minute(now)) and bool(seals.unsealed_events(connection, scope, limit=1))


def seal_due(connection: Connection, scope: Scope, *, now: datetime) -> Seal | None:
    """Seal what no seal covers yet, at most once a minute; None where nothing is to be sealed.

    Any number of processes may call it: they wait for one another on the environment's lock.
    """
    if find_environment(connection, scope, lock=True) is None or not is_due(connection, scope, now=now):
        return None
    last = seals.last_seal(connection, scope)
    events = seals.unsealed_events(connection, scope)
    seal = Seal(
        number=1 if last is None else last.number + 1,
        minute=_minute(now),
        count=len(events),
        first_event=events[0].id,
        last_event=events[-1].id,
        digest="",
        previous=None if last is None else last.digest,
    )
    seal = replace(seal, digest=digest_over(scope, seal, events))
    seals.insert_seal(connection, scope, seal, events)
    return seal


def verify_seals(connection: Connection, scope: Scope) -> Verified:
    """Compute every seal of an environment anew, and tell where it does not come out as it is stored."""
    stored = {seal.number: seal for seal in seals.list_seals(connection, scope)}
    newest = max(stored, default=0)
    pruned = pruned_seal(connection, scope)
    redacted = redactions(connection, scope)
    faults = list(_gaps(sorted(stored)))
    empty = set(stored)
    count = 0
    for number, group in groupby(seals.sealed_events(connection, scope), key=lambda event: event.seal or 0):
        events = list(group)
        count += len(events)
        empty.discard(number)
        if number in stored:
            faults += _compared(scope, stored, stored[number], events, instead=redacted.get(number))
        elif not 1 <= number < newest:
            sentence = f"{_told(len(events))} under seal {number}, and there is no such seal."
            faults.append(SealFault(number=number, code="seal_missing", sentence=sentence))
    for number in empty:
        faults += _chained(stored, stored[number]) if number <= pruned else _compared(scope, stored, stored[number], [])
    faults += _made_up(seals.unsealed_events(connection, scope), stored.get(newest), number=newest + 1)
    return Verified(
        count=len(stored),
        events=count,
        archived=sum(stored[number].count for number in empty if number <= pruned),
        redacted=len(redacted),
        unsealed=seals.count_unsealed(connection, scope),
        last=stored.get(newest),
        faults=tuple(sorted(faults, key=lambda fault: fault.number)),
    )


def document(verified: Verified) -> dict[str, Any]:
    """What was verified, as a document that is ready for JSON. `last` is worth noting elsewhere."""
    last = verified.last
    return {
        "count": verified.count,
        "events": verified.events,
        "archived": verified.archived,
        "redacted": verified.redacted,
        "unsealed": verified.unsealed,
        "last": None if last is None else {"number": last.number, "digest": last.digest},
        "faults": [{"seal": fault.number, "code": fault.code, "sentence": fault.sentence} for fault in verified.faults],
    }


def _gaps(numbers: Sequence[int]) -> Iterator[SealFault]:
    for earlier, later in pairwise([0, *numbers]):
        if later != earlier + 1:
            which = f"Seal {earlier + 1} is" if later == earlier + 2 else f"Seals {earlier + 1} to {later - 1} are"
            sentence = f"{which} not there, and seal {later} is."
            yield SealFault(number=earlier + 1, code="seal_missing", sentence=sentence)


def _chained(stored: Mapping[int, Seal], seal: Seal) -> Iterator[SealFault]:
    """Hold one seal against the seal before it."""
    before = stored.get(seal.number - 1)
    if seal.previous != (None if before is None else before.digest) and (before is not None or seal.number == 1):
        sentence = f"Seal {seal.number} does not name the digest of the seal before it."
        yield SealFault(number=seal.number, code="chain_broken", sentence=sentence)


def _compared(
    scope: Scope,
    stored: Mapping[int, Seal],
    seal: Seal,
    events: Sequence[SealedEvent],
    *,
    instead: str | None = None,
) -> Iterator[SealFault]:
    """Hold one seal against the seal before it and against its events; `instead` is their digest since they were redacted."""
    before = stored.get(seal.number - 1)
    yield from _chained(stored, seal)
    if len(events) != seal.count:
        code = "event_missing" if len(events) < seal.count else "event_added"
        sentence = f"Seal {seal.number} was made over {seal.count}. {_told(len(events))} under it now."
        yield SealFault(number=seal.number, code=code, sentence=sentence)
    elif digest_over(scope, seal, events) != (instead or seal.digest):
        sentence = (
            f"Seal {seal.number} does not fit what stands under it ({seal.count}): an event, or the seal, was changed."
        )
        yield SealFault(number=seal.number, code="event_changed", sentence=sentence)
    yield from _made_up(events, before, number=seal.number)


def _made_up(events: Iterable[SealedEvent], before: Seal | None, *, number: int) -> Iterator[SealFault]:
    """Find events that a seal has missed although they say that they are much older than it."""
    if before is None or before.count >= EVENTS_AT_ONCE:
        return  # a full seal left older events to the next one
    for event in events:
        if event.at < before.minute - BACKDATED:
            sentence = (
                f"Event {event.id} says that it is of {instant_text(event.at)}, and was not there when seal "
                f"{before.number} was made at {instant_text(before.minute)}."
            )
            yield SealFault(number=number, code="event_added", sentence=sentence)


def digest_over(scope: Scope, seal: Seal, events: Iterable[SealedEvent]) -> str:
    """The digest that a seal has over these events: of one line of canonical JSON for itself, and one for each event."""
    head = {
        "org_id": scope.org_id,
        "environment_id": scope.environment_id,
        "number": seal.number,
        "minute": instant_text(seal.minute),
        "count": seal.count,
        "first_event": seal.first_event,
        "last_event": seal.last_event,
        "previous": seal.previous,
    }
    hashed = hashlib.sha256(_line(head))
    for event in events:
        hashed.update(_line(event.document))
    return f"sha256:{hashed.hexdigest()}"


def _line(document: dict[str, Any]) -> bytes:
    try:
        return canonical_json(document) + b"\n"
    except InvalidSchedule as error:
        # Not what we wrote. It has no canonical form, so no seal fits it.
        return f"no canonical form: {error}".encode(errors="backslashreplace")


def _told(count: int) -> str:
    return "1 event stands" if count == 1 else f"{count or 'No'} events stand"


def _minute(instant: datetime) -> datetime:
    return instant.replace(second=0, microsecond=0)
