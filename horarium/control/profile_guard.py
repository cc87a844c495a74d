"""What the canonical contract leaves alone: the schedule behind a cron profile is enabled by what the profile says.

Otherwise it could fire while its profile is deleted, or another configuration than the one that is shown. To pause it stays
possible, since whoever has to stop something shall not have to know what stands in front of it; and so does a run by hand,
which has a person of its own.
"""

from sqlalchemy import Connection

from horarium.catalog.profiles import profile_of_schedule
from horarium.catalog.schedules import find_schedule
from horarium.errors import Conflict
from horarium.schedule.identity import ScheduleKey
from horarium.schedule.profiles import CONTRACT


def leave_enabling_to_profiles(connection: Connection, key: ScheduleKey) -> None:
    """Raise `Conflict` with `other_contract` where a schedule stands behind a profile, which alone enables it."""
    _leave(connection, key, "enabled by saving it", "Save the profile with its cron; that enables what it says.")


def leave_retiring_to_profiles(connection: Connection, key: ScheduleKey) -> None:
    """Raise `Conflict` with `other_contract` where a schedule stands behind a profile, which it must outlive."""
    next_step = "Delete the profile, or clear its cron; either pauses the schedule."
    _leave(connection, key, "taken up again whenever that is saved, so it is never retired", next_step)


def _leave(connection: Connection, key: ScheduleKey, what: str, next_step: str) -> None:
    schedule = find_schedule(connection, key)
    if schedule is None or schedule.contract != CONTRACT:
        return
    profile = profile_of_schedule(connection, key.scope, key.schedule_id)
    called = "a profile" if profile is None else f"the profile {profile.agent_class}/{profile.agent_id}"
    raise Conflict(
        "other_contract", f"Schedule {key.schedule_id} stands behind {called} and is {what}.", next_step=next_step
    )
