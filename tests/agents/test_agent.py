"""What an agent can do follows from the handlers that its class declares."""

import asyncio
from datetime import UTC, datetime, timedelta, timezone

import pytest
from pydantic import ValidationError
from structlog.testing import capture_logs

from horarium.agents import (
    Agent,
    AgentReport,
    AgentRunner,
    CronStartEvent,
    InMemoryHost,
    Outcome,
    RunBrief,
    RunContext,
    ScheduleReference,
    StartEvent,
    UserMessageEvent,
    handles,
)
from horarium.errors import Misconfigured, NotFound, Refused

NOMINAL = datetime(2026, 11, 30, 6, 30, tzinfo=UTC)


def brief(run_id: str = "run-1") -> RunBrief:
    return RunBrief(
        run_id=run_id,
        schedule=ScheduleReference(
            org_id="acme", environment_id="test", schedule_id="8c5d", revision=2, digest="sha256:" + "0" * 64
        ),
        trigger="schedule",
        nominal_time=NOMINAL,
        actual_time=NOMINAL + timedelta(milliseconds=40),
        agent_version="triage@1",
        input="inbox",
        output_target="reports",
    )


async def begun(host: InMemoryHost, content: bytes = b"") -> RunContext:
    host.offer(brief(), content=content)
    claim = await host.begin("run-1", at=NOMINAL)
    return RunContext(claim.brief, host, claim.token)


class Triage(Agent):
    name = "triage"
    version = "1"
    description = "Sorts the inbox."
    max_run_seconds = 60

    @handles(CronStartEvent)
    async def sort(self, event: CronStartEvent, context: RunContext) -> AgentReport:
        content = await context.read_input()
        reference = await context.write_output("sorted.txt", content.upper())
        return AgentReport.succeeded(f"Sorted for {event.run.nominal_time:%H:%M}.", outputs=[reference], cost=3)


class Assistant(Agent):
    name = "assistant"
    version = "2026.11"

    @handles(UserMessageEvent)
    async def answer(self, event: UserMessageEvent, context: RunContext) -> AgentReport:
        return AgentReport.succeeded(event.text)


class AssistantOnDuty(Assistant):
    version = "2026.12"
    idempotent = True

    @handles(CronStartEvent)
    async def look_around(self, event: CronStartEvent, context: RunContext) -> AgentReport:
        return AgentReport.succeeded("All quiet.")


class Voice(UserMessageEvent):
    pass


class VoiceOnly(Agent):
    name = "voice"
    version = "1"

    @handles(Voice)
    async def answer(self, event: Voice, context: RunContext) -> AgentReport:
        return AgentReport.succeeded(event.text)


@pytest.mark.parametrize(
    ("agent", "conversational", "schedulable", "events"),
    [
        (Triage(), False, True, ("CronStartEvent",)),
        (Assistant(), True, False, ("UserMessageEvent",)),
        (AssistantOnDuty(), True, True, ("UserMessageEvent", "CronStartEvent")),
        (VoiceOnly(), True, False, ("Voice",)),
    ],
)
def test_capabilities_are_derived_from_the_handled_events(agent, conversational, schedulable, events):
    (found,) = AgentRunner([agent]).discovery()
    assert (found.is_conversational, found.is_schedulable) == (conversational, schedulable)
    assert found.start_events == events


def test_discovery_says_everything_about_an_agent():
    runner = AgentRunner([Triage()], task_queues="acme")
    (found,) = runner.discovery()
    published = runner.published_of("triage@1")
    assert found.model_dump() == {
        "agent_class": "Triage",
        "version": "1",
        "agent_version": "triage@1",
        "description": "Sorts the inbox.",
        "start_events": ("CronStartEvent",),
        "is_conversational": False,
        "is_schedulable": True,
        "calendar_event": "CronStartEvent",
        "max_run_seconds": 60,
        "idempotent": False,
        "task_queue": "acme/triage@1",
        "form": published.published_form(),
        "submission_schema": published.submission_model().model_json_schema(),
        "event_schemas": {
            "CronStartEvent": {
                "title": "CronStartEvent",
                "description": CronStartEvent.__doc__,
                "type": "object",
                "properties": {},
            }
        },
    }


def test_two_versions_of_one_agent_run_side_by_side():
    runner = AgentRunner([Assistant(), AssistantOnDuty()])
    assert runner.agent_versions == ("assistant@2026.11", "assistant@2026.12")


def test_a_handler_for_something_else_than_a_start_event_is_refused_while_its_class_is_defined():
    with pytest.raises(Misconfigured, match="derived from StartEvent; found <class 'str'>"):
        handles(str)
    with pytest.raises(Misconfigured, match="found 'CronStartEvent'"):
        handles("CronStartEvent")


