"""A trace goes on in an agent that is elsewhere, and comes back with what that agent tells us; nothing else of it does."""

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from examples.http_agent import messages
from horarium import traces
from horarium.schedule.identity import ActivationKey, RunKey
from starter.temporal_server import TemporalServer
from tests.api.house import Api, make_catalog
from tests.gateway.wire import OK, Received, Receiver, claim, destination, gateway, receiver, says
from tests.worker.test_log_context import RUN, SCHEDULE
from tests.workflows.elsewhere import SECRET, elsewhere
from worker.tracing import OtelRecorder, make_provider

STRANGER = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")
OF_THE_AGENT = "00f067aa0ba902b7"
GIVEN = f"00-{STRANGER[0]}-{STRANGER[1]}-01"


class Recorded(InMemorySpanExporter):
    """The spans of a test."""

    def named(self, name: str) -> list[ReadableSpan]:
        return [each for each in self.get_finished_spans() if each.name == name]


@pytest.fixture
def recorded() -> Iterator[Recorded]:
    exporter = Recorded()
    provider = make_provider("test", SimpleSpanProcessor(exporter))
    with traces.recording(OtelRecorder(provider)):
        yield exporter
    provider.shutdown()


def ids(span: ReadableSpan) -> tuple[str, str]:
    return f"{span.context.trace_id:032x}", f"{span.context.span_id:016x}"


def parent(span: ReadableSpan) -> tuple[str, str] | None:
    return None if span.parent is None else (f"{span.parent.trace_id:032x}", f"{span.parent.span_id:016x}")


def told(work: Callable[[Receiver], Awaitable[Any]]) -> list[Received]:
    """What a destination was sent."""

    async def bounded() -> list[Received]:
        async with asyncio.timeout(60), receiver(says(OK)) as there:
            await work(there)
            return there.requests

    return asyncio.run(bounded())


async def every_message(there: Receiver) -> None:
    to = destination(there.url())
    await gateway().post(claim(to))
    await gateway().poll(to, "a-run")
    await gateway().cancel(to, "a-run")


def test_every_message_about_a_run_says_which_span_it_was_sent_in(recorded: Recorded) -> None:
    async def work(there: Receiver) -> None:
        with traces.span("agent begins", inside=traces.of_run(RUN)):
            await every_message(there)

    posted, polled, cancelled = told(work)
    (span,) = recorded.named("agent begins")
    assert ids(span)[0] == uuid.UUID(RUN.run_id).hex
    for each in (posted, polled, cancelled):
        assert each.headers["traceparent"] == f"00-{ids(span)[0]}-{ids(span)[1]}-01"
        assert not {"tracestate", "baggage"} & set(each.headers)


def test_without_traces_an_agent_is_told_of_none() -> None:
    assert not traces.is_recording()
    for each in told(every_message):
        assert not {"traceparent", "tracestate", "baggage"} & set(each.headers)


def test_outside_of_a_span_there_is_nothing_to_tell(recorded: Recorded) -> None:
    assert all("traceparent" not in each.headers for each in told(every_message))
    assert recorded.get_finished_spans() == ()


def test_who_is_notified_is_not_told_of_our_traces(recorded: Recorded) -> None:
    async def work(there: Receiver) -> None:
        with traces.span("notified"):
            await gateway().tell(destination(there.url()), "a-message", b"{}")

    (message,) = told(work)
    assert "traceparent" not in message.headers


def sampled(
    monkeypatch: pytest.MonkeyPatch, sampler: str, ratio: float, runs: list[RunKey]
) -> tuple[set[str], set[str]]:
    """The runs whose first span was recorded, and those of whose other spans one was or an agent was told so."""
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", sampler)
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", str(ratio))
    exporter, flags = Recorded(), set()
    provider = make_provider("test", SimpleSpanProcessor(exporter))
    with traces.recording(OtelRecorder(provider)):
        for run in runs:
            traces.started(run)
            with traces.span("admit_run", inside=traces.of_run(run)), traces.span("agent begins"):
                header = traces.handed_on()["traceparent"]
                if header.endswith("-01"):
                    flags.add(uuid.UUID(run.run_id).hex)
    provider.shutdown()
    assert {ids(each)[0] for each in exporter.named("admit_run")} == flags
    assert {ids(each)[0] for each in exporter.named("agent begins")} == flags
    return {ids(each)[0] for each in exporter.named("run")}, flags


@pytest.mark.parametrize("sampler", ["parentbased_traceidratio", "traceidratio"])
def test_of_a_share_of_runs_that_is_recorded_each_is_recorded_whole(
    monkeypatch: pytest.MonkeyPatch, sampler: str
) -> None:
    runs = [
        RunKey(activation=ActivationKey(schedule=SCHEDULE, generation=each), nominal_time=RUN.nominal_time)
        for each in range(1, 401)
    ]
    first, rest = sampled(monkeypatch, sampler, 0.25, runs)
    assert first == rest
    # The ids are always the same, so the number is too.
    assert 60 < len(first) < 140


