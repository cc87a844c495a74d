"""The host's contract, a run's view of it, and the lease that keeps agents ready."""

import asyncio
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs

from horarium.agents import (
    Agent,
    AgentDiscovery,
    AgentReport,
    AgentRunner,
    CronStartEvent,
    InMemoryHost,
    LeaseKeeper,
    RunBrief,
    RunContext,
    ScheduleReference,
    handles,
)
from horarium.errors import NotFound, Refused, Unavailable

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
LEASE = timedelta(seconds=15)
BRIEF = RunBrief(
    run_id="run-1",
    schedule=ScheduleReference(org_id="acme", environment_id="test", schedule_id="8c5d", revision=1, digest="sha256:0"),
    trigger="schedule",
    nominal_time=NOON,
    actual_time=NOON,
    agent_version="idle@1",
    input="inbox",
    output_target="reports",
)


class Idle(Agent):
    name = "idle"
    version = "1"

    @handles(CronStartEvent)
    async def rest(self, event: CronStartEvent, context: RunContext) -> AgentReport:
        return AgentReport.succeeded("Rested.")


DISCOVERY = AgentRunner([Idle()]).discovery()


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


def test_an_agent_is_ready_while_its_lease_lasts():
    async def live() -> None:
        clock = Clock()
        host = InMemoryHost(clock=clock)
        assert not host.is_ready("idle@1")
        await host.register(DISCOVERY, lease=LEASE)
        assert host.known() == DISCOVERY
        clock.now += timedelta(seconds=14)
        assert host.is_ready("idle@1")
        await host.renew(["idle@1"], lease=LEASE)
        clock.now += timedelta(seconds=14)
        assert host.is_ready("idle@1")
        clock.now += timedelta(seconds=1)
        assert not host.is_ready("idle@1")
        await host.register(DISCOVERY, lease=LEASE)
        await host.release(["idle@1", "unknown@1"])
        assert not host.is_ready("idle@1")
        with pytest.raises(NotFound, match="unknown@1"):
            await host.renew(["unknown@1"], lease=LEASE)

    asyncio.run(live())


def test_a_run_is_begun_once_and_opened_by_the_token_of_its_claim_only():
    async def live() -> None:
        host = InMemoryHost()
        host.offer(BRIEF, content=b"letters")
        with pytest.raises(NotFound) as caught:
            await host.read_input("run-1", "secret")
        assert caught.value.code == "run_not_found"
        claim = await host.begin("run-1", at=NOON)
        assert claim.brief == BRIEF
        assert claim.token not in repr(claim)
        with pytest.raises(Refused) as caught:
            await host.begin("run-1", at=NOON)
        assert caught.value.code == "already_begun"
        for run_id, token in [("run-1", "guess"), ("run-1", "gu\u00ebss"), ("run-2", claim.token)]:
            with pytest.raises(NotFound) as caught:
                await host.write_output(run_id, token, "a", b"")
            assert caught.value.code == "run_not_found"
        assert await host.read_input("run-1", claim.token) == b"letters"

    asyncio.run(live())


def test_an_idempotent_agent_claims_again_and_the_earlier_token_is_void():
    async def live() -> None:
        host = InMemoryHost()
        host.offer(BRIEF, content=b"letters")
        first = await host.begin("run-1", at=NOON)
        second = await host.begin("run-1", at=NOON, again=True)
        assert await host.read_input("run-1", second.token) == b"letters"
        with pytest.raises(NotFound):
            await host.read_input("run-1", first.token)

    asyncio.run(live())


async def begun(**options: object) -> tuple[InMemoryHost, RunContext]:
    host = InMemoryHost()
    host.offer(BRIEF, content=b"letters")
    claim = await host.begin("run-1", at=NOON)
    return host, RunContext(BRIEF, host, claim.token, **options)


def test_a_run_writes_text_and_bytes_and_the_same_name_again_replaces():
    async def live() -> None:
        host, context = await begun()
        assert await context.read_input() == b"letters"
        first = await context.write_output("report.md", "Grüezi")
        assert await context.write_output("report.md", "Ciao") == first
        second = await context.write_output("data.bin", b"\x00")
        assert context.outputs == (first, second) == ("reports/run-1/report.md", "reports/run-1/data.bin")
        assert host.outputs("run-1") == {"report.md": b"Ciao", "data.bin": b"\x00"}

    asyncio.run(live())


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "a b", "ü", "x" * 201, "a\n", "a\x00"])
def test_an_output_is_a_plain_file_name(name):
    async def live() -> None:
        _, context = await begun()
        with pytest.raises(Refused) as caught:
            await context.write_output(name, b"")
        assert caught.value.code == "output_name"

    asyncio.run(live())


def test_an_output_has_a_largest_size():
    async def live() -> None:
        _, context = await begun()
        with pytest.raises(Refused, match="16,777,217 bytes") as caught:
            await context.write_output("big", bytes(16 * 1024 * 1024 + 1))
        assert caught.value.code == "output_too_large"

    asyncio.run(live())


