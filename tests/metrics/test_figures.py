"""What the catalog tells of itself at the API: what is open, who is there, what waits for a person, what is overdue."""

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, update

from horarium.catalog import Catalog, deliveries, migrate, presence
from horarium.catalog.endpoints import put_endpoint
from horarium.catalog.figures import Figures, read_figures
from horarium.catalog.notifications import tell_test
from horarium.catalog.presence import FORSAKEN_AFTER
from horarium.catalog.schedules import require_schedule
from horarium.catalog.tables import agents
from horarium.control import expectations
from horarium.control.activation import send_to_review
from horarium.control.expectations import LIMIT_UNKNOWN, Expectations, look_where_due, overdue_page
from horarium.schedule.identity import Scope
from horarium.schedule.ledger import Disposition
from horarium.schedule.notifications import ASKED_FOR
from tests.api.house import Api
from tests.catalog.test_postgresql_plans import blocks, crowd, plans
from tests.catalog.test_query_plans import fill, one_of_v0
from tests.control.desk import FAR, NOON, SCOPE, Desk, at, every, furnish, open_undurable
from tests.metrics.figures import samples, summed
from tests.metrics.test_monitoring import RULES
from tests.postgres.databases import Database

WINDOW = 300
LIMIT = 60
"""What the desk's agent may take."""


@pytest.fixture
def desk(database: Database, tmp_path: Path) -> Iterator[Desk]:
    """The only schedule of a catalog of its own: these figures are of the whole of it."""
    with database.migrated(tmp_path) as url:
        catalog = open_undurable(url)
        furnish(catalog)
        yield Desk(catalog)
        catalog.close()


def standing(desk: Desk) -> Figures:
    found: Figures = desk.read(read_figures, now=desk.now)
    return found


def overdue(desk: Desk) -> float | None:
    """For how long the schedule should have succeeded; None where it need not have."""
    page = desk.read(overdue_page, after=0, now=desk.now)
    assert page.following is None
    assert len(page.overdue) <= 1
    return (desk.now - page.overdue[0].expected_by).total_seconds() if page.overdue else None


def test_open_runs_are_counted_by_where_they_stand(desk: Desk) -> None:
    loop = desk.enabled(every(60, overlap="buffer_all", runs=1))
    assert standing(desk).open_runs == {"staged": 0, "admitted": 0, "started": 0}
    loop.step_at(57)
    assert standing(desk).open_runs == {"staged": 1, "admitted": 0, "started": 0}
    desk.now = at(60)
    desk.admit(loop.run(60))
    desk.begin(loop.run(60))
    loop.step_at(200)
    found = standing(desk)
    assert (found.open_runs, found.buffered) == ({"staged": 0, "admitted": 0, "started": 1}, 2)
    desk.settle(loop.run(60))
    assert standing(desk).open_runs["started"] == 0


def test_workers_and_agents_are_counted_while_they_are_there(desk: Desk) -> None:
    desk.publish(every(60))
    assert standing(desk).workers == {"schedules": 1, "runs": 1}
    assert standing(desk).agents == {"present": 1, "lapsed": 0}
    desk.now = at(60)
    desk.workers_beat = False
    assert standing(desk).workers == {"schedules": 0, "runs": 0}
    desk.write(lambda c: c.execute(update(agents).values(lease_until=at(30))))
    assert standing(desk).agents == {"present": 0, "lapsed": 1}
    desk.now = at(31) + timedelta(days=1)
    assert standing(desk).agents == {"present": 0, "lapsed": 0}, "given up, and not told of for ever"
    desk.write(lambda c: c.execute(update(agents).values(lease_until=FAR)))
    desk.write(presence.release_agent, SCOPE, "worked@1", now=desk.now)
    assert standing(desk).agents == {"present": 0, "lapsed": 0}, "who leaves in good order is not missed"


def test_a_review_is_told_until_somebody_has_acted(desk: Desk) -> None:
    desk.enabled(every(60))
    desk.now = at(30)

    def review(connection: Any) -> None:
        schedule = require_schedule(connection, desk.key, lock=True)
        send_to_review(connection, schedule, desk.activation(), because="why", by="system:test", now=desk.now)

    desk.write(review)
    row = desk.read(require_schedule, desk.key).row
    desk.write(presence.observe, row, generation=1, state="review", reason="why", now=desk.now)
    desk.now = at(90)
    assert (standing(desk).in_review, standing(desk).oldest_review) == (1, at(30))
    desk.enable()
    assert (standing(desk).in_review, standing(desk).oldest_review) == (0, None)


def test_the_lag_is_of_the_environment_whose_round_is_longest_ago(desk: Desk) -> None:
    assert standing(desk).swept_at is None
    for organization, offset in (("acme", 20), ("globex", 10)):
        scope = Scope(org_id=organization, environment_id="test")
        desk.write(presence.note_sweep, scope, began_at=at(offset), now=at(offset))
    assert standing(desk).swept_at == at(10)


