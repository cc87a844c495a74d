"""Archives: what is old is written to files, and only then, where that is wished, removed from the catalog.

An archive is a folder of JSON lines with a manifest, which names each file with its digest. It is written under another name
and gets its own when it is whole and on the disk. What is removed is read from there: each row is compared with what the file
says of it, and what differs, or is needed again, stays. So a process may die at any point. What was written and not removed
stays in the catalog, and the next call goes on with it.

Audit events go by whole seals, oldest first. The seals themselves stay, so the chain to the newest one can always be followed;
what was under them is proven by the archive (`verify_archive`).
"""

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby, islice
from pathlib import Path
from typing import IO, Any, Final

from sqlalchemy import Connection, Table

from horarium.catalog import Catalog, archiving, seals
from horarium.catalog.archiving import ACTS, AT_ONCE, RECEIPTS, Document
from horarium.catalog.declarations import record_act
from horarium.catalog.environments import require_environment
from horarium.catalog.redactions import redactions
from horarium.catalog.schedules import find_schedule, list_schedules
from horarium.catalog.seals import Seal, SealedEvent
from horarium.control.audit import audit
from horarium.control.seals import digest_over
from horarium.control.unfinished_archives import UNFINISHED, held
from horarium.errors import Misconfigured, Refused
from horarium.schedule.canonical import canonical_json
from horarium.schedule.identity import ScheduleKey, Scope, instant_text

FORMAT: Final = "horarium-archive/1"
YOUNGEST: Final = timedelta(days=30)
"""How old what is archived has to be. A receipt answers a repeated request as long, and no window or lease lasts longer."""
MANIFEST: Final = "manifest.json"
PRUNED: Final = "pruned.json"
"""Beside the manifest, once everything that the archive holds was removed from the catalog."""
LEDGER: Final = "ledger.jsonl"
RECEIPT_LINES: Final = "receipts.jsonl"
ACT_LINES: Final = "authority_events.jsonl"
EVENT_LINES: Final = "audit_events.jsonl"
SEAL_LINES: Final = "seals.jsonl"
_PAGE: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Archived:
    """What became of one archive: its folder, the digest of its manifest, rows by file, and how many were removed so far."""

    folder: Path
    digest: str
    rows: Mapping[str, int]
    removed: int = 0


@dataclass(slots=True, kw_only=True)
class _Lines:
    """A file that is being written, line by line, with its digest."""

    name: str
    file: IO[bytes]
    rows: int = 0
    bytes: int = 0
    hashed: Any = field(default_factory=hashlib.sha256)

    def add(self, document: Mapping[str, Any]) -> None:
        line = canonical_json(dict(document)) + b"\n"
        self.file.write(line)
        self.hashed.update(line)
        self.rows += 1
        self.bytes += len(line)

    @property
    def described(self) -> dict[str, Any]:
        return {"name": self.name, "rows": self.rows, "bytes": self.bytes, "sha256": self.hashed.hexdigest()}


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
                _written(unfinished, LEDGER, _entries(catalog, scope, before)),
                _written(unfinished, RECEIPT_LINES, _rows(catalog, scope, RECEIPTS, before)),
                _written(unfinished, ACT_LINES, _rows(catalog, scope, ACTS, before)),
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
            _write(unfinished / MANIFEST, text)
            folder = to / f"{scope.org_id}-{scope.environment_id}-{before:%Y%m%d}-{archive_id[:8]}"
            _sync(unfinished)
            unfinished.rename(folder)
        _sync(to)
    except OSError as error:
        raise Misconfigured(f"The archive cannot be written to {str(to)!r}: {error.strerror}.") from error
    finally:
        # Of one that is whole nothing has this name any more.
        shutil.rmtree(unfinished, ignore_errors=True)
    return Archived(folder=folder, digest=_digest(text), rows={each.name: each.rows for each in files})


def unfinished_prunings(to: Path, scope: Scope) -> list[Path]:
    """The archives of an environment in a folder whose rows were to be removed, and perhaps are not all."""
    found = []
    for path in sorted(to.glob(f"*/{MANIFEST}")):
        folder = path.parent
        if folder.name.startswith(UNFINISHED) or (folder / PRUNED).exists():
            continue
        manifest = _manifest(folder)[0]
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
        _write(folder / PRUNED, canonical_json({"ended_at": instant_text(now), "removed": removed}) + b"\n")
    except OSError as error:
        raise Misconfigured(
            f"What the archive holds was removed from the catalog ({removed} rows), and {str(folder / PRUNED)!r}, which says "
            f"so, cannot be written: {error.strerror}. Make room there and archive again: that goes on with this one."
        ) from error


