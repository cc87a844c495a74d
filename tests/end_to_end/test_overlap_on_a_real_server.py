"""What falls due while runs go on, on a real server with real processes: every policy, every way out, and runs by hand."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest

from horarium.api.app import create_app
from horarium.api.tokens import FixedKeys, TokenVerifier
from horarium.catalog.schedules import require_schedule, require_version
from horarium.control.activation import Reviewed, retire
from horarium.control.audit import audit
from horarium.schedule.ledger import BY_CALENDAR, Disposition
from starter.hands import TemporalHands
from tests.api.house import EXPECTED, GENEROUS, VERIFICATION, token
from tests.end_to_end.installation import Installation, Row, installation, now, until
from tests.end_to_end.stories import Stories

pytestmark = pytest.mark.server

stories = Stories()
SECOND = timedelta(seconds=1)
BLOCKED = timedelta(seconds=30)
AT_MOST_WHILE_BLOCKED = 15
"""Events of a schedule behind one run (DESIGN.md, section 15)."""
SOON = timedelta(seconds=20)
"""How late a run may begin here, beside a dozen other stories on a small machine."""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory, request):
    return stories.told(tmp_path_factory.mktemp("overlap"), request, installation)


@dataclass(frozen=True)
class Person:
    """Ada at the API, whose hands reach the same server as the workers."""

    it: Installation
    client: httpx.AsyncClient

    async def trigger(self, key, *, idempotency_key: str | None = None, **asked: Any) -> httpx.Response:
        with self.it.catalog.reading() as connection:
            schedule = require_schedule(connection, key)
            version = require_version(connection, schedule, schedule.head_revision)
            generation = schedule.generation
        body = {
            "version": {"schedule_id": key.schedule_id, "revision": version.revision, "digest": version.digest},
            "expected_generation": generation,
            **EXPECTED,
            **asked,
        }
        return await self._send(f"/schedules/{key.schedule_id}/runs", body, idempotency_key)

    async def cancel(self, run_id: str) -> httpx.Response:
        return await self._send(f"/runs/{run_id}/cancel", EXPECTED, None)

    async def get(self, path: str) -> dict[str, Any]:
        return (await self.client.get(path)).raise_for_status().json()

    async def _send(self, path: str, body: dict[str, Any], idempotency_key: str | None) -> httpx.Response:
        return await self.client.post(path, json=body, headers={"Idempotency-Key": idempotency_key or new_key()})


@asynccontextmanager
async def person(it: Installation) -> AsyncIterator[Person]:
    async def connecting():
        return it.client

    scope = it.settings.scope
    async with TemporalHands(connecting=connecting) as hands:
        app = create_app(
            it.catalog,
            it.settings.authority,
            tokens=TokenVerifier(FixedKeys((VERIFICATION,))),
            hands=hands,
            limits=GENEROUS,
        )
        base = f"http://api.test/v1/organizations/{scope.org_id}/environments/{scope.environment_id}"
        headers = {"Authorization": f"Bearer {token(org=scope.org_id)}"}
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url=base, headers=headers, timeout=30) as client:
            yield Person(it=it, client=client)
        await app.state.service.close()


def new_key() -> str:
    return str(uuid.uuid4())


def by_calendar(it, key, generation: int | None = None) -> list[Row]:
    return [
        (entry, run)
        for entry, run in it.rows(key)
        if entry.trigger == BY_CALENDAR and generation in {None, entry.generation}
    ]


def fates(rows: list[Row]) -> set[tuple[str, str | None]]:
    return {(str(entry.disposition), entry.reason) for entry, _ in rows}


async def begun(it, key, *, after: datetime | None = None) -> Row:
    """The first run that its agent has begun, after that instant if one is given."""
    found: list[Row] = []

    def look():
        found[:] = [
            (entry, run)
            for entry, run in it.rows(key)
            if run is not None and run.begun_at and (after is None or entry.first_at > after)
        ]
        return bool(found)

    await until(look, lambda: f"a run that has begun; the ledger says {it.told(key)}")
    return found[0]


async def closed(it, key, run_id: str, *, within: float = 60) -> Row:
    """The line of a run, once it is over."""

    def line() -> Row:
        return next((entry, run) for entry, run in it.rows(key) if run is not None and run.run_id == run_id)

    await until(
        lambda: line()[0].closed_at is not None,
        lambda: f"the end of run {run_id}; the ledger says {it.told(key)}",
        within=within,
    )
    return line()


async def succeeded(it, key, *, since: datetime) -> Row:
    """The first run that was due at or after an instant and has succeeded."""
    found: list[Row] = []

    def look():
        found[:] = [
            (entry, run)
            for entry, run in by_calendar(it, key)
            if entry.first_at >= since and entry.disposition is Disposition.SUCCEEDED
        ]
        return bool(found)

    await until(look, lambda: f"a success since {since}; the ledger says {it.told(key)}")
    return found[0]


@stories.story
async def test_a_run_of_an_earlier_generation_is_an_overlap_for_the_next_one(it):
    key = await it.published(every=2, seconds=[9, 0.05])
    await it.enabled(key)
    entry, run = await begun(it, key)
    second = (await it.enabled(key)).activation
    entry, run = await closed(it, key, run.run_id)
    first, _ = await succeeded(it, key, since=entry.closed_at)
    await it.proven(key)
    assert entry.disposition is Disposition.SUCCEEDED
    meanwhile = [each for each in by_calendar(it, key, second.generation) if each[0].first_at < entry.closed_at]
    assert fates(meanwhile) == {("skipped", "overlap")}, it.told(key)
    assert sum(each.count for each, _ in meanwhile) >= 2
    assert first.generation == second.generation


async def behind_a_run_by_hand(it, overlap: str) -> tuple[Row, list[Row]]:
    """A run by hand of 26 s is asked for 23 s before an instant, which is not staged by then. Its line, and the calendar's."""
    offset = int(now().timestamp()) + 23
    key = await it.published(every=26, offset=offset % 26, seconds=[26, 0.05], overlap=overlap)
    async with person(it) as ada:
        await it.enabled(key)
        answer = await ada.trigger(key)
        assert answer.status_code == 201, answer.text
        receipt = answer.json()
        await begun(it, key)

        refused = await ada.trigger(key)
        assert (refused.status_code, refused.json()["code"]) == (409, "overlap")
        await asyncio.sleep(1)  # a run of another second, so that the agents' word tells the two apart
        beside = (await ada.trigger(key, overlap="allow")).json()
        await closed(it, key, beside["run_id"])
        line = await ada.get(f"/runs/{receipt['run_id']}")
        assert (line["disposition"], line["triggered_by"], line["trigger"]) == ("started", "ada", receipt["trigger"])
        by_hand = await closed(it, key, receipt["run_id"])
    await succeeded(it, key, since=by_hand[0].closed_at - 26 * SECOND)
    await it.proven(key)
    assert it.begun(key)[0]["run_id"] == receipt["run_id"]
    return by_hand, by_calendar(it, key)


