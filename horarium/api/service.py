"""What every route works with: the catalog, who calls, and what is done after a commit."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Annotated, Concatenate, ParamSpec, TypeVar

import structlog
from fastapi import Depends, Path, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy import Connection

from horarium.api.bodies import invalid_parameters
from horarium.api.counts import Counts
from horarium.api.guard import IN_PATHS
from horarium.api.hands import Hands
from horarium.api.limits import Buckets, Limits, LongWork, peer
from horarium.api.metrics import Metrics
from horarium.api.problems import Rejected
from horarium.api.tokens import TokenVerifier, unauthenticated
from horarium.authority.asking import Authority
from horarium.catalog import Catalog
from horarium.catalog.figures import Figures
from horarium.control.expectations import Expectations
from horarium.control.principals import OPERATOR_SCOPE, Principal, authorize
from horarium.errors import HorariumError, NotFound, Unavailable
from horarium.schedule.ceilings import USUAL, Ceilings
from horarium.schedule.identity import NAME, Scope

P = ParamSpec("P")
R = TypeVar("R")
MoreFigures = Callable[[], Awaitable[bytes]]
"""Figures of this process that others in it count, as Prometheus reads them."""
BEGINS_WITHIN = timedelta(seconds=10)
"""How long a change waits for its turn at the catalog. Each one before it may wait for a lock as long as the catalog does, and
a client that has given up does not know what became of its change.
"""
_LONGEST_LOGGED = 80
"""Characters of an id in a path, which may be anything."""

_logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One API process.

    `required_scope` is what a token must hold for every operation on schedules, `operator_scope` for what operators do.
    `ceilings` bound what may be enabled here. `more_figures` are shown behind those of the API.
    """

    catalog: Catalog
    authority: Authority
    tokens: TokenVerifier
    hands: Hands | None
    limits: Limits
    required_scope: str
    version: str
    operator_scope: str = OPERATOR_SCOPE
    ceilings: Ceilings = USUAL
    more_figures: MoreFigures | None = None
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    metrics: Metrics = field(default_factory=Metrics)
    counts: Counts[Mapping[str, int]] = field(default_factory=Counts)
    findings: Counts[Mapping[str, int]] = field(default_factory=Counts)
    figures: Counts[Figures] = field(default_factory=Counts)
    overdue: Counts[Expectations] = field(default_factory=Counts)
    expectations: Expectations = field(default_factory=Expectations)
    principals: Buckets = field(init=False)
    peers: Buckets = field(init=False)
    long_work: LongWork = field(default_factory=LongWork)
    errands: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        object.__setattr__(self, "principals", Buckets(self.limits.per_principal))
        object.__setattr__(self, "peers", Buckets(self.limits.per_peer))

    async def read(self, function: Callable[Concatenate[Connection, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a reading function of the catalog in a thread, and time it."""
        with self.metrics.catalog("read", getattr(function, "__name__", "call")):
            return await self.catalog.read(function, *args, **kwargs)

    async def write(self, function: Callable[Concatenate[Connection, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a writing function of the catalog as one transaction, and time it.

        Raises `Unavailable` where it does not come to its turn within `BEGINS_WITHIN`; then it is never carried out.
        """
        turn = _Turn()

        def in_turn(connection: Connection, /, *args: P.args, **kwargs: P.kwargs) -> R:
            turn.take()
            return function(connection, *args, **kwargs)

        with self.metrics.catalog("write", getattr(function, "__name__", "call")):
            writing = asyncio.ensure_future(self.catalog.write(in_turn, *args, **kwargs))
            try:
                done, _ = await asyncio.wait({writing}, timeout=BEGINS_WITHIN.total_seconds())
            except asyncio.CancelledError:
                writing.cancel()
                raise
            if not done and turn.give_up():
                writing.cancel()
                raise _too_late()
            return await writing

    def afterwards(self, what: str, errand: Callable[[Hands], Awaitable[None]]) -> None:
        """Do something at Temporal after a commit, without letting the caller wait. The controller repairs what fails."""
        if self.hands is not None:
            self.meanwhile(what, errand(self.hands))

    def meanwhile(self, what: str, work: Awaitable[None]) -> None:
        """Do something after a commit that the controller would do too, without letting the caller wait."""
        task = asyncio.create_task(_run_errand(what, work), name=what)
        self.errands.add(task)
        task.add_done_callback(self.errands.discard)

    async def close(self, *, within: float = 3) -> None:
        """Let errands come to their end for a while, then let go of everything but the catalog."""
        if self.errands:
            _, late = await asyncio.wait(self.errands, timeout=within)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await self.tokens.close()


async def _run_errand(what: str, work: Awaitable[None]) -> None:
    try:
        await work
    except HorariumError as error:
        _logger.warning("errand_failed", what=what, error=str(error))
    except Exception:
        _logger.exception("errand_failed", what=what)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One authorized request: to which service, by whom, and about which environment."""

    service: Service
    principal: Principal
    scope: Scope


class _Turn:
    """Whether a change has begun, in its thread, or was given up by its caller in the loop: whichever came first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._began = False
        self._given_up = False

    def take(self) -> None:
        """Begin; raises `Unavailable` where nobody waits for it any more."""
        with self._lock:
            if self._given_up:
                raise _too_late()
            self._began = True

    def give_up(self) -> bool:
        """Wait no more; False where it has begun."""
        with self._lock:
            self._given_up = not self._began
            return self._given_up


def _too_late() -> Unavailable:
    return Unavailable("catalog_unavailable", "Too many changes wait for the catalog, or it is locked.")


def service_of(request: Request) -> Service:
    """The service that the application was made for."""
    service: Service = request.app.state.service
    return service


def limited_peer(request: Request) -> Service:
    """Let a request through that shows no token, as far as its address may still ask."""
    service = service_of(request)
    service.peers.take(peer(request.client.host if request.client else None))
    return service


Bearer = HTTPBearer(
    auto_error=False,
    bearerFormat="JWT",
    scheme_name="token",
    description="A JSON Web Token with `sub`, `kind` (`human` or `key`), `org`, `scope` and `exp`, signed with RS256, ES256 "
    "or EdDSA. `horarium token` prints one for development.",
)


Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(Bearer)]
OrganizationId = Annotated[str, Path(description="The organization.", examples=["acme"])]
EnvironmentId = Annotated[str, Path(description="The environment in it.", examples=["production"])]


async def authorized(
    request: Request, credentials: Credentials, org_id: OrganizationId, environment_id: EnvironmentId
) -> Call:
    """Let a caller with a valid token through to an environment of its own organization."""
    required = service_of(request).required_scope
    return await _let_in(request, credentials, org_id, environment_id, required=required)


async def operating(
    request: Request, credentials: Credentials, org_id: OrganizationId, environment_id: EnvironmentId
) -> Call:
    """Let an operator through to an environment of its own organization."""
    required = service_of(request).operator_scope
    return await _let_in(request, credentials, org_id, environment_id, required=required)


async def authorized_by_query(request: Request, credentials: Credentials) -> Call:
    """Let a caller with a valid token through to an environment of its own organization that the query names.

    The query may name the organization too; another one than the token's is not there. Its model is an `InEnvironment`, which
    describes both; here they are read by hand, so that a request without a valid token is told of nothing else.
    """
    return await _let_in_by_query(request, credentials, required=service_of(request).required_scope)


async def operating_by_query(request: Request, credentials: Credentials) -> Call:
    """As `authorized_by_query`, for operators."""
    return await _let_in_by_query(request, credentials, required=service_of(request).operator_scope)


async def _let_in_by_query(
    request: Request, credentials: HTTPAuthorizationCredentials | None, *, required: str
) -> Call:
    service, principal = await _verified(request, credentials)
    environment_id = request.query_params.get("environment_id")
    if environment_id is None:
        raise invalid_parameters([{"type": "missing", "loc": ("query", "environment_id"), "msg": "Field required"}])
    scope = scope_in_path(request.query_params.get("org_id", principal.org_id), environment_id)
    return _at(request, service, principal, scope, required=required)


async def _let_in(
    request: Request,
    credentials: HTTPAuthorizationCredentials | None,
    org_id: str,
    environment_id: str,
    *,
    required: str,
) -> Call:
    service, principal = await _verified(request, credentials)
    return _at(request, service, principal, scope_in_path(org_id, environment_id), required=required)


async def _verified(request: Request, credentials: HTTPAuthorizationCredentials | None) -> tuple[Service, Principal]:
    """Who calls, by a valid token, as far as it may still ask."""
    service = service_of(request)
    structlog.contextvars.bind_contextvars(
        **{name: request.path_params[name][:_LONGEST_LOGGED] for name in IN_PATHS if name in request.path_params}
    )
    try:
        # Of two tokens, what is before us may have looked at the other one.
        if credentials is None or len(request.headers.getlist("authorization")) > 1:
            raise unauthenticated()
        principal = await service.tokens.verify(credentials.credentials)
    except Rejected:
        limited_peer(request)
        raise
    request.state.principal = f"{principal.org_id}/{principal.name}"
    service.principals.take((principal.org_id, principal.name))
    return service, principal


def _at(request: Request, service: Service, principal: Principal, scope: Scope, *, required: str) -> Call:
    authorize(principal, scope, required)
    _refuse_repeated(request)
    return Call(service=service, principal=principal, scope=scope)


REPEATABLE = frozenset({"disposition"})
"""Query parameters that may stand more than once."""


def _refuse_repeated(request: Request) -> None:
    names = [name for name, _ in request.query_params.multi_items() if name not in REPEATABLE]
    for name in names:
        if names.count(name) > 1:
            raise Rejected(422, "invalid_parameter", f"{name[:40]!r} stands more than once in the query. Keep one.")


def scope_in_path(org_id: str, environment_id: str) -> Scope:
    """The environment that a path names; `NotFound` where these cannot be names."""
    if not (NAME.fullmatch(org_id) and NAME.fullmatch(environment_id)):
        raise NotFound(
            "environment_not_found", f"There is no environment {environment_id[:80]!r} in organization {org_id[:80]!r}."
        )
    return Scope(org_id=org_id, environment_id=environment_id)


Authorized = Annotated[Call, Depends(authorized)]
AuthorizedByQuery = Annotated[Call, Depends(authorized_by_query)]
"""Of a route whose path names no environment; see `horarium.api.queries.InEnvironment`."""
Operating = Annotated[Call, Depends(operating)]
OperatingByQuery = Annotated[Call, Depends(operating_by_query)]
