"""Parts are away for a while: what passed meanwhile is caught up oldest first, missed, or refused, and never forgotten."""

import asyncio
from datetime import datetime, timedelta

import pytest

from horarium.schedule.ledger import Disposition
from tests.end_to_end.installation import installation, now, until
from tests.end_to_end.stories import Stories

pytestmark = pytest.mark.server

stories = Stories()
OUTAGE = timedelta(seconds=26)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory, request):
    return stories.told(tmp_path_factory.mktemp("outages"), request, installation)


@stories.story
async def test_what_falls_due_while_the_workers_are_down_is_caught_up_within_the_window_and_missed_beyond(it):
    """One outage for four schedules: longer than the window of three of them, shorter than that of the other."""
    caught = await it.published(every=3, overlap="allow", window=120)
    edged = await it.published(every=1, overlap="allow", window=12)
    missed = await it.published(every=5, overlap="skip", window=20)
    queued = await it.published(every=5, overlap="buffer_all", window=20)
    keys = (caught, edged, missed, queued)
    for key in keys:
        await it.enabled(key)
    for key in keys:
        await it.until_closed(key, 1)
    for part in ("schedules", "runs"):
        await it.kill(part)
    down = now()
    await asyncio.sleep(OUTAGE.total_seconds())
    for part in ("runs", "schedules"):  # so that what is staged finds somebody to decide it
        await it.start(part)
    up = now()
    await until(
        lambda: all(
            any(entry.first_at > up and entry.disposition is Disposition.SUCCEEDED for entry, _ in it.rows(key))
            for key in keys
        ),
        lambda: f"a success of each after the outage; the ledgers say {[it.told(key) for key in keys]}",
    )
    await it.proven(*keys)

    assert set(it.told(caught)) <= {"succeeded", "dropped paused"}
    passed = [line["nominal"] for line in it.begun(caught) if down < datetime.fromisoformat(line["nominal"]) < up]
    assert len(passed) >= 4
    the_window_is_the_edge(it.rows(edged), since=down)
    for key in (missed, queued):
        rows = [(entry, run) for entry, run in it.rows(key) if down < entry.first_at < up]
        away = [entry for entry, _ in rows]
        late = [entry for entry in away if entry.disposition is Disposition.MISSED]
        assert late, it.told(key)
        for entry in late:
            assert entry.closed_at - entry.last_at > timedelta(seconds=20)
        # The run that was staged before the outage is missed itself, and takes nothing with it: the oldest that is still
        # eligible runs, and under `skip` the others overlap with that one. It may be at the very edge of its window, and its
        # decision behind that.
        at_the_edge = [entry for entry, run in rows if run is not None and entry.held_since > down + OUTAGE]
        assert at_the_edge, it.told(key)
        assert {entry.disposition for entry in at_the_edge} <= {Disposition.SUCCEEDED, Disposition.MISSED}, it.told(key)
        assert key is missed or Disposition.SUCCEEDED in {entry.disposition for entry in at_the_edge}, it.told(key)
        others = {Disposition.SUCCEEDED, Disposition.SKIPPED, Disposition.MISSED}
        assert {entry.disposition for entry in away} <= others, it.told(key)
    assert Disposition.SKIPPED not in {entry.disposition for entry, _ in it.rows(queued)}
    begun = [line["nominal"] for line in it.begun(queued)]
    assert begun == sorted(begun), "what waited began oldest first"


def the_window_is_the_edge(rows, *, since):
    """Whatever was decided within twelve seconds ran, and what was not is missed."""
    away = [(entry, run) for entry, run in rows if entry.first_at > since and entry.disposition != "dropped"]
    ran = [(entry, run) for entry, run in away if entry.disposition is Disposition.SUCCEEDED]
    missed = [entry for entry, _ in away if entry.disposition is Disposition.MISSED]
    assert len(ran) + len(missed) == len(away)
    assert any(run.decided_at - entry.first_at > timedelta(seconds=2) for entry, run in ran), "some are caught up"
    assert all(run.decided_at - entry.first_at <= timedelta(seconds=12) for entry, run in ran)
    assert missed
    assert all(entry.closed_at - entry.last_at > timedelta(seconds=12) for entry in missed)


@stories.later
async def test_without_its_agent_an_occurrence_is_not_started_and_then_refused(it):
    """Killed, a runner is missed for its lease of 15 s; one that leaves in good order is missed at once."""
    key = await it.published(every=3)
    await it.enabled(key)
    await it.until_closed(key, 1)
    await it.kill("agents")
    await until(lambda: "refused agent_offline" in it.told(key), lambda: f"a refusal; the ledger says {it.told(key)}")
    assert "not_started not_picked_up" in it.told(key)
    await it.start("agents")
    back = now()

    def succeeded_since(instant):
        return any(entry.first_at > instant and entry.disposition is Disposition.SUCCEEDED for entry, _ in it.rows(key))

    await until(lambda: succeeded_since(back), lambda: f"a success; the ledger says {it.told(key)}")
    assert await it.stop("agents") == 0
    await until(
        lambda: "refused agent_not_ready" in it.told(key),
        lambda: f"a refusal; the ledger says {it.told(key)}",
    )
    await it.start("agents")
    await it.proven(key)


@stories.later
async def test_a_runner_that_leaves_before_its_run_has_ended_has_lost_the_run_and_cancelled_nothing(it):
    """Its grace of 20 s passes. Nobody cancelled the run, so it is not called cancelled."""
    await it.start("patient")
    key = await it.published(every=2, seconds=60, agent="patient@1")
    await it.enabled(key)
    await until(lambda: it.told(key)[:1] == ["started"], lambda: f"a run; the ledger says {it.told(key)}")
    await it.paused(key)
    assert await it.stop("patient") == 0, it.children["patient"].last_words()
    await it.proven(key)
    assert it.told(key)[0] == "failed agent_lost"