@stories.story
async def test_a_run_by_hand_is_an_overlap_for_what_falls_due_meanwhile(it):
    (entry, _), rows = await behind_a_run_by_hand(it, "skip")
    assert entry.disposition is Disposition.SUCCEEDED
    meanwhile = [each for each in rows if each[0].first_at < entry.closed_at]
    assert fates(meanwhile) == {("skipped", "overlap")}, rows


@stories.story
async def test_what_falls_due_during_a_run_by_hand_waits_for_its_end_where_the_policy_says_so(it):
    (entry, _), rows = await behind_a_run_by_hand(it, "buffer_one")
    (first, waited), *_ = rows
    assert first.first_at < entry.closed_at
    assert first.disposition is Disposition.SUCCEEDED
    assert entry.closed_at <= waited.begun_at <= entry.closed_at + SOON


@stories.story
async def test_as_many_runs_go_on_at_once_as_there_are_slots_and_not_one_more(it):
    key = await it.published(every=1, seconds=4, slots=2)
    await it.enabled(key)
    await until(
        lambda: sum(entry.disposition is Disposition.SUCCEEDED for entry, _ in it.rows(key)) >= 5,
        lambda: f"five successes; the ledger says {it.told(key)}",
    )
    await it.proven(key)
    runs = [run for _, run in it.rows(key) if run is not None and run.begun_at]
    at_once = [sum(other.begun_at <= run.begun_at < other.ended_at for other in runs) for run in runs]
    assert max(at_once) == 2
    assert fates(by_calendar(it, key)) <= {("succeeded", None), ("skipped", "overlap"), ("dropped", "paused")}
    assert any(entry.count > 1 for entry, run in it.rows(key) if run is None), "what shares a fate shares a line"


