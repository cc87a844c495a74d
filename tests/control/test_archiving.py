"""What is old goes to files and, where that is wished, out of the catalog: nothing is lost, and the audit stays clean."""

import errno
import json
import os
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select, update

from horarium.catalog import archiving as queries
from horarium.catalog import deliveries
from horarium.catalog.archive_tables import archives, pruned_ledgers
from horarium.catalog.audit_events import record_event
from horarium.catalog.declarations import record_act
from horarium.catalog.endpoints import find_endpoint, put_endpoint
from horarium.catalog.environments import ensure_environment
from horarium.catalog.pages import Line, Position, Wanted, page
from horarium.catalog.receipts import StoredReceipt, insert_receipt
from horarium.catalog.schedules import require_schedule
from horarium.catalog.tables import audit_events, authority_events, entries, receipts, runs
from horarium.control import archiving
from horarium.control.archive_files import LEDGER, MANIFEST, PRUNED, verify_archive
from horarium.control.archiving import prune_archive, unfinished_prunings, write_archive
from horarium.control.audit import audit, document
from horarium.control.expectations import overdue_page
from horarium.control.notifications import body_of, tell_if_overdue
from horarium.control.reckoning import Problem
from horarium.control.seals import seal_due
from horarium.control.unfinished_archives import held, killed_archives
from horarium.errors import Misconfigured, NotFound, Refused
from horarium.schedule.identity import Scope
from horarium.schedule.ledger import Disposition
from horarium.schedule.notifications import ASKED_FOR
from tests.control.desk import NOON, SCOPE, Desk, every
from tests.control.world import Work, World

DAY = timedelta(days=1)
DAYS = 60
NOW = NOON + DAYS * DAY + timedelta(hours=1)
BEFORE = NOON + 20 * DAY + timedelta(hours=6)
OTHER = Scope(org_id="acme", environment_id="other")


@pytest.fixture
def desk(own_desk: Desk) -> Desk:
    return own_desk


def lived(desk: Desk) -> World:
    """Sixty days of a run a day, every third of which fails; a pause in the middle of them; seals, receipts, and acts."""
    world = World(
        desk,
        work=lambda run: Work(
            takes=timedelta(minutes=5),
            ends_as=Disposition.FAILED if (run.nominal_time - NOON).days % 3 == 0 else Disposition.SUCCEEDED,
        ),
    )
    desk.publish(every(86_400))
    world.establish(desk.enable())
    for day in range(1, DAYS + 1):
        if day in {12, 14}:
            world.establish(desk.pause() if day == 12 else desk.enable())
        world.pass_until(NOON + day * DAY + timedelta(hours=1))
        desk.write(told, day, desk)
        desk.write(seal_due, SCOPE, now=desk.now)
    return world


def told(connection: Any, day: int, desk: Desk) -> None:
    at = desk.now
    record_event(connection, require_schedule(connection, desk.key), "noted", at=at, actor="ada", details={"day": day})
    record_act(connection, SCOPE, "noted", actor="ada", now=at, details={"day": day})
    receipt = StoredReceipt(
        receipt_id=f"receipt-{day}",
        operation="publish",
        body_digest="sha256:0",
        reset_generation=1,
        document={"day": day},
        created_at=at,
    )
    insert_receipt(connection, SCOPE, "ada", f"key-{day}", receipt)


def archived(desk: Desk, to: Path, *, prune: bool = True, before: datetime = BEFORE) -> archiving.Archived:
    return write_archive(desk.catalog, SCOPE, to, before=before, now=NOW, prune=prune)


def pruned(desk: Desk, folder: Path) -> archiving.Archived:
    return prune_archive(desk.catalog, SCOPE, folder, by="olga", clock=lambda: NOW)


def rows(desk: Desk) -> dict[str, int]:
    tables = (entries, runs, receipts, audit_events, authority_events)
    return {
        each.name: desk.read(lambda c, each=each: c.execute(select(func.count()).select_from(each)).scalar_one())
        for each in tables
    }


