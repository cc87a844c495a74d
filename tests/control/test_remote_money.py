"""Money that a platform holds: whoever dies, and wherever, nothing stays reserved there for a run that has ended."""

import asyncio
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import func, select

from horarium.authority.asking import NOTHING_ASKED, Answers, NotAsked
from horarium.authority.facts import Question
from horarium.authority.http import HttpAuthority
from horarium.catalog import Catalog, money, presence
from horarium.catalog.money import ReservationState
from horarium.catalog.tables import reservations
from horarium.catalog.unsettled import Unsettled
from horarium.control import admission, running
from horarium.control.running import Outcome
from horarium.control.sweeping import settle_lost
from horarium.errors import Unavailable
from horarium.schedule.identity import RunKey, Scope, schedule_key
from horarium.schedule.ledger import Disposition, Reason
from starter.reservations import FIRST_PAUSE, LONGEST_PAUSE, PAGE, Reservations
from tests.authority.platform import KEYS, Platform, serving
from tests.control.desk import AGENT, FAR, NOON, Desk, Loop, at, every, seconds
from tests.control.operators import Operator, paid

COST = 10
SHORT = timedelta(seconds=2)


class Switchboard:
    """One server for all tests of the module, each with a platform of its own behind it."""

    platform: Platform

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.platform(scope, receive, send)


@pytest.fixture(scope="module")
def board() -> Iterator[tuple[Switchboard, str]]:
    board = Switchboard()
    with serving(board) as url:
        yield board, url


@dataclass
class Paying:
    """A schedule whose runs are paid by a platform, and the processes around it, which may die between any two steps."""

    desk: Desk
    platform: Platform
    url: str

    def __post_init__(self) -> None:
        scope = Scope(org_id="acme", environment_id=f"money{self.desk.key.schedule_id[-6:]}")
        self.desk.key = schedule_key(scope, self.desk.key.schedule_id)
        Operator(self.desk.catalog, scope).open()
        discovery = {"is_schedulable": True, "task_queue": "agents", "max_run_seconds": 60, "idempotent": False}
        self.desk.write(presence.register_agent, scope, AGENT, discovery, lease_until=FAR, now=NOON)
        declare = self.platform.declare
        declare("person", "ada")
        declare("agent", AGENT, max_cost=COST, max_run_seconds=60)
        declare("input", "in", readers=["*"])
        declare("output", "out")
        declare("budget", "team", usage_classes=["test_compute"], pays_by="credits", limit=100, currency="CHF")
        self.platform.contents["in"] = b"{}"
        self.loop = self._enabled()
        self.looking = Reservations(self.desk.catalog, self.authority(), scope, now=lambda: self.desk.now)

    def authority(self) -> HttpAuthority:
        return HttpAuthority(base=self.url, keys=KEYS, within=SHORT)

    def _enabled(self) -> Loop:
        self.desk.publish(paid(every(60, window=30, overlap="allow")))
        self.desk.content = NOTHING_ASKED  # type: ignore[assignment] # it keeps the same contract
        try:
            self.desk.enable()
        except NotAsked as unknown:
            self.desk.content = self._asked(unknown.question)  # type: ignore[assignment] # as above
        loop = Loop(self.desk, self.desk.enable().key)
        loop.step_at(57)
        self.desk.now = at(60)
        return loop

    @property
    def run(self) -> RunKey:
        return self.loop.run(60)

    def _asked(self, question: Question, run_id: str | None = None) -> Answers:
        async def ask() -> Answers:
            authority = self.authority()
            try:
                return await authority.ask(question, run_id=run_id)
            finally:
                await authority.aclose()

        return asyncio.run(ask())

    def admit(self, *, dies_after: str | None = None, owner: str = "execution") -> str:
        """What the admission activity does, as far as it lives."""
        pending = self.desk.read(admission.pending, self.run)
        answers = NOTHING_ASKED
        if pending is not None:
            if not self.desk.write(admission.announce, self.run, pending.question, now=self.desk.now):
                return "nothing to ask"
            if dies_after == "announced":
                return "died"
            answers = self._asked(pending.question, self.run.run_id)
            if dies_after == "asked":
                return "died"
        decided = self.desk.write(admission.decide, self.run, answers, owner=owner, now=self.desk.now)
        return "died" if dies_after == "decided" else decided.outcome

    def look(self) -> None:
        async def once() -> None:
            self.looking.authority = self.authority()
            try:
                await self.looking.look()
            finally:
                await self.looking.authority.aclose()

        asyncio.run(once())

    def lose(self) -> None:
        """The run's workflow is found closed."""
        disposition = self.desk.entries()[0].disposition
        lost = Unsettled(
            key=self.run,
            workflow_id=self.run.workflow_id,
            disposition=disposition,
            window_from=self.run.nominal_time,
            place=(0, self.run.nominal_time, 0),
        )
        self.desk.write(settle_lost, lost, closed_as="terminated", now=self.desk.now)

    def state(self) -> ReservationState | None:
        found = self.desk.read(money.find_reservation, self.run.run_id)
        return None if found is None else found.state

    def open_rows(self) -> int:
        query = select(func.count()).where(
            reservations.c.closed_at.is_(None), reservations.c.environment_id == self.desk.key.environment_id
        )
        return self.desk.read(lambda connection: connection.execute(query).scalar_one())

    def check_nothing_is_held(self, *, spent: int) -> None:
        assert self.platform.holds() == {}
        assert self.platform.spent.get("team", 0) == spent
        assert self.open_rows() == 0


