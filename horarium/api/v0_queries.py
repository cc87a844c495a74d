"""The queries of scheduler v0's routes, whose paths name no environment."""

from typing import Annotated

from pydantic import Field

from horarium.api.bodies import WHOLE, Id
from horarium.api.queries import EventsQuery, InEnvironment
from horarium.control.records import MAX_PAGE


class V0DirectoryQuery(InEnvironment):
    """Which schedules to list."""

    limit: Annotated[int, Field(ge=1, le=MAX_PAGE), WHOLE] = 25
    after: Id | None = Field(default=None, description="The next_cursor of the page before.")


class V0EventsQuery(EventsQuery, InEnvironment):
    """Which events of a schedule to list."""
