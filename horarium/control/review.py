"""What a person reviews before a change: the exact version, what it would do, and all that enabling would be refused for now.

Nothing here changes or locks anything. What is told is about now; enabling asks again, and its answer is the one that counts.
"""

from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection

from horarium.authority.asking import Content, NotAsked
from horarium.catalog.declared_runs import declared_by_all
from horarium.catalog.environments import Environment, require_environment
from horarium.catalog.newest_events import newest_events
from horarium.catalog.schedules import require_schedule, require_version
from horarium.catalog.standings import Standing, standings
from horarium.catalog.versions import Version
from horarium.control import ceilings as bounds
from horarium.control.activation import require_execution
from horarium.control.judgement import enabler_of, judge, question_about
from horarium.control.preview import preview
from horarium.control.profile_guard import leave_enabling_to_profiles
from horarium.control.publication import calendar_warnings
from horarium.control.schedule_page import about, days_of, differences_between, event_document, fires, version_in_words
from horarium.errors import InvalidSchedule, Refused
from horarium.schedule.ceilings import TOTAL, Ceilings, runs_per_month
from horarium.schedule.identity import ScheduleKey
from horarium.schedule.ledger import Reason

INSTANTS: Final = 10
"""Instants of the preview."""
CHANGES: Final = 20
"""Events that tell what changed while somebody reviewed."""


def review(
    connection: Connection,
    key: ScheduleKey,
    content: Content,
    *,
    by: str,
    revision: int | None = None,
    ceilings: Ceilings,
    now: datetime,
) -> dict[str, Any]:
    """What a page of review tells of a version, the head where none is named. Raises `NotFound`, and `NotAsked`.

    `version` is the one that may be enabled, `activated` that of the present activation, with `differences` from this to that.
    `against` is everything that enabling would be refused for now, in the order in which it is asked: `code`, `sentence` and
    `next_step`. `expected` are the numbers that a change has to name, and `seen` the newest event.
    """
    environment = require_environment(connection, key.scope)
    schedule = require_schedule(connection, key)
    (standing,) = standings(connection, [schedule])
    version = standing.head if revision is None else require_version(connection, schedule, revision)
    newest = newest_events(connection, schedule, limit=1)
    return {
        **about(standing),
        "version": version_in_words(schedule, version, now=now),
        "head_revision": standing.head.revision,
        "activated": None if standing.activated is None else version_in_words(schedule, standing.activated, now=now),
        "activation": _activation(standing),
        "differences": differences_between(standing.activated, version),
        "preview": None if version.fault else preview(version.configuration.calendar, start=now, limit=INSTANTS),
        "days": days_of(version, now=now),
        "warnings": () if version.fault else calendar_warnings(version.configuration, now=now),
        "against": blocking(connection, environment, standing, version, content, by=by, ceilings=ceilings, now=now),
        "expected": {
            "environment_epoch": environment.authority_epoch,
            "reset_generation": environment.reset_generation,
            "generation": schedule.generation,
        },
        "seen": newest[0]["id"] if newest else 0,
    }


def blocking(
    connection: Connection,
    environment: Environment,
    standing: Standing,
    version: Version,
    content: Content,
    *,
    by: str,
    ceilings: Ceilings,
    now: datetime,
) -> list[dict[str, str]]:
    """Everything that enabling a version would be refused for now; nothing where it would be carried out."""
    schedule = standing.schedule
    if schedule.retired_at is not None:
        return []
    found: list[dict[str, str]] = []
    for asks in (
        lambda: leave_enabling_to_profiles(connection, schedule.key),
        lambda: require_execution(connection, environment, "Enabling", now=now),
    ):
        try:
            asks()
        except Refused as refused:
            found.append(_told(refused))
    if version.fault is not None:
        return [*found, {"code": Reason.VERSION_UNUSABLE.value, "sentence": version.fault, "next_step": ""}]
    question = question_about(schedule, version, person=enabler_of(schedule, by))
    try:
        judgement = judge(connection, question, content, now=now, environment=environment)
    except NotAsked:
        raise
    except Refused as refused:
        found.append(_told(refused))
    else:
        found += [_objection(each.reason, each.sentence) for each in judgement.objections]
    own = Ceilings(per_profile=ceilings.per_profile)
    found += [
        _objection(each.reason, each.sentence)
        for each in bounds.objections(connection, schedule, version, None, own, now=now)
    ]
    return [*found, *_over_total(connection, standing, version, ceilings, now=now)]


def meanwhile(connection: Connection, key: ScheduleKey, *, seen: int) -> dict[str, Any]:
    """What was done to a schedule since somebody looked at it, newest first, and how it stands now. Raises `NotFound`."""
    require_environment(connection, key.scope)
    schedule = require_schedule(connection, key)
    (standing,) = standings(connection, [schedule])
    events = newest_events(connection, schedule, limit=CHANGES, after=seen)
    return {**about(standing), "events": [event_document(row) for row in events]}


def _activation(standing: Standing) -> dict[str, Any] | None:
    activation = standing.activation
    if activation is None:
        return None
    # One in review is enabled still, and is paused to put it aside.
    return {"revision": activation.revision, "may_pause": activation.enabled, "fires": fires(standing)}


def _over_total(
    connection: Connection, standing: Standing, version: Version, ceilings: Ceilings, *, now: datetime
) -> list[dict[str, str]]:
    """As enabling asks it, without the lock, and without counting what an earlier release enabled."""
    if ceilings.total is None:
        return []
    try:
        declared = runs_per_month(version.configuration.calendar, now=now)
    except InvalidSchedule:
        return []
    activation = standing.activation
    ours = 0 if activation is None or not activation.is_live else activation.runs_per_month or 0
    if not declared or declared_by_all(connection).runs - ours + declared <= ceilings.total:
        return []
    sentence = (
        f"It declares {declared:,} runs in 30 days, which with what was enabled before it are more than the "
        f"{ceilings.total:,} that all together are allowed here ({TOTAL})."
    )
    return [_objection(Reason.CEILING_EXCEEDED, sentence)]


def _objection(reason: Reason, sentence: str) -> dict[str, str]:
    return {"code": reason.value, "sentence": sentence, "next_step": ""}


def _told(refused: Refused) -> dict[str, str]:
    return {"code": refused.code, "sentence": refused.sentence, "next_step": refused.next_step}
