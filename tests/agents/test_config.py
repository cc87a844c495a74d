"""What an administrator may set is derived from one view of the configuration, and the schedule in it is the platform's."""

import asyncio
import json
from typing import Annotated, Literal, Self

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from structlog.testing import capture_logs

from horarium.agents import (
    Agent,
    AgentConfig,
    AgentDiscovery,
    AgentReport,
    AgentRunner,
    AgentTestRunner,
    ChoiceInput,
    CronInput,
    CronSchedule,
    CronStartEvent,
    NumberInput,
    RunContext,
    SwitchInput,
    TextInput,
    UserMessageEvent,
    handles,
    presets_in,
)
from horarium.errors import Misconfigured, NotFound

HOURLY = presets_in("UTC")["Every hour"]


class TriageConfig(AgentConfig):
    mailbox: str = Field(min_length=1)
    most: Annotated[int, Field(ge=1, le=1000)] = 100
    tone: Literal["kind", "curt"] = "kind"
    archive: bool = False
    secret_sauce: str = "mustard"

    @classmethod
    def as_form(cls) -> Self:
        return cls.form_of(
            archive=SwitchInput(label="Archive what was read"),
            mailbox=TextInput(label="Mailbox", help="As in the address book.", placeholder="inbox"),
            most=NumberInput(label="Letters a run", minimum=1, maximum=1000),
            tone=ChoiceInput(label="Tone", options={"kind": "Kind", "curt": "Curt"}),
        )


class Chat(Agent):
    name = "chat"
    version = "1"
    config = TriageConfig

    @handles(UserMessageEvent)
    async def answer(self, event: UserMessageEvent, context: RunContext) -> AgentReport:
        return AgentReport.succeeded(event.text)


class Triage(Chat):
    name = "triage"

    @handles(CronStartEvent)
    async def sort(self, event: CronStartEvent, context: RunContext) -> AgentReport:
        return AgentReport.succeeded(context.config.model_dump_json())


class Plain(Triage):
    name = "plain"
    config = AgentConfig


def published(agent: Agent, config: AgentConfig | None = None) -> AgentDiscovery:
    configs = {} if config is None else {agent.agent_version: config}
    (found,) = AgentRunner([agent], configs=configs).discovery()
    return found


def names(agent: Agent, config: AgentConfig | None = None) -> tuple[list[str], list[str]]:
    found = published(agent, config)
    return [each["name"] for each in found.form], list(found.submission_schema["properties"])


OWN = ["mailbox", "most", "tone", "archive"]


def test_the_schedule_is_last_and_only_what_has_a_form_element_is_configurable():
    assert names(Triage()) == ([*OWN, "cron"],) * 2


def test_an_agent_that_is_not_schedulable_shows_no_schedule_anywhere():
    assert names(Chat()) == (OWN, OWN)
    found = published(Chat())
    assert not found.is_schedulable
    assert "cron" not in json.dumps([found.form, found.submission_schema]).lower()


def test_without_settings_of_its_own_a_schedulable_agent_shows_its_schedule_alone():
    assert names(Plain()) == (["cron"], ["cron"])

    class Talk(Chat):
        config = AgentConfig

    assert names(Talk()) == ([], [])


def test_a_schedule_that_the_blueprint_shows_by_itself_does_not_count():
    own = TriageConfig.form_of(cron=CronInput(label="My own"), mailbox=TextInput(label="Mailbox"))
    assert names(Chat(), own) == (["mailbox"], ["mailbox"])
    assert [each["label"] for each in published(Triage(), own).form] == ["Mailbox", "Schedule"]
    scheduled = TriageConfig(mailbox="inbox", cron=HOURLY)
    assert names(Chat(), scheduled) == ([], [])
    assert names(Triage(), scheduled) == (["cron"], ["cron"])


