"""One schedule: what is enabled against the head, its time in words, what became of it, and who did what."""

from typing import Annotated

from fastapi import Query, Response

from horarium.api.bodies import uuid_in_path
from horarium.api.cursors import MAX_LENGTH, cursor_text, read_cursor
from horarium.api.pages.pictures import shown_days, strip
from horarium.api.pages.routing import page_router
from horarium.api.pages.visits import Visited
from horarium.control.schedule_page import schedule_page
from horarium.schedule.identity import schedule_key

router = page_router()

_MOST_EVENTS = 2**63 - 1


@router.get("/schedules/{schedule_id}")
async def show_schedule(
    visit: Visited,
    schedule_id: str,
    after: Annotated[str | None, Query(max_length=MAX_LENGTH)] = None,
    events_before: Annotated[int | None, Query(ge=1, le=_MOST_EVENTS)] = None,
) -> Response:
    """Show one schedule; with `after` an older page of its ledger, with `events_before` an older one of its events."""
    found = uuid_in_path(schedule_id, what="schedule")
    told = await visit.ask(
        schedule_page,
        schedule_key(visit.scope, found),
        after=None if after is None else read_cursor(after),
        events_before=events_before,
        now=visit.now,
    )
    return visit.render(
        "schedule.html",
        here="schedules",
        it=told,
        strip=strip(told["lines"], told["timezone"]),
        days=shown_days(told["days"]),
        next_cursor=None if told["last"] is None else cursor_text(told["last"]),
        after=after,
        events_before=events_before,
    )
