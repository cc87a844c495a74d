"""The outermost layer of the application: bounds, request ids, the access log, figures, and the last answer to a failure."""

import time
import traceback
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from horarium import traces
from horarium.api import problems
from horarium.api.bodies import body_too_large
from horarium.api.limits import Limits
from horarium.api.metrics import UNMATCHED, Metrics
from horarium.api.problems import Rejected
from horarium.errors import HorariumError

IN_PATHS = ("schedule_id", "run_id")
"""What a request may be about, as its path says: each line that is logged for it says so too."""
_logger = structlog.get_logger("horarium.access")
_MAX_LOGGED_PATH = 300
_NEVER_RECORDED = frozenset({"/healthz", "/readyz", "/metrics"})


Refuse = Callable[[Request, HorariumError], Response]


def _as_problem(request: Request, error: HorariumError) -> Response:
    return problems.answer(error, request_id=request.state.request_id)


class Guard:
    """Wraps the application.

    A log line holds no header and no query, so no token can get into it. What fails is logged with its trace and answered
    like any other refusal, in the way of `refuse`: as a problem, if nothing else is said.
    """

    def __init__(self, app: ASGIApp, *, limits: Limits, metrics: Metrics, refuse: Refuse = _as_problem) -> None:
        self._app = app
        self._limits = limits
        self._metrics = metrics
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the ASGI specification, https://asgi.readthedocs.io/en/latest/specs/www.html."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = uuid.uuid4().hex
        scope["state"] = {**scope.get("state", {}), "request_id": request_id}
        began, status = time.perf_counter(), 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(raw=message.setdefault("headers", []))
                headers["X-Request-Id"] = request_id
                headers["X-Content-Type-Options"] = "nosniff"
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        structlog.contextvars.bind_contextvars(request_id=request_id)
        with _recorded(scope) as span:
            try:
                refused = _out_of_bounds(scope, self._limits)
                if refused is None:
                    await self._app(scope, receive, sending)
                else:
                    await self._refuse(Request(scope), refused)(scope, receive, sending)
            except Exception as error:
                # Formatted here: what a terminal's renderer makes of a trace shows local values, the token among them.
                trace = "".join(traceback.format_exception(error))
                _logger.error("request_failed", request_id=request_id, exception=trace)  # noqa: TRY400 - as above
                if status:
                    raise  # a part of the answer is out, so the connection has to end
                await self._last_answer(scope)(scope, receive, sending)
            finally:
                self._told(scope, span, status=status, seconds=time.perf_counter() - began)
                structlog.contextvars.unbind_contextvars("request_id", *IN_PATHS)

    def _last_answer(self, scope: Scope) -> Response:
        request = Request(scope)
        try:
            return self._refuse(request, problems.failure())
        except Exception as error:  # noqa: BLE001 - what is broken may be the very way to say so
            _logger.error("refusal_failed", error=type(error).__name__)  # noqa: TRY400 - the failure itself is logged
            return _as_problem(request, problems.failure())

    def _told(self, scope: Scope, span: traces.Span, *, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", UNMATCHED)
        span.note({"http.route": route, "http.response.status_code": status})
        self._metrics.answered(method=scope["method"], route=route, status=status, seconds=seconds)
        state: dict[str, Any] = scope["state"]
        client = scope.get("client")
        _logger.info(
            "request",
            method=scope["method"][:20],
            path=scope["path"][:_MAX_LOGGED_PATH],
            status=status,
            ms=round(seconds * 1_000, 1),
            principal=state.get("principal"),
            peer=client[0] if client else None,
            request_id=state["request_id"],
        )


def _recorded(scope: Scope) -> AbstractContextManager[traces.Span]:
    """The trace of a request; none of those that are asked all the time, and do nothing."""
    if scope["path"] in _NEVER_RECORDED:
        return nullcontext(traces.NOWHERE)
    return traces.request(scope["method"][:20], lambda: Headers(scope=scope).getlist(traces.TRACEPARENT))


def _out_of_bounds(scope: Scope, limits: Limits) -> Rejected | None:
    if sum(len(name) + len(value) for name, value in scope["headers"]) > limits.headers:
        return Rejected(
            431,
            "headers_too_large",
            f"The headers have at most {limits.headers:,} bytes together.",
            next_step="Send fewer or shorter ones.",
        )
    if len(scope["query_string"]) > limits.query:
        return Rejected(
            414, "query_too_long", f"A query has at most {limits.query:,} bytes.", next_step="Ask for less at a time."
        )
    if len(scope.get("raw_path") or scope["path"]) > limits.path:
        return Rejected(
            414, "path_too_long", f"A path has at most {limits.path:,} bytes.", next_step="/openapi.json has all paths."
        )
    length = Headers(scope=scope).get("content-length", "")
    # The one body that may be larger: which route it is for is not known yet.
    declares = scope["method"] == "PUT" and scope["path"].endswith("/authority")
    most = limits.declarations if declares else limits.body
    if length.isdecimal() and (len(length) > 18 or int(length) > most):
        return body_too_large(most)
    return None