@stories.story
async def test_a_per_second_schedule_behind_a_long_run_sleeps_and_tells_it_in_one_line(it):
    key = await it.published(every=1, seconds=[BLOCKED.total_seconds(), 0.05])
    activation = (await it.enabled(key)).key
    _, run = await begun(it, key)
    before = await it.schedule_events(activation)
    await until(lambda: now() - run.begun_at > BLOCKED - SECOND, "its last second")
    spent = await it.schedule_events(activation) - before
    entry, _ = await closed(it, key, run.run_id)
    first, after = await succeeded(it, key, since=entry.closed_at)
    await it.proven(key)

    assert spent <= AT_MOST_WHILE_BLOCKED, f"{spent} events behind one run"
    skipped = [each for each, run in by_calendar(it, key) if run is None and each.first_at < first.first_at]
    assert [(each.disposition, each.reason) for each in skipped] == [("skipped", "overlap")], it.told(key)
    assert skipped[0].count >= BLOCKED // SECOND - 1
    assert first.first_at - skipped[0].last_at == SECOND, "the next instant after the end runs"
    assert after.begun_at - entry.closed_at < SOON


@stories.story
async def test_the_first_failure_is_the_last_run_that_is_decided(it):
    """Under every policy, in the transaction that settles it. What waits is dropped; what runs already goes on."""
    keys = {
        overlap: await it.published(every=2, seconds=5, fails=True, overlap=overlap, pause_on_failure=True)
        for overlap in ("skip", "buffer_one", "buffer_all", "allow")
    }
    for key in keys.values():
        await it.enabled(key)
    for key in keys.values():
        await until(lambda key=key: not it.activations(key)[-1].is_live, lambda key=key: f"review; {it.told(key)}")
    await it.proven(*keys.values())
    for overlap, key in keys.items():
        rows = it.rows(key)
        (first, _), *others = rows
        activation = it.activations(key)[-1]
        assert (activation.generation, activation.ended_as) == (1, "review"), overlap
        assert "pause_on_failure" in activation.ended_reason, overlap
        assert (first.disposition, first.reason) == ("failed", "agent_reported_failure"), it.told(key)
        assert all(run.decided_at < first.closed_at for _, run in rows if run is not None and run.decided_at), overlap
        expected = {
            "skip": {("skipped", "overlap"), ("dropped", "review")},
            "buffer_one": {("dropped", "review"), ("skipped", "already_waiting")},
            "buffer_all": {("dropped", "review")},
            "allow": {("failed", "agent_reported_failure"), ("dropped", "review")},
        }[overlap]
        assert fates(others) <= expected, (overlap, it.told(key))
        assert len(it.begun(key)) == (sum(run is not None and bool(run.begun_at) for _, run in rows))
        assert (len(it.begun(key)) == 1) is (overlap != "allow"), (overlap, it.told(key))


