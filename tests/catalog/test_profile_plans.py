"""What a run tells its thread, and what pruning asks, reads no table through: threads grow for as long as profiles fire."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, insert

from horarium.catalog import Catalog
from horarium.catalog.tables import profiles, thread_events
from horarium.control import profiles as profiles_module
from horarium.control.threads import PROFILES_AT_ONCE, Pruned, prune
from tests.catalog.test_query_plans import work
from tests.control.desk import NOON, SCOPE, Desk, at, open_catalog
from tests.control.profiler import Profiler, profiler_of

DAY = 86_400
HERE = {"org_id": SCOPE.org_id, "environment_id": SCOPE.environment_id}


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    opened = open_catalog(tmp_path)
    yield opened
    opened.close()


def lived(profiler: Profiler) -> None:
    """A run of a profile, what is read of it, and a look for what is old."""
    profiler.world().pass_until(at(70))
    profiler.show()
    profiler.thread()
    pruned(profiler, after=0)


def pruned(profiler: Profiler, *, after: int) -> Pruned:
    """One page of profiles is looked at, for events that none of them has."""
    done: Pruned = profiler.desk.write(prune, now=at(DAY), older_than_days=30, after=after, scope=SCOPE)
    return done


def deleted(profiler: Profiler, count: int) -> None:
    """So many other profiles that were deleted."""
    beside(profiler, "Old", count, deleted_at=NOON)


def live(profiler: Profiler, count: int) -> None:
    """So many other profiles that are there."""
    beside(profiler, "Other", count, deleted_at=None)


def beside(profiler: Profiler, agent_class: str, count: int, **more: Any) -> None:
    named = {"agent_class": agent_class, "config": "{}", "created_at": NOON, "changed_at": NOON, "changed_by": "ada"}
    rows = [{**HERE, **named, **more, "agent_id": f"{n}"} for n in range(count)]
    profiler.desk.write(lambda connection: connection.execute(insert(profiles), rows))


def told(profiler: Profiler, count: int) -> None:
    """So many events of each of two threads."""
    threads = ("0" * 64, profiler.show()["thread_id"])
    rows = [{**HERE, "thread_id": thread, "kind": "run_ended", "at": NOON, "data": {}} for thread in threads] * count
    profiler.desk.write(lambda connection: connection.execute(insert(thread_events), rows))


def test_no_question_about_a_profile_reads_a_table_through(catalog: Catalog) -> None:
    plans: dict[str, list[str]] = {}

    def explain(connection: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, many: bool) -> None:
        if not many and statement.split(maxsplit=1)[0] in {"SELECT", "UPDATE", "DELETE"}:
            raw = connection.connection.driver_connection
            plans[statement] = [row[3] for row in raw.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)]

    profiler = profiler_of(Desk(catalog))
    profiler.save()
    event.listen(catalog.engine, "before_cursor_execute", explain)
    lived(profiler)
    profiler.save()
    profiler.trigger()
    profiler.delete()
    profiler.desk.read(profiles_module.classes, profiler.who, SCOPE, limit=1, now=profiler.desk.now)
    asked = [statement for statement in plans if re.search(r"FROM (thread_events|profiles|agents)", statement)]
    assert len(asked) >= 5
    for statement, plan in plans.items():
        for line in plan:
            assert not re.match(r"SCAN (profiles|threads|thread_events|agents)\b", line), (statement, plan)
            # Whoever sorts has read all of it, for a page as for the whole.
            assert statement not in asked or "TEMP B-TREE" not in line, (statement, plan)


def test_what_a_run_costs_does_not_grow_with_its_thread(tmp_path: Path) -> None:
    costs = []
    for count in (10, 5_000):
        (tmp_path / str(count)).mkdir()
        catalog = open_catalog(tmp_path / str(count))
        profiler = profiler_of(Desk(catalog))
        profiler.save()
        deleted(profiler, count)
        told(profiler, count)
        costs.append(work(catalog, lambda profiler=profiler: profiler.world().pass_until(at(70))))
        catalog.close()
    (statements, operations), (again, more) = costs
    assert again == statements
    assert more <= operations * 1.5, costs


def test_one_transaction_of_pruning_costs_the_same_however_many_profiles_there_are(tmp_path: Path) -> None:
    costs = []
    for count in (2 * PROFILES_AT_ONCE, 5_000):
        (tmp_path / str(count)).mkdir()
        catalog = open_catalog(tmp_path / str(count))
        profiler = profiler_of(Desk(catalog))
        deleted(profiler, count)
        live(profiler, count)
        first = pruned(profiler, after=0)
        assert first.after is not None
        costs += [
            work(catalog, lambda profiler=profiler, after=after: pruned(profiler, after=after))
            for after in (0, first.after)
        ]
        catalog.close()
    statements, operations = zip(*costs, strict=True)
    assert len(set(statements)) == 1
    assert max(operations) <= min(operations) * 1.2, costs
