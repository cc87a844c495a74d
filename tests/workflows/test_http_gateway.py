"""Runs of agents behind the gateway http, on a real server, with a real API: what they do and what is made of it."""

import asyncio
import json
import threading
from contextlib import contextmanager
from datetime import timedelta

import pytest

from activities import outcomes as polling
from activities.gateway import HttpGateway
from examples.http_agent.agent import LineCounter
from horarium.catalog.declarations import lift_stop, set_stop
from tests.gateway.wire import OK, says
from tests.workflows.elsewhere import SECRET, elsewhere
from tests.workflows.house import SCOPE
from workflows import options

pytestmark = pytest.mark.server
SECOND = timedelta(seconds=1)


@pytest.fixture(autouse=True)
def secret(monkeypatch):
    monkeypatch.setenv("HORARIUM_SECRET_LINES", SECRET)


@contextmanager
def example():
    """The example agent, served by a thread."""
    with LineCounter(("127.0.0.1", 0), SECRET.encode()) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


async def events(it, run) -> int:
    return len((await it.workflow(run).fetch_history()).events)


@pytest.mark.parametrize("by", ["callback", "poll"])
async def test_the_example_agent_reads_its_input_and_its_run_succeeds_with_few_events(
    temporal_server, tmp_path, monkeypatch, by
):
    monkeypatch.setattr(polling, "FIRST_PAUSE", SECOND / 2)
    with example() as agent:
        async with elsewhere(temporal_server, tmp_path, says(OK)) as it:
            (it.house.content.inputs / "letters").write_text("one\ntwo\n")
            await it.declared("posted@1", url=f"http://127.0.0.1:{agent.server_port}/", by=by)
            _, run = await it.due()
            assert await it.ended(run) == ("succeeded", None)
            row = it.row(run)
            assert (row.summary, row.cost, row.token_hash) == ("The input has 2 lines.", 2, None)
            assert timedelta(0) <= row.dispatch_sent - run.nominal_time < 20 * SECOND
            assert await events(it, run) <= 18
            assert list(agent.runs) == [run.run_id]
            history = (await it.workflow(run).fetch_history()).to_json()
            assert SECRET not in history
            assert "Bearer" not in history


@pytest.mark.parametrize(
    ("answer", "agent", "ends_as"),
    [
        (b"HTTP/1.1 409 Conflict\r\n\r\n", {}, "dispatch_refused"),
        (b"HTTP/1.1 307 X\r\nLocation: http://127.0.0.1/\r\n\r\n", {"idempotent": True}, "dispatch_refused"),
        (b"HTTP/1.1 500 X\r\n\r\n", {}, "start_unknown"),
        (b"", {}, "start_unknown"),
    ],
    ids=["says no", "points elsewhere", "fails", "says nothing"],
)
async def test_a_destination_that_does_not_take_a_run_is_asked_once(temporal_server, tmp_path, answer, agent, ends_as):
    async with elsewhere(temporal_server, tmp_path, says(answer)) as it:
        await it.declared("posted@1", **agent)
        _, run = await it.due()
        assert await it.ended(run) == ("not_started", ends_as)
        assert it.there.connections == 1
        assert it.row(run).begun_at is None


async def test_an_idempotent_agent_is_sent_the_same_until_it_takes_it(temporal_server, tmp_path):
    async def third_time(_request, writer):
        writer.write(OK if it.there.connections == 3 else b"HTTP/1.1 503 X\r\n\r\n")

    async with elsewhere(temporal_server, tmp_path, third_time) as it:
        await it.declared("posted@1", idempotent=True)
        _, run = await it.due()
        await it.house.until(lambda: it.house.entries(run.activation.schedule) and it.told(run)[0] == "started")
        assert (await it.report(run.run_id, summary="at last")).status_code == 200
        assert await it.ended(run) == ("succeeded", None)
        first, second, third = it.there.requests
        assert first.body == second.body == third.body
        assert {each.headers["idempotency-key"] for each in it.there.requests} == {run.run_id}
        assert await events(it, run) <= 18


