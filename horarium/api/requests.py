"""A configuration and a preview as models for the OpenAPI page. The control plane itself reads and judges them."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from horarium.calendar.documents import MAX_EVERY_SECONDS, MAX_RANGES, MAX_RULES
from horarium.schedule.configuration import MAX_GRANTS, MAX_NAME_LENGTH, MAX_REFERENCE_LENGTH, UsageClass
from horarium.schedule.document import MAX_SAFE_INTEGER
from horarium.schedule.policy import MAX_CONCURRENT_RUNS, Overlap

MAX_PREVIEWED = 1_000
"""Instants that one preview over HTTP lists at the most."""
Timestamp = Annotated[str, Field(examples=["2026-01-01T00:00:00Z"], description="RFC 3339 in UTC, ending in Z.")]


class Body(BaseModel):
    """The base of what is sent: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class Range(Body):
    """Every `step`-th value from `start` through `end`."""

    start: int = Field(ge=0, le=9999)
    end: int = Field(ge=0, le=9999)
    step: int = Field(ge=1, le=MAX_SAFE_INTEGER)


Ranges = Annotated[
    list[Range],
    Field(min_length=1, max_length=MAX_RANGES, description="Ordered, disjoint and within the bounds of the field."),
]


class CalendarRule(Body):
    """A local time is selected when all fields match. Sunday is 0, Saturday 6. Without `year`, every year."""

    second: Ranges
    minute: Ranges
    hour: Ranges
    day_of_month: Ranges
    month: Ranges
    day_of_week: Ranges
    year: Ranges | None = None

    model_config = ConfigDict(extra="forbid", json_schema_extra=lambda schema: _not_null(schema, "year"))


class IntervalRule(Body):
    """UTC instants at the epoch plus the offset plus whole intervals."""

    every_seconds: int = Field(ge=1, le=MAX_EVERY_SECONDS)
    offset_seconds: int = Field(ge=0, lt=MAX_EVERY_SECONDS, description="Less than every_seconds.")


class Calendar(Body):
    """When it is due. Local times are those of the named zone, its changes of the clock included."""

    timezone: str = Field(examples=["Europe/Zurich"], description="An exact IANA name.")
    calendars: list[CalendarRule] = Field(max_length=MAX_RULES, description="[] where there is none; never null.")
    intervals: list[IntervalRule] = Field(max_length=MAX_RULES, description="[] where there is none; never null.")
    start_at: Timestamp
    end_at: Timestamp


class Policy(Body):
    """What happens when a due instant cannot simply start."""

    overlap: Overlap = Field(description="What happens to an instant that falls due while a run holds every slot.")
    catchup_window_seconds: int = Field(ge=10, le=86_400, description="How late an instant may still be handled.")
    pause_on_failure: bool = Field(
        description="Whether the first run that fails or times out ends the activation in review."
    )
    max_concurrent_runs: int | None = Field(
        default=None, ge=1, le=MAX_CONCURRENT_RUNS, description="1 where it is left out; not with overlap `allow`."
    )

    model_config = ConfigDict(extra="forbid", json_schema_extra=lambda schema: _not_null(schema, "max_concurrent_runs"))


TextReference = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_REFERENCE_LENGTH,
        json_schema_extra={"pattern": r"^(?!/)(?!.*\.\.)[A-Za-z0-9._@:/-]+$"},
    ),
]


class RunRequest(Body):
    """What every occurrence asks for. A calendar extends no grant, no consent and no content's lifetime."""

    agent_version: TextReference = Field(description="The exact agent version.")
    input: TextReference = Field(description="What it reads.")
    output_target: TextReference = Field(description="Where it writes.")
    grants: list[TextReference] = Field(max_length=MAX_GRANTS, description="The workload grants that it needs.")
    budget_id: TextReference | None = Field(description="null for test_simulation only.")
    usage_class: UsageClass


class Configuration(Body):
    """A schedule's configuration: exactly these four parts, and nothing is inferred."""

    name: str = Field(min_length=1, max_length=MAX_NAME_LENGTH)
    calendar: Calendar
    policy: Policy
    run: RunRequest


class PreviewRequest(Body):
    """What to preview: a document of any contract, a calendar, a cron, or a timing as a version stores it."""

    spec: Configuration | Calendar | dict[str, object] | str
    from_: str | None = Field(default=None, alias="from", description="The first instant, RFC 3339; else now.")
    until: str | None = Field(default=None, description="The last instant, at most 5 years later.")
    limit: int = Field(default=100, ge=1, le=MAX_PREVIEWED)

    model_config = ConfigDict(extra="forbid", json_schema_extra=lambda schema: _not_null(schema, "from", "until"))


def _not_null(schema: dict[str, Any], *names: str) -> None:
    """Of a field that may be left out but is never null, pydantic knows only how to say that it may be null."""
    for name in names:
        field = schema["properties"][name]
        field.pop("default", None)
        field.update(next(each for each in field.pop("anyOf") if each != {"type": "null"}))
