"""`horarium codec`: decrypts payloads for Temporal's pages and command line, which have no keys (`/encode`, `/decode`).

The browser of a person who looks at Temporal's pages asks here for what the payloads say. So a caller shows a person's
token, and a browser comes from an address that was named. What is told belongs to the caller's own organization: a payload says
in authenticated words which workflow it is of. Any other stays as it is, as does one whose key is not here; its metadata names
the key.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

import structlog
from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from temporalio.api.common.v1 import Payload, Payloads

from horarium.api import problems
from horarium.api.bodies import read_document
from horarium.api.guard import Guard
from horarium.api.limits import Buckets, Limits, Rate, peer
from horarium.api.metrics import Metrics
from horarium.api.problems import Rejected
from horarium.api.tokens import TokenVerifier, unauthenticated
from horarium.control.principals import require_human, require_scope
from horarium.errors import Forbidden, HorariumError, Misconfigured, Unavailable
from worker.codec import BOUND_TO, EncryptingCodec

MAX_BODY: Final = 6 * 1024 * 1024
"""Bytes. Temporal passes 4 MiB at once, which is a third more in base64."""
MAX_PAYLOADS: Final = 10_000
MAX_ORIGINS: Final = 20
RATE: Final = Rate(per_second=200, burst=2_000)
"""Of one person: a page of Temporal's asks once for each event of a history that it shows."""
_ALLOWED_HEADERS: Final = "authorization, content-type, x-namespace"
_PREFLIGHT_SECONDS: Final = 600
_BEARER: Final = "bearer "

_logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodecAccess:
    """Who is told what payloads say.

    `tokens` is None where whoever reaches the port may ask, and is then told what is of `organization`; else the token's
    organization counts. `origins` are the addresses, as browsers name them, whose pages may ask.
    """

    tokens: TokenVerifier | None
    organization: str
    required_scope: str
    origins: frozenset[str] = frozenset()
    limits: Limits = field(default_factory=lambda: Limits(body=MAX_BODY, per_principal=RATE))


def create_codec_app(codec: EncryptingCodec, access: CodecAccess) -> Starlette:
    """The application. It keeps nothing."""
    service = _Service(codec, access)
    routes = [
        Route("/encode", service.encode, methods=["POST"]),
        Route("/decode", service.decode, methods=["POST"]),
        Route("/encode", service.preflight, methods=["OPTIONS"]),
        Route("/decode", service.preflight, methods=["OPTIONS"]),
        Route("/healthz", _healthy, methods=["GET"]),
    ]
    return Starlette(
        routes=routes,
        middleware=[Middleware(Guard, limits=access.limits, metrics=Metrics())],
        exception_handlers={HorariumError: service.refused, HTTPException: service.unrouted},
    )


def require_origins(urls: Collection[str]) -> frozenset[str]:
    """The origins of addresses, as a browser would name them: scheme, host, and a port that is not the usual one.

    Raises `Misconfigured` for what is no address over HTTP.
    """
    if len(urls) > MAX_ORIGINS:
        raise Misconfigured(f"{len(urls)} origins are named, and {MAX_ORIGINS} can be.")
    return frozenset(map(_origin_of, urls))


