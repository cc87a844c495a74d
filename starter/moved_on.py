"""Finishes what a new epoch or a reset of the environment has begun: whoever gave that command may have died in the middle."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from horarium.catalog import Catalog
from horarium.catalog.moved_on import enabled_before, state_of_environment
from horarium.catalog.watching import Watched
from horarium.control.sweeping import REVIEWED_AT_ONCE, review_enabled_before
from horarium.errors import Unavailable
from horarium.schedule.identity import ActivationKey, Scope
from starter.apart import each_apart, log_failure


@dataclass(slots=True)
class MovedOn:
    """Sends to review what was enabled before its environment moved on."""

    catalog: Catalog
    scope: Scope
    now: Callable[[], datetime]
    _reviewed_under: tuple[int, int] | None = field(init=False, default=None)

    async def review_all(self) -> None:
        """Go through all of them, once after each epoch and each reset."""
        under = await self.catalog.read(state_of_environment, self.scope)
        if under == self._reviewed_under:
            return
        after, clean = 0, True
        while page := await self.catalog.read(enabled_before, self.scope, limit=REVIEWED_AT_ONCE, after=after):
            keys, after = [key for _, key in page], page[-1][0]
            clean &= await self._review(keys)
        self._reviewed_under = under if clean else None

    async def review_late(self, live: Sequence[Watched]) -> None:
        """Review those of them that were enabled while the environment moved on: going through all did not meet them."""
        keys = [each.key for each in live if self._is_late(each)]
        if keys:
            await self._review(keys)

    def _is_late(self, each: Watched) -> bool:
        under = self._reviewed_under
        return under is not None and any(
            was is not None and was != now for was, now in zip(each.enabled_under, under, strict=True)
        )

    async def _review(self, keys: Sequence[ActivationKey]) -> bool:
        try:
            await self.catalog.write(review_enabled_before, keys, now=self.now())
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001 - the boundary: one that cannot be ended hides no other
            log_failure("reviewed_one_by_one", error)
            return all(done is not None for _, done in await each_apart(keys, self._review_one, at_once=1))
        return True

    async def _review_one(self, key: ActivationKey) -> int:
        return await self.catalog.write(review_enabled_before, [key], now=self.now())
