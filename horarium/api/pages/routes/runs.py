"""What became of due instants in an environment, newest first, and the whole story of one run."""

from typing import Annotated
from urllib.parse import quote

from fastapi import Query, Response

from horarium.api.bodies import uuid_in_path
from horarium.api.cursors import MAX_LENGTH, cursor_text, read_cursor
from horarium.api.pages.choices import ChosenDispositions
from horarium.api.pages.routing import page_router
from horarium.api.pages.visits import Visit, Visited
from horarium.catalog.pages import Wanted
from horarium.control import pages
from horarium.control.directory import names
from horarium.control.stories import story
from horarium.schedule.archived import in_words
from horarium.schedule.ledger import Disposition

router = page_router()

LINES_ON_A_PAGE = 50


@router.get("/runs")
async def list_runs(
    visit: Visited,
    disposition: Annotated[ChosenDispositions, Query(max_length=20)] = [],  # noqa: B006 - FastAPI copies it
    only: Annotated[str, Query(pattern="^(|runs)$")] = "",
    after: Annotated[str | None, Query(max_length=MAX_LENGTH)] = None,
) -> Response:
    """Show a page of the environment's ledger. With `only=runs`, the instants that were given a slot."""
    wanted = Wanted(dispositions=tuple(disposition), newest_first=True, with_run=only == "runs")
    page = await visit.ask(
        pages.ledger,
        visit.scope,
        wanted,
        after=None if after is None else read_cursor(after),
        limit=LINES_ON_A_PAGE,
    )
    ids = {line["schedule_id"] for line in page.documents}
    return visit.render(
        "runs.html",
        here="runs",
        lines=page.documents,
        archived=in_words(page.archived) if page.archived else None,
        schedules=await visit.ask(names, visit.scope, ids),
        next_cursor=None if page.last is None else cursor_text(page.last),
        after=after,
        chosen=[each.value for each in disposition],
        only=only,
        dispositions=[each.value for each in Disposition],
    )


@router.get("/runs/{run_id}")
async def show_run(visit: Visited, run_id: str) -> Response:
    """Show everything that the record holds of one run."""
    told = await visit.ask(story, visit.scope, uuid_in_path(run_id, what="run"))
    return visit.render("run.html", here="runs", story=told, temporal=temporal_page(visit, told["run"]["workflow_id"]))


def temporal_page(visit: Visit, workflow_id: str) -> str | None:
    """The address of a workflow among Temporal's own pages; None where nobody said where those are."""
    base = visit.guest.site.settings.temporal_ui
    return None if base is None else f"{base.rstrip('/')}/workflows/{quote(workflow_id, safe='')}"
