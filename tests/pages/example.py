"""Three weeks of a small firm's agents, as they stand on a Friday morning in October: what pictures of the pages are taken of.

Some of it went well and some did not: a mail server was out, an input could not be read, a worker was off for a night, a report
waits for a person, and nobody heard what the pager was told. The clocks of Europe go back on the second Sunday from then.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from horarium.catalog import Catalog, presence
from horarium.catalog.schedules import require_schedule
from horarium.schedule.identity import instant_text
from horarium.schedule.ledger import Disposition, Reason
from tests.control.desk import FAR, SCOPE, Desk, Loop, Shelf
from tests.pages.night import Night, begun, ended, run_of, step
from tests.pages.unheard import fail, hear, heartbeat, listening

NOW: Final = datetime(2026, 10, 16, 7, 12, 40, tzinfo=UTC)
BEGAN: Final = datetime(2026, 9, 28, 6, tzinfo=UTC)
ENDS: Final = datetime(2027, 1, 1, tzinfo=UTC)
AGENTS: Final = ("inbox-triage@3", "reporter@12", "ingest@7", "invoices@2")
DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
TRIAGED: Final = (
    "38 messages sorted, 2 need an answer today.",
    "51 messages sorted, 6 need an answer today.",
    "44 messages sorted. The newsletter of the trade fair was moved to its folder.",
    "29 messages sorted, none is urgent.",
)


def asked(
    name: str,
    agent: str,
    *,
    at: tuple[int, int] | None = None,
    weekdays: tuple[int, int] = (0, 6),
    every: timedelta | None = None,
    zone: str = "Europe/Zurich",
    run: Mapping[str, Any] | None = None,
    **policy: Any,
) -> dict[str, Any]:
    """A configuration: at one time of some days of the week, or each so often."""
    rules = [] if at is None else [_rule(at, weekdays)]
    intervals = [] if every is None else [{"every_seconds": int(every.total_seconds()), "offset_seconds": 0}]
    bounds = {"start_at": instant_text(BEGAN - 8 * HOUR), "end_at": instant_text(ENDS)}
    return {
        "name": name,
        "calendar": {"timezone": zone, "calendars": rules, "intervals": intervals, **bounds},
        "policy": {"overlap": "skip", "catchup_window_seconds": 1_800, "pause_on_failure": False, **policy},
        "run": {
            "agent_version": agent,
            "input": "mail/inbox",
            "output_target": "reports/triage",
            "grants": [],
            "budget_id": None,
            "usage_class": "test_simulation",
            **(run or {}),
        },
    }


def _rule(at: tuple[int, int], weekdays: tuple[int, int]) -> dict[str, Any]:
    hour, minute = at
    spans = {
        "second": (0, 0),
        "minute": (minute, minute),
        "hour": (hour, hour),
        "day_of_month": (1, 31),
        "month": (1, 12),
        "day_of_week": weekdays,
    }
    return {field: [{"start": start, "end": end, "step": 1}] for field, (start, end) in spans.items()}


def example(catalog: Catalog) -> Night:
    """All of it, as it stands at `NOW`."""
    firm = Night(catalog)
    with catalog.writing() as connection:
        for agent in AGENTS:
            limit = {"is_schedulable": True, "task_queue": "agents", "max_run_seconds": 7_200, "idempotent": False}
            presence.register_agent(connection, SCOPE, agent, limit, lease_until=FAR, now=BEGAN)
    pager = listening(catalog, "pager", now=BEGAN)
    archive = listening(catalog, "archive", now=BEGAN)
    _triage(firm)
    _report(firm)
    _ingestion(firm)
    _invoices(firm)
    _watch(firm)
    _others(firm)
    fail(catalog, pager, "It answered with status 503.", now=NOW - 9 * MINUTE)
    hear(catalog, archive, now=NOW - 2 * MINUTE)
    _seen(catalog, firm)
    return firm


def _enabled(firm: Night, document: dict[str, Any], when: datetime = BEGAN) -> Loop:
    return firm.desk(document["name"], when).enabled(document)


def _triage(firm: Night) -> None:
    """Each weekday; a mail server was out once, an input could not be read once, and once nobody was there."""
    loop = _enabled(firm, asked("Inbox triage", "inbox-triage@3", at=(7, 30), weekdays=(1, 5)), BEGAN - HOUR)
    beat = heartbeat(firm.catalog, loop.desk.key.schedule_id, now=BEGAN - HOUR)
    days = [day for day in range(19) if (BEGAN + day * DAY).weekday() < 5]
    for number, day in enumerate(days):
        due = BEGAN - HOUR + day * DAY + 30 * MINUTE
        if day == 3:
            continue  # the worker was off
        if day == 8:
            _refused(loop, due)
        elif day == 11:
            ended(
                loop,
                due,
                Disposition.FAILED,
                reason=Reason.AGENT_REPORTED_FAILURE,
                took=61,
                summary="The mail server did not answer within a minute.",
                cost=1,
            )
        else:
            name = f"reports/triage/{due:%Y-%m-%d}.md"
            told = TRIAGED[number % len(TRIAGED)]
            ended(loop, due, took=71 + 13 * (number % 5), late=0.03, summary=told, outputs=(name,), cost=12 + number)
    hear(firm.catalog, beat, now=NOW - 100 * MINUTE)
    loop.desk.now = NOW - 40 * MINUTE
    changed = asked("Inbox triage", "inbox-triage@4", at=(7, 15), weekdays=(1, 5), overlap="buffer_one")
    changed["run"]["output_target"] = "reports/triage/daily"
    with firm.catalog.writing() as connection:
        limit = {"is_schedulable": True, "task_queue": "agents", "max_run_seconds": 900, "idempotent": False}
        presence.register_agent(connection, SCOPE, "inbox-triage@4", limit, lease_until=FAR, now=NOW - HOUR)
    loop.desk.publish(changed)


def _refused(loop: Loop, due: datetime) -> None:
    step(loop, due - timedelta(seconds=2))
    loop.desk.content = Shelf(readable=False)
    loop.desk.now = due + timedelta(milliseconds=5)
    assert loop.desk.admit(run_of(loop, due)).outcome == "refused"
    loop.desk.content = Shelf()


def _report(firm: Night) -> None:
    """Each night; the last one failed, and a person has to look at it."""
    document = asked("Nightly report", "reporter@12", at=(3, 0), zone="Europe/Berlin", pause_on_failure=True)
    document["run"] |= {"input": "warehouse/orders", "output_target": "reports/nightly"}
    first = datetime(2026, 10, 12, 1, tzinfo=UTC)
    loop = _enabled(firm, document, first - HOUR)
    for night in range(4):
        ended(loop, first + night * DAY, took=212 + 9 * night, summary="The report of yesterday's orders is written.")
    failed = "The warehouse refused the login: the password has expired."
    due = first + 4 * DAY
    ended(loop, due, Disposition.FAILED, reason=Reason.AGENT_REPORTED_FAILURE, took=8, late=0.05, summary=failed)


def _ingestion(firm: Night) -> None:
    """Each hour; one takes longer than an hour, so the next one was skipped."""
    document = asked("Ingestion check", "ingest@7", every=HOUR, zone="America/New_York")
    document["run"] |= {"input": "lake/incoming", "output_target": "reports/ingestion"}
    first = datetime(2026, 10, 16, 0, tzinfo=UTC)
    loop = _enabled(firm, document, first - 30 * MINUTE)
    for hour in range(6):
        ended(loop, first + hour * HOUR, took=31 + hour, late=0.04, summary="12 files, all of them whole.")
    begun(loop, first + 6 * HOUR)
    step(loop, first + 7 * HOUR + timedelta(seconds=1))


def _invoices(firm: Night) -> None:
    """Twice a day in Tokyo; since yesterday its input cannot be read, so nothing has succeeded."""
    document = asked("Invoice matching", "invoices@2", at=(9, 0), weekdays=(1, 5), zone="Asia/Tokyo")
    document["run"] |= {"input": "finance/invoices", "output_target": "finance/matched"}
    first = datetime(2026, 10, 12, 0, tzinfo=UTC)
    loop = _enabled(firm, document, first - HOUR)
    for day in range(2):
        ended(loop, first + day * DAY, took=340, summary="61 invoices matched, 3 left for a person.")
    for day in range(2, 5):
        _refused(loop, first + day * DAY)


def _watch(firm: Night) -> None:
    """Each 20 minutes, one after the other; one takes long and two wait behind it."""
    document = asked("Price watch", "ingest@7", every=20 * MINUTE, zone="UTC", overlap="buffer_all")
    document["run"] |= {"input": "market/prices", "output_target": "reports/prices"}
    loop = _enabled(firm, document, NOW - 67 * MINUTE)
    begun(loop, datetime(2026, 10, 16, 6, 20, tzinfo=UTC))
    step(loop, datetime(2026, 10, 16, 7, 0, 1, tzinfo=UTC))


def _others(firm: Night) -> None:
    """One that was paused, one that nobody enabled yet, and one whose agent is not there."""
    digest = _enabled(firm, asked("Weekly digest", "reporter@12", at=(17, 0), weekdays=(5, 5)), NOW - 9 * DAY)
    digest.desk.now = NOW - 3 * DAY
    digest.desk.pause()
    firm.desk("Release notes", NOW - DAY).publish(asked("Release notes", "reporter@12", at=(16, 30), weekdays=(4, 4)))
    clauses = asked("Contract clauses", "contracts@1", at=(2, 30))
    clauses["run"] |= {"input": "legal/contracts", "grants": ["legal-archive"]}
    firm.desk("Contract clauses", NOW - 2 * HOUR).publish(clauses)


def _seen(catalog: Catalog, firm: Night) -> None:
    """Let the controller have looked at everything."""
    with catalog.writing() as connection:
        for desk in firm.desks.values():
            schedule = require_schedule(connection, desk.key)
            if schedule.generation and schedule.retired_at is None:
                state = "active" if _is_live(desk) else "paused"
                generation, row = schedule.generation, schedule.row
                presence.observe(connection, row, generation=generation, state=state, reason=None, now=NOW)
        for role in presence.ROLES:
            presence.beat(connection, instance=role, role=role, tzdata="2026.1", now=NOW)


def _is_live(desk: Desk) -> bool:
    return desk.activation().is_live
