"""Immutable versions as stored, and their configurations as values, kept in memory for those that were used last."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from typing import Any

from sqlalchemy import RowMapping

from horarium.catalog.stored_json import stored_object
from horarium.errors import InvalidSchedule
from horarium.schedule.configuration import StoredConfiguration, read_stored


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """An immutable version. `text` is the canonical JSON that the digest is taken over."""

    revision: int
    resource_id: str
    digest: str
    text: str
    published_at: datetime
    published_by: str

    @property
    def configuration(self) -> StoredConfiguration:
        """The configuration as a value, kept in memory for the versions that were used last.

        Raises `InvalidSchedule` where the stored row is damaged, and so does its `calendar` where this release cannot
        evaluate it: both are this schedule's trouble and must not become another's.
        """
        return _READ.get(self)

    @property
    def fault(self) -> str | None:
        """Why this release cannot run the version, as a sentence; None where it can."""
        try:
            _ = self.configuration.calendar
        except InvalidSchedule as error:
            return f"Revision {self.revision} cannot be used: {error.faults[0]}"
        return None

    @property
    def is_damaged(self) -> bool:
        """Whether the stored row cannot be read at all."""
        try:
            _ = self.configuration
        except InvalidSchedule:
            return True
        return False

    @property
    def document(self) -> Mapping[str, Any]:
        """The configuration as it was submitted; `InvalidSchedule` where the stored row is damaged."""
        return _document(self.text)


class _Read:
    """The configurations that were used last.

    Known by digest and by the hash of their text, so that the texts themselves, of up to 256 KiB each, are not kept.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: OrderedDict[tuple[str, int], StoredConfiguration] = OrderedDict()
        self._lock = Lock()

    def get(self, version: Version) -> StoredConfiguration:
        key = (version.digest, hash(version.text))
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
                return found
        read = read_stored(_document(version.text))
        with self._lock:
            self._kept[key] = read
            while len(self._kept) > self._limit:
                self._kept.popitem(last=False)
        return read


_READ = _Read(limit=1_024)


def _document(text: str) -> dict[str, Any]:
    return stored_object(text, what="The stored configuration")


def version_of_row(row: RowMapping | Mapping[str, Any]) -> Version:
    """A version as the row of its table."""
    return Version(
        revision=row["revision"],
        resource_id=row["resource_id"],
        digest=row["digest"],
        text=row["configuration"],
        published_at=row["published_at"],
        published_by=row["published_by"],
    )
