"""How calls fail: a class for each code, and a mutation whose outcome is unknown."""

import asyncio
import pickle
import re
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import httpx
import pytest

import horarium
from horarium.client import OutcomeUnknown, Problem, UnexpectedAnswer, Unreachable, codes, problems
from horarium.errors import Conflict, Fault, HorariumError, NotFound, Refused

from .test_requests import CALLS, MUTATIONS
from .wire import CHANGE, ENVIRONMENT, PUBLICATION, RECEIPT, SCHEDULE, SCOPE, Server, raising


def failing(status, document, headers=None):
    with pytest.raises(HorariumError) as failed:
        asyncio.run(Server(document, status=status, headers=headers).client().schedules.get(SCOPE, SCHEDULE))
    return failed.value


@pytest.mark.parametrize("code", sorted(problems.BY_CODE))
def test_each_code_has_a_class_of_its_own_below_the_class_of_its_status(code):
    kind = problems.BY_CODE[code]
    error = failing(kind.status, {"code": code, "detail": "No.", "next_step": "Do this."})
    assert type(error) is kind
    assert (error.code, error.status, str(error)) == (code, kind.status, f"No. [{code}] Do this.")
    assert isinstance(error, problems.BY_STATUS[kind.status])
    assert isinstance(error, Problem | Refused)
    assert getattr(codes, kind.__name__) is kind, "it can be imported by its name"
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.status) == (kind, str(error), kind.status)


def test_no_two_codes_share_a_class():
    assert len(set(problems.BY_CODE.values())) == len(problems.BY_CODE)


UNKNOWN = {
    400: problems.BadRequest,
    401: problems.Unauthenticated,
    403: problems.Forbidden,
    404: problems.NotFound,
    409: problems.Conflict,
    413: problems.TooLarge,
    418: problems.BadRequest,
    422: problems.Invalid,
    429: problems.TooManyRequests,
    500: problems.ServerFailed,
    503: problems.Unavailable,
    507: problems.ServerFailed,
}


@pytest.mark.parametrize(("status", "kind"), UNKNOWN.items())
def test_a_code_of_a_newer_server_has_the_class_of_its_status(status, kind):
    error = failing(status, {"code": "invented_later", "title": "Strange"})
    assert type(error) is kind
    assert (error.code, error.status) == ("invented_later", status)


def test_whoever_catches_the_errors_of_the_library_catches_those_of_the_server():
    assert issubclass(codes.RevisionConflict, Conflict)
    assert issubclass(codes.ScheduleNotFound, NotFound)
    assert all(issubclass(kind, problems.ClientError) for kind in problems.BY_CODE.values())


def test_all_faults_of_a_document_are_told_with_their_places():
    listed = [
        {"pointer": "/configuration/policy", "code": "required", "detail": "A policy is required."},
        {"pointer": "/expected_revision", "code": "not_an_integer", "detail": "An integer was expected."},
    ]
    error = failing(422, {"code": "invalid_schedule", "detail": "There are 2 faults.", "errors": listed})
    assert error.faults == tuple(Fault(each["pointer"], each["code"], each["detail"]) for each in listed)
    assert all(each["detail"] in str(error) and each["pointer"] in str(error) for each in listed)
    assert pickle.loads(pickle.dumps(error)).faults == error.faults


def test_enabling_tells_every_objection():
    sentences = ["There is no input 'mail'.", "No agent is registered."]
    evidence = [{"input": "mail"}, {"agent_version": "triage@3"}]
    listed = [
        {"pointer": "", "code": code, "detail": sentence, "evidence": looked_at}
        for code, sentence, looked_at in zip(("input_unreadable", "agent_missing"), sentences, evidence, strict=True)
    ]
    error = failing(409, {"code": "input_unreadable", "detail": " ".join(sentences), "errors": listed})
    assert isinstance(error, problems.NotAdmissible)
    assert [fault.code for fault in error.faults] == ["input_unreadable", "agent_missing"]
    assert error.objections == tuple(
        {"code": code, "sentence": sentence, "evidence": looked_at}
        for code, sentence, looked_at in zip(("input_unreadable", "agent_missing"), sentences, evidence, strict=True)
    )
    assert str(error).count(sentences[1]) == 1
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.objections) == (type(error), str(error), error.objections)


def test_the_wait_that_the_server_asks_for_is_told():
    assert failing(429, {"code": "rate_limited"}, {"Retry-After": "7"}).retry_after == timedelta(seconds=7)
    assert failing(503, {"code": "catalog_unavailable"}).retry_after is None
    assert failing(503, {"code": "catalog_unavailable"}, {"Retry-After": "soon"}).retry_after is None
    later = datetime.now(UTC) + timedelta(seconds=60)
    dated = failing(503, {"code": "catalog_unavailable"}, {"Retry-After": later.strftime("%a, %d %b %Y %H:%M:%S GMT")})
    assert timedelta(seconds=50) < dated.retry_after <= timedelta(seconds=60)


SENT = {
    "read timeout": lambda: httpx.ReadTimeout("slow"),
    "reset": lambda: httpx.ReadError("reset"),
    "closed": lambda: httpx.RemoteProtocolError("closed"),
    "write failed": lambda: httpx.WriteError("broken pipe"),
    "bad encoding": lambda: httpx.DecodingError("gzip"),
}


