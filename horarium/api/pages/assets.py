"""The style, the script and the sign of the pages: read once, and kept by browsers for as long as they stay as they are."""

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).parent / "static"
_MEDIA_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """One file. Its `mark` changes with what it holds, and stands in its address."""

    name: str
    media_type: str
    data: bytes

    @property
    def mark(self) -> str:
        return hashlib.sha256(self.data).hexdigest()[:12]


@cache
def assets() -> dict[str, Asset]:
    """All of them, by name."""
    return {
        path.name: Asset(name=path.name, media_type=_MEDIA_TYPES[path.suffix], data=path.read_bytes())
        for path in sorted(_FOLDER.iterdir())
        if path.suffix in _MEDIA_TYPES
    }


@cache
def release() -> str:
    """What tells whether a page that is open was made with the assets of now."""
    return hashlib.sha256("".join(each.mark for each in assets().values()).encode()).hexdigest()[:12]
