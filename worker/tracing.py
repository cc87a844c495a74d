"""Records traces and sends them by OpenTelemetry's protocol over HTTP, where `OTEL_EXPORTER_OTLP_ENDPOINT` says where to.

Without that variable nothing of OpenTelemetry is even imported. With it, its other variables count as they do everywhere:
`OTEL_SERVICE_NAME`, `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_TRACES_SAMPLER` and more. Spans are sent by a thread of their own, from
a queue that drops what it cannot hold: no run waits for a collector.
"""

import asyncio
import hashlib
import os
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from temporalio import activity
from temporalio.client import Interceptor as ClientInterceptor
from temporalio.client import OutboundInterceptor, StartWorkflowInput, WorkflowHandle
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput
from temporalio.worker import Interceptor as WorkerInterceptor

from activities.messages import RunScheduled
from horarium import traces
from horarium.control.admission import Admission
from horarium.traces import Attributes, Origin
from worker.log_context import activation_of, run_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
    from opentelemetry.trace import Link, SpanContext
    from opentelemetry.trace import Span as OtelSpan

ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
LEAVES_WITHIN: Final = timedelta(seconds=2)
"""For what is still in the queue when the process leaves."""
LONGEST_TRACEPARENT: Final = 128
"""Characters. Those of today have 55, and a later version may append to that."""
_VERSION: Final = 5
_VARIANT: Final = 2
"""The bits that mark a UUID by a name (RFC 9562), as ids of runs are."""

_given: ContextVar[Origin | None] = ContextVar("given", default=None)
"""The ids of the span that is made next."""


@asynccontextmanager
async def traced(part: str, environ: Mapping[str, str] = os.environ) -> AsyncIterator[None]:
    """Record what this process does, as the service `horarium-` and this part; nothing where nobody says where to send it."""
    if not any(environ.get(each) for each in ENDPOINTS) or environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        yield
        return
    # Here, since it takes a while, and most commands record nothing.
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 - as above
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 - as above

    sending = BatchSpanProcessor(OTLPSpanExporter())
    provider = make_provider(environ.get("OTEL_SERVICE_NAME") or f"horarium-{part}", sending)
    try:
        with traces.recording(OtelRecorder(provider)):
            yield
    finally:
        await _left(provider)


def make_provider(service: str, processor: "SpanProcessor") -> "TracerProvider":
    """What makes spans of a service, of those ids that follow from what they are about, and hands them to a processor."""
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - only where traces are recorded, as in all of this file
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - as above
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator  # noqa: PLC0415 - as above
    from opentelemetry.sdk.trace.sampling import Sampler  # noqa: PLC0415 - as above

    class Ids(RandomIdGenerator):
        """Random ids, unless the span that is made next has some."""

        def generate_trace_id(self) -> int:
            given = _given.get()
            return super().generate_trace_id() if given is None else given.trace_id

        def generate_span_id(self) -> int:
            given = _given.get()
            return super().generate_span_id() if given is None else given.span_id

    class Even(Sampler):
        """The sampler that the environment asks for, which takes a share of our ids as it does of random ones.

        It looks at the lower half of an id alone, and that of a run's begins with the two bits that make it a UUID.
        """

        def __init__(self, asked: Sampler) -> None:
            self._asked = asked

        def should_sample(
            self, parent_context: Any, trace_id: int, *more: Any, **named: Any
        ) -> Any:  # the SDK's own, passed on
            return self._asked.should_sample(parent_context, _even(trace_id), *more, **named)

        def get_description(self) -> str:
            return self._asked.get_description()

    provider = TracerProvider(
        resource=Resource.create({"service.name": service}), id_generator=Ids(), shutdown_on_exit=False
    )
    provider.sampler = Even(provider.sampler)
    provider.add_span_processor(processor)
    return provider


def _even(trace_id: int) -> int:
    """The id of a run, spread over all numbers; any other as it is, since other services judge by that."""
    if (trace_id >> 62) & 3 != _VARIANT or (trace_id >> 76) & 15 != _VERSION:
        return trace_id
    return int.from_bytes(hashlib.sha256(trace_id.to_bytes(16)).digest()[:16])


async def _left(provider: "TracerProvider") -> None:
    """Send what is left. A collector that is gone holds nobody up: a thread that is not waited for goes on trying."""
    leaving = threading.Thread(target=provider.shutdown, daemon=True)
    leaving.start()
    await asyncio.to_thread(leaving.join, LEAVES_WITHIN.total_seconds())