@pytest.fixture
def paying(desk: Desk, board: tuple[Switchboard, str]) -> Paying:
    board[0].platform = Platform()
    return Paying(desk, board[0].platform, board[1])


def test_a_run_is_reserved_at_the_platform_and_costs_what_it_reports(paying: Paying) -> None:
    assert paying.admit() == "admitted"
    assert (paying.platform.holds(), paying.state()) == ({paying.run.run_id: COST}, ReservationState.HELD)
    paying.desk.begin(paying.run)
    outcome = Outcome(disposition=Disposition.SUCCEEDED, reason=None, cost=7)
    paying.desk.write(running.settle, paying.run, outcome, now=paying.desk.now)
    assert paying.platform.holds() == {paying.run.run_id: COST}
    paying.look()
    assert paying.platform.closings == [(paying.run.run_id, 7)]
    paying.check_nothing_is_held(spent=7)
    paying.look()
    assert len(paying.platform.closings) == 1


@pytest.mark.parametrize("after", ["announced", "asked", "decided"])
def test_an_admission_that_dies_is_taken_up_and_reserves_once(paying: Paying, after: str) -> None:
    assert paying.admit(dies_after=after) == "died"
    paying.look()
    assert paying.admit() == "admitted"
    assert paying.platform.holds() == {paying.run.run_id: COST}
    paying.desk.settle(paying.run, Disposition.CANCELLED, Reason.CANCELLED_BY_OPERATOR)
    paying.look()
    paying.check_nothing_is_held(spent=0)


@pytest.mark.parametrize("after", ["announced", "asked", "decided"])
@pytest.mark.parametrize("then", ["lost", "paused", "too late"])
def test_an_admission_that_dies_for_good_leaves_nothing_held(paying: Paying, after: str, then: str) -> None:
    paying.admit(dies_after=after)
    match then:
        case "lost":
            paying.lose()
        case "paused":
            paying.desk.content = NOTHING_ASKED  # type: ignore[assignment] # nobody has to be asked
            paying.desk.pause()
            paying.lose()
        case "too late":
            paying.desk.now = at(91)
            if paying.admit() == "admitted":  # it was decided in time
                paying.desk.settle(paying.run, Disposition.NOT_STARTED, Reason.NOT_PICKED_UP)
    paying.look()
    paying.check_nothing_is_held(spent=0)
    assert paying.platform.closings == [(paying.run.run_id, None)]


def test_a_run_that_is_withdrawn_before_its_second_leaves_nothing_held(paying: Paying) -> None:
    """Another worker's clock is ahead: it has asked, and dies."""
    paying.admit(dies_after="asked")
    paying.desk.now = at(59)
    paying.desk.pause()
    assert paying.desk.told() == []
    paying.look()
    paying.check_nothing_is_held(spent=0)


def test_nobody_is_asked_about_a_run_that_is_nobodys_any_more(paying: Paying) -> None:
    pending = paying.desk.read(admission.pending, paying.run)
    paying.desk.pause()
    assert not paying.desk.write(admission.announce, paying.run, pending.question, now=paying.desk.now)
    assert paying.state() is None


def test_what_is_refused_here_although_the_platform_reserved_is_given_back(paying: Paying) -> None:
    Operator(paying.desk.catalog, paying.desk.key.scope).stop()
    assert paying.admit() == "refused"
    assert paying.platform.holds() == {paying.run.run_id: COST}
    paying.look()
    paying.check_nothing_is_held(spent=0)


