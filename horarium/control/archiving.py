"""Archives: what is old is written to files, and only then, where that is wished, removed from the catalog.

An archive is a folder of JSON lines with a manifest, which names each file with its digest. It is written under another name
and gets its own when it is whole and on the disk. What is removed is read from there: each row is compared with what the file
says of it, and what differs, or is needed again, stays. So a process may die at any point. What was written and not removed
stays in the catalog, and the next call goes on with it.

Audit events go by whole seals, oldest first. The seals themselves stay, so the chain to the newest one can always be followed;
what was under them is proven by the archive (`verify_archive`).
"""

import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby, islice
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, Table

from horarium.catalog import Catalog, archiving, seals
from horarium.catalog.archiving import ACTS, AT_ONCE, RECEIPTS, Document
from horarium.catalog.declarations import record_act
from horarium.catalog.environments import require_environment
from horarium.catalog.redactions import redactions
from horarium.catalog.schedules import find_schedule, list_schedules
from horarium.catalog.seals import Seal, SealedEvent
from horarium.control.archive_files import (
    ACT_LINES,
    EVENT_LINES,
    FORMAT,
    LEDGER,
    MANIFEST,
    PRUNED,
    RECEIPT_LINES,
    SEAL_LINES,
    Lines,
    digest_of,
    lines_of,
    opened,
    read_manifest,
    seal_document,
    sealed_in,
    sync_folder,
    verify_archive,
    write_file,
    written,
)
from horarium.control.audit import audit
from horarium.control.unfinished_archives import UNFINISHED, held
from horarium.errors import Misconfigured, Refused
from horarium.schedule.canonical import canonical_json
from horarium.schedule.identity import ScheduleKey, Scope, instant_text

YOUNGEST: Final = timedelta(days=30)
"""How old what is archived has to be. A receipt answers a repeated request as long, and no window or lease lasts longer."""
_PAGE: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Archived:
    """What became of one archive: its folder, the digest of its manifest, rows by file, and how many were removed so far."""

    folder: Path
    digest: str
    rows: Mapping[str, int]
    removed: int = 0


def write_archive(
    catalog: Catalog, scope: Scope, to: Path, *, before: datetime, now: datetime, prune: bool
) -> Archived:
    """Write what of an environment is older than `before`, and needed by nobody, to a new folder in `to`.

    With `prune` it is marked as one whose rows shall be removed (`prune_archive`). Raises `Refused` with `too_young` for what
    is younger than 30 days, and `NotFound` where there is no such environment.
    """
    if before > now - YOUNGEST:
        raise Refused(
            "too_young",
            f"What is younger than {YOUNGEST.days} days is not archived: receipts answer repeated requests as long.",
            next_step=f"Name a time of {instant_text((now - YOUNGEST).replace(microsecond=0))} or earlier.",
        )
    with catalog.reading() as connection:
        require_environment(connection, scope)
    archive_id = str(uuid.uuid4())
    unfinished = to / f"{UNFINISHED}{archive_id}"
    try:
        to.mkdir(mode=0o700, parents=True, exist_ok=True)
        unfinished.mkdir(mode=0o700)
        with held(unfinished):
            files = [
                written(unfinished, LEDGER, _entries(catalog, scope, before)),
                written(unfinished, RECEIPT_LINES, _rows(catalog, scope, RECEIPTS, before)),
                written(unfinished, ACT_LINES, _rows(catalog, scope, ACTS, before)),
                *_written_seals(unfinished, catalog, scope, before),
            ]
            manifest = {
                "format": FORMAT,
                "archive_id": archive_id,
                "org_id": scope.org_id,
                "environment_id": scope.environment_id,
                "before": instant_text(before),
                "made_at": instant_text(now),
                "prune": prune,
                "files": [each.described for each in files],
            }
            text = canonical_json(manifest) + b"\n"
            write_file(unfinished / MANIFEST, text)
            folder = to / f"{scope.org_id}-{scope.environment_id}-{before:%Y%m%d}-{archive_id[:8]}"
            sync_folder(unfinished)
            unfinished.rename(folder)
        sync_folder(to)
    except OSError as error:
        raise Misconfigured(f"The archive cannot be written to {str(to)!r}: {error.strerror}.") from error
    finally:
        # Of one that is whole nothing has this name any more.
        shutil.rmtree(unfinished, ignore_errors=True)
    return Archived(folder=folder, digest=digest_of(text), rows={each.name: each.rows for each in files})


