"""A row of a profile that a hand has damaged is shown with its fault, can be mended by its own operations, and hides no other."""

import itertools
from collections.abc import Mapping
from typing import Any

import pytest
from sqlalchemy import func, select, text, update
from starlette.responses import JSONResponse

from horarium.catalog.profiles import profile_of_schedule
from horarium.catalog.schedules import require_schedule
from horarium.catalog.tables import profiles as rows
from horarium.catalog.tables import thread_events, versions
from horarium.control import profiles, records
from horarium.control.threads import prune
from tests.control.desk import SCOPE, Desk, at
from tests.control.profiler import Profiler, profiler_of, saved

CONFIGS = {
    "no JSON": "no JSON at all",
    "too large a number": '{"cron":null,"a":1e999}',
    "no number": '{"cron":null,"a":NaN}',
    "half a character": '{"cron":null,"a":"\\ud800"}',
    "no object": "[]",
}
_numbers = itertools.count(1)


@pytest.fixture
def three(desk: Desk) -> list[Profiler]:
    """Profiles of a class of their own, each of which fires."""
    agent_class, agent_version = f"Damaged{next(_numbers)}", f"damaged{next(_numbers)}@1"
    made = []
    for name in ("p0", "p1", "p2"):
        profiler = Profiler(Desk(desk.catalog), agent_class=agent_class, agent_id=name)
        profiler.register(agent_version, agent_class=agent_class)
        profiler.bind(agent_version=agent_version)
        profiler.save(saved(folder=name))
        made.append(profiler)
    return made


def damage(profiler: Profiler, **values: Any) -> None:
    mine = (rows.c.agent_class == profiler.agent_class) & (rows.c.agent_id == profiler.agent_id)
    profiler.desk.write(lambda connection: connection.execute(update(rows).where(mine).values(**values)))


def damage_time(profiler: Profiler, column: str) -> None:
    """SQLite alone takes what is no time."""
    if profiler.desk.read(lambda connection: connection.dialect.name) != "sqlite":
        pytest.skip("PostgreSQL keeps nothing but times in a column of times")
    told = text(f"UPDATE profiles SET {column} = 'x' WHERE agent_class = :agent_class AND agent_id = :agent_id")
    named = {"agent_class": profiler.agent_class, "agent_id": profiler.agent_id}
    profiler.desk.write(lambda connection: connection.execute(told, named))


def damage_version(profiler: Profiler, whole: str, damaged: str) -> None:
    def act(connection: Any) -> None:
        row = require_schedule(connection, profiler.desk.key).row
        replaced = func.replace(versions.c.configuration, whole, damaged)
        connection.execute(update(versions).where(versions.c.schedule == row).values(configuration=replaced))

    profiler.desk.write(act)


def listed(profiler: Profiler) -> dict[str, Mapping[str, Any]]:
    """The directory as it goes over the wire."""
    found = profiler.desk.read(
        profiles.directory, profiler.who, profiler.scope, profiler.agent_class, now=profiler.desk.now
    )
    JSONResponse(found)
    return {each["agent_id"]: each for each in found["profiles"]}


def faulty(profiler: Profiler) -> str:
    """The fault of the second of three, as page and profile tell it; the others have none."""
    found = listed(profiler)
    assert [name for name, each in found.items() if each["fault"] is None] == ["p0", "p2"]
    shown = profiler.show()
    JSONResponse(shown)
    assert shown == found["p1"]
    return str(shown["fault"])


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_a_config_that_cannot_be_told_hides_no_other(three: list[Profiler], config: str) -> None:
    damage(three[1], config=config)
    fault = faulty(three[1])
    assert "cannot be shown" in fault
    assert "The version that was saved last goes on. Save the profile again." in fault
    assert (three[1].show()["config"], three[1].show()["state"]) == (None, "enabled")
    three[1].world().pass_until(at(70))
    assert three[1].desk.told()[0][0] == "succeeded"
    three[1].clear()
    assert "goes on" not in faulty(three[1])
    three[1].save()
    assert three[1].show()["fault"] is None


@pytest.mark.parametrize("column", ["created_at", "changed_at"])
def test_a_time_that_is_none_hides_no_other(three: list[Profiler], column: str) -> None:
    damage_time(three[1], column)
    assert "when it was made or changed" in faulty(three[1])
    three[1].desk.write(prune, now=at(0), older_than_days=1, scope=SCOPE)
    three[1].save()
    assert three[1].show()["fault"] is None


