"""The life of an admitted run: begun once, settled once, and what its end does to the schedule."""

from typing import Any

import pytest

from horarium.agents.report import MAX_COST, MAX_SUMMARY_LENGTH
from horarium.catalog.audit_events import list_events
from horarium.catalog.schedules import require_schedule
from horarium.control import running
from horarium.control.running import Outcome
from horarium.errors import NotFound, Refused
from horarium.schedule.identity import ActivationKey, RunKey
from horarium.schedule.ledger import FAILURES, Disposition, Reason
from tests.control.desk import SCOPE, Desk, Loop, at, every

OVERLAPS = ["skip", "buffer_one", "buffer_all", "allow"]


def admitted(desk: Desk, **policy: Any) -> Loop:
    """A schedule whose first run is admitted at its second."""
    loop = desk.enabled(every(60, **policy))
    loop.step_at(57)
    desk.now = at(60)
    assert desk.admit(loop.run(60)).outcome == "admitted"
    return loop


def input_of(desk: Desk, run: RunKey, token: str) -> str:
    return desk.read(running.opened, run.run_id, token).input


def test_a_run_is_begun_once(desk: Desk) -> None:
    loop = admitted(desk)
    desk.now = at(60.5)
    begun = desk.begin(loop.run(60))
    assert (begun.run_id, begun.key, begun.begun_at, begun.previous_success) == (
        loop.run(60).run_id,
        loop.run(60),
        at(60.5),
        None,
    )
    assert desk.told() == [("started", 60, 60, 1)]
    with pytest.raises(Refused, match=r"was begun at 2026-11-30T12:01:00.5") as refused:
        desk.begin(loop.run(60))
    assert refused.value.code == "already_begun"


def test_an_idempotent_agent_may_begin_again_and_the_first_token_dies(desk: Desk) -> None:
    loop = admitted(desk)
    first = desk.begin(loop.run(60))
    desk.now = at(70)
    second = desk.begin(loop.run(60), again=True)
    assert second.begun_at == first.begun_at
    assert input_of(desk, loop.run(60), second.token) == "in"
    with pytest.raises(NotFound):
        input_of(desk, loop.run(60), first.token)


@pytest.mark.parametrize("state", ["staged", "refused", "withdrawn", "dropped", "settled"])
def test_what_is_not_admitted_is_not_begun(desk: Desk, state: str) -> None:
    loop = desk.enabled(every(60))
    loop.step_at(57)
    desk.now = at(58 if state == "withdrawn" else 60)
    if state == "refused":
        desk.content.readable = False
        desk.admit(loop.run(60))
    elif state in {"withdrawn", "dropped"}:
        desk.pause()
    elif state == "settled":
        desk.admit(loop.run(60))
        desk.settle(loop.run(60), Disposition.NOT_STARTED, Reason.NOT_PICKED_UP)
    before = desk.entries()
    for again in (False, True):
        with pytest.raises(Refused) as refused:
            desk.begin(loop.run(60), again=again)
        assert refused.value.code == ("run_not_found" if state == "withdrawn" else "not_admitted")
    assert desk.entries() == before


def test_the_token_opens_this_run_until_its_end_and_is_kept_by_nobody(desk: Desk) -> None:
    loop = admitted(desk, overlap="allow")
    begun = desk.begin(loop.run(60))
    row = desk.run_row(loop.run(60))
    assert row is not None
    assert begun.token not in repr(row)
    assert begun.token not in repr(begun)
    assert input_of(desk, loop.run(60), begun.token) == "in"
    for token in ("", "guess", begun.token + "x"):
        with pytest.raises(NotFound, match="this token opens"):
            input_of(desk, loop.run(60), token)

    loop.step_at(117)
    desk.now = at(120)
    desk.admit(loop.run(120))
    with pytest.raises(NotFound):
        input_of(desk, loop.run(120), begun.token)

    desk.settle(loop.run(60))
    with pytest.raises(NotFound):
        input_of(desk, loop.run(60), begun.token)


