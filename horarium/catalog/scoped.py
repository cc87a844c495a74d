"""For questions over all schedules of an environment: how they are asked, and what is meant by the rows that are found."""

from sqlalchemy import ColumnElement

from horarium.catalog.tables import schedules
from horarium.schedule.identity import ActivationKey, ScheduleKey, Scope


def in_environment(scope: Scope) -> tuple[ColumnElement[bool], ...]:
    """For a statement: the schedules of an environment, by the index that begins with it."""
    return (schedules.c.org_id == scope.org_id, schedules.c.environment_id == scope.environment_id)


def about_environment(scope: Scope) -> tuple[ColumnElement[bool], ...]:
    """As `in_environment`, but no way into an index: the question shall begin at the few rows that it is about, and not visit
    every schedule of the environment."""
    return (
        schedules.c.org_id.concat("") == scope.org_id,
        schedules.c.environment_id.concat("") == scope.environment_id,
    )


def key_of_generation(org_id: str, environment_id: str, schedule_id: str, generation: int) -> ActivationKey:
    """The activation that a row with these columns is of."""
    schedule = ScheduleKey(org_id=org_id, environment_id=environment_id, schedule_id=schedule_id)
    return ActivationKey(schedule=schedule, generation=generation)