def test_a_handler_that_is_not_async_or_takes_something_else_is_refused_while_its_class_is_defined():
    def silent(self, event, context):
        pass

    async def lonely(self):
        pass

    with pytest.raises(Misconfigured, match="silent handles CronStartEvent, so it is an async method"):
        handles(CronStartEvent)(silent)
    with pytest.raises(Misconfigured, match=r"lonely handles CronStartEvent, so it takes \(self, event, context\)"):
        handles(CronStartEvent)(lonely)


def test_two_handlers_for_one_event_in_one_class_are_refused_while_it_is_defined():
    async def one(self, event, context):
        pass

    async def other(self, event, context):
        pass

    methods = {"one": handles(CronStartEvent)(one), "other": handles(CronStartEvent)(other)}
    with pytest.raises(Misconfigured, match="Torn handles CronStartEvent twice, in one and other"):
        type("Torn", (Agent,), methods)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"name": ""}, "name is ''"),
        ({"name": None}, "name is None"),
        ({"name": "two words"}, "name is 'two words'"),
        ({"name": "a..b"}, "name is 'a..b'"),
        ({"name": "a@b"}, "name is 'a@b'"),
        ({"name": "x" * 65}, "name is 'xxx"),
        ({"version": 1}, "version is 1"),
        ({"version": "1/2"}, "version is '1/2'"),
        ({"max_run_seconds": 0}, "max_run_seconds is 0"),
        ({"max_run_seconds": True}, "max_run_seconds is True"),
        ({"max_run_seconds": 86_401}, "max_run_seconds is 86401"),
        ({"idempotent": "yes"}, "idempotent is 'yes'"),
        ({"description": None}, "description is None"),
    ],
)
def test_an_agent_that_is_declared_badly_is_refused_by_the_runner_in_one_sentence(changes, sentence):
    declared = type("Declared", (Triage,), changes)
    with pytest.raises(Misconfigured) as caught:
        AgentRunner([declared()])
    assert str(caught.value).startswith(f"Declared.{sentence}")


def test_what_is_no_agent_or_handles_nothing_is_refused_by_the_runner():
    nothing = type("Nothing", (Agent,), {"name": "nothing", "version": "1"})
    with pytest.raises(Misconfigured, match="Nothing handles no start event"):
        AgentRunner([nothing()])
    with pytest.raises(Misconfigured, match="Did you mean an instance of it"):
        AgentRunner([Triage])
    with pytest.raises(Misconfigured, match=r"Nothing\.name is None"):
        AgentRunner([type("Nothing", (Triage,), {"name": None})()])
    with pytest.raises(Misconfigured, match="There is no agent to run"):
        AgentRunner([])


def test_two_agents_of_the_same_name_and_version_are_refused():
    impostor = type("Impostor", (VoiceOnly,), {"name": "triage"})
    with pytest.raises(Misconfigured, match="'triage@1': Triage and Impostor"):
        AgentRunner([Triage(), impostor()])


async def run(
    agent: Agent, event: StartEvent | None = None, *, content: bytes = b""
) -> tuple[AgentReport, InMemoryHost]:
    host = InMemoryHost()
    context = await begun(host, content)
    return await AgentRunner([agent]).run(agent.agent_version, event or CronStartEvent(run=brief()), context), host


def test_a_run_reads_its_input_writes_its_output_and_reports():
    report, host = asyncio.run(run(Triage(), content=b"hello"))
    assert report == AgentReport(
        outcome=Outcome.SUCCEEDED, summary="Sorted for 06:30.", outputs=("reports/run-1/sorted.txt",), cost=3
    )
    assert host.outputs("run-1") == {"sorted.txt": b"HELLO"}


def test_the_handler_of_the_most_specific_declared_event_runs():
    class Both(Assistant):
        @handles(Voice)
        async def listen(self, event: Voice, context: RunContext) -> AgentReport:
            return AgentReport.succeeded("heard " + event.text)

    class Whisper(Voice):
        pass

    for event, summary in [
        (UserMessageEvent(text="hi"), "hi"),
        (Voice(text="hi"), "heard hi"),
        (Whisper(text="hi"), "heard hi"),
    ]:
        report, _ = asyncio.run(run(Both(), event))
        assert report.summary == summary


def test_a_subclass_may_replace_its_parents_handler():
    class Louder(Assistant):
        @handles(UserMessageEvent)
        async def shout(self, event: UserMessageEvent, context: RunContext) -> AgentReport:
            return AgentReport.succeeded(event.text.upper())

    class Plain(Assistant):
        async def answer(self, event: UserMessageEvent, context: RunContext) -> AgentReport:
            return AgentReport.succeeded("plain " + event.text)

    assert asyncio.run(run(Louder(), UserMessageEvent(text="hi")))[0].summary == "HI"
    assert asyncio.run(run(Plain(), UserMessageEvent(text="hi")))[0].summary == "plain hi"