def test_each_run_has_an_output_folder_of_its_own(desk: Desk) -> None:
    loop = admitted(desk)
    token = desk.begin(loop.run(60)).token
    run_id = loop.run(60).run_id
    opened = desk.read(running.opened, run_id, token)
    assert (opened.scope, opened.output_target, opened.folder) == (SCOPE, "out", f"20261130T120100Z-{run_id[:8]}")


def test_what_a_run_may_read_is_told_while_somebody_else_writes(desk: Desk) -> None:
    """It takes no lock, so that an agent that reads or writes much waits for nobody and keeps nobody waiting."""
    loop = admitted(desk)
    token = desk.begin(loop.run(60)).token
    with desk.catalog.writing() as connection:
        require_schedule(connection, desk.key, lock=True)
        assert input_of(desk, loop.run(60), token) == "in"


def test_a_run_is_told_the_last_success_before_it(desk: Desk) -> None:
    loop = admitted(desk, overlap="skip")
    desk.begin(loop.run(60))
    desk.settle(loop.run(60))
    for offset, ends_as in ((120, Disposition.FAILED), (180, Disposition.SUCCEEDED)):
        loop.step_at(offset - 3)
        loop.has_run(offset, ends=offset + 1, disposition=ends_as)
    loop.step_at(237)
    desk.now = at(240)
    desk.admit(loop.run(240))
    assert desk.begin(loop.run(240)).previous_success == at(180)


def test_a_run_that_nobody_knows_cannot_be_begun(desk: Desk) -> None:
    with pytest.raises(NotFound, match="There is no run"):
        desk.write(running.begin, "no-such-run", again=False, now=at(0))


def test_a_settlement_keeps_what_the_agent_left(desk: Desk) -> None:
    loop = admitted(desk)
    desk.begin(loop.run(60))
    outcome = Outcome(
        disposition=Disposition.SUCCEEDED, reason=None, summary="x" * 3_000, outputs=("out/a", "out/b"), cost=12
    )
    desk.write(running.settle, loop.run(60), outcome, now=at(75))
    row = desk.run_row(loop.run(60))
    assert row is not None
    assert (row.ended_at, row.outputs, row.cost, row.token_hash) == (at(75), ["out/a", "out/b"], 12, None)
    assert len(row.summary or "") == MAX_SUMMARY_LENGTH
    [entry] = desk.entries()
    assert (entry.disposition, entry.closed_at) == (Disposition.SUCCEEDED, at(75))


@pytest.mark.parametrize(
    ("reported", "kept"),
    [
        ({"cost": 2**63}, {"cost": MAX_COST}),
        ({"cost": -(2**63)}, {"cost": 0}),
        ({"cost": True}, {"cost": None}),
        ({"cost": "much"}, {"cost": None}),
        ({"outputs": ("o",) * 100_000}, {"outputs": ["o"] * 100}),
        ({"outputs": ("o" * 501, 7, "a\x00b\ud800")}, {"outputs": ["o" * 499 + "…", "a\ufffdb\ufffd"]}),
        ({"outputs": None}, {"outputs": []}),
        ({"summary": "a\x00b\ud800"}, {"summary": "a\ufffdb\ufffd"}),
        ({"summary": None}, {"summary": ""}),
    ],
)
def test_whatever_an_agent_says_its_run_is_settled_and_its_slot_is_free(
    desk: Desk, reported: dict[str, Any], kept: dict[str, Any]
) -> None:
    loop = admitted(desk)
    desk.begin(loop.run(60))
    outcome = Outcome(disposition=Disposition.SUCCEEDED, reason=None, **reported)
    desk.write(running.settle, loop.run(60), outcome, now=at(75))
    row = desk.run_row(loop.run(60))
    assert row is not None
    assert {name: getattr(row, name) for name in kept} == kept
    assert desk.holding() == 0


def test_only_the_first_settlement_counts(desk: Desk) -> None:
    loop = admitted(desk, pause_on_failure=True)
    desk.now = at(70)
    desk.settle(loop.run(60))
    before = desk.entries(), desk.run_row(loop.run(60))
    desk.now = at(80)
    desk.settle(loop.run(60), Disposition.FAILED)
    assert (desk.entries(), desk.run_row(loop.run(60))) == before
    assert desk.activation().is_live


