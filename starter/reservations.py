"""What platforms' own authorities hold for runs that have ended: they are told, until they have heard it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import Connection

from horarium.authority.asking import Authority
from horarium.catalog import Catalog, findings, money
from horarium.catalog.money import Untold
from horarium.control.running import settle_kept
from horarium.errors import Unavailable
from horarium.schedule.findings import Finding
from horarium.schedule.identity import Scope
from starter.apart import each_apart, log_failure

PAGE = 50
AT_ONCE = 8
"""Messages to the authority at the same time: admissions go before."""
FIRST_PAUSE = timedelta(seconds=5)
LONGEST_PAUSE = timedelta(minutes=5)
"""How long an authority that hears nothing is left alone. What it holds is held for as much longer."""


@dataclass(slots=True)
class Reservations:
    """The money of one environment's runs that have ended. Without an `authority`, the catalog's own alone."""

    catalog: Catalog
    authority: Authority | None
    scope: Scope
    now: Callable[[], datetime]
    _not_before: datetime | None = None
    _pause: timedelta = field(default=FIRST_PAUSE)
    _after: tuple[datetime, str] | None = None

    async def look(self) -> None:
        """Settle what was kept, give back what nobody decided on, and tell the authority what it has not heard."""
        now = self.now()
        while await self.catalog.read(_anything_kept, now=now):
            await self.catalog.write(settle_kept, now=now)
        while runs := await self.catalog.read(money.abandoned, self.scope, limit=PAGE):
            await self.catalog.write(_release, self.scope, runs, now=now)
        remote = self.authority is not None and self.authority.holds_money
        if remote and (self._not_before is None or self._not_before <= now):
            await self._tell()

    async def _tell(self) -> None:
        """Tell all that is untold. An authority that hears nothing of a page is left alone for a while, and then told the next
        page first: ends that it will not hear, for whatever reason, stand in no other's way."""
        in_the_middle = self._after is not None
        while True:
            page = await self.catalog.read(money.untold, self.scope, limit=PAGE, after=self._after)
            if not page:
                self._after = None
                if not in_the_middle:
                    return
                in_the_middle = False
                continue
            self._after = page[-1].place
            if not any(done for _, done in await each_apart(page, self._told, at_once=AT_ONCE)):
                self._not_before = self.now() + self._pause
                self._pause = min(2 * self._pause, LONGEST_PAUSE)
                return
            self._not_before, self._pause = None, FIRST_PAUSE

    async def _told(self, end: Untold) -> bool:
        assert self.authority is not None, "it holds money"
        try:
            await self.authority.close_reservation(self.scope, end.run_id, spent=end.spent)
        except Unavailable as error:
            log_failure("reservation_not_told", error, run_id=end.run_id)
            return False
        await self.catalog.write(money.mark_told, end.run_id, now=self.now())
        return True


def _anything_kept(connection: Connection, *, now: datetime) -> bool:
    return bool(money.kept_until(connection, now=now, limit=1))


def _release(connection: Connection, scope: Scope, runs: Sequence[str], *, now: datetime) -> None:
    """Give back what is still abandoned when looked at again."""
    still = set(money.abandoned(connection, scope, limit=PAGE)).intersection(runs)
    for run_id in sorted(still):
        money.release(connection, run_id, now=now)
    if still:
        findings.add(connection, scope, {Finding.RESERVATION_RELEASED: len(still)}, now=now)