def test_an_agent_or_event_that_is_not_here_is_refused():
    async def attempt(agent_version: str, event: StartEvent) -> None:
        context = await begun(InMemoryHost())
        await AgentRunner([Triage()]).run(agent_version, event, context)

    with pytest.raises(NotFound, match=r"no agent 'triage@2'; it has 'triage@1'"):
        asyncio.run(attempt("triage@2", CronStartEvent(run=brief())))
    with pytest.raises(Refused, match="does not handle UserMessageEvent; it handles CronStartEvent") as caught:
        asyncio.run(attempt("triage@1", UserMessageEvent(text="hi")))
    assert caught.value.code == "event_not_handled"


def test_a_handler_that_raises_is_a_failed_run_that_names_what_it_wrote():
    class Broken(Triage):
        @handles(CronStartEvent)
        async def sort(self, event: CronStartEvent, context: RunContext) -> AgentReport:
            await context.write_output("half.txt", "half")
            raise ValueError("x" * 1_000)

    with capture_logs() as logs:
        report, _ = asyncio.run(run(Broken()))
    assert report.outcome is Outcome.FAILED
    assert report.summary.startswith("ValueError: xxx")
    assert len(report.summary) == 500
    assert report.outputs == ("reports/run-1/half.txt",)
    assert [(log["event"], log["log_level"], log["run_id"]) for log in logs] == [("agent_raised", "error", "run-1")]


def test_a_handler_that_returns_something_else_than_a_report_is_a_failed_run():
    class Careless(Triage):
        @handles(CronStartEvent)
        async def sort(self, event: CronStartEvent, context: RunContext):
            return {"ok": True}

    report, _ = asyncio.run(run(Careless()))
    assert report == AgentReport.failed("Careless.sort returned dict; it must return an AgentReport.")


def test_a_cancelled_run_has_no_report():
    class Slow(Triage):
        @handles(CronStartEvent)
        async def sort(self, event: CronStartEvent, context: RunContext) -> AgentReport:
            await asyncio.sleep(60)
            return AgentReport.succeeded("Too late.")

    async def cancel() -> None:
        task = asyncio.ensure_future(run(Slow()))
        await asyncio.sleep(0.01)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel())


def test_a_summary_is_shortened_and_made_storable_and_never_fails_a_run():
    assert len(AgentReport.succeeded("x" * 5_000).summary) == 2_000
    assert AgentReport.succeeded("x" * 2_000).summary == "x" * 2_000
    assert AgentReport.failed("a\x00b\ud800c\U0001f600").summary == "a\ufffdb\ufffdc\U0001f600"
    assert len(AgentReport.succeeded("\ud800" * 5_000).summary) == 2_000


def test_a_cost_is_a_count_of_minor_units():
    with pytest.raises(ValidationError):
        AgentReport.succeeded("", cost=-1)
    with pytest.raises(ValidationError):
        AgentReport.succeeded("", cost=0.5)
    with pytest.raises(ValidationError):
        AgentReport.succeeded("", cost=2**53)
    assert AgentReport.succeeded("", cost=2**53 - 1).cost == 2**53 - 1


def test_outputs_are_a_hundred_storable_references_at_most():
    assert AgentReport.succeeded("", outputs=["o"] * 101).outputs == ("o",) * 100
    assert AgentReport.succeeded("", outputs=["o" * 501, "a\x00\ud800"]).outputs == ("o" * 499 + "…", "a\ufffd\ufffd")


def test_a_brief_is_in_utc_survives_the_wire_and_reads_what_a_newer_release_adds():
    zurich = timezone(timedelta(hours=1))
    local = brief().model_copy(update={"previous_success": None}).model_dump() | {
        "nominal_time": datetime(2026, 11, 30, 7, 30, tzinfo=zurich),
        "added_later": 1,
    }
    read = RunBrief.model_validate(local)
    assert read == brief()
    assert read.nominal_time.tzinfo is UTC
    assert RunBrief.model_validate_json(read.model_dump_json()) == read
    with pytest.raises(ValidationError, match="timezone"):
        RunBrief.model_validate(local | {"nominal_time": datetime(2026, 11, 30, 7, 30)})  # noqa: DTZ001 - naive on purpose


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt: "),
        (GeneratorExit("gone"), "GeneratorExit: gone"),
        (asyncio.CancelledError("by itself"), "CancelledError: by itself"),
        (Unspeakable(), "Unspeakable, whose text raised RuntimeError"),
    ],
)
def test_whatever_an_agent_raises_is_a_failed_run_and_not_the_end_of_its_runner(raised, said):
    class Raising(Agent):
        name = "raising"
        version = "1"

        @handles(CronStartEvent)
        async def go(self, event: CronStartEvent, context: RunContext) -> AgentReport:
            raise raised

    async def live() -> AgentReport:
        context = await begun(InMemoryHost())
        return await AgentRunner([Raising()]).run("raising@1", CronStartEvent(run=context.brief), context)

    report = asyncio.run(live())
    assert report.outcome is Outcome.FAILED
    assert report.summary == said
