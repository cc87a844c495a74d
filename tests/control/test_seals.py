"""Every audit event is under exactly one seal in the end, and whoever touches one of them is found out."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import delete, func, insert, select, text, update

from horarium.catalog import seals as queries
from horarium.catalog.audit_events import record_event
from horarium.catalog.environments import ensure_environment
from horarium.catalog.schedules import require_schedule
from horarium.catalog.tables import audit_events
from horarium.catalog.tables import seals as table
from horarium.control.audit import audit, document
from horarium.control.seals import BACKDATED, is_due, seal_due, verify_seals
from horarium.schedule.identity import Scope
from tests.control.desk import NOON, SCOPE, Desk, at, every


@pytest.fixture
def desk(own_desk: Desk) -> Desk:
    """A catalog of its own: seals are of a whole environment."""
    return own_desk


def event(desk: Desk, when: datetime, note: str = "") -> None:
    """An event of the schedule, as any transaction writes one."""
    desk.write(
        lambda c: record_event(
            c, require_schedule(c, desk.key), "noted", at=when, actor="ada", details={"note": note, "ünïcode": [1, 2.5]}
        )
    )


def seal(desk: Desk, when: datetime) -> Any:
    return desk.write(seal_due, SCOPE, now=when)


def faults(desk: Desk) -> list[tuple[int, str]]:
    return [(fault.number, fault.code) for fault in desk.read(verify_seals, SCOPE).faults]


def three_seals(desk: Desk) -> None:
    """One event under the first seal, two under the second, three under the third, and one that waits."""
    desk.publish(every(60))
    assert seal(desk, at(61)).number == 1
    for number in range(2):
        event(desk, at(70 + number))
    assert seal(desk, at(121)).number == 2
    for number in range(3):
        event(desk, at(130 + number))
    assert seal(desk, at(181)).number == 3
    event(desk, at(190))


def test_a_minute_s_events_are_sealed_once_it_is_over_and_at_most_once_a_minute(desk: Desk) -> None:
    desk.publish(every(60))
    first = seal(desk, at(1))
    assert (first.number, first.minute, first.count, first.previous) == (1, NOON, 1, None)
    event(desk, at(2))
    assert not desk.read(is_due, SCOPE, now=at(59.9))
    assert seal(desk, at(59.9)) is None
    assert desk.read(is_due, SCOPE, now=at(60))
    second = seal(desk, at(60))
    assert (second.number, second.minute, second.previous) == (2, at(60), first.digest)
    assert not desk.read(is_due, SCOPE, now=at(600))
    assert seal(desk, at(600)) is None, "a minute without events has no seal"
    assert faults(desk) == []


def test_an_hour_without_a_controller_is_made_up_for(desk: Desk) -> None:
    desk.publish(every(60))
    for minute in range(60):
        event(desk, at(minute * 60))
    assert seal(desk, at(3_700)).count == 61
    verified = desk.read(verify_seals, SCOPE)
    assert (verified.count, verified.events, verified.unsealed, verified.faults) == (1, 61, 0, ())


def test_a_transaction_that_is_late_or_whose_clock_is_wrong_finds_the_next_seal(desk: Desk) -> None:
    """What is sealed are the events that are there and uncovered, so nothing can fall between two seals or into an old one."""
    desk.publish(every(60))
    seal(desk, at(121))
    event(desk, at(5), "begun long before the seal, and committed after it")
    event(desk, at(900), "by a clock that is ahead")
    assert seal(desk, at(181)).count == 2
    assert faults(desk) == []
    assert desk.read(queries.count_unsealed, SCOPE) == 0


def test_a_clock_that_goes_back_makes_the_next_seal_wait(desk: Desk) -> None:
    desk.publish(every(60))
    seal(desk, at(600))
    event(desk, at(300))
    assert seal(desk, at(301)) is None
    assert seal(desk, at(660)).number == 2
    assert faults(desk) == []


def test_two_controllers_at_once_make_one_seal(desk: Desk) -> None:
    desk.publish(every(60))
    gate = threading.Barrier(8)

    def one(_: int) -> Any:
        gate.wait()
        return seal(desk, at(61))

    with ThreadPoolExecutor(8) as pool:
        made = [each for each in pool.map(one, range(8)) if each is not None]
    assert [each.number for each in made] == [1]
    assert faults(desk) == []


def test_every_environment_has_its_own_chain(desk: Desk) -> None:
    elsewhere = Scope(org_id="acme", environment_id="elsewhere")
    desk.write(ensure_environment, elsewhere, mode="simulation", runtime_profile="embedded")
    three_seals(desk)
    assert desk.write(seal_due, elsewhere, now=at(300)) is None
    assert desk.write(seal_due, Scope(org_id="acme", environment_id="nowhere"), now=at(300)) is None
    verified = desk.read(verify_seals, elsewhere)
    assert (verified.count, verified.events, verified.unsealed, verified.faults) == (0, 0, 0, ())


def test_very_many_events_are_sealed_a_part_each_minute(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a full seal left for the next one may be old without having been made up."""
    monkeypatch.setattr("horarium.control.seals.EVENTS_AT_ONCE", 2)
    monkeypatch.setattr(queries.unsealed_events, "__kwdefaults__", {"limit": 2})
    desk.publish(every(60))
    for number in range(4):
        event(desk, at(number))
    later = NOON + 3 * BACKDATED
    assert [seal(desk, later + timedelta(minutes=minute)).count for minute in range(3)] == [2, 2, 1]
    assert faults(desk) == []