async def dropped_by(it, act, reason: str):
    """Several instants wait behind a run when its activation ends: each has its answer at once, and none starts."""
    key = await it.published(every=1, seconds=[4, 60, 0.05], overlap="buffer_all")
    await it.enabled(key)
    first, _ = await begun(it, key)
    _, second = await begun(it, key, after=first.first_at)
    await until(
        lambda: it.told(key).count("buffered") >= 2,
        lambda: f"instants that wait; the ledger says {it.told(key)}",
    )
    waited = [entry.first_at for entry, _ in it.rows(key) if entry.disposition is Disposition.BUFFERED]

    await act(key)

    ended = it.activations(key)[0].ended_at
    rows = by_calendar(it, key, 1)
    assert {entry.disposition for entry, _ in rows if entry.first_at in waited} == {Disposition.DROPPED}, it.told(key)
    given_up = [(entry, run) for entry, run in rows if waited[0] <= entry.first_at]
    assert fates(given_up) == {("dropped", reason)}, it.told(key)
    assert given_up[-1][0].last_at > ended - 2 * SECOND, "what was due and not decided yet is told too"
    assert (await closed_by_hand(it, key, second.run_id)).disposition is Disposition.CANCELLED
    return key


async def closed_by_hand(it, key, run_id: str):
    async with person(it) as ada:
        answer = await ada.cancel(run_id)
        assert answer.status_code == 202, answer.text
        entry, _ = await closed(it, key, run_id)
    return entry


@stories.story
async def test_what_waits_is_dropped_by_a_pause(it):
    await it.proven(await dropped_by(it, it.paused, "paused"))


@stories.story
async def test_what_waits_is_dropped_by_a_retirement(it):
    async def retired(key):
        await it.catalog.write(retire, key, Reviewed(), by="tester", now=now())

    await it.proven(await dropped_by(it, retired, "retired"))


@stories.story
async def test_what_waits_is_dropped_by_the_next_generation_whose_own_instants_wait_for_the_same_run(it):
    key = await dropped_by(it, it.enabled, "superseded")
    took_over = it.activations(key)[1].activated_at
    first, _ = await succeeded(it, key, since=took_over)
    assert first.generation == 2
    await it.proven(key)
    earliest = by_calendar(it, key, 2)[0][0]
    assert earliest.first_at - took_over <= SECOND
    assert earliest.disposition is Disposition.SUCCEEDED


@stories.story
async def test_time_that_was_spent_paused_is_never_caught_up(it):
    key = await it.published(every=1, overlap="allow", window=3_600)
    await it.enabled(key)
    await it.until_closed(key, 2)
    await it.paused(key)
    await asyncio.sleep(6)
    resumed = (await it.enabled(key)).activation
    await succeeded(it, key, since=resumed.activated_at)
    await it.proven(key)

    paused = it.activations(key)[0].ended_at
    assert resumed.activated_at - paused >= 6 * SECOND
    assert [entry for entry, _ in it.rows(key) if paused < entry.first_at <= resumed.activated_at] == []
    (entry, run), *_ = by_calendar(it, key, resumed.generation)
    assert entry.first_at - resumed.activated_at <= SECOND
    assert run.begun_at - resumed.activated_at < SOON
    assert fates(it.rows(key)) <= {("succeeded", None), ("dropped", "paused")}


async def freed(it, end, *, agent: str = "scripted@1", **policy: Any) -> tuple[str, str | None]:
    """A run is stuck until something ends it. Then the next instant runs, and those that it cost are never made up for."""
    key = await it.published(every=2, seconds=[600, 0.05], agent=agent, window=3_600, **policy)
    await it.enabled(key)
    stuck, run = await begun(it, key)
    await until(lambda: now() - stuck.first_at > 4 * SECOND, "two instants behind it")
    await end(stuck.run_key(key), run.run_id)
    entry, _ = await closed(it, key, run.run_id)
    first, _ = await succeeded(it, key, since=entry.closed_at)
    assert it.activations(key)[-1].is_live
    await it.proven(key)
    between = [each for each in by_calendar(it, key) if stuck.first_at < each[0].first_at < first.first_at]
    assert fates(between) == {("skipped", "overlap")}, it.told(key)
    assert len(between) == 1, it.told(key)
    assert first.first_at - entry.closed_at < SOON
    return str(entry.disposition), entry.reason


@stories.story
async def test_a_stuck_run_is_freed_by_its_time_limit(it):
    async def waits(_run, _run_id):
        pass

    assert await freed(it, waits, agent="brief@1") == ("timed_out", "time_limit")


