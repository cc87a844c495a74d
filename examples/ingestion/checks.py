"""Looking at the files: what is missing, stale, empty, malformed or there twice. Reads, and changes nothing.

All is bounded, since nobody watches: folders by the manifest, files a folder, bytes and rows a file by the constants
here. What lies beyond a bound is itself a finding, never silently left out. Files are read as streams.
"""

import csv
import hashlib
import heapq
import io
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path

from examples.ingestion.manifest import Folder, Manifest, UnusableManifest

MAX_FILES = 1_000
"""Files of one folder that are read, in the order of their names."""
MAX_FILE_BYTES = 64 * 1024 * 1024
"""A larger file is not read."""
MAX_ROWS = 500_000
"""Rows of one file that are read; 16 bytes are kept of each, to find it again."""

_ROWS_A_BREATH = 10_000


class Kind(StrEnum):
    """What can be wrong, from worst to mildest."""

    MISSING = "missing"
    """The folder is not there, or no file in it matches."""
    UNREADABLE = "unreadable"
    """It may not be read, is no plain file, or leads outside the root."""
    EMPTY = "empty"
    """No bytes, or nothing below the header."""
    MALFORMED = "malformed"
    """Not UTF-8, rows of different lengths, or a required column is missing."""
    STALE = "stale"
    """Last written longer ago than the manifest allows."""
    DUPLICATE_FILE = "duplicate file"
    """The same content as another file."""
    DUPLICATE_ROWS = "duplicate rows"
    """Rows with the same key, or equal rows."""
    TOO_LARGE = "too large"
    """Beyond a bound of this check, and so not looked at in full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong: with a file, or with the folder where `file` is empty."""

    kind: Kind
    file: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderResult:
    """What was found in one folder. `newest` is when its newest file was last written."""

    path: str
    files: int
    newest: datetime | None
    findings: tuple[Finding, ...]


class Stopped(Exception):
    """The run was cancelled while the check was going on."""