def swept(desk: Desk, organization: str, offset: float) -> None:
    scope = Scope(org_id=organization, environment_id=SCOPE.environment_id)
    desk.write(presence.note_sweep, scope, began_at=at(offset), now=at(offset))


def test_an_environment_where_nothing_is_enabled_may_be_left_alone(desk: Desk) -> None:
    desk.enabled(every(60))
    swept(desk, SCOPE.org_id, 10)
    swept(desk, "elsewhere", 20)
    later = FORSAKEN_AFTER.total_seconds() + 3_600
    desk.now = at(later)
    assert standing(desk).swept_at == at(10), "something is enabled there, and nobody has looked"
    swept(desk, SCOPE.org_id, later - 5)
    assert standing(desk).swept_at == at(later - 5), "nothing is enabled in the other one"
    desk.pause()
    desk.now = at(2 * later)
    assert standing(desk).swept_at is None
    desk.enable()
    assert standing(desk).swept_at == at(later - 5), "nobody takes up what was enabled"


def test_what_was_looked_at_a_moment_ago_counts_whatever_is_enabled(desk: Desk) -> None:
    swept(desk, "elsewhere", 0)
    desk.now = at(FORSAKEN_AFTER.total_seconds() - 1)
    assert standing(desk).swept_at == at(0)
    desk.now = at(FORSAKEN_AFTER.total_seconds())
    assert standing(desk).swept_at is None


def test_nobody_is_called_for_an_environment_that_was_left_alone() -> None:
    """By the time at which the alert goes off, it is forgotten."""
    (lags,) = [rule for rule in RULES if rule["alert"] == "HorariumControllerLags"]
    (limit,) = re.findall(r"max\(horarium_controller_lag_seconds\) > (\d+)", lags["expr"])
    assert timedelta(seconds=int(limit)) > FORSAKEN_AFTER


def test_what_is_not_heard_is_told_as_long_as_it_waits_and_counted_once_it_is_given_up(desk: Desk) -> None:
    desk.publish(every(60))
    pager = {"url": "https://pager.example/", "secret": "HORARIUM_SECRET_PAGER", "private": False, "by": "ada"}
    told = {"kinds": ASKED_FOR, "schedule_id": None}
    endpoint = desk.write(put_endpoint, SCOPE, "pager", **pager, **told, now=NOON)
    assert (standing(desk).dead_letters, standing(desk).untold_since) == (0, None)
    for offset in (10, 20):
        desk.write(tell_test, SCOPE, endpoint, by="ada", now=at(offset))
    assert (standing(desk).dead_letters, standing(desk).untold_since) == (0, at(10)), "nobody has spread it yet"
    assert desk.write(deliveries.spread, SCOPE, now=at(30), limit=10) == 2
    assert (standing(desk).dead_letters, standing(desk).untold_since) == (0, at(30))
    first, second = desk.write(deliveries.claim, endpoint.row, now=at(31), lease=timedelta(seconds=30), limit=4)
    desk.write(deliveries.mark_delivered, endpoint.row, first, status=200, now=at(32))
    assert (standing(desk).dead_letters, standing(desk).untold_since) == (0, at(30))
    desk.write(deliveries.mark_failed, second, status=500, error="It failed.", next_at=None, now=at(33))
    assert (standing(desk).dead_letters, standing(desk).untold_since) == (1, None)
    desk.write(deliveries.send_again, second.row, now=at(40))
    assert (standing(desk).dead_letters, standing(desk).untold_since) == (0, at(40))


@pytest.mark.parametrize("ends", ["failed", "refused", "nobody looks"])
def test_a_success_is_expected_once_the_window_and_the_time_limit_have_passed(desk: Desk, ends: str) -> None:
    loop = desk.enabled(every(60, window=WINDOW))
    loop.step_at(57)
    desk.now = at(60)
    desk.admit(loop.run(60))
    desk.begin(loop.run(60))
    desk.now = at(62)
    desk.settle(loop.run(60))
    loop.step_at(117)
    desk.now = at(120)
    if ends == "failed":
        desk.admit(loop.run(120))
        desk.begin(loop.run(120))
        desk.settle(loop.run(120), Disposition.FAILED)
    elif ends == "refused":
        desk.content.readable = False
        desk.admit(loop.run(120))
    expected = at(120 + WINDOW + LIMIT)
    desk.now = expected
    assert overdue(desk) is None
    desk.now = expected + timedelta(seconds=7)
    assert overdue(desk) == 7
    desk.pause()
    assert overdue(desk) is None