def test_a_settlement_of_a_run_that_was_withdrawn_changes_nothing(desk: Desk) -> None:
    loop = desk.enabled(every(60))
    loop.step_at(57)
    desk.now = at(58)
    desk.pause()
    assert desk.settle(loop.run(60), Disposition.CANCELLED) is None
    stranger = RunKey(activation=ActivationKey(schedule=desk.key, generation=7), nominal_time=at(60))
    assert desk.settle(stranger, Disposition.FAILED) is None
    assert desk.entries() == []


def test_a_staged_run_that_was_cancelled_by_hand_is_never_admitted(desk: Desk) -> None:
    loop = desk.enabled(every(60))
    loop.step_at(57)
    desk.now = at(58)
    desk.settle(loop.run(60), Disposition.CANCELLED, Reason.CANCELLED_BY_OPERATOR)
    assert desk.holding() == 0
    desk.now = at(60)
    assert desk.admit(loop.run(60)).outcome == "withdrawn"
    desk.pause()
    desk.check_ledger()


class TestNudges:
    def test_one_who_waits_is_told(self, desk: Desk) -> None:
        loop = admitted(desk)
        loop.step_at(117)
        assert desk.settle(loop.run(60)) == loop.key
        # The nudge may be lost with the process that was to send it, so a repetition tells it again.
        assert desk.settle(loop.run(60)) == loop.key
        loop.step()
        assert desk.settle(loop.run(60)) is None

    def test_one_who_does_not_wait_is_left_alone(self, desk: Desk) -> None:
        loop = admitted(desk)
        desk.now = at(70)
        assert desk.settle(loop.run(60)) is None

    def test_it_is_the_current_activation_that_is_told(self, desk: Desk) -> None:
        loop = admitted(desk)
        loop.step_at(117)
        desk.now = at(117.5)
        second = Loop(desk, desk.enable().key)
        assert desk.settle(loop.run(60)) is None
        second.step()
        assert desk.told()[-1] == ("staged", 120, 120, 1)

    def test_nobody_is_told_of_a_paused_schedule(self, desk: Desk) -> None:
        loop = admitted(desk)
        loop.step_at(117)
        desk.now = at(118)
        desk.pause()
        assert desk.settle(loop.run(60)) is None


