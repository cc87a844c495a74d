"""How one schedule is looked at, and how what was seen of it is written down.

Its workflow is started where there should be one and is none, and one that was ended by hand sends its activation to review.
Whatever is wrong with one schedule, the others are looked at.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

import structlog
from temporalio.service import RPCError, RPCStatusCode

from horarium.catalog import Catalog
from horarium.catalog.presence import UNSETTLED, Seen, observe_all
from horarium.catalog.watching import Watched
from horarium.control.sweeping import review_if_live
from horarium.errors import HorariumError
from horarium.schedule.identity import ScheduleKey
from starter.apart import each_apart, log_failure
from starter.temporal import Found, Temporal

BATCH: Final = 200
"""Schedules that are looked at before what was seen of them is written down, in one transaction."""

_LOST: Final = frozenset({RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED})
"""What a call ends with where no server answers."""

State = tuple[str, str | None]
"""A runtime state and its reason."""

_logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Looks:
    """Looks at schedules, at most `BATCH` at once. `server_lost` is called where Temporal did not answer one of them."""

    catalog: Catalog
    temporal: Temporal
    now: Callable[[], datetime]
    server_lost: Callable[[], None]

    async def take_up(self, some: Sequence[Watched], *, lingering: frozenset[ScheduleKey]) -> bool:
        """Look at what changed. `lingering` are those whose ended workflow still runs.

        False where something that was seen could not be written down.
        """
        return await self._observe(some, partial(self._taken_up, lingering))

    async def at_live(self, some: Sequence[Watched], *, overdue: Mapping[int, str]) -> bool:
        """Look at what should be running. `overdue` is what is wrong with those that nobody accounted for, by their rows.

        False where something that was seen could not be written down.
        """
        return await self._observe(some, partial(self._swept, overdue))

    async def _observe(self, some: Sequence[Watched], look: Callable[[Watched], Awaitable[State]]) -> bool:
        now = self.now()
        found = await each_apart(some, lambda each: self._or_error(look, each))
        seen = [
            Seen(row=each.row, generation=each.key.generation, state=state[0], reason=state[1])
            for each, state in found
            if state is not None and not _is_known(each, state)
        ]
        if not seen:
            return True
        try:
            await self.catalog.write(observe_all, seen, now=now)
        except HorariumError:
            raise
        except Exception as error:  # noqa: BLE001 - the boundary: one row that cannot be written hides no other
            log_failure("written_down_one_by_one", error)
            written = await each_apart(seen, lambda each: self._write_down(each, now=now), at_once=1)
            return all(done for _, done in written)
        return True

    async def _or_error(self, look: Callable[[Watched], Awaitable[State]], each: Watched) -> State:
        """What is seen of a schedule. That it could not be looked at is seen too, and the next sweep tries again."""
        try:
            return await look(each)
        except RPCError as error:
            if error.status in _LOST:
                # What the server knew may be lost with it, or have changed meanwhile.
                self.server_lost()
            return "error", f"Temporal: {error.message}"
        except Exception as error:  # noqa: BLE001 - the boundary: whatever is wrong with one schedule, the others go on
            log_failure("not_reconciled", error, workflow_id=each.key.workflow_id)
            return "error", f"The controller could not look at it: {type(error).__name__}. Its log says more."

    async def _write_down(self, seen: Seen, *, now: datetime) -> bool:
        await self.catalog.write(observe_all, [seen], now=now)
        return True

    async def _taken_up(self, lingering: frozenset[ScheduleKey], each: Watched) -> State:
        if each.is_live:
            return await self._established(each)
        if each.ended_as == "review":
            return "review", each.ended_reason
        return ("stopping", None) if each.key.schedule in lingering else ("paused", None)

    async def _swept(self, overdue: Mapping[int, str], each: Watched) -> State:
        state, reason = await self._established(each)
        return ("error", overdue[each.row]) if state == "active" and each.row in overdue else (state, reason)

    async def _established(self, each: Watched) -> State:
        is_new = each.observed is None or each.observed[0] != each.key.generation
        # Whose first look this is has no workflow as a rule: to ask for it first would be a call more for each.
        if is_new and await self.temporal.start_schedule(each.key):
            return "active", None
        found = await self.temporal.describe(each.key.workflow_id)
        if found is Found.RUNNING:
            return "active", None
        if found is Found.ABSENT:
            started = await self.temporal.start_schedule(each.key)
            return ("active", None) if started else ("pending", "Another controller is starting it.")
        because = f"Its workflow was found {found} while the activation was enabled."
        if await self.catalog.write(review_if_live, each.key, because=because, now=self.now()):
            _logger.warning("workflow_closed_under_activation", workflow_id=each.key.workflow_id, found=found)
            return "review", because
        return "stopping", None


def batches(watched: Sequence[Watched]) -> Iterator[Sequence[Watched]]:
    """So many as are looked at together, and written down in one transaction."""
    for start in range(0, len(watched), BATCH):
        yield watched[start : start + BATCH]


def _is_known(each: Watched, state: State) -> bool:
    """Whether it was written down already, and nobody waits for it to be written down again."""
    settled = state[0] not in UNSETTLED
    return each.observed == (each.key.generation, *state) and not (each.unobserved and settled)