def audited(desk: Desk) -> Any:
    return desk.read(audit, SCOPE, now=NOW)


def lines(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def sums(result: Any) -> tuple[int, dict[Disposition, int]]:
    return result.due, dict(result.dispositions)


def test_an_archive_holds_what_is_old_and_removes_nothing(desk: Desk, tmp_path: Path) -> None:
    lived(desk)
    before = rows(desk)
    made = archived(desk, tmp_path / "archives", prune=False)
    assert rows(desk) == before
    assert made.folder.parent == tmp_path / "archives"
    found = lines(made.folder, LEDGER)
    assert len(found) == made.rows[LEDGER] == 18, "of days 1 to 20 without the two that were paused"
    assert all(each["last_at"] < "2026-12-20T18" for each in found)
    assert all(each["run"]["run_id"] and "token_hash" not in each["run"] for each in found)
    assert [each["document"]["day"] for each in lines(made.folder, "receipts.jsonl")] == list(range(1, 21))
    assert verify_archive(made.folder)[1] == made.digest
    assert unfinished_prunings(tmp_path / "archives", SCOPE) == []
    assert (made.folder.stat().st_mode & 0o777, (made.folder / LEDGER).stat().st_mode & 0o777) == (0o700, 0o600)


def test_what_is_pruned_is_counted_and_the_audit_is_as_clean_as_before(desk: Desk, tmp_path: Path) -> None:
    world = lived(desk)
    before, was = rows(desk), audited(desk)
    assert was.clean
    made = archived(desk, tmp_path)
    done = pruned(desk, made.folder)

    now = audited(desk)
    assert now.clean, document(now)
    assert sums(now) == sums(was)
    assert now.seals.archived == was.seals.events - now.seals.events > 0
    assert now.seals.last == was.seals.last
    after = rows(desk)
    assert after["entries"] == before["entries"] - 18
    assert after["runs"] == before["runs"] - 18
    assert after["receipts"] == before["receipts"] - 20
    assert after["authority_events"] == before["authority_events"] - 20 + 1, "that it was done is written down"
    assert done.removed == sum(before.values()) - sum(after.values()) + 1 - 18, "a run goes with its entry"
    assert (made.folder / PRUNED).exists()

    # Life goes on, and so does the ledger's own proof.
    world.pass_until(NOON + (DAYS + 3) * DAY + timedelta(hours=1))
    assert desk.read(audit, SCOPE, now=desk.now).clean


def test_whoever_reads_page_after_page_goes_on_behind_what_was_pruned(desk: Desk, tmp_path: Path) -> None:
    lived(desk)
    row = desk.read(lambda c: require_schedule(c, desk.key).row)

    def read(after: Position | None, limit: int) -> list[Line]:
        return list(desk.read(page, SCOPE, Wanted(schedule_row=row), after=after, limit=limit))

    everything = read(None, 1_000)
    reader = everything[4].position
    pruned(desk, archived(desk, tmp_path).folder)
    left = read(None, 1_000)
    assert left == everything[18:]
    assert read(reader, 7) == left[:7]
    assert read(left[6].position, 1_000) == left[7:]


def test_a_second_archive_goes_on_where_the_first_one_ended(desk: Desk, tmp_path: Path) -> None:
    lived(desk)
    was = audited(desk)
    pruned(desk, archived(desk, tmp_path).folder)
    second = archived(desk, tmp_path, before=BEFORE + 8 * DAY)
    assert second.rows[LEDGER] == 8
    pruned(desk, second.folder)
    now = audited(desk)
    assert now.clean, document(now)
    assert sums(now) == sums(was)
    third = archived(desk, tmp_path, before=BEFORE + 8 * DAY)
    assert third.rows[LEDGER] == 0


def test_what_is_needed_stays_however_old_it_is(desk: Desk, tmp_path: Path) -> None:
    """The last success and the last end of each schedule."""
    world = World(desk, work=lambda _: Work(takes=timedelta(minutes=5), ends_as=Disposition.SUCCEEDED))
    desk.publish(every(86_400))
    world.establish(desk.enable())
    world.pass_until(NOON + 2 * DAY + timedelta(hours=1))
    world.work = lambda _: Work(takes=timedelta(minutes=5), ends_as=Disposition.FAILED)
    world.pass_until(NOON + 5 * DAY + timedelta(hours=1))
    world.establish(desk.pause())
    pruned(desk, archived(desk, tmp_path).folder)
    stayed = [((each.first_at - NOON) // DAY, each.disposition) for each in desk.entries()]
    assert stayed == [(1, "succeeded"), (4, "failed")], "each at midnight after those days"
    assert audited(desk).clean


def test_a_silence_is_as_long_after_a_pruning_as_before_and_is_told_once(desk: Desk, tmp_path: Path) -> None:
    world = World(desk, work=lambda _: Work(takes=timedelta(minutes=5), ends_as=Disposition.FAILED))
    desk.write(listening)
    desk.publish(every(86_400))
    world.establish(desk.enable())
    world.pass_until(NOON + DAYS * DAY + timedelta(hours=1))
    assert desk.write(tell_if_overdue, desk.key, now=NOW)
    before = desk.read(overdue_page, after=0, now=NOW)
    assert [each.due_at for each in before.overdue] == [NOON + timedelta(hours=12)]
    pruned(desk, archived(desk, tmp_path).folder)
    assert len(desk.entries()) == DAYS - 20 + 1, "the first is kept"
    assert desk.read(overdue_page, after=0, now=NOW) == before
    assert not desk.write(tell_if_overdue, desk.key, now=NOW), "it is the same silence"
    assert audited(desk).clean


def test_what_was_told_of_an_occurrence_that_is_pruned_can_still_be_sent(desk: Desk, tmp_path: Path) -> None:
    desk.write(listening)
    lived(desk)
    while desk.write(deliveries.spread, SCOPE, now=NOW, limit=100):
        pass
    endpoint = desk.read(find_endpoint, SCOPE, "pager")
    assert endpoint is not None
    desk.write(deliveries.mark_gone, SCOPE, endpoint, status=410, because="It is gone.", now=NOW)

    def letters() -> list[bytes]:
        dead = desk.read(deliveries.list_dead, SCOPE, after=0, limit=1_000)
        return [body_of(each.notification) for each in dead]

    told = letters()
    assert len([each for each in told if b'"type":"failed"' in each]) == 19
    gone = pruned(desk, archived(desk, tmp_path).folder)
    assert gone.rows[LEDGER] == 18
    assert letters() == told


def listening(connection: Any) -> None:
    put_endpoint(
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


def test_a_run_that_is_still_open_stays(desk: Desk, tmp_path: Path) -> None:
    world = World(desk, work=lambda _: Work(takes=1_000 * DAY))
    desk.publish(every(86_400, overlap="allow"))
    world.establish(desk.enable())
    world.pass_until(NOON + 4 * DAY + timedelta(hours=1))
    world.establish(desk.pause())
    held = len(desk.entries())
    assert held == 4
    assert archived(desk, tmp_path).rows[LEDGER] == 0


@pytest.mark.parametrize("dies_at", range(1, 9))
def test_a_process_that_dies_while_it_prunes_loses_nothing_and_the_next_call_goes_on(
    dies_at: int, desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lived(desk)
    was = audited(desk)
    monkeypatch.setattr(queries, "AT_ONCE", 7)
    monkeypatch.setattr(archiving, "AT_ONCE", 7)
    made = archived(desk, tmp_path)
    everything = {name: made.folder.joinpath(name).read_bytes() for name in made.rows}
    dying(monkeypatch, desk, dies_at)
    with pytest.raises(KeyboardInterrupt):
        pruned(desk, made.folder)
    monkeypatch.undo()

    half = audited(desk)
    assert half.clean, document(half)
    assert sums(half) == sums(was)
    assert unfinished_prunings(tmp_path, SCOPE) == [made.folder]
    pruned(desk, made.folder)
    now = audited(desk)
    assert now.clean
    assert sums(now) == sums(was)
    assert rows(desk)["entries"] == 58 - 18
    assert {name: made.folder.joinpath(name).read_bytes() for name in made.rows} == everything
    assert unfinished_prunings(tmp_path, SCOPE) == []
    stored = desk.read(lambda c: c.execute(select(archives)).mappings().all())
    assert len(stored) == 1
    assert stored[0]["ended_at"] is not None


def dying(monkeypatch: pytest.MonkeyPatch, desk: Desk, transaction: int) -> None:
    """Let the process end in the midst of one of its transactions, after it has written."""
    noted: Callable[..., None] = queries.note_pruned
    count = 0

    def note(*args: Any, **kwargs: Any) -> None:
        nonlocal count
        noted(*args, **kwargs)
        count += 1
        if count == transaction:
            raise KeyboardInterrupt

    del desk
    monkeypatch.setattr(queries, "note_pruned", note)


def test_a_row_that_differs_from_what_was_written_stays(desk: Desk, tmp_path: Path) -> None:
    lived(desk)
    made = archived(desk, tmp_path)
    first = lines(made.folder, LEDGER)[0]["row"]
    desk.write(lambda c: c.execute(update(runs).where(runs.c.entry == first).values(summary="changed since")))
    pruned(desk, made.folder)
    assert desk.read(lambda c: c.execute(select(entries.c.id).where(entries.c.id == first)).scalar_one()) == first
    assert audited(desk).clean


def test_nothing_is_pruned_after_an_archive_that_is_damaged(desk: Desk, tmp_path: Path) -> None:
    lived(desk)
    made, before = archived(desk, tmp_path), rows(desk)
    text = (made.folder / LEDGER).read_text()
    (made.folder / LEDGER).write_text(text.replace("failed", "succeeded", 1))
    with pytest.raises(Refused, match="archive_damaged"):
        pruned(desk, made.folder)
    assert rows(desk) == before


WRONG: list[dict[str, Any]] = [
    {"archive_id": None},
    {"org_id": 7},
    {"environment_id": {}},
    {"before": "yesterday"},
    {"before": 0},
    {"prune": "yes"},
    {"files": None},
    {"files": [LEDGER]},
    {"files": [{"name": LEDGER, "rows": "1", "sha256": ""}]},
    {"format": []},
]


def test_a_manifest_that_is_none_is_told_as_a_damaged_archive(desk: Desk, tmp_path: Path) -> None:
    desk.publish(every(86_400))
    made = archived(desk, tmp_path)
    whole = json.loads((made.folder / MANIFEST).read_text())
    without = [{name: value for name, value in whole.items() if name not in wrong} for wrong in WRONG]
    for manifest in [*({**whole, **wrong} for wrong in WRONG), *without, [], None]:
        (made.folder / MANIFEST).write_text(json.dumps(manifest))
        for reads in (lambda: verify_archive(made.folder), lambda: unfinished_prunings(tmp_path, SCOPE)):
            with pytest.raises(Refused, match="archive_damaged"):
                reads()
    (made.folder / MANIFEST).write_text(json.dumps(whole))
    assert verify_archive(made.folder)[0] == whole


def test_nothing_is_pruned_where_the_audit_is_not_clean(desk: Desk, tmp_path: Path) -> None:
    lived(desk)
    made, before = archived(desk, tmp_path), rows(desk)
    desk.write(lambda c: c.execute(update(audit_events).where(audit_events.c.id == 3).values(actor="eve")))
    with pytest.raises(Refused, match="audit_not_clean"):
        pruned(desk, made.folder)
    assert rows(desk) == before


@pytest.mark.parametrize(("counts", "problem"), [(-1, Problem.MISSING), (1, Problem.UNDUE)])
def test_the_audit_finds_a_number_of_archived_instants_that_cannot_be(
    counts: int, problem: Problem, desk: Desk, tmp_path: Path
) -> None:
    lived(desk)
    pruned(desk, archived(desk, tmp_path).folder)

    def lie(connection: Any) -> None:
        row = connection.execute(select(pruned_ledgers).where(pruned_ledgers.c.generation == 1)).one()
        more = {**row.dispositions, "succeeded": row.dispositions["succeeded"] + counts}
        connection.execute(update(pruned_ledgers).where(pruned_ledgers.c.generation == 1).values(dispositions=more))

    desk.write(lie)
    result = audited(desk)
    assert not result.clean
    assert result.count(problem) == 1
    entered = sum(result.dispositions.values())
    assert result.due == entered + result.not_entered + result.count(Problem.MISSING) - result.count(Problem.UNDUE)


def test_an_archive_that_cannot_be_written_leaves_nothing_behind(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lived(desk)

    def full(*_: Any, **__: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(queries, "old_rows", full)
    with pytest.raises(Misconfigured, match="No space left"):
        archived(desk, tmp_path / "archives")
    assert list((tmp_path / "archives").iterdir()) == []


def test_what_an_archive_that_was_killed_left_is_found_once_it_is_old_and_nobody_writes_it(
    tmp_path: Path,
) -> None:
    """Killed by SIGKILL, or by a machine that lost its power, it clears nothing itself."""
    old, written, young = (tmp_path / f".unfinished-{uuid.uuid4()}" for _ in range(3))
    own, linked = tmp_path / ".unfinished-notes", tmp_path / f".unfinished-{uuid.uuid4()}"
    for folder in (old, written, young, own):
        folder.mkdir()
        (folder / LEDGER).write_text("{}\n")
        at = (NOW - (DAY / 2 if folder == young else 2 * DAY)).timestamp()
        for path in (folder / LEDGER, folder):
            os.utime(path, (at, at))
    linked.symlink_to(own)
    with held(written):
        assert killed_archives(tmp_path, now=NOW) == [old]
    assert killed_archives(tmp_path, now=NOW) == sorted([old, written])
    assert killed_archives(tmp_path / "nowhere", now=NOW) == []


def test_an_archive_that_is_being_written_is_not_taken_for_a_killed_one_however_long_it_takes(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lived(desk)
    asked, found = queries.old_rows, []

    def slowly(*arguments: Any, **more: Any) -> Any:
        found.extend(killed_archives(tmp_path / "archives", now=datetime.now(UTC) + 1000 * DAY))
        return asked(*arguments, **more)

    monkeypatch.setattr(queries, "old_rows", slowly)
    made = archived(desk, tmp_path / "archives")
    assert found == []
    assert list((tmp_path / "archives").iterdir()) == [made.folder]


def test_where_nothing_can_be_locked_archives_are_written_all_the_same(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lived(desk)

    def none(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", none)
    assert archived(desk, tmp_path).folder.is_dir()


def test_a_full_disk_after_everything_was_removed_is_told_and_the_next_call_goes_on(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lived(desk)
    made = archived(desk, tmp_path)

    def full(*_: Any) -> Any:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(archiving, "write_file", full)
        with pytest.raises(
            Misconfigured, match=r"removed from the catalog \(\d+ rows\), and '.*pruned\.json'.*No space left"
        ):
            pruned(desk, made.folder)
    assert audited(desk).clean
    assert unfinished_prunings(tmp_path, SCOPE) == [made.folder]
    assert pruned(desk, made.folder).removed == 0
    assert unfinished_prunings(tmp_path, SCOPE) == []


def test_what_is_young_is_not_archived_and_neither_is_another_environment(desk: Desk, tmp_path: Path) -> None:
    lived(desk)
    with pytest.raises(Refused, match="too_young"):
        archived(desk, tmp_path, before=NOW - 29 * DAY)
    with pytest.raises(NotFound):
        write_archive(desk.catalog, OTHER, tmp_path, before=BEFORE, now=NOW, prune=True)
    desk.write(lambda c: ensure_environment(c, OTHER, mode="simulation", runtime_profile="embedded"))
    made = write_archive(desk.catalog, OTHER, tmp_path, before=BEFORE, now=NOW, prune=True)
    assert set(made.rows.values()) == {0}
    with pytest.raises(Refused, match="other_environment"):
        pruned(desk, made.folder)
