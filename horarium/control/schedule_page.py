"""One schedule as people look at it: what is enabled against the head, what is due, what became of it, and who did what."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from statistics import median
from typing import Any, Final

from sqlalchemy import Connection, RowMapping

from horarium.calendar.words import in_words
from horarium.catalog.environments import require_environment
from horarium.catalog.newest_events import newest_events
from horarium.catalog.pages import Position, Wanted
from horarium.catalog.schedules import Schedule, require_schedule
from horarium.catalog.standings import Standing, standings
from horarium.catalog.unheard import unheard_about
from horarium.catalog.versions import Version
from horarium.control import pages
from horarium.control.directory import name_of, overdue_document, state_of, unheard_document, zone_of
from horarium.control.events import reference
from horarium.control.expectations import overdue_among
from horarium.control.outlook import outlook
from horarium.control.records import archived_events, next_due, occurrences, record
from horarium.errors import InvalidSchedule
from horarium.schedule.archived import in_words as archives_in_words
from horarium.schedule.ceilings import runs_per_month
from horarium.schedule.differences import cron_text, differences, settings
from horarium.schedule.identity import ScheduleKey, instant_text
from horarium.schedule.ledger import BY_CALENDAR, OPEN
from horarium.schedule.profiles import CONTRACT as CRON_PROFILES

LINES: Final = 40
"""Lines of the ledger on one page."""
OPEN_SHOWN: Final = 50
"""Of what runs or waits, so many are told."""
EVENTS: Final = 12


def schedule_page(
    connection: Connection,
    key: ScheduleKey,
    *,
    after: Position | None = None,
    events_before: int | None = None,
    now: datetime,
) -> dict[str, Any]:
    """Everything that a page about one schedule tells. Raises `NotFound`.

    `record` is the schedule's record at its head. `head` and `enabled` are versions in words, `enabled` the one of the present
    activation whether it fires or not, None where there never was one; `differences` go from it to the head. `days` are those
    to come of what fires, or would fire if the head were enabled. `lines` are a page of the ledger, newest first, `open` what
    runs or waits, `events` a page of what was done, newest first; `archived` and `archived_events` tell which archives may hold
    what stood before either. `overdue` is the success that should have come by now, and
    `unheard` how much of what was to be told about the schedule was given up; None where there is none.
    """
    require_environment(connection, key.scope)
    schedule = require_schedule(connection, key)
    (standing,) = standings(connection, [schedule])
    due = next_due(standing, now=now)
    shown = standing.activated if standing.activated is not None and fires(standing) else standing.head
    ledger = pages.schedule_ledger(connection, key, Wanted(newest_first=True), after=after, limit=LINES)
    # By what closed last or never did, which an index leads to: what is open is little among a ledger of years.
    touched = occurrences(connection, key, touched_since=now, limit=OPEN_SHOWN + 1)
    waiting = [each for each in touched if each["disposition"] in OPEN]
    events = newest_events(connection, schedule, before=events_before, limit=EVENTS + 1)
    return {
        "record": record(connection, key, now=now),
        **about(standing),
        "next_due": None if due is None else instant_text(due),
        "head": version_in_words(schedule, standing.head, now=now),
        "enabled": None if standing.activated is None else version_in_words(schedule, standing.activated, now=now),
        "differences": differences_between(standing.activated, standing.head),
        "days": days_of(shown, now=now),
        "open": waiting[:OPEN_SHOWN],
        "more_open": len(waiting) > OPEN_SHOWN,
        "lines": ledger.documents,
        "last": ledger.last,
        "archived": sentence_of(ledger.archived),
        "archived_events": None if len(events) > EVENTS else sentence_of(archived_events(connection, key)),
        "lateness": _lateness(ledger.documents),
        "overdue": overdue_document(overdue_among(connection, [schedule.row], now=now).get(schedule.row)),
        "unheard": unheard_document(unheard_about(connection, schedule)),
        "events": [event_document(row) for row in events[:EVENTS]],
        "next_event": events[EVENTS - 1]["id"] if len(events) > EVENTS else None,
    }


def about(standing: Standing) -> dict[str, Any]:
    """What every page about a schedule says of it: its id, name, zone, contract, and how it stands."""
    schedule = standing.schedule
    shown = standing.activated if standing.activated is not None and fires(standing) else standing.head
    _, because = standing.state
    return {
        "schedule_id": schedule.key.schedule_id,
        "name": name_of(standing.head),
        "timezone": zone_of(shown),
        "contract": schedule.contract,
        "by_profile": schedule.contract == CRON_PROFILES,
        "state": state_of(standing),
        "because": because,
        "retired_at": None if schedule.retired_at is None else instant_text(schedule.retired_at),
        "generation": schedule.generation,
        "enabled_now": fires(standing),
    }


def fires(standing: Standing) -> bool:
    """Whether something is enabled and goes on firing."""
    return standing.activation is not None and standing.activation.is_live


def version_in_words(schedule: Schedule, version: Version, *, now: datetime) -> dict[str, Any]:
    """A version for people: its time in words, with the text of a cron beside it, and what else it asks for.

    `fault` says why this release cannot use it, and then nothing else of its time is told.
    """
    told: dict[str, Any] = {
        "revision": version.revision,
        "resource_id": version.resource_id,
        "reference": reference(schedule, version),
        "published_at": instant_text(version.published_at),
        "published_by": version.published_by,
        "fault": version.fault,
        "words": None,
        "parts": (),
        "cron": None,
        "runs_per_month": None,
        "settings": _settings(version),
    }
    if version.fault is not None:
        return told
    found = version.configuration
    words = in_words(found.calendar)
    return {
        **told,
        "words": words.sentence,
        "parts": words.parts,
        "cron": cron_text(found.timing),
        "runs_per_month": runs_per_month(found.calendar, now=now),
    }


def differences_between(old: Version | None, new: Version) -> list[dict[str, Any]] | None:
    """What changes from one version to another; nothing where there is no other one, None where either cannot be read."""
    if old is None or old.revision == new.revision:
        return []
    try:
        return [asdict(each) for each in differences(old.document, new.document)]
    except InvalidSchedule:
        return None


def days_of(version: Version, *, now: datetime) -> list[dict[str, Any]]:
    """The next days of a version, as documents; none where this release cannot evaluate it."""
    if version.fault is not None:
        return []
    return [
        {**asdict(each), "date": each.date.isoformat(), "more": each.more, "weekday": each.date.weekday()}
        for each in outlook(version.configuration.calendar, now=now)
    ]


def sentence_of(archived: Sequence[Mapping[str, Any]]) -> str | None:
    """Which archives hold what is not shown, for people; None where there are none."""
    return archives_in_words(archived) if archived else None


def event_document(row: RowMapping) -> dict[str, Any]:
    """An audit event for people."""
    details = row["details"] if isinstance(row["details"], Mapping) else {}
    because = details.get("because")
    return {
        "id": row["id"],
        "at": instant_text(row["at"]),
        "kind": row["kind"],
        "actor": row["actor"],
        "generation": row["generation"],
        "revision": row["revision"],
        "because": because if isinstance(because, str) else None,
    }


def _settings(version: Version) -> Sequence[tuple[str, str]]:
    return () if version.is_damaged else settings(version.document)


def _lateness(lines: Sequence[Mapping[str, Any]]) -> dict[str, int] | None:
    """How late the runs on a page began, in milliseconds; None where none of them did."""
    late = [each["lateness_ms"] for each in lines if each["lateness_ms"] is not None and each["trigger"] == BY_CALENDAR]
    if not late:
        return None
    return {"runs": len(late), "median_ms": round(median(late)), "worst_ms": max(late)}
