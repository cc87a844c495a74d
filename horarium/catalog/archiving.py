"""Queries for archives: what is old and needed by nobody, and its removal once it is written elsewhere.

What is kept, however old it is: whatever is open, or belongs to money that is not settled; of each schedule the last success
and what ended last, which pages, agents and alarms ask for, and the first that was due since, with which a silence begins; of
each activation that lives its newest entry, which the next may join; the newest event of all, so that no number is given twice.

Notifications are no part of the record: what was told is forgotten within days, and what was not waits here for a person. It
says by itself all that it tells, whatever becomes of the entry it is about.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, Select, Table, and_, delete, func, insert, select, update

from horarium.catalog.archive_tables import archives, pruned_ledgers
from horarium.catalog.figures import expecting_page
from horarium.catalog.schedules import Schedule
from horarium.catalog.tables import (
    activations,
    audit_events,
    authority_events,
    entries,
    receipts,
    reservations,
    runs,
)
from horarium.catalog.upsert import upsert
from horarium.schedule.canonical import canonical_json
from horarium.schedule.identity import Scope, instant_text
from horarium.schedule.ledger import BY_CALENDAR, Disposition

Document = dict[str, Any]

AT_ONCE: Final = 500
"""Rows that are read or removed at once: the databases take so many parameters, and whoever wants to write waits as long."""
_SECRET: Final = frozenset({"token_hash", "token_nonce"})
"""What let an agent in. It let in to a run that has ended, and is of no use to whoever reads an archive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrunedLedger:
    """What of an activation's ledger is in archives: instants until `through`, counted by how they ended."""

    through: datetime
    dispositions: Mapping[Disposition, int]

    @property
    def instants(self) -> int:
        """How many instants are in archives."""
        return sum(self.dispositions.values())


def old_entries(
    connection: Connection, schedule: Schedule, *, before: datetime, after: tuple[datetime, int] | None
) -> list[Document]:
    """A page of the entries of a schedule that are old and not needed, with their runs, by `first_at` and row."""
    query = _old_entries(connection, schedule.row, before).order_by(entries.c.first_at, entries.c.id).limit(AT_ONCE)
    if after is not None:
        first_at, row = after
        later = (entries.c.first_at > first_at) | ((entries.c.first_at == first_at) & (entries.c.id > row))
        query = query.where(later)
    return _entry_documents(connection, schedule, connection.execute(query).all())


def remove_entries(
    connection: Connection, schedule: Schedule, documents: Iterable[Document], *, before: datetime
) -> int:
    """Remove those entries that are as their documents say and still not needed; return how many.

    What is removed is counted for the audit in the same transaction. The caller holds the schedule's lock, and gives the
    documents of one schedule in the order of `old_entries`.
    """
    told = {each["row"]: each for each in documents}
    query = _old_entries(connection, schedule.row, before).where(entries.c.id.in_(list(told)))
    found = _entry_documents(connection, schedule, connection.execute(query).all())
    gone = [each for each in found if _same(each, told[each["row"]])]
    _count_pruned(connection, schedule, gone)
    rows = [each["row"] for each in gone]
    connection.execute(delete(runs).where(runs.c.entry.in_(rows)))
    connection.execute(delete(entries).where(entries.c.id.in_(rows)))
    return len(rows)


def pruned_ledger(connection: Connection, schedule: Schedule) -> dict[int, PrunedLedger]:
    """What of a schedule's ledger is in archives, by generation."""
    query = select(pruned_ledgers).where(pruned_ledgers.c.schedule == schedule.row)
    return {
        row.generation: PrunedLedger(
            through=row.through,
            dispositions={Disposition(name): count for name, count in row.dispositions.items()},
        )
        for row in connection.execute(query)
    }


def old_rows(connection: Connection, scope: Scope, table: Table, *, before: datetime, after: int) -> list[Document]:
    """A page of the receipts, or of what operators did, that are old, by their numbers."""
    query = _old_rows(scope, table, before).where(table.c.id > after).order_by(table.c.id).limit(AT_ONCE)
    return [_document(row) for row in connection.execute(query)]


