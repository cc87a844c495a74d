"""The queries of lists, as models: unknown parameters are refused, as unknown fields are everywhere."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from horarium.api.bodies import WHOLE, Id, Instant, Truth
from horarium.catalog.pages import Wanted
from horarium.control.records import MAX_PAGE
from horarium.schedule.ledger import Disposition

MAX_LINES = 1_000
"""Lines of a ledger, or events, on one page."""
_LARGEST_ROW = 10**18 - 1
"""As many digits as a whole number in a query may have."""


class Query(BaseModel):
    """The base of a query."""

    model_config = ConfigDict(extra="forbid")


class Nothing(Query):
    """Of what takes no parameters."""


class InEnvironment(Query):
    """Of a route whose path names no environment: it stands here, and the organization is that of the token."""

    environment_id: str = Field(description="The environment, in the token's organization.", examples=["production"])
    org_id: str | None = Field(
        default=None,
        description="The organization that is meant. Any other than the token's is not found, so that a token taken by mistake "
        "acts nowhere; left out, it is the token's.",
        examples=["acme"],
    )


class DirectoryQuery(Query):
    """Which schedules to list."""

    limit: Annotated[int, Field(ge=1, le=MAX_PAGE), WHOLE] = 25
    after: Id | None = Field(default=None, description="The next_cursor of the page before.")
    include_retired: Truth = False


class RecordQuery(Query):
    """Which version of a schedule to show."""

    revision: Annotated[int, Field(ge=1, le=2**31 - 1), WHOLE] | None = Field(
        default=None, description="Without it, the head."
    )


class LedgerQuery(Query):
    """Which lines of a ledger to list."""

    from_: Instant | None = Field(
        default=None, alias="from", description="The first nominal time. A span counts where any of it lies inside."
    )
    until: Instant | None = Field(default=None, description="The last nominal time.")
    disposition: list[Disposition] = Field(default=[], max_length=20, description="Only these; may be repeated.")
    newest_first: Truth = False
    limit: Annotated[int, Field(ge=1, le=MAX_LINES), WHOLE] = 100
    after: str | None = Field(default=None, max_length=200, description="The next_cursor of the page before.")

    def wanted(self, *, with_run: bool = False) -> Wanted:
        """What the catalog is asked for."""
        return Wanted(
            since=self.from_,
            until=self.until,
            dispositions=tuple(self.disposition),
            newest_first=self.newest_first,
            with_run=with_run,
        )


class ScheduleLedgerQuery(LedgerQuery):
    """Which lines of one schedule's ledger to list."""

    generation: Annotated[int, Field(ge=0, le=2**31 - 1), WHOLE] | None = None
    touched_since: Instant | None = Field(
        default=None, description="Only what is open, and what was closed or extended from then on."
    )


class ApplyQuery(Query):
    """How to apply a file."""

    dry_run: Truth = Field(default=False, description="Tell what would change, and change nothing.")


class EventsQuery(Query):
    """Which events to list."""

    after: Annotated[int, Field(ge=0, le=_LARGEST_ROW), WHOLE] = 0
    limit: Annotated[int, Field(ge=1, le=MAX_LINES), WHOLE] = 100
