"""No secret in a log: whatever a line says, what is known to be secret, or looks as secrets do, is not written.

What must not be told is kept out of the log where it is written, too. This is for what nobody thought of: an error of a library
that repeats an address with a password in it, a header in an exception, the value of a variable in a sentence.
"""

import os
import re
from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

from structlog.typing import WrappedLogger

from worker.payload_keys import texts_of_payload_keys

HIDDEN: Final = "[hidden]"
SHORTEST: Final = 6
"""Characters. A shorter value would hide words that are none of it, and protects nothing."""
DEEPEST: Final = 6
"""How deep containers are looked into; what lies below is not told."""

_SECRET_VARIABLE = re.compile(
    r"HORARIUM_SECRET_\w+|TEMPORAL_API_KEY|TEMPORAL_TLS_CLIENT_KEY_DATA|TEMPORAL_GRPC_META_\w+|\w*PASSWORD"
    r"|OTEL_EXPORTER_OTLP\w*_HEADERS"
)
"""Variables whose value is a secret, or several with spaces between."""
_SECRET_KEY = re.compile(
    r"(?:.*[_-])?(?:token|tokens|secret|secrets|password|passwd|authorization|cookie|set-cookie|api[_-]?key|private[_-]?key"
    r"|credential|credentials|nonce|code_verifier|csrf)",
    re.IGNORECASE,
)
_LOOKS_SECRET: Final = (
    # A JSON Web Token: three parts, of which the first two are objects.
    (re.compile(r"\beyJ[\w-]{5,}\.eyJ[\w-]{5,}\.[\w-]*"), HIDDEN),
    (re.compile(r"\b(bearer|basic)\s+[\w.~+/=-]{6,}", re.IGNORECASE), rf"\1 {HIDDEN}"),
    (re.compile(r"\bwhsec_[\w+/=-]+"), HIDDEN),
    # A user's password in an address.
    (re.compile(r"([a-z][a-z0-9+.-]*://[^\s/:@]*):[^\s/@]+@", re.IGNORECASE), rf"\1:{HIDDEN}@"),
    (re.compile(r"-----BEGIN ([A-Z ]*)PRIVATE KEY-----.*?(?:-----END \1PRIVATE KEY-----|\Z)", re.DOTALL), HIDDEN),
    (
        re.compile(r"([?&](?:code|token|state|secret|password|access_token|id_token)=)[^&\s\"']+", re.IGNORECASE),
        rf"\1{HIDDEN}",
    ),
)


class Redaction:
    """A processor of structlog, the last one before a line is rendered.

    `secrets` are values that are hidden wherever they stand. A field whose name says that it holds a secret is hidden as a
    whole, and in every text what looks as tokens, passwords in addresses and private keys do.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        # The longest first: one may be a part of another.
        values = sorted({each for each in secrets if len(each) >= SHORTEST}, key=len, reverse=True)
        self._values = re.compile("|".join(map(re.escape, values))) if values else None

    def __call__(
        self, _logger: WrappedLogger, _method: str, line: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        """Hide what is secret in a line."""
        for name, value in line.items():
            line[name] = HIDDEN if _is_secret(name, value) else self._hidden(value, 0)
        return line

    def text(self, text: str) -> str:
        """The same of a text."""
        if self._values is not None:
            text = self._values.sub(HIDDEN, text)
        for pattern, instead in _LOOKS_SECRET:
            text = pattern.sub(instead, text)
        return text

    def _hidden(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if value is None or isinstance(value, bool | int | float):
            return value
        if depth >= DEEPEST:
            return HIDDEN
        if isinstance(value, Mapping):
            return {
                self.text(str(name)): HIDDEN if _is_secret(str(name), each) else self._hidden(each, depth + 1)
                for name, each in value.items()
            }
        if isinstance(value, list | tuple | set | frozenset):
            return [self._hidden(each, depth + 1) for each in value]
        # As a renderer would write it.
        return self.text(repr(value))


def secrets_in(environ: Mapping[str, str] = os.environ) -> frozenset[str]:
    """The values that are secret here: of the variables that hold secrets, the keys of payloads wherever they are kept, and the
    passwords in addresses, as they are and as they stand in an address."""
    found: set[str] = set(texts_of_payload_keys(environ))
    for name, value in environ.items():
        if _SECRET_VARIABLE.fullmatch(name):
            # Of a key in PEM its lines are secret, and the words around them are not.
            secret = "\n".join(line for line in value.splitlines() if not line.startswith("-----"))
            found |= {secret, *secret.split()}
            found |= {part.removeprefix("whsec_") for part in secret.split()}
        elif "://" in value:
            found |= _passwords_in(value)
    return frozenset(found | {quote(each, safe="") for each in found})


def _passwords_in(address: str) -> set[str]:
    try:
        password = urlsplit(address).password
    except ValueError:
        return set()
    return set() if password is None else {password, unquote(password)}


def _is_secret(name: str, value: Any) -> bool:
    return isinstance(value, str | bytes) and _SECRET_KEY.fullmatch(name) is not None
