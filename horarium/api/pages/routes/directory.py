"""The directory: every schedule of an environment, what it does next, and what came of it last."""

from typing import Annotated

from fastapi import Query, Response

from horarium.api.bodies import Id
from horarium.api.pages.choices import ChosenStanding
from horarium.api.pages.routing import page_router
from horarium.api.pages.visits import Visited
from horarium.catalog.directory import Standing
from horarium.control.directory import MAX_TEXT, Sought, directory

router = page_router()

SCHEDULES_ON_A_PAGE = 25


@router.get("/schedules")
async def list_schedules(
    visit: Visited,
    state: ChosenStanding = None,
    text: Annotated[str, Query(max_length=MAX_TEXT)] = "",
    after: Id | None = None,
) -> Response:
    """Show a page of the directory."""
    found = await visit.ask(
        directory,
        visit.scope,
        Sought(standing=state, text=text),
        after=None if after is None else str(after),
        limit=SCHEDULES_ON_A_PAGE,
        now=visit.now,
    )
    return visit.render(
        "directory.html",
        here="schedules",
        schedules=found["schedules"],
        next_cursor=found["next_cursor"],
        unheard=found["unheard"],
        after=None if after is None else str(after),
        state=None if state is None else state.value,
        states=[each.value for each in Standing],
        text=text,
    )