@pytest.mark.parametrize("error", SENT.values(), ids=SENT)
@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_whose_answer_is_lost_is_sent_once_and_its_outcome_unknown(name, error):
    call, _, _, _, body = CALLS[name]
    server = Server(raising(error))
    with pytest.raises(OutcomeUnknown) as unknown:
        asyncio.run(call(server.client()))
    assert len(server.requests) == 1
    assert (unknown.value.key, unknown.value.request) == ("k 1", body)
    for advice in ("Keep the key 'k 1'", "Inspect the current state", "retry the same body and key explicitly"):
        assert advice in str(unknown.value)
    again = pickle.loads(pickle.dumps(unknown.value))
    assert (again.key, again.request, str(again)) == ("k 1", body, str(unknown.value))


@pytest.mark.parametrize("error", SENT.values(), ids=SENT)
def test_a_read_whose_answer_is_lost_is_not_repeated_either(error):
    server = Server(raising(error))
    with pytest.raises(Unreachable, match="changes nothing"):
        asyncio.run(server.client().schedules.get(SCOPE, SCHEDULE))
    assert len(server.requests) == 1


@pytest.mark.parametrize("error", [httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout])
def test_a_mutation_that_was_never_sent_is_no_uncertain_one(error):
    server = Server(raising(lambda: error("refused")))
    with pytest.raises(Unreachable, match="nothing was sent"):
        asyncio.run(server.client().schedules.publish(SCOPE, PUBLICATION, "k"))


AFTERWARDS = {
    "our own failure": (500, {"code": "internal_error", "detail": "Oops."}),
    "a catalog that was lost at the commit": (500, {"code": "commit_lost", "detail": "Who knows."}),
    "a gateway's page": (502, "<html>"),
    "a gateway's timeout": (504, {"message": "upstream"}),
    "a gateway's maintenance": (503, "<html>"),
    "a receipt that cannot be read": (201, {"receipt": "?"}),
    "an empty success": (204, None),
}


@pytest.mark.parametrize(("status", "answer"), AFTERWARDS.values(), ids=AFTERWARDS)
def test_an_answer_that_says_nothing_about_the_change_leaves_it_unknown(status, answer):
    server = Server(answer, status=status)
    with pytest.raises(OutcomeUnknown):
        asyncio.run(server.client().schedules.publish(SCOPE, PUBLICATION, "k"))
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [302, 400, 404])
def test_a_foreign_refusal_of_a_mutation_is_told_as_that(status):
    with pytest.raises(UnexpectedAnswer):
        asyncio.run(Server("<html>", status=status).client().schedules.publish(SCOPE, PUBLICATION, "k"))


def test_a_refusal_by_the_server_is_no_uncertain_outcome():
    answer = {"code": "catalog_unavailable", "detail": "The catalog does not answer."}
    with pytest.raises(codes.CatalogUnavailable):
        asyncio.run(Server(answer, status=503).client().schedules.publish(SCOPE, PUBLICATION, "k"))


@asynccontextmanager
async def socket_server(behave):
    """A server on a real socket that counts the requests it has read, and then does as `behave` says."""
    read: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
            read.append(head + await reader.readexactly(int(length[1]) if length else 0))
            await behave(writer)
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", read


async def drop(_writer: asyncio.StreamWriter) -> None:
    """Read the request and say nothing."""


async def half(writer: asyncio.StreamWriter) -> None:
    writer.write(b'HTTP/1.1 201 Created\r\nContent-Length: 500\r\nContent-Type: application/json\r\n\r\n{"receipt')
    await writer.drain()


async def drip(writer: asyncio.StreamWriter) -> None:
    """Never silent for long, and never done: a limit between two bytes would not end this."""
    writer.write(b"HTTP/1.1 201 Created\r\nContent-Length: 500000\r\n\r\n")
    for _ in range(2_000):
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("behave", [drop, half, drip])
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # the dripping server is left in the middle of its answer
def test_a_server_that_drops_its_response_has_seen_exactly_one_request(behave):
    async def live() -> int:
        async with (
            socket_server(behave) as (address, read),
            horarium.Client(address, token="t", answer_within=timedelta(seconds=3)) as client,
        ):
            with pytest.raises(OutcomeUnknown):
                await client.schedules.publish(SCOPE, PUBLICATION, "k")
            await asyncio.sleep(0.3)  # whoever retried behind our back would do it now
            return len(read)

    assert asyncio.run(live()) == 1


def test_a_mutation_that_is_cancelled_was_sent_once_and_raises_nothing_of_ours():
    async def live() -> int:
        arrived = asyncio.Event()

        async def wait(_writer: asyncio.StreamWriter) -> None:
            arrived.set()
            await asyncio.sleep(5)

        async with socket_server(wait) as (address, read):
            async with horarium.Client(address, token="t") as client:
                call = asyncio.create_task(client.schedules.publish(SCOPE, PUBLICATION, "k"))
                await arrived.wait()
                call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await call
            await asyncio.sleep(0.1)
            return len(read)

    assert asyncio.run(live()) == 1


def test_nobody_listening_is_told_with_the_address():
    async def live() -> None:
        async with socket_server(drop) as (address, _):
            pass
        async with horarium.Client(address, token="t") as client:
            with pytest.raises(Unreachable, match=f"{address} does not answer"):
                await client.schedules.retire(SCOPE, CHANGE, "k")

    asyncio.run(live())


def test_the_time_that_a_call_may_take_does_not_include_the_token():
    async def token() -> str:
        await asyncio.sleep(2.1)
        return "t"

    client = Server(ENVIRONMENT).client(token, answer_within=timedelta(seconds=2))
    assert asyncio.run(client.environments.get(SCOPE)).mode == "simulation"


def test_one_receipt_replayed_is_told_as_replayed():
    receipt = asyncio.run(Server({**RECEIPT, "replayed": True}).client().receipts.get(SCOPE, "k"))
    assert receipt.replayed