def change(number: int, **values: Any) -> Callable[[Any], Any]:
    """Change the first event under a seal."""
    first = select(func.min(audit_events.c.id)).where(audit_events.c.seal == number).scalar_subquery()
    return lambda c: c.execute(update(audit_events).where(audit_events.c.id == first).values(**values))


def change_seal(which: int, **values: Any) -> Callable[[Any], Any]:
    return lambda c: c.execute(update(table).where(table.c.number == which).values(**values))


def delete_seals(*numbers: int) -> Callable[[Any], Any]:
    return lambda c: c.execute(delete(table).where(table.c.number.in_(numbers)))


def invent(**values: Any) -> Callable[[Any], Any]:
    """Insert an event that nobody wrote."""
    event_values = {"kind": "paused", "actor": "ada", "at": at(75), "details": {}, **values}
    return lambda c: c.execute(
        insert(audit_events).values(schedule=select(audit_events.c.schedule).limit(1).scalar_subquery(), **event_values)
    )


def rubbish(connection: Any) -> None:
    if connection.dialect.name == "postgresql":
        # It takes nothing else than JSON in such a column; whoever may change a table may change that too.
        connection.execute(text("ALTER TABLE audit_events ALTER details TYPE text"))
    connection.execute(text("UPDATE audit_events SET details = '{' WHERE seal = 2"))


