"""Whether the process lives, whether it can work, which release it is, and its figures."""

from contextlib import suppress
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse

from horarium.api import models
from horarium.api.metrics import MEDIA_TYPE, Told
from horarium.api.openapi import operation, refusals
from horarium.api.service import Service, limited_peer
from horarium.calendar import tzdata_version
from horarium.catalog import findings
from horarium.catalog.figures import read_figures
from horarium.catalog.presence import execution_ready
from horarium.control.pages import count_by_state
from horarium.errors import HorariumError

router = APIRouter(tags=["Operations"])

_REFUSES = (414, 429, 431, 500)
Peer = Annotated[Service, Depends(limited_peer)]


@router.get("/healthz", **operation(models.Healthy, {"status": "ok"}, refuses=(414, 431, 500)))
async def healthz() -> JSONResponse:
    """Answer while the process serves at all. Nothing else is asked."""
    return JSONResponse({"status": "ok"})


@router.get("/readyz", **operation(models.Ready, {"ready": True, "execution_ready": True}, refuses=(*_REFUSES, 503)))
async def readyz(service: Peer) -> JSONResponse:
    """Answer while the catalog does. Publication and reads work then, whether or not `execution_ready`."""
    ready = await service.read(execution_ready, now=service.now())
    return JSONResponse({"ready": True, "execution_ready": ready})


@router.get("/version", **operation(models.Version, {"version": "0.1.0", "tzdata": "2026.1"}, refuses=_REFUSES))
async def version(service: Peer) -> JSONResponse:
    """Say which release answers, and with which release of the zone data."""
    return JSONResponse({"version": service.version, "tzdata": tzdata_version()})


@router.get("/openapi.json", include_in_schema=False)
async def openapi_page(request: Request, _service: Peer) -> JSONResponse:
    """Give the description of all operations."""
    return JSONResponse(request.app.openapi())


@router.get(
    "/metrics",
    response_class=Response,
    response_model=None,
    responses={
        200: {
            "description": "Prometheus text.",
            "content": {
                "text/plain": {"schema": {"type": "string"}, "example": 'horarium_schedules{state="active"} 3.0\n'}
            },
        },
        **refusals(_REFUSES),
    },
)
async def metrics(service: Peer) -> Response:
    """Give the figures of this process, and those of the whole catalog: how many schedules stand in which state, what is open,
    what waits for a person, who is there, and what was found that should not be.

    No organization, name or id is among them.
    """
    now = service.now()
    told = Told()
    # The figures of this process are worth the more while the catalog does not answer.
    with suppress(HorariumError):
        told.schedules = await service.counts.get(lambda: service.read(count_by_state))
        told.findings = await service.findings.get(lambda: service.read(findings.totals))
        told.figures = await service.figures.get(lambda: service.read(read_figures, now=now))
        told.expectations = await service.overdue.get(lambda: service.read(service.expectations.look, now=now))
    page = service.metrics.page(told, now=now)
    more = b"" if service.more_figures is None else await service.more_figures()
    return Response(page + more, media_type=MEDIA_TYPE)
