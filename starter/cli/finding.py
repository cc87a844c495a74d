"""Which schedule a person means, who writes a whole id or only the beginning of one."""

import uuid
from typing import Final

from horarium.errors import Conflict, NotFound, Refused
from horarium.schedule.identity import schedule_key
from starter.cli.place import Place

SHORTEST: Final = 6
"""Characters of an id that are enough where no other begins so."""
_SHOWN = 5
_UUID_LENGTH = 36
_HEX_DIGITS = 32


async def find(place: Place, written: str) -> str:
    """The id of the schedule that a person means: by its UUID, or by the first characters of it where no other begins so.

    A whole UUID is not looked up. Raises `NotFound`, `Conflict` where several begin so, `Refused` for what is neither.
    """
    start = written.lower()
    digits = start.replace("-", "")
    if set(digits) - set("0123456789abcdef") or len(start) >= _UUID_LENGTH:
        return schedule_key(place.scope, written).schedule_id
    if len(start) < SHORTEST:
        raise Refused(
            "invalid_schedule_id",
            f"{written!r} is too short for the beginning of a schedule id: at least {SHORTEST} characters.",
            next_step="`horarium list` shows the ids.",
        )
    # The directory is ordered by id, so one page of it shows what begins so.
    first = int(digits.ljust(_HEX_DIGITS, "0")[:_HEX_DIGITS], 16)
    after = None if first == 0 else str(uuid.UUID(int=first - 1))
    page = await place.directory(limit=_SHOWN + 1, after=after, include_retired=True)
    found = [str(each["schedule_id"]) for each in page["schedules"] if each["schedule_id"].startswith(start)]
    if not found:
        raise NotFound(
            "schedule_not_found",
            f"No schedule in {place.scope.org_id}/{place.scope.environment_id} has an id that begins with {start!r}.",
            next_step="`horarium list` shows those that are there.",
        )
    if len(found) > 1:
        more = " and more" if len(found) > _SHOWN else ""
        raise Conflict(
            "ambiguous_schedule_id",
            f"Several schedules begin with {start!r}: {', '.join(found[:_SHOWN])}{more}.",
            next_step="Write more of the id.",
        )
    return found[0]
