"""What was archived is said wherever it is asked for: no answer lets it look as if it had never been."""

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from horarium.catalog.archive_tables import archives
from horarium.catalog.environments import ensure_environment
from horarium.catalog.pages import Wanted
from horarium.control import archiving, pages, records
from horarium.control.archive_files import RECEIPT_LINES
from horarium.control.archived import NAMED, archived
from horarium.control.archiving import write_archive
from horarium.control.principals import Principal, local_principal
from horarium.control.receipts import find_receipt
from horarium.control.schedule_page import schedule_page
from horarium.control.stories import story
from horarium.errors import NotFound
from horarium.schedule.identity import Scope, instant_text
from tests.control.desk import NOON, SCOPE, Desk, every
from tests.control.test_archiving import BEFORE, DAY, NOW, OTHER, lived, pruned

ADA = local_principal("ada", SCOPE)


@pytest.fixture
def desk(own_desk: Desk) -> Desk:
    return own_desk


def archive(desk: Desk, to: Path) -> tuple[archiving.Archived, str]:
    made = write_archive(desk.catalog, SCOPE, to, before=BEFORE, now=NOW, prune=True)
    done = pruned(desk, made.folder)
    return done, str(json.loads((made.folder / "manifest.json").read_text())["archive_id"])


def run_ids(made: archiving.Archived) -> list[str]:
    lines = (made.folder / "ledger.jsonl").read_text().splitlines()
    return [json.loads(line)["run"]["run_id"] for line in lines]


def named(archive_id: str) -> list[dict[str, str]]:
    return [{"archive_id": archive_id, "before": instant_text(BEFORE), "archived_at": instant_text(NOW)}]


def test_what_was_archived_is_told_wherever_it_is_asked_for(desk: Desk, tmp_path: Path) -> None:
    lived(desk)
    write_archive(desk.catalog, SCOPE, tmp_path / "copies", before=BEFORE, now=NOW, prune=False)
    assert desk.read(archived, SCOPE) == [], "nothing was removed after that one"
    made, archive_id = archive(desk, tmp_path)
    assert made.rows[RECEIPT_LINES] == 20
    one_by_one(desk, run_ids(made)[0], archive_id)
    lists(desk, archive_id)


def one_by_one(desk: Desk, run_id: str, archive_id: str) -> None:
    for ask in (
        lambda c: find_receipt(c, SCOPE, ADA, "key-1"),
        lambda c: pages.run_document(c, SCOPE, run_id),
        lambda c: story(c, SCOPE, run_id),
    ):
        with pytest.raises(NotFound) as caught:
            desk.read(ask)
        assert archive_id in caught.value.next_step
        assert instant_text(BEFORE) in caught.value.next_step
    # What is still here is answered as ever.
    assert desk.read(find_receipt, SCOPE, ADA, "key-30").replayed


def lists(desk: Desk, archive_id: str) -> None:
    def page(wanted: Wanted, *, after: Any = None, limit: int = 10) -> pages.LedgerPage:
        found: pages.LedgerPage = desk.read(pages.schedule_ledger, desk.key, wanted, after=after, limit=limit)
        return found

    first = page(Wanted())
    assert first.archived == named(archive_id)
    assert page(Wanted(), after=first.last).archived == [], "what is behind a page is not older than it"
    newest = page(Wanted(newest_first=True))
    assert newest.last is not None
    assert newest.archived == [], "there are older pages here"
    assert page(Wanted(newest_first=True), limit=500).archived == named(archive_id)
    empty = page(Wanted(since=NOON + DAY, until=NOON + 3 * DAY))
    assert (empty.documents, empty.archived) == ([], named(archive_id))
    assert page(Wanted(since=BEFORE + DAY)).archived == [], "nothing that young was archived"
    whole = desk.read(pages.ledger, SCOPE, Wanted(), after=None, limit=10)
    assert whole.archived == named(archive_id)
    assert desk.read(records.archived_events, desk.key) == named(archive_id)
    told = desk.read(schedule_page, desk.key, now=NOW)
    assert (told["last"], archive_id in told["archived"]) == (None, True)
    assert (told["next_event"] is None) == (told["archived_events"] is not None)


def test_without_archives_nothing_is_said_of_any_and_another_environment_is_told_of_none(desk: Desk) -> None:
    desk.publish(every(60))

    def told(scope: Scope, principal: Principal) -> str:
        with pytest.raises(NotFound) as caught:
            desk.read(find_receipt, scope, principal, "no-such-key")
        return caught.value.next_step

    assert "archive" not in told(SCOPE, ADA)
    desk.write(ensure_environment, OTHER, mode="live", runtime_profile="managed")
    desk.write(insert, months=1)
    assert "archive-00" in told(SCOPE, ADA)
    assert "archive" not in told(OTHER, local_principal("ada", OTHER))
    assert desk.read(archived, OTHER) == []


def test_a_schedule_that_is_younger_than_an_archive_has_nothing_there(desk: Desk) -> None:
    desk.publish(every(60))
    desk.write(insert, months=1)
    page = desk.read(pages.schedule_ledger, desk.key, Wanted(), after=None, limit=10)
    assert (page.documents, page.archived) == ([], [])
    assert desk.read(records.archived_events, desk.key) == []


def insert(connection: Connection, *, months: int) -> None:
    """One archive a month, the odd ones with audit events."""
    for month in range(months):
        connection.execute(
            archives.insert().values(
                archive_id=f"archive-{month:02}",
                org_id=SCOPE.org_id,
                environment_id=SCOPE.environment_id,
                before=NOON - DAY + 30 * month * DAY,
                began_at=NOON + 30 * (month + 6) * DAY,
                digest="sha256:0",
                seal=month if month % 2 else 0,
                rows=1,
            )
        )


def test_of_many_archives_those_are_named_that_reach_into_what_was_asked_for(desk: Desk) -> None:
    desk.publish(every(60))
    desk.write(insert, months=24)

    def ids(**asked: Any) -> list[str]:
        return [each["archive_id"] for each in desk.read(archived, SCOPE, **asked)]

    assert ids() == [f"archive-{month:02}" for month in range(23, 23 - NAMED, -1)]
    assert ids(since=NOON + 100 * DAY, until=NOON + 130 * DAY) == ["archive-05", "archive-04"]
    assert ids(since=NOON + 30 * 22 * DAY) == ["archive-23"]
    assert ids(since=NOON + 30 * 20 * DAY, events=True) == ["archive-23", "archive-21"]
