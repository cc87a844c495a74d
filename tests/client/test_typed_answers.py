"""What the API says of previews, scheduler v0 and profiles has a field in the client, or a reason to have none."""

import asyncio
import dataclasses
import inspect
from typing import Any

import pytest
from pydantic import BaseModel

from horarium import client
from horarium.api import examples, models, profile_examples, profile_models, v0_models

from .wire import SCOPE, Server

TYPED: dict[type[BaseModel], type[Any]] = {
    models.Preview: client.Preview,
    models.Translation: client.Translation,
    v0_models.V0Schedule: client.V0Schedule,
    v0_models.V0Directory: client.V0Page,
    profile_models.AgentVersion: client.AgentVersion,
    profile_models.AgentClass: client.AgentClass,
    profile_models.AgentClasses: client.AgentClasses,
    profile_models.Profile: client.Profile,
    profile_models.Profiles: client.ProfilePage,
    profile_models.ThreadEvent: client.ThreadEvent,
    profile_models.Thread: client.Thread,
    profile_models.ProfileReceipt: client.ProfileReceipt,
}
LEFT_OUT: dict[type[BaseModel], dict[str, str]] = {
    profile_models.Thread: {"members": "There are none: operators read it."},
    profile_models.ProfileReceipt: {
        "ended_generation": "No receipt has it in the client: a caller does nothing by it. It is in `document`.",
        "workflow_id": "Likewise: it is for whoever looks at Temporal.",
        "trigger": "Likewise: the ledger tells it of each run.",
    },
}


def answers(module: Any) -> set[type[BaseModel]]:
    """The models of answers that a module declares itself."""
    return {
        each
        for _, each in inspect.getmembers(module, inspect.isclass)
        if each.__module__ == module.__name__ and issubclass(each, models.Answer | models.Receipt)
    }


def test_every_answer_of_both_contracts_has_a_class():
    assert answers(v0_models) | answers(profile_models) == set(TYPED) - {models.Preview, models.Translation}


@pytest.mark.parametrize("described", TYPED, ids=lambda each: each.__name__)
def test_every_part_of_an_answer_has_a_field_or_a_reason(described):
    typed = {each.name for each in dataclasses.fields(TYPED[described])}
    assert set(described.model_fields) - typed == set(LEFT_OUT.get(described, ()))


def answered(document: Any, call: Any) -> Any:
    return asyncio.run(call(Server(document).client()))


def test_a_preview_says_whose_document_it_is_and_which_calendar_it_equals():
    found = answered({**examples.PREVIEW, "contract": "v0"}, lambda c: c.schedules.preview(SCOPE, {}))
    assert (found.contract, found.runs_per_30_days) == ("v0", 20)
    assert found.translation == client.Translation(**examples.PREVIEW["translation"])
    none = {"calendar": None, "sentence": "02:30 does not exist on 2027-03-28."}
    found = answered({**examples.PREVIEW, "translation": none}, lambda c: c.schedules.preview(SCOPE, {}))
    assert (found.contract, found.translation.calendar) == (None, None)
    assert found.translation.sentence == none["sentence"]


def test_a_preview_of_a_server_that_translates_nothing_is_one_too():
    told = {name: value for name, value in examples.PREVIEW.items() if name not in {"contract", "translation"}}
    found = answered(told, lambda c: c.schedules.preview(SCOPE, {}))
    assert (found.contract, found.translation) == (None, None)


def test_a_class_has_its_versions_and_a_profile_the_version_behind_it():
    found = answered(profile_examples.CLASS, lambda c: c.profiles.get_class(SCOPE, "Triage"))
    [version], [told] = found.agent_versions, profile_examples.CLASS["agent_versions"]
    assert (version.agent_version, version.lease_until.utcoffset().total_seconds()) == (told["agent_version"], 0)
    profile = answered(profile_examples.PROFILE, lambda c: c.profiles.get(SCOPE, "Triage", "support"))
    assert profile.reference.as_document() == profile_examples.PROFILE["reference"]


def test_a_receipt_of_a_profile_names_it_and_its_thread():
    document = profile_examples.receipt("profile_trigger", start_event="Sweep")
    found = answered(document, lambda c: c.profiles.trigger(SCOPE, "Triage", "support", "k", start_event="Sweep"))
    assert (found.agent_class, found.agent_id, found.start_event) == ("Triage", "support-inbox", "Sweep")
    assert found.thread_id == document["thread_id"]
