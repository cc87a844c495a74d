"""The page about notifications holds what a person can look through, however many schedules have a heartbeat."""

import uuid
from datetime import timedelta
from typing import Any

from sqlalchemy import update

from horarium.catalog import endpoints
from horarium.catalog.endpoints import Endpoint
from horarium.catalog.notification_tables import endpoints as table
from horarium.control.notifications import endpoints_document
from horarium.control.notifications_page import HEARTBEATS, notifications_page
from horarium.schedule.notifications import ASKED_FOR, Kind
from tests.control.desk import NOON, SCOPE, Desk

SECOND = timedelta(seconds=1)


def declared(desk: Desk, name: str, *kinds: Kind, schedule_id: str | None = None) -> Endpoint:
    about: dict[str, Any] = {"url": "https://a.example/", "secret": "HORARIUM_SECRET_A", "private": False}
    told: Endpoint = desk.write(
        endpoints.put_endpoint, SCOPE, name, kinds=kinds, schedule_id=schedule_id, by="ada", now=NOON, **about
    )
    return told


def test_of_many_heartbeats_those_that_want_to_be_seen_stand_first(own_desk: Desk) -> None:
    declared(own_desk, "pager", *ASKED_FOR)
    ids = sorted(str(uuid.uuid4()) for _ in range(HEARTBEATS + 5))
    beats = [declared(own_desk, f"heartbeat:{each}", Kind.HEARTBEAT, schedule_id=each) for each in ids]
    gone = update(table).where(table.c.id == beats[-1].row).values(stopped_at=NOON + SECOND, stopped_because="Gone.")
    own_desk.write(lambda connection: connection.execute(gone))

    page = own_desk.read(notifications_page, SCOPE)
    names = [each["name"] for each in page["endpoints"]]
    assert names == ["pager", beats[-1].name, *(each.name for each in beats[: HEARTBEATS - 1])]
    assert page["more_heartbeats"] == 5
    assert len(own_desk.read(endpoints_document, SCOPE)["endpoints"]) == HEARTBEATS + 6, "the API has all"


def test_few_heartbeats_are_all_there(own_desk: Desk) -> None:
    declared(own_desk, "zz-pager", *ASKED_FOR)
    beat = declared(own_desk, f"heartbeat:{uuid.uuid4()}", Kind.HEARTBEAT, schedule_id=str(uuid.uuid4()))
    page = own_desk.read(notifications_page, SCOPE)
    assert [each["name"] for each in page["endpoints"]] == ["zz-pager", beat.name]
    assert page["more_heartbeats"] == 0
