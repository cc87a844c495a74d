"""A run that was claimed starts by the event and with the settings of its claim, or has failed and says why."""

import asyncio
from datetime import UTC, datetime
from typing import Any, Self

import pytest
from pydantic import ConfigDict, Field, field_validator
from structlog.testing import capture_logs

from horarium.agents import (
    Agent,
    AgentConfig,
    AgentReport,
    AgentRunner,
    AgentTestRunner,
    CronStartEvent,
    InMemoryHost,
    Outcome,
    RunBrief,
    RunContext,
    ScheduleReference,
    StartEvent,
    TextInput,
    UserMessageEvent,
    handles,
    presets_in,
)
from horarium.errors import Misconfigured, NotFound, Refused

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
BRIEF = RunBrief(
    run_id="run-1",
    schedule=ScheduleReference(org_id="acme", environment_id="test", schedule_id="8c5d", revision=1, digest="sha256:0"),
    trigger="schedule",
    nominal_time=NOON,
    actual_time=NOON,
    agent_version="desk@1",
    input="inbox",
    output_target="reports",
)


class DeskConfig(AgentConfig):
    model_config = ConfigDict(strict=True)
    mailbox: str = "inbox"
    most: int = Field(default=100, ge=1)
    since: datetime | None = None
    tags: tuple[str, ...] = ()

    @field_validator("mailbox")
    @classmethod
    def _known(cls, mailbox: str) -> str:
        if mailbox == "boom":
            raise RuntimeError("the validator is broken")
        return mailbox

    @classmethod
    def as_form(cls) -> Self:
        return cls.form_of(mailbox=TextInput(label="Mailbox"))


class Review(StartEvent):
    letter: str
    run: RunBrief


class Ping(StartEvent):
    times: int = Field(default=1, ge=1)


class Desk(Agent):
    name = "desk"
    version = "1"
    config = DeskConfig

    def __init__(self) -> None:
        self.seen: list[tuple[StartEvent, AgentConfig]] = []

    def saw(self, event: StartEvent, context: RunContext) -> AgentReport:
        self.seen.append((event, context.config))
        return AgentReport.succeeded(type(event).__name__)

    @handles(CronStartEvent)
    async def work(self, event: CronStartEvent, context: RunContext) -> AgentReport:
        await context.write_output("worked.txt", await context.read_input())
        return self.saw(event, context)

    @handles(Review)
    async def review(self, event: Review, context: RunContext) -> AgentReport:
        return self.saw(event, context)

    @handles(Ping)
    @handles(UserMessageEvent)
    async def answer(self, event: StartEvent, context: RunContext) -> AgentReport:
        return self.saw(event, context)


async def served(agent: Agent, **offer: Any) -> AgentReport:
    host = InMemoryHost()
    host.offer(BRIEF, content=b"letters", **offer)
    claim = await host.begin("run-1", at=NOON)
    return await AgentRunner([agent]).serve(agent.agent_version, claim, host)


def serve(agent: Agent, **offer: Any) -> AgentReport:
    return asyncio.run(served(agent, **offer))


def test_a_claim_that_names_no_event_is_an_occurrence_of_the_schedule_with_the_defaults_of_the_agent():
    desk = Desk()
    report = serve(desk)
    assert report == AgentReport.succeeded("CronStartEvent")
    assert desk.seen == [(CronStartEvent(run=BRIEF), DeskConfig())]


def test_a_run_is_given_the_settings_of_its_profile_as_values_of_its_class():
    desk = Desk()
    hourly = presets_in("UTC")["Every hour"]
    settings = {"cron": hourly.model_dump(), "mailbox": "post", "since": "2026-11-30T12:00:00Z", "tags": ["a", "b"]}
    serve(desk, config=settings)
    ((_, config),) = desk.seen
    assert config == DeskConfig(cron=hourly, mailbox="post", since=NOON, tags=("a", "b"))
    assert isinstance(config, DeskConfig)
    assert not config.is_form