def test_as_form_leaves_the_schedule_unset():
    assert TriageConfig.as_form().cron is None
    assert AgentConfig.as_form().cron is None
    assert TriageConfig.as_form().is_form
    assert not AgentConfig.as_form().is_form
    assert not TriageConfig(mailbox="inbox").is_form


@pytest.mark.parametrize("agent", [Triage(), Chat()])
@pytest.mark.parametrize(
    "handed",
    [TriageConfig.as_form(), TriageConfig(mailbox="inbox", cron=HOURLY), TriageConfig.form_of(cron=CronInput())],
)
def test_what_is_published_stands_beside_what_was_handed_over_and_never_over_it(agent, handed):
    before = dict(vars(handed))
    runner = AgentRunner([agent], configs={agent.agent_version: handed})
    runner.discovery()
    assert runner.config_of(agent.agent_version) is handed
    assert vars(handed) == before
    assert all(vars(handed)[name] is value for name, value in before.items())
    view = runner.published_of(agent.agent_version)
    assert view is not handed
    assert isinstance(view.cron, CronInput) == isinstance(agent, Triage)
    assert runner.config_of(agent.agent_version) is handed


def test_without_a_configuration_a_runner_has_the_form_of_the_class():
    runner = AgentRunner([Triage(), Plain()])
    assert runner.config_of("triage@1") == TriageConfig.as_form()
    assert runner.config_of("plain@1") == AgentConfig()
    for ask in (runner.config_of, runner.published_of):
        with pytest.raises(NotFound, match="no agent 'chat@1'"):
            ask("chat@1")


def test_a_published_element_says_what_a_user_interface_needs():
    form = {each["name"]: each for each in published(Triage()).form}
    assert form["mailbox"] == {
        "name": "mailbox",
        "element": "text",
        "label": "Mailbox",
        "help": "As in the address book.",
        "placeholder": "inbox",
        "multiline": False,
        "required": True,
        "default": None,
    }
    assert form["most"] | {"label": "", "help": ""} == {
        "name": "most",
        "element": "number",
        "label": "",
        "help": "",
        "minimum": 1,
        "maximum": 1000,
        "required": False,
        "default": 100,
    }
    assert form["tone"]["options"] == [{"value": "kind", "label": "Kind"}, {"value": "curt", "label": "Curt"}]
    assert (form["archive"]["element"], form["archive"]["default"]) == ("switch", False)
    assert (form["cron"]["element"], form["cron"]["required"], form["cron"]["default"]) == ("cron", False, None)


def test_a_submission_is_exactly_what_is_configurable():
    model = AgentRunner([Triage()]).published_of("triage@1").submission_model()
    sent = model.model_validate({"mailbox": "inbox", "cron": HOURLY.model_dump()})
    assert TriageConfig.model_validate(sent.model_dump()) == TriageConfig(mailbox="inbox", cron=HOURLY)
    for wrong, loc in [
        ({}, ("mailbox",)),
        ({"mailbox": ""}, ("mailbox",)),
        ({"mailbox": "inbox", "most": 1001}, ("most",)),
        ({"mailbox": "inbox", "tone": "loud"}, ("tone",)),
        ({"mailbox": "inbox", "secret_sauce": "ketchup"}, ("secret_sauce",)),
        ({"mailbox": "inbox", "cron": HOURLY.model_dump() | {"hour": "24"}}, ("cron", "hour")),
        ({"mailbox": "inbox", "cron": CronInput().published()}, ("cron", "minute")),
    ]:
        with pytest.raises(ValidationError) as caught:
            model.model_validate(wrong)
        assert caught.value.errors()[0]["loc"] == loc
    quiet = AgentRunner([Chat()]).published_of("chat@1").submission_model()
    with pytest.raises(ValidationError, match="cron"):
        quiet.model_validate({"mailbox": "inbox", "cron": None})


