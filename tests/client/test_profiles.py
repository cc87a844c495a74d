"""`client.profiles`: what is sent, what is answered, and the life of a profile with the real application."""

import asyncio
import copy
import json
import uuid
from datetime import UTC, datetime

import httpx
import pytest

import horarium
from horarium.api import profile_examples as examples
from horarium.catalog import Catalog
from horarium.client import OutcomeUnknown, codes
from tests.api.house import HUMAN, OPERATOR, PROGRAM, Api, let_workers_beat
from tests.api.profile_house import CRON, furnish_profiles, submission

from .wire import SCOPE, Server

ROOT = "/v1/agent-classes"
ONE = f"{ROOT}/Triage/profiles/support"
HERE = "org_id=acme&environment_id=test"
RECEIPT = examples.receipt("profile_save", enabled=True, ended_generation=None)
CALLS = {
    "classes": (lambda c: c.profiles.classes(SCOPE), examples.CLASSES, "GET", f"{ROOT}?{HERE}&limit=25", None),
    "some classes": (
        lambda c: c.profiles.classes(SCOPE, is_conversational=False, is_schedulable=True, limit=5, after="Chat"),
        examples.CLASSES,
        "GET",
        f"{ROOT}?{HERE}&is_conversational=false&is_schedulable=true&limit=5&after=Chat",
        None,
    ),
    "class": (
        lambda c: c.profiles.get_class(SCOPE, "Tri/age"),
        examples.CLASS,
        "GET",
        f"{ROOT}/Tri%2Fage?{HERE}",
        None,
    ),
    "list": (
        lambda c: c.profiles.list(SCOPE, "Triage", limit=2, after="sales"),
        examples.PROFILES,
        "GET",
        f"{ROOT}/Triage/profiles?{HERE}&limit=2&after=sales",
        None,
    ),
    "get": (lambda c: c.profiles.get(SCOPE, "Triage", "support"), examples.PROFILE, "GET", f"{ONE}?{HERE}", None),
    "save": (
        lambda c: c.profiles.save(SCOPE, "Triage", "support", examples.SUBMISSION, "k 1"),
        RECEIPT,
        "PUT",
        f"{ONE}?{HERE}",
        examples.SUBMISSION,
    ),
    "delete": (
        lambda c: c.profiles.delete(SCOPE, "Triage", "support", "k 1"),
        RECEIPT,
        "DELETE",
        f"{ONE}?{HERE}",
        None,
    ),
    "clear": (
        lambda c: c.profiles.clear(SCOPE, "Triage", "support", "k 1"),
        RECEIPT,
        "DELETE",
        f"{ONE}/cron?{HERE}",
        None,
    ),
    "trigger": (
        lambda c: c.profiles.trigger(SCOPE, "Triage", "support", "k 1"),
        RECEIPT,
        "POST",
        f"{ONE}/CronStartEvent?{HERE}",
        {"event": {}},
    ),
    "trigger by another event": (
        lambda c: c.profiles.trigger(SCOPE, "Triage", "support", "k 1", start_event="Sweep", event={"folder": "a"}),
        RECEIPT,
        "POST",
        f"{ONE}/Sweep?{HERE}",
        {"event": {"folder": "a"}},
    ),
    "thread": (
        lambda c: c.profiles.thread(SCOPE, "Triage", "support", after=6),
        examples.THREAD,
        "GET",
        f"{ONE}/thread?{HERE}&limit=100&after=6",
        None,
    ),
}
MUTATIONS = ("save", "clear", "delete", "trigger", "trigger by another event")


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_one_request_with_the_key_of_a_mutation(name):
    call, answer, method, target, body = CALLS[name]
    server = Server(answer)
    asyncio.run(call(server.client("abc.def")))
    sent = server.only
    assert (sent.method, sent.url.raw_path.decode()) == (method, target)
    assert (json.loads(sent.content) if sent.content else None) == body
    assert sent.headers["Authorization"] == "Bearer abc.def"
    assert sent.headers.get("Idempotency-Key") == ("k 1" if name in MUTATIONS else None)
    assert sent.headers.get("Content-Type") == (None if body is None else "application/json")


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_whose_answer_is_lost_is_sent_once_and_its_outcome_unknown(name):
    def lose(_request: httpx.Request) -> httpx.Response:
        raise httpx.ReadError("reset")

    server = Server(lose)
    with pytest.raises(OutcomeUnknown) as unknown:
        asyncio.run(CALLS[name][0](server.client()))
    assert len(server.requests) == 1
    assert unknown.value.key == "k 1"
    assert unknown.value.request == (CALLS[name][4] or {})


def test_a_submission_is_copied_before_the_token_is_awaited():
    server, request = Server(RECEIPT), copy.deepcopy(submission())
    before = copy.deepcopy(request)

    async def live() -> None:
        call = server.client().profiles.save(SCOPE, "Triage", "support", request, "k")
        request["config"]["cron"]["minute"] = "*"
        await call

    asyncio.run(live())
    assert json.loads(server.only.content) == before


