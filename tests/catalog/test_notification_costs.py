"""What it costs to tell something does not grow with what was told before."""

import uuid
from pathlib import Path
from typing import Any

from sqlalchemy import insert

from horarium.catalog import deliveries
from horarium.catalog.deliveries import DELIVERED
from horarium.catalog.endpoints import Endpoint, put_endpoint
from horarium.catalog.notification_tables import deliveries as told
from horarium.catalog.notification_tables import notifications
from horarium.schedule.ledger import Disposition
from horarium.schedule.notifications import ASKED_FOR, Kind
from tests.catalog.test_query_plans import work
from tests.control.desk import NOON, SCOPE, Desk, every, open_catalog, seconds

LEASE = seconds(30)


def listening(connection: Any) -> Endpoint:
    return put_endpoint(
        connection,
        SCOPE,
        "pager",
        url="https://pager.example/",
        secret="HORARIUM_SECRET_PAGER",
        private=False,
        kinds=ASKED_FOR,
        schedule_id=None,
        by="ada",
        now=NOON,
    )


def a_past(connection: Any, endpoint: Endpoint, count: int) -> None:
    """So many notifications that were heard."""
    of = {"org_id": SCOPE.org_id, "environment_id": SCOPE.environment_id, "kind": Kind.TEST.value, "at": NOON}
    rows = [{"id": number, "message_id": str(uuid.uuid4()), "spread": True, **of} for number in range(1, count + 1)]
    connection.execute(insert(notifications), rows)
    heard = {"state": DELIVERED, "since": NOON, "next_at": NOON, "attempts": 1, "ended_at": NOON}
    connection.execute(insert(told), [{"notification": each["id"], "endpoint": endpoint.row, **heard} for each in rows])


def tell(desk: Desk) -> None:
    """All that a notifier asks for one message, and for nothing."""
    assert desk.read(deliveries.todo, SCOPE, now=desk.now, limit=10).unspread
    assert desk.write(deliveries.spread, SCOPE, now=desk.now, limit=10) == 1
    (endpoint,) = desk.read(deliveries.todo, SCOPE, now=desk.now, limit=10).due
    (claimed,) = desk.write(deliveries.claim, endpoint.row, now=desk.now, lease=LEASE, limit=4)
    assert desk.write(deliveries.claim, endpoint.row, now=desk.now, lease=LEASE, limit=4) == []
    desk.write(deliveries.mark_delivered, endpoint.row, claimed, status=200, now=desk.now)
    assert desk.read(deliveries.todo, SCOPE, now=desk.now, limit=10) == deliveries.Todo()
    assert desk.read(deliveries.list_dead, SCOPE, after=0, limit=10) == []
    desk.write(deliveries.prune, delivered_before=NOON, dead_before=NOON, limit=10)


def test_to_tell_one_thing_costs_the_same_after_ten_and_after_ten_thousand(tmp_path: Path) -> None:
    costs = []
    for count in (10, 10_000):
        (tmp_path / str(count)).mkdir()
        catalog = open_catalog(tmp_path / str(count))
        desk = Desk(catalog)
        endpoint = desk.write(listening)
        desk.write(a_past, endpoint, count)
        loop = desk.enabled(every(60))
        loop.step_at(58)
        loop.has_run(60, ends=65, disposition=Disposition.FAILED)
        costs.append(work(catalog, lambda desk=desk: tell(desk)))
        catalog.close()
    (statements, operations), (again, more) = costs
    assert again == statements
    assert more <= operations + 3, costs
