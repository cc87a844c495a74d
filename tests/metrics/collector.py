"""A collector of traces on this machine's loopback: it takes OpenTelemetry's protocol over HTTP, and keeps what it is sent."""

import gzip
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A span as it was sent. Ids are in hexadecimal digits; `parent` is empty of the first one of a trace."""

    service: str
    name: str
    trace: str
    span: str
    parent: str
    links: tuple[tuple[str, str], ...]
    attributes: Mapping[str, Any]
    failed: bool


@dataclass(slots=True)
class Collector:
    """Where it listens, and what came."""

    endpoint: str = ""
    bodies: list[bytes] = field(default_factory=list)

    @property
    def spans(self) -> list[Sent]:
        found = []
        for body in list(self.bodies):
            request = ExportTraceServiceRequest.FromString(body)
            for resource in request.resource_spans:
                service = _attributes(resource.resource.attributes).get("service.name", "")
                for scope in resource.scope_spans:
                    found += [_sent(service, each) for each in scope.spans]
        return found

    def named(self, name: str) -> list[Sent]:
        return [each for each in self.spans if each.name == name]


def _attributes(pairs: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in pairs}


def _sent(service: str, span: Any) -> Sent:
    return Sent(
        service=service,
        name=span.name,
        trace=span.trace_id.hex(),
        span=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        links=tuple((each.trace_id.hex(), each.span_id.hex()) for each in span.links),
        attributes=_attributes(span.attributes),
        failed=span.status.code == 2,
    )


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector while the block runs."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            assert self.path == "/v1/traces"
            collector.bodies.append(body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