def _origin_of(url: str) -> str:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username or not url.isascii():
        raise Misconfigured(
            f"{url[:200]!r} is no address of Temporal's pages, such as http://localhost:8233 or https://cloud.temporal.io."
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    usual = {"http": 80, "https": 443}[parts.scheme]
    return f"{parts.scheme}://{host}" + ("" if port in {None, usual} else f":{port}")


class _Service:
    def __init__(self, codec: EncryptingCodec, access: CodecAccess) -> None:
        self._codec = codec
        self._access = access
        self._principals = Buckets(access.limits.per_principal)
        self._peers = Buckets(access.limits.per_peer)

    async def encode(self, request: Request) -> Response:
        """Encrypt payloads, such as the input of a signal that a person sends by hand."""
        await self._organization(request)
        return self._answer(request, await self._codec.encode((await self._payloads(request)).payloads))

    async def decode(self, request: Request) -> Response:
        """Decrypt what is of the caller's organization."""
        organization = await self._organization(request)
        found = await self._payloads(request)
        left: Counter[str] = Counter()
        told = [await self._told(each, organization, left) for each in found.payloads]
        for sentence, count in left.items():
            _logger.warning("payloads_left_encrypted", count=count, reason=sentence)
        return self._answer(request, told)

    async def preflight(self, request: Request) -> Response:
        """Tell a browser that pages of an address which was named may ask, and no others."""
        self._require_origin(request)
        headers = {
            **self._shared(request),
            "Access-Control-Allow-Methods": "POST",
            "Access-Control-Allow-Headers": _ALLOWED_HEADERS,
            "Access-Control-Max-Age": str(_PREFLIGHT_SECONDS),
        }
        if request.headers.get("access-control-request-private-network") == "true":
            # Pages from elsewhere ask a server on the person's own machine.
            headers["Access-Control-Allow-Private-Network"] = "true"
        return Response(status_code=HTTPStatus.NO_CONTENT, headers=headers)

    async def refused(self, request: Request, error: Exception) -> Response:
        """Answer with a problem, which the page that asked may read too."""
        assert isinstance(error, HorariumError)
        response = problems.answer(error, request_id=request.state.request_id)
        response.headers.update(self._shared(request))
        return response

    async def unrouted(self, request: Request, error: Exception) -> Response:
        """Answer to any other path or method."""
        assert isinstance(error, HTTPException)
        allowed = dict(error.headers or {})
        found = Rejected(
            error.status_code,
            "method_not_allowed" if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED else "path_not_found",
            "Here are POST /encode and POST /decode.",
            headers=allowed,
        )
        return problems.answer(found, request_id=request.state.request_id)

    async def _organization(self, request: Request) -> str:
        """Whose payloads the caller may read, once it was let in."""
        self._require_origin(request)
        if self._access.tokens is None:
            self._principals.take(self._peer(request))
            return self._access.organization
        given = request.headers.getlist("authorization")
        try:
            if len(given) != 1 or not given[0].lower().startswith(_BEARER):
                raise unauthenticated()
            principal = await self._access.tokens.verify(given[0][len(_BEARER) :].strip())
        except Rejected:
            self._peers.take(self._peer(request))
            raise
        request.state.principal = f"{principal.org_id}/{principal.name}"
        self._principals.take((principal.org_id, principal.name))
        require_scope(principal, self._access.required_scope)
        require_human(principal)
        return principal.org_id

    def _require_origin(self, request: Request) -> None:
        """Refuse pages from elsewhere. A program names no origin, and needs a token as anybody."""
        given = request.headers.getlist("origin")
        if given and (len(given) > 1 or given[0] not in self._access.origins):
            raise Forbidden(
                "origin_not_allowed",
                f"Pages from {given[0][:200]!r} are not told what payloads say.",
                next_step="Name the address of Temporal's pages with --origin, or in HORARIUM_TEMPORAL_UI.",
            )

    async def _payloads(self, request: Request) -> Payloads:
        document = await read_document(request, self._access.limits)
        try:
            found = ParseDict(document, Payloads()) if isinstance(document, dict) else None
        except (ParseError, ValueError, TypeError, AttributeError):
            found = None
        if found is None or len(found.payloads) > MAX_PAYLOADS:
            raise Rejected(
                422,
                "invalid_payloads",
                f"The body is an object with up to {MAX_PAYLOADS:,} `payloads`, each with `metadata` and `data` in base64.",
                next_step="Send what Temporal's pages send to a codec server.",
            )
        return found

    async def _told(self, payload: Payload, organization: str, left: Counter[str]) -> Payload:
        if BOUND_TO in payload.metadata and _organization_of(payload) != organization:
            return payload
        try:
            (decoded,) = await self._codec.decode([payload])
        except Unavailable as error:
            left[error.sentence] += 1
            return payload
        if decoded is not payload and BOUND_TO not in payload.metadata:
            # Whose it is cannot be said.
            return payload
        return decoded

    def _answer(self, request: Request, payloads: list[Payload]) -> Response:
        return JSONResponse(MessageToDict(Payloads(payloads=payloads)), headers=self._shared(request))

    def _shared(self, request: Request) -> dict[str, str]:
        origin = request.headers.get("origin")
        allowed = {"Access-Control-Allow-Origin": origin} if origin in self._access.origins and origin else {}
        return {"Vary": "Origin", **allowed}

    @staticmethod
    def _peer(request: Request) -> str:
        return peer(request.client.host if request.client else None)


async def _healthy(_request: Request) -> Response:
    return JSONResponse({"status": "ok"})


def _organization_of(payload: Payload) -> str | None:
    """Of the workflow that a payload says it is of; decrypting it shows whether that is so. None for a workflow of others."""
    kind, _, rest = payload.metadata[BOUND_TO].decode(errors="replace").partition("/")
    return rest.partition("/")[0] if kind in {"schedule", "run"} else None