@pytest.mark.parametrize("reserved", [None, 0, COST - 1])
def test_a_platform_that_has_room_and_reserves_too_little_admits_nothing(
    paying: Paying, reserved: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another run may have taken the last between its look and its reservation."""
    honest = Platform._facts
    monkeypatch.setattr(Platform, "_facts", lambda self, message: honest(self, message) | {"reserved": reserved})
    if reserved is None:
        monkeypatch.setattr(Platform, "_facts", lambda self, message: honest(self, {**message, "run_id": None}))
    assert paying.admit() == "refused"
    assert paying.desk.entries()[0].reason is Reason.BUDGET_EXHAUSTED
    paying.look()
    paying.check_nothing_is_held(spent=0)


def test_a_platform_without_room_refuses_and_is_told_of_the_end_all_the_same(paying: Paying) -> None:
    paying.platform.spent["team"] = 91
    assert paying.admit() == "refused"
    assert paying.desk.entries()[0].reason is Reason.BUDGET_EXHAUSTED
    paying.look()
    assert paying.platform.closings == [(paying.run.run_id, None)]


def test_a_platform_that_is_silent_for_the_window_is_told_once_it_is_back(paying: Paying) -> None:
    """It may have reserved all the same: its answer was lost, not the question."""

    async def lost(path: str) -> tuple[int, bytes] | None:
        if path.endswith("/questions"):
            paying.platform.answer(path, {**asked, "run_id": paying.run.run_id})
        return 500, b"{}"

    asked = paying.platform.asked[-1]
    paying.platform.fault = lost
    with pytest.raises(Unavailable) as silent:
        paying.admit()
    assert silent.value.code == "authority_unavailable"
    assert paying.platform.holds() == {paying.run.run_id: COST}
    assert paying.desk.told() == [("staged", 60, 60, 1)]
    paying.desk.now = at(90.5)
    assert paying.admit() == "refused"
    assert paying.desk.entries()[0].reason is Reason.AUTHORITY_UNAVAILABLE
    paying.look()
    assert paying.platform.holds() == {paying.run.run_id: COST}
    paying.platform.fault = None
    paying.desk.now += FIRST_PAUSE
    paying.look()
    paying.check_nothing_is_held(spent=0)


def test_a_controller_that_dies_after_telling_tells_again_and_nothing_is_spent_twice(
    paying: Paying, monkeypatch: pytest.MonkeyPatch
) -> None:
    paying.admit()
    paying.desk.begin(paying.run)
    paying.desk.settle(paying.run)

    def dies(*_: Any, **__: Any) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(money, "mark_told", dies)
        paying.look()
    assert paying.open_rows() == 1
    paying.desk.now += FIRST_PAUSE
    paying.look()
    assert paying.platform.closings == [(paying.run.run_id, COST)] * 2
    paying.check_nothing_is_held(spent=COST)


def test_what_may_have_run_is_kept_until_its_time_limit_and_then_spent(paying: Paying) -> None:
    paying.admit()
    paying.desk.settle(paying.run, Disposition.NOT_STARTED, Reason.START_UNKNOWN)
    paying.look()
    assert paying.platform.holds() == {paying.run.run_id: COST}
    paying.desk.now += seconds(59)
    paying.look()
    assert paying.platform.holds() == {paying.run.run_id: COST}
    paying.desk.now += seconds(1)
    paying.look()
    paying.check_nothing_is_held(spent=COST)


def told_at(catalog: Catalog, scope: Scope, run_id: str) -> datetime | None:
    with catalog.reading() as connection:
        row = connection.execute(select(reservations).where(reservations.c.run_id == run_id)).one()
    assert row.environment_id == scope.environment_id
    return row.closed_at


def closed_ones(paying: Paying, count: int) -> list[str]:
    """Runs that ended and that the platform has not been told of."""
    scope = paying.desk.key.scope
    ids = [f"{paying.desk.key.schedule_id[-6:]}-{number:03}" for number in range(count)]
    for number, each in enumerate(ids):
        paying.desk.write(money.announce, scope, each, budget="team", now=at(number))
    return ids


def test_an_end_that_the_platform_will_not_hear_stands_in_no_others_way(paying: Paying) -> None:
    """More of them than fit a page, and older than the one that it hears."""
    ids = closed_ones(paying, PAGE + 1)

    async def hears_the_last(path: str) -> tuple[int, bytes] | None:
        return None if ids[-1] in path else (422, b"{}")

    paying.platform.fault = hears_the_last
    paying.look()
    paying.desk.now += FIRST_PAUSE
    paying.look()
    scope, catalog = paying.desk.key.scope, paying.desk.catalog
    assert told_at(catalog, scope, ids[-1]) is not None
    assert told_at(catalog, scope, ids[0]) is None
    paying.platform.fault = None
    paying.desk.now += FIRST_PAUSE
    paying.look()
    assert paying.open_rows() == 0


def test_a_platform_that_hears_nothing_is_left_alone_for_longer_and_longer(paying: Paying) -> None:
    closed_ones(paying, 1)
    tried = []

    async def deaf(path: str) -> tuple[int, bytes] | None:
        tried.append(round((paying.desk.now - at(60)).total_seconds()))
        return 503, b"{}"

    paying.platform.fault = deaf
    while paying.desk.now < at(60) + 2 * LONGEST_PAUSE:
        paying.look()
        paying.desk.now += seconds(5)
    assert tried[0] == 0
    pauses = [later - earlier for earlier, later in itertools.pairwise(tried)]
    assert pauses == sorted(pauses)
    assert len(tried) <= 8
    paying.platform.fault = None
    paying.desk.now += LONGEST_PAUSE
    paying.look()
    assert paying.open_rows() == 0


def test_without_a_platform_nobody_is_told_what_a_platform_holds(paying: Paying) -> None:
    """Whoever takes the setting away finds everything still to be told once it is back."""
    ids = closed_ones(paying, 1)
    looking = Reservations(paying.desk.catalog, None, paying.desk.key.scope, now=lambda: paying.desk.now)
    asyncio.run(looking.look())
    assert told_at(paying.desk.catalog, paying.desk.key.scope, ids[0]) is None
    paying.look()
    assert paying.open_rows() == 0
