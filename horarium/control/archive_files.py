"""The files of an archive: how they are written so that they are there to stay, and how it is proven that they are whole.

An archive is a folder of JSON lines with a manifest, which names each file with its digest. What is chosen for it, and what is
removed after it, is `horarium.control.archiving`.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import IO, Any, Final

from horarium.catalog.archiving import Document
from horarium.catalog.seals import Seal, SealedEvent
from horarium.control.seals import digest_over
from horarium.errors import Refused
from horarium.schedule.canonical import canonical_json
from horarium.schedule.identity import Scope, instant_text

FORMAT: Final = "horarium-archive/1"
MANIFEST: Final = "manifest.json"
PRUNED: Final = "pruned.json"
"""Beside the manifest, once everything that the archive holds was removed from the catalog."""
LEDGER: Final = "ledger.jsonl"
RECEIPT_LINES: Final = "receipts.jsonl"
ACT_LINES: Final = "authority_events.jsonl"
EVENT_LINES: Final = "audit_events.jsonl"
SEAL_LINES: Final = "seals.jsonl"


@dataclass(slots=True, kw_only=True)
class Lines:
    """A file that is being written, line by line, with its digest."""

    name: str
    file: IO[bytes]
    rows: int = 0
    bytes: int = 0
    hashed: Any = field(default_factory=hashlib.sha256)

    def add(self, document: Mapping[str, Any]) -> None:
        """One more line, in canonical JSON."""
        line = canonical_json(dict(document)) + b"\n"
        self.file.write(line)
        self.hashed.update(line)
        self.rows += 1
        self.bytes += len(line)

    @property
    def described(self) -> dict[str, Any]:
        """As the manifest names it: name, rows, bytes and SHA-256."""
        return {"name": self.name, "rows": self.rows, "bytes": self.bytes, "sha256": self.hashed.hexdigest()}


def verify_archive(folder: Path) -> tuple[dict[str, Any], str]:
    """The manifest of an archive and its digest, once every file is as it says and every seal fits its events.

    Raises `Refused` with `archive_damaged`.
    """
    manifest, digest = read_manifest(folder)
    for each in manifest["files"]:
        try:
            with (folder / Path(each["name"]).name).open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise damaged(folder, f"{each['name']} cannot be read: {error.strerror}.") from error
        if found != each["sha256"]:
            raise damaged(folder, f"{each['name']} is not the file that the manifest names.")
    scope = Scope(org_id=manifest["org_id"], environment_id=manifest["environment_id"])
    for seal, instead, events in sealed_in(folder):
        if digest_over(scope, seal, events) != (instead or seal.digest):
            raise damaged(folder, f"Seal {seal.number} does not fit the events under it.")
    return manifest, digest


def sealed_in(folder: Path) -> Iterator[tuple[Seal, str | None, list[SealedEvent]]]:
    """The seals of an archive in their order, each with what it was redacted to and its events."""
    events = groupby(lines_of(folder / EVENT_LINES), key=lambda each: each["seal"])
    number, under = next(events, (None, iter(())))
    for line in lines_of(folder / SEAL_LINES):
        found: list[SealedEvent] = []
        if number == line["number"]:
            found = [_event(each["event"], line["number"]) for each in under]
            number, under = next(events, (None, iter(())))
        yield _seal(line), line["redacted"], found


def _event(document: Document, seal: int) -> SealedEvent:
    return SealedEvent(id=document["id"], at=datetime.fromisoformat(document["at"]), seal=seal, document=document)


def seal_document(seal: Seal) -> Document:
    """The line of a seal."""
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


def written(folder: Path, name: str, documents: Iterator[Document]) -> Lines:
    """The file of these documents, which is whole and on the disk when this returns."""
    with opened(folder, name) as lines:
        for each in documents:
            lines.add(each)
    return lines


@contextmanager
def opened(folder: Path, name: str) -> Iterator[Lines]:
    """A new file of an archive, for its owner alone; on the disk when the block ends. Raises `FileExistsError`."""
    descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        yield Lines(name=name, file=file)
        file.flush()
        os.fsync(file.fileno())


def write_file(path: Path, text: bytes) -> None:
    """Write a small file: under its name is all of it, or what was there before."""
    unfinished = path.with_name(f"{path.name}.unfinished")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    unfinished.rename(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Have a folder's names on the disk, before anything is removed because they are there."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_manifest(folder: Path) -> tuple[dict[str, Any], str]:
    """The manifest of an archive and its digest, as far as it is read alone. Raises `Refused` with `archive_damaged`."""
    try:
        text = (folder / MANIFEST).read_bytes()
        manifest = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise damaged(folder, "Its manifest cannot be read.") from error
    form = manifest.get("format") if isinstance(manifest, dict) else None
    if form != FORMAT:
        raise damaged(folder, f"Its format is {str(form)[:40]!r}, and this release reads {FORMAT!r}.")
    if not _is_whole(manifest):
        raise damaged(folder, "A part of its manifest is missing, or is something else.")
    if {each["name"] for each in manifest["files"]} != {LEDGER, RECEIPT_LINES, ACT_LINES, EVENT_LINES, SEAL_LINES}:
        raise damaged(folder, "Its manifest does not name the files of an archive.")
    return manifest, digest_of(text)


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


def lines_of(path: Path) -> Iterator[Document]:
    """The documents of a file, in their order."""
    with path.open("rb") as file:
        for line in file:
            yield json.loads(line)


def digest_of(text: bytes) -> str:
    """As a digest is told: `sha256:` and hexadecimal digits."""
    return f"sha256:{hashlib.sha256(text).hexdigest()}"


def damaged(folder: Path, why: str) -> Refused:
    """The refusal of an archive, for a person."""
    return Refused(
        "archive_damaged",
        f"The archive {folder.name!r} cannot be relied on. {why}",
        next_step="Take it from a backup. Nothing is removed from the catalog after it.",
    )