def verify_archive(folder: Path) -> tuple[dict[str, Any], str]:
    """The manifest of an archive and its digest, once every file is as it says and every seal fits its events.

    Raises `Refused` with `archive_damaged`.
    """
    manifest, digest = _manifest(folder)
    for each in manifest["files"]:
        try:
            with (folder / Path(each["name"]).name).open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise _damaged(folder, f"{each['name']} cannot be read: {error.strerror}.") from error
        if found != each["sha256"]:
            raise _damaged(folder, f"{each['name']} is not the file that the manifest names.")
    scope = Scope(org_id=manifest["org_id"], environment_id=manifest["environment_id"])
    for seal, instead, events in _sealed_in(folder):
        if digest_over(scope, seal, events) != (instead or seal.digest):
            raise _damaged(folder, f"Seal {seal.number} does not fit the events under it.")
    return manifest, digest


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
        for schedule_id, documents in groupby(_lines(self.folder / LEDGER), key=lambda each: each["schedule"]):
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
        for some in _chunks(_lines(self.folder / name)):
            with self._writing() as connection:
                gone = archiving.remove_rows(connection, self.scope, table, some, before=self.before)
                archiving.note_pruned(connection, self.archive_id, rows=gone)
            removed += gone
        return removed

    def events(self) -> int:
        removed = 0
        for seal, _, archived in _sealed_in(self.folder):
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


def _written_seals(folder: Path, catalog: Catalog, scope: Scope, before: datetime) -> list[_Lines]:
    """The oldest seals whose events are all old enough, with those."""
    with _opened(folder, SEAL_LINES) as sealed, _opened(folder, EVENT_LINES) as events:
        for seal, instead, found in _old_seals(catalog, scope, before):
            sealed.add({**_seal_document(seal), "redacted": instead})
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


def _sealed_in(folder: Path) -> Iterator[tuple[Seal, str | None, list[SealedEvent]]]:
    """The seals of an archive in their order, each with what it was redacted to and its events."""
    events = groupby(_lines(folder / EVENT_LINES), key=lambda each: each["seal"])
    number, under = next(events, (None, iter(())))
    for line in _lines(folder / SEAL_LINES):
        found: list[SealedEvent] = []
        if number == line["number"]:
            found = [_event(each["event"], line["number"]) for each in under]
            number, under = next(events, (None, iter(())))
        yield _seal(line), line["redacted"], found


def _event(document: Document, seal: int) -> SealedEvent:
    return SealedEvent(id=document["id"], at=datetime.fromisoformat(document["at"]), seal=seal, document=document)


def _seal_document(seal: Seal) -> Document:
    return {
        "number": seal.number,
        "minute": instant_text(seal.minute),
        "count": seal.count,
        "first_event": seal.first_event,
        "last_event": seal.last_event,
        "digest": seal.digest,
        "previous": seal.previous,
    }


def _seal(line: Document) -> Seal:
    told = {name: line[name] for name in ("number", "count", "first_event", "last_event", "digest", "previous")}
    return Seal(minute=datetime.fromisoformat(line["minute"]), **told)


def _written(folder: Path, name: str, documents: Iterator[Document]) -> _Lines:
    with _opened(folder, name) as lines:
        for each in documents:
            lines.add(each)
    return lines


@contextmanager
def _opened(folder: Path, name: str) -> Iterator[_Lines]:
    descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        yield _Lines(name=name, file=file)
        file.flush()
        os.fsync(file.fileno())


def _write(path: Path, text: bytes) -> None:
    unfinished = path.with_name(f"{path.name}.unfinished")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    unfinished.rename(path)
    _sync(path.parent)


def _sync(folder: Path) -> None:
    """Have a folder's names on the disk, before anything is removed because they are there."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _manifest(folder: Path) -> tuple[dict[str, Any], str]:
    try:
        text = (folder / MANIFEST).read_bytes()
        manifest = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise _damaged(folder, "Its manifest cannot be read.") from error
    form = manifest.get("format") if isinstance(manifest, dict) else None
    if form != FORMAT:
        raise _damaged(folder, f"Its format is {str(form)[:40]!r}, and this release reads {FORMAT!r}.")
    if not _is_whole(manifest):
        raise _damaged(folder, "A part of its manifest is missing, or is something else.")
    if {each["name"] for each in manifest["files"]} != {LEDGER, RECEIPT_LINES, ACT_LINES, EVENT_LINES, SEAL_LINES}:
        raise _damaged(folder, "Its manifest does not name the files of an archive.")
    return manifest, _digest(text)


def _is_whole(manifest: Mapping[str, Any]) -> bool:
    """Whether everything stands in a manifest that is read of it."""
    match manifest:
        case {
            "archive_id": str(),
            "org_id": str(),
            "environment_id": str(),
            "before": str() as before,
            "prune": bool(),
            "files": [*files],
        }:
            return _is_instant(before) and all(map(_is_file, files))
        case _:
            return False


def _is_file(described: object) -> bool:
    match described:
        case {"name": str(), "rows": int(), "sha256": str()}:
            return True
        case _:
            return False


def _is_instant(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _lines(path: Path) -> Iterator[Document]:
    with path.open("rb") as file:
        for line in file:
            yield json.loads(line)


def _chunks(documents: Iterator[Document]) -> Iterator[list[Document]]:
    while some := list(islice(documents, AT_ONCE)):
        yield some


def _digest(text: bytes) -> str:
    return f"sha256:{hashlib.sha256(text).hexdigest()}"


def _damaged(folder: Path, why: str) -> Refused:
    return Refused(
        "archive_damaged",
        f"The archive {folder.name!r} cannot be relied on. {why}",
        next_step="Take it from a backup. Nothing is removed from the catalog after it.",
    )
