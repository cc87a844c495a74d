"""What a process tells once, however often it comes upon it: whoever reads again and again must not fill the log."""

import threading
from collections.abc import Hashable
from typing import Final

REMEMBERED: Final = 10_000
"""What is remembered as told. Beyond it the oldest is forgotten, and may be told again."""


class Once:
    """Remembers what was told, for all threads of a process."""

    def __init__(self, *, remembers: int = REMEMBERED) -> None:
        self._remembers = remembers
        self._lock = threading.Lock()
        self._told: dict[Hashable, None] = {}

    def is_first(self, what: Hashable) -> bool:
        """Whether it was not told before; from now on it was."""
        with self._lock:
            if what in self._told:
                return False
            self._told[what] = None
            if len(self._told) > self._remembers:
                del self._told[next(iter(self._told))]
            return True
