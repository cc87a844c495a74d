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
from horarium.api.pages.refusals import refusal
from horarium.api.pages.site import PREFIX, is_refresh, site_of
from horarium.errors import HorariumError

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


def _to_sign_in(request: Request) -> Response:
    site = site_of(request)
    if is_refresh(request):
        return PlainTextResponse("The session has ended.", status_code=401)
    # Where a form was sent to, a page stands too, or the first one is shown.
    unsent = "yes" if request.method == "POST" else None
    return site.go(site.at("sign-in", next=site.asked(request), unsent=unsent))
