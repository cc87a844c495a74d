"""Money of budgets and wallets: reserved at admission, settled or released at the end, in whole minor units.

The row of a budget in `accounts` is the lock of its money. It is taken after the lock of a schedule, never before, so that two
transactions that need both wait for each other in one order. Two admissions that race for the last of a budget are put in a row
by it, and the second finds what the first has taken.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, insert, or_, select, tuple_, update

from horarium.catalog.tables import accounts, entries, reservations, runs
from horarium.catalog.upsert import make_sure
from horarium.schedule.identity import Scope

BUDGET = "budget"
WALLET = "wallet"


class ReservationState(StrEnum):
    """Where a reservation stands."""

    ASKED = "asked"
    """A platform's authority is being asked to reserve, and may have done so whether or not we hear of it."""
    HELD = "held"
    """The amount is taken off its budget."""
    SETTLED = "settled"
    """The run's cost was spent instead."""
    RELEASED = "released"
    """Nothing was spent."""


_OPEN = frozenset({ReservationState.ASKED, ReservationState.HELD})


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What was counted: of a budget, what is reserved and spent; of a wallet, `spent` is what it owes."""

    reserved: int
    spent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """What one run holds of a budget. `settled` is what was spent instead, once that is known."""

    run_id: str
    scope: Scope
    budget: str
    wallet: str | None
    amount: int
    state: ReservationState
    remote: bool
    settled: int | None
    keep_until: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Untold:
    """The end of a reservation that a platform's authority holds. `spent` is None where it is given back whole.

    `place` is where it is listed.
    """

    run_id: str
    spent: int | None
    place: tuple[datetime, str]


def account(connection: Connection, scope: Scope, kind: str, name: str, *, lock: bool = False) -> Account:
    """What was counted for a budget or a wallet. With `lock`, nobody else counts until the transaction ends."""
    query = select(accounts).where(_account(scope, kind, name))
    if lock:
        make_sure(connection, accounts, _key(scope, kind, name), {"reserved": 0, "spent": 0})
        query = query.with_for_update()
    row = connection.execute(query).one_or_none()
    return Account(reserved=0, spent=0) if row is None else Account(reserved=row.reserved, spent=row.spent)


def list_accounts(connection: Connection, scope: Scope, kind: str) -> dict[str, Account]:
    """Everything that was counted for budgets or wallets of an environment, by name; also for those declared no more."""
    query = (
        select(accounts)
        .where(
            accounts.c.org_id == scope.org_id,
            accounts.c.environment_id == scope.environment_id,
            accounts.c.kind == kind,
        )
        .order_by(accounts.c.name)
    )
    return {row.name: Account(reserved=row.reserved, spent=row.spent) for row in connection.execute(query)}


def reserve(
    connection: Connection,
    scope: Scope,
    run_id: str,
    *,
    budget: str,
    wallet: str | None,
    amount: int,
    remote: bool,
    now: datetime,
) -> None:
    """Take an amount off a budget for a run, once. Whoever calls has locked the account and found room in it.

    A `remote` one was taken by a platform's authority, and is written down here, in place of what `announce` wrote.
    """
    assert amount >= 0
    if remote:
        held = {"state": ReservationState.HELD, "amount": amount, "budget": budget, "wallet": wallet}
        asked = and_(reservations.c.run_id == run_id, reservations.c.state == ReservationState.ASKED)
        if connection.execute(update(reservations).where(asked).values(**held)).rowcount:
            return
    connection.execute(
        insert(reservations).values(
            run_id=run_id,
            org_id=scope.org_id,
            environment_id=scope.environment_id,
            budget=budget,
            wallet=wallet,
            amount=amount,
            state=ReservationState.HELD,
            remote=remote,
            made_at=now,
        )
    )
    if not remote:
        _count(connection, scope, BUDGET, budget, reserved=amount)


def announce(connection: Connection, scope: Scope, run_id: str, *, budget: str, now: datetime) -> None:
    """Write down that a platform's authority is about to be asked to reserve for a run; nothing for one written down before.

    Whatever dies from here on, it is known of whom it may hold something.
    """
    values = {
        "org_id": scope.org_id,
        "environment_id": scope.environment_id,
        "budget": budget,
        "amount": 0,
        "state": ReservationState.ASKED,
        "remote": True,
        "made_at": now,
    }
    make_sure(connection, reservations, {"run_id": run_id}, values)


def find_reservation(connection: Connection, run_id: str, *, lock: bool = False) -> Reservation | None:
    """What a run holds, or held; None for a run that costs nothing."""
    query = select(reservations).where(reservations.c.run_id == run_id)
    row = connection.execute(query.with_for_update() if lock else query).one_or_none()
    return None if row is None else _reservation(row)


def settle(connection: Connection, run_id: str, *, spent: int, now: datetime) -> Reservation | None:
    """Spend instead of reserve, once; None where nothing is held. `spent` may be more than was reserved: it is what it cost."""
    held = _close(connection, run_id, ReservationState.SETTLED, spent=spent, now=now)
    if held is not None and not held.remote:
        _count(connection, held.scope, BUDGET, held.budget, reserved=-held.amount, spent=spent)
        if held.wallet is not None:
            _count(connection, held.scope, WALLET, held.wallet, spent=spent)
    return held


def release(connection: Connection, run_id: str, *, now: datetime) -> Reservation | None:
    """Give back what a run held, or may hold, once; None where nothing is held."""
    held = _close(connection, run_id, ReservationState.RELEASED, spent=0, now=now)
    if held is not None and not held.remote:
        _count(connection, held.scope, BUDGET, held.budget, reserved=-held.amount)
    return held


def keep(connection: Connection, run_id: str, *, until: datetime) -> None:
    """Leave a reservation as it is until then: the run may have happened, and nobody can say so."""
    connection.execute(
        update(reservations)
        .where(reservations.c.run_id == run_id, reservations.c.state == ReservationState.HELD)
        .values(keep_until=until)
    )


def kept_until(connection: Connection, *, now: datetime, limit: int) -> Sequence[Reservation]:
    """The reservations that were kept until a time that has come."""
    query = (
        select(reservations)
        .where(reservations.c.closed_at.is_(None), reservations.c.keep_until <= now)
        .order_by(reservations.c.made_at)
        .limit(limit)
    )
    return [_reservation(row) for row in connection.execute(query)]


def abandoned(connection: Connection, scope: Scope, *, limit: int) -> Sequence[str]:
    """The runs that a platform's authority was asked to reserve for, and that ended, or were withdrawn, undecided."""
    query = (
        select(reservations.c.run_id)
        .select_from(
            reservations.outerjoin(runs, runs.c.run_id == reservations.c.run_id).outerjoin(
                entries, entries.c.id == runs.c.entry
            )
        )
        .where(
            *_open_of(scope),
            reservations.c.state == ReservationState.ASKED,
            or_(entries.c.id.is_(None), entries.c.closed_at.is_not(None)),
        )
        .order_by(reservations.c.made_at)
        .limit(limit)
    )
    return connection.execute(query).scalars().all()


