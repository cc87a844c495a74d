"""A run for an agent behind the gateway http: claimed, sent, concluded, reported; each once, whoever dies or lies."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from horarium.authority.signing import Keys
from horarium.catalog import ledger, ledger_changes, money
from horarium.catalog.declarations import declare, lift_stop, record_act, set_stop, withdraw_all
from horarium.catalog.schedules import require_schedule
from horarium.control import dispatching, outcomes, running
from horarium.control.dispatching import Again, Answer, Begun, Claim, Ended
from horarium.control.outcomes import OutcomeReport, read_outcome
from horarium.control.running import Outcome
from horarium.errors import Conflict, InvalidSchedule, Misconfigured, NotFound
from horarium.schedule.identity import RunKey, Scope
from horarium.schedule.ledger import Disposition, Reason
from tests.control.desk import NOON, SCOPE, Desk, at, every

KEYS = Keys((b"a secret of thirty-two bytes, no less",))
RESERVED = 500
WINDOW = 300
LIMIT = 60
SUCCESS = OutcomeReport(outcome="succeeded", summary="done", outputs=("a",), cost=120)


def declared(connection: Any, kind: str, name: str, facts: dict[str, Any]) -> None:
    version = record_act(connection, SCOPE, "applied", actor="op", now=at(0), details={})
    declare(connection, SCOPE, kind, name, facts, version=version, everywhere=False)


@pytest.fixture(autouse=True, scope="module")
def declarations(catalog) -> None:
    agent = {"max_cost": RESERVED, "max_run_seconds": LIMIT, "gateway": "http", "destination": "lines"}
    with catalog.writing() as connection:
        declared(connection, "destination", "lines", {"url": "https://agent.test/", "secret": "HORARIUM_SECRET_LINES"})
        declared(connection, "agent", "once@1", agent)
        declared(connection, "agent", "again@1", {**agent, "idempotent": True})
        budget = {"usage_classes": ["test_simulation"], "pays_by": "credits", "limit": 10**9, "currency": "EUR"}
        declared(connection, "budget", "credits", budget)


def document(agent: str = "once@1") -> dict[str, Any]:
    whole = every(60, window=WINDOW)
    return {**whole, "run": {**whole["run"], "agent_version": agent}}


def admitted(desk: Desk, agent: str = "once@1") -> RunKey:
    """A run of a minute after noon that was admitted, with something reserved for it."""
    loop = desk.enabled(document(agent))
    loop.step_at(57)
    desk.now = at(60)
    run = loop.run(60)
    admission = desk.admit(run)
    assert admission.outcome == "admitted"
    assert (admission.dispatch.gateway, admission.dispatch.destination) == ("http", "lines")
    desk.write(
        money.reserve, SCOPE, run.run_id, budget="credits", wallet=None, amount=RESERVED, remote=False, now=desk.now
    )
    return run


def claim(desk: Desk, run: RunKey, **more: Any) -> Any:
    how = {"owner": "execution", "now": desk.now, "keys_of": lambda _: KEYS, **more}
    return desk.write(dispatching.claim, run, **how)


def decide(desk: Desk, run: RunKey, **more: Any) -> dispatching.Decided:
    how = {"owner": "execution", "now": desk.now, "keys_of": lambda _: KEYS, **more}
    return desk.write(dispatching.decide, run, desk.content, **how)


def conclude(desk: Desk, claimed: Claim, answer: Answer) -> Any:
    return desk.write(dispatching.conclude, claimed, answer, sentence="It said so.", now=desk.now)


def report(desk: Desk, run: RunKey, said: OutcomeReport = SUCCESS, *, scope: Scope = SCOPE) -> Any:
    return desk.write(outcomes.report, scope, run.run_id, said, now=desk.now)


def told(desk: Desk) -> tuple[str, str | None]:
    (entry,) = [each for each in desk.entries() if each.first_at == at(60)]
    return str(entry.disposition), entry.reason


def reservation(desk: Desk, run: RunKey) -> money.Reservation:
    found = desk.read(money.find_reservation, run.run_id)
    assert found is not None
    return found


@contextmanager
def stopped(desk: Desk) -> Iterator[None]:
    desk.write(set_stop, SCOPE, everywhere=False, by="op", because="An incident.", now=desk.now)
    try:
        yield
    finally:
        # Nothing is caught up after a lift, so it is one from before all that these tests do.
        desk.write(lift_stop, SCOPE, everywhere=False, now=NOON)


@contextmanager
def withdrawn(desk: Desk) -> Iterator[None]:
    desk.write(withdraw_all, SCOPE, [("destination", "lines")], everywhere=False)
    try:
        yield
    finally:
        facts = {"url": "https://agent.test/", "secret": "HORARIUM_SECRET_LINES"}
        desk.write(declared, "destination", "lines", facts)


def test_what_went_wrong_goes_with_the_outcome_to_the_log_and_is_not_stored(desk: Desk, monkeypatch) -> None:
    settled: list[Outcome] = []

    def settle(connection: Any, key: RunKey, outcome: Outcome, *, now: Any) -> Any:
        settled.append(outcome)
        return running.settle(connection, key, outcome, now=now)

    monkeypatch.setattr(dispatching, "settle", settle)
    for answer, at_second in ((Answer.REFUSED, 60), (Answer.UNSENT, 60 + WINDOW), (Answer.UNKNOWN, 60)):
        one = Desk(desk.catalog)
        claimed = claim(one, admitted(one))
        one.now = at(at_second)
        one.write(dispatching.conclude, claimed, answer, sentence="It said so.", trace="frames", now=one.now)
        assert told(one)[0] == "not_started"
    assert [each.trace for each in settled] == ["frames"] * 3


class TestWhatStartedIt:
    """A run by hand of a cron profile; how its version comes about is told in the tests of profiles."""

    SETTINGS = {"cron": None, "most": 3}  # noqa: RUF012 - nobody changes it

    def claimed(self, desk: Desk, monkeypatch: pytest.MonkeyPatch, **started: Any) -> Any:
        loop = desk.enabled(document())
        desk.now = at(60)
        run = RunKey(activation=loop.key, nominal_time=desk.now, trigger="manual:r1")
        desk.write(
            lambda c: ledger_changes.stage(
                c, require_schedule(c, desk.key, lock=True), run, now=desk.now, triggered_by="ada", **started
            )
        )
        assert desk.admit(run).outcome == "admitted"
        monkeypatch.setattr(dispatching, "config_of", lambda version: {"digest": version.digest, **self.SETTINGS})
        return claim(desk, run)

    def test_goes_with_every_attempt(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        claimed = self.claimed(desk, monkeypatch, start_event="Review", event_data={"letter": "my diary"})
        assert isinstance(claimed, Claim)
        assert (claimed.start_event, claimed.event) == ("Review", {"letter": "my diary"})
        assert claimed.config == {"digest": claimed.version.digest, **self.SETTINGS}
        assert "diary" not in repr(claimed)

    def test_is_nothing_where_the_calendar_did(self, desk: Desk) -> None:
        claimed = claim(desk, admitted(desk))
        assert (claimed.start_event, claimed.event, claimed.config) == (None, {}, {})


class TestOneAttempt:
    def test_a_run_that_is_taken_has_begun_and_its_token_opens_its_input(self, desk: Desk) -> None:
        run = admitted(desk)
        claimed = claim(desk, run)
        assert isinstance(claimed, Claim)
        assert (claimed.first, claimed.until, claimed.deadline) == (True, at(60 + WINDOW), at(60 + LIMIT))
        assert claimed.token not in repr(claimed)
        opened = desk.read(running.opened, run.run_id, claimed.token)
        assert opened.input == "in"
        desk.now = at(61)
        assert conclude(desk, claimed, Answer.TAKEN) == Begun(outcome="callback")
        row = desk.run_row(run)
        assert (row.dispatch_sent, row.begun_at) == (at(60), at(61))
        assert told(desk) == ("started", None)

    @pytest.mark.parametrize(
        ("agent", "answer", "ends_as", "money_is"),
        [
            ("once@1", Answer.REFUSED, "dispatch_refused", "released"),
            ("again@1", Answer.REFUSED, "dispatch_refused", "released"),
            ("once@1", Answer.UNKNOWN, "start_unknown", "held"),
            ("again@1", Answer.UNKNOWN, None, "held"),
            ("once@1", Answer.UNSENT, None, "held"),
            ("again@1", Answer.UNSENT, None, "held"),
        ],
    )
    def test_what_an_answer_means_inside_the_window(
        self, desk: Desk, agent: str, answer: Answer, ends_as: str | None, money_is: str
    ) -> None:
        run = admitted(desk, agent)
        result = conclude(desk, claim(desk, run), answer)
        if ends_as is None:
            assert result == Again(until=at(60 + WINDOW))
            assert told(desk) == ("admitted", None)
        else:
            assert (result.outcome, result.reason) == ("not_started", ends_as)
            assert told(desk) == ("not_started", ends_as)
            assert desk.run_row(run).summary == "It said so."
        assert reservation(desk, run).state == money_is

    @pytest.mark.parametrize(
        ("agent", "answer", "ends_as", "money_is"),
        [
            ("again@1", Answer.UNKNOWN, "start_unknown", "held"),
            ("once@1", Answer.UNSENT, "dispatch_failed", "released"),
            ("again@1", Answer.UNSENT, "dispatch_failed", "released"),
        ],
    )
    def test_what_an_answer_means_at_the_end_of_the_window(
        self, desk: Desk, agent: str, answer: Answer, ends_as: str, money_is: str
    ) -> None:
        run = admitted(desk, agent)
        claimed = claim(desk, run)
        desk.now = at(60 + WINDOW)
        assert conclude(desk, claimed, answer).reason == ends_as
        assert reservation(desk, run).state == money_is

    def test_money_of_a_start_that_nobody_knows_of_is_kept_for_the_time_limit(self, desk: Desk) -> None:
        run = admitted(desk)
        conclude(desk, claim(desk, run), Answer.UNKNOWN)
        assert reservation(desk, run).keep_until == at(60 + LIMIT)
        desk.now = at(60 + LIMIT)
        while desk.write(running.settle_kept, now=desk.now):
            pass  # one at a time
        assert (reservation(desk, run).state, reservation(desk, run).settled) == ("settled", RESERVED)

    @pytest.mark.parametrize(("change", "ends_as"), [(stopped, "stopped_by_operator"), (withdrawn, "dispatch_refused")])
    def test_what_changed_since_the_decision_keeps_it_from_being_sent(
        self, desk: Desk, change: Callable[[Desk], Any], ends_as: str
    ) -> None:
        run = admitted(desk)
        with change(desk):
            assert claim(desk, run).reason == ends_as
        assert told(desk) == ("not_started", ends_as)
        assert reservation(desk, run).state == "released"
        assert desk.run_row(run).dispatch_sent is None

    def test_a_reset_of_the_environment_keeps_it_from_being_sent(self, desk: Desk) -> None:
        run = admitted(desk)
        handed = desk.read(dispatching.find_handed, run, lock=False)
        desk.write(lambda connection: dispatching_activation(connection, handed, reset_generation=0))
        assert claim(desk, run).reason == "environment_reset"

    def test_nothing_is_sent_once_the_window_is_over(self, desk: Desk) -> None:
        run = admitted(desk)
        desk.now = at(61 + WINDOW)
        assert claim(desk, run).reason == "dispatch_failed"

    def test_a_secret_that_is_not_there_leaves_everything_as_it_was(self, desk: Desk) -> None:
        run = admitted(desk)

        def missing(variable: str) -> Keys:
            raise Misconfigured(f"{variable} holds no secret.")

        with pytest.raises(Misconfigured):
            claim(desk, run, keys_of=missing)
        assert desk.run_row(run).dispatch_sent is None
        assert isinstance(claim(desk, run), Claim)

    def test_a_run_is_decided_and_claimed_in_one_transaction(self, desk: Desk) -> None:
        loop = desk.enabled(document())
        loop.step_at(57)
        desk.now = at(60)
        decided = decide(desk, loop.run(60))
        assert decided.admission.outcome == "admitted"
        assert isinstance(decided.claimed, Claim)
        assert desk.run_row(loop.run(60)).dispatch_sent == at(60)
        # The same attempt once more, as after a commit that was not confirmed.
        assert decide(desk, loop.run(60)).claimed.reason == "start_unknown"

    def test_a_secret_that_is_not_there_leaves_the_decision_as_it_is(self, desk: Desk) -> None:
        loop = desk.enabled(document())
        loop.step_at(57)
        desk.now = at(60)

        def missing(variable: str) -> Keys:
            raise Misconfigured(f"{variable} holds no secret.")

        decided = decide(desk, loop.run(60), keys_of=missing)
        assert (decided.admission.outcome, decided.claimed) == ("admitted", None)
        assert "HORARIUM_SECRET_LINES" in decided.unusable
        assert told(desk) == ("admitted", None)
        assert isinstance(decide(desk, loop.run(60)).claimed, Claim)

    def test_a_run_that_is_refused_is_not_claimed(self, desk: Desk) -> None:
        loop = desk.enabled(document())
        loop.step_at(57)
        desk.now = at(60)
        desk.content.readable = False
        decided = decide(desk, loop.run(60))
        assert (decided.admission.outcome, decided.claimed) == ("refused", None)

    def test_a_run_for_a_worker_is_never_claimed(self, desk: Desk) -> None:
        loop = desk.enabled(every(60))
        loop.step_at(57)
        desk.now = at(60)
        assert decide(desk, loop.run(60)).claimed is None
        assert claim(desk, loop.run(60)) == Ended(outcome="withdrawn", reason=None, nudge=None)


def dispatching_activation(connection: Any, handed: dispatching.Handed, **values: Any) -> None:
    from horarium.catalog.schedules import change_activation  # noqa: PLC0415 - used here only

    change_activation(connection, handed.activation, **values)


class TestSeveralAttempts:
    def test_of_two_attempts_only_one_sends_and_the_other_knows_nothing(self, desk: Desk) -> None:
        """The first died before it had an answer, so nobody can say whether the agent runs."""
        run = admitted(desk)
        claimed = claim(desk, run)
        second = claim(desk, run)
        assert (second.outcome, second.reason) == ("not_started", "start_unknown")
        # The first was only asleep. Its answer comes too late.
        late = conclude(desk, claimed, Answer.TAKEN)
        assert (late.outcome, late.reason) == ("not_started", "start_unknown")
        assert desk.run_row(run).begun_at is None
        assert desk.run_row(run).token_hash is None

    def test_an_idempotent_agent_is_sent_the_same_again(self, desk: Desk) -> None:
        run = admitted(desk, "again@1")
        first = claim(desk, run)
        desk.now = at(65)
        second = claim(desk, run)
        assert replace(second, first=True) == first
        assert second.token == first.token
        assert desk.read(running.opened, run.run_id, first.token).run_id == run.run_id

    def test_a_connection_that_was_never_made_may_be_made_again_whatever_the_agent_declares(self, desk: Desk) -> None:
        run = admitted(desk)
        first = claim(desk, run)
        conclude(desk, first, Answer.UNSENT)
        desk.now = at(70)
        second = claim(desk, run)
        assert isinstance(second, Claim)
        assert (second.first, second.sent_at) == (True, at(70))
        assert second.token == first.token
        conclude(desk, second, Answer.TAKEN)
        assert told(desk) == ("started", None)

    @pytest.mark.parametrize("then", [Answer.REFUSED, Answer.UNSENT])
    def test_after_an_answer_that_was_lost_nothing_proves_that_it_did_not_run(self, desk: Desk, then: Answer) -> None:
        run = admitted(desk, "again@1")
        conclude(desk, claim(desk, run), Answer.UNKNOWN)
        again = claim(desk, run)
        desk.now = at(60 + WINDOW)
        assert conclude(desk, again, then).reason == "start_unknown"
        assert reservation(desk, run).state == "held"

    def test_a_stop_after_an_answer_that_was_lost_does_not_claim_that_it_did_not_run(self, desk: Desk) -> None:
        run = admitted(desk, "again@1")
        conclude(desk, claim(desk, run), Answer.UNKNOWN)
        with stopped(desk):
            assert claim(desk, run).reason == "start_unknown"

    def test_an_attempt_that_could_not_connect_does_not_take_back_what_another_sent(self, desk: Desk) -> None:
        run = admitted(desk, "again@1")
        first, second = claim(desk, run), claim(desk, run)
        conclude(desk, first, Answer.UNSENT)
        conclude(desk, second, Answer.UNKNOWN)
        desk.now = at(61 + WINDOW)
        assert claim(desk, run).reason == "start_unknown"

    def test_another_owner_is_given_nothing(self, desk: Desk) -> None:
        run = admitted(desk)
        assert claim(desk, run, owner="another") == Ended(outcome="withdrawn", reason=None, nudge=None)
        assert desk.run_row(run).dispatch_sent is None

    def test_an_attempt_after_the_start_sends_nothing(self, desk: Desk) -> None:
        run = admitted(desk)
        conclude(desk, claim(desk, run), Answer.TAKEN)
        assert claim(desk, run) == Begun(outcome="callback")
        with withdrawn(desk):
            assert claim(desk, run) == Begun(outcome="callback")


class TestOutcomes:
    def started(self, desk: Desk, agent: str = "once@1") -> RunKey:
        run = admitted(desk, agent)
        conclude(desk, claim(desk, run), Answer.TAKEN)
        return run

    def test_an_outcome_settles_the_run_and_its_money_once(self, desk: Desk) -> None:
        run = self.started(desk)
        desk.now = at(70)
        first = report(desk, run)
        assert (first.disposition, first.replayed) == ("succeeded", False)
        row = desk.run_row(run)
        assert (row.summary, row.outputs, row.cost, row.ended_at, row.token_hash) == ("done", ["a"], 120, at(70), None)
        assert (reservation(desk, run).state, reservation(desk, run).settled) == ("settled", 120)
        desk.now = at(71)
        again = report(desk, run)
        assert (again.disposition, again.replayed, again.nudge) == ("succeeded", True, None)
        assert desk.run_row(run) == row

    @pytest.mark.parametrize(
        "other",
        [
            OutcomeReport(outcome="failed", summary="done", outputs=("a",), cost=120),
            OutcomeReport(outcome="succeeded", summary="done", outputs=("a",), cost=0),
            OutcomeReport(outcome="succeeded", summary="done", outputs=("a",)),
            OutcomeReport(outcome="succeeded", summary="well done", outputs=("a",), cost=120),
            OutcomeReport(outcome="succeeded", summary="done", outputs=(), cost=120),
        ],
        ids=["failed", "free", "no cost", "words", "outputs"],
    )
    def test_a_contradictory_outcome_changes_nothing_and_is_told_so(self, desk: Desk, other: OutcomeReport) -> None:
        run = self.started(desk)
        report(desk, run)
        before = desk.run_row(run), reservation(desk, run), desk.entries()
        with pytest.raises(Conflict) as refused:
            report(desk, run, other)
        assert refused.value.code == "outcome_conflict"
        assert (desk.run_row(run), reservation(desk, run), desk.entries()) == before

    def test_an_outcome_may_come_before_the_answer_to_the_post(self, desk: Desk) -> None:
        run = admitted(desk)
        claimed = claim(desk, run)
        desk.now = at(62)
        assert report(desk, run).disposition == "succeeded"
        result = conclude(desk, claimed, Answer.TAKEN)
        assert (result.outcome, result.reason) == ("succeeded", None)
        assert (desk.run_row(run).begun_at, reservation(desk, run).settled) == (at(60), 120)

    def test_an_outcome_is_believed_even_where_the_post_failed(self, desk: Desk) -> None:
        run = admitted(desk)
        claimed = claim(desk, run)
        report(desk, run)
        assert conclude(desk, claimed, Answer.UNKNOWN).outcome == "succeeded"

    def test_an_outcome_after_the_time_limit_is_late_whoever_notices_first(self, desk: Desk) -> None:
        run = self.started(desk)
        desk.now = at(60 + LIMIT) + timedelta(microseconds=1)
        late = report(desk, run)
        assert (late.disposition, late.reason) == ("timed_out", "time_limit")
        assert late.late is not None
        assert reservation(desk, run).settled == RESERVED
        with pytest.raises(Conflict) as refused:
            report(desk, run)
        assert refused.value.code == "run_ended"
        assert "time limit" in refused.value.sentence

    def test_an_outcome_at_the_time_limit_counts(self, desk: Desk) -> None:
        run = self.started(desk)
        desk.now = at(60 + LIMIT)
        assert report(desk, run).disposition == "succeeded"

    @pytest.mark.parametrize(
        ("ends_as", "reason"),
        [
            (Disposition.TIMED_OUT, Reason.TIME_LIMIT),
            (Disposition.CANCELLED, Reason.CANCELLED_BY_OPERATOR),
            (Disposition.TERMINATED, Reason.TERMINATED_BY_OPERATOR),
        ],
    )
    def test_an_outcome_of_a_run_that_ended_otherwise_is_told_how(
        self, desk: Desk, ends_as: Disposition, reason: Reason
    ) -> None:
        run = self.started(desk)
        desk.write(running.settle, run, Outcome(disposition=ends_as, reason=reason), now=desk.now)
        with pytest.raises(Conflict) as refused:
            report(desk, run)
        assert refused.value.code == "run_ended"
        assert str(ends_as) in refused.value.sentence
        assert told(desk) == (ends_as, reason)

    def test_an_outcome_of_a_start_that_nobody_knew_of_comes_too_late(self, desk: Desk) -> None:
        run = admitted(desk)
        conclude(desk, claim(desk, run), Answer.UNKNOWN)
        with pytest.raises(Conflict) as refused:
            report(desk, run)
        assert refused.value.code == "run_ended"
        assert reservation(desk, run).state == "held"

    def test_nobody_reports_on_what_was_not_sent_or_is_another_environments(self, desk: Desk) -> None:
        run = admitted(desk)
        assert desk.read(outcomes.destination_of, SCOPE, run.run_id) is None
        with pytest.raises(NotFound):
            report(desk, run)
        claim(desk, run)
        assert desk.read(outcomes.destination_of, SCOPE, run.run_id).secret == "HORARIUM_SECRET_LINES"
        elsewhere = Scope(org_id="globex", environment_id="test")
        assert desk.read(outcomes.destination_of, elsewhere, run.run_id) is None
        with pytest.raises(NotFound):
            report(desk, run, scope=elsewhere)
        with withdrawn(desk):
            assert desk.read(outcomes.destination_of, SCOPE, run.run_id) is None

    def test_a_failure_that_is_reported_ends_the_activation_where_the_policy_says_so(self, desk: Desk) -> None:
        document_ = document()
        document_["policy"]["pause_on_failure"] = True
        loop = desk.enabled(document_)
        loop.step_at(57)
        desk.now = at(60)
        desk.admit(loop.run(60))
        claim(desk, loop.run(60))
        failed = report(desk, loop.run(60), OutcomeReport(outcome="failed", summary="no"))
        assert (failed.disposition, failed.reason) == ("failed", "agent_reported_failure")
        assert desk.activation().ended_as == "review"

    def test_a_run_that_was_cancelled_while_it_was_sent_keeps_its_money(self, desk: Desk) -> None:
        """It may have begun, and nobody can say what it cost."""
        run = admitted(desk)
        claimed = claim(desk, run)
        cancelled = Outcome(disposition=Disposition.CANCELLED, reason=Reason.CANCELLED_BY_OPERATOR)
        desk.write(running.settle, run, cancelled, now=desk.now)
        assert conclude(desk, claimed, Answer.TAKEN).outcome == "cancelled"
        assert (reservation(desk, run).state, reservation(desk, run).keep_until) == ("held", at(60 + LIMIT))


class TestReading:
    @pytest.mark.parametrize(
        ("document_", "pointers"),
        [
            ([], [""]),
            ({}, ["/outcome"]),
            ({"outcome": "running"}, ["/outcome"]),
            ({"outcome": []}, ["/outcome"]),
            ({"outcome": "failed", "cost": -1}, ["/cost"]),
            ({"outcome": "failed", "cost": 10**15 + 1}, ["/cost"]),
            ({"outcome": "failed", "cost": 1.0}, ["/cost"]),
            ({"outcome": "failed", "cost": True}, ["/cost"]),
            ({"outcome": "failed", "cost": "1"}, ["/cost"]),
            ({"outcome": "failed", "summary": None}, ["/summary"]),
            ({"outcome": "failed", "outputs": "a"}, ["/outputs"]),
            ({"outcome": "failed", "outputs": ["a", 1]}, ["/outputs/1"]),
            ({"status": "failed", "cost": -1}, ["/status", "/outcome", "/cost"]),
        ],
    )
    def test_a_lie_about_money_or_form_is_refused_with_all_that_is_wrong(
        self, document_: Any, pointers: list[str]
    ) -> None:
        with pytest.raises(InvalidSchedule) as refused:
            read_outcome(document_)
        assert [fault.pointer for fault in refused.value.faults] == pointers

    def test_what_is_long_is_shortened_and_not_refused(self) -> None:
        said = read_outcome({"outcome": "succeeded", "summary": "x" * 5_000, "outputs": ["y"] * 200, "cost": None})
        assert (len(said.summary), len(said.outputs), said.cost) == (2_000, 100, None)


def test_ledger_rows_keep_what_a_token_is_made_from(desk: Desk) -> None:
    run = admitted(desk)
    claimed = claim(desk, run)
    row = desk.read(ledger.find_run, run.run_id)
    assert len(row.token_nonce) == 32
    assert claimed.token not in repr(row)
