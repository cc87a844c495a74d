"""The ceilings (seed 004, decision 9): at enabling and at each occurrence, of one profile and of all schedules together."""

import json
import re
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection, event, insert, text, update
from structlog.testing import capture_logs

from horarium.catalog import Catalog, declared_sums, presence
from horarium.catalog.environments import ensure_environment
from horarium.catalog.schedules import find_schedule, require_schedule
from horarium.catalog.tables import activations, schedules, versions
from horarium.control import activation, admission, ceilings, v0
from horarium.control.activation import Changed, Reviewed
from horarium.control.admission import Admission
from horarium.control.publication import publish
from horarium.errors import NotAdmissible
from horarium.schedule.ceilings import USUAL, Ceilings
from horarium.schedule.configuration import read_stored
from horarium.schedule.identity import RunKey, Scope, instant_text, schedule_key
from horarium.schedule.ledger import Disposition, Reason
from horarium.schedule.profiles import CONTRACT, parse_profile, stored_document
from tests.control.caller import new_key, principal
from tests.control.desk import AGENT, FAR, NOON, SCOPE, Desk, Loop, at, every, open_undurable
from tests.control.operators import Operator
from tests.control.test_side_by_side import SOME, at_once, told
from tests.schedule.test_v0 import CRON, ONE_SHOT, RUN

BOUND = {**RUN, "agent_version": AGENT}
POSITIONS = ("minute", "hour", "day_of_month", "month", "day_of_week")
EVERY_MINUTE = "* * * * *"
HOURLY = "0 * * * *"
CROWDED = at(-10)


def publish_profile(desk: Desk, cron: str, *, agent_id: str = "inbox") -> None:
    """Store a version as saving a profile does."""
    stated = {**dict(zip(POSITIONS, cron.split(), strict=True)), "timezone": "UTC"}
    profile = parse_profile({"config": {"cron": stated}})
    document = stored_document(profile, BOUND, agent_class="Triage", agent_id=agent_id)
    more = {"configuration": read_stored(document), "contract": CONTRACT}
    desk.write(publish, desk.key, document, expected_revision=None, by="ada", now=desk.now, **more)


def enable(desk: Desk, allowed: Ceilings = USUAL) -> Changed:
    changed: Changed = desk.write(
        activation.enable, desk.key, Reviewed(), desk.content, by="ada", now=desk.now, ceilings=allowed
    )
    return changed


def refused(desk: Desk, allowed: Ceilings) -> list[dict[str, Any]]:
    """Everything that enabling is refused for."""
    with pytest.raises(NotAdmissible) as caught:
        enable(desk, allowed)
    return list(caught.value.objections)


def admit(desk: Desk, run: RunKey, allowed: Ceilings) -> Admission:
    decided: Admission = desk.write(
        admission.decide, run, desk.content, owner="execution", now=desk.now, ceilings=allowed
    )
    return decided


def due(loop: Loop, offset: int) -> RunKey:
    """The run of an instant, staged, at its second."""
    loop.step_at(offset - 3)
    loop.desk.now = at(offset)
    return loop.run(offset)


def another(desk: Desk) -> Desk:
    """A schedule beside it, at the same time."""
    return Desk(desk.catalog, now=desk.now)


def counted(desk: Desk) -> int | None:
    return desk.activation().runs_per_month


