"""The search attributes, once: `horarium setup` registers this list, and workflows are started with it.

They are not encrypted, so they hold names and numbers only.
"""

from typing import Any

from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes

from horarium.schedule.identity import ActivationKey, RunKey

ENVIRONMENT = SearchAttributeKey.for_keyword("HorariumEnvironment")
"""`organization/environment`."""
SCHEDULE = SearchAttributeKey.for_keyword("HorariumSchedule")
"""The schedule's UUID."""
GENERATION = SearchAttributeKey.for_int("HorariumGeneration")
NOMINAL_TIME = SearchAttributeKey.for_datetime("HorariumNominalTime")
"""Of a run."""

ALL = (ENVIRONMENT, SCHEDULE, GENERATION, NOMINAL_TIME)


def of_activation(key: ActivationKey) -> TypedSearchAttributes:
    """What a schedule's workflow is found by."""
    return TypedSearchAttributes(_activation(key))


def of_run(key: RunKey) -> TypedSearchAttributes:
    """What a run's workflow is found by."""
    return TypedSearchAttributes([*_activation(key.activation), SearchAttributePair(NOMINAL_TIME, key.nominal_time)])


def _activation(key: ActivationKey) -> list[SearchAttributePair[Any]]:
    schedule = key.schedule
    return [
        SearchAttributePair(ENVIRONMENT, f"{schedule.org_id}/{schedule.environment_id}"),
        SearchAttributePair(SCHEDULE, schedule.schedule_id),
        SearchAttributePair(GENERATION, key.generation),
    ]
