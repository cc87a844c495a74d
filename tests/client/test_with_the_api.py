"""The client against the real application: the life of a schedule, its refusals, and a lost answer."""

import ast
import uuid
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

import horarium
from horarium.client import OutcomeUnknown, codes, problems
from tests.api.house import HUMAN, PROGRAM, STRANGER, Api, let_workers_beat
from tests.control.desk import every

from .wire import SCOPE

EXPECTED = {"expected_environment_epoch": 1, "expected_reset_generation": 1}


def client(api: Api, token: str = HUMAN, *, transport: httpx.AsyncBaseTransport | None = None) -> horarium.Client:
    let_workers_beat(api.catalog)
    return horarium.Client("http://api.test", token=token, transport=transport or httpx.ASGITransport(api.app))


def publication(*, revision: int = 0, schedule_id: str | None = None) -> dict:
    return {
        "schedule_id": schedule_id or str(uuid.uuid4()),
        "expected_revision": revision,
        **EXPECTED,
        "configuration": every(60),
    }


def key() -> str:
    return str(uuid.uuid4())


def reviewed(record, **more) -> dict:
    generation = 0 if record.activation is None else record.activation.generation
    return {"version": record.reference.as_document(), "expected_generation": generation, **EXPECTED, **more}


def test_a_schedule_is_published_reviewed_enabled_run_paused_and_retired(api):
    async def live() -> None:
        async with client(api) as us:
            environment = await us.environments.get(SCOPE)
            assert (environment.authority_epoch, environment.reset_generation, environment.execution_ready) == (
                1,
                1,
                True,
            )
            request = publication()
            published = await us.schedules.publish(SCOPE, request, key())
            record = await us.schedules.get_version(SCOPE, published.resource_id)
            assert record.configuration == request["configuration"]
            assert (record.activation, record.runtime.state, record.runtime.generation) == (None, "paused", 0)

            enabled = await us.schedules.set_enabled(SCOPE, reviewed(record, enabled=True), key())
            assert (enabled.generation, enabled.enabled, enabled.reference) == (1, True, record.reference)
            again = await us.schedules.publish(SCOPE, publication(revision=1, schedule_id=record.schedule_id), key())
            head = await us.schedules.get(SCOPE, record.schedule_id)
            assert (head.reference.revision, head.activation.version.revision) == (2, 1)
            assert (await us.schedules.get(SCOPE, record.schedule_id, revision=1)).reference == record.reference
            assert again.reference == head.head

            active = await us.schedules.get(SCOPE, record.schedule_id, revision=1)
            run = await us.schedules.trigger(SCOPE, reviewed(active), key())
            (line,) = (await us.schedules.occurrences(SCOPE, record.schedule_id, generation=1)).occurrences
            assert (line.disposition, line.run_id, line.triggered_by) == ("staged", run.run_id, "ada")
            assert line.first_at == run.nominal_time

            paused = await us.schedules.set_enabled(SCOPE, reviewed(active, enabled=False), key())
            assert (paused.generation, paused.enabled) == (2, False)
            retired = await us.schedules.retire(
                SCOPE, reviewed(await us.schedules.get(SCOPE, record.schedule_id, revision=1)), key()
            )
            assert retired.operation == "retire"
            events = await us.schedules.events(SCOPE, record.schedule_id)
            assert [each.kind for each in events.events] == [
                "published",
                "enabled",
                "published",
                "triggered",
                "paused",
                "retired",
            ]

    api.run(live())


def test_a_program_publishes_and_reads_and_does_nothing_more(api):
    async def live() -> None:
        async with client(api, PROGRAM) as us:
            published = await us.schedules.publish(SCOPE, publication(), key())
            record = await us.schedules.get_version(SCOPE, published.resource_id)
            for change in (
                us.schedules.set_enabled(SCOPE, reviewed(record, enabled=True), key()),
                us.schedules.retire(SCOPE, reviewed(record), key()),
                us.schedules.trigger(SCOPE, reviewed(record), key()),
            ):
                with pytest.raises(codes.HumanSessionRequired):
                    await change

    api.run(live())