class TestOfOneProfile:
    def test_every_minute_is_43_200_runs_and_not_one_less_at_saving(self, desk: Desk) -> None:
        publish_profile(desk, EVERY_MINUTE)
        [against] = refused(desk, Ceilings(per_profile=43_199))
        assert against == {
            "code": "ceiling_exceeded",
            "sentence": "It declares 43,200 runs in 30 days, and a profile is allowed 43,199 here "
            "(SCHEDULER_MAX_RUNS_PER_PROFILE_PER_MONTH).",
            "evidence": {"ceiling": {"which": "per_profile", "declared": 43_200, "most": 43_199}},
        }
        assert desk.read(require_schedule, desk.key).generation == 0, "what is refused changes nothing"
        enable(desk, Ceilings(per_profile=43_200))
        assert counted(desk) == 43_200

    def test_by_default_it_refuses_nothing_that_five_positions_can_say(self, desk: Desk) -> None:
        publish_profile(desk, EVERY_MINUTE)
        loop = Loop(desk, enable(desk).key)
        assert desk.admit(due(loop, 60)).outcome == "admitted"

    def test_so_it_is_at_the_occurrence_and_the_schedule_goes_on(self, desk: Desk) -> None:
        publish_profile(desk, EVERY_MINUTE)
        loop = Loop(desk, enable(desk).key)
        assert admit(desk, due(loop, 60), Ceilings(per_profile=43_200)).outcome == "admitted"
        stopped = admit(desk, due(loop, 120), Ceilings(per_profile=43_199))
        assert (stopped.outcome, stopped.reason) == ("refused", "ceiling_exceeded")
        assert desk.activation().is_live
        row = desk.run_row(loop.run(120))
        assert row is not None
        assert row.evidence is not None
        assert row.evidence["ceiling"] == {"which": "per_profile", "declared": 43_200, "most": 43_199}
        assert row.evidence["sentence"].endswith("(SCHEDULER_MAX_RUNS_PER_PROFILE_PER_MONTH).")
        assert "looked_at" in row.evidence
        assert admit(desk, due(loop, 180), Ceilings(per_profile=43_200)).outcome == "admitted"

    def test_it_counts_from_each_occurrence_on(self, desk: Desk) -> None:
        """A month of daily runs, none of which lies in the thirty days after enabling."""
        publish_profile(desk, "1 12 * 1 *")
        allowed = Ceilings(per_profile=1)
        loop = Loop(desk, enable(desk, allowed).key)
        assert counted(desk) == 0
        new_year, last_but_one = (day * 86_400 + 60 for day in (32, 61))
        assert admit(desk, due(loop, new_year), allowed).reason == "ceiling_exceeded"
        assert admit(desk, due(loop, last_but_one), allowed).outcome == "admitted"

    def test_it_binds_no_other_contract(self, desk: Desk) -> None:
        desk.publish(every(60))
        loop = Loop(desk, enable(desk, Ceilings(per_profile=1)).key)
        assert counted(desk) == 43_200
        assert admit(desk, due(loop, 60), Ceilings(per_profile=1)).outcome == "admitted"

    def test_a_run_by_hand_is_never_refused_for_it(self, desk: Desk) -> None:
        publish_profile(desk, EVERY_MINUTE)
        enable(desk)
        desk.now = at(30)
        none = Ceilings(per_profile=1, total=1)
        assert admit(desk, desk.hold_by_hand("one"), none).outcome == "admitted"

    def test_it_is_told_beside_all_else_that_speaks_against_the_change(self, desk: Desk) -> None:
        publish_profile(desk, EVERY_MINUTE)
        desk.content.writable = False
        codes = [each["code"] for each in refused(desk, Ceilings(per_profile=1, total=1))]
        assert codes == ["output_missing", "ceiling_exceeded", "ceiling_exceeded"]

    def test_another_reason_that_speaks_against_an_occurrence_comes_first(self, desk: Desk) -> None:
        publish_profile(desk, EVERY_MINUTE)
        loop = Loop(desk, enable(desk).key)
        desk.content.writable = False
        assert admit(desk, due(loop, 60), Ceilings(per_profile=1)).reason == "output_missing"


