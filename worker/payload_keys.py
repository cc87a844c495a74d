"""The keys that payloads are encrypted with at Temporal, from the environment."""

import base64
import binascii
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from horarium.errors import Misconfigured

PAYLOAD_KEYS: Final = "HORARIUM_PAYLOAD_KEYS"
KEY_BYTES: Final = 32
"""Of AES-256."""
MOST_KEYS: Final = 20
"""Two suffice for a rotation. What is older is needed only as long as a history of then is kept."""

_KEY_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_VARIABLE = re.compile(r"HORARIUM_SECRET_[A-Z0-9_]{1,80}")
_IN_FILE = "file:"
_LARGEST_FILE = 1_024
_EXAMPLE = f"{PAYLOAD_KEYS}='k2=HORARIUM_SECRET_PAYLOAD_K2 k1=file:/run/secrets/payload-k1'"


@dataclass(frozen=True, slots=True)
class PayloadKeys:
    """Keys by their ids, in the order of the setting. The first encrypts, all decrypt."""

    by_id: Mapping[str, bytes] = field(repr=False)

    def __post_init__(self) -> None:
        assert self.by_id, "there is at least one key"

    @property
    def first(self) -> str:
        """The id of the key that encrypts."""
        return next(iter(self.by_id))


def read_payload_keys(environ: Mapping[str, str] = os.environ) -> PayloadKeys | None:
    """The keys that `HORARIUM_PAYLOAD_KEYS` names; None where it is not set, and nothing is encrypted.

    It is a list of `ID=WHERE` with spaces between. WHERE is the name of an environment variable that begins with
    HORARIUM_SECRET_, or `file:` and the path of a file. Each holds 32 bytes in base64. Raises `Misconfigured` with everything
    that is wrong, and shows no part of a key.
    """
    text = environ.get(PAYLOAD_KEYS, "")
    named = text.split()
    if not named:
        return None
    keys: dict[str, bytes] = {}
    faults: list[str] = []
    if len(named) > MOST_KEYS:
        faults.append(f"It names {len(named)} keys, and takes {MOST_KEYS}.")
    for number, each in enumerate(named[:MOST_KEYS], start=1):
        key_id, _, where = each.partition("=")
        try:
            _require_new_id(key_id, keys)
            keys[key_id] = _key(where, environ)
        except _Wrong as wrong:
            faults.append(f"Number {number} {wrong}.")
    if faults:
        raise Misconfigured(f"{PAYLOAD_KEYS} is not right. {' '.join(faults)} As in {_EXAMPLE}.")
    return PayloadKeys(keys)


class _Wrong(Exception):
    """What is wrong with one key, as the end of a sentence about it."""


def texts_of_payload_keys(environ: Mapping[str, str] = os.environ) -> frozenset[str]:
    """Everything by which a key that `HORARIUM_PAYLOAD_KEYS` names could be read in a text, for whoever has to hide it.

    Never raises: where the setting is not right, this is what of it may be a key all the same.
    """
    found: set[str] = set()
    for each in environ.get(PAYLOAD_KEYS, "").split():
        where = each.partition("=")[2]
        if where.startswith(_IN_FILE):
            held = _held_in(Path(where.removeprefix(_IN_FILE)))
        elif _VARIABLE.fullmatch(where):
            held = environ.get(where, "").strip()
        else:
            # A key that was set where its name belongs.
            held = where or each
        found |= _forms_of(held)
    return frozenset(found)


def _held_in(path: Path) -> str:
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            return file.read(_LARGEST_FILE).decode("ascii", errors="replace").strip()
    except (OSError, ValueError):
        return ""


def _forms_of(text: str) -> set[str]:
    """A text, and where it is base64 what libraries make of its bytes."""
    if not text:
        return set()
    bare = text.rstrip("=")
    try:
        key = base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)
    except ValueError:
        return {text}
    shown = repr(key)[2:-1]
    in_an_error = shown.replace("\\", "\\\\")
    return {text, bare, base64.urlsafe_b64encode(key).decode().rstrip("="), key.hex(), shown, in_an_error}


def _require_new_id(key_id: str, keys: Mapping[str, bytes]) -> None:
    if _KEY_ID.fullmatch(key_id) is None:
        # It may be the key itself, set in the wrong place, and is not repeated.
        raise _Wrong("has no id: up to 40 letters, digits, _ and -, before the =")
    if key_id in keys:
        raise _Wrong("has the id of another one before it")


def _key(where: str, environ: Mapping[str, str]) -> bytes:
    if where.startswith(_IN_FILE):
        path = Path(where.removeprefix(_IN_FILE))
        return _decoded(_content(path), f"The file {str(path)!r}")
    if _VARIABLE.fullmatch(where) is None:
        raise _Wrong(
            "names neither a variable that begins with HORARIUM_SECRET_, in capitals, nor a file: with its path"
        )
    if where not in environ:
        raise _Wrong(f"is in {where}, which is not set")
    return _decoded(environ[where], f"The variable {where}")


def _content(path: Path) -> str:
    if not path.is_absolute():
        raise _Wrong("names a file by a path that does not begin with /")
    try:
        with path.open("rb") as file:
            # Mounted secrets are readable by everybody in their container as a rule, and writable by nobody.
            if os.fstat(file.fileno()).st_mode & stat.S_IWOTH:
                raise _Wrong(f"is in the file {str(path)!r}, which everybody may write; run `chmod o= {path}`")
            return file.read(_LARGEST_FILE).decode("ascii", errors="replace")
    except OSError as error:
        raise _Wrong(f"is in the file {str(path)!r}, which cannot be read: {error.strerror}") from error


def _decoded(text: str, where: str) -> bytes:
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise _Wrong(f"is no key. {where} has to hold {KEY_BYTES} bytes in base64: `openssl rand -base64 {KEY_BYTES}`")
    return key
