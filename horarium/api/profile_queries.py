"""The queries of agent classes and their profiles."""

from typing import Annotated

from pydantic import Field

from horarium.api.bodies import WHOLE, Truth
from horarium.api.queries import EventsQuery, InEnvironment
from horarium.control.records import MAX_PAGE
from horarium.schedule.profiles import AGENT_ID


class ClassesQuery(InEnvironment):
    """Which agent classes to list."""

    is_conversational: Truth | None = Field(default=None, description="Only those that are, or are not.")
    is_schedulable: Truth | None = Field(default=None, description="Likewise.")
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE), WHOLE] = 25
    after: str | None = Field(
        default=None, pattern=r"^[^\x00]{1,200}$", description="The next_cursor of the page before."
    )


class ProfilesQuery(InEnvironment):
    """Which profiles to list."""

    limit: Annotated[int, Field(ge=1, le=MAX_PAGE), WHOLE] = 25
    after: str | None = Field(
        default=None, pattern=f"^{AGENT_ID.pattern}$", description="The next_cursor of the page before."
    )


class ThreadQuery(EventsQuery, InEnvironment):
    """Which events of a thread to list."""