def remove_rows(
    connection: Connection, scope: Scope, table: Table, documents: Iterable[Document], *, before: datetime
) -> int:
    """Remove those of them that are as their documents say; return how many. The caller holds the environment's lock."""
    told = {each["id"]: each for each in documents}
    query = _old_rows(scope, table, before).where(table.c.id.in_(list(told)))
    gone = [row.id for row in connection.execute(query) if _same(_document(row), told[row.id])]
    connection.execute(delete(table).where(table.c.id.in_(gone)))
    return len(gone)


RECEIPTS: Final = receipts
ACTS: Final = authority_events


def newest_event(connection: Connection) -> int:
    """The largest number that an audit event has, in any environment."""
    return connection.execute(select(func.max(audit_events.c.id))).scalar() or 0


def remove_events(connection: Connection, numbers: Sequence[int]) -> None:
    """Remove audit events. The caller holds the environment's lock, and removes all of a seal or none."""
    for start in range(0, len(numbers), AT_ONCE):
        some = numbers[start : start + AT_ONCE]
        connection.execute(delete(audit_events).where(audit_events.c.id.in_(some)))


def begin_archive(
    connection: Connection, scope: Scope, archive_id: str, *, before: datetime, digest: str, now: datetime
) -> None:
    """Tell that an archive is pruned after from now on; once is enough."""
    if connection.execute(select(archives.c.archive_id).where(archives.c.archive_id == archive_id)).first() is None:
        connection.execute(
            insert(archives).values(
                archive_id=archive_id,
                org_id=scope.org_id,
                environment_id=scope.environment_id,
                before=before,
                began_at=now,
                digest=digest,
                seal=0,
                rows=0,
            )
        )


def note_pruned(connection: Connection, archive_id: str, *, rows: int, seal: int | None = None) -> None:
    """Add to what was pruned after an archive."""
    values: dict[str, Any] = {"rows": archives.c.rows + rows}
    if seal is not None:
        values["seal"] = seal
    connection.execute(update(archives).where(archives.c.archive_id == archive_id).values(**values))


def end_archive(connection: Connection, archive_id: str, *, now: datetime) -> None:
    """Tell that everything in an archive is pruned."""
    connection.execute(update(archives).where(archives.c.archive_id == archive_id).values(ended_at=now))


@dataclass(frozen=True, slots=True, kw_only=True)
class PrunedArchive:
    """An archive that something was removed after, begun at that instant. `before` is how old what it holds was."""

    archive_id: str
    before: datetime
    began_at: datetime
    has_events: bool


def pruned_archives(connection: Connection, scope: Scope) -> list[PrunedArchive]:
    """The archives of an environment that something was removed after, by how old what they hold was, oldest first."""
    query = (
        select(archives)
        .where(
            archives.c.org_id == scope.org_id, archives.c.environment_id == scope.environment_id, archives.c.rows > 0
        )
        .order_by(archives.c.before, archives.c.began_at)
    )
    return [
        PrunedArchive(archive_id=row.archive_id, before=row.before, began_at=row.began_at, has_events=row.seal > 0)
        for row in connection.execute(query)
    ]


def pruned_seal(connection: Connection, scope: Scope) -> int:
    """The newest seal of an environment whose events are in an archive alone; 0 for none."""
    query = select(func.max(archives.c.seal)).where(
        archives.c.org_id == scope.org_id, archives.c.environment_id == scope.environment_id
    )
    return connection.execute(query).scalar() or 0