def untold(connection: Connection, scope: Scope, *, limit: int, after: tuple[datetime, str] | None) -> Sequence[Untold]:
    """A page of the ends that a platform's authority has not confirmed yet, oldest reservation first."""
    place = (reservations.c.made_at, reservations.c.run_id)
    behind = [] if after is None else [tuple_(*place) > after]
    query = (
        select(reservations)
        .where(*_open_of(scope), reservations.c.remote, reservations.c.state.not_in(sorted(_OPEN)), *behind)
        .order_by(*place)
        .limit(limit)
    )
    return [
        Untold(
            run_id=row.run_id,
            spent=row.settled if row.state == ReservationState.SETTLED else None,
            place=(row.made_at, row.run_id),
        )
        for row in connection.execute(query)
    ]


def mark_told(connection: Connection, run_id: str, *, now: datetime) -> None:
    """A platform's authority has confirmed the end of a reservation."""
    told = and_(reservations.c.run_id == run_id, reservations.c.closed_at.is_(None))
    connection.execute(update(reservations).where(told).values(closed_at=now))


def collect(connection: Connection, scope: Scope, wallet: str, amount: int) -> Account:
    """Take what was paid off what a wallet owes, and return what is left."""
    account(connection, scope, WALLET, wallet, lock=True)
    _count(connection, scope, WALLET, wallet, spent=-amount)
    return account(connection, scope, WALLET, wallet)


def _close(
    connection: Connection, run_id: str, state: ReservationState, *, spent: int, now: datetime
) -> Reservation | None:
    held = find_reservation(connection, run_id, lock=True)
    if held is None or held.state not in _OPEN:
        return None
    if not held.remote:
        # Locked before it is changed, in the order of budget and wallet.
        account(connection, held.scope, BUDGET, held.budget, lock=True)
        if held.wallet is not None:
            account(connection, held.scope, WALLET, held.wallet, lock=True)
    closed = {"state": state, "settled": spent, "keep_until": None}
    if not held.remote:
        # A remote one is closed once its authority has been told.
        closed["closed_at"] = now
    connection.execute(update(reservations).where(reservations.c.run_id == run_id).values(**closed))
    return held


def _count(connection: Connection, scope: Scope, kind: str, name: str, *, reserved: int = 0, spent: int = 0) -> None:
    make_sure(connection, accounts, _key(scope, kind, name), {"reserved": 0, "spent": 0})
    connection.execute(
        update(accounts)
        .where(_account(scope, kind, name))
        .values(reserved=accounts.c.reserved + reserved, spent=accounts.c.spent + spent)
    )


def _open_of(scope: Scope) -> tuple[ColumnElement[bool], ...]:
    """Of one environment, and not closed. Begins at the index of those, which are few: the scope is no way into another."""
    return (
        reservations.c.closed_at.is_(None),
        reservations.c.org_id == scope.org_id,
        reservations.c.environment_id == scope.environment_id,
    )


def _key(scope: Scope, kind: str, name: str) -> dict[str, Any]:
    return {"org_id": scope.org_id, "environment_id": scope.environment_id, "kind": kind, "name": name}


def _account(scope: Scope, kind: str, name: str) -> ColumnElement[bool]:
    return and_(*(accounts.c[column] == value for column, value in _key(scope, kind, name).items()))


def _reservation(row: Row[Any]) -> Reservation:
    return Reservation(
        run_id=row.run_id,
        scope=Scope(org_id=row.org_id, environment_id=row.environment_id),
        budget=row.budget,
        wallet=row.wallet,
        amount=row.amount,
        state=ReservationState(row.state),
        remote=row.remote,
        settled=row.settled,
        keep_until=row.keep_until,
    )
