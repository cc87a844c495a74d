"""Each due instant is counted once, by how it ended, where its end is written down, and only if that was committed."""

import pytest
from sqlalchemy import Connection

from horarium.catalog import ledger, ledger_changes
from horarium.catalog.schedules import require_schedule
from horarium.schedule.ledger import Disposition, Reason
from tests.control.desk import Desk, at, every
from tests.metrics.figures import growing, here

ENDED = "horarium_occurrences_total"
LATE = "horarium_lateness_seconds"
DECIDED = "horarium_admission_seconds"


def test_a_run_is_counted_when_it_is_settled_and_not_when_that_is_repeated(desk: Desk) -> None:
    loop = desk.enabled(every(60))
    loop.step_at(57)
    desk.now = at(60)
    with growing() as grown:
        desk.admit(loop.run(60))
        desk.begin(loop.run(60))
        assert grown.of(ENDED) == 0
        desk.now = at(65)
        for _ in range(2):
            desk.settle(loop.run(60))
        labels = {"disposition": "succeeded", "reason": "none", "contract": "schedules", "gateway": "temporal"}
        assert (grown.of(ENDED, **labels), grown.of(ENDED)) == (1, 1)


def test_how_late_it_began_and_how_long_it_was_decided_on_are_noted_once(desk: Desk) -> None:
    loop = desk.enabled(every(60))
    loop.step_at(57)
    run = loop.run(60)
    with growing() as grown:
        desk.admit(run, now=at(60.25))
        assert (grown.of(f"{DECIDED}_count"), grown.of(f"{DECIDED}_sum", decision="admitted")) == (1, 0.25)
        desk.admit(run, now=at(61))
        desk.now = at(60.5)
        desk.begin(run)
        labels = {"contract": "schedules", "gateway": "temporal", "buffered": "no"}
        assert (grown.of(f"{LATE}_count", **labels), grown.of(f"{LATE}_sum", **labels)) == (1, 0.5)
        assert (grown.of(f"{DECIDED}_count"), grown.of(f"{LATE}_count")) == (1, 1)


def test_a_refusal_is_counted_with_its_reason(desk: Desk) -> None:
    loop = desk.enabled(every(60))
    loop.step_at(57)
    desk.content.readable = False
    with growing() as grown:
        desk.admit(loop.run(60), now=at(60))
        assert grown.of(ENDED, disposition="refused", reason="input_unreadable", gateway="none") == 1
        assert grown.of(f"{DECIDED}_count", decision="refused") == 1
        assert grown.of(f"{LATE}_count") == 0


def test_a_span_counts_as_many_instants_as_it_has_also_where_it_grows(desk: Desk) -> None:
    loop = desk.enabled(every(60))
    loop.step_at(57)
    desk.now = at(60)
    desk.admit(loop.run(60))
    desk.begin(loop.run(60))
    with growing() as grown:
        loop.step_at(200)  # the runs of 120 and 180 find the slot taken
        desk.now = at(250)
        desk.settle(loop.run(60))
        loop.step_at(251)
        skipped = sum(entry.count for entry in desk.entries() if entry.disposition is Disposition.SKIPPED)
        assert skipped == 3
        assert grown.of(ENDED, disposition="skipped", reason="overlap") == skipped


def test_what_an_end_drops_is_counted(desk: Desk) -> None:
    desk.enabled(every(60))
    desk.now = at(150)
    with growing() as grown:
        desk.pause()
        assert grown.of(ENDED, disposition="dropped", reason="paused") == 2


def test_what_is_rolled_back_was_not_counted(desk: Desk) -> None:
    loop = desk.enabled(every(60))
    loop.step_at(57)
    run = loop.run(60)

    def close_and_fail(connection: Connection) -> None:
        schedule = require_schedule(connection, desk.key, lock=True)
        entry = ledger.find_entry(connection, schedule, run)
        assert entry is not None
        ledger_changes.close(connection, schedule, entry, Disposition.MISSED, Reason.OUTSIDE_WINDOW, now=desk.now)
        raise LookupError

    with growing() as grown:
        with pytest.raises(LookupError):
            desk.write(close_and_fail)
        assert grown.of(ENDED) == 0


def test_no_label_is_a_name_or_an_id(desk: Desk) -> None:
    loop = desk.enabled(every(60))
    loop.step_at(57)
    desk.now = at(60)
    desk.admit(loop.run(60))
    desk.begin(loop.run(60))
    desk.settle(loop.run(60), Disposition.FAILED, Reason.AGENT_REPORTED_FAILURE)
    words = {*Disposition, *Reason, "schedules", "v0", "cron_profiles", "temporal", "http", "none", "yes", "no"}
    told = [each for each in here() if each.name.startswith(("horarium_occurrences", LATE, DECIDED))]
    assert told
    assert {value for each in told for label, value in each.labels.items() if label != "le"} <= words