def test_refusals_arrive_as_classes_of_their_own(api):
    async def live() -> None:
        async with client(api) as us, client(api, STRANGER) as stranger, client(api, "no.such.token") as nobody:
            record = await us.schedules.get_version(
                SCOPE, (await us.schedules.publish(SCOPE, publication(), key())).resource_id
            )
            with pytest.raises(codes.RevisionConflict):
                await us.schedules.publish(SCOPE, publication(schedule_id=record.schedule_id), key())
            with pytest.raises(codes.GenerationConflict):
                await us.schedules.set_enabled(
                    SCOPE, {**reviewed(record, enabled=True), "expected_generation": 3}, key()
                )
            with pytest.raises(codes.AlreadyPaused):
                await us.schedules.set_enabled(SCOPE, reviewed(record, enabled=False), key())
            with pytest.raises(codes.NotEnabled):
                await us.schedules.trigger(SCOPE, reviewed(record), key())
            with pytest.raises(codes.EnvironmentEpochChanged):
                await us.schedules.retire(SCOPE, {**reviewed(record), "expected_environment_epoch": 7}, key())
            with pytest.raises(codes.InvalidDocument) as invalid:
                await us.schedules.publish(SCOPE, {**publication(), "configuration": {"name": ""}}, key())
            assert {fault.pointer for fault in invalid.value.faults} >= {
                "/configuration/name",
                "/configuration/calendar",
            }
            api.content.readable = api.content.writable = False
            with pytest.raises(problems.NotAdmissible) as objections:
                await us.schedules.set_enabled(SCOPE, reviewed(record, enabled=True), key())
            assert [fault.code for fault in objections.value.faults] == ["input_unreadable", "output_missing"]
            unreadable, missing = (each["evidence"] for each in objections.value.objections)
            assert (unreadable["input"], missing["output_target"]) == ("in", "out")
            with pytest.raises(codes.ScheduleNotFound):
                await us.schedules.get(SCOPE, str(uuid.uuid4()))
            with pytest.raises(codes.ReceiptNotFound):
                await us.receipts.get(SCOPE, "never used")
            with pytest.raises(codes.EnvironmentNotFound):
                await stranger.schedules.get(SCOPE, record.schedule_id)
            with pytest.raises(codes.NotAuthenticated):
                await nobody.environments.get(SCOPE)

    api.run(live())


class Lossy(httpx.AsyncBaseTransport):
    """Carries requests to the application, and loses the answer or the request of the next mutation."""

    def __init__(self, api: Api, *, answer: bool) -> None:
        self._inner = httpx.ASGITransport(api.app)
        self._answer = answer
        self.mutations = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if "Idempotency-Key" not in request.headers:
            return await self._inner.handle_async_request(request)
        self.mutations += 1
        if self.mutations > 1:
            return await self._inner.handle_async_request(request)
        if self._answer:
            await (await self._inner.handle_async_request(request)).aread()
        raise httpx.ReadError("reset")


@pytest.mark.parametrize("key_", ["k", "a/b c?d#e%2F&f=g", "~" * 200, "/.."])
def test_a_lost_answer_is_recovered_by_the_same_key_and_body(api, key_):
    network, mine = Lossy(api, answer=True), f"{uuid.uuid4()}"[: max(0, 200 - len(key_))] + key_

    async def live() -> None:
        async with client(api, transport=network) as us:
            request = publication()
            with pytest.raises(OutcomeUnknown) as unknown:
                await us.schedules.publish(SCOPE, request, mine)
            assert network.mutations == 1
            found = await us.receipts.get(SCOPE, unknown.value.key)
            again = await us.schedules.publish(SCOPE, unknown.value.request, unknown.value.key)
            assert again.replayed
            assert again.receipt_id == found.receipt_id
            assert (await us.schedules.get(SCOPE, request["schedule_id"])).head.revision == 1
            with pytest.raises(codes.IdempotencyKeyReused):
                await us.schedules.publish(SCOPE, publication(), mine)

    api.run(live())


