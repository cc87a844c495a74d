"""`client.v0`: what is sent, what is answered, and the life of a schedule with the real application."""

import asyncio
import copy
import json
import uuid

import httpx
import pytest

import horarium
from horarium.api import v0_examples as examples
from horarium.client import OutcomeUnknown, codes
from tests.api.house import HUMAN, PROGRAM, STRANGER, let_workers_beat
from tests.api.v0_house import FAR_OFF, NOBODY, bind
from tests.schedule.test_v0 import CRON, ONE_SHOT

from .wire import SCHEDULE, SCOPE, Server

ROOT = "/v0/schedules"
HERE = "org_id=acme&environment_id=test"
RECEIPT = examples.changed("v0_create", generation=1, enabled=True, ended=None) | {"replayed": False}
CALLS = {
    "create": (lambda c: c.v0.create(SCOPE, CRON, "k 1"), RECEIPT, "POST", f"{ROOT}?{HERE}", CRON),
    "update": (
        lambda c: c.v0.update(SCOPE, SCHEDULE, ONE_SHOT, "k 1"),
        RECEIPT,
        "PUT",
        f"{ROOT}/{SCHEDULE}?{HERE}",
        ONE_SHOT,
    ),
    "pause": (lambda c: c.v0.pause(SCOPE, SCHEDULE, "k 1"), RECEIPT, "POST", f"{ROOT}/{SCHEDULE}/pause?{HERE}", None),
    "resume": (
        lambda c: c.v0.resume(SCOPE, SCHEDULE, "k 1"),
        RECEIPT,
        "POST",
        f"{ROOT}/{SCHEDULE}/resume?{HERE}",
        None,
    ),
    "disable": (
        lambda c: c.v0.disable(SCOPE, SCHEDULE, "k 1"),
        RECEIPT,
        "POST",
        f"{ROOT}/{SCHEDULE}/disable?{HERE}",
        None,
    ),
    "get": (lambda c: c.v0.get(SCOPE, SCHEDULE), examples.SHOWN, "GET", f"{ROOT}/{SCHEDULE}?{HERE}", None),
    "a strange id": (lambda c: c.v0.get(SCOPE, "a/b?c"), examples.SHOWN, "GET", f"{ROOT}/a%2Fb%3Fc?{HERE}", None),
    "list": (lambda c: c.v0.list(SCOPE), examples.DIRECTORY, "GET", f"{ROOT}?{HERE}&limit=25", None),
    "list the next page": (
        lambda c: c.v0.list(SCOPE, limit=2, after=SCHEDULE),
        examples.DIRECTORY,
        "GET",
        f"{ROOT}?{HERE}&limit=2&after={SCHEDULE}",
        None,
    ),
    "events": (
        lambda c: c.v0.events(SCOPE, SCHEDULE, after=6),
        examples.EVENTS,
        "GET",
        f"{ROOT}/{SCHEDULE}/events?{HERE}&limit=100&after=6",
        None,
    ),
}
MUTATIONS = ("create", "update", "pause", "resume", "disable")


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_one_request_and_the_key_is_that_of_a_mutation(name):
    call, answer, method, target, body = CALLS[name]
    server = Server(answer)
    asyncio.run(call(server.client("abc.def")))
    sent = server.only
    assert (sent.method, sent.url.raw_path.decode()) == (method, target)
    assert (json.loads(sent.content) if sent.content else None) == body
    assert sent.headers.get("Idempotency-Key") == ("k 1" if name in MUTATIONS else None)


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_whose_answer_is_lost_is_sent_once_and_its_outcome_unknown(name):
    call, _, _, _, body = CALLS[name]

    def lose(_request):
        raise httpx.ReadError("reset")

    server = Server(lose)
    with pytest.raises(OutcomeUnknown) as unknown:
        asyncio.run(call(server.client()))
    assert len(server.requests) == 1
    assert (unknown.value.key, unknown.value.request) == ("k 1", body or {})


@pytest.mark.parametrize("name", ["create", "update"])
def test_a_document_is_copied_before_the_token_is_awaited(name):
    document = copy.deepcopy(CRON)
    server = Server(RECEIPT)

    async def live():
        given = asyncio.Event()

        async def token():
            await given.wait()
            return "late"

        us = server.client(token).v0
        parts = (SCHEDULE, document) if name == "update" else (document,)
        call = asyncio.create_task(getattr(us, name)(SCOPE, *parts, "k"))
        document["target"]["agent_id"] = "another"
        given.set()
        await call

    asyncio.run(live())
    assert json.loads(server.only.content) == CRON


def client(api, token=HUMAN, **options):
    let_workers_beat(api.catalog)
    options.setdefault("transport", httpx.ASGITransport(api.app))
    return horarium.Client("http://api.test", token=token, **options)


def key():
    return str(uuid.uuid4())


@pytest.fixture
def bound(api):
    bind(api.catalog)
    return api


def test_a_schedule_is_created_read_updated_paused_resumed_and_disabled(bound):
    async def live():
        async with client(bound) as us:
            created = await us.v0.create(SCOPE, CRON, key())
            found = await us.v0.get(SCOPE, created.schedule_id)
            assert (found.schedule, found.state, found.reference) == (CRON, "enabled", created.reference)
            updated = await us.v0.update(SCOPE, created.schedule_id, FAR_OFF, key())
            assert (updated.generation, updated.enabled, updated.reference.revision) == (2, True, 2)
            paused = await us.v0.pause(SCOPE, created.schedule_id, key())
            resumed = await us.v0.resume(SCOPE, created.schedule_id, key())
            assert (paused.enabled, resumed.enabled) == (False, True)
            disabled = await us.v0.disable(SCOPE, created.schedule_id, key())
            assert disabled.operation == "v0_disable"
            assert (await us.v0.get(SCOPE, created.schedule_id)).state == "disabled"
            events = await us.v0.events(SCOPE, created.schedule_id)
            assert [each.kind for each in events.events if each.kind.isupper()] == [
                "SCHEDULE_CREATED",
                "SCHEDULE_UPDATED",
                "SCHEDULE_PAUSED",
                "SCHEDULE_RESUMED",
                "SCHEDULE_DISABLED",
            ]
            assert events.events[1].details["receipt_id"] == created.receipt_id

    bound.run(live())


