"""Removing a person: the name gives way to another that says nothing, wherever the catalog names the person.

What the record proves stays: what happened, when, and that one and the same person did it. Of audit events under a seal the
words change, so that their seal does not fit them any more. The seal stays as it is, and with it the chain to the newest one;
beside it stands what fits since then (`horarium.catalog.redactions`). That the events under it say today what was sealed,
apart from the name, cannot be proven after that. It is asked first whether all seals fit, so that no other change hides behind
this one.

What this does not reach: archives, backups, logs, Temporal's histories until their retention, the content folder, what the
issuer of tokens knows, and what people and agents wrote in their own words, which is only counted.
"""

import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Row, Table

from horarium.catalog import Catalog, personal, seals
from horarium.catalog.declarations import lock_organization, record_act
from horarium.catalog.environments import require_environment
from horarium.catalog.personal import EVENTS, PLACES, Place
from horarium.catalog.redactions import find_redaction, note_redaction
from horarium.catalog.seals import Seal
from horarium.control.principals import MAX_NAME
from horarium.control.seals import digest_over, verify_seals
from horarium.errors import Conflict, Refused
from horarium.schedule.identity import Scope

PREFIX: Final = "erased:"
"""How the name of somebody who is erased begins. No token can claim one."""
_TOMBSTONE = re.compile(r"erased:[0-9a-f]{32}")
_BEHIND_A_NAME: Final = r"\Z|: | expired at "
"""What follows whoever enabled or paused, who stopped everything, and who approved. More would be another, longer name."""
_DEEPEST: Final = 100
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """What was changed, or would be: rows by table, seals whose events were, and texts that still hold the name somewhere.

    `texts` counts rows by table and column. People and agents wrote them; look at them yourself.
    """

    instead: str
    rows: Mapping[str, int]
    seals: int
    texts: Mapping[str, int]
    dry: bool


@dataclass(slots=True, kw_only=True)
class _Erasure:
    """One person, and who stands instead."""

    name: str
    instead: str
    rows: Counter[str]
    texts: Counter[str]

    def changes(self, place: Place, row: Row[Any]) -> dict[str, Any]:
        """What of a row has to change; what else mentions the name is counted."""
        stored = row._mapping  # noqa: SLF001 - the public way to a row's columns by their names
        told: dict[str, Any] = {}
        for each in place.names:
            if stored[each] == self.name:
                told[each] = self.instead
        for each in place.documents:
            if (changed := self._replaced(stored[each])) != stored[each]:
                told[each] = changed
        for each in place.texts:
            text = stored[each] or ""
            changed = self._quoted(text)
            if changed != text:
                told[each] = changed
            if self.name in changed:
                self.texts[f"{place.table.name}.{each}"] += 1
        if told:
            self.rows[place.table.name] += 1
        return told

    def _replaced(self, value: Any, depth: int = 0) -> Any:
        if depth > _DEEPEST:
            return value
        if isinstance(value, str):
            return self.instead if value == self.name else self._quoted(value)
        if isinstance(value, list):
            return [self._replaced(each, depth + 1) for each in value]
        if isinstance(value, dict):
            return {
                self.instead if name == self.name else name: self._replaced(each, depth + 1)
                for name, each in value.items()
            }
        return value

    def _quoted(self, text: str) -> str:
        """A sentence of ours quotes a name as this does, or tells by whom something was done."""
        told = text.replace(repr(self.name), repr(self.instead))
        by = rf"(?<= by ){re.escape(self.name)}(?={_BEHIND_A_NAME})"
        return re.sub(by, self.instead, told)


def new_name() -> str:
    """Who stands instead of somebody: by chance, so that nothing leads back."""
    return f"{PREFIX}{uuid.uuid4().hex}"