def unfinished_prunings(to: Path, scope: Scope) -> list[Path]:
    """The archives of an environment in a folder whose rows were to be removed, and perhaps are not all."""
    found = []
    for path in sorted(to.glob(f"*/{MANIFEST}")):
        folder = path.parent
        if folder.name.startswith(UNFINISHED) or (folder / PRUNED).exists():
            continue
        manifest = read_manifest(folder)[0]
        if manifest["prune"] and (manifest["org_id"], manifest["environment_id"]) == (
            scope.org_id,
            scope.environment_id,
        ):
            found.append(folder)
    return found


def prune_archive(catalog: Catalog, scope: Scope, folder: Path, *, by: str, clock: Callable[[], datetime]) -> Archived:
    """Remove from the catalog what an archive holds, in small transactions; once more where it was interrupted.

    Raises `Refused` with `archive_damaged` where the archive is not what its manifest says, and with `audit_not_clean` where
    the ledger or a seal is not what it should be: then nothing more is removed, since an archive must not hide it.
    """
    manifest, digest = verify_archive(folder)
    if (manifest["org_id"], manifest["environment_id"]) != (scope.org_id, scope.environment_id):
        raise Refused("other_environment", f"The archive {folder.name!r} is of another environment.")
    with catalog.reading() as connection:
        clean = audit(connection, scope, now=clock()).clean
    if not clean:
        raise Refused(
            "audit_not_clean",
            "The ledger or a seal is not what it should be, and to remove what is old would hide it.",
            next_step="`horarium audit` tells what it is. The archive stays where it is.",
        )
    before = datetime.fromisoformat(manifest["before"])
    archive_id = manifest["archive_id"]
    with catalog.writing() as connection:
        require_environment(connection, scope, lock=True)
        archiving.begin_archive(connection, scope, archive_id, before=before, digest=digest, now=clock())
    pruning = _Pruning(catalog=catalog, scope=scope, folder=folder, archive_id=archive_id, before=before)
    removed = (
        pruning.ledger() + pruning.rows(RECEIPT_LINES, RECEIPTS) + pruning.rows(ACT_LINES, ACTS) + pruning.events()
    )
    with catalog.writing() as connection:
        require_environment(connection, scope, lock=True)
        now = clock()
        archiving.end_archive(connection, archive_id, now=now)
        told = {"archive_id": archive_id, "before": manifest["before"], "digest": digest, "removed": removed}
        record_act(connection, scope, "archived", actor=by, now=now, details=told)
    _note_pruned(folder, now=now, removed=removed)
    rows = {each["name"]: each["rows"] for each in manifest["files"]}
    return Archived(folder=folder, digest=digest, rows=rows, removed=removed)