class Tenanted(Agent):
    name = "tenanted"
    version = "1"

    @handles(CronStartEvent)
    async def work(self, event: CronStartEvent, context: RunContext) -> AgentReport:
        return AgentReport.succeeded(str(context.tenant_id))


def test_a_run_is_told_the_tenant_of_its_profile():
    assert serve(Tenanted(), tenant_id="acme").summary == "acme"
    assert serve(Tenanted()).summary == "None"
    assert asyncio.run(AgentTestRunner(Tenanted(), tenant_id="acme").run()).summary == "acme"


@pytest.mark.parametrize(
    ("name", "fields", "event"),
    [
        ("CronStartEvent", {}, CronStartEvent(run=BRIEF)),
        ("UserMessageEvent", {"text": "hello"}, UserMessageEvent(text="hello")),
        ("Ping", {}, Ping()),
        ("Ping", {"times": 3}, Ping(times=3)),
        ("Review", {"letter": "a"}, Review(letter="a", run=BRIEF)),
        ("Review", {"letter": "a", "run": {"run_id": "another"}}, Review(letter="a", run=BRIEF)),
        ("CronStartEvent", {"run": None}, CronStartEvent(run=BRIEF)),
    ],
)
def test_a_claim_may_name_any_event_that_the_agent_declares(name, fields, event):
    desk = Desk()
    assert serve(desk, start_event=name, event=fields).outcome is Outcome.SUCCEEDED
    assert [seen for seen, _ in desk.seen] == [event]


@pytest.mark.parametrize(
    ("offer", "code", "words"),
    [
        ({"start_event": "Nothing"}, "event_not_handled", "'desk@1' does not handle 'Nothing'; it handles"),
        ({"start_event": "StartEvent"}, "event_not_handled", "does not handle 'StartEvent'"),
        ({"start_event": "UserMessageEvent"}, "event_invalid", "UserMessageEvent: text: Field required"),
        ({"start_event": "Ping", "event": {"times": 0}}, "event_invalid", "Ping: times: Input should be greater"),
        ({"start_event": "Ping", "event": {"times": {1}}}, "event_invalid", "Ping: it could not be read (TypeError)"),
        ({"start_event": "Review"}, "event_invalid", "Review: letter: Field required"),
        ({"config": {"most": 0}}, "config_invalid", "DeskConfig: most: Input should be greater"),
        ({"config": {"most": "7"}}, "config_invalid", "DeskConfig: most: Input should be a valid integer"),
        ({"config": {"mailbax": "post"}}, "config_invalid", "DeskConfig: mailbax: Extra inputs are not permitted"),
        ({"config": {"mailbox": "boom"}}, "config_invalid", "DeskConfig: it could not be read (RuntimeError)"),
        (
            {"config": {"cron": {"minute": "0"}}},
            "config_invalid",
            "cron.hour: Field required; cron.day_of_month: Field",
        ),
        (
            {"config": {"cron": presets_in("UTC")["Every hour"].model_dump() | {"hour": "24"}, "most": 0}},
            "config_invalid",
            "cron.hour: 24 is outside hour, which is 0 to 23; most: Input should",
        ),
    ],
)
def test_what_does_not_fit_is_a_failed_run_that_names_the_fields_and_reaches_no_handler(offer, code, words):
    desk = Desk()
    with capture_logs() as logs:
        report = serve(desk, **offer)
    assert (report.outcome, report.outputs, report.cost) == (Outcome.FAILED, (), 0)
    assert words in report.summary
    assert desk.seen == []
    assert [(log["event"], log["log_level"], log["run_id"], log["code"]) for log in logs] == [
        ("agent_not_started", "error", "run-1", code)
    ]