def test_the_schema_is_that_of_the_submission_and_refuses_other_members():
    schema = published(Triage()).submission_schema
    assert schema["required"] == ["mailbox"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["most"]["maximum"] == 1000
    assert schema["$defs"]["CronSchedule"]["required"] == list(CronSchedule.model_fields)
    assert json.loads(json.dumps(schema)) == schema


def test_a_union_with_an_element_is_published_by_its_data_types():
    class Honest(AgentConfig):
        most: int | NumberInput | None = Field(default=None, ge=1)

        @classmethod
        def as_form(cls) -> Self:
            return cls.form_of(most=NumberInput(label="Most"))

    assert published(configured(Honest)).submission_schema["properties"]["most"]["anyOf"] == [
        {"type": "integer", "minimum": 1},
        {"type": "null"},
    ]


def test_a_form_element_is_made_by_code_and_never_read_from_data():
    class Honest(AgentConfig):
        most: int | NumberInput = 1

    assert Honest(most=NumberInput(label="Most")).is_form
    with pytest.raises(ValidationError):
        Honest.model_validate({"most": NumberInput(label="Most").published()})


@pytest.mark.parametrize(
    ("elements", "sentence"),
    [
        ({"mail": TextInput(label="Mail")}, "TriageConfig has no field 'mail'; it has 'cron', 'mailbox'"),
        ({"mailbox": "Mailbox"}, "TriageConfig.mailbox is to show 'Mailbox', which is no form element"),
        ({"mailbox": CronInput()}, "TriageConfig.mailbox asks for a schedule, and only `cron` starts runs"),
    ],
)
def test_a_form_that_could_never_work_is_refused_where_it_is_written(elements, sentence):
    with pytest.raises(Misconfigured) as caught:
        TriageConfig.form_of(**elements)
    assert sentence in str(caught.value)


def test_the_schedules_field_is_the_platforms_own():
    with pytest.raises(Misconfigured, match="Other declares `cron` again"):

        class Other(AgentConfig):
            cron: str = "0 * * * *"

    with pytest.raises(Misconfigured, match="Eager declares `cron` again"):

        class Eager(AgentConfig):
            cron: CronSchedule | CronInput | None = HOURLY

    with pytest.raises(Misconfigured, match=r"Form\.cron has a form element as its default"):

        class Form(AgentConfig):
            cron: CronSchedule | CronInput | None = CronInput()


def test_an_alias_and_an_element_as_a_default_are_refused_while_the_class_is_defined():
    with pytest.raises(Misconfigured, match=r"Renamed\.mailbox has an alias"):

        class Renamed(AgentConfig):
            mailbox: str = Field(alias="mail")

    with pytest.raises(Misconfigured, match=r"Shouting\.cron has an alias"):

        class Shouting(AgentConfig):
            model_config = ConfigDict(alias_generator=str.upper)

    with pytest.raises(Misconfigured, match=r"Formal\.mailbox has a form element as its default"):

        class Formal(AgentConfig):
            mailbox: str = TextInput(label="Mailbox")


class Untold:
    """A type that no schema can tell of."""


def configured(kind: object) -> Agent:
    return type("Made", (Triage,), {"config": kind})()


def test_what_cannot_be_published_is_refused_in_one_sentence():
    class Strange(AgentConfig):
        model_config = ConfigDict(arbitrary_types_allowed=True)
        thing: Untold | None = None

        @classmethod
        def as_form(cls) -> Self:
            return cls.form_of(thing=TextInput(label="Thing"))

    class Wide(AgentConfig):
        thing: str = ""

        @classmethod
        def as_form(cls) -> Self:
            return cls.form_of(thing=TextInput(label="Thing", help="x" * 64 * 1024))

    class Long(AgentConfig):
        thing: str = Field(default="", description="x" * 64 * 1024)

        @classmethod
        def as_form(cls) -> Self:
            return cls.form_of(thing=TextInput(label="Thing"))

    class Endless(AgentConfig):
        thing: float = 0

        @classmethod
        def as_form(cls) -> Self:
            return cls.form_of(thing=NumberInput(label="Thing", maximum=float("inf")))

    class Raising(AgentConfig):
        @classmethod
        def as_form(cls) -> Self:
            raise KeyError("mailbox")

    class Forgetful(AgentConfig):
        @classmethod
        def as_form(cls) -> Self:
            cls.form_of()

    for kind, sentence in [
        (Strange, r"The form of Strange cannot be published: PydanticSchemaGenerationError"),
        (Wide, r"The form of Wide has 6\d,\d\d\d bytes; at most 65,536 are published"),
        (Long, r"The submission schema of Long has 6\d,\d\d\d bytes; at most 65,536 are published"),
        (Endless, r"The form of Endless cannot be published: ValueError"),
        (Raising, r"Raising.as_form raised KeyError: 'mailbox'"),
        (Forgetful, r"Made was handed NoneType as its configuration; it must be a Forgetful"),
    ]:
        with pytest.raises(Misconfigured, match=sentence):
            AgentRunner([configured(kind)])


@pytest.mark.parametrize("kind", [None, BaseModel, {"mailbox": "inbox"}, AgentConfig()])
def test_the_config_of_an_agent_is_a_class_of_ours(kind):
    with pytest.raises(Misconfigured, match=r"Made\.config is .*; it must be a class derived from AgentConfig"):
        AgentRunner([configured(kind)])


def test_a_configuration_of_another_class_is_refused():
    with pytest.raises(Misconfigured, match="Triage was handed AgentConfig as its configuration"):
        AgentRunner([Triage()], configs={"triage@1": AgentConfig()})


def test_discovery_is_read_by_and_from_a_release_that_knows_of_no_form():
    found = published(Triage())
    assert AgentDiscovery.model_validate_json(found.model_dump_json()) == found
    older = {name: value for name, value in found.model_dump().items() if name not in {"form", "submission_schema"}}
    assert (AgentDiscovery(**older).form, AgentDiscovery(**older).submission_schema) == ((), {})


def test_a_test_runner_hands_out_the_plain_configuration_itself_and_publishes_the_form_beside_it():
    seen: list[AgentConfig] = []

    class Looking(Triage):
        @handles(CronStartEvent)
        async def sort(self, event: CronStartEvent, context: RunContext) -> AgentReport:
            seen.append(context.config)
            return AgentReport.succeeded("Looked.")

    config = TriageConfig(mailbox="inbox", cron=HOURLY)
    runner = AgentTestRunner(Looking(), config=config)
    asyncio.run(runner.run())
    assert seen == [config]
    assert seen[0] is config
    assert runner.config is config
    assert runner.runner.config_of("triage@1") is config
    assert isinstance(runner.runner.published_of("triage@1").cron, CronInput)
    assert config.cron == HOURLY


def test_a_class_with_settings_that_no_profile_can_set_is_told_of_in_the_log_once():
    class Unasked(AgentConfig):
        words: str = "Hello"

    class Deliberate(Unasked):
        @classmethod
        def as_form(cls) -> Self:
            return cls.form_of()

    class Greeter(Agent):
        name = "greeter"
        version = "1"
        config = Unasked

        @handles(CronStartEvent)
        async def greet(self, event: CronStartEvent, context: RunContext) -> AgentReport:
            return AgentReport.succeeded("")

    class Other(Greeter):
        config = Deliberate

    class Bare(Greeter):
        config = AgentConfig

    with capture_logs() as logs:
        AgentRunner([Greeter()])
        AgentRunner([Other()])
        AgentRunner([Bare()])
        AgentRunner([Greeter()], configs={"greeter@1": Unasked()})
    (told,) = logs
    assert (told["event"], told["log_level"], told["agent_version"]) == (
        "settings_without_a_form",
        "warning",
        "greeter@1",
    )
    assert told["next_step"] == "No profile can set anything of Unasked. Name its settings in `as_form`."
