"""Traces from a publication to the start of an agent, for whoever collects them by OpenTelemetry.

Days lie between a publication, an enabling and a run, so each is a trace of its own, and links lead back: a run's to the
activation that it is of and the step that staged it, an activation's to the version and the request that enabled it. Nothing is
handed on for that, and nothing about it is stored: the ids follow from what each is about. The trace of a run has the run's id,
without dashes.

A process that records no traces spends nothing on them: what records them is put in place by `recording`, and without it each
call here does nothing. No attribute is an input, a configuration, a header or a secret.
"""

import hashlib
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

from sqlalchemy import Connection

from horarium.catalog.aftermath import after_commit
from horarium.schedule.identity import ActivationKey, RunKey, ScheduleKey, instant_text
from horarium.schedule.ledger import BY_CALENDAR

Attributes = Mapping[str, str | int | float | bool]
TRACEPARENT: Final = "traceparent"
"""https://www.w3.org/TR/trace-context/#traceparent-header"""


@dataclass(frozen=True, slots=True)
class Origin:
    """The first span of a trace, by which all others find it: its trace's id, of 128 bits, and its own, of 64."""

    trace_id: int
    span_id: int


def of_version(key: ScheduleKey, revision: int) -> Origin:
    """Of a version: its publication."""
    return _origin(f"version/{key.path}/{revision}")


def of_activation(key: ActivationKey) -> Origin:
    """Of an activation: its enabling."""
    return _origin(key.workflow_id)


def of_run(key: RunKey) -> Origin:
    """Of a run: its being started."""
    return Origin(trace_id=uuid.UUID(key.run_id).int, span_id=_origin(key.workflow_id).span_id)


class Span(Protocol):
    """A span that is being recorded."""

    def note(self, attributes: Attributes) -> None:
        """Add what is known only now."""


class Recorder(Protocol):
    """What records spans. `current` is the span that the caller is in, None where it is in none."""

    def current(self) -> Origin | None:
        """See above."""

    def span(
        self, name: str, *, inside: Origin | None, links: Sequence[Origin], attributes: Attributes
    ) -> AbstractContextManager[Span]:
        """A span of another's trace, or in the caller's, or else the first of a new trace."""

    def first(self, name: str, origin: Origin, *, links: Sequence[Origin], attributes: Attributes) -> None:
        """The first span of a trace whose ids are given."""

    def request(self, method: str, traceparents: Sequence[str]) -> AbstractContextManager[Span]:
        """A span of a request from outside, in the trace that its caller has begun, if it says so."""

    def traceparent(self) -> str | None:
        """The span that the caller is in, as the W3C's Trace Context writes it; None where it is in none."""


class _Nowhere:
    def note(self, attributes: Attributes) -> None:
        """Nothing is recorded."""


NOWHERE: Final = _Nowhere()
"""The span of what is not recorded."""
_recorder: Recorder | None = None


@contextmanager
def recording(recorder: Recorder) -> Iterator[None]:
    """Record what this process does while the block runs."""
    global _recorder  # noqa: PLW0603 - a process has one place to record to, as it has one log
    before, _recorder = _recorder, recorder
    try:
        yield
    finally:
        _recorder = before


def is_recording() -> bool:
    """Whether this process records traces."""
    return _recorder is not None


def span(
    name: str, *, inside: Origin | None = None, links: Sequence[Origin] = (), attributes: Attributes | None = None
) -> AbstractContextManager[Span]:
    """Record what the block does: in the trace of `inside`, else in that of the caller, else in a new one."""
    if _recorder is None:
        return nullcontext(NOWHERE)
    return _recorder.span(name, inside=inside, links=links, attributes=attributes or {})


def request(method: str, traceparents: Callable[[], Sequence[str]]) -> AbstractContextManager[Span]:
    """Record a request from outside, with the headers of that name that it has. What is no valid one begins a trace."""
    if _recorder is None:
        return nullcontext(NOWHERE)
    return _recorder.request(method, traceparents())


def handed_on() -> dict[str, str]:
    """The headers by which whoever is sent a request now can go on this trace; none outside of one.

    They name a span, and hold nothing that somebody else has told us: no `tracestate`, no `baggage`.
    """
    here = None if _recorder is None else _recorder.traceparent()
    return {} if here is None else {TRACEPARENT: here}


def started(key: RunKey) -> None:
    """A run was started, by whatever the caller does just now."""
    if _recorder is not None:
        links = [of_activation(key.activation), *_here(_recorder)]
        _recorder.first("run", of_run(key), links=links, attributes=about_run(key))


def tell_published(connection: Connection, key: ScheduleKey, revision: int) -> None:
    """A version is published, once this is committed."""
    if _recorder is not None:
        attributes = {**_about_schedule(key), "horarium.revision": revision}
        _after(
            connection,
            _recorder,
            "publication",
            of_version(key, revision),
            links=_here(_recorder),
            attributes=attributes,
        )


def tell_enabled(connection: Connection, key: ActivationKey, revision: int) -> None:
    """An activation is enabled, once this is committed."""
    if _recorder is not None:
        links = [of_version(key.schedule, revision), *_here(_recorder)]
        attributes = {**about_activation(key), "horarium.revision": revision}
        _after(connection, _recorder, "activation", of_activation(key), links=links, attributes=attributes)


def about_activation(key: ActivationKey) -> dict[str, Any]:
    """The attributes that say which activation a span is about."""
    return {**_about_schedule(key.schedule), "horarium.generation": key.generation}


def about_run(key: RunKey) -> dict[str, Any]:
    """The attributes that say which run a span is about."""
    told = {**about_activation(key.activation), "horarium.run_id": key.run_id}
    if key.trigger != BY_CALENDAR:
        return {**told, "horarium.trigger": key.trigger}
    return {**told, "horarium.nominal_time": instant_text(key.nominal_time)}


def _about_schedule(key: ScheduleKey) -> dict[str, Any]:
    return {
        "horarium.organization": key.org_id,
        "horarium.environment": key.environment_id,
        "horarium.schedule_id": key.schedule_id,
    }


def _here(recorder: Recorder) -> list[Origin]:
    current = recorder.current()
    return [] if current is None else [current]


def _after(
    connection: Connection,
    recorder: Recorder,
    name: str,
    origin: Origin,
    *,
    links: Sequence[Origin],
    attributes: Attributes,
) -> None:
    after_commit(connection, partial(recorder.first, name, origin, links=links, attributes=attributes))


def _origin(name: str) -> Origin:
    digest = hashlib.sha256(f"horarium trace {name}".encode()).digest()
    return Origin(trace_id=int.from_bytes(digest[:16]), span_id=int.from_bytes(digest[16:24]))
