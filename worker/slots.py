"""How many workflow tasks a schedule worker takes on at the same time: few that must be read back first, more that need not."""

import asyncio
import threading
from collections import deque

from temporalio.worker import (
    CustomSlotSupplier,
    SlotMarkUsedContext,
    SlotPermit,
    SlotReleaseContext,
    SlotReserveContext,
)


class _Permit(SlotPermit):
    def __init__(self, *, sticky: bool) -> None:
        self.sticky = sticky


class WorkflowSlots(CustomSlotSupplier):
    """Slots of two kinds.

    `cached` are for tasks of workflows that are in this worker's memory: they cost a millisecond or so of its time, and hold
    their slot mostly while a local activity waits for the catalog. `new` are for tasks of all others, which begin with building
    the workflow and replaying its history: with many of them at a time a restart under load starves itself.

    Temporal's own core calls it from threads of its own, and reserves in the event loop.
    """

    def __init__(self, *, cached: int, new: int) -> None:
        self._lock = threading.Lock()
        self._free = {True: cached, False: new}
        self._waiting: dict[bool, deque[asyncio.Future[None]]] = {True: deque(), False: deque()}

    async def reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit:
        """Wait for a slot of the kind that is asked for."""
        kind = ctx.is_sticky
        with self._lock:
            if self._taken(kind):
                return _Permit(sticky=kind)
            place = asyncio.get_running_loop().create_future()
            self._waiting[kind].append(place)
        try:
            await place
        except asyncio.CancelledError:
            with self._lock:
                if place in self._waiting[kind]:
                    self._waiting[kind].remove(place)
                else:  # it was given one at the same moment
                    self._give(kind)
            raise
        return _Permit(sticky=kind)

    def try_reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit | None:
        """A slot of the kind that is asked for, if there is one now."""
        with self._lock:
            return _Permit(sticky=ctx.is_sticky) if self._taken(ctx.is_sticky) else None

    def mark_slot_used(self, ctx: SlotMarkUsedContext) -> None:
        """Nothing: it counts from when it is reserved."""

    def release_slot(self, ctx: SlotReleaseContext) -> None:
        """Give a slot back, to who has waited longest for one of its kind."""
        assert isinstance(ctx.permit, _Permit), "permits are made here"
        with self._lock:
            self._give(ctx.permit.sticky)

    def _taken(self, kind: bool) -> bool:
        if self._free[kind] == 0:
            return False
        self._free[kind] -= 1
        return True

    def _give(self, kind: bool) -> None:
        if not self._waiting[kind]:
            self._free[kind] += 1
            return
        place = self._waiting[kind].popleft()
        # The loop may be another thread's. A place that is cancelled by then gives its slot on.
        place.get_loop().call_soon_threadsafe(_settle, place)


def _settle(place: asyncio.Future[None]) -> None:
    if not place.done():
        place.set_result(None)