class TestOfAllTogether:
    def test_four_hundred_hourly_profiles_are_288_000_runs(self, own_desk: Desk) -> None:
        desks = [own_desk, *(another(own_desk) for _ in range(400))]
        *four_hundred, one_more = desks
        all_of_them = Ceilings(total=288_000)
        for number, each in enumerate(four_hundred):
            publish_profile(each, HOURLY, agent_id=f"inbox-{number}")
            enable(each, all_of_them)
            assert counted(each) == 720
        publish_profile(one_more, HOURLY, agent_id="one-more")
        [against] = refused(one_more, all_of_them)
        assert against["code"] == "ceiling_exceeded"
        assert against["sentence"] == (
            "It declares 720 runs in 30 days, which with what was enabled before it are more than the 288,000 that all together "
            "are allowed here (SCHEDULER_MAX_TOTAL_RUNS_PER_MONTH)."
        )
        looked_at = {"which": "total", "declared": 720, "most": 288_000}
        assert against["evidence"] == {"ceiling": looked_at}
        # All were activated in the same second, so that the order is that of their rows.
        for each in four_hundred[-2:]:
            each.now = at(3_600)
        before_last, last = (Loop(each, each_key(each)) for each in four_hundred[-2:])
        assert admit(before_last.desk, due(before_last, 3_600), Ceilings(total=287_999)).outcome == "admitted"
        stopped = admit(last.desk, due(last, 3_600), Ceilings(total=287_999))
        assert (stopped.outcome, stopped.reason) == ("refused", "ceiling_exceeded")
        row = last.desk.run_row(last.run(3_600))
        assert row is not None
        assert row.evidence is not None
        assert row.evidence["ceiling"] == {**looked_at, "most": 287_999}
        assert admit(last.desk, due(last, 7_200), all_of_them).outcome == "admitted"
        assert last.desk.activation().is_live

    def test_those_that_were_activated_last_are_over_it_whatever_their_rows(self, own_desk: Desk) -> None:
        first, second = own_desk, another(own_desk)
        for each in (first, second):
            each.publish(every(3_600))
            enable(each)
        first.now = at(60)
        enable(first)  # again, and so after the other one
        allowed = Ceilings(total=720)
        loops = {each: Loop(each, each_key(each)) for each in (first, second)}
        assert admit(second, due(loops[second], 3_600), allowed).outcome == "admitted"
        assert admit(first, due(loops[first], 3_600), allowed).reason == "ceiling_exceeded"

    def test_it_counts_every_contract_and_every_organization(self, own_desk: Desk) -> None:
        elsewhere = Scope(org_id="globex", environment_id="live")
        there = another(own_desk)
        there.key = schedule_key(elsewhere, there.key.schedule_id)
        there.write(ensure_environment, elsewhere, mode="simulation", runtime_profile="embedded")
        discovery = {"is_schedulable": True, "task_queue": "agents", "max_run_seconds": 60, "idempotent": False}
        there.write(presence.register_agent, elsewhere, AGENT, discovery, lease_until=FAR, now=NOON)
        there.publish(every(3_600))
        enable(there, Ceilings(total=720))
        publish_profile(own_desk, HOURLY)
        [against] = refused(own_desk, Ceilings(total=1_439))
        assert against["evidence"]["ceiling"] == {"which": "total", "declared": 720, "most": 1_439}
        enable(own_desk, Ceilings(total=1_440))

    def test_what_others_declare_is_told_to_the_log_and_to_no_tenant(self, own_desk: Desk) -> None:
        """Whoever enables sees the answer, and the ledger keeps the evidence of an occurrence: neither holds a sum of others."""
        first = another(own_desk)
        first.publish(every(60))
        enable(first)
        own_desk.publish(every(3_600))
        with capture_logs() as logs:
            [against] = refused(own_desk, Ceilings(total=43_210))
        declared = {"declared": 720, "most": 43_210}
        assert not re.search("43.?200|43.?920", json.dumps(against))
        about = {"org_id": "acme", "environment_id": "test", "log_level": "warning", "event": "over_total_ceiling"}
        line = {**about, "schedule_id": own_desk.key.schedule_id, **declared, "before": 43_200}
        assert logs == [line]
        loop = Loop(own_desk, enable(own_desk).key)
        with capture_logs() as logs:
            assert admit(own_desk, due(loop, 3_600), Ceilings(total=43_210)).reason == "ceiling_exceeded"
        row = own_desk.run_row(loop.run(3_600))
        assert row is not None
        assert row.evidence is not None
        assert row.evidence["ceiling"] == {"which": "total", **declared}
        assert not re.search("43.?200|43.?920", json.dumps(row.evidence))
        assert logs == [line]

    def test_an_occurrence_that_was_not_decided_leaves_no_line(self, own_desk: Desk, monkeypatch) -> None:
        """As where another transaction was in its way: it is decided again."""
        first = another(own_desk)
        first.publish(every(60))
        enable(first)
        own_desk.publish(every(3_600))
        run = due(Loop(own_desk, enable(own_desk).key), 3_600)

        def fail(*_parts: Any, **_more: Any) -> None:
            raise RuntimeError("rolled back")

        monkeypatch.setattr(admission, "_refused", fail)
        with capture_logs() as logs, pytest.raises(RuntimeError, match="rolled back"):
            admit(own_desk, run, Ceilings(total=43_210))
        assert logs == []

    def test_enabling_again_counts_nothing_twice(self, own_desk: Desk) -> None:
        allowed = Ceilings(total=720)
        own_desk.publish(every(3_600))
        for second in range(3):
            own_desk.now = at(second)
            assert enable(own_desk, allowed).activation.runs_per_month == 720
        loop = Loop(own_desk, each_key(own_desk))
        assert admit(own_desk, due(loop, 3_600), allowed).outcome == "admitted"
        own_desk.publish(every(1_800))
        [against] = refused(own_desk, allowed)
        assert against["evidence"]["ceiling"] == {"which": "total", "declared": 1_440, "most": 720}

    def test_what_fires_in_one_month_alone_is_counted_anew_when_it_comes(self, own_desk: Desk) -> None:
        """Enabled in another month it declares nothing yet, and would have fired under any ceiling."""
        later = NOON + timedelta(days=100)
        first = datetime(later.year, later.month, 1, tzinfo=UTC)
        publish_profile(own_desk, f"0 * * {later.month} *")
        enable(own_desk, Ceilings(total=10))
        assert counted(own_desk) == 0
        loop = Loop(own_desk, each_key(own_desk))
        run = due(loop, int((first - NOON).total_seconds()))
        decided = admit(own_desk, run, Ceilings(total=10))
        assert (decided.outcome, decided.reason) == ("refused", Reason.CEILING_EXCEEDED)
        assert (counted(own_desk) or 0) > 10, "and it counts for the others from then on"

    def test_what_is_paused_retired_or_in_review_counts_no_more(self, own_desk: Desk) -> None:
        allowed = Ceilings(total=720)
        others = [another(own_desk) for _ in range(3)]
        own_desk.publish(every(3_600))
        for each in others:
            each.publish(every(3_600))
            enable(each, allowed)
            assert refused(own_desk, allowed)
            match others.index(each):
                case 0:
                    assert each.pause().activation.runs_per_month is None
                case 1:
                    each.retire()
                case _:
                    each.write(review, each)
        assert enable(own_desk, allowed)

    def test_what_declares_nothing_more_is_not_refused(self, own_desk: Desk) -> None:
        """A one-shot of scheduler v0 that has passed is accepted and never runs, also where there is no room for a run."""
        full = another(own_desk)
        full.publish(every(60))
        enable(full)
        allowed, target = Ceilings(total=1), ONE_SHOT["target"]
        name = f"v0:{target['workspace_id']}/{target['agent_id']}"
        Operator(own_desk.catalog, SCOPE).declare("binding", name, run=BOUND)
        assert create(own_desk, once(-60), allowed)["enabled"] is False
        with pytest.raises(NotAdmissible) as caught:
            create(own_desk, once(60), allowed)
        assert [each["code"] for each in caught.value.objections] == ["ceiling_exceeded"]

    def test_every_change_of_scheduler_v0_that_enables_is_held_to_it(self, own_desk: Desk) -> None:
        target = CRON["target"]
        name = f"v0:{target['workspace_id']}/{target['agent_id']}"
        Operator(own_desk.catalog, SCOPE).declare("binding", name, run=BOUND)
        hourly = {"type": "interval", "spec": {"every_seconds": 3_600}, "target": target}
        created = create(own_desk, hourly, Ceilings(total=720))
        scope, schedule_id = own_desk.key.scope, created["schedule_id"]
        over: dict[str, Any] = {"content": own_desk.content, "now": at(1), "ceilings": Ceilings(total=719)}
        with pytest.raises(NotAdmissible):
            own_desk.write(v0.update, principal(), scope, hourly, new_key(), schedule_id=schedule_id, **over)
        own_desk.write(v0.pause, principal(), scope, schedule_id, new_key(), now=at(1))
        with pytest.raises(NotAdmissible):
            own_desk.write(v0.resume, principal(), scope, schedule_id, new_key(), **over)
        with pytest.raises(NotAdmissible):
            create(own_desk, hourly, Ceilings(total=719))

    def test_what_an_earlier_release_enabled_is_counted_once_somebody_enables_beside_it(self, own_desk: Desk) -> None:
        early, late = own_desk, another(own_desk)
        for each in (early, late):
            each.publish(every(3_600, overlap="allow"))
        early.enable()
        early.write(forget_count, early)
        [against] = refused(late, Ceilings(total=1_439))
        assert against["evidence"]["ceiling"] == {"which": "total", "declared": 720, "most": 1_439}
        assert counted(early) is None, "what is refused changes nothing"
        assert enable(late, Ceilings(total=1_440))
        assert counted(early) == 720

    def test_so_it_is_once_an_occurrence_of_a_later_one_is_decided(self, own_desk: Desk) -> None:
        early, late = own_desk, another(own_desk)
        for each in (early, late):
            each.publish(every(3_600, overlap="allow"))
            each.enable()
        for each in (early, late):
            early.write(forget_count, each)
        loops = {each: Loop(each, each_key(each)) for each in (early, late)}
        allowed = Ceilings(total=720)
        assert admit(late, due(loops[late], 3_600), allowed).reason == "ceiling_exceeded"
        assert (counted(early), counted(late)) == (720, 720)
        assert admit(early, due(loops[early], 3_600), allowed).outcome == "admitted"

    def test_enabling_again_what_an_earlier_release_enabled_counts_it_once(self, own_desk: Desk) -> None:
        own_desk.publish(every(3_600))
        own_desk.enable()
        own_desk.write(forget_count, own_desk)
        own_desk.now = at(1)
        assert enable(own_desk, Ceilings(total=720))

    def test_what_cannot_be_counted_keeps_nobody_from_enabling(self, own_desk: Desk) -> None:
        damaged = another(own_desk)
        for each in (damaged, own_desk):
            each.publish(every(3_600))
        damaged.enable()
        damaged.write(forget_count, damaged)
        broken = versions.update().where(versions.c.schedule == damaged.read(require_schedule, damaged.key).row)
        damaged.write(lambda connection: connection.execute(broken.values(configuration="{}")))
        assert enable(own_desk, Ceilings(total=720))

    def test_a_version_that_changed_hands_counts_what_it_declares_now(self, own_desk: Desk) -> None:
        own_desk.publish(every(3_600))
        enable(own_desk)
        own_desk.publish(every(60))
        assert counted(own_desk) == 720, "to publish enables nothing"
        enable(own_desk)
        assert counted(own_desk) == 43_200


