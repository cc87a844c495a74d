"""Places in a ledger to continue from, as opaque texts: a key, never an offset, so that new rows move nothing."""

import base64
import binascii
import re
from datetime import datetime

from horarium.api.problems import Rejected
from horarium.catalog.pages import Position
from horarium.schedule.identity import instant_text

MAX_LENGTH = 200
_TEXT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{6})?Z)\|(\d{1,18})", re.ASCII)


def cursor_text(position: Position) -> str:
    """A position as the caller gets it."""
    text = f"{instant_text(position.first_at)}|{position.row}"
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(text: str) -> Position:
    """The position that a cursor stands for; `Rejected` with 400 where the text is none of ours."""
    try:
        padded = text + "=" * (-len(text) % 4)
        match = _TEXT.fullmatch(base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True).decode())
        if match is not None and len(text) <= MAX_LENGTH:
            return Position(first_at=datetime.fromisoformat(match[1]), row=int(match[2]))
    except (ValueError, binascii.Error):
        pass
    raise Rejected(
        400,
        "invalid_cursor",
        "The cursor is none of this list.",
        next_step="Give the next_cursor of the page before as it is, or leave it out to begin at the start.",
    )
