"""Notifications over a real network, on each database: heard, heard late, never heard, and heard twice, under one id."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from activities.gateway import HttpGateway, Said
from horarium.authority.signing import Keys, verify
from horarium.catalog import Catalog, endpoints
from horarium.catalog.deliveries import find_dead, list_dead, send_again
from horarium.catalog.notification_tables import deliveries, notifications
from horarium.control.notifications import endpoints_document
from horarium.schedule.ledger import Disposition, Reason
from horarium.schedule.notifications import ASKED_FOR, Kind
from starter.notifying import BEATS_AT_ONCE, KEPT, LEASE, LOOK_EVERY, Notifier
from tests.control.desk import NOON, SCOPE, Desk, Loop, every, seconds
from tests.gateway.wire import OK, SECRET, Answering, Received, Receiver, gateway, receiver, says

README = (Path(__file__).parents[2] / "README.md").read_text()
BROKEN = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n"
GONE = b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n"
MOVED = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"


@dataclass
class Scene:
    """One schedule that has just failed, a notifier, and a clock that the test turns."""

    catalog: Catalog
    now: datetime = NOON + seconds(70)
    post: Any = field(default_factory=lambda: gateway().tell)

    def __post_init__(self) -> None:
        self.desk = Desk(self.catalog)

    def notifier(self, post: Any = None) -> Notifier:
        return Notifier(self.catalog, SCOPE, lambda: self.now, post or self.post, spread=lambda: 0.0)

    def listen(self, url: str, *kinds: Kind, name: str = "pager", private: bool = True, **more: Any) -> Any:
        return self.desk.write(
            endpoints.put_endpoint,
            SCOPE,
            name,
            url=url,
            secret="HORARIUM_SECRET_TEST",
            private=private,
            kinds=kinds or ASKED_FOR,
            by="ada",
            now=NOON,
            **{"schedule_id": None, **more},
        )

    def fail(self, offset: int = 60, loop: Loop | None = None) -> Loop:
        loop = loop or self.desk.enabled(every(60))
        loop.step_at(offset - 2)
        loop.has_run(offset, ends=offset + 5, disposition=Disposition.FAILED, reason=Reason.AGENT_REPORTED_FAILURE)
        return loop

    async def turn(self, notifier: Notifier, *, after: timedelta = timedelta(0)) -> None:
        self.now += after
        await notifier.look()
        await notifier.settled()

    def states(self) -> list[tuple[str, int, int | None]]:
        def found(connection: Any) -> list[tuple[str, int, int | None]]:
            query = select(deliveries.c.state, deliveries.c.attempts, deliveries.c.last_status).order_by(
                deliveries.c.id
            )
            return [tuple(row) for row in connection.execute(query)]

        return self.desk.read(found)

    def dead(self) -> Any:
        return self.desk.read(list_dead, SCOPE, after=0, limit=10)


def ids(there: Receiver) -> list[str]:
    return [each.headers["webhook-id"] for each in there.requests]


def in_turn(*answers: bytes) -> Answering:
    left = list(answers)

    async def answering(_request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(left.pop(0) if len(left) > 1 else left[0])

    return answering


@asynccontextmanager
async def hanging() -> AsyncIterator[Receiver]:
    async def never(_request: Received, _writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(3_600)

    async with receiver(never) as there:
        yield there


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not true():  # noqa: ASYNC110 - what is waited for is at the other end of a connection
            await asyncio.sleep(0.01)


async def test_a_failure_is_told_signed_and_with_everything_that_a_person_needs(catalog):
    scene = Scene(catalog)
    async with receiver(says(OK)) as there:
        scene.listen(there.url("/hook"))
        loop = scene.fail()
        await scene.turn(scene.notifier())
    (request,) = there.requests
    assert request.line == "POST /hook HTTP/1.1"
    assert verify(request.headers, request.body, Keys((SECRET,)), now=NOON) == request.headers["webhook-id"]
    assert json.loads(request.body) == {
        "type": "failed",
        "timestamp": "2026-11-30T12:01:05Z",
        "data": {
            "org_id": "acme",
            "environment_id": "test",
            "schedule_id": scene.desk.key.schedule_id,
            "name": every(60)["name"],
            "generation": 1,
            "trigger": "schedule",
            "nominal_time": "2026-11-30T12:01:00Z",
            "last_nominal_time": "2026-11-30T12:01:00Z",
            "count": 1,
            "disposition": "failed",
            "reason": "agent_reported_failure",
            "run_id": loop.run(60).run_id,
        },
    }
    assert scene.states() == [("delivered", 1, 202)]


async def test_a_receiver_that_fails_twice_is_told_again_later_each_time_under_the_same_id(catalog):
    scene = Scene(catalog)
    async with receiver(in_turn(BROKEN, MOVED, OK)) as there:
        scene.listen(there.url())
        scene.fail()
        notifier = scene.notifier()
        await scene.turn(notifier)
        await scene.turn(notifier, after=timedelta(milliseconds=900))
        assert len(there.requests) == 1
        await scene.turn(notifier, after=timedelta(milliseconds=200))
        assert scene.states() == [("waiting", 2, 302)]
        await scene.turn(notifier, after=timedelta(milliseconds=1_900))
        assert len(there.requests) == 2
        await scene.turn(notifier, after=timedelta(milliseconds=200))
        await scene.turn(notifier, after=timedelta(days=1))
    assert len(set(ids(there))) == 1
    assert len(there.requests) == 3
    assert len({each.body for each in there.requests}) == 1
    assert scene.states() == [("delivered", 3, 202)]


def asks_for(pause: str, status: str = "503 Service Unavailable") -> bytes:
    return f"HTTP/1.1 {status}\r\nRetry-After: {pause}\r\nContent-Length: 0\r\n\r\n".encode()


@pytest.mark.parametrize(
    "busy",
    [asks_for("600"), asks_for("Mon, 30 Nov 2026 12:11:10 GMT", "429 Too Many Requests")],
    ids=["seconds", "a date"],
)
async def test_a_receiver_that_asks_to_be_left_alone_is_and_nobody_else_for_it(catalog, busy):
    scene = Scene(catalog)
    async with receiver(in_turn(busy, OK)) as there, receiver(says(OK)) as other:
        scene.listen(there.url())
        scene.listen(other.url(), name="other")
        loop = scene.fail()
        notifier = scene.notifier()
        await scene.turn(notifier)
        scene.fail(120, loop)
        for _ in range(3):
            await scene.turn(notifier, after=timedelta(seconds=199))
        await scene.turn(scene.notifier())  # whoever else tells heeds it too
        assert (len(there.requests), len(other.requests)) == (1, 2)
        (shown,) = (each for each in await documents(scene) if each["name"] == "pager")
        assert shown["last_error"].endswith("and asks to be told nothing for 600 seconds.")
        await scene.turn(notifier, after=timedelta(seconds=3))
    assert len(there.requests) == 3
    assert len(set(ids(there))) == 2
    assert {state for state, _, _ in scene.states()} == {"delivered"}


async def test_a_receiver_that_asks_for_ever_is_left_alone_for_an_hour_and_one_that_is_declared_again_at_once_told(
    catalog,
):
    scene = Scene(catalog)
    async with receiver(in_turn(asks_for("9" * 30), asks_for("9" * 30), OK)) as there:
        scene.listen(there.url())
        loop = scene.fail()
        notifier = scene.notifier()
        await scene.turn(notifier)
        await scene.turn(notifier, after=timedelta(minutes=59))
        assert len(there.requests) == 1
        await scene.turn(notifier, after=timedelta(minutes=2))
        assert len(there.requests) == 2
        scene.fail(120, loop)
        scene.listen(there.url())
        await scene.turn(notifier)
    assert len(there.requests) == 3
    assert scene.states() == [("waiting", 2, 503), ("delivered", 1, 202)]


async def documents(scene: Scene) -> list[dict[str, Any]]:
    return (await scene.catalog.read(endpoints_document, SCOPE))["endpoints"]


async def test_what_nobody_hears_for_a_day_is_a_dead_letter_that_can_be_sent_again(catalog):
    scene = Scene(catalog)
    answers = [BROKEN]
    async with receiver(lambda _request, writer: answering(writer, answers)) as there:
        scene.listen(there.url())
        scene.fail()
        notifier = scene.notifier()
        while not scene.dead():
            await scene.turn(notifier, after=timedelta(minutes=61))
        (dead,) = scene.dead()
        assert (dead.endpoint, dead.last_status, dead.last_error) == ("pager", 500, "It answered with status 500.")
        assert timedelta(hours=24) <= dead.ended_at - NOON < timedelta(hours=27)
        assert dead.attempts == len(there.requests) > 20
        before = len(there.requests)
        await scene.turn(notifier, after=timedelta(hours=2))
        assert len(there.requests) == before
        answers[0] = OK
        scene.desk.write(send_again, dead.row, now=scene.now)
        await scene.turn(notifier)
    assert scene.dead() == []
    assert scene.states() == [("delivered", 1, 202)]
    assert len(set(ids(there))) == 1


async def answering(writer: asyncio.StreamWriter, answers: list[bytes]) -> None:
    writer.write(answers[0])


async def test_whoever_dies_between_the_post_and_writing_it_down_is_followed_by_another_with_the_same_id(catalog):
    scene = Scene(catalog)
    async with receiver(says(OK)) as there:
        scene.listen(there.url())
        scene.fail()

        async def posts_and_dies(*message: Any) -> Said:
            await scene.post(*message)
            raise asyncio.CancelledError

        dying = scene.notifier(posts_and_dies)
        await dying.look()
        await until(lambda: not dying._serving)  # its task has ended
        other = scene.notifier()
        await scene.turn(other)
        assert len(there.requests) == 1
        await scene.turn(other, after=LEASE)
    assert len(there.requests) == 2
    assert len(set(ids(there))) == 1
    assert scene.states() == [("delivered", 2, 202)]


async def test_two_notifiers_at_once_send_nothing_twice(catalog):
    scene = Scene(catalog)
    async with receiver(says(OK)) as there:
        scene.listen(there.url())
        loop = scene.fail()
        for offset in range(120, 600, 60):
            scene.fail(offset, loop)
        scene.now = NOON + seconds(700)
        several = [scene.notifier() for _ in range(3)]
        await asyncio.gather(*(each.look() for each in several))
        await asyncio.gather(*(each.settled() for each in several))
    assert len(there.requests) == len(set(ids(there))) == 9


async def test_an_endpoint_that_hangs_holds_up_no_other(catalog):
    scene = Scene(catalog)
    async with hanging() as silent, receiver(says(OK)) as there:
        scene.listen(silent.url(), name="a-hangs")
        scene.listen(there.url(), name="b-hears")
        loop = scene.fail()
        notifier = scene.notifier()
        await notifier.look()
        await until(lambda: len(there.requests) == 1 and len(silent.requests) == 1)
        scene.fail(120, loop)
        scene.now = NOON + seconds(130)
        await notifier.look()
        await until(lambda: len(there.requests) == 2)
        assert len(silent.requests) == 1
        serving = asyncio.create_task(notifier.serve())
        await asyncio.sleep(0)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


async def test_what_says_that_it_is_gone_is_stopped_until_it_is_declared_again(catalog):
    scene = Scene(catalog)
    async with receiver(in_turn(GONE, OK)) as there:
        scene.listen(there.url())
        loop = scene.fail()
        notifier = scene.notifier()
        await scene.turn(notifier)
        (shown,) = scene.desk.read(endpoints_document, SCOPE)["endpoints"]
        assert shown["stopped_at"] == "2026-11-30T12:01:10Z"
        assert shown["dead"] == 1
        assert "410" in shown["stopped_because"]
        assert scene.desk.read(endpoints.listened_for, SCOPE) == frozenset()
        scene.fail(120, loop)
        scene.now = NOON + seconds(130)
        await scene.turn(notifier)
        assert len(there.requests) == 1
        scene.listen(there.url())
        (dead,) = scene.dead()
        assert scene.desk.read(find_dead, SCOPE, dead.row) is not None
        scene.desk.write(send_again, dead.row, now=scene.now)
        await scene.turn(notifier)
    assert len(there.requests) == 2


async def test_an_address_that_is_private_and_not_said_to_be_is_never_connected_to(catalog):
    scene = Scene(catalog)
    async with receiver(says(OK)) as there:
        scene.listen(f"https://127.0.0.1:{there.port}/", private=False)
        scene.fail()
        await scene.turn(scene.notifier())
        assert there.connections == 0
    ((_, _, status),) = scene.states()
    assert status is None


async def test_an_endpoint_of_one_schedule_is_told_of_no_other_and_of_nothing_else_than_it_asked_for(catalog):
    scene, other = Scene(catalog), Scene(catalog)
    async with receiver(says(OK)) as there:
        scene.listen(there.url(), Kind.FAILED, schedule_id=scene.desk.key.schedule_id)
        scene.listen(there.url(), Kind.REVIEW, name="reviews")
        scene.fail()
        other.fail()
        await scene.turn(scene.notifier())
    assert [json.loads(each.body)["data"]["schedule_id"] for each in there.requests] == [scene.desk.key.schedule_id]


async def test_a_heartbeat_that_was_not_heard_is_replaced_by_the_next(catalog):
    scene = Scene(catalog)
    async with receiver(in_turn(BROKEN, OK)) as there:
        loop = scene.desk.enabled(every(60))
        scene.listen(there.url(), Kind.HEARTBEAT, name="heartbeat:x", schedule_id=scene.desk.key.schedule_id)
        notifier = scene.notifier()
        for offset in (60, 120, 180):
            loop.step_at(offset - 2)
            loop.has_run(offset, ends=offset + 5)
            if offset != 120:
                scene.now = NOON + seconds(offset + 10)
                await scene.turn(notifier)
    said = [json.loads(each.body) for each in there.requests]
    assert [(each["type"], each["data"]["nominal_time"]) for each in said] == [
        ("heartbeat", "2026-11-30T12:01:00Z"),
        ("heartbeat", "2026-11-30T12:03:00Z"),
    ]


async def test_a_secret_that_payloads_are_encrypted_with_signs_no_message(catalog, monkeypatch):
    """Where it was declared, nobody may have known what else it is for."""
    monkeypatch.setenv("HORARIUM_SECRET_TEST", "a-secret-that-is-long-enough")
    monkeypatch.setenv("HORARIUM_PAYLOAD_KEYS", "k1=HORARIUM_SECRET_TEST")
    scene = Scene(catalog, post=HttpGateway("https://horarium.test/").tell)
    async with receiver(says(OK)) as there:
        scene.listen(there.url())
        scene.fail()
        await scene.turn(scene.notifier())
        assert there.requests == []
        (shown,) = scene.desk.read(endpoints_document, SCOPE)["endpoints"]
        assert "HORARIUM_PAYLOAD_KEYS" in shown["last_error"]
        monkeypatch.delenv("HORARIUM_PAYLOAD_KEYS")
        await scene.turn(scene.notifier(), after=timedelta(minutes=1))
        assert len(there.requests) == 1


def test_the_readme_says_how_many_heartbeats_begin_a_second():
    assert timedelta(seconds=1) == LOOK_EVERY
    assert f"at most {BEATS_AT_ONCE} of them a second" in README


async def test_many_heartbeats_that_hang_hold_up_no_endpoint(catalog, monkeypatch):
    monkeypatch.setattr("starter.notifying.BEATS_AT_ONCE", 2)
    scene = Scene(catalog)
    async with hanging() as silent, receiver(says(OK)) as there:
        for _ in range(4):
            one = Scene(catalog)
            loop = one.desk.enabled(every(60))
            schedule_id = one.desk.key.schedule_id
            one.listen(silent.url(), Kind.HEARTBEAT, name=f"heartbeat:{schedule_id}", schedule_id=schedule_id)
            loop.step_at(58)
            loop.has_run(60, ends=65)
        notifier = scene.notifier()
        await notifier.look()
        await until(lambda: len(silent.requests) == 2)
        scene.listen(there.url())
        scene.fail()
        await notifier.look()
        await until(lambda: len(there.requests) == 1)
        assert len(silent.requests) == 2
        serving = asyncio.create_task(notifier.serve())
        await asyncio.sleep(0)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


async def test_silence_is_told_once_and_the_next_success_ends_it(catalog):
    scene = Scene(catalog)
    async with receiver(says(OK)) as there:
        scene.listen(there.url(), Kind.OVERDUE, Kind.RECOVERED)
        loop = scene.desk.enabled(every(60, window=10))
        scene.now = NOON + seconds(60 + 10 + 3_600)
        notifier = scene.notifier()
        await notifier.look_for_silence()
        await scene.turn(notifier)
        assert there.requests == []
        scene.now += seconds(1)
        for _ in range(3):
            await notifier.look_for_silence()
            await scene.turn(notifier)
            scene.now += seconds(60)
        assert [json.loads(each.body)["type"] for each in there.requests] == ["overdue"]
        told = json.loads(there.requests[0].body)["data"]
        assert told["nominal_time"] == "2026-11-30T12:01:00Z"
        assert "2026-11-30T13:01:10Z" in told["because"]
        loop.step_at(7_198)
        loop.has_run(7_200, ends=7_205)
        scene.now = NOON + seconds(7_210)
        await scene.turn(notifier)
    assert [json.loads(each.body)["type"] for each in there.requests] == ["overdue", "recovered"]


async def test_what_was_told_long_ago_is_forgotten_and_what_waits_is_not(catalog):
    scene = Scene(catalog)
    async with receiver(says(OK)) as there:
        scene.listen(there.url())
        loop = scene.fail()
        notifier = scene.notifier()
        await scene.turn(notifier)
        scene.fail(120, loop)
        scene.now += KEPT + timedelta(minutes=1)
        await notifier.prune()
    rows = lambda connection: connection.execute(select(func.count()).select_from(notifications)).scalar_one()  # noqa: E731 - read once
    assert scene.desk.read(rows) == 1
    assert scene.states() == []


async def test_the_receiver_of_the_readme_hears_a_message_once_and_nobody_elses(catalog):
    source = next(
        each for each in re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL) if "def heard(" in each
    )
    there_is: dict[str, Any] = {}
    exec(compile(source, "README.md", "exec"), there_is)
    scene = Scene(catalog, post=HttpGateway("https://horarium.test/", keys_of=lambda _: Keys((SECRET,))).tell)
    async with receiver(says(OK)) as there:
        scene.listen(there.url())
        scene.fail()
        await scene.turn(scene.notifier())
    (request,) = there.requests
    seen: set[str] = set()
    message = there_is["heard"](request.headers, request.body, SECRET, seen)
    assert message["data"]["schedule_id"] == scene.desk.key.schedule_id
    assert there_is["heard"](request.headers, request.body, SECRET, seen) is None
    for headers, body, secret in (
        (request.headers, request.body + b" ", SECRET),
        (request.headers, request.body, SECRET[:-1]),
        ({**request.headers, "webhook-timestamp": "0"}, request.body, SECRET),
    ):
        with pytest.raises(ValueError, match="whoever holds the secret"):
            there_is["heard"](headers, body, secret, set())
