"""What this process has written down in the catalog, and what the catalog would not take: counts for Prometheus.

An occurrence is counted where its end is written down, and only once that was committed, so a process that is rolled back or
killed in the middle counts nothing. Each due instant is counted by the one process that ended it: a schedule worker (skipped,
missed, succeeded), a run worker (refused), the API (what people stop, what agents report) or the controller (what was lost).
So a figure of an installation is the sum over its processes.

Labels are words of ours, of which there are few: dispositions, reasons, contracts, gateways; never a name or an id of others.
"""

from datetime import datetime
from functools import partial
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram
from sqlalchemy import Connection

from horarium.catalog.aftermath import after_commit
from horarium.schedule.ledger import Disposition, Reason

PROCESS: Final = CollectorRegistry()
"""The figures of this process, however many applications or workers live in it."""
NONE: Final = "none"
"""A label where there is nothing to name: no reason, or a run that was not on its way to any agent."""
_GATEWAYS: Final = frozenset({"temporal", "http"})
_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600)

ERROR_KINDS: Final = ("busy", "locked", "lost", "unanswered", "outcome_unknown", "read_only", "unusable", "fault")
"""What a call of the catalog can fail with, see `note_error`."""

_OCCURRENCES = Counter(
    "horarium_occurrences",
    "Due instants, and runs by hand, that have ended, by how and why.",
    ("disposition", "reason", "contract", "gateway"),
    registry=PROCESS,
)
_LATENESS = Histogram(
    "horarium_lateness_seconds",
    "From the nominal time of an occurrence until its agent has begun; buffered ones wait for a slot by their policy.",
    ("contract", "gateway", "buffered"),
    buckets=_SECONDS,
    registry=PROCESS,
)
_ADMISSIONS = Histogram(
    "horarium_admission_seconds",
    "From when a run could be decided (its nominal time, or when it was given a slot, if that was later) to the decision.",
    ("decision",),
    buckets=_SECONDS,
    registry=PROCESS,
)
_ERRORS = Counter(
    "horarium_catalog_errors", "Calls of the catalog that failed, by what it was.", ("kind",), registry=PROCESS
)
for _kind in ERROR_KINDS:
    # From 0 on, so that the first one is an increase.
    _ERRORS.labels(_kind)


def count_ended(
    connection: Connection,
    *,
    disposition: Disposition,
    reason: Reason | None,
    contract: str,
    gateway: str | None,
    count: int = 1,
) -> None:
    """Count so many due instants that have ended, after the commit. `gateway` is None where none was chosen."""
    labels = (disposition.value, NONE if reason is None else reason.value, contract, _known(gateway))
    after_commit(connection, partial(_OCCURRENCES.labels(*labels).inc, count))


def time_begun(
    connection: Connection, *, nominal: datetime, begun_at: datetime, contract: str, gateway: str | None, buffered: bool
) -> None:
    """Note how late an occurrence began, after the commit. By two clocks it may be less than nothing, which counts as none."""
    child = _LATENESS.labels(contract, _known(gateway), "yes" if buffered else "no")
    after_commit(connection, partial(child.observe, _seconds(nominal, begun_at)))


def time_decided(connection: Connection, decision: Disposition, *, since: datetime, decided_at: datetime) -> None:
    """Note how long a run that could be decided waited for it, after the commit."""
    after_commit(connection, partial(_ADMISSIONS.labels(decision.value).observe, _seconds(since, decided_at)))


def note_error(kind: str) -> None:
    """Count a call of the catalog that failed.

    `busy`: no connection of this process is free; `locked`: another transaction kept it out for too long; `lost`: a connection
    ended; `unanswered`: no connection was to be had; `outcome_unknown`: lost during a COMMIT; `read_only`: the server takes no
    changes; `unusable`: a person has to act; `fault`: a broken rule of the tables, which is a fault of ours.
    """
    assert kind in ERROR_KINDS, kind
    _ERRORS.labels(kind).inc()


def _known(gateway: str | None) -> str:
    # It comes from a stored row, which a hand may have changed.
    return gateway if gateway in _GATEWAYS else NONE


def _seconds(since: datetime, until: datetime) -> float:
    return max(0.0, (until - since).total_seconds())
