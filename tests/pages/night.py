"""What a night leaves behind: schedules in every state, and runs that came to every end, with the pages' clock on the morning."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from horarium.catalog import Catalog
from horarium.control.running import Outcome, settle
from horarium.schedule.identity import RunKey, instant_text
from horarium.schedule.ledger import Disposition, Reason
from tests.control.desk import AGENT, FAR, SCOPE, Desk, Loop, Shelf

MIDNIGHT = datetime(2026, 11, 30, 0, tzinfo=UTC)
MORNING = MIDNIGHT + timedelta(hours=8)
HOSTILE = (
    "<script>alert('x')</script>\"><img src=x onerror=alert(1)> \u05e9\u05dc\u05d5\u05dd {{ 7 * 7 }} " + "verylong" * 20
)[:200]
TURNING = "<b>All well</b> \u202edelliks ton\u202c \u2067abc\u2069 \x1b[31m"
"""What an agent says, who may say anything."""
HOUR = 3_600


def document(name: str, *, every: int | None = None, zone: str = "UTC", **policy: Any) -> dict[str, Any]:
    """A configuration that is due at 07:30 of each weekday in its zone, or each `every` seconds."""
    single = {"second": 0, "minute": 30, "hour": 7}
    rule = {field: [{"start": value, "end": value, "step": 1}] for field, value in single.items()} | {
        "day_of_month": [{"start": 1, "end": 31, "step": 1}],
        "month": [{"start": 1, "end": 12, "step": 1}],
        "day_of_week": [{"start": 1, "end": 5, "step": 1}],
    }
    return {
        "name": name,
        "calendar": {
            "timezone": zone,
            "calendars": [] if every else [rule],
            "intervals": [{"every_seconds": every, "offset_seconds": 0}] if every else [],
            "start_at": instant_text(MIDNIGHT - timedelta(days=30)),
            "end_at": instant_text(FAR),
        },
        "policy": {"overlap": "skip", "catchup_window_seconds": 3_600, "pause_on_failure": False, **policy},
        "run": {
            "agent_version": AGENT,
            "input": "mail/inbox",
            "output_target": "reports/triage",
            "grants": [],
            "budget_id": None,
            "usage_class": "test_simulation",
        },
    }


class Night:
    """Schedules by their names, and their runs."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.desks: dict[str, Desk] = {}

    def desk(self, name: str, when: datetime = MIDNIGHT) -> Desk:
        """A schedule of its own, with an id that no other test gives."""
        desk = Desk(self.catalog, now=when)
        desk.key = type(desk.key)(
            org_id=SCOPE.org_id, environment_id=SCOPE.environment_id, schedule_id=str(uuid.uuid4())
        )
        self.desks[name] = desk
        return desk

    def enabled(self, name: str, *, when: datetime = MIDNIGHT, **more: Any) -> Loop:
        """Published and enabled, at midnight if nothing else is said."""
        desk = self.desk(name, when)
        return desk.enabled(document(name, **more))

    def published(self, name: str, **more: Any) -> Desk:
        """Published, and never enabled."""
        desk = self.desk(name)
        desk.publish(document(name, **more))
        return desk

    def id_of(self, name: str) -> str:
        return self.desks[name].key.schedule_id


def step(loop: Loop, when: datetime) -> None:
    loop.desk.now = when
    loop.step()


def run_of(loop: Loop, due: datetime) -> RunKey:
    return RunKey(activation=loop.key, nominal_time=due)


def begun(loop: Loop, due: datetime, *, late: float = 0.04) -> RunKey:
    """Let the run that is due then be staged, admitted and begun."""
    step(loop, due - timedelta(seconds=2))
    run = run_of(loop, due)
    loop.desk.now = due + timedelta(milliseconds=3)
    assert loop.desk.admit(run).outcome == "admitted"
    loop.desk.now = due + timedelta(seconds=late)
    loop.desk.begin(run)
    return run


def ended(
    loop: Loop,
    due: datetime,
    disposition: Disposition = Disposition.SUCCEEDED,
    *,
    reason: Reason | None = None,
    took: float = 95,
    late: float = 0.04,
    **told: Any,
) -> RunKey:
    """The same, and let it come to its end."""
    run = begun(loop, due, late=late)
    loop.desk.now = due + timedelta(seconds=late + took)
    loop.desk.write(settle, run, Outcome(disposition=disposition, reason=reason, **told), now=loop.desk.now)
    return run


def tonight(catalog: Catalog) -> Night:
    """A night with something of everything, as it stands at `MORNING`."""
    night = Night(catalog)
    triage = night.enabled("Inbox triage", zone="Europe/Zurich")
    ended(
        triage,
        MIDNIGHT + timedelta(hours=6, minutes=30),
        summary="42 messages sorted, 3 need an answer today.",
        outputs=("reports/triage/2026-11-30.md",),
        cost=12,
    )
    check = night.enabled("Ingestion check", every=HOUR, zone="America/New_York")
    for hour in range(1, 7):
        ended(check, MIDNIGHT + timedelta(hours=hour), late=0.02 * hour, took=20 * hour)
    begun(check, MIDNIGHT + timedelta(hours=7))
    # The next one falls due while that one runs.
    step(check, MORNING + timedelta(seconds=1))

    failing = night.enabled("Nightly report", every=2 * HOUR, pause_on_failure=True)
    ended(failing, MIDNIGHT + timedelta(hours=2), late=2.4)
    ended(
        failing,
        MIDNIGHT + timedelta(hours=4),
        Disposition.FAILED,
        reason=Reason.AGENT_REPORTED_FAILURE,
        summary="The warehouse did not answer.",
    )
    refused = night.enabled("Invoice matching", every=4 * HOUR, zone="Asia/Tokyo")
    due = MIDNIGHT + timedelta(hours=4)
    step(refused, due - timedelta(seconds=2))
    refused.desk.content = Shelf(readable=False)
    refused.desk.now = due + timedelta(milliseconds=5)
    assert refused.desk.admit(run_of(refused, due)).outcome == "refused"

    waiting = night.enabled("Market watch", when=MIDNIGHT + timedelta(hours=7), every=1_200, overlap="buffer_all")
    begun(waiting, MIDNIGHT + timedelta(hours=7, minutes=20))
    step(waiting, MORNING + timedelta(seconds=1))

    missed = night.enabled("Second counter", every=1, catchup_window_seconds=10)
    step(missed, MORNING)

    paused = night.enabled("Weekly digest", every=HOUR)
    paused.desk.now = MIDNIGHT + timedelta(minutes=10)
    paused.desk.pause()
    night.published("Release notes draft", zone="Pacific/Auckland")
    hostile = night.enabled(HOSTILE, every=3 * HOUR)
    ended(hostile, MIDNIGHT + timedelta(hours=6), summary=TURNING)
    retired = night.published("Old crawler")
    retired.retire()
    return night
