"""What people are told of without asking: the kinds of notifications, what each means, and when one is tried again.

A notification is written down in the transaction that makes it true, and sent afterwards, at least once.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any, Final

from horarium.schedule.identity import Scope, instant_text
from horarium.schedule.ledger import Disposition, Reason, Span


class Kind(StrEnum):
    """What happened, in the word that a receiver gets as `type`."""

    REVIEW = "review"
    """An activation ended because a person must look at it."""
    REFUSED = "refused"
    """Admission said no."""
    MISSED = "missed"
    """Due instants passed and nothing will run for them: too old, or beyond a limit of ours."""
    FAILED = "failed"
    """A run failed, passed its time limit, or was begun by no agent."""
    RECOVERED = "recovered"
    """The first success after any of refused, missed, failed and overdue."""
    OVERDUE = "overdue"
    """Nothing has succeeded by when it should have. Told once for each silence."""
    HEARTBEAT = "heartbeat"
    """A run by the calendar succeeded. Told to the heartbeat of its schedule alone."""
    TEST = "test"
    """Somebody tries an endpoint."""


ASKED_FOR: Final = (Kind.REVIEW, Kind.REFUSED, Kind.MISSED, Kind.FAILED, Kind.RECOVERED, Kind.OVERDUE)
"""What an endpoint can ask for, in the order in which it is told."""
TROUBLE: Final = frozenset({Kind.REFUSED, Kind.MISSED, Kind.FAILED, Kind.OVERDUE})
"""What a later success recovers from."""
MISSED_BY_LIMIT: Final = frozenset({Reason.CATCHUP_LIMIT, Reason.BUFFER_FULL})
"""Why an instant is dropped that nobody ended: a limit of ours was reached."""

FIRST_PAUSE: Final = timedelta(seconds=1)
LONGEST_PAUSE: Final = timedelta(hours=1)
PUT_OFF_AT_MOST: Final = 2 * LONGEST_PAUSE
"""What is put off for longer was so by a clock that ran ahead: no pause is that long, and no two clocks are an hour apart."""
GIVE_UP_AFTER: Final = timedelta(hours=24)
"""How long a notification is tried before it is a dead letter."""
HEARTBEAT_GIVE_UP_AFTER: Final = timedelta(hours=1)
"""The same of a heartbeat, which says nothing any more once it is old."""
MOST_ATTEMPTS: Final = 100
"""More than the pauses leave room for, so that a clock that is set back does not try for ever."""
_SECONDS: Final = re.compile(r"[0-9]+")


def kind_of(disposition: Disposition, reason: Reason | None) -> Kind | None:
    """What is told of how an entry ended; None where somebody wanted it so, or the policy did.

    A success is a heartbeat; whether it is a recovery too depends on what was before it.
    """
    match disposition:
        case Disposition.SUCCEEDED:
            return Kind.HEARTBEAT
        case Disposition.FAILED | Disposition.TIMED_OUT | Disposition.NOT_STARTED:
            return Kind.FAILED
        case Disposition.REFUSED:
            return Kind.REFUSED
        case Disposition.MISSED:
            return Kind.MISSED
        case Disposition.DROPPED if reason in MISSED_BY_LIMIT:
            return Kind.MISSED
        case _:
            return None


def pause_after(attempts: int, *, spread: float) -> timedelta:
    """How long to wait after so many failed attempts: from 1 s on, each time twice as long, to 1 h.

    `spread`, from 0 to 1, takes away up to half of it, so that what failed together does not come again together.
    """
    assert attempts >= 1
    assert 0 <= spread <= 1
    longest: timedelta = FIRST_PAUSE * 2 ** min(attempts - 1, 20)
    return min(longest, LONGEST_PAUSE) * (1 - spread / 2)


def asked_pause(retry_after: str | None, *, now: datetime) -> timedelta | None:
    """How long a receiver asks to be told nothing, by its header `Retry-After`: seconds, or a date as RFC 9110 has it.

    At most an hour. None where it asks for nothing, or for what is neither.
    """
    text = (retry_after or "").strip()
    if _SECONDS.fullmatch(text):
        # As many digits as an hour has, and more than that is an hour.
        asked = timedelta(seconds=int(text.lstrip("0")[:6] or "0"))
    else:
        try:
            at = parsedate_to_datetime(text)
        except (ValueError, OverflowError):
            return None
        asked = (at if at.tzinfo is not None else at.replace(tzinfo=UTC)) - now
    return max(timedelta(0), min(asked, LONGEST_PAUSE))


def is_given_up(kind: Kind, *, since: datetime, attempts: int, now: datetime) -> bool:
    """Whether a notification that failed again is a dead letter now."""
    most = HEARTBEAT_GIVE_UP_AFTER if kind is Kind.HEARTBEAT else GIVE_UP_AFTER
    return attempts >= MOST_ATTEMPTS or now - since >= most


def kinds_text(kinds: Iterable[Kind]) -> str:
    """Kinds as they are stored: each once, in their order, with spaces between."""
    wanted = set(kinds)
    return " ".join(each.value for each in Kind if each in wanted)


def kinds_of_text(text: str) -> frozenset[Kind]:
    """The reverse. What a later release has stored and this one does not know is left out."""
    known = {each.value: each for each in Kind}
    return frozenset(known[word] for word in text.split() if word in known)


def message(
    kind: Kind,
    *,
    at: datetime,
    scope: Scope,
    schedule_id: str | None,
    name: str | None,
    span: Span | None,
    generation: int | None,
    trigger: str | None,
    disposition: Disposition | None,
    reason: str | None,
    run_id: str | None,
    because: str | None,
) -> dict[str, Any]:
    """What a receiver gets: `type`, `timestamp` and `data`, as the Standard Webhooks specification has it.

    Nothing of an input, of outputs or of what an agent said is in it. A span of instants that share one fate is one message,
    with its first instant, its last and how many they are. What there is none of is left out.
    """
    data = {
        "org_id": scope.org_id,
        "environment_id": scope.environment_id,
        "schedule_id": schedule_id,
        "name": name,
        "generation": generation,
        "trigger": trigger,
        "nominal_time": None if span is None else instant_text(span.first),
        "last_nominal_time": None if span is None else instant_text(span.last),
        "count": None if span is None else span.count,
        "disposition": None if disposition is None else disposition.value,
        "reason": reason,
        "run_id": run_id,
        "because": because,
    }
    told = {part: value for part, value in data.items() if value is not None}
    return {"type": kind.value, "timestamp": instant_text(at), "data": told}