def test_a_one_shot_that_has_passed_is_told_by_its_receipt(bound):
    async def live():
        async with client(bound) as us:
            created = await us.v0.create(SCOPE, ONE_SHOT, key())
            assert (created.enabled, len(created.warnings)) == (False, 1)
            found = await us.v0.get(SCOPE, created.schedule_id)
            assert (found.state, found.reason.partition(":")[0]) == ("review", "calendar_exhausted")

    bound.run(live())


def test_all_schedules_of_the_contract_are_walked(bound):
    async def live():
        async with client(bound) as us:
            made = {(await us.v0.create(SCOPE, CRON, key())).schedule_id for _ in range(3)}
            listed = [each.schedule_id async for each in us.v0.iterate(SCOPE)]
            assert (made <= set(listed), listed) == (True, sorted(set(listed)))
            page = await us.v0.list(SCOPE, limit=1)
            assert (page.schedules[0].schedule_id, page.next_cursor) == (listed[0], listed[0])
            following = await us.v0.list(SCOPE, limit=1, after=page.next_cursor)
            assert following.schedules[0].schedule_id == listed[1]

    bound.run(live())


def test_all_pages_are_walked_to_their_end():
    pages = iter([{**examples.DIRECTORY, "next_cursor": SCHEDULE}, examples.DIRECTORY])
    server = Server(lambda _: httpx.Response(200, json=next(pages)))

    async def live():
        return [each.schedule_id async for each in server.client().v0.iterate(SCOPE)]

    assert len(asyncio.run(live())) == 2
    assert [each.url.params.get("after") for each in server.requests] == [None, SCHEDULE]


def test_refusals_arrive_as_classes_of_their_own(bound):
    async def live():
        async with client(bound) as us, client(bound, PROGRAM) as program, client(bound, STRANGER) as stranger:
            schedule_id = (await us.v0.create(SCOPE, FAR_OFF, key())).schedule_id
            with pytest.raises(codes.BindingMissing):
                await us.v0.create(SCOPE, NOBODY, key())
            with pytest.raises(codes.NotPaused):
                await us.v0.resume(SCOPE, schedule_id, key())
            with pytest.raises(codes.RunAtPassed):
                await us.v0.update(SCOPE, schedule_id, ONE_SHOT, key())
            with pytest.raises(codes.InvalidDocument) as invalid:
                await us.v0.create(SCOPE, {**CRON, "target": {"session_id": "s"}}, key())
            assert [each.pointer for each in invalid.value.faults] == [
                "/target/workspace_id",
                "/target/agent_id",
                "/target/session_id",
            ]
            with pytest.raises(codes.HumanSessionRequired):
                await program.v0.pause(SCOPE, schedule_id, key())
            with pytest.raises(codes.EnvironmentNotFound):
                await stranger.v0.get(SCOPE, schedule_id)
            with pytest.raises(codes.ScheduleNotFound):
                await stranger.v0.get({**SCOPE, "org_id": "globex"}, schedule_id)
            with pytest.raises(codes.EnvironmentNotFound):
                await us.v0.list({**SCOPE, "environment_id": "nowhere"})

    bound.run(live())


def test_a_scope_of_another_organization_changes_nothing_in_that_of_the_token(bound):
    """Both have an environment of this name, and the token would be let into its own."""
    elsewhere = {**SCOPE, "org_id": "globex"}

    async def live():
        async with client(bound) as us:
            schedule_id = (await us.v0.create(SCOPE, FAR_OFF, key())).schedule_id
            before = [each.schedule_id async for each in us.v0.iterate(SCOPE)]
            for call in (
                us.v0.create(elsewhere, FAR_OFF, key()),
                us.v0.update(elsewhere, schedule_id, CRON, key()),
                us.v0.pause(elsewhere, schedule_id, key()),
                us.v0.disable(elsewhere, schedule_id, key()),
                us.v0.list(elsewhere),
            ):
                with pytest.raises(codes.EnvironmentNotFound):
                    await call
            assert [each.schedule_id async for each in us.v0.iterate(SCOPE)] == before
            assert (await us.v0.get(SCOPE, schedule_id)).generation == 1

    bound.run(live())


def test_a_lost_answer_is_recovered_by_the_same_key_and_document(bound):
    class Lossy(httpx.AsyncBaseTransport):
        """Carries every request, and loses the first answer."""

        def __init__(self):
            self.inner, self.lost = httpx.ASGITransport(bound.app), False

        async def handle_async_request(self, request):
            answer = await self.inner.handle_async_request(request)
            if not self.lost:
                self.lost = True
                raise httpx.ReadError("reset")
            return answer

    async def live():
        async with client(bound, transport=Lossy()) as us:
            mine = key()
            with pytest.raises(OutcomeUnknown) as unknown:
                await us.v0.create(SCOPE, CRON, mine)
            again = await us.v0.create(SCOPE, unknown.value.request, unknown.value.key)
            assert again.replayed
            assert (await us.receipts.get(SCOPE, mine)).schedule_id == again.schedule_id

    bound.run(live())
