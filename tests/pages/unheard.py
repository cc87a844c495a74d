"""Endpoints of notifications, and messages that they heard or that were given up."""

from datetime import datetime, timedelta
from typing import Any

from horarium.catalog import Catalog, deliveries, endpoints
from horarium.catalog.endpoints import Endpoint
from horarium.schedule.notifications import ASKED_FOR, Kind
from tests.control.desk import SCOPE


def listening(catalog: Catalog, name: str, *, now: datetime, **more: Any) -> Endpoint:
    """An endpoint that is told of everything that can be asked for, unless something else is said."""
    asked = {"kinds": list(ASKED_FOR), "schedule_id": None, **more}
    told = {
        "url": f"https://{name}.acme.example/horarium",
        "secret": "HORARIUM_SECRET_PAGER",
        "private": False,
        **asked,
    }
    with catalog.writing() as connection:
        return endpoints.put_endpoint(connection, SCOPE, name, by="olga", now=now, **told)


def heartbeat(catalog: Catalog, schedule_id: str, *, now: datetime) -> Endpoint:
    """The heartbeat of a schedule."""
    kinds = [Kind.HEARTBEAT]
    url = "https://watcher.acme.example/beat"
    return listening(catalog, f"heartbeat:{schedule_id}", now=now, kinds=kinds, schedule_id=schedule_id, url=url)


def hear(catalog: Catalog, endpoint: Endpoint, *, now: datetime) -> int:
    """Let an endpoint hear everything that is for it, and return how much that was."""
    return _answer(catalog, endpoint, now=now, error=None, gives_up=False)


def fail(catalog: Catalog, endpoint: Endpoint, error: str, *, now: datetime, gives_up: bool = True) -> int:
    """Let an endpoint hear nothing of what is for it, and give it up where that is said; returns how much that was."""
    return _answer(catalog, endpoint, now=now, error=error, gives_up=gives_up)


def _answer(catalog: Catalog, endpoint: Endpoint, *, now: datetime, error: str | None, gives_up: bool) -> int:
    with catalog.writing() as connection:
        while deliveries.spread(connection, SCOPE, now=now, limit=1_000) == 1_000:
            pass
        lease = timedelta(seconds=30)
        found = deliveries.claim(connection, endpoint.row, now=now, lease=lease, limit=10_000)
        for each in found:
            if error is None:
                deliveries.mark_delivered(connection, endpoint.row, each, status=204, now=now)
            else:
                next_at = None if gives_up else now + timedelta(hours=1)
                deliveries.mark_failed(connection, each, status=500, error=error, next_at=next_at, now=now)
    return len(found)