def test_a_lost_request_leaves_no_receipt_and_is_done_once_when_repeated(api):
    async def live() -> None:
        async with client(api, transport=Lossy(api, answer=False)) as us:
            mine = key()
            with pytest.raises(OutcomeUnknown) as unknown:
                await us.schedules.publish(SCOPE, publication(), mine)
            with pytest.raises(codes.ReceiptNotFound):
                await us.receipts.get(SCOPE, mine)
            again = await us.schedules.publish(SCOPE, unknown.value.request, mine)
            assert not again.replayed

    api.run(live())


def test_pages_are_walked_to_their_end(api):
    async def live() -> None:
        async with client(api) as us:
            made = {(await us.schedules.publish(SCOPE, publication(), key())).schedule_id for _ in range(55)}
            listed = [each.schedule_id async for each in us.schedules.iterate(SCOPE)]
            assert made <= set(listed)
            assert listed == sorted(set(listed))
            page = await us.schedules.list(SCOPE, limit=2)
            assert [each.schedule_id for each in page.schedules] == listed[:2]
            assert page.next_cursor == listed[1]
            one = listed[0]
            await us.schedules.publish(SCOPE, publication(revision=1, schedule_id=one), key())
            first = await us.schedules.events(SCOPE, one, limit=1)
            second = await us.schedules.events(SCOPE, one, limit=1, after=first.next_cursor)
            assert [first.events[0].revision, second.events[0].revision] == [1, 2]

    api.run(live())


def test_a_preview_is_that_of_the_server(api):
    async def live() -> None:
        async with client(api) as us:
            window = {"since": datetime(2027, 1, 1, tzinfo=UTC), "until": datetime(2027, 1, 1, 0, 5, tzinfo=UTC)}
            shown = await us.schedules.preview(SCOPE, every(60), **window, limit=2)
            assert (shown.count, shown.truncated, len(shown.occurrences)) == (6, True, 2)
            assert shown.occurrences[0] == window["since"]

    api.run(live())


ELSEWHERE = {
    "invalid_schedule_id": "a path with such an id is not found, and in a body it is a fault of the document",
    "invalid_scope": "a path with such a name is not found",
    "invalid_agent_id": "a path with such an id is refused as a parameter",
    "config_invalid": "for agents",
    "already_begun": "for agents",
    "not_admitted": "for agents",
    "event_not_handled": "for agents",
    "input_too_large": "for agents",
    "bad_signature": "for agents elsewhere",
    "output_name": "for agents",
    "output_unwritable": "for agents",
    "output_too_large": "for agents",
    "too_early": "for the runs' workflow",
    "archive_damaged": "archives are made at the command line",
    "other_environment": "archives are made at the command line",
    "too_young": "archives are made at the command line",
    "audit_not_clean": "archives are made, and people erased, at the command line",
    "invalid_tombstone": "people are erased at the command line",
    "person_declared": "people are erased at the command line",
    "person_relied_on": "people are erased at the command line",
}
"""Codes of the library that no caller of the API meets, each with the reason."""
RAISED = {"Rejected", "Refused", "NotFound", "Conflict", "Unavailable", "Forbidden"}


def codes_in_the_source() -> set[str]:
    """The code of each refusal that stands in the library's source: a word among its first two arguments.

    Those of the pages aside, which a browser shows to a person.
    """
    found = {"internal_error", "misconfigured", "catalog_unavailable", "content_unavailable", "authority_unavailable"}
    library = Path(horarium.__file__).parent
    for path in library.rglob("*.py"):
        if path.is_relative_to(library / "client") or path.is_relative_to(library / "api" / "pages"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in RAISED:
                texts = [each.value for each in node.args[:2] if isinstance(each, ast.Constant)]
                found.update(each for each in texts if isinstance(each, str) and each.replace("_", "").isalpha())
    return found


def test_every_code_of_the_library_has_a_class_or_a_reason_to_have_none():
    known = set(problems.BY_CODE) | set(ELSEWHERE)
    assert codes_in_the_source() - known == set()
    assert set(ELSEWHERE) <= codes_in_the_source()


def test_every_class_is_of_a_code_that_is_raised():
    assert set(problems.BY_CODE) - set(codes.OBJECTIONS) - codes_in_the_source() == set()