class TestSideBySide:
    def test_of_those_that_enable_at_once_no_more_pass_than_there_is_room_for(
        self, own_desk: Desk, own_catalog: Catalog
    ) -> None:
        """Each is a schedule of its own, and no lock of a schedule or an environment keeps them apart."""
        desks = [another(own_desk) for _ in range(SOME)]
        for each in desks:
            each.publish(every(3_600))
        own_desk.write(lambda _: None)  # workers beat
        more: dict[str, Any] = {"by": "ada", "now": own_desk.now, "ceilings": Ceilings(total=720 * 5)}
        asks = [
            partial(activation.enable, key=each.key, reviewed=Reviewed(), content=each.content, **more)
            for each in desks
        ]
        url = own_catalog.engine.url.render_as_string(hide_password=False)
        with ExitStack() as stack:
            processes = [open_undurable(url) for _ in desks]
            for each in processes:
                stack.callback(each.close)
            answers = at_once(processes, asks)
        assert told(answers) == {"Changed": 5, "ceiling_exceeded": SOME - 5}


class TestCost:
    def test_an_occurrence_asks_one_question_more_with_a_ceiling_for_all_and_none_without(self, own_desk: Desk) -> None:
        publish_profile(own_desk, EVERY_MINUTE)
        loop = Loop(own_desk, enable(own_desk).key)
        asked: dict[int | None, list[str]] = {}
        for offset, total in ((60, None), (120, 10**9)):
            run = due(loop, offset)
            with noted(own_desk) as statements:
                assert admit(own_desk, run, Ceilings(total=total)).outcome == "admitted"
            asked[total] = [each for each in statements if "runs_per_month" in each and "sum(" in each]
        assert {total: len(found) for total, found in asked.items()} == {None: 0, 10**9: 1}

    def test_the_question_is_answered_from_the_index_of_what_is_live(self, own_desk: Desk) -> None:
        """However many activations have ended, and without a look at the table."""
        own_desk.publish(every(3_600))
        enable(own_desk)
        own_desk.write(past, own_desk, 5_000)
        own_desk.write(crowd, 50)
        own_desk.now = at(60)
        changed = enable(own_desk)
        if own_desk.catalog.engine.dialect.name == "postgresql":
            with own_desk.catalog.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.execute(text("VACUUM ANALYZE activations, declared"))
        schedule = own_desk.read(require_schedule, own_desk.key)
        with noted(own_desk) as statements, capture_logs() as logs, own_desk.catalog.writing() as connection:
            version = changed.version
            for one in (changed.activation, None):
                assert ceilings.objection(connection, schedule, version, one, Ceilings(total=1), now=at(60)) is not None
        assert [each["before"] for each in logs] == [50 * 720] * 2
        sums = {each: parameters for each, parameters in statements.items() if "sum(" in each}
        assert len(sums) == 2
        for statement, parameters in sums.items():
            assert_from_the_index(own_desk, statement, parameters)

    @pytest.mark.parametrize("apart", [timedelta(milliseconds=5), timedelta(seconds=4)], ids=["at-once", "all-day"])
    def test_over_the_ceiling_it_costs_the_same_however_many_were_activated_on_that_day(
        self, own_desk: Desk, apart: timedelta
    ) -> None:
        """Counted is what the database reads for an occurrence of the one that was activated last."""
        crowds = {0: 100, 100: 10_000}
        begin, read = NOON.replace(hour=0), []
        for first, last in crowds.items():
            own_desk.write(crowd, last - first, first=first, begin=begin, apart=apart)
            analyze(own_desk.catalog)
            own_desk.publish(every(3_600))
            own_desk.now = begin + last * apart
            changed = enable(own_desk)
            schedule = own_desk.read(require_schedule, own_desk.key)
            with noted(own_desk) as statements, capture_logs() as logs, own_desk.catalog.writing() as connection:
                ceilings.objection(
                    connection, schedule, changed.version, changed.activation, Ceilings(total=1), now=own_desk.now
                )
            assert [each["before"] for each in logs] == [720 * last]
            [(statement, parameters)] = [each for each in statements.items() if each[0].count("sum(") > 1]
            read.append(rows_read(own_desk.catalog, statement, parameters))
        few, many = read
        # There are at most 288 and 300 sums of a day to read, and what was activated in its own second.
        assert many <= few + 800, read