def erase_person(
    catalog: Catalog, scope: Scope, name: str, *, instead: str, by: str, clock: Callable[[], datetime], dry: bool
) -> Erased:
    """Replace a person's name in an organization, in every environment of it; with `dry` only say where it stands.

    `scope` is an environment of that organization. In small transactions: one that was interrupted is finished by a call
    with the same `instead`. Raises `Refused` for what is no name; and, unless it is `dry`, `Conflict` with `person_relied_on`
    while something runs on the person's word, with `person_declared` while a declaration names the person, and `Refused` with
    `audit_not_clean` where a seal does not fit.
    """
    _require_names(name, instead)
    with catalog.reading() as connection:
        require_environment(connection, scope)
        if not dry:
            _require_free(connection, scope, name)
    erasure = _Erasure(name=name, instead=instead, rows=Counter(), texts=Counter())
    redacted = 0
    with catalog.reading() as connection:
        named = [
            Scope(org_id=scope.org_id, environment_id=each)
            for each in personal.environments_with_events(connection, scope.org_id)
        ]
    if not dry:
        # All of them before anything is changed, or the person would stay half erased until that seal is understood.
        for each in named:
            _require_fitting(catalog, each, name)
    for each in named:
        redacted += _erase_events(catalog, each, erasure, clock=clock, dry=dry)
    for place in PLACES:
        _erase_in(catalog, scope, place, erasure, dry=dry)
    with catalog.reading() if dry else catalog.writing() as connection:
        signed_in = personal.remove_sessions(connection, scope.org_id, name, dry=dry)
    if signed_in:
        erasure.rows["sessions"] = signed_in
    result = Erased(instead=instead, rows=dict(erasure.rows), seals=redacted, texts=dict(erasure.texts), dry=dry)
    if not dry:
        with catalog.writing() as connection:
            lock_organization(connection, scope)
            told = {"instead": instead, "rows": result.rows, "seals": redacted}
            # Whoever erases themselves shall not be written down by it.
            actor = instead if by == name else by
            record_act(connection, scope, "person_erased", actor=actor, now=clock(), details=told, everywhere=True)
    return result


def _require_names(name: str, instead: str) -> None:
    if not 1 <= len(name) <= MAX_NAME or not name.isprintable():
        raise Refused("invalid_principal", f"A person has a name of 1 to {MAX_NAME} printable characters.")
    if name.startswith((PREFIX, "system:")):
        raise Refused(
            "invalid_principal", f"{name!r} is no person.", next_step="Name the person as `horarium events` does."
        )
    if not _TOMBSTONE.fullmatch(instead):
        raise Refused(
            "invalid_tombstone",
            f"{instead[:80]!r} does not stand for somebody who was erased.",
            next_step=f"Leave it out, or give what an interrupted call has printed: {PREFIX} and 32 digits.",
        )


def _require_free(connection: Connection, scope: Scope, name: str) -> None:
    enabled, asked = personal.count_relied_on(connection, scope.org_id, name)
    if enabled or asked:
        shown = ", ".join(enabled[:_SHOWN]) + (f" and {len(enabled) - _SHOWN} more" if enabled[_SHOWN:] else "")
        what = [f"schedules are enabled on the person's word ({shown})"] if enabled else []
        what += [f"{asked} runs that the person asked for are under way"] if asked else []
        raise Conflict(
            "person_relied_on",
            f"{name!r} cannot be erased yet: {', and '.join(what)}.",
            next_step="Let somebody else enable or pause them, and let the runs end.",
        )
    declared = [row for row in personal.declared_about(connection, scope.org_id, name) if _names(row, name)]
    if declared:
        shown = ", ".join(f"{row.kind} {row.name!r}" for row in declared[:_SHOWN])
        raise Conflict(
            "person_declared",
            f"{name!r} cannot be erased yet: {len(declared)} declarations name the person ({shown}).",
            next_step="Take the name out of the authority's file and apply it: `horarium authority apply`.",
        )


def _names(row: Row[Any], name: str) -> bool:
    return (row.kind == "person" and row.name == name) or _holds(row.facts, name)


def _holds(value: Any, name: str, depth: int = 0) -> bool:
    if depth > _DEEPEST:
        return False
    if isinstance(value, dict):
        return name in value or any(_holds(each, name, depth + 1) for each in value.values())
    if isinstance(value, list):
        return any(_holds(each, name, depth + 1) for each in value)
    return bool(value == name)