TAMPERINGS: dict[str, tuple[Callable[[Any], Any], list[tuple[int, str]]]] = {
    "another actor": (change(2, actor="eve"), [(2, "event_changed")]),
    "another time": (change(2, at=at(71.5)), [(2, "event_changed")]),
    "another kind": (change(2, kind="paused"), [(2, "event_changed")]),
    "another generation": (change(2, generation=7), [(2, "event_changed")]),
    "another revision": (change(1, revision=7), [(1, "event_changed")]),
    "other details": (change(2, details={"note": "nothing"}), [(2, "event_changed")]),
    "details that are no JSON": (
        rubbish,
        [(2, "event_changed")],
    ),
    "details that have no canonical form": (
        lambda c: c.execute(text("UPDATE audit_events SET details = '[9007199254740993, \"\\ud800\"]' WHERE seal = 2")),
        [(2, "event_changed")],
    ),
    "an event was deleted": (
        lambda c: c.execute(
            text("DELETE FROM audit_events WHERE id = (SELECT max(id) FROM audit_events WHERE seal = 2)")
        ),
        [(2, "event_missing")],
    ),
    "all events of a seal were deleted": (
        lambda c: c.execute(delete(audit_events).where(audit_events.c.seal == 2)),
        [(2, "event_missing")],
    ),
    "an event was inserted under a seal": (invent(seal=2), [(2, "event_added")]),
    "an event was moved to another seal": (change(2, seal=3), [(2, "event_missing"), (3, "event_added")]),
    "an event was taken from its seal": (change(2, seal=None), [(2, "event_missing")]),
    "an event of long ago was inserted": (invent(at=NOON - timedelta(days=1)), [(4, "event_added")]),
    "a seal was deleted in the middle": (delete_seals(2), [(2, "seal_missing")]),
    "the first seal was deleted": (delete_seals(1), [(1, "seal_missing")]),
    "the newest seal was deleted": (delete_seals(3), [(3, "seal_missing")]),
    "all seals were deleted": (delete_seals(1, 2, 3), [(1, "seal_missing"), (2, "seal_missing"), (3, "seal_missing")]),
    "a seal's digest was changed": (
        change_seal(2, digest=f"sha256:{'0' * 64}"),
        [(2, "event_changed"), (3, "chain_broken")],
    ),
    "a seal names another one before it": (
        change_seal(2, previous=f"sha256:{'0' * 64}"),
        [(2, "chain_broken"), (2, "event_changed")],
    ),
    "the first seal names one before it": (
        change_seal(1, previous=f"sha256:{'0' * 64}"),
        [(1, "chain_broken"), (1, "event_changed")],
    ),
    "a seal's minute was changed": (change_seal(2, minute=at(90)), [(2, "event_changed")]),
    "a seal's count was changed": (change_seal(2, count=1), [(2, "event_added")]),
    "a seal's first event was changed": (change_seal(2, first_event=1), [(2, "event_changed")]),
    "a seal's number was changed": (
        change_seal(3, number=9),
        [(3, "seal_missing"), (9, "event_missing")],
    ),
}


@pytest.mark.parametrize(("tamper", "found"), TAMPERINGS.values(), ids=TAMPERINGS)
def test_whoever_touches_what_is_sealed_is_found_out(
    desk: Desk, tamper: Callable[[Any], Any], found: list[tuple[int, str]]
) -> None:
    three_seals(desk)
    assert faults(desk) == []
    desk.write(tamper)
    assert faults(desk) == found
    result = desk.read(audit, SCOPE, now=at(200))
    assert not result.clean
    assert [each["code"] for each in document(result)["seals"]["faults"]] == [code for _, code in found]


def test_a_seal_that_is_made_again_under_an_old_number_does_not_fit(desk: Desk) -> None:
    three_seals(desk)
    desk.write(delete_seals(3))
    assert seal(desk, at(300)).number == 3
    assert faults(desk) == [(3, "event_added")]


def test_the_audit_tells_the_newest_digest_which_is_worth_noting_elsewhere(desk: Desk) -> None:
    three_seals(desk)
    result = desk.read(audit, SCOPE, now=at(200))
    assert result.clean
    assert result.seals.last is not None
    assert document(result)["seals"] == {
        "count": 3,
        "events": 6,
        "archived": 0,
        "redacted": 0,
        "unsealed": 1,
        "last": {"number": 3, "digest": result.seals.last.digest},
        "faults": [],
    }


def test_the_audit_of_one_schedule_says_nothing_of_seals(desk: Desk) -> None:
    three_seals(desk)
    desk.write(change(2, actor="eve"))
    result = desk.read(audit, desk.key, now=at(200))
    assert result.seals is None
    assert document(result)["seals"] is None


def test_nobody_can_tell_from_the_catalog_alone_that_the_end_was_cut_off_but_the_digest_can(desk: Desk) -> None:
    """Why the newest digest is shown: the chain holds what stands before it, not what stood behind."""
    three_seals(desk)
    noted = desk.read(verify_seals, SCOPE).last
    assert noted is not None
    desk.write(lambda c: (delete_seals(3)(c), c.execute(delete(audit_events).where(audit_events.c.seal == 3))))
    verified = desk.read(verify_seals, SCOPE)
    assert verified.faults == ()
    assert verified.last is not None
    assert (verified.last.number, verified.last.digest) != (noted.number, noted.digest)