def test_one_that_was_deleted_at_no_time_is_deleted(three: list[Profiler]) -> None:
    three[1].delete()
    damage_time(three[1], "deleted_at")
    assert set(listed(three[1])) == {"p0", "p2"}
    three[1].save()
    assert listed(three[1])["p1"]["fault"] is None


@pytest.mark.parametrize("value", ["1e999", "NaN", '"\\ud800"'])
def test_a_version_that_cannot_be_told_is_a_fault(three: list[Profiler], value: str) -> None:
    damage_version(three[1], '"folder":"p1"', f'"folder":{value}')
    assert "Revision 1 cannot be used" in faulty(three[1])
    found = three[1].desk.read(records.record, three[1].desk.key, now=at(0))
    JSONResponse(found)
    assert (found["configuration"], "no JSON" in found["problem"]) == ({}, True)


@pytest.mark.parametrize("damaged", ["7", None, "of another"])
def test_a_damaged_reference_to_its_schedule_keeps_nobody_from_stopping_it(
    three: list[Profiler], damaged: str | None
) -> None:
    schedule_id = three[1].show()["schedule_id"]
    damage(three[1], schedule_id=three[0].show()["schedule_id"] if damaged == "of another" else damaged)
    assert three[1].show()["schedule_id"] == schedule_id
    for profiler in three[:2]:
        key = profiler.desk.key
        found = profiler.desk.read(profile_of_schedule, SCOPE, key.schedule_id)
        assert (found is None, found and found.agent_id) == (False, profiler.agent_id)
    three[1].world().pass_until(at(70))
    assert [kind for kind, _ in three[1].told()] == ["run_started", "run_ended"]
    assert three[1].clear().document["ended_generation"] == 1
    assert three[1].delete().document["schedule_id"] == schedule_id
    assert set(listed(three[0])) == {"p0", "p2"}


def test_a_schedule_without_a_profile_has_none(three: list[Profiler]) -> None:
    damage(three[1], agent_id="moved")
    assert three[1].desk.read(profile_of_schedule, SCOPE, three[1].desk.key.schedule_id) is None
    damage_version(three[1], '"source":', '"source":7,"was":')
    assert three[1].desk.read(profile_of_schedule, SCOPE, three[1].desk.key.schedule_id) is None


@pytest.mark.parametrize("data", ['{"a":1e999}', '{"a":"\\ud800"}', "[]", "7"])
def test_an_event_that_cannot_be_told_hides_no_other(desk: Desk, data: str) -> None:
    profiler = profiler_of(desk)
    profiler.save()
    profiler.world().pass_until(at(70))
    first = select(func.min(thread_events.c.id)).where(thread_events.c.thread_id == profiler.thread()["thread_id"])

    def act(connection: Any) -> None:
        number = connection.execute(first).scalar_one()
        as_json = ":data" if connection.dialect.name == "sqlite" else "CAST(:data AS json)"
        query = text(f"UPDATE thread_events SET data = {as_json} WHERE id = :id")
        connection.execute(query, {"data": data, "id": number})

    profiler.desk.write(act)
    events = profiler.thread()["events"]
    JSONResponse(events)
    assert list(events[0]["data"]) == ["unreadable"]
    assert events[1]["data"]["disposition"] == "succeeded"


def test_times_of_a_thread_that_are_none_are_told_as_none(desk: Desk) -> None:
    profiler = profiler_of(desk)
    profiler.save()
    profiler.world().pass_until(at(70))
    damage_time_of_thread(profiler)
    found = profiler.thread()
    JSONResponse(found)
    assert found["created_at"] is None
    assert [each["at"] is None for each in found["events"]] == [True, True]


def damage_time_of_thread(profiler: Profiler) -> None:
    if profiler.desk.read(lambda connection: connection.dialect.name) != "sqlite":
        pytest.skip("PostgreSQL keeps nothing but times in a column of times")
    named = {"thread_id": profiler.thread()["thread_id"]}
    for table, column in (("threads", "created_at"), ("thread_events", "at")):
        query = text(f"UPDATE {table} SET {column} = 'x' WHERE thread_id = :thread_id")
        profiler.desk.write(lambda connection, query=query: connection.execute(query, named))