@pytest.mark.parametrize("sampler", ["parentbased_always_off", "always_off"])
def test_what_nobody_wants_recorded_is_not_and_the_agent_is_told_so(
    monkeypatch: pytest.MonkeyPatch, sampler: str
) -> None:
    assert sampled(monkeypatch, sampler, 1, [RUN]) == (set(), set())


def asked(folder: Path, headers: list[tuple[str, str]]) -> None:
    catalog = make_catalog(folder)
    api = Api(catalog)

    async def ask() -> None:
        async with api.client() as client:
            # As a list: a name may come twice.
            assert (await client.get("/version", headers=headers)).status_code == 200

    try:
        api.run(ask())
    finally:
        api.close()
        catalog.close()


def test_a_request_goes_on_the_trace_of_who_asks_and_takes_nothing_else_from_there(
    recorded: Recorded, tmp_path: Path
) -> None:
    asked(tmp_path, [("traceparent", GIVEN), ("tracestate", "vendor=secret"), ("baggage", "user=ada")])
    (span,) = recorded.named("GET /version")
    assert parent(span) == STRANGER
    assert dict(span.context.trace_state) == {}
    assert not any("ada" in str(each) or "secret" in str(each) for each in (span.attributes or {}).values())


@pytest.mark.parametrize(
    "given",
    [
        [""],
        ["nonsense"],
        [GIVEN.upper()],
        [f"ff{GIVEN[2:]}"],
        [f"00-{'0' * 32}-{STRANGER[1]}-01"],
        [f"00-{STRANGER[0]}-{'0' * 16}-01"],
        [f"{GIVEN}-more"],
        [f"01{GIVEN[2:]}-{'x' * 4_000}"],
        [f"{GIVEN}, {GIVEN}"],
        [GIVEN, f"00-{'1' * 32}-{'2' * 16}-01"],
    ],
)
def test_what_is_no_traceparent_begins_a_trace_of_its_own(recorded: Recorded, tmp_path: Path, given: list[str]) -> None:
    asked(tmp_path, [("traceparent", each) for each in given])
    (span,) = recorded.named("GET /version")
    assert parent(span) is None


def test_a_later_version_of_the_header_is_read_as_far_as_it_is_known(recorded: Recorded, tmp_path: Path) -> None:
    asked(tmp_path, [("traceparent", f"01{GIVEN[2:]}-more")])
    (span,) = recorded.named("GET /version")
    assert parent(span) == STRANGER


async def reported(temporal_server: TemporalServer, folder: Path) -> tuple[str, str]:
    """A run whose agent works in a span of its own and reports in that; its trace, and the span it was begun in."""
    async with elsewhere(temporal_server, folder, says(OK)) as it:
        await it.declared("posted@1")
        _, run = await it.due()
        await it.house.until(lambda: it.house.entries(run.activation.schedule) and it.told(run)[0] == "started")
        (sent,) = it.there.requests
        version, trace, begun, flags = sent.headers["traceparent"].split("-")
        assert (version, trace, flags) == ("00", uuid.UUID(run.run_id).hex, "01")
        body = json.dumps({"outcome": "succeeded"}).encode()
        headers = {
            "Content-Type": "application/json",
            "traceparent": f"00-{trace}-{OF_THE_AGENT}-01",
            **messages.headers(body, SECRET.encode(), message_id=run.run_id),
        }
        url = json.loads(sent.body)["outcome"]["url"]
        async with httpx.AsyncClient(trust_env=False, verify=False) as client:  # loading certificates takes long
            assert (await client.post(url, content=body, headers=headers)).status_code == 200
        assert await it.ended(run) == ("succeeded", None)
        history = (await it.workflow(run).fetch_history()).to_json()
        for each in (trace, begun, OF_THE_AGENT):
            assert each not in history
        return trace, begun


@pytest.mark.server
def test_a_run_is_one_trace_from_its_start_through_its_agent_to_its_report(
    recorded: Recorded, temporal_server: TemporalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HORARIUM_SECRET_LINES", SECRET)
    trace, begun = asyncio.run(reported(temporal_server, tmp_path))
    (first,) = [each for each in recorded.named("run") if ids(each)[0] == trace]
    (admitted,) = [each for each in recorded.named("admit_run") if ids(each)[0] == trace]
    (handed,) = [each for each in recorded.named("agent begins") if ids(each) == (trace, begun)]
    reports = [each for each in recorded.get_finished_spans() if each.name.endswith("/runs/{run_id}/outcome")]
    assert parent(admitted) == ids(first)
    assert parent(handed) == ids(admitted)
    assert [parent(each) for each in reports] == [(trace, OF_THE_AGENT)]
