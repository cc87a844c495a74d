"""Endpoints that are changed or removed while something is on its way to them: what is meant for one reaches no other."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select, update

from activities.gateway import Said
from horarium.catalog import endpoints, notifications
from horarium.catalog.deliveries import spread
from horarium.catalog.figures import read_figures
from horarium.catalog.notification_tables import deliveries
from horarium.catalog.notification_tables import notifications as outbox
from horarium.control.notifications import endpoints_document
from horarium.schedule.ledger import Disposition
from horarium.schedule.notifications import Kind
from starter.notifying import KEPT, LEASE
from tests.control.desk import NOON, SCOPE, every, seconds
from tests.controller.test_notifying import GONE, Scene, ids, until
from tests.gateway.wire import OK, Received, Receiver, receiver, says


@dataclass
class Held:
    """A receiver that answers as it is told, once it is let go on."""

    there: Receiver
    go_on: asyncio.Event


@asynccontextmanager
async def held(answer: bytes) -> AsyncIterator[Held]:
    go_on = asyncio.Event()

    async def waiting(_request: Received, writer: asyncio.StreamWriter) -> None:
        await go_on.wait()
        writer.write(answer)

    async with receiver(waiting) as there:
        yield Held(there=there, go_on=go_on)


def remove(scene: Scene, name: str = "pager") -> None:
    def act(connection: Any) -> None:
        endpoint = endpoints.find_endpoint(connection, SCOPE, name)
        assert endpoint is not None
        endpoints.remove_endpoint(connection, SCOPE, endpoint)

    scene.desk.write(act)


def shown(scene: Scene) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = scene.desk.read(endpoints_document, SCOPE)["endpoints"]
    return found


async def test_an_old_address_that_is_gone_stops_no_new_one(catalog):
    scene = Scene(catalog)
    async with held(GONE) as old, receiver(says(OK)) as new:
        scene.listen(old.there.url())
        scene.fail()
        notifier = scene.notifier()
        await notifier.look()
        await until(lambda: len(old.there.requests) == 1)
        scene.listen(new.url())
        old.go_on.set()
        await notifier.settled()
        (endpoint,) = shown(scene)
        assert endpoint["stopped_at"] is None
        assert (endpoint["waiting"], endpoint["dead"]) == (1, 0)
        await scene.turn(notifier, after=LEASE)
    assert ids(new) == ids(old.there)
    assert [state for state, *_ in scene.states()] == ["delivered"]


async def test_an_endpoint_that_was_removed_stops_nobody_who_came_after_it(catalog):
    scene = Scene(catalog)
    async with held(GONE) as old, receiver(says(OK)) as new:
        scene.listen(old.there.url())
        loop = scene.fail()
        notifier = scene.notifier()
        await notifier.look()
        await until(lambda: len(old.there.requests) == 1)
        remove(scene)
        scene.listen(new.url(), name="other")
        scene.fail(120, loop)
        scene.now = NOON + seconds(130)
        old.go_on.set()
        await notifier.settled()
        (endpoint,) = shown(scene)
        assert endpoint["stopped_at"] is None
        await scene.turn(notifier)
    assert len(new.requests) == 1


async def test_what_an_endpoint_heard_that_was_removed_nobody_else_has_heard(catalog):
    scene = Scene(catalog)
    broken = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n"
    async with held(OK) as old, held(broken) as new:
        scene.listen(old.there.url())
        loop = scene.fail()
        first, second = scene.notifier(), scene.notifier()
        await first.look()
        await until(lambda: len(old.there.requests) == 1)
        remove(scene)
        scene.listen(new.there.url(), name="other")
        scene.fail(120, loop)
        scene.now = NOON + seconds(130)
        await second.look()
        await until(lambda: len(new.there.requests) == 1)
        old.go_on.set()
        await first.settled()
        new.go_on.set()
        await second.settled()
    ((state, attempts, status),) = scene.states()
    assert (state, attempts, status) == ("waiting", 1, 500)


async def test_a_new_address_is_used_at_once_however_much_waits(catalog):
    scene = Scene(catalog)
    async with held(OK) as old, receiver(says(OK)) as new:
        scene.listen(old.there.url())
        loop = scene.fail()
        for offset in range(120, 780, 60):
            scene.fail(offset, loop)
        scene.now = NOON + seconds(900)
        notifier = scene.notifier()
        await notifier.look()
        await until(lambda: len(old.there.requests) == 4)
        scene.listen(new.url())
        old.go_on.set()
        await notifier.settled()
    assert len(old.there.requests) == 4
    assert len(new.requests) == 8
    assert len({*ids(old.there), *ids(new)}) == 12


async def test_a_test_that_was_asked_for_reaches_nobody_who_came_later(catalog):
    scene = Scene(catalog)
    async with receiver(says(OK)) as there:
        endpoint = scene.listen("https://old.example/")
        scene.desk.write(lambda c: notifications.tell_test(c, SCOPE, endpoint, by="ada", now=scene.now))
        remove(scene)
        scene.listen(there.url(), name="other")
        await scene.turn(scene.notifier())
        assert there.requests == []


async def test_an_older_heartbeat_takes_the_place_of_no_newer_one(catalog):
    """Of two notifiers, the one that has the older one in hand may be the later to write."""
    scene = Scene(catalog)
    loop = scene.desk.enabled(every(60))
    scene.listen(
        "https://watcher.example/",
        Kind.HEARTBEAT,
        name=f"heartbeat:{scene.desk.key.schedule_id}",
        schedule_id=scene.desk.key.schedule_id,
    )
    for offset in (60, 120):
        loop.step_at(offset - 2)
        loop.has_run(offset, ends=offset + 5, disposition=Disposition.SUCCEEDED)
    scene.now = NOON + seconds(130)
    older, newer = scene.desk.read(lambda c: c.execute(select(outbox.c.id).order_by(outbox.c.id)).scalars().all())
    for batch in (newer, older):
        scene.desk.write(lambda c, batch=batch: c.execute(update(outbox).values(spread=outbox.c.id != batch)))
        assert scene.desk.write(spread, SCOPE, now=scene.now, limit=10) == 1
        assert scene.desk.read(lambda c: c.execute(select(deliveries.c.notification)).scalars().all()) == [newer]


async def test_what_nobody_listens_for_any_more_waits_for_nobody(catalog):
    scene = Scene(catalog)
    scene.listen("https://pager.example/", Kind.FAILED)
    scene.fail()
    assert scene.desk.read(read_figures, now=scene.now).untold_since is not None
    remove(scene)
    notifier = scene.notifier()
    await scene.turn(notifier)
    assert scene.desk.read(read_figures, now=scene.now).untold_since is None
    scene.now += KEPT * 2
    await notifier.prune()
    for table in (outbox, deliveries):
        assert (
            scene.desk.read(lambda c, table=table: c.execute(select(func.count()).select_from(table)).scalar_one()) == 0
        )


async def test_what_fails_in_a_way_that_nobody_foresaw_is_given_up_as_anything_else(catalog):
    scene = Scene(catalog)

    async def fails(*_message: Any) -> Said:
        raise ZeroDivisionError("of a library")

    scene.listen("https://pager.example/")
    scene.fail()
    notifier = scene.notifier(fails)
    await scene.turn(notifier)
    ((state, attempts, _),) = scene.states()
    assert (state, attempts) == ("waiting", 1)
    (endpoint,) = shown(scene)
    assert "ZeroDivisionError" in endpoint["last_error"]
    assert "of a library" not in endpoint["last_error"]
    await scene.turn(notifier, after=KEPT)
    assert [state for state, *_ in scene.states()] == ["dead"]