def _require_fitting(catalog: Catalog, scope: Scope, name: str) -> None:
    """Raise `Refused` where an event under a seal may name the person, and not every seal fits."""
    with catalog.reading() as connection:
        numbers = personal.seals_that_name(connection, scope.org_id, scope.environment_id, name)
        faults = verify_seals(connection, scope).faults if numbers else ()
    if faults:
        raise _not_clean(scope, faults[0].sentence)


def _not_clean(scope: Scope, sentence: str) -> Refused:
    return Refused(
        "audit_not_clean",
        f"A seal of {scope.environment_id!r} does not fit, and to redact events would hide it: {sentence}",
        next_step="`horarium audit` tells more.",
    )


def _erase_events(
    catalog: Catalog, scope: Scope, erasure: _Erasure, *, clock: Callable[[], datetime], dry: bool
) -> int:
    """Replace the name in the audit events of an environment; returns how many seals cover some of them."""
    # First those that no seal covers: what is sealed meanwhile is then either without the name, or found under its seal.
    with _environment(catalog, scope, dry=dry) as connection:
        _erase_found(connection, scope, erasure, seal=None, dry=dry)
    with catalog.reading() as connection:
        numbers = personal.seals_that_name(connection, scope.org_id, scope.environment_id, erasure.name)
    redacted = 0
    for number in numbers:
        with _environment(catalog, scope, dry=dry) as connection:
            seal = None if dry else _fitting(connection, scope, number)
            if not _erase_found(connection, scope, erasure, seal=number, dry=dry):
                continue
            redacted += 1
            if seal is not None:
                digest = digest_over(scope, seal, seals.events_under(connection, scope, seal))
                note_redaction(connection, scope, number, digest, now=clock())
    return redacted


@contextmanager
def _environment(catalog: Catalog, scope: Scope, *, dry: bool) -> Iterator[Connection]:
    """A transaction in which no event of an environment is sealed; with `dry` one that changes nothing."""
    with catalog.reading() if dry else catalog.writing() as connection:
        if not dry:
            require_environment(connection, scope, lock=True)
        yield connection


def _fitting(connection: Connection, scope: Scope, number: int) -> Seal:
    """A seal that fits what stands under it, asked in the transaction that changes that."""
    seal = seals.find_seal(connection, scope, number)
    if seal is None:
        raise _not_clean(scope, f"Seal {number} is not there.")
    fits = find_redaction(connection, scope, number) or seal.digest
    if digest_over(scope, seal, seals.events_under(connection, scope, seal)) != fits:
        raise _not_clean(scope, f"Seal {number} does not fit what stands under it: an event, or the seal, was changed.")
    return seal


def _erase_found(connection: Connection, scope: Scope, erasure: _Erasure, *, seal: int | None, dry: bool) -> bool:
    """Replace the name in the events under a seal, or under none; False where none of them names the person."""
    found = personal.find_events(connection, scope.org_id, scope.environment_id, erasure.name, seal=seal)
    changed = [_erase_row(connection, EVENTS, row, erasure, dry=dry) for row in found]
    return any(changed)


def _erase_in(catalog: Catalog, scope: Scope, place: Place, erasure: _Erasure, *, dry: bool) -> None:
    after: tuple[Any, ...] = ()
    while True:
        with catalog.reading() if dry else catalog.writing() as connection:
            if not dry:
                lock_organization(connection, scope)
            found = personal.find_rows(connection, scope.org_id, place, erasure.name, after=after, lock=not dry)
            for row in found:
                _erase_row(connection, place, row, erasure, dry=dry)
        if not found:
            return
        after = _key(place.table, found[-1])


def _erase_row(connection: Connection, place: Place, row: Row[Any], erasure: _Erasure, *, dry: bool) -> bool:
    changes = erasure.changes(place, row)
    if changes and not dry:
        personal.change_row(connection, place.table, row, changes)
    return bool(changes)


def _key(table: Table, row: Row[Any]) -> tuple[Any, ...]:
    return tuple(row._mapping[column.name] for column in table.primary_key.columns)  # noqa: SLF001 - as above
