"""The words of the ledger."""

import re

from horarium.schedule.ledger import FAILURES, HOLDING, OPEN, Disposition, Reason


def test_an_entry_is_open_or_has_its_one_answer() -> None:
    assert {each for each in Disposition if each.is_open} == {"buffered", "staged", "admitted", "started"}
    assert {each for each in Disposition if not each.is_open} == {
        "dropped",
        "missed",
        "skipped",
        "refused",
        "not_started",
        "succeeded",
        "failed",
        "timed_out",
        "cancelled",
        "terminated",
    }


def test_whatever_is_open_holds_a_slot_but_what_waits_for_one() -> None:
    assert {each for each in Disposition if each.holds_slot} == HOLDING == OPEN - {Disposition.BUFFERED}


def test_failures_are_what_the_agent_answers_for() -> None:
    assert {"failed", "timed_out"} == FAILURES


def test_every_reason_is_a_stable_code_with_a_sentence_for_a_person() -> None:
    for reason in Reason:
        assert re.fullmatch(r"[a-z]+(_[a-z0-9]+)*", reason.value)
        assert len(reason.value) <= 40, "the catalog's column"
        assert reason.sentence.endswith(".")
    assert len({reason.sentence for reason in Reason}) == len(Reason)