def test_the_token_is_shown_nowhere():
    async def live() -> None:
        host = InMemoryHost()
        host.offer(BRIEF)
        token = (await host.begin("run-1", at=NOON)).token
        context = RunContext(BRIEF, host, token)
        assert token not in repr(context)
        with capture_logs() as logs:
            context.logger.info("hello")
        assert logs[0]["run_id"] == "run-1"
        assert token not in repr(logs)

    asyncio.run(live())


def test_a_heartbeat_from_a_thread_arrives_on_the_event_loop():
    async def live() -> list[tuple[tuple[object, ...], bool]]:
        beats: list[tuple[tuple[object, ...], bool]] = []
        loop_thread = threading.get_ident()
        _, context = await begun(
            heartbeat=lambda *details: beats.append((details, threading.get_ident() == loop_thread))
        )
        context.heartbeat("here", 1)
        await asyncio.to_thread(context.heartbeat, "thread", 2)
        await asyncio.sleep(0)
        return beats

    assert asyncio.run(live()) == [(("here", 1), True), (("thread", 2), True)]


def test_without_a_listener_a_heartbeat_goes_nowhere():
    async def live() -> None:
        _, context = await begun()
        context.heartbeat(1)

    asyncio.run(live())


class FailingHost(InMemoryHost):
    """Writes down what is called, and fails where its script says so."""

    def __init__(self, *, failures: dict[str, list[Exception | float | None]]) -> None:
        super().__init__()
        self.calls: list[str] = []
        self._failures = failures

    async def _call(self, name: str) -> None:
        self.calls.append(name)
        script = self._failures.get(name, [])
        step = script.pop(0) if script else None
        if isinstance(step, float):
            await asyncio.sleep(step)
        elif step is not None:
            raise step

    async def register(self, discovery: Sequence[AgentDiscovery], *, lease: timedelta) -> None:
        await self._call("register")
        await super().register(discovery, lease=lease)

    async def renew(self, agent_versions: Sequence[str], *, lease: timedelta) -> None:
        await self._call("renew")
        await super().renew(agent_versions, lease=lease)

    async def release(self, agent_versions: Sequence[str]) -> None:
        await self._call("release")
        await super().release(agent_versions)


async def until(condition, *, seconds: float = 10) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event to wait on
            await asyncio.sleep(0.005)


def test_a_lease_is_renewed_while_its_keeper_is_entered_and_released_when_it_is_left():
    async def live() -> None:
        host = FailingHost(failures={})
        async with LeaseKeeper(host, DISCOVERY, lease=timedelta(seconds=0.3)):
            assert host.is_ready("idle@1")
            await until(lambda: host.calls.count("renew") >= 5)
            assert host.is_ready("idle@1")
        assert not host.is_ready("idle@1")
        assert host.calls[0] == "register"
        assert host.calls[-1] == "release"
        assert host.calls.count("register") == 1
        quiet = len(host.calls)
        await asyncio.sleep(0.2)
        assert len(host.calls) == quiet

    asyncio.run(live())


@pytest.mark.parametrize(
    "fault",
    [Unavailable("catalog_down", "The catalog is down."), RuntimeError("boom"), 60.0],
    ids=["refused", "bug", "hangs"],
)
def test_a_renewal_that_fails_or_hangs_is_logged_and_repeated_as_a_registration(fault):
    async def live() -> list[str]:
        host = FailingHost(failures={"renew": [fault], "register": [None, Unavailable("x", "Still down.")]})
        with capture_logs() as logs:
            async with LeaseKeeper(host, DISCOVERY, lease=timedelta(seconds=0.3)):
                await until(lambda: host.calls.count("renew") >= 2)
                assert host.is_ready("idle@1")
        assert host.calls[:5] == ["register", "renew", "register", "register", "renew"]
        return [log["event"] for log in logs]

    assert asyncio.run(live()) == ["lease_not_renewed", "lease_not_renewed", "lease_renewed_again"]


def test_a_registration_that_fails_on_entry_is_raised():
    async def live() -> None:
        host = FailingHost(failures={"register": [Unavailable("catalog_down", "The catalog is down.")]})
        async with LeaseKeeper(host, DISCOVERY, lease=LEASE):
            pass

    with pytest.raises(Unavailable, match="catalog is down"):
        asyncio.run(live())


@pytest.mark.parametrize("fault", [Unavailable("catalog_down", "The catalog is down."), 60.0], ids=["refused", "hangs"])
def test_a_release_that_fails_does_not_hide_why_the_runner_left(fault):
    async def live() -> None:
        host = FailingHost(failures={"release": [fault]})
        async with LeaseKeeper(host, DISCOVERY, lease=timedelta(seconds=0.3)):
            raise KeyError("why")

    with capture_logs() as logs, pytest.raises(KeyError, match="why"):
        asyncio.run(live())
    assert [log["event"] for log in logs] == ["lease_not_released"]


def test_a_cancelled_runner_releases_its_lease():
    async def live() -> FailingHost:
        host = FailingHost(failures={})

        async def serve() -> None:
            async with LeaseKeeper(host, DISCOVERY, lease=LEASE):
                await asyncio.sleep(60)

        task = asyncio.create_task(serve())
        await until(lambda: host.is_ready("idle@1"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return host

    host = asyncio.run(live())
    assert host.calls == ["register", "release"]
