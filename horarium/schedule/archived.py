"""Which archives may hold what is not shown, in words."""

from collections.abc import Mapping, Sequence
from typing import Any


def in_words(found: Sequence[Mapping[str, Any]]) -> str:
    """A sentence for people about the archives that an answer names, the newest first. There is at least one."""
    newest, *older = found
    more = "" if not older else f", or in {'one' if len(older) == 1 else f'one of {len(older)}'} made before it"
    return (
        f"What was older than {newest['before']} may be archived: see archive {newest['archive_id']}, archived on "
        f"{newest['archived_at']}{more}. Whoever runs this installation keeps it."
    )
