"""The HTTP application: routes, errors in one form, and the layers around them."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import BaseRoute, Match

from horarium.api import openapi, problems
from horarium.api.bodies import invalid_parameters
from horarium.api.guard import Guard
from horarium.api.hands import Hands
from horarium.api.limits import Limits
from horarium.api.pages import refusals
from horarium.api.pages.routers import ROUTERS as PAGES
from horarium.api.pages.settings import PagesSettings
from horarium.api.pages.site import Site
from horarium.api.problems import Rejected
from horarium.api.routes import (
    agent_classes,
    environments,
    health,
    inputs,
    ledger,
    notifications,
    outcomes,
    previews,
    receipts,
    runs,
    schedules,
    v0,
)
from horarium.api.routes import authority as authority_routes
from horarium.api.service import MoreFigures, Service
from horarium.api.tokens import TokenVerifier
from horarium.authority.asking import Authority
from horarium.catalog import Catalog
from horarium.control.principals import OPERATOR_SCOPE, WRITE_SCOPE
from horarium.errors import HorariumError, Misconfigured
from horarium.schedule.ceilings import USUAL, Ceilings

_logger = structlog.get_logger(__name__)
_ROUTERS = tuple(
    module.router
    for module in (
        environments,
        schedules,
        previews,
        v0,
        agent_classes,
        receipts,
        ledger,
        runs,
        inputs,
        outcomes,
        authority_routes,
        notifications,
        health,
    )
)
_TAGS = (
    "Environment",
    "Schedules",
    "Scheduler v0",
    "Cron profiles",
    "Receipts",
    "Ledger",
    "Runs",
    "Authority",
    "Notifications",
    "Operations",
)


def create_app(
    catalog: Catalog,
    authority: Authority,
    *,
    tokens: TokenVerifier,
    hands: Hands | None = None,
    limits: Limits | None = None,
    required_scope: str = WRITE_SCOPE,
    operator_scope: str = OPERATOR_SCOPE,
    ceilings: Ceilings = USUAL,
    pages: PagesSettings | None = None,
    more_figures: MoreFigures | None = None,
    version: str = "unknown",
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> FastAPI:
    """The application over a catalog, which stays the caller's to close.

    `hands` reach Temporal; without them everything works that needs no run to be told anything. `pages` says where people find
    the pages and how they sign in; without it nobody can. `more_figures` are what else the process
    tells of itself. `now` is the clock.
    """
    service = Service(
        catalog=catalog,
        authority=authority,
        tokens=tokens,
        hands=hands,
        limits=limits or Limits(),
        required_scope=required_scope,
        operator_scope=operator_scope,
        ceilings=ceilings,
        more_figures=more_figures,
        version=version,
        now=now,
    )

    site = Site(pages or PagesSettings())

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        yield
        await service.close()
        await site.close()

    app = FastAPI(
        title="Horarium",
        version=version,
        lifespan=lifespan,
        # Pages that load scripts from elsewhere are not for a control plane; /openapi.json is, and is a route of ours.
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        openapi_tags=[{"name": name} for name in _TAGS],
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.service = service
    app.state.site = site
    for router in (*_ROUTERS, *PAGES):
        app.include_router(router)
    app.add_middleware(Guard, limits=service.limits, metrics=service.metrics, refuse=_refuse)
    app.add_exception_handler(HorariumError, _foreseen)
    app.add_exception_handler(RequestValidationError, _invalid_parameters)
    app.add_exception_handler(HTTPException, _unrouted)

    def described() -> dict[str, object]:
        if app.openapi_schema is None:
            app.openapi_schema = openapi.describe(app, _routes())
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]  # FastAPI's own way to say what the page holds
    return app


async def _foreseen(request: Request, error: Exception) -> Response:
    assert isinstance(error, HorariumError)
    if isinstance(error, Misconfigured) or problems.as_rejected(error).code == "catalog_unavailable":
        # The caller is told less than the operator.
        _logger.error("installation_fails", error=str(error), request_id=request.state.request_id)
    return problems.answer(error, request_id=request.state.request_id)


async def _invalid_parameters(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return problems.answer(invalid_parameters(error.errors()), request_id=request.state.request_id)


async def _unrouted(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        allowed = ", ".join(_methods(request))
        refused = Rejected(
            405,
            "method_not_allowed",
            f"This path knows {allowed} only.",
            next_step="/openapi.json has all operations.",
            headers={"Allow": allowed},
        )
    else:
        refused = Rejected(404, "path_not_found", "There is no such path.", next_step="/openapi.json has all paths.")
    return _refuse(request, refused)


def _refuse(request: Request, error: HorariumError) -> Response:
    """Refuse in the way of whoever asks: a page for people, a problem for programs."""
    if refusals.is_page(request):
        return refusals.refusal(request, error)
    return problems.answer(error, request_id=request.state.request_id)


def _methods(request: Request) -> list[str]:
    """What a path answers to. Starlette itself names the methods of one of its routes only."""
    found: set[str] = set()
    for route in (*_routes(), *(route for router in PAGES for route in router.routes)):
        if route.matches(request.scope)[0] is not Match.NONE:
            found |= getattr(route, "methods", None) or set()
    return sorted(found)


def _routes() -> Iterator[BaseRoute]:
    return (route for router in _ROUTERS for route in router.routes)
