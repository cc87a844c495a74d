"""Who is told of what happens, and what nobody heard: to be read here, and changed by command or over the API."""

from typing import Annotated

from fastapi import Query, Response

from horarium.api.pages.routing import page_router
from horarium.api.pages.visits import Visited
from horarium.control.notifications_page import notifications_page
from horarium.control.principals import require_scope
from horarium.control.requests import MAX_NUMBER

router = page_router()


@router.get("/notifications")
async def show_notifications(visit: Visited, after: Annotated[int, Query(ge=0, le=MAX_NUMBER)] = 0) -> Response:
    """Show endpoints, heartbeats and a page of dead letters, to operators as the API does."""
    require_scope(visit.principal, visit.service.operator_scope)
    told = await visit.ask(notifications_page, visit.scope, after=after)
    return visit.render("notifications.html", here="notifications", it=told, after=after)