@dataclass(slots=True, kw_only=True)
class Check:
    """One check of all folders of a manifest below `root`, as of `at`.

    `breathe` is called with a few words now and then, at least before each file and each 10,000 rows; it may raise,
    which ends the check.
    """

    manifest: Manifest
    root: Path
    at: datetime
    breathe: Callable[[str], None]
    _first_with: dict[bytes, str] = field(default_factory=dict)

    def run(self) -> tuple[FolderResult, ...]:
        """Look at everything. Raises `UnusableManifest` where a folder lies outside the root, through a symlink too."""
        root = _resolved(self.root)
        places = [(folder, _resolved(root / folder.path)) for folder in self.manifest.folders]
        for folder, place in places:
            if not place.is_relative_to(root):
                raise UnusableManifest(f"The folder {folder.path!r} leads outside {str(root)!r}.")
        return tuple(self._folder(folder, place, root) for folder, place in places)

    def _folder(self, folder: Folder, place: Path, root: Path) -> FolderResult:
        self.breathe(folder.path)
        try:
            with os.scandir(place) as entries:
                count, names = _first_names(entry.name for entry in entries if fnmatchcase(entry.name, folder.pattern))
        except (FileNotFoundError, NotADirectoryError):
            return _whole(folder, Kind.MISSING, "There is no such folder.")
        except OSError as error:
            return _whole(folder, Kind.UNREADABLE, f"The folder cannot be read: {error.strerror}.")
        if not names:
            return _whole(folder, Kind.MISSING, f"No file matches {folder.pattern}.")
        findings: list[Finding] = []
        newest = None
        for name in names:
            self.breathe(f"{folder.path}/{name}")
            try:
                written = self._file(folder, _resolved(place / name), name, root, findings)
            except OSError as error:
                findings.append(Finding(kind=Kind.UNREADABLE, file=name, detail=f"{error.strerror}."))
                continue
            if written is not None and (newest is None or written > newest):
                newest = written
        if count > MAX_FILES:
            detail = f"{count:,} files match; the first {MAX_FILES:,} were looked at."
            findings.append(Finding(kind=Kind.TOO_LARGE, file="", detail=detail))
        return FolderResult(path=folder.path, files=count, newest=newest, findings=tuple(findings))

    def _file(self, folder: Folder, place: Path, name: str, root: Path, findings: list[Finding]) -> datetime | None:
        def found(kind: Kind, detail: str) -> None:
            findings.append(Finding(kind=kind, file=name, detail=detail))

        if not place.is_relative_to(root):
            found(Kind.UNREADABLE, "It is a link that leads outside the root, and was not followed.")
            return None
        if not place.is_file():
            # A pipe would be waited for without end.
            found(Kind.UNREADABLE, "It is no plain file.")
            return None
        status = place.stat()
        written = datetime.fromtimestamp(status.st_mtime, UTC)
        age = self.at - written
        if age > timedelta(minutes=folder.max_age_minutes):
            found(
                Kind.STALE, f"Last written {_ago(age)} ago; at most {_ago(timedelta(minutes=folder.max_age_minutes))}."
            )
        if status.st_size > MAX_FILE_BYTES:
            found(Kind.TOO_LARGE, f"{status.st_size:,} bytes; files up to {MAX_FILE_BYTES:,} are read.")
            return written
        if status.st_size == 0:
            found(Kind.EMPTY, "0 bytes.")
            return written
        with place.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").digest()
            path = f"{folder.path}/{name}"
            first = self._first_with.setdefault(content, path)
            if first != path:
                found(Kind.DUPLICATE_FILE, f"The same content as {first}.")
            file.seek(0)
            for kind, detail in self._content(file, folder):
                found(kind, detail)
        return written

    def _content(self, file: io.BufferedReader, folder: Folder) -> Iterator[tuple[Kind, str]]:
        """What is wrong inside one CSV file. A byte order mark at its start is passed over, as spreadsheets write
        it."""
        text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        rows = csv.reader(text, strict=True)
        try:
            header = next((row for row in rows if row), [])
            yield from _header(header, folder)
            yield from self._rows(rows, header, folder)
        except UnicodeDecodeError:
            yield Kind.MALFORMED, f"Not UTF-8, after line {rows.line_num}."
        except csv.Error as error:
            yield Kind.MALFORMED, f"No CSV at line {rows.line_num}: {error}."
        finally:
            text.detach()

    def _rows(self, rows: Iterator[list[str]], header: list[str], folder: Folder) -> Iterator[tuple[Kind, str]]:
        keys = [header.index(column) for column in folder.key_columns if column in header]
        if len(keys) < len(folder.key_columns):
            keys = []  # the missing column is told already; whole rows can still be compared
        seen: set[bytes] = set()
        read = ragged = repeated = 0
        first_ragged = first_repeated = ""
        for count, row in enumerate((row for row in rows if row), start=1):
            if count > MAX_ROWS:
                yield Kind.TOO_LARGE, f"More than {MAX_ROWS:,} rows; the rest was not read."
                break
            read = count
            if count % _ROWS_A_BREATH == 0:
                self.breathe(f"{count:,} rows")
            if len(row) != len(header):
                ragged += 1
                first_ragged = first_ragged or f"row {count} has {len(row)} fields, the header {len(header)}"
                continue
            values = [row[key] for key in keys] if keys else row
            # A digest of fixed length, so that rows cost the same memory whatever they hold.
            digest = hashlib.blake2b(repr(values).encode(), digest_size=16).digest()
            if digest in seen:
                repeated += 1
                first_repeated = first_repeated or ", ".join(values)[:80]
            seen.add(digest)
        if read == 0:
            yield Kind.EMPTY, "A header and no rows." if header else "Blank lines only."
        if ragged:
            yield Kind.MALFORMED, f"{ragged:,} of {read:,} rows have another number of fields: {first_ragged}."
        if repeated:
            same = f"the same {', '.join(folder.key_columns)}" if keys else "all fields equal"
            yield (
                Kind.DUPLICATE_ROWS,
                f"{repeated:,} of {read:,} rows have {same} as an earlier one: {first_repeated}.",
            )


def _header(header: list[str], folder: Folder) -> Iterator[tuple[Kind, str]]:
    wanted = dict.fromkeys((*folder.required_columns, *folder.key_columns))
    missing = [column for column in wanted if column not in header]
    if header and missing:
        yield Kind.MALFORMED, f"No column {', '.join(missing)} in the header."
    twice = [column for column, count in Counter(header).items() if count > 1]
    if twice:
        yield Kind.MALFORMED, f"The header names a column twice: {', '.join(twice)[:80]}."


def _resolved(path: Path) -> Path:
    # Unlike Path.resolve, this behaves the same in all versions of Python where links lead to each other.
    return Path(os.path.realpath(path))


def _first_names(names: Iterable[str]) -> tuple[int, list[str]]:
    """How many names there are, and the first `MAX_FILES` of them in order; no more are kept in memory."""
    count = 0

    def counted() -> Iterator[str]:
        nonlocal count
        for name in names:
            count += 1
            yield name

    first = heapq.nsmallest(MAX_FILES, counted())
    return count, first


def _whole(folder: Folder, kind: Kind, detail: str) -> FolderResult:
    finding = Finding(kind=kind, file="", detail=detail)
    return FolderResult(path=folder.path, files=0, newest=None, findings=(finding,))


def _ago(age: timedelta) -> str:
    minutes = int(age.total_seconds() // 60)
    if minutes < 120:
        return f"{minutes} min"
    if minutes < 2 * 24 * 60:
        return f"{minutes // 60} h"
    return f"{minutes // (24 * 60)} days"