def test_answers_are_typed():
    profile = asyncio.run(CALLS["get"][0](Server(examples.PROFILE).client()))
    assert (profile.state, profile.cron["minute"], profile.next_due) == (
        "enabled",
        "30",
        datetime(2027, 2, 1, 6, 30, tzinfo=UTC),
    )
    (found,) = asyncio.run(CALLS["classes"][0](Server(examples.CLASSES).client())).agent_classes
    assert (found.agent_class, found.is_schedulable, found.offline_since) == ("Triage", True, None)
    thread = asyncio.run(CALLS["thread"][0](Server(examples.THREAD).client()))
    assert [each.kind for each in thread.events] == ["run_started"]


@pytest.fixture(scope="module", autouse=True)
def _furnished(catalog: Catalog) -> None:
    furnish_profiles(catalog)


def client(api: Api, token: str = HUMAN) -> horarium.Client:
    let_workers_beat(api.catalog)
    return horarium.Client("http://api.test", token=token, transport=httpx.ASGITransport(api.app))


def key() -> str:
    return str(uuid.uuid4())


def test_a_profile_is_saved_run_cleared_and_deleted(api):
    async def live() -> None:
        async with client(api) as us:
            found = {each.agent_class: each for each in (await us.profiles.classes(SCOPE)).agent_classes}
            assert found["Triage"].is_schedulable
            assert (await us.profiles.get_class(SCOPE, "Triage")).form[-1]["name"] == "cron"
            saved = await us.profiles.save(SCOPE, "Triage", "support", submission(), key())
            assert (saved.operation, saved.enabled) == ("profile_save", True)
            profile = await us.profiles.get(SCOPE, "Triage", "support")
            assert (profile.state, profile.cron) == ("enabled", CRON)
            assert [each.agent_id async for each in us.profiles.iterate(SCOPE, "Triage")] == ["support"]
            run = await us.profiles.trigger(
                SCOPE, "Triage", "support", key(), start_event="Sweep", event={"folder": "Old"}
            )
            assert run.run_id is not None
            cleared = await us.profiles.clear(SCOPE, "Triage", "support", key())
            assert (cleared.operation, cleared.enabled) == ("profile_clear", False)
            assert (await us.profiles.delete(SCOPE, "Triage", "support", key())).operation == "profile_delete"

    api.run(live())


def test_a_scope_of_another_organization_changes_nothing_in_that_of_the_token(api):
    """Both have an environment of this name, and the token would be let into its own."""
    elsewhere = {**SCOPE, "org_id": "globex"}

    async def live() -> None:
        async with client(api) as us:
            await us.profiles.save(SCOPE, "Triage", "support", submission(), key())
            for call in (
                us.profiles.save(elsewhere, "Triage", "support", submission(cron=None), key()),
                us.profiles.delete(elsewhere, "Triage", "support", key()),
                us.profiles.trigger(elsewhere, "Triage", "support", key()),
                us.profiles.get(elsewhere, "Triage", "support"),
                us.profiles.classes(elsewhere),
            ):
                with pytest.raises(codes.EnvironmentNotFound):
                    await call
            profile = await us.profiles.get(SCOPE, "Triage", "support")
            assert (profile.state, profile.cron) == ("enabled", CRON)

    api.run(live())


def test_refusals_arrive_as_classes_of_their_own(api):
    async def live() -> None:
        async with client(api) as us, client(api, PROGRAM) as program, client(api, OPERATOR) as operator:
            with pytest.raises(codes.InvalidProfile) as invalid:
                await us.profiles.save(
                    SCOPE, "Triage", "sales", submission(cron={**CRON, "minute": "61", "hour": "x"}), key()
                )
            assert {fault.pointer for fault in invalid.value.faults} == {"/config/cron/minute", "/config/cron/hour"}
            for call, kind in (
                (us.profiles.get_class(SCOPE, "Nobody"), codes.AgentClassNotFound),
                (us.profiles.get(SCOPE, "Triage", "nobody"), codes.ProfileNotFound),
                (
                    us.profiles.save(SCOPE, "Assistant", "desk", {"config": {"cron": CRON}}, key()),
                    codes.AgentClassNotSchedulable,
                ),
                (us.profiles.save(SCOPE, "Triage", "unbound", submission(), key()), codes.BindingMissing),
                (program.profiles.save(SCOPE, "Triage", "sales", submission(), key()), codes.HumanSessionRequired),
                (us.profiles.thread(SCOPE, "Triage", "sales"), codes.ScopeMissing),
                (operator.profiles.thread(SCOPE, "Triage", "sales"), codes.ThreadNotFound),
            ):
                with pytest.raises(kind):
                    await call
            await us.profiles.save(SCOPE, "Triage", "sales", submission(), key())
            with pytest.raises(codes.StartEventNotFound):
                await us.profiles.trigger(SCOPE, "Triage", "sales", key(), start_event="UserMessageEvent")

    api.run(live())
