"""From a publication to the start of an agent: the spans of one run, on a real server, with the links that lead back."""

import asyncio
import subprocess
import sys
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from horarium import traces
from horarium.schedule.identity import ActivationKey, RunKey
from horarium.traces import Origin
from starter.child import Child
from tests.api.house import Api, make_catalog, new, publication
from tests.end_to_end.installation import USUAL, Installation, installation, until
from tests.metrics.collector import Collector, Sent, collecting
from tests.worker.test_log_context import ACTIVATION, RUN, SCHEDULE
from worker.tracing import traced

REPOSITORY = Path(__file__).parents[2]
SECRET = "a-secret-that-no-span-has"


def ids(origin: Origin) -> tuple[str, str]:
    return f"{origin.trace_id:032x}", f"{origin.span_id:016x}"


def exporting(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Variables that send traces there, soon; for this process too."""
    variables = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint,
        "OTEL_BSP_SCHEDULE_DELAY": "200",
        "HORARIUM_SECRET_LINES": SECRET,
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return variables


async def start(it: Installation, part: str, variables: Mapping[str, str]) -> None:
    program = it.program(part, part, crashing=False)
    it.children[part] = Child(replace(program, environment={**program.environment, **variables}))
    await it.start(part)


def the_run(it: Installation, key: Any) -> RunKey:
    entry = next(entry for entry, run in it.rows(key) if run is not None and run.begun_at is not None)
    found: RunKey = entry.run_key(key)
    return found


def complete(collector: Collector, run: RunKey) -> bool:
    trace = ids(traces.of_run(run))[0]
    names = {each.name for each in collector.spans if each.trace == trace}
    return names >= {"run", "admit_run", "run_agent", "agent begins", "settle_run"}


async def story(folder: Path, collector: Collector, variables: Mapping[str, str]) -> tuple[ActivationKey, RunKey]:
    async with traced("test"), installation(folder, parts=()) as it:
        await asyncio.gather(*(start(it, part, variables) for part in USUAL))
        key = await it.published(every=3)
        activation = (await it.enabled(key)).key
        await it.until_closed(key, 2)
        run = the_run(it, key)
        await until(lambda: complete(collector, run), lambda: f"the spans of {run}; there are {collector.spans}")
        await it.proven(key)
        return activation, run


@pytest.mark.server
def test_a_run_is_a_trace_with_links_back_to_who_staged_enabled_and_published_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with collecting() as collector:
        variables = exporting(collector, monkeypatch)
        activation, run = asyncio.run(story(tmp_path, collector, variables))

    def only(name: str, **having: str) -> Sent:
        found = [
            each
            for each in collector.named(name)
            if all(getattr(each, field) == value for field, value in having.items())
        ]
        assert len(found) == 1, (name, having, found)
        return found[0]

    trace = uuid.UUID(run.run_id).hex
    first = only("run", trace=trace)
    assert (first.trace, first.span) == ids(traces.of_run(run))
    assert (first.parent, first.service) == ("", "horarium-worker")
    for name, service in (
        ("admit_run", "horarium-worker"),
        ("run_agent", "horarium-agents"),
        ("settle_run", "horarium-worker"),
    ):
        part = only(name, trace=trace)
        assert (part.parent, part.service) == (first.span, service)
        assert part.attributes["horarium.run_id"] == run.run_id
    assert only("admit_run", trace=trace).attributes["horarium.decision"] == "admitted"
    assert only("agent begins", trace=trace).parent == only("run_agent", trace=trace).span

    enabling, step = first.links
    assert enabling == ids(traces.of_activation(activation))
    staged = only("commit_plan", span=step[1])
    assert staged.trace == step[0]
    assert (staged.parent, staged.links) == ("", (enabling,))
    enabled = only("activation", trace=enabling[0])
    assert (enabled.span, enabled.service) == (enabling[1], "horarium-test")
    published = only("publication")
    assert enabled.links == ((published.trace, published.span),)
    assert (published.trace, published.span) == ids(traces.of_version(activation.schedule, 1))
    told = b"".join(collector.bodies)
    for secret in (SECRET, "every 3 s", "reports"):
        assert secret.encode() not in told


def test_a_request_is_a_trace_that_goes_on_its_callers_and_what_it_published_leads_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")
    catalog = make_catalog(tmp_path)
    with collecting() as collector:
        exporting(collector, monkeypatch)

        async def record(act: Callable[[], None]) -> None:
            async with traced("api"):
                await asyncio.to_thread(act)

        def ask() -> None:
            api = Api(catalog)
            try:
                api.get("!/healthz", by=None)
                header = {"traceparent": f"00-{caller[0]}-{caller[1]}-01"}
                assert api.post("/schedules", publication(), key=new(), headers=header).status_code == 201
            finally:
                api.close()

        asyncio.run(record(ask))
    catalog.close()
    route = "/v1/organizations/{org_id}/environments/{environment_id}/schedules"
    request = next(each for each in collector.spans if each.name == f"POST {route}")
    assert (request.trace, request.parent) == caller
    assert request.attributes["http.response.status_code"] == 201
    published = next(each for each in collector.spans if each.name == "publication")
    assert published.links == ((request.trace, request.span),)
    assert not any("healthz" in each.name for each in collector.spans)


def test_a_collector_that_is_gone_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")

    async def work() -> float:
        loop = asyncio.get_running_loop()
        async with traced("test"):
            with traces.span("something"):
                pass
            began = loop.time()
        return loop.time() - began

    assert asyncio.run(work()) < 60


def test_without_an_endpoint_nothing_is_recorded_and_nothing_imported() -> None:
    program = """
import asyncio, sys
import starter.cli.commands, worker.processes, starter.api, starter.controller
from horarium import traces
from worker.tracing import traced

async def work():
    async with traced("test", {}):
        assert not traces.is_recording()
        with traces.span("something") as span:
            span.note({"any": 1})

asyncio.run(work())
print([name for name in sys.modules if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter"))])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout == "[]\n"


def test_what_follows_from_one_name_differs_from_what_follows_from_another() -> None:
    origins = {
        traces.of_run(RUN),
        traces.of_activation(ACTIVATION),
        traces.of_version(SCHEDULE, 1),
        traces.of_version(SCHEDULE, 2),
    }
    assert len({each.trace_id for each in origins}) == len({each.span_id for each in origins}) == 4
    assert f"{traces.of_run(RUN).trace_id:032x}" == RUN.run_id.replace("-", "")