def test_a_success_ends_it_and_the_next_one_is_expected_of_what_is_due_after_it(desk: Desk) -> None:
    loop = desk.enabled(every(60, window=WINDOW))
    loop.step_at(57)
    desk.now = at(60 + WINDOW + LIMIT + 100)
    # Of a schedule that never succeeded nobody knows how long its agent may take.
    assert overdue(desk) is None
    desk.now = at(60 + WINDOW + 5) + LIMIT_UNKNOWN
    assert overdue(desk) == 5
    desk.admit(loop.run(60), now=at(61))
    desk.begin(loop.run(60))
    desk.settle(loop.run(60))
    assert overdue(desk) is None


def test_a_schedule_that_is_due_in_days_is_not_overdue(desk: Desk) -> None:
    desk.enabled(every(86_400 * 3))
    desk.now = at(86_400)
    assert overdue(desk) is None


def test_a_round_of_many_pages_tells_of_the_last_one_that_was_whole(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = [desk, *(Desk(desk.catalog) for _ in range(4))]
    for each in others:
        each.enabled(every(60, window=10))
    page = overdue_page
    monkeypatch.setattr(expectations, "overdue_page", lambda c, **asked: page(c, limit=2, **asked))
    found = Expectations()
    later = at(7_200)
    told = []
    for _ in range(3):
        desk.read(found.look, now=later)
        told.append(found.count)
    assert told == [2, 4, 5]
    assert found.since == at(60) + timedelta(seconds=10) + LIMIT_UNKNOWN
    others[0].pause()
    desk.read(found.look, now=later)
    assert found.count == 5, "until the next round has come to its end"
    for _ in range(2):
        desk.read(found.look, now=later)
    assert found.count == 4


def test_the_api_tells_them_and_names_nobody(desk: Desk) -> None:
    loop = desk.enabled(every(60))
    loop.step_at(57)
    api = Api(desk.catalog)
    try:
        text = api.get("!/metrics", by=None).text
    finally:
        api.close()
    found = samples(text)
    assert summed(found, "horarium_active_runs", disposition="staged") == 1
    names = {each.name for each in found}
    assert {
        "horarium_buffered_occurrences",
        "horarium_reviews_waiting",
        "horarium_oldest_review_seconds",
        "horarium_past_expected_success_seconds",
        "horarium_schedules_past_expected_success",
        "horarium_dead_letters",
        "horarium_oldest_notification_seconds",
    } <= names
    for word in (desk.key.schedule_id, "acme", "worked@1"):
        assert word not in text


def asks(desk: Desk) -> None:
    """Everything that is asked for a page of figures."""
    standing(desk)
    # An environment that was left alone has few schedules of its own.
    swept(desk, "elsewhere", 0)
    desk.read(read_figures, now=at(100_000))
    for after in (0, 1):
        desk.read(overdue_page, after=after, limit=2, now=at(100_000))
    assert desk.read(look_where_due, SCOPE, now=at(100_000)).count >= 1


def test_no_question_reads_the_ledger_through(tmp_path: Path) -> None:
    catalog = Catalog.open(f"sqlite:///{tmp_path / 'catalog.sqlite'}")
    migrate.upgrade(catalog)
    furnish(catalog)
    desk = Desk(catalog)
    desk.enabled(every(60))
    fill(desk, 100)
    one_of_v0(desk, among=10)
    asked: dict[str, list[str]] = {}

    def explain(connection: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, many: bool) -> None:
        if not many and statement.startswith("SELECT"):
            raw = connection.connection.driver_connection
            asked[statement] = [row[3] for row in raw.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)]

    event.listen(catalog.engine, "before_cursor_execute", explain)
    asks(desk)
    catalog.close()
    assert len(asked) >= 8
    partial = {"ix_entries_open", "ix_entries_open_by_time", "ix_activations_live", "ix_runtime_in_review"}
    untold = {"ix_deliveries_waiting", "ix_deliveries_dead", "ix_notifications_unspread_at"}
    assert untold <= set(re.findall(r"\bix_\w+", str(asked)))
    assert "ix_expected_look_at" in str(asked)
    partial |= untold
    through = re.compile(
        r"SCAN (entries|activations|schedules|runs|versions|runtime|deliveries|notifications|expected)"
        r"(?: USING (?:COVERING )?INDEX (\w+))?"
    )
    for statement, plan in asked.items():
        for line in plan:
            scanned = through.match(line)
            assert scanned is None or scanned[2] in partial, (statement, plan)
            assert not line.endswith("sqlite_autoindex_entries_1 (schedule=?)"), (statement, plan)


def test_on_postgresql_each_reads_a_few_blocks(postgres: Any, tmp_path: Path) -> None:
    with Database(postgres).migrated(tmp_path) as url:
        catalog = Catalog.open(url)
        furnish(catalog)
        desk = Desk(catalog)
        desk.enabled(every(60))
        fill(desk, 20_000)
        crowd(desk, 5_000)
        asked = plans(catalog, lambda: asks(desk))
        catalog.close()
    assert len(asked) >= 8
    for statement, plan in asked.items():
        assert blocks(plan) <= 60, (statement, plan)