def test_of_very_many_faults_the_first_are_named_and_the_report_stays_short():
    report = serve(Desk(), config={f"{number:03d}{'x' * 100}": 1 for number in range(500)})
    assert (report.outcome, len(report.summary)) == (Outcome.FAILED, 500)
    report = serve(Desk(), config={f"x{number}": 1 for number in range(12)})
    assert report.summary.endswith("; 2 more.")
    assert report.summary.count("Extra inputs") == 10


def test_settings_that_the_class_needs_and_nobody_gave_are_a_failed_run():
    class Needing(AgentConfig):
        mailbox: str

    class Needy(Desk):
        config = Needing

    agent = Needy()
    report = serve(agent)
    assert report.summary == "The configuration does not fit Needing: mailbox: Field required."
    assert serve(agent, config={"mailbox": "inbox"}).outcome is Outcome.SUCCEEDED
    assert agent.seen == [(CronStartEvent(run=BRIEF), Needing(mailbox="inbox"))]


def test_a_class_that_fills_in_form_elements_never_reaches_a_handler():
    class Filling(AgentConfig):
        mailbox: str | TextInput = Field(default_factory=lambda: TextInput(label="Mailbox"))

    class Filled(Desk):
        config = Filling

    agent = Filled()
    report = serve(agent)
    assert report.summary == "Filling fills in form elements where a run needs values."
    assert agent.seen == []


class Nightly(CronStartEvent):
    pass


class NightlyOnly(Agent):
    name = "nightly"
    version = "1"

    @handles(Nightly)
    async def work(self, event: Nightly, context: RunContext) -> AgentReport:
        return AgentReport.succeeded(f"{type(event).__name__} {event.run.run_id}")


def test_an_event_that_derives_from_the_calendars_makes_schedulable_and_is_what_starts_the_runs():
    (found,) = AgentRunner([NightlyOnly()]).discovery()
    assert (found.is_schedulable, found.is_conversational, found.start_events) == (True, False, ("Nightly",))
    assert found.calendar_event == "Nightly"
    assert serve(NightlyOnly()).summary == "Nightly run-1"
    assert asyncio.run(AgentTestRunner(NightlyOnly()).run()).summary == "Nightly run-1"


def test_an_agent_that_is_not_schedulable_fails_a_run_by_the_calendar():
    class Talk(Agent):
        name = "talk"
        version = "1"

        @handles(UserMessageEvent)
        async def answer(self, event: UserMessageEvent, context: RunContext) -> AgentReport:
            return AgentReport.succeeded(event.text)

        @handles(StartEvent)
        async def anything(self, event: StartEvent, context: RunContext) -> AgentReport:
            return AgentReport.succeeded("anything")

    (found,) = AgentRunner([Talk()]).discovery()
    assert not found.is_schedulable
    assert found.calendar_event is None
    report = serve(Talk())
    assert report.summary == "'talk@1' does not handle 'CronStartEvent'; it handles UserMessageEvent, StartEvent."


def test_two_events_of_one_name_are_refused_since_a_run_is_started_by_its_name():
    twin = type("Ping", (StartEvent,), {})

    async def again(self, event, context):
        return AgentReport.succeeded("")

    torn = type("Torn", (Desk,), {"again": handles(twin)(again)})
    with pytest.raises(Misconfigured, match="Torn handles two start events of the name 'Ping'"):
        AgentRunner([torn()])


def test_an_agent_version_that_is_not_here_is_not_served():
    async def attempt() -> None:
        host = InMemoryHost()
        host.offer(BRIEF)
        await AgentRunner([Desk()]).serve("desk@2", await host.begin("run-1", at=NOON), host)

    with pytest.raises(NotFound, match="no agent 'desk@2'"):
        asyncio.run(attempt())


def test_a_failed_handler_still_names_what_was_written_before():
    class Broken(Desk):
        @handles(CronStartEvent)
        async def work(self, event: CronStartEvent, context: RunContext) -> AgentReport:
            await context.write_output("half.txt", "half")
            raise ValueError("boom")

    report = serve(Broken())
    assert (report.summary, report.outputs) == ("ValueError: boom", ("reports/run-1/half.txt",))


