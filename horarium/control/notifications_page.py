"""Who is told of what happens, as people look at it: endpoints with what each has not heard, and what was given up."""

from typing import Any, Final

from sqlalchemy import Connection

from horarium.control.directory import names
from horarium.control.notifications import dead_letters, endpoints_document
from horarium.schedule.identity import Scope

LETTERS: Final = 25
"""Dead letters on one page."""


def notifications_page(connection: Connection, scope: Scope, *, after: int = 0) -> dict[str, Any]:
    """Everything that a page about notifications tells. Raises `NotFound`.

    `endpoints` and `dead` are documents as the API has them, `dead` a page of them behind the id `after`, oldest first, and
    `next` the id that the next page begins behind, None where there is none. `schedules` are the names and zones of the
    schedules that are named in them, by id.
    """
    endpoints = endpoints_document(connection, scope)["endpoints"]
    letters = dead_letters(connection, scope, after=after, limit=LETTERS + 1)
    dead = letters[:LETTERS]
    about = {each["schedule_id"] for each in endpoints} | {each["message"]["data"].get("schedule_id") for each in dead}
    return {
        "endpoints": endpoints,
        "dead": dead,
        "next": dead[-1]["id"] if len(letters) > LETTERS else None,
        "schedules": names(connection, scope, about - {None}),
    }
