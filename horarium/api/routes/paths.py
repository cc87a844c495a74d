"""Paths, and the ids in them."""

from typing import Annotated

from fastapi import Path

from horarium.api import examples
from horarium.api.bodies import uuid_in_path
from horarium.api.service import Call
from horarium.schedule.identity import ScheduleKey

PREFIX = "/v1/organizations/{org_id}/environments/{environment_id}"

ScheduleId = Annotated[
    str, Path(description="The schedule's UUID.", examples=[examples.SCHEDULE], json_schema_extra={"format": "uuid"})
]
ResourceId = Annotated[
    str, Path(description="The version's own id.", examples=[examples.RESOURCE], json_schema_extra={"format": "uuid"})
]


def schedule_in_path(call: Call, text: str) -> ScheduleKey:
    """The schedule that a path names; `NotFound` where the text is no UUID."""
    schedule_id = uuid_in_path(text, what="schedule")
    return ScheduleKey(org_id=call.scope.org_id, environment_id=call.scope.environment_id, schedule_id=schedule_id)
