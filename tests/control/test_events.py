"""One audit event for each accepted change and each transition: who, from where to where, and why."""

from typing import Any

import pytest

from horarium.errors import HorariumError
from horarium.schedule.identity import ActivationKey
from horarium.schedule.ledger import Disposition
from tests.control.caller import Caller, events, principal
from tests.control.desk import Desk, Loop, every


@pytest.fixture
def caller(desk: Desk) -> Caller:
    return Caller(desk)


def standing(reference: dict[str, Any], generation: int | None = None, state: str | None = None) -> dict[str, Any]:
    told = {"reference": reference, "generation": generation, "state": state}
    return {name: value for name, value in told.items() if value is not None}


def test_a_whole_life_is_told_with_both_ends_of_each_change_and_its_receipt(caller: Caller) -> None:
    desk = caller.desk
    published = caller.publish(every(3_600))
    first = published.document["reference"]
    replaced = caller.publish(every(60), expected=1)
    second = replaced.document["reference"]
    enabled = caller.set(caller.about(first, 0, enabled=True))
    run = caller.trigger(caller.about(first, 1))
    switched = caller.set(caller.about(second, 1, enabled=True))
    paused = caller.set(caller.about(second, 2, enabled=False))
    caller.principal = principal("grace")
    retired = caller.retire(caller.about(second, 3))
    receipts = [published, replaced, enabled, run, switched, switched, paused, retired]
    told = events(desk)
    assert [(event["kind"], event["actor"], event["generation"], event["revision"]) for event in told] == [
        ("published", "ada", None, 1),
        ("published", "ada", None, 2),
        ("enabled", "ada", 1, 1),
        ("triggered", "ada", 1, 1),
        ("superseded", "ada", 1, 1),
        ("enabled", "ada", 2, 2),
        ("paused", "ada", 3, 2),
        ("retired", "grace", 4, 2),
    ]
    one = standing(first, 1, "enabled")
    two = standing(second, 2, "enabled")
    assert [(event["details"]["from"], event["details"]["to"]) for event in told] == [
        (None, standing(first)),
        (standing(first), standing(second)),
        (None, one),
        (one, one),
        (one, standing(first, 1, "superseded")),
        (one, two),
        (two, standing(second, 3, "paused")),
        (standing(second, 3, "paused"), standing(second, 4, "retired")),
    ]
    assert [event["details"]["receipt_id"] for event in told] == [
        receipt.document["receipt_id"] for receipt in receipts
    ]
    assert told[4]["details"]["because"] == "Generation 2 was enabled."


def test_a_review_is_told_with_its_reason_and_without_a_receipt(caller: Caller) -> None:
    reference = caller.enabled(every(60, pause_on_failure=True))
    loop = Loop(caller.desk, ActivationKey(schedule=caller.desk.key, generation=1))
    loop.step_at(57)
    loop.has_run(60, ends=70, disposition=Disposition.FAILED)
    review = events(caller.desk)[-1]
    assert (review["kind"], review["actor"], review["generation"]) == ("review", "system:settlement", 1)
    details = review["details"]
    assert details["from"] == standing(reference, 1, "enabled")
    assert details["to"] == standing(reference, 1, "review")
    assert " failed (pause_on_failure, run " in details["because"]
    assert "receipt_id" not in details
    caller.set(caller.about(reference, 1, enabled=True))
    assert events(caller.desk)[-1]["kind"] == "enabled", "what had ended before is not superseded"
    assert events(caller.desk)[-1]["details"]["from"] == standing(reference, 1, "review")


def test_what_is_refused_or_replayed_is_no_event(caller: Caller) -> None:
    request = caller.publication(every(60))
    reference = caller.send_publication(request, "events-replay").document["reference"]
    caller.send_publication(request, "events-replay")
    for ask in (
        lambda: caller.publish(every(60), expected=5),
        lambda: caller.publish({}, expected=1),
        lambda: caller.set(caller.about(reference, 0, enabled=False)),
        lambda: caller.trigger(caller.about(reference, 0)),
    ):
        with pytest.raises(HorariumError):
            ask()
    assert [event["kind"] for event in events(caller.desk)] == ["published"]
