"""Who is told of what happens, as people look at it: endpoints with what each has not heard, and what was given up."""

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import Connection

from horarium.control.directory import names
from horarium.control.notifications import HEARTBEAT, dead_letters, endpoints_document
from horarium.schedule.identity import Scope

LETTERS: Final = 25
"""Dead letters on one page."""
HEARTBEATS: Final = 50
"""Heartbeats on one page, of which there may be one for each schedule. Those not heard, or of silent schedules, come first."""


def notifications_page(connection: Connection, scope: Scope, *, after: int = 0) -> dict[str, Any]:
    """Everything that a page about notifications tells. Raises `NotFound`.

    `endpoints` and `dead` are documents as the API has them, heartbeats behind all other endpoints, and so many are left out as
    `more_heartbeats` says; `dead` is a page of them behind the id `after`, oldest first, and
    `next` the id that the next page begins behind, None where there is none. `schedules` are the names and zones of the
    schedules that are named in them, by id.
    """
    found = endpoints_document(connection, scope)["endpoints"]
    beats = sorted(filter(_is_heartbeat, found), key=_is_well)
    endpoints = [*(each for each in found if not _is_heartbeat(each)), *beats[:HEARTBEATS]]
    letters = dead_letters(connection, scope, after=after, limit=LETTERS + 1)
    dead = letters[:LETTERS]
    about = {each["schedule_id"] for each in endpoints} | {each["message"]["data"].get("schedule_id") for each in dead}
    return {
        "endpoints": endpoints,
        "more_heartbeats": max(0, len(beats) - HEARTBEATS),
        "dead": dead,
        "next": dead[-1]["id"] if len(letters) > LETTERS else None,
        "schedules": names(connection, scope, about - {None}),
    }


def _is_heartbeat(endpoint: Mapping[str, Any]) -> bool:
    return str(endpoint["name"]).startswith(HEARTBEAT)


def _is_well(beat: Mapping[str, Any]) -> bool:
    return not any(beat[each] for each in ("stopped_at", "last_error", "dead", "silent_since"))