def _note_pruned(folder: Path, *, now: datetime, removed: int) -> None:
    try:
        write_file(folder / PRUNED, canonical_json({"ended_at": instant_text(now), "removed": removed}) + b"\n")
    except OSError as error:
        raise Misconfigured(
            f"What the archive holds was removed from the catalog ({removed} rows), and {str(folder / PRUNED)!r}, which says "
            f"so, cannot be written: {error.strerror}. Make room there and archive again: that goes on with this one."
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pruning:
    """The removal of what one archive holds."""

    catalog: Catalog
    scope: Scope
    folder: Path
    archive_id: str
    before: datetime

    def ledger(self) -> int:
        removed = 0
        for schedule_id, documents in groupby(lines_of(self.folder / LEDGER), key=lambda each: each["schedule"]):
            key = ScheduleKey(
                org_id=self.scope.org_id, environment_id=self.scope.environment_id, schedule_id=schedule_id
            )
            for some in _chunks(documents):
                with self.catalog.writing() as connection:
                    schedule = find_schedule(connection, key, lock=True)
                    if schedule is None:
                        continue
                    gone = archiving.remove_entries(connection, schedule, some, before=self.before)
                    archiving.note_pruned(connection, self.archive_id, rows=gone)
                removed += gone
        return removed

    def rows(self, name: str, table: Table) -> int:
        removed = 0
        for some in _chunks(lines_of(self.folder / name)):
            with self._writing() as connection:
                gone = archiving.remove_rows(connection, self.scope, table, some, before=self.before)
                archiving.note_pruned(connection, self.archive_id, rows=gone)
            removed += gone
        return removed

    def events(self) -> int:
        removed = 0
        for seal, _, archived in sealed_in(self.folder):
            with self._writing() as connection:
                if seal.number != archiving.pruned_seal(connection, self.scope) + 1:
                    continue  # removed before
                stored = seals.events_under(connection, self.scope, seal)
                if [each.document for each in stored] != [each.document for each in archived]:
                    break  # changed since it was written, by the erasure of a person: the next archive has it as it is now
                archiving.remove_events(connection, [each.id for each in stored])
                archiving.note_pruned(connection, self.archive_id, rows=len(stored), seal=seal.number)
            removed += len(stored)
        return removed

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with self.catalog.writing() as connection:
            require_environment(connection, self.scope, lock=True)
            yield connection


def _entries(catalog: Catalog, scope: Scope, before: datetime) -> Iterator[Document]:
    after_schedule: str | None = None
    while True:
        with catalog.reading() as connection:
            page = list_schedules(connection, scope, after=after_schedule, limit=_PAGE, include_retired=True)
        if not page:
            return
        for schedule in page:
            after: tuple[datetime, int] | None = None
            while True:
                with catalog.reading() as connection:
                    some = archiving.old_entries(connection, schedule, before=before, after=after)
                if not some:
                    break
                yield from some
                after = datetime.fromisoformat(some[-1]["first_at"]), some[-1]["row"]
        after_schedule = page[-1].key.schedule_id


def _rows(catalog: Catalog, scope: Scope, table: Table, before: datetime) -> Iterator[Document]:
    after = 0
    while True:
        with catalog.reading() as connection:
            some = archiving.old_rows(connection, scope, table, before=before, after=after)
        if not some:
            return
        yield from some
        after = some[-1]["id"]


def _written_seals(folder: Path, catalog: Catalog, scope: Scope, before: datetime) -> list[Lines]:
    """The oldest seals whose events are all old enough, with those."""
    with opened(folder, SEAL_LINES) as sealed, opened(folder, EVENT_LINES) as events:
        for seal, instead, found in _old_seals(catalog, scope, before):
            sealed.add({**seal_document(seal), "redacted": instead})
            for each in found:
                events.add({"seal": seal.number, "event": each.document})
    return [sealed, events]


def _old_seals(
    catalog: Catalog, scope: Scope, before: datetime
) -> Iterator[tuple[Seal, str | None, list[SealedEvent]]]:
    with catalog.reading() as connection:
        newest = archiving.newest_event(connection)
        pruned = archiving.pruned_seal(connection, scope)
        redacted = redactions(connection, scope)
        stored = [each for each in seals.list_seals(connection, scope) if each.number > pruned]
    for seal in stored:
        if seal.minute >= before:
            return
        with catalog.reading() as connection:
            found = seals.events_under(connection, scope, seal)
        if any(each.at >= before or each.id == newest for each in found):
            return
        yield seal, redacted.get(seal.number), found


def _chunks(documents: Iterator[Document]) -> Iterator[list[Document]]:
    while some := list(islice(documents, AT_ONCE)):
        yield some