def analyze(catalog: Catalog) -> None:
    """Let the database know what is there, as it does by itself in time."""
    if catalog.engine.dialect.name == "postgresql":
        with catalog.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM ANALYZE activations, declared"))


def rows_read(catalog: Catalog, statement: str, parameters: Any) -> int:
    """How many rows a question reads: of PostgreSQL as its plan tells, of SQLite at most, by its operations."""
    with catalog.engine.connect() as connection:
        if catalog.engine.dialect.name == "sqlite":
            operations = 0

            def count() -> None:
                nonlocal operations
                operations += 1

            raw = connection.connection.dbapi_connection
            assert raw is not None
            raw.set_progress_handler(count, 1)
            connection.exec_driver_sql(statement, parameters).all()
            raw.set_progress_handler(None, 1)
            return operations // OPERATIONS_OF_A_ROW
        explain = f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}"
        found = connection.exec_driver_sql(explain, parameters).scalar_one()
        [told] = found if isinstance(found, list) else json.loads(found)
        return _scanned(told["Plan"])


OPERATIONS_OF_A_ROW = 4
"""The fewest operations with which SQLite reads a row and adds it up."""


def _scanned(plan: dict[str, Any]) -> int:
    below: list[dict[str, Any]] = plan.get("Plans", [])
    if "Relation Name" not in plan:
        return sum(_scanned(each) for each in below)
    read = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0) + plan.get("Rows Removed by Index Recheck", 0)
    return int(read * plan["Actual Loops"]) + sum(_scanned(each) for each in below)


