"""A change happens once for a caller's key, and whoever asks again is told what happened."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import func, select

from horarium.catalog.schedules import require_schedule
from horarium.catalog.tables import receipts as table
from horarium.control import operations
from horarium.control.principals import PrincipalKind
from horarium.control.receipts import Receipt, find_receipt
from horarium.errors import Conflict, Forbidden, HorariumError, InvalidSchedule, NotFound, Refused
from horarium.schedule.identity import Scope
from tests.control.caller import Caller, change_environment, events, own_environment, principal
from tests.control.desk import Desk, at, every

AT_ONCE = 50


@pytest.fixture
def caller(desk: Desk) -> Caller:
    own_environment(desk)
    return Caller(desk)


def stored(desk: Desk) -> int:
    scope = desk.key.scope
    here = (table.c.org_id == scope.org_id, table.c.environment_id == scope.environment_id)
    return desk.read(lambda c: c.execute(select(func.count()).select_from(table).where(*here)).scalar_one())


def head(desk: Desk) -> int:
    return desk.read(lambda c: require_schedule(c, desk.key)).head_revision


def refused(act: Callable[[], Any], kind: type[Refused] = Conflict) -> Refused:
    with pytest.raises(kind) as caught:
        act()
    assert caught.value.next_step
    return caught.value


def test_a_receipt_says_what_was_done_to_what_and_in_which_environment(caller: Caller) -> None:
    change_environment(caller.desk, authority_epoch=7, reset_generation=3)
    receipt = caller.publish(every(60), key="k")
    told = dict(receipt.document)
    assert len(told.pop("receipt_id")) == len(told.pop("resource_id")) == 36
    reference = told.pop("reference")
    assert reference["revision"] == 1
    assert reference["digest"].startswith("sha256:")
    assert told == {
        "operation": "publish",
        "schedule_id": caller.desk.key.schedule_id,
        "environment_epoch": 7,
        "reset_generation": 3,
        "created_at": "2026-11-30T12:00:00Z",
        "warnings": [],
        "replayed": False,
    }


def test_the_same_key_and_body_give_the_same_receipt_and_change_nothing(caller: Caller) -> None:
    request = caller.publication(every(60))
    first = caller.send_publication(request, "k")
    caller.desk.now = at(3_600)
    again = caller.send_publication(dict(reversed(request.items())), "k")
    assert again == Receipt(document={**first.document, "replayed": True}, replayed=True)
    assert head(caller.desk) == 1
    assert stored(caller.desk) == 1
    assert [event["kind"] for event in events(caller.desk)] == ["published"]


def test_a_replay_is_what_was_done_then_and_not_what_is_so_now(caller: Caller) -> None:
    reference = caller.publish(every(60)).document["reference"]
    enabling = caller.about(reference, 0, enabled=True)
    caller.set(enabling, "enable")
    caller.set(caller.about(reference, 1, enabled=False))
    assert caller.set(enabling, "enable").document["generation"] == 1
    assert caller.desk.activation().generation == 2
    assert not caller.desk.activation().enabled


def test_a_replay_does_not_need_what_the_change_needed(caller: Caller) -> None:
    """Inputs may be gone, and the head another one: what happened has happened."""
    reference = caller.publish(every(60)).document["reference"]
    enabling = caller.about(reference, 0, enabled=True)
    caller.set(enabling, "enable")
    caller.desk.content.readable = False
    assert caller.set(enabling, "enable").replayed


REUSES = {
    "another configuration": lambda caller, asked: caller.send_publication({**asked, "configuration": every(90)}, "k"),
    "another expected revision": lambda caller, asked: caller.send_publication({**asked, "expected_revision": 1}, "k"),
    "another operation": lambda caller, asked: caller.set(caller.about(reference_of(caller), 0, enabled=True), "k"),
}


def reference_of(caller: Caller) -> dict[str, Any]:
    return caller.desk.read(
        lambda c: find_receipt(c, caller.desk.key.scope, caller.principal, "k").document["reference"]
    )


@pytest.mark.parametrize("reuse", REUSES.values(), ids=REUSES)
def test_a_key_is_for_one_request(caller: Caller, reuse: Callable[[Caller, dict[str, Any]], Receipt]) -> None:
    asked = caller.publication(every(60))
    receipt = caller.send_publication(asked, "k")
    conflict = refused(lambda: reuse(caller, asked))
    assert conflict.code == "idempotency_key_reused"
    assert receipt.document["receipt_id"] in conflict.sentence
    assert head(caller.desk) == 1


def test_enabling_and_pausing_with_one_key_are_two_requests(caller: Caller) -> None:
    reference = caller.publish(every(60)).document["reference"]
    asked = caller.about(reference, 0, enabled=True)
    caller.set(asked, "k")
    assert refused(lambda: caller.set({**asked, "enabled": False}, "k")).code == "idempotency_key_reused"


def test_a_refused_request_binds_no_key(caller: Caller) -> None:
    caller.publish(every(60))
    assert refused(lambda: caller.publish(every(90), expected=0, key="k")).code == "revision_conflict"
    assert caller.publish(every(90), expected=1, key="k").document["reference"]["revision"] == 2
    assert stored(caller.desk) == 2


def test_keys_of_two_principals_have_nothing_to_do_with_each_other(caller: Caller) -> None:
    mine = caller.publish(every(60), key="k")
    other = Caller(caller.desk, principal("grace"))
    theirs = other.publish(every(90), expected=1, key="k")
    assert not theirs.replayed
    assert theirs.document["receipt_id"] != mine.document["receipt_id"]
    scope = caller.desk.key.scope
    for each, receipt in ((caller, mine), (other, theirs)):
        found = caller.desk.read(find_receipt, scope, each.principal, "k")
        assert found.document == {**receipt.document, "replayed": True}


def test_keys_of_two_environments_have_nothing_to_do_with_each_other(caller: Caller) -> None:
    caller.publish(every(60), key="k")
    elsewhere = Caller(Desk(caller.desk.catalog))
    own_environment(elsewhere.desk)
    assert not elsewhere.publish(every(60), key="k").replayed


def test_a_receipt_is_found_by_its_owner_and_by_nobody_else(caller: Caller) -> None:
    receipt = caller.publish(every(60), key="k")
    scope = caller.desk.key.scope
    assert (
        caller.desk.read(find_receipt, scope, caller.principal, "k").document["receipt_id"]
        == (receipt.document["receipt_id"])
    )
    for who, key in ((principal("grace"), "k"), (caller.principal, "other")):
        missing = refused(lambda who=who, key=key: caller.desk.read(find_receipt, scope, who, key), NotFound)
        assert missing.code == "receipt_not_found"
    with pytest.raises(NotFound, match="environment_not_found"):
        caller.desk.read(find_receipt, Scope(org_id="acme", environment_id="nowhere"), caller.principal, "k")


def test_a_reset_refuses_to_recover_a_request_and_keeps_its_receipt_for_investigation(caller: Caller) -> None:
    request = caller.publication(every(60))
    receipt = caller.send_publication(request, "k")
    change_environment(caller.desk, reset_generation=2)
    conflict = refused(lambda: caller.send_publication(request, "k"))
    assert conflict.code == "environment_reset"
    assert receipt.document["receipt_id"] in conflict.sentence
    found = caller.desk.read(find_receipt, caller.desk.key.scope, caller.principal, "k")
    assert found.document["reset_generation"] == 1
    assert (head(caller.desk), stored(caller.desk)) == (1, 1)


def test_a_newer_epoch_alone_does_not_refuse_to_recover_a_request(caller: Caller) -> None:
    request = caller.publication(every(60))
    caller.send_publication(request, "k")
    change_environment(caller.desk, authority_epoch=2)
    assert caller.send_publication(request, "k").replayed


REVOKED = {
    "the scope was taken away": (principal(scopes=""), Forbidden, "scope_missing"),
    "another organization's token": (principal(org_id="umbra"), NotFound, "environment_not_found"),
    "a key in the person's place": (principal(kind=PrincipalKind.KEY), Forbidden, "human_session_required"),
}


@pytest.mark.parametrize(("who", "kind", "code"), REVOKED.values(), ids=REVOKED)
def test_lost_authority_refuses_to_recover_a_request(caller: Caller, who: Any, kind: Any, code: str) -> None:
    reference = caller.publish(every(60)).document["reference"]
    enabling = caller.about(reference, 0, enabled=True)
    caller.set(enabling, "k")
    caller.principal = who
    assert refused(lambda: caller.set(enabling, "k"), kind).code == code


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"expected_environment_epoch": 2}, "environment_epoch_changed"),
        ({"expected_environment_epoch": 0}, "environment_epoch_changed"),
        ({"expected_reset_generation": 2}, "environment_reset"),
        ({"expected_reset_generation": 0, "expected_environment_epoch": 9}, "environment_reset"),
    ],
)
def test_another_environment_than_the_reviewed_one_is_a_conflict(
    caller: Caller, changed: dict[str, int], code: str
) -> None:
    reference = caller.publish(every(60)).document["reference"]
    requests: list[tuple[Callable[[Any], Receipt], dict[str, Any]]] = [
        (caller.send_publication, caller.publication(every(90), expected=1)),
        (caller.set, caller.about(reference, 0, enabled=True)),
        (caller.retire, caller.about(reference, 0)),
        (caller.trigger, caller.about(reference, 0)),
    ]
    for send, request in requests:
        assert refused(lambda send=send, request=request: send({**request, **changed})).code == code
    assert (head(caller.desk), stored(caller.desk)) == (1, 1)


@pytest.mark.parametrize("key", ["a", "~", "x" * 200, "6c1f-with a space", "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"])
def test_a_key_is_printable_ascii(caller: Caller, key: str) -> None:
    assert not caller.publish(every(60), key=key).replayed


@pytest.mark.parametrize("key", ["", "x" * 201, " a", "a ", "a\n", "a\tb", "a\0", "clé", "\x7f", "\ud800"])
def test_anything_else_is_no_key(caller: Caller, key: str) -> None:
    request = caller.publication(every(60))
    sends = [
        lambda: caller.desk.write(
            operations.publish, caller.principal, caller.desk.key.scope, request, key, now=caller.desk.now
        ),
        lambda: caller.desk.read(find_receipt, caller.desk.key.scope, caller.principal, key),
    ]
    for send in sends:
        with pytest.raises(InvalidSchedule) as caught:
            send()
        assert [fault.code for fault in caught.value.faults] == ["invalid_idempotency_key"]
    assert stored(caller.desk) == 0


def all_at_once(sends: list[Callable[[], Receipt]]) -> list[Receipt | HorariumError]:
    """Every request in a thread of its own, let loose at the same moment."""
    gate = threading.Barrier(len(sends))

    def one(send: Callable[[], Receipt]) -> Receipt | HorariumError:
        gate.wait()
        try:
            return send()
        except HorariumError as error:
            return error

    with ThreadPoolExecutor(len(sends)) as pool:
        return list(pool.map(one, sends))


def test_fifty_publications_of_one_expected_revision_at_once_make_one_version(caller: Caller) -> None:
    requests = [caller.publication(every(60 + number)) for number in range(AT_ONCE)]
    answers = all_at_once([lambda request=request: caller.send_publication(request) for request in requests])
    made = [answer for answer in answers if isinstance(answer, Receipt)]
    assert len(made) == 1
    assert {answer.code for answer in answers if isinstance(answer, Refused)} == {"revision_conflict"}
    assert (head(caller.desk), stored(caller.desk), len(events(caller.desk))) == (1, 1, 1)


def test_fifty_requests_of_one_key_and_body_at_once_are_one_receipt(caller: Caller) -> None:
    request = caller.publication(every(60))
    answers = all_at_once([lambda: caller.send_publication(request, "one")] * AT_ONCE)
    assert all(isinstance(answer, Receipt) for answer in answers), answers
    assert sorted(answer.replayed for answer in answers) == [False] + [True] * (AT_ONCE - 1)
    assert len({str(sorted({**answer.document, "replayed": None}.items(), key=str)) for answer in answers}) == 1
    assert (head(caller.desk), stored(caller.desk), len(events(caller.desk))) == (1, 1, 1)


def test_fifty_persons_who_enable_one_generation_at_once_make_one_activation(caller: Caller) -> None:
    reference = caller.publish(every(60)).document["reference"]
    request = caller.about(reference, 0, enabled=True)
    answers = all_at_once([lambda: caller.set(request)] * AT_ONCE)
    assert sum(isinstance(answer, Receipt) for answer in answers) == 1
    assert {answer.code for answer in answers if isinstance(answer, Refused)} == {"generation_conflict"}
    assert caller.desk.activation().generation == 1
