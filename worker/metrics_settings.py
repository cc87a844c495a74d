"""Where a process without an API tells its figures, from the environment."""

from collections.abc import Mapping
from dataclasses import dataclass

from horarium.errors import Misconfigured

HOST = "HORARIUM_METRICS_HOST"
PORT = "HORARIUM_METRICS_PORT"
LOOPBACK = "127.0.0.1"
"""Whoever wants to be read from another machine says so: figures need no token."""
_HIGHEST_PORT = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsAddress:
    """Where `/metrics` is served. Port 0 is any free one, which the log names."""

    host: str
    port: int


def read_metrics_address(environ: Mapping[str, str]) -> MetricsAddress | None:
    """The address by `HORARIUM_METRICS_HOST` and `HORARIUM_METRICS_PORT`; None without a port. Raises `Misconfigured`."""
    text = environ.get(PORT)
    if not text:
        return None
    fits = text.isascii() and text.isdecimal() and len(text) <= len(str(_HIGHEST_PORT)) and int(text) <= _HIGHEST_PORT
    if not fits:
        raise Misconfigured(
            f"{PORT} is {text[:40]!r}; it is a whole number from 0 to {_HIGHEST_PORT}, and 0 is any free port. Leave it out "
            "to serve no figures."
        )
    return MetricsAddress(host=environ.get(HOST) or LOOPBACK, port=int(text))
