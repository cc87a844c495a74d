"""The schemas of start events, as an agent's runner reports them: what a person may send, without what is told."""

from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator
from pydantic import BaseModel, ConfigDict, Field

from horarium.agents import Agent, AgentDiscovery, AgentReport, AgentRunner, CronStartEvent, StartEvent, handles
from horarium.errors import Misconfigured
from horarium.schedule.submission import schema_faults


class Page(BaseModel):
    number: int = Field(ge=1)


class Sweep(StartEvent):
    """Somebody wants a folder looked through again."""

    folder: str = Field(min_length=1)
    pages: tuple[Page, ...] = ()


class Nightly(CronStartEvent):
    depth: int = 1


class Closed(StartEvent):
    model_config = ConfigDict(extra="forbid")
    folder: str
    run: Any


class Nested(StartEvent):
    inside: "Nested | None" = None
    run: int = 0


def made(*events: type[StartEvent]) -> Agent:
    """An agent that handles these events."""

    async def handle(_self: Agent, _event: StartEvent, _context: object) -> AgentReport:
        return AgentReport.succeeded("Done.")

    methods: dict[str, Any] = {"name": "made", "version": "1"}
    for event in events:

        async def method(self: Agent, event: StartEvent, context: object) -> AgentReport:
            return await handle(self, event, context)

        methods[f"on_{event.__name__}"] = handles(event)(method)
    return type("Made", (Agent,), methods)()


def discovered(*events: type[StartEvent]) -> AgentDiscovery:
    (found,) = AgentRunner([made(*events)]).discovery()
    return found


def schema(event: type[StartEvent]) -> dict[str, Any]:
    return discovered(event).event_schemas[event.__name__]


def test_every_declared_event_has_one_and_no_other():
    assert list(discovered(CronStartEvent, Sweep, Nightly).event_schemas) == ["CronStartEvent", "Sweep", "Nightly"]


def test_the_calendars_event_has_no_field_of_its_own():
    assert schema(CronStartEvent)["properties"] == {}
    assert "required" not in schema(CronStartEvent)
    assert "$defs" not in schema(CronStartEvent), "nor what only its run refers to"


def test_the_fields_of_an_event_are_told_with_their_bounds_and_what_they_refer_to():
    found = schema(Sweep)
    assert (list(found["properties"]), found["required"]) == (["folder", "pages"], ["folder"])
    assert list(found["$defs"]) == ["Page"]
    assert [each.pointer for each in schema_faults({"folder": "", "pages": [{"number": 0}]}, found, at="/event")] == [
        "/event/folder",
        "/event/pages/0/number",
    ]


def test_a_run_is_not_asked_for_whoever_declared_it():
    assert list(schema(Nightly)["properties"]) == ["depth"]
    assert (list(schema(Closed)["properties"]), schema(Closed)["required"]) == (["folder"], ["folder"])
    assert schema_faults({"folder": "INBOX"}, schema(Closed), at="/event") == []


def test_an_event_within_itself_is_followed():
    found = schema(Nested)
    assert list(found["properties"]) == ["inside"]
    assert schema_faults({"inside": {"inside": None}}, found, at="/event") == []
    assert [each.pointer for each in schema_faults({"inside": {"inside": 1}}, found, at="/event")] == [
        "/event/inside/inside"
    ]


@pytest.mark.parametrize("event", [CronStartEvent, Sweep, Nightly, Closed, Nested])
def test_each_is_json_schema(event):
    Draft202012Validator(schema(event))


def test_what_is_too_large_is_refused_in_one_sentence():
    class Long(StartEvent):
        folder: str = Field(default="", description="x" * 64 * 1024)

    with pytest.raises(Misconfigured, match=r"start events of Made has 6\d,\d\d\d bytes; at most 65,536 are published"):
        discovered(Long)


def test_what_cannot_be_described_is_refused_in_one_sentence():
    class Untold:
        pass

    class Strange(StartEvent):
        model_config = ConfigDict(arbitrary_types_allowed=True)
        thing: Untold | None = None

    with pytest.raises(Misconfigured, match=r"start events of Made cannot be published: Pydantic"):
        discovered(Strange)


def test_discovery_is_read_by_and_from_a_release_that_knows_of_none():
    found = discovered(Sweep)
    assert AgentDiscovery.model_validate_json(found.model_dump_json()) == found
    older = {name: value for name, value in found.model_dump().items() if name != "event_schemas"}
    assert AgentDiscovery(**older).event_schemas == {}