async def test_where_no_connection_can_be_made_it_is_tried_until_the_window_ends(temporal_server, tmp_path):
    """Whatever the agent declares: nothing was sent. And another that comes up inside the window is reached."""
    async with elsewhere(temporal_server, tmp_path, says(OK)) as it:
        await it.declared("posted@1", url="http://127.0.0.1:9/")
        await it.declared("later@1", url="http://127.0.0.1:9/")
        _, never = await it.due(window=10)
        _, later = await it.due("later@1", window=60)
        await it.house.until(lambda: it.house.runs(later.activation.schedule) and it.row(later).decided_at)
        await asyncio.sleep(1)
        assert it.told(later) == ("admitted", None)
        await it.declared("later@1")
        await it.house.until(lambda: it.told(later)[0] == "started")
        await it.report(later.run_id)
        assert await it.ended(later) == ("succeeded", None)
        assert await it.ended(never) == ("not_started", "dispatch_failed")
        row = it.row(never)
        assert timedelta(seconds=10) <= row.ended_at - never.nominal_time < timedelta(seconds=30)
        assert row.dispatch_sent is None
        assert await events(it, never) <= 18


async def test_a_stop_between_two_attempts_keeps_it_from_being_sent(temporal_server, tmp_path):
    async with elsewhere(temporal_server, tmp_path, says(OK)) as it:
        await it.declared("posted@1", url="http://127.0.0.1:9/")
        _, run = await it.due(window=60)
        await it.house.until(lambda: it.house.runs(run.activation.schedule) and it.row(run).decided_at)
        await it.house.catalog.write(
            set_stop, SCOPE, everywhere=False, by="op", because="An incident.", now=run.nominal_time
        )
        assert await it.ended(run) == ("not_started", "stopped_by_operator")
        await it.house.catalog.write(lift_stop, SCOPE, everywhere=False, now=run.nominal_time)


async def test_a_private_address_is_not_reached_by_a_destination_that_is_not_private(temporal_server, tmp_path):
    async with elsewhere(temporal_server, tmp_path, says(OK)) as it:
        await it.declared("posted@1", url=it.there.url(scheme="https"), private=False)
        _, run = await it.due()
        assert await it.ended(run) == ("not_started", "dispatch_refused")
        assert it.there.connections == 0
        assert "not registered as private" in it.row(run).summary


@pytest.mark.parametrize(("idempotent", "ends_as"), [(False, ("not_started", "start_unknown")), (True, None)])
async def test_an_attempt_that_dies_with_the_run_on_its_way(temporal_server, tmp_path, idempotent, ends_as):
    """The next one sends again only where that does no harm."""

    class Dying(HttpGateway):
        posts = 0

        async def post(self, claim):
            told = await super().post(claim)
            Dying.posts += 1
            if Dying.posts == 1:
                raise RuntimeError("the worker dies here")
            return told

    async with elsewhere(temporal_server, tmp_path, says(OK), gateway=Dying) as it:
        await it.declared("posted@1", idempotent=idempotent)
        _, run = await it.due()
        if idempotent:
            await it.house.until(lambda: it.house.entries(run.activation.schedule) and it.told(run)[0] == "started")
            await it.report(run.run_id)
        assert await it.ended(run) == (ends_as or ("succeeded", None))
        assert it.there.connections == (2 if idempotent else 1)


async def test_an_outcome_that_comes_while_the_post_is_under_way_counts(temporal_server, tmp_path):
    answers = []

    async def reports_first(request, writer):
        answers.append(await it.report(json.loads(request.body)["run_id"], summary="quick", cost=5))
        writer.write(OK)

    async with elsewhere(temporal_server, tmp_path, reports_first) as it:
        await it.declared("posted@1")
        _, run = await it.due()
        assert await it.ended(run) == ("succeeded", None)
        assert [each.status_code for each in answers] == [200]
        assert (it.row(run).summary, it.row(run).cost) == ("quick", 5)
        again = await it.report(run.run_id, summary="quick", cost=5)
        other = await it.report(run.run_id, summary="quick", cost=10**15)
        lie = await it.report(run.run_id, summary="quick", cost=-5)
        assert (again.json()["replayed"], other.json()["code"], lie.status_code) == (True, "outcome_conflict", 422)
        assert it.row(run).cost == 5