class OtelRecorder:
    """A `horarium.traces.Recorder` on the SDK of OpenTelemetry."""

    def __init__(self, provider: "TracerProvider") -> None:
        self._tracer = provider.get_tracer("horarium")
        self._sampler = provider.sampler

    def current(self) -> Origin | None:
        """See `Recorder`."""
        from opentelemetry import trace  # noqa: PLC0415 - only where traces are recorded, as in all of this class

        context = trace.get_current_span().get_span_context()
        return Origin(context.trace_id, context.span_id) if context.is_valid else None

    @contextmanager
    def span(
        self, name: str, *, inside: Origin | None, links: Sequence[Origin], attributes: Attributes
    ) -> "Iterator[_Recorded]":
        """See `Recorder`."""
        from opentelemetry import trace  # noqa: PLC0415 - as above
        from opentelemetry.context import Context  # noqa: PLC0415 - as above
        from opentelemetry.sdk.trace.sampling import Decision  # noqa: PLC0415 - as above

        context = None
        if inside is not None:
            # The first span of that trace may have been another process's, and what became of it follows from its id alone.
            decided = self._sampler.should_sample(Context(), inside.trace_id, name)
            is_recorded = decided.decision is Decision.RECORD_AND_SAMPLE
            context = trace.set_span_in_context(
                trace.NonRecordingSpan(_context(inside, is_recorded=is_recorded)), Context()
            )
        with self._tracer.start_as_current_span(
            name,
            context=context,
            links=_links(links),
            attributes=dict(attributes),
            # What an error says may be a secret, and is in the log without what is secret.
            record_exception=False,
            set_status_on_exception=False,
        ) as made:
            try:
                yield _Recorded(made)
            except BaseException as error:
                made.set_status(trace.StatusCode.ERROR, type(error).__name__)
                raise

    def first(self, name: str, origin: Origin, *, links: Sequence[Origin], attributes: Attributes) -> None:
        """See `Recorder`."""
        from opentelemetry.context import Context  # noqa: PLC0415 - as above

        token = _given.set(origin)
        try:
            made = self._tracer.start_span(name, context=Context(), links=_links(links), attributes=dict(attributes))
        finally:
            _given.reset(token)
        made.end()

    @contextmanager
    def request(self, method: str, traceparents: Sequence[str]) -> "Iterator[_Recorded]":
        """See `Recorder`."""
        from opentelemetry import trace  # noqa: PLC0415 - as above
        from opentelemetry.context import Context  # noqa: PLC0415 - as above
        from opentelemetry.trace.propagation.tracecontext import (  # noqa: PLC0415 - as above
            TraceContextTextMapPropagator,
        )

        # Two of them are as good as none, and of anything else that a caller says nothing is kept.
        given = traceparents[0] if len(traceparents) == 1 and len(traceparents[0]) <= LONGEST_TRACEPARENT else ""
        context = TraceContextTextMapPropagator().extract({traces.TRACEPARENT: given}, Context())
        with self._tracer.start_as_current_span(
            method,
            context=context,
            kind=trace.SpanKind.SERVER,
            attributes={"http.request.method": method},
            record_exception=False,
            set_status_on_exception=False,
        ) as made:
            yield _Asked(made, method)

    def traceparent(self) -> str | None:
        """See `Recorder`."""
        from opentelemetry import trace  # noqa: PLC0415 - as above

        here = trace.get_current_span().get_span_context()
        if not here.is_valid:
            return None
        return f"00-{here.trace_id:032x}-{here.span_id:016x}-{here.trace_flags & trace.TraceFlags.SAMPLED:02x}"


class _Recorded:
    """A `horarium.traces.Span`."""

    def __init__(self, made: "OtelSpan") -> None:
        self._made = made

    def note(self, attributes: Attributes) -> None:
        """See `Span`."""
        for name, value in attributes.items():
            self._made.set_attribute(name, value)


class _Asked(_Recorded):
    """A request, whose name is that of its route once that was found."""

    def __init__(self, made: "OtelSpan", method: str) -> None:
        super().__init__(made)
        self._method = method

    def note(self, attributes: Attributes) -> None:
        """See `Span`."""
        super().note(attributes)
        if "http.route" in attributes:
            self._made.update_name(f"{self._method} {attributes['http.route']}")


def _context(origin: Origin, *, is_recorded: bool = True) -> "SpanContext":
    from opentelemetry import trace  # noqa: PLC0415 - as above

    flags = trace.TraceFlags(trace.TraceFlags.SAMPLED if is_recorded else trace.TraceFlags.DEFAULT)
    return trace.SpanContext(origin.trace_id, origin.span_id, is_remote=True, trace_flags=flags)


def _links(origins: Sequence[Origin]) -> "list[Link]":
    from opentelemetry import trace  # noqa: PLC0415 - as above

    return [trace.Link(_context(each)) for each in origins]


class Tracing(ClientInterceptor, WorkerInterceptor):
    """Records activities, and the runs that are started. It puts nothing into a history."""

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:  # noqa: A002 - the SDK's name
        """See `temporalio.client.Interceptor`."""
        return _Starts(super().intercept_client(next))

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002 - the SDK's name
        """See `temporalio.worker.Interceptor`."""
        return _Activities(super().intercept_activity(next))


class _Starts(OutboundInterceptor):
    async def start_workflow(self, input: StartWorkflowInput) -> WorkflowHandle[Any, Any]:  # noqa: A002 - the SDK's name
        handle = await super().start_workflow(input)
        for argument in input.args:
            if isinstance(argument, RunScheduled):
                traces.started(argument.key)
        return handle


class _Activities(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002 - the SDK's name
        info = activity.info()
        with _span_of(info.workflow_id or "", info.activity_type, info.attempt) as span:
            result = await super().execute_activity(input)
            if isinstance(result, Admission):
                span.note({"horarium.decision": result.outcome, "horarium.reason": result.reason or "none"})
            return result


def _span_of(workflow_id: str, activity_type: str, attempt: int) -> AbstractContextManager[traces.Span]:
    """An activity of a run is a part of the run's trace; one of a schedule's step is a trace of its own, or it would last for
    years."""
    told: dict[str, Any] = {"temporal.activity_type": activity_type, "temporal.attempt": attempt}
    run, activation = run_of(workflow_id), activation_of(workflow_id)
    if run is not None:
        return traces.span(activity_type, inside=traces.of_run(run), attributes={**traces.about_run(run), **told})
    if activation is None:
        return traces.span(activity_type, attributes=told)
    about = {**traces.about_activation(activation), **told}
    return traces.span(activity_type, links=[traces.of_activation(activation)], attributes=about)
