"""Tells people what happened: posts what is written down to the endpoints that want it, and writes down what they said.

Several may run. Each delivery is one notifier's for as long as a post may take, and then anybody's: whoever dies between the
post and writing it down is followed by another, who sends the same message under the same id. So every message comes at least
once, and a receiver drops what it has seen. Nothing here is waited for by a run.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import httpx
import structlog
from pydantic import ValidationError
from sqlalchemy import Connection

from activities.addresses import ForbiddenAddress
from activities.gateway import NotConnectedError, Said
from horarium.authority.declared import Destination
from horarium.catalog import Catalog, deliveries, expected, notifications
from horarium.catalog.deliveries import Claimed
from horarium.catalog.endpoints import Endpoint, listened_for
from horarium.control.expectations import AT_ONCE as LOOKED_AT_ONCE
from horarium.control.expectations import Due, look_where_due
from horarium.control.notifications import MAX_ENDPOINTS, body_of, destination_of, tell_if_overdue
from horarium.errors import Misconfigured
from horarium.schedule.identity import ScheduleKey, Scope
from horarium.schedule.notifications import asked_pause, is_given_up, pause_after
from starter.apart import each_apart, log_failure

LOOK_EVERY: Final = timedelta(seconds=1)
"""How soon what was written down is taken up, and what failed is tried again."""
SILENCE_EVERY: Final = timedelta(seconds=5)
"""How often it is asked whether a success may be overdue by now."""
PAGES_OF_SILENCE: Final = 4
"""Pages of schedules that are looked at then. More wait, as they do when an endpoint is declared where there was none."""
PRUNE_EVERY: Final = timedelta(minutes=10)
LEASE: Final = timedelta(seconds=30)
"""How long a delivery is one notifier's: several times what a post may take."""
AT_ONCE: Final = 4
"""Messages on their way to one endpoint."""
ENDPOINTS_AT_ONCE: Final = 100
"""Endpoints that are told at the same time: all that can be declared, and some heartbeats."""
BEATS_AT_ONCE: Final = ENDPOINTS_AT_ONCE - MAX_ENDPOINTS
"""Heartbeats among them. They are many, and a watcher of all of them may hang."""
SPREAD_AT_ONCE: Final = 200
KEPT: Final = timedelta(days=1)
"""How long what was heard is kept: in a flood of refusals it is a message for each."""
DEAD_KEPT: Final = timedelta(days=30)
"""How long a dead letter is kept."""
PRUNED_AT_ONCE: Final = 500
_GONE: Final = 410

Post = Callable[[Destination, str, bytes], Awaitable[Said]]
"""Posts a signed message under an id and returns what was answered, as `HttpGateway.tell` does."""

_logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What a post came to: a status, or why there was none; and how long the endpoint asks to be told nothing."""

    status: int | None
    sentence: str
    asked: timedelta | None = None


@dataclass(slots=True)
class Notifier:
    """Tells what happened in one environment. `spread` gives numbers from 0 to 1, which keep repeats apart."""

    catalog: Catalog
    scope: Scope
    now: Callable[[], datetime]
    post: Post
    spread: Callable[[], float] = random.random
    _serving: dict[int, asyncio.Task[None]] = field(default_factory=dict)
    _beating: set[int] = field(default_factory=set)

    async def serve(self) -> None:
        """Tell until cancelled. Whatever fails is logged, and the next look tries again."""
        try:
            await asyncio.gather(
                _repeat(self.look, every=LOOK_EVERY),
                _repeat(self.look_for_silence, every=SILENCE_EVERY),
                _repeat(self.prune, every=PRUNE_EVERY),
            )
        finally:
            tasks = list(self._serving.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def look(self) -> None:
        """Spread what is new, and begin to tell each endpoint for which something is due and that is not told already.

        No endpoint waits for another: one that hangs holds up what is for itself.
        """
        found = await self.catalog.read(deliveries.todo, self.scope, now=self.now(), limit=ENDPOINTS_AT_ONCE)
        if found.unspread:
            spread = SPREAD_AT_ONCE
            while spread == SPREAD_AT_ONCE:
                spread = await self.catalog.write(deliveries.spread, self.scope, now=self.now(), limit=SPREAD_AT_ONCE)
            found = await self.catalog.read(deliveries.todo, self.scope, now=self.now(), limit=ENDPOINTS_AT_ONCE)
        for endpoint in found.due:
            full = endpoint.is_heartbeat and len(self._beating) >= BEATS_AT_ONCE
            if endpoint.row not in self._serving and not full:
                task = asyncio.create_task(self._guarded(endpoint), name=f"notify {endpoint.name}")
                self._serving[endpoint.row] = task
                self._beating.update({endpoint.row} if endpoint.is_heartbeat else ())

    async def settled(self) -> None:
        """Wait until nothing is on its way, for whoever looks by hand."""
        while self._serving:
            await asyncio.gather(*self._serving.values())

    async def look_for_silence(self) -> None:
        """Look at the schedules of which a success may be overdue by now, and tell of those that are, once for each silence."""
        if not await self.catalog.read(listened_for, self.scope):
            return
        for _ in range(PAGES_OF_SILENCE):
            looked, untold = await self.catalog.read(_silent, self.scope, now=self.now())
            await each_apart(untold, self._tell_silence, at_once=1)
            if looked.count:
                await self.catalog.write(_looked, looked)
            if looked.count < LOOKED_AT_ONCE:
                return

    async def prune(self) -> None:
        """Forget what was told long ago, a page at a time."""
        now = self.now()
        pruned = PRUNED_AT_ONCE
        while pruned >= PRUNED_AT_ONCE:
            pruned = await self.catalog.write(
                deliveries.prune, delivered_before=now - KEPT, dead_before=now - DEAD_KEPT, limit=PRUNED_AT_ONCE
            )

    async def _tell_silence(self, key: ScheduleKey) -> None:
        if await self.catalog.write(tell_if_overdue, key, now=self.now()):
            _logger.warning("success_overdue", schedule_id=key.schedule_id)

    async def _guarded(self, endpoint: Endpoint) -> None:
        try:
            await self._tell(endpoint.row)
        except Exception as error:  # noqa: BLE001 - the boundary: whatever is wrong with one endpoint, the others are told
            log_failure("endpoint_not_told", error, endpoint=endpoint.name)
        finally:
            del self._serving[endpoint.row]
            self._beating.discard(endpoint.row)

    async def _tell(self, endpoint: int) -> None:
        """Tell an endpoint all that is due for it, a few messages at a time; each few as it is declared by then."""
        while claimed := await self.catalog.write(
            deliveries.claim, endpoint, now=self.now(), lease=LEASE, limit=AT_ONCE
        ):
            answers = await asyncio.gather(*map(self._send, claimed))
            if not any(answers):
                # It is looked at again when the first of these is due.
                return

    async def _send(self, claimed: Claimed) -> bool:
        """Post one message and write down what became of it; False where it was not heard."""
        endpoint, answer = claimed.endpoint, await self._posted(claimed)
        now, about = self.now(), {"endpoint": endpoint.name, "message_id": claimed.notification.message_id}
        if answer.status is not None and httpx.codes.is_success(answer.status):
            await self.catalog.write(deliveries.mark_delivered, endpoint.row, claimed, status=answer.status, now=now)
            return True
        if answer.status == _GONE:
            because = "It answered with status 410, which says that it is gone."
            if await self.catalog.write(
                deliveries.mark_gone, self.scope, endpoint, status=_GONE, because=because, now=now
            ):
                _logger.warning("endpoint_stopped", **about)
                return False
        given_up = is_given_up(claimed.notification.kind, since=claimed.since, attempts=claimed.attempts, now=now)
        pause = max(pause_after(claimed.attempts, spread=self.spread()), answer.asked or timedelta(0))
        if given_up or claimed.attempts == 1:
            # In a flood there are thousands, each tried for a day. What became of it last stands in the catalog.
            _logger.warning(
                "notification_dead" if given_up else "notification_not_heard",
                **about,
                attempts=claimed.attempts,
                because=answer.sentence,
            )
        await self.catalog.write(
            deliveries.mark_failed,
            claimed,
            status=answer.status,
            error=answer.sentence,
            next_at=None if given_up else now + pause,
            hold_until=None if answer.asked is None else now + answer.asked,
            now=now,
        )
        return False

    async def _posted(self, claimed: Claimed) -> _Answer:
        endpoint, told = claimed.endpoint, claimed.notification
        try:
            said = await self.post(destination_of(endpoint), told.message_id, body_of(told))
        except ForbiddenAddress as error:
            return _Answer(status=None, sentence=f"The address may not be used: {error}")
        except (NotConnectedError, Misconfigured) as error:
            return _Answer(status=None, sentence=f"It could not be reached: {error}")
        except ValidationError:
            return _Answer(
                status=None, sentence="It is stored in a form that this release cannot use. Declare it again."
            )
        except (httpx.HTTPError, OSError) as error:
            return _Answer(status=None, sentence=f"It gave no usable answer: {type(error).__name__}.")
        except Exception as error:  # noqa: BLE001 - the boundary: what nobody foresaw is given up too, as anything else
            log_failure("notification_not_sent", error, endpoint=endpoint.name)
            return _Answer(status=None, sentence=f"It could not be sent: {type(error).__name__}.")
        asked = None if httpx.codes.is_success(said.status) else asked_pause(said.retry_after, now=self.now())
        until = "" if not asked else f", and asks to be told nothing for {asked.total_seconds():.0f} seconds"
        return _Answer(status=said.status, sentence=f"It answered with status {said.status}{until}.", asked=asked)


def _silent(connection: Connection, scope: Scope, *, now: datetime) -> tuple[Due, list[ScheduleKey]]:
    looked = look_where_due(connection, scope, now=now)
    overdue = [each.schedule for each in looked.overdue]
    return looked, list(notifications.untold(connection, scope, overdue)) if overdue else []


def _looked(connection: Connection, looked: Due) -> None:
    expected.look_again(connection, looked.following)
    expected.expect_no_more(connection, looked.ended)


async def _repeat(act: Callable[[], Awaitable[None]], *, every: timedelta) -> None:
    while True:
        try:
            await act()
        except Exception as error:  # noqa: BLE001 - the boundary: a notifier outlives whatever it meets
            log_failure(f"{act.__name__}_failed", error)
        await asyncio.sleep(every.total_seconds())