@stories.story
async def test_a_stuck_run_is_freed_by_a_person_who_cancels_it_and_that_is_no_failure(it):
    async def cancels(_run, run_id):
        async with person(it) as ada:
            answer = await ada.cancel(run_id)
            assert answer.status_code == 202, answer.text

    assert await freed(it, cancels, pause_on_failure=True) == ("cancelled", "cancelled_by_operator")


@stories.story
async def test_a_stuck_run_is_freed_by_terminating_it_in_temporal_and_that_is_no_failure(it):
    async def terminates(run, _run_id):
        await it.client.get_workflow_handle(run.workflow_id).terminate("by hand, in the UI")

    assert await freed(it, terminates, pause_on_failure=True) == ("terminated", "terminated_by_operator")


@stories.story
async def test_a_run_that_passes_its_time_limit_is_a_failure_where_the_policy_pauses_on_one(it):
    key = await it.published(every=2, seconds=600, agent="brief@1", overlap="buffer_one", pause_on_failure=True)
    await it.enabled(key)
    await until(lambda: it.runtime(key)[0] == "review", lambda: f"review; it is {it.runtime(key)}, {it.told(key)}")
    assert "pause_on_failure" in it.runtime(key)[1]
    await it.proven(key)
    assert it.told(key)[0] == "timed_out time_limit"
    assert len(it.begun(key)) == 1


@stories.story
async def test_a_workflow_that_is_started_by_hand_with_the_id_of_a_run_that_ended_holds_no_slot(it):
    """A slot is a line of the ledger, whatever Temporal says of an id."""
    key = await it.published(every=2)
    await it.enabled(key)
    await it.until_closed(key, 1)
    entry, run = await succeeded(it, key, since=it.activations(key)[0].activated_at)
    await it.client.get_workflow_handle(run.workflow_id).result()
    by_hand = await it.client.start_workflow("ByHand", id=run.workflow_id, task_queue="nobody")
    later, _ = await succeeded(it, key, since=now())
    await by_hand.terminate()
    await succeeded(it, key, since=now() + 6 * SECOND)
    await it.proven(key)
    assert later.first_at > entry.first_at, "one ran while the other workflow went on"
    (same, _) = await closed(it, key, run.run_id)
    assert (same.disposition, same.closed_at) == (entry.disposition, entry.closed_at)


@stories.later
async def test_fifty_requests_in_one_second_are_fifty_runs_and_a_repeated_one_is_none(it):
    """Each key is sent twice, as a caller does whose answer was lost."""
    key = await it.published(every=86_400, overlap="allow", seconds=0.2)
    await it.enabled(key)
    keys = [new_key() for _ in range(50)]
    async with person(it) as ada:
        asked = now()
        answers = await asyncio.gather(*(ada.trigger(key, idempotency_key=each) for each in keys + keys))
        answered = now()
        assert {answer.status_code for answer in answers} == {201}
        receipts = [answer.json() for answer in answers]
        page = await ada.get(f"/schedules/{key.schedule_id}/occurrences?limit=50")
    first, second = receipts[:50], receipts[50:]
    assert [each["run_id"] for each in first] == [each["run_id"] for each in second]
    assert sum(each["replayed"] for each in receipts) == 50
    assert len({each["run_id"] for each in first}) == 50
    assert {line["triggered_by"] for line in page["occurrences"]} == {"ada"}
    await it.until_closed(key, 50)
    rows = it.rows(key)
    assert fates(rows) == {("succeeded", None)}
    assert len(rows) == 50
    assert sorted(line["run_id"] for line in it.begun(key)) == sorted({run.run_id for _, run in rows})
    assert all(asked - SECOND <= entry.first_at <= answered for entry, _ in rows)
    assert max(run.begun_at for _, run in rows) - answered < SOON
    await it.paused(key)
    result = await it.catalog.read(audit, key, now=now(), grace=timedelta(0))
    assert result.clean
    assert result.due == 0, "what a person asked for is no occurrence"
