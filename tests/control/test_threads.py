"""Threads of cron profiles (seed 004): one for each, made by its first run, read by operators, and pruned of events alone."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest
from sqlalchemy import func, select, update

from horarium.authority.signing import Keys
from horarium.catalog import Catalog
from horarium.catalog.tables import audit_events, entries, profiles, receipts, runs, thread_events, threads
from horarium.catalog.threads import make_thread
from horarium.control import dispatching, outcomes, running
from horarium.control import profiles as operations
from horarium.control import threads as threads_module
from horarium.control.activation import Reviewed
from horarium.control.admission import decide
from horarium.control.audit import audit
from horarium.control.manual import trigger
from horarium.control.operations import run_to_start
from horarium.control.principals import OPERATOR_SCOPE, WRITE_SCOPE
from horarium.control.running import Outcome
from horarium.control.threads import Pruned, prune
from horarium.errors import Forbidden, NotFound, Refused
from horarium.schedule.identity import RunKey, Scope, instant_text
from horarium.schedule.ledger import Disposition, Reason
from horarium.schedule.profiles import thread_id
from starter.controller import Controller
from tests.control.caller import new_key, principal
from tests.control.desk import SCOPE, Desk, at, every, open_undurable
from tests.control.operators import Operator
from tests.control.profiler import EVERY_MINUTE, TRIAGE, Profiler, profiler_of, saved
from tests.control.test_controller import FakeTemporal
from tests.control.test_profiles import code_of
from tests.control.test_side_by_side import at_once, told

SOME = 12
DAY = 86_400
HOURLY = {**EVERY_MINUTE, "minute": "0"}


@pytest.fixture
def profiler(desk: Desk) -> Profiler:
    return profiler_of(desk)


def begun(profiler: Profiler, offset: int = 60) -> RunKey:
    """A run by the calendar that its agent has begun."""
    loop = profiler.loop()
    loop.step_at(offset - 3)
    profiler.desk.now = at(offset)
    run = loop.run(offset)
    assert profiler.desk.admit(run).outcome == "admitted"
    profiler.desk.begin(run)
    return run


class TestMade:
    def test_it_is_there_from_the_first_run_on(self, profiler: Profiler) -> None:
        profiler.save(saved(tenant_id="acme"))
        assert code_of(profiler.thread, NotFound) == "thread_not_found"
        begun(profiler)
        thread = profiler.thread()
        assert {name: thread[name] for name in thread if name != "events"} == {
            "thread_id": thread_id(TRIAGE, profiler.agent_id),
            "agent_class": TRIAGE,
            "agent_id": profiler.agent_id,
            "tenant_id": "acme",
            "created_at": instant_text(at(60)),
            "members": [],
            "next_cursor": None,
        }

    def test_all_runs_of_a_profile_share_it_and_its_age_stays(self, profiler: Profiler) -> None:
        profiler.save()
        profiler.world().pass_until(at(190))
        thread = profiler.thread()
        assert thread["created_at"] == instant_text(at(60))
        assert [each["kind"] for each in thread["events"]] == ["run_started", "run_ended"] * 3

    def test_each_profile_has_its_own(self, profiler: Profiler) -> None:
        other = profiler_of(Desk(profiler.desk.catalog))
        for each in (profiler, other):
            each.save()
            begun(each)
        assert profiler.thread()["thread_id"] != other.thread()["thread_id"]
        assert [len(each.thread()["events"]) for each in (profiler, other)] == [1, 1]

    def test_the_tenant_is_the_profiles_when_the_run_begins(self, profiler: Profiler) -> None:
        profiler.save(saved(tenant_id="one"))
        begun(profiler)
        profiler.save(saved(tenant_id="two"))
        begun(profiler, 120)
        assert [data["tenant_id"] for _, data in profiler.told()] == ["one", "two"]
        # The thread has the tenant that its profile has, and not the one of its first run.
        assert profiler.thread()["tenant_id"] == "two"
        profiler.save(saved(None, tenant_id="three"))
        profiler.delete()
        assert profiler.thread()["tenant_id"] == "three"

    def test_a_run_is_told_its_tenant_together_with_the_settings_that_go_with_it(self, profiler: Profiler) -> None:
        profiler.save(saved(tenant_id="one", folder="a"))
        loop = profiler.loop()
        loop.step_at(57)
        profiler.desk.now = at(60)
        run = loop.run(60)
        assert profiler.desk.admit(run).outcome == "admitted"
        profiler.save(saved(tenant_id="two", folder="b"))
        found = profiler.desk.begin(run)
        assert (found.tenant_id, found.config["folder"]) == ("one", "a")
        assert profiler.told()[-1][1]["tenant_id"] == "one"

    def test_other_contracts_have_none(self, desk: Desk) -> None:
        before = desk.read(lambda c: c.execute(select(func.count()).select_from(thread_events)).scalar_one())
        loop = desk.enabled(every(60))
        loop.step_at(57)
        loop.has_run(60, ends=61)
        assert desk.read(lambda c: c.execute(select(func.count()).select_from(thread_events)).scalar_one()) == before

    def test_a_transaction_that_is_undone_leaves_none(self, profiler: Profiler) -> None:
        profiler.save()
        loop = profiler.loop()
        loop.step_at(57)
        profiler.desk.now = at(60)
        run = loop.run(60)
        profiler.desk.admit(run)

        def dies(connection: Any) -> None:
            running.begin(connection, run.run_id, again=False, now=at(60))
            raise RuntimeError("the process dies")

        with pytest.raises(RuntimeError):
            profiler.desk.write(dies)
        assert code_of(profiler.thread, NotFound) == "thread_not_found"


class TestTold:
    def test_a_run_by_the_calendar_has_no_user(self, profiler: Profiler) -> None:
        profiler.save()
        run = begun(profiler)
        profiler.desk.now = at(65)
        outcome = Outcome(
            disposition=Disposition.SUCCEEDED, reason=None, summary="Three mails filed.", outputs=("out/a",)
        )
        profiler.desk.write(running.settle, run, outcome, now=at(65))
        assert profiler.told() == [
            (
                "run_started",
                {
                    "start_event": "CronStartEvent",
                    "nominal_time": instant_text(at(60)),
                    "trigger": "schedule",
                    "by": None,
                    "tenant_id": None,
                },
            ),
            ("run_ended", {"disposition": "succeeded", "reason": None, "summary": "Three mails filed."}),
        ]
        events = profiler.thread()["events"]
        assert [(each["at"], each["run_id"]) for each in events] == [
            (instant_text(at(60)), run.run_id),
            (instant_text(at(65)), run.run_id),
        ]

    def test_a_run_by_hand_has_one_and_its_event(self, profiler: Profiler) -> None:
        profiler.save(saved(HOURLY))
        receipt = profiler.trigger("UserMessageEvent", {"event": {"text": "the secret of the house"}})
        run = run_to_start(SCOPE, receipt)
        assert run is not None
        profiler.desk.admit(run)
        token = profiler.desk.begin(run).token
        ((kind, data),) = profiler.told()
        assert (kind, data["start_event"], data["by"]) == ("run_started", "UserMessageEvent", "ada")
        assert data["trigger"] == f"manual:{receipt.document['receipt_id']}"
        # It is told that something happened, and not what was said.
        assert "secret of the house" not in json.dumps(profiler.thread())
        assert token not in json.dumps(profiler.thread())

    def test_a_run_by_the_calendar_is_told_by_the_event_that_its_class_handles(self, profiler: Profiler) -> None:
        profiler.register(start_events=["Nightly"], calendar_event="Nightly", is_conversational=False)
        profiler.save()
        begun(profiler)
        by_hand = run_to_start(SCOPE, profiler.trigger())
        assert by_hand is not None
        profiler.desk.admit(by_hand)
        profiler.desk.begin(by_hand)
        assert [data["start_event"] for _, data in profiler.told()] == ["Nightly", "Nightly"]

    @pytest.mark.parametrize(
        ("ends_as", "reason"),
        [
            (Disposition.FAILED, Reason.AGENT_REPORTED_FAILURE),
            (Disposition.TIMED_OUT, Reason.TIME_LIMIT),
            (Disposition.CANCELLED, Reason.CANCELLED_BY_OPERATOR),
        ],
    )
    def test_however_a_run_ends_it_is_told(self, profiler: Profiler, ends_as: Disposition, reason: Reason) -> None:
        profiler.save()
        run = begun(profiler)
        profiler.desk.settle(run, ends_as, reason)
        profiler.desk.settle(run, ends_as, reason)
        told = profiler.told()[1:]
        assert told == [("run_ended", {"disposition": ends_as.value, "reason": reason.value, "summary": ""})]

    def test_a_refused_run_is_told_with_its_reason(self, profiler: Profiler) -> None:
        profiler.save()
        loop = profiler.loop()
        loop.step_at(57)
        profiler.desk.now = at(60)
        profiler.desk.content.writable = False
        assert profiler.desk.admit(loop.run(60)).outcome == "refused"
        ((kind, data),) = profiler.told()
        assert (kind, data["reason"], data["by"], data["nominal_time"]) == (
            "run_refused",
            "output_missing",
            None,
            instant_text(at(60)),
        )
        assert data["sentence"]

    def test_a_run_that_no_agent_begins_is_told(self, profiler: Profiler) -> None:
        profiler.save()
        loop = profiler.loop()
        loop.step_at(57)
        profiler.desk.now = at(60)
        profiler.desk.admit(loop.run(60))
        profiler.desk.settle(loop.run(60), Disposition.NOT_STARTED, Reason.NOT_PICKED_UP)
        ((kind, data),) = profiler.told()
        assert (kind, data["disposition"], data["reason"]) == ("run_not_started", "not_started", "not_picked_up")

    def test_a_run_that_is_decided_too_late_is_told(self, profiler: Profiler) -> None:
        profiler.save()
        loop = profiler.loop()
        loop.step_at(57)
        profiler.desk.now = at(60 + 901)
        assert profiler.desk.admit(loop.run(60)).outcome == "missed"
        ((kind, data),) = profiler.told()
        assert (kind, data["disposition"], data["reason"]) == ("run_not_started", "missed", "outside_window")

    @pytest.mark.parametrize("ends", ["pause", "delete", "clear"])
    def test_a_run_by_hand_that_ends_with_what_was_enabled_is_told(self, profiler: Profiler, ends: str) -> None:
        profiler.save(saved(HOURLY))
        receipt = profiler.trigger().document
        acts: dict[str, Callable[[], object]] = {
            "pause": profiler.desk.pause,
            "delete": profiler.delete,
            "clear": profiler.clear,
        }
        acts[ends]()
        ((kind, data),) = profiler.told()
        assert (kind, data["disposition"], data["reason"]) == ("run_not_started", "dropped", "paused")
        assert (data["by"], data["trigger"]) == ("ada", receipt["trigger"])
        assert profiler.thread()["events"][0]["run_id"] == receipt["run_id"]

    def test_an_occurrence_that_was_due_and_undecided_then_is_told_too(self, profiler: Profiler) -> None:
        profiler.save()
        profiler.loop().step_at(57)
        profiler.desk.now = at(61)
        profiler.desk.pause()
        assert [(kind, data["nominal_time"], data["reason"]) for kind, data in profiler.told()] == [
            ("run_not_started", instant_text(at(60)), "paused")
        ]


class TestBehindTheGateway:
    """An agent behind the gateway http has begun a run once it has taken it."""

    @pytest.fixture
    def profiler(self, desk: Desk) -> Profiler:
        operator = Operator(desk.catalog, SCOPE)
        operator.declare("destination", "lines", url="https://agent.test/", secret="HORARIUM_SECRET_LINES")
        operator.declare(
            "agent", "lines@1", max_cost=0, max_run_seconds=60, gateway="http", destination="lines", idempotent=True
        )
        made = profiler_of(desk)
        made.bind(agent_version="lines@1")
        made.save(saved(folder="a", tenant_id="acme"))
        return made

    def sent(self, profiler: Profiler) -> tuple[RunKey, dispatching.Claim]:
        loop, desk = profiler.loop(), profiler.desk
        loop.step_at(57)
        desk.now = at(60)
        how = {"owner": "execution", "now": desk.now, "keys_of": lambda _: Keys((b"x" * 32,))}
        claimed = desk.write(dispatching.decide, loop.run(60), desk.content, **how).claimed
        assert isinstance(claimed, dispatching.Claim)
        return loop.run(60), claimed

    def test_what_it_took_is_told_and_what_it_reports(self, profiler: Profiler) -> None:
        run, claimed = self.sent(profiler)
        assert not claimed.idempotent
        assert (claimed.config["folder"], claimed.tenant_id) == ("a", "acme")
        desk = profiler.desk
        desk.write(dispatching.conclude, claimed, dispatching.Answer.TAKEN, sentence="Taken.", now=desk.now)
        reported = outcomes.OutcomeReport(outcome="succeeded", summary="done")
        desk.write(outcomes.report, SCOPE, run.run_id, reported, now=at(62))
        assert [kind for kind, _ in profiler.told()] == ["run_started", "run_ended"]
        assert profiler.told()[0][1]["tenant_id"] == "acme"

    def test_a_report_before_it_has_answered_is_its_beginning_too(self, profiler: Profiler) -> None:
        run, claimed = self.sent(profiler)
        desk = profiler.desk
        reported = outcomes.OutcomeReport(outcome="failed", summary="No.")
        desk.write(outcomes.report, SCOPE, run.run_id, reported, now=at(62))
        desk.write(dispatching.conclude, claimed, dispatching.Answer.TAKEN, sentence="Taken.", now=at(63))
        assert [kind for kind, _ in profiler.told()] == ["run_started", "run_ended"]

    def test_what_it_refused_was_not_started(self, profiler: Profiler) -> None:
        _, claimed = self.sent(profiler)
        desk = profiler.desk
        desk.write(dispatching.conclude, claimed, dispatching.Answer.REFUSED, sentence="No.", now=desk.now)
        assert [(kind, data["reason"]) for kind, data in profiler.told()] == [("run_not_started", "dispatch_refused")]

    def test_nothing_is_sent_twice(self, profiler: Profiler) -> None:
        _, claimed = self.sent(profiler)
        desk = profiler.desk
        ended = desk.write(dispatching.conclude, claimed, dispatching.Answer.UNKNOWN, sentence="Silence.", now=desk.now)
        assert isinstance(ended, dispatching.Ended)
        assert [data["reason"] for _, data in profiler.told()] == ["start_unknown"]


class TestRead:
    def test_only_operators_read_it(self, profiler: Profiler) -> None:
        profiler.save()
        begun(profiler)

        def ask(**who: Any) -> Any:
            reader = principal("grace", **who)
            return profiler.desk.read(operations.thread, reader, SCOPE, TRIAGE, profiler.agent_id)

        assert ask(scopes=OPERATOR_SCOPE)["events"]
        assert code_of(lambda: ask(scopes=WRITE_SCOPE), Forbidden) == "scope_missing"
        assert code_of(lambda: ask(scopes=OPERATOR_SCOPE, org_id="other"), NotFound) == "environment_not_found"

    def test_another_environment_has_another_thread_of_the_same_id(self, profiler: Profiler) -> None:
        profiler.save()
        begun(profiler)
        scope = Scope(org_id="acme", environment_id="elsewhere")
        Operator(profiler.desk.catalog, scope).open()
        reader = principal("grace", scopes=OPERATOR_SCOPE)
        with pytest.raises(NotFound, match="thread_not_found"):
            profiler.desk.read(operations.thread, reader, scope, TRIAGE, profiler.agent_id)

    def test_it_is_read_page_by_page(self, profiler: Profiler) -> None:
        profiler.save()
        profiler.world().pass_until(at(190))
        whole = profiler.thread()["events"]
        page = profiler.thread(limit=4)
        rest = profiler.thread(after=page["next_cursor"], limit=4)
        assert page["events"] + rest["events"] == whole
        assert (len(page["events"]), rest["next_cursor"]) == (4, None)
        for limit in (0, 1_001):
            assert code_of(lambda limit=limit: profiler.thread(limit=limit)) == "invalid_limit"


def counted(desk: Desk) -> dict[str, int]:
    """How many rows there are of what pruning leaves alone."""
    kept = (threads, entries, runs, receipts, audit_events, profiles)
    return {
        each.name: desk.read(lambda c, t=each: c.execute(select(func.count()).select_from(t)).scalar_one())
        for each in kept
    }


class TestPruned:
    @pytest.fixture
    def desk(self, own_desk: Desk) -> Desk:
        return own_desk

    def prune(self, desk: Desk, days: float, *, older_than: int = 30, **more: Any) -> int:
        """How many events are deleted from the first page of profiles to the last."""
        return sum(each.count for each in self.pages(desk, days, older_than=older_than, **more))

    def pages(self, desk: Desk, days: float, *, older_than: int = 30, **more: Any) -> list[Pruned]:
        """What each transaction did."""
        done: list[Pruned] = []
        after: int | None = 0
        while after is not None:
            done.append(desk.write(prune, now=at(days * DAY), older_than_days=older_than, after=after, **more))
            after = done[-1].after
        return done

    def test_events_go_and_nothing_else_does(self, desk: Desk, profiler: Profiler) -> None:
        profiler.save()
        profiler.world().pass_until(at(130))
        before, told = counted(desk), profiler.thread()
        assert self.prune(desk, 30) == 0
        assert self.prune(desk, 31) == 4
        after = profiler.thread()
        assert after == {**told, "events": []}
        assert counted(desk) == before
        assert desk.read(audit, SCOPE, now=desk.now).clean

    def test_what_is_young_stays(self, desk: Desk, profiler: Profiler) -> None:
        profiler.save(saved(HOURLY))
        for days in (0, 10, 20):
            desk.now = at(days * DAY)
            run = run_to_start(SCOPE, profiler.trigger())
            assert run is not None
            desk.admit(run)
            desk.begin(run)
        assert self.prune(desk, 45) == 2
        assert [each["at"] for each in profiler.thread()["events"]] == [instant_text(at(20 * DAY))]

    def test_a_deleted_profile_leaves_its_events_until_it_is_there_again(self, desk: Desk, profiler: Profiler) -> None:
        gone = profiler_of(Desk(desk.catalog))
        for each in (gone, profiler):
            each.save()
            each.world().pass_until(at(70))
        gone.delete()
        assert self.prune(desk, 100) == 2
        assert len(gone.thread()["events"]) == 2
        gone.save(saved(None))
        assert self.prune(desk, 100) == 2
        assert gone.thread()["events"] == []

    def test_threads_are_found_by_the_profiles_that_are_there_and_by_nothing_else(
        self, desk: Desk, profiler: Profiler
    ) -> None:
        profiler.save()
        profiler.world().pass_until(at(70))
        foreign = {"org_id": "acme", "environment_id": "test", "thread_id": "0" * 64}
        desk.write(lambda c: c.execute(thread_events.insert().values(**foreign, kind="run_ended", at=at(0), data={})))
        # A row whose own class and profile say something else: the id alone counts.
        desk.write(lambda c: c.execute(update(threads).values(agent_class="Other", agent_id="other")))
        assert self.prune(desk, 100) == 2
        left = desk.read(lambda c: c.execute(select(thread_events.c.thread_id)).scalars().all())
        assert left == ["0" * 64]

    @pytest.mark.parametrize("limit", [1, 4, 5, 6, 7])
    def test_one_transaction_deletes_no_more_than_its_limit(
        self, own_desk: Desk, limit: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lived = [profiler_of(Desk(own_desk.catalog)) for _ in range(3)]
        for each in lived:
            each.save()
            each.world().pass_until(at(70))
        monkeypatch.setattr(threads_module, "PROFILES_AT_ONCE", 3)
        counts = [each.count for each in self.pages(own_desk, 100, limit=limit)]
        assert sum(counts) == 6
        assert max(counts) == min(limit, 6)
        assert not [event for each in lived for event in each.thread()["events"]]

    def test_one_transaction_looks_at_one_page_of_profiles_and_the_next_goes_on_behind_it(
        self, own_desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lived = [profiler_of(Desk(own_desk.catalog)) for _ in range(5)]
        for each in lived:
            each.save()
            each.world().pass_until(at(70))
        monkeypatch.setattr(threads_module, "PROFILES_AT_ONCE", 2)
        pages = self.pages(own_desk, 100, scope=SCOPE)
        assert [each.count for each in pages] == [4, 4, 2, 0]
        begins = [0, *(each.after for each in pages[:-1] if each.after is not None)]
        assert begins == sorted(set(begins))
        assert pages[-1].after is None

    def test_another_environments_stay(self, desk: Desk, profiler: Profiler) -> None:
        profiler.save()
        profiler.world().pass_until(at(70))
        assert self.prune(desk, 100, scope=Scope(org_id="acme", environment_id="other")) == 0
        assert self.prune(desk, 100, scope=SCOPE) == 2

    @pytest.mark.parametrize(("days", "left"), [(None, 2), (30, 0), (365, 2)])
    def test_a_controller_prunes_where_an_operator_has_said_so(
        self, desk: Desk, profiler: Profiler, days: int | None, left: int
    ) -> None:
        profiler.save()
        profiler.world().pass_until(at(70))
        controller = Controller(
            desk.catalog, FakeTemporal(), SCOPE, now=lambda: at(100 * DAY), event_retention_days=days
        )
        asyncio.run(controller.pruning.prune())
        assert len(profiler.thread()["events"]) == left


class TestSideBySide:
    @pytest.fixture
    def desk(self, own_desk: Desk) -> Desk:
        return own_desk

    @pytest.fixture
    def processes(self, own_catalog: Catalog) -> Iterator[list[Catalog]]:
        url = own_catalog.engine.url.render_as_string(hide_password=False)
        with ExitStack() as stack:
            opened = [open_undurable(url) for _ in range(SOME)]
            for each in opened:
                stack.callback(each.close)
            yield opened

    def saves(self, profiler: Profiler, documents: Sequence[Any]) -> list[Any]:
        named = {"principal": profiler.who, "scope": SCOPE, "agent_class": TRIAGE, "agent_id": profiler.agent_id}
        more = {"content": profiler.desk.content, "now": profiler.desk.now}
        return [partial(operations.save, **named, document=each, key=new_key(), **more) for each in documents]

    def test_one_profile_that_is_saved_by_all_at_once_is_one_schedule(
        self, profiler: Profiler, processes: list[Catalog]
    ) -> None:
        answers = at_once(processes, self.saves(profiler, [saved()] * SOME))
        assert told(answers) == {"Receipt": SOME}
        assert {each.document["schedule_id"] for each in answers} == {profiler.desk.key.schedule_id}
        assert {(each.document["generation"], each.document["reference"]["revision"]) for each in answers} == {(1, 1)}
        assert len({each.document["receipt_id"] for each in answers}) == SOME
        assert profiler.show()["generation"] == 1

    def test_different_ones_are_one_after_the_other(self, profiler: Profiler, processes: list[Catalog]) -> None:
        documents = [saved(folder=f"folder {n}") for n in range(SOME)]
        answers = at_once(processes, self.saves(profiler, documents))
        assert told(answers) == {"Receipt": SOME}
        generations = sorted(each.document["generation"] for each in answers)
        assert generations == list(range(1, SOME + 1))
        last = max(answers, key=lambda each: each.document["generation"])
        shown = profiler.show()
        assert (shown["generation"], shown["reference"]) == (SOME, last.document["reference"])
        assert shown["config"] == documents[answers.index(last)]["config"]

    def test_first_runs_that_begin_at_once_make_one_thread(self, profiler: Profiler, processes: list[Catalog]) -> None:
        profiler.save()
        keys = [
            profiler.desk.write(
                trigger,
                profiler.desk.key,
                Reviewed(),
                receipt_id=f"receipt-{n}",
                allow_overlap=True,
                by="ada",
                now=profiler.desk.now,
            ).run
            for n in range(SOME)
        ]
        for each in keys:
            profiler.desk.admit(each)
        asks = [partial(running.begin, run_id=each.run_id, again=False, now=profiler.desk.now) for each in keys]
        assert told(at_once(processes, asks)) == {"Begun": SOME}
        count = profiler.desk.read(lambda c: c.execute(select(func.count()).select_from(threads)).scalar_one())
        assert count == 1
        assert {each["run_id"] for each in profiler.thread()["events"]} == {each.run_id for each in keys}

    def test_one_first_occurrence_that_all_begin_at_once_is_one_run_in_one_thread(
        self, profiler: Profiler, processes: list[Catalog]
    ) -> None:
        profiler.save()
        profiler.loop().step_at(57)
        profiler.desk.now = at(60)
        run = profiler.loop().run(60)
        admission = partial(decide, key=run, content=profiler.desk.content, now=at(60))
        admitted = at_once(processes, [partial(admission, owner=f"execution-{n}") for n in range(SOME)])
        assert Counter(each.outcome for each in admitted) == {"admitted": 1, "withdrawn": SOME - 1}
        begins = [partial(running.begin, run_id=run.run_id, again=True, now=at(60))] * SOME
        assert told(at_once(processes, begins)) == {"Begun": 1, "already_begun": SOME - 1}
        count = profiler.desk.read(lambda c: c.execute(select(func.count()).select_from(threads)).scalar_one())
        assert count == 1
        assert [(each["kind"], each["run_id"]) for each in profiler.thread()["events"]] == [("run_started", run.run_id)]

    def test_whoever_makes_a_thread_at_the_same_moment_makes_one(
        self, profiler: Profiler, processes: list[Catalog]
    ) -> None:
        about = {"agent_class": TRIAGE, "agent_id": "p", "now": at(0)}
        ask = partial(make_thread, scope=SCOPE, thread_id=thread_id(TRIAGE, "p"), **about)
        made = at_once(processes, [ask] * SOME)
        assert not [each for each in made if isinstance(each, Refused)]
        assert sorted(made) == [False] * (SOME - 1) + [True]