def _old_entries(connection: Connection, schedule: int, before: datetime) -> Select[Any]:
    other = entries.alias()
    of_same = other.c.schedule == entries.c.schedule
    live = select(activations.c.id).where(
        activations.c.schedule == entries.c.schedule,
        activations.c.generation == entries.c.generation,
        activations.c.ended_at.is_(None),
    )
    later = select(other.c.id).where(
        of_same, other.c.generation == entries.c.generation, other.c.last_at > entries.c.last_at
    )
    ended_later = select(other.c.id).where(of_same, other.c.closed_at > entries.c.closed_at)
    succeeded_later = select(other.c.id).where(
        of_same, other.c.disposition == Disposition.SUCCEEDED, other.c.first_at > entries.c.first_at
    )
    owed = select(reservations.c.run_id).where(
        reservations.c.run_id == runs.c.run_id, reservations.c.closed_at.is_(None)
    )
    silent_since = _silent_since(connection, schedule)
    begins = (
        () if silent_since is None else ((entries.c.first_at != silent_since) | (entries.c.trigger != BY_CALENDAR),)
    )
    return (
        select(entries, *(each.label(f"run_{each.name}") for each in runs.c if each.name not in _SECRET))
        .select_from(entries.outerjoin(runs, runs.c.entry == entries.c.id))
        .where(
            entries.c.schedule == schedule,
            entries.c.first_at < before,
            entries.c.last_at < before,
            entries.c.closed_at < before,
            later.exists() | ~live.exists(),
            ended_later.exists(),
            succeeded_later.exists() | (entries.c.disposition != Disposition.SUCCEEDED),
            ~owed.exists(),
            *begins,
        )
    )


def _silent_since(connection: Connection, schedule: int) -> datetime | None:
    """The first instant that was due since the last success of a live schedule: how long it is silent is told by it."""
    page = expecting_page(connection, after=schedule - 1, limit=1)
    return next((each.due_at for each in page if each.schedule == schedule), None)


def _old_rows(scope: Scope, table: Table, before: datetime) -> Select[Any]:
    conditions: list[ColumnElement[bool]] = [
        table.c.org_id == scope.org_id,
        table.c.environment_id == scope.environment_id,
        (table.c.created_at if table is RECEIPTS else table.c.at) < before,
    ]
    if table is ACTS:
        # Its number is the version of what is declared next, which must never be one of before.
        conditions.append(table.c.id < select(func.max(ACTS.c.id)).scalar_subquery())
    return select(table).where(and_(*conditions))


def _entry_documents(connection: Connection, schedule: Schedule, rows: Iterable[Row[Any]]) -> list[Document]:
    del connection
    documents = []
    for row in rows:
        whole = _document(row)
        run = {name.removeprefix("run_"): whole.pop(name) for name in list(whole) if name.startswith("run_")}
        whole["row"] = whole.pop("id")
        whole["schedule"] = schedule.key.schedule_id
        whole["run"] = run if run["run_id"] is not None else None
        documents.append(whole)
    return documents


def _document(row: Row[Any]) -> Document:
    """A row as it is ready for JSON."""
    return {
        name: instant_text(value) if isinstance(value, datetime) else value
        for name, value in row._mapping.items()  # noqa: SLF001 - the public way to a row's columns by their names
    }


def _same(found: Document, told: Document) -> bool:
    return canonical_json(found) == canonical_json(told)


def _count_pruned(connection: Connection, schedule: Schedule, gone: Sequence[Document]) -> None:
    before = pruned_ledger(connection, schedule)
    for generation, some in _by_generation(gone):
        counts: dict[str, int] = {}
        known = before.get(generation)
        through = max(datetime.fromisoformat(each["last_at"]) for each in some)
        if known is not None:
            counts = {disposition.value: count for disposition, count in known.dispositions.items()}
            through = max(through, known.through)
        for each in some:
            counts[each["disposition"]] = counts.get(each["disposition"], 0) + each["count"]
        key = {"schedule": schedule.row, "generation": generation}
        upsert(connection, pruned_ledgers, key, {"through": through, "dispositions": counts})


def _by_generation(documents: Sequence[Document]) -> Iterator[tuple[int, list[Document]]]:
    """What the calendar made due, by generation. A run by hand is due by no calendar, and counts nowhere."""
    found: dict[int, list[Document]] = {}
    for each in documents:
        if each["trigger"] == BY_CALENDAR:
            found.setdefault(each["generation"], []).append(each)
    yield from found.items()