class TestPauseOnFailure:
    """The first failed or timed-out run ends its activation in review, in the transaction that settles the run."""

    @pytest.mark.parametrize("overlap", OVERLAPS)
    @pytest.mark.parametrize("ends_as", sorted(FAILURES))
    def test_under_every_overlap_policy(self, desk: Desk, overlap: str, ends_as: Disposition) -> None:
        loop = admitted(desk, overlap=overlap, pause_on_failure=True)
        desk.begin(loop.run(60))
        loop.step_at(177)
        desk.now = at(177.5)
        assert desk.settle(loop.run(60), ends_as) is None
        activation = desk.activation()
        assert (activation.is_live, activation.ended_as, activation.ended_at) == (False, "review", at(177.5))
        said = ends_as.replace("_", " ")
        assert activation.ended_reason == (
            f"Its run of Mon 30 Nov 2026 12:01 UTC {said} (pause_on_failure, run {loop.run(60).run_id})."
        )
        # Staged ahead is withdrawn; what waits, or is staged and due, is dropped and told.
        assert desk.told()[0] == (ends_as.value, 60, 60, 1)
        assert all(told[0] in {"dropped", "skipped"} for told in desk.told()[1:])
        desk.check_ledger()
        desk.now = at(180)
        for offset in (120, 180):
            assert desk.admit(loop.run(offset)).outcome == "withdrawn"
        assert loop.step().value == "ended"

    @pytest.mark.parametrize("ends_as", sorted({"cancelled", "terminated", "not_started", "succeeded"}))
    def test_what_is_no_failure_changes_nothing(self, desk: Desk, ends_as: str) -> None:
        loop = admitted(desk, pause_on_failure=True)
        desk.settle(loop.run(60), Disposition(ends_as))
        assert desk.activation().is_live

    def test_nor_does_a_refusal(self, desk: Desk) -> None:
        desk.content.readable = False
        loop = desk.enabled_whatever(every(60, pause_on_failure=True))
        loop.step_at(57)
        desk.now = at(60)
        assert desk.admit(loop.run(60)).outcome == "refused"
        assert desk.activation().is_live

    def test_nor_does_a_run_by_hand(self, desk: Desk) -> None:
        desk.enabled(every(3_600, pause_on_failure=True))
        desk.now = at(5)
        manual = desk.hold_by_hand("receipt")
        desk.admit(manual)
        desk.begin(manual)
        desk.settle(manual, Disposition.FAILED)
        assert desk.activation().is_live

    def test_nor_does_a_failure_where_the_policy_does_not_ask_for_it(self, desk: Desk) -> None:
        loop = admitted(desk)
        desk.begin(loop.run(60))
        desk.settle(loop.run(60), Disposition.FAILED)
        assert desk.activation().is_live

    def test_a_run_of_an_earlier_generation_fails_without_the_current_one(self, desk: Desk) -> None:
        loop = admitted(desk, pause_on_failure=True)
        desk.begin(loop.run(60))
        desk.now = at(65)
        desk.enable()
        desk.now = at(70)
        desk.settle(loop.run(60), Disposition.FAILED)
        assert desk.activation().is_live
        assert desk.activation(1).ended_as == "superseded"

    @pytest.mark.parametrize("ends_as", sorted(FAILURES))
    def test_nor_does_the_loss_of_a_run_that_no_agent_had_begun(self, desk: Desk, ends_as: Disposition) -> None:
        """Its runner took it from the queue and died before it claimed it. Seen from outside it died in the middle."""
        loop = admitted(desk, pause_on_failure=True)
        desk.settle(loop.run(60), ends_as, Reason.AGENT_LOST)
        [entry] = desk.entries()
        assert (entry.disposition, entry.reason) == (Disposition.NOT_STARTED, Reason.START_UNKNOWN)
        assert desk.activation().is_live
        assert desk.holding() == 0

    @pytest.mark.parametrize("ends_as", sorted(FAILURES))
    def test_the_loss_of_one_that_an_agent_had_begun_is_a_failure(self, desk: Desk, ends_as: Disposition) -> None:
        loop = admitted(desk, pause_on_failure=True)
        desk.begin(loop.run(60))
        desk.settle(loop.run(60), ends_as, Reason.AGENT_LOST)
        [entry] = desk.entries()
        assert (entry.disposition, entry.reason) == (ends_as, Reason.AGENT_LOST)
        assert desk.activation().ended_as == "review"

    def test_other_admitted_runs_go_on(self, desk: Desk) -> None:
        loop = admitted(desk, overlap="allow", pause_on_failure=True)
        desk.begin(loop.run(60))
        loop.step_at(117)
        desk.now = at(120)
        desk.admit(loop.run(120))
        desk.settle(loop.run(60), Disposition.FAILED)
        desk.begin(loop.run(120))
        desk.now = at(130)
        desk.settle(loop.run(120), Disposition.FAILED)
        assert desk.told() == [("failed", 60, 60, 1), ("failed", 120, 120, 1)]
        reviews = desk.read(
            lambda c: [
                event
                for event in list_events(c, require_schedule(c, desk.key), after=0, limit=50)
                if event["kind"] == "review"
            ]
        )
        assert len(reviews) == 1

    def test_a_settlement_that_was_held_up_ends_it_after_what_was_decided_meanwhile(self, desk: Desk) -> None:
        """The catalog was away from this run's worker only; others were admitted in the meantime."""
        loop = admitted(desk, overlap="allow", pause_on_failure=True)
        desk.begin(loop.run(60))
        loop.step_at(117)
        desk.now = at(120)
        desk.admit(loop.run(120))
        loop.step_at(178)
        desk.now = at(70)
        desk.settle(loop.run(60), Disposition.FAILED)
        assert desk.activation().ended_at == at(120)
        desk.check_ledger()
        desk.now = at(179)
        assert desk.enable().activation.activated_at == at(179)