def assert_from_the_index(desk: Desk, statement: str, parameters: Any) -> None:
    with desk.catalog.engine.connect() as connection:
        if desk.catalog.engine.dialect.name == "sqlite":
            plan = [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)]
            # Of what is added up by days there are few rows, whatever is stored.
            read = [line for line in plan if "activations" in line]
            assert read, plan
            assert all("SEARCH" in line and "COVERING INDEX" in line for line in read), plan
            return
        explain = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}"
        found = connection.exec_driver_sql(explain, parameters).scalar_one()
        [told] = found if isinstance(found, list) else json.loads(found)
        plan = told["Plan"]
        assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] <= 20, told


@contextmanager
def noted(desk: Desk) -> Iterator[dict[str, Any]]:
    """The statements that are asked meanwhile, with their parameters."""
    statements: dict[str, Any] = {}

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, many: bool) -> None:
        if not many:
            statements[statement] = parameters

    engines = {desk.catalog.engine, desk.catalog._reader}
    for engine in engines:
        event.listen(engine, "before_cursor_execute", note)
    yield statements
    for engine in engines:
        event.remove(engine, "before_cursor_execute", note)


def each_key(desk: Desk) -> activation.ActivationKey:
    """The activation that a schedule has now."""
    generation = desk.read(require_schedule, desk.key).generation
    return activation.ActivationKey(schedule=desk.key, generation=generation)