def test_a_context_without_a_configuration_is_given_the_defaults_of_the_agent():
    async def story(**more: Any) -> list[tuple[StartEvent, AgentConfig]]:
        desk, host = Desk(), InMemoryHost()
        host.offer(BRIEF)
        token = (await host.begin("run-1", at=NOON)).token
        context = RunContext(BRIEF, host, token, **more)
        await AgentRunner([desk]).run("desk@1", CronStartEvent(run=BRIEF), context)
        assert context.outputs == ("reports/run-1/worked.txt",)
        return desk.seen

    assert asyncio.run(story())[0][1] == DeskConfig()
    given = DeskConfig(mailbox="post")
    assert asyncio.run(story(config=given))[0][1] is given


def test_what_a_person_wrote_is_shown_in_no_repr_of_the_claim():
    async def story() -> str:
        host = InMemoryHost()
        host.offer(BRIEF, start_event="UserMessageEvent", event={"text": "my diary"}, config={"mailbox": "private"})
        return repr(await host.begin("run-1", at=NOON))

    shown = asyncio.run(story())
    assert "diary" not in shown
    assert "private" not in shown


class TestOnesOwnTests:
    def test_a_run_reads_its_content_and_shows_its_outputs_each_time_anew(self):
        async def story() -> None:
            runner = AgentTestRunner(Desk())
            assert runner.outputs == {}
            assert (await runner.run(content=b"one")).outcome is Outcome.SUCCEEDED
            assert runner.outputs == {"worked.txt": b"one"}
            await runner.run(content=b"two")
            assert runner.outputs == {"worked.txt": b"two"}
            await runner.run(Ping())
            assert runner.outputs == {}

        asyncio.run(story())

    def test_a_run_is_at_the_instant_and_by_the_event_that_the_test_says(self):
        desk = Desk()
        runner = AgentTestRunner(desk)
        asyncio.run(runner.run(at=NOON))
        asyncio.run(runner.run(UserMessageEvent(text="hi")))
        (first, _), (second, _) = desk.seen
        assert isinstance(first, CronStartEvent)
        assert (first.run.nominal_time, first.run.agent_version) == (NOON, "desk@1")
        assert second == UserMessageEvent(text="hi")

    def test_an_agent_without_a_schedule_is_run_by_an_event_of_its_own(self):
        class Talk(Agent):
            name = "talk"
            version = "1"

            @handles(UserMessageEvent)
            async def answer(self, event: UserMessageEvent, context: RunContext) -> AgentReport:
                return AgentReport.succeeded(event.text)

        runner = AgentTestRunner(Talk())
        assert asyncio.run(runner.run(UserMessageEvent(text="hi"))).summary == "hi"
        with pytest.raises(Refused, match="does not handle 'CronStartEvent'"):
            asyncio.run(runner.run())

    def test_the_form_is_refused_as_a_configuration(self):
        with pytest.raises(
            Misconfigured, match=r"Desk was handed its own form\. Give it a DeskConfig that holds values"
        ):
            AgentTestRunner(Desk(), config=DeskConfig.as_form())

    def test_a_class_without_defaults_asks_for_a_configuration(self):
        class Needing(AgentConfig):
            mailbox: str

        class Needy(Desk):
            config = Needing

        with pytest.raises(Misconfigured, match=r"Needy needs a configuration: .*mailbox: Field required"):
            AgentTestRunner(Needy())
        with pytest.raises(
            Misconfigured, match="Needy was handed DeskConfig as its configuration; it must be a Needing"
        ):
            AgentTestRunner(Needy(), config=DeskConfig())
        assert AgentTestRunner(Needy(), config=Needing(mailbox="inbox")).config == Needing(mailbox="inbox")
