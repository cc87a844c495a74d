"""What went to archives, said wherever it is asked for: nobody is to take what was removed for what never was.

What a row of the past was is known by whoever has the archive alone. So it is told which archives may hold it, newest first.
"""

from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection

from horarium.catalog.archiving import PrunedArchive, pruned_archives
from horarium.schedule.archived import in_words
from horarium.schedule.identity import Scope, instant_text

NAMED: Final = 10
"""Archives that one answer names at the most."""


def archived(
    connection: Connection,
    scope: Scope,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    events: bool = False,
) -> list[dict[str, Any]]:
    """The archives that may hold what an environment had between two instants and has no more; with `events`, audit events.

    An archive holds what was older than `before`, and not in one of before it.
    """
    found = [
        each
        for each in pruned_archives(connection, scope)
        if (since is None or each.before > since) and (each.has_events or not events)
    ]
    if until is not None:
        # The last of them is the first that reaches so far: what a later one adds is younger.
        reaching = sum(each.before <= until for each in found)
        found = found[: reaching + 1]
    return [_document(each) for each in reversed(found[-NAMED:])]


def or_archived(connection: Connection, scope: Scope) -> str:
    """A sentence to stand behind others that say what to do about something that is not found; empty without archives."""
    found = archived(connection, scope)
    return "" if not found else f" {in_words(found)}"


def _document(each: PrunedArchive) -> dict[str, Any]:
    return {
        "archive_id": each.archive_id,
        "before": instant_text(each.before),
        "archived_at": instant_text(each.began_at),
    }