async def test_a_run_whose_agent_never_reports_passes_its_time_limit_and_a_later_report_is_told_so(
    temporal_server, tmp_path
):
    async with elsewhere(temporal_server, tmp_path, says(OK)) as it:
        await it.declared("posted@1", max_run_seconds=2)
        _, run = await it.due()
        assert await it.ended(run) == ("timed_out", "time_limit")
        late = await it.report(run.run_id)
        assert (late.status_code, late.json()["code"]) == (409, "run_ended")


async def test_an_outcome_is_found_by_a_look_where_nobody_was_told_of_it(temporal_server, tmp_path, monkeypatch):
    monkeypatch.setattr(options, "FIRST_LOOK", 2 * SECOND)
    async with elsewhere(temporal_server, tmp_path, says(OK), hands=False) as it:
        await it.declared("posted@1")
        _, run = await it.due()
        await it.house.until(lambda: it.house.entries(run.activation.schedule) and it.told(run)[0] == "started")
        await it.report(run.run_id)
        assert await it.ended(run) == ("succeeded", None)


async def test_a_polled_agent_that_says_nothing_usable_is_asked_until_the_time_limit(
    temporal_server, tmp_path, monkeypatch
):
    monkeypatch.setattr(polling, "FIRST_PAUSE", SECOND / 2)

    async def unhelpful(request, writer):
        writer.write(OK if request.line.startswith("POST") else b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    async with elsewhere(temporal_server, tmp_path, unhelpful) as it:
        await it.declared("posted@1", by="poll", max_run_seconds=8)
        _, run = await it.due()
        assert await it.ended(run) == ("timed_out", "time_limit")
        assert 3 <= len([each for each in it.there.requests if each.line.startswith("GET")]) <= 8
        assert await events(it, run) <= 18


@pytest.mark.parametrize("by", ["callback", "poll"])
async def test_a_run_that_is_cancelled_is_told_to_its_agent_once(temporal_server, tmp_path, by):
    async def running(request, writer):
        body = b'{"outcome": "running"}'
        writer.write(
            OK
            if request.line.startswith("POST")
            else f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
        )

    async with elsewhere(temporal_server, tmp_path, running) as it:
        await it.declared("posted@1", by=by)
        _, run = await it.due()
        await it.house.until(lambda: it.house.entries(run.activation.schedule) and it.told(run)[0] == "started")
        await it.workflow(run).cancel()
        assert await it.ended(run) == ("cancelled", "cancelled_by_operator")
        assert [each.line for each in it.there.requests if "cancel" in each.line] == [
            f"POST /runs/{run.run_id}/cancel HTTP/1.1"
        ]
        late = await it.report(run.run_id)
        assert (late.status_code, late.json()["code"]) == (409, "run_ended")


async def test_a_run_that_is_cancelled_while_it_is_sent_is_told_to_its_agent_too(temporal_server, tmp_path):
    """It may have arrived, and nobody else is left who knows that it was sent."""

    async def slow(request, writer):
        if "cancel" not in request.line:
            await asyncio.sleep(8)
        writer.write(OK)

    async with elsewhere(temporal_server, tmp_path, slow) as it:
        await it.declared("posted@1")
        _, run = await it.due()
        await it.house.until(lambda: it.there.requests)
        await it.workflow(run).cancel()
        assert await it.ended(run) == ("cancelled", "cancelled_by_operator")
        await it.house.until(lambda: [each for each in it.there.requests if "cancel" in each.line])


async def test_a_report_is_taken_while_the_schedule_worker_is_away_and_nothing_is_lost(temporal_server, tmp_path):
    """The catalog is out just then: the agent reports again, as it was told, and that counts."""
    async with elsewhere(temporal_server, tmp_path, says(OK)) as it:
        await it.declared("posted@1")
        _, run = await it.due()
        await it.house.until(lambda: it.house.entries(run.activation.schedule) and it.told(run)[0] == "started")
        it.house.catalog.is_out = True
        refused = await it.report(run.run_id)
        it.house.catalog.is_out = False
        assert refused.status_code == 503
        assert (await it.report(run.run_id)).status_code == 200
        assert await it.ended(run) == ("succeeded", None)
