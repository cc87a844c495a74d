"""The routes of pages: what goes wrong in one is answered by a page, and every answer is dressed."""

import traceback
from collections.abc import Callable, Coroutine
from typing import Any, Final

import structlog
from fastapi import APIRouter
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from horarium.api import problems
from horarium.api.bodies import invalid_parameters
from horarium.api.pages.headers import dress
from horarium.api.pages.site import PREFIX, is_refresh, site_of
from horarium.api.problems import Rejected
from horarium.errors import HorariumError, Misconfigured

_logger = structlog.get_logger(__name__)

ENVIRONMENT_PREFIX: Final = PREFIX + "/{org_id}/{environment_id}"


class SignInNeeded(Exception):
    """Nobody is signed in, or their session has ended."""


class PageRoute(APIRoute):
    """A route whose every answer is a page."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """See FastAPI, "Custom Request and APIRoute class"."""
        answer = super().get_route_handler()

        async def answered(request: Request) -> Response:
            try:
                return dress(await answer(request))
            except SignInNeeded:
                return dress(_to_sign_in(request))
            except RequestValidationError as error:
                return refusal(request, invalid_parameters(error.errors()))
            except HorariumError as error:
                return refusal(request, error)
            except HTTPException:
                raise
            except Exception as error:  # noqa: BLE001 - the last answer to a failure is a page too
                # Formatted here: a terminal's renderer of traces shows local values, a session's secret among them.
                trace = "".join(traceback.format_exception(error))
                _logger.error("page_failed", request_id=request.state.request_id, exception=trace)  # noqa: TRY400 - as above
                return refusal(request, problems.failure())

        return answered


def page_router(prefix: str = ENVIRONMENT_PREFIX) -> APIRouter:
    """A router for pages, by default of one environment. They are no part of the description of the API."""
    return APIRouter(prefix=prefix, route_class=PageRoute, include_in_schema=False)


def refusal(request: Request, error: HorariumError) -> Response:
    """A page that says what is refused, why, and what to do next."""
    rejected = problems.as_rejected(error)
    if isinstance(error, Misconfigured) or rejected.code == "catalog_unavailable":
        _logger.error("installation_fails", error=str(error), request_id=request.state.request_id)
    if rejected.code == "environment_not_found":
        request.state.visit = None  # there is nothing to go around in
    answer = site_of(request).page(
        request,
        "refused.html",
        status=rejected.status,
        title=problems.TITLES.get(rejected.status, "This was refused"),
        rejected=rejected,
        request_id=request.state.request_id,
    )
    for name, value in rejected.headers.items():
        answer.headers[name] = value
    if rejected.status == 401:
        del answer.headers["WWW-Authenticate"]  # a browser would ask for a password
    return dress(answer)


def unrouted(request: Request, rejected: Rejected) -> Response:
    """The page about an address that is none of ours, or takes another method."""
    return refusal(request, rejected)


def _to_sign_in(request: Request) -> Response:
    site = site_of(request)
    if is_refresh(request):
        return PlainTextResponse("The session has ended.", status_code=401)
    asked = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    place = site.settings.base + asked if request.method == "GET" else None
    return site.go(site.at("sign-in", next=place))