def create(desk: Desk, document: dict[str, Any], allowed: Ceilings) -> dict[str, Any]:
    more = {"content": desk.content, "now": desk.now, "ceilings": allowed}
    receipt = desk.write(v0.create, principal(), desk.key.scope, document, new_key(), **more)
    answer: dict[str, Any] = receipt.document
    return answer


def once(offset: float) -> dict[str, Any]:
    return {**ONE_SHOT, "spec": {"run_at": instant_text(at(offset))}}


def review(connection: Connection, desk: Desk) -> None:
    schedule = require_schedule(connection, desk.key, lock=True)
    current = activation.find_activation(connection, schedule, schedule.generation)
    assert current is not None
    activation.send_to_review(connection, schedule, current, because="A test.", by="ada", now=desk.now)


def forget_count(connection: Connection, desk: Desk) -> None:
    """As a release left it that did not count."""
    row = require_schedule(connection, desk.key).row
    connection.execute(update(activations).where(activations.c.schedule == row).values(runs_per_month=None))
    declared_sums.count_again(connection)


def past(connection: Connection, desk: Desk, count: int) -> None:
    """So many generations of a schedule that have ended."""
    schedule = find_schedule(connection, desk.key)
    assert schedule is not None
    connection.execute(
        insert(activations),
        [_activation(schedule.row, 1_000 + number, ended_at=at(-number)) for number in range(count)],
    )


def crowd(
    connection: Connection, count: int, *, first: int = 0, begin: datetime = CROWDED, apart: timedelta = timedelta()
) -> None:
    """So many other schedules that are enabled, each of an hour, from the first on one after the other."""
    # Behind whatever the tests store meanwhile.
    rows = range(1_000_000 * (first + 1), 1_000_000 * (first + 1) + count)
    state = {"contract": CONTRACT, "head_revision": 1, "generation": 1, "created_at": NOON, "unobserved": False}
    key = {"org_id": SCOPE.org_id, "environment_id": SCOPE.environment_id}
    connection.execute(
        insert(schedules), [{"id": row, "schedule_id": str(uuid.uuid4()), **key, **state} for row in rows]
    )
    times = [{"changed_at": begin + number * apart} for number in range(first, first + count)]
    states = [{**_activation(row, 1, ended_at=None), **each} for row, each in zip(rows, times, strict=True)]
    connection.execute(insert(activations), states)
    declared_sums.count_again(connection)


def _activation(schedule: int, generation: int, *, ended_at: datetime | None) -> dict[str, Any]:
    then = ended_at or at(-10)
    return {
        "schedule": schedule,
        "generation": generation,
        "revision": 1,
        "enabled": True,
        "changed_at": then,
        "changed_by": "ada",
        "activated_at": then,
        "accounted_through": then,
        "waiting": False,
        "catchup_started": 0,
        "runs_per_month": 720,
        "ended_at": ended_at,
        "workflow_closed": ended_at is not None,
    }


def test_a_refusal_for_a_ceiling_is_in_the_ledger_and_ends_nothing(desk: Desk) -> None:
    publish_profile(desk, EVERY_MINUTE)
    loop = Loop(desk, enable(desk).key)
    for offset in (60, 120, 180):
        admit(desk, due(loop, offset), Ceilings(per_profile=1))
    found = [(each.disposition, each.reason) for each in desk.entries()]
    assert found == [(Disposition.REFUSED, Reason.CEILING_EXCEEDED)] * 3
    desk.check_ledger()
