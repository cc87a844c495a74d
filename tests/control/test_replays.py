"""Whoever asks again is told what was done, though the same document is refused today: zone data and rules change."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from horarium.control import (
    administration,
    cancellation,
    declaring,
    operations,
    operator_acts,
    profile_starts,
    profiles,
    v0,
)
from horarium.control.attempts import Attempt, attempt
from horarium.control.principals import OPERATOR_SCOPE
from horarium.control.receipts import Receipt, find_receipt
from horarium.errors import InvalidSchedule, NotFound
from horarium.schedule.identity import Scope
from tests.control.caller import Caller, new_key, own_environment, principal, refusing
from tests.control.desk import AGENT, SCOPE, Desk, at, every
from tests.control.operators import Operator
from tests.control.profiler import profiler_of
from tests.schedule.test_v0 import CRON, RUN

OPERATOR = principal("olga", scopes=OPERATOR_SCOPE)
Change = Callable[[str], Receipt]
"""A change that is asked for with a key: always the same one."""
Parser = tuple[Any, str]
"""What reads the request: a module, and a name in it."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A change, made ready on a desk, and what reads its request."""

    ready: Callable[[Desk], Change]
    parser: Parser


def a_caller(desk: Desk) -> Caller:
    own_environment(desk)
    return Caller(desk)


def publish(desk: Desk) -> Change:
    caller = a_caller(desk)
    request = caller.publication(every(60))
    return lambda key: caller.send_publication(request, key)


def enable(desk: Desk) -> Change:
    caller = a_caller(desk)
    request = caller.about(caller.publish(every(60)).document["reference"], 0, enabled=True)
    return lambda key: caller.set(request, key)


def pause(desk: Desk) -> Change:
    caller = a_caller(desk)
    request = caller.about(caller.enabled(every(60)), 1, enabled=False)
    return lambda key: caller.set(request, key)


def retire(desk: Desk) -> Change:
    caller = a_caller(desk)
    request = caller.about(caller.enabled(every(60)), 1)
    return lambda key: caller.retire(request, key)


def trigger(desk: Desk) -> Change:
    caller = a_caller(desk)
    request = caller.about(caller.enabled(every(60)), 1)
    return lambda key: caller.trigger(request, key)


def cancel(desk: Desk) -> Change:
    caller = a_caller(desk)
    run_id = caller.trigger(caller.about(caller.enabled(every(60)), 1)).document["run_id"]
    request = caller.reviewed()
    return lambda key: desk.write(
        cancellation.cancel, caller.principal, desk.key.scope, request, key, run_id=run_id, now=desk.now
    )


def operate(act: str, request: Callable[[Caller], dict[str, Any]]) -> Callable[[Desk], Change]:
    """What an operator does to an environment."""

    def ready(desk: Desk) -> Change:
        asked = request(a_caller(desk))
        return lambda key: desk.write(getattr(administration, act), OPERATOR, desk.key.scope, asked, key, now=desk.now)

    return ready


def approval(caller: Caller) -> dict[str, Any]:
    reference = caller.publish(every(60)).document["reference"]
    return {"version": reference, "expires_at": at(3_600).isoformat().replace("+00:00", "Z")}


def declare(desk: Desk) -> Change:
    scope = Scope(org_id="acme", environment_id=f"declared{desk.key.schedule_id[-6:]}")
    names = {"organization": scope.org_id, "environment": scope.environment_id}
    file = {**names, "mode": "test", "runtime_profile": "embedded"}
    return lambda key: desk.write(declaring.apply, OPERATOR, scope, file, key, now=desk.now)


def bind(desk: Desk) -> None:
    name = f"v0:{CRON['target']['workspace_id']}/{CRON['target']['agent_id']}"
    Operator(desk.catalog, SCOPE).declare("binding", name, run={**RUN, "agent_version": AGENT})


def create(desk: Desk) -> Change:
    bind(desk)
    return lambda key: desk.write(v0.create, principal(), SCOPE, CRON, key, content=desk.content, now=desk.now)


def update(desk: Desk) -> Change:
    schedule_id = create(desk)(new_key()).document["schedule_id"]
    return lambda key: desk.write(
        v0.update,
        principal(),
        SCOPE,
        {**CRON, "policy": {"misfire": "defer_once"}},
        key,
        schedule_id=schedule_id,
        content=desk.content,
        now=desk.now,
    )


def save(desk: Desk) -> Change:
    profiler = profiler_of(desk)
    return lambda key: profiler.save(key=key)


def start(desk: Desk) -> Change:
    profiler = profiler_of(desk)
    profiler.save()
    return lambda key: profiler.trigger(key=key)


KINDS = {
    "publish": Kind(publish, (operations, "read_publication")),
    "enable": Kind(enable, (operations, "read_request")),
    "pause": Kind(pause, (operations, "read_request")),
    "retire": Kind(retire, (operations, "read_request")),
    "trigger": Kind(trigger, (operations, "read_request")),
    "cancel a run": Kind(cancel, (cancellation, "read_request")),
    "stop": Kind(operate("stop", lambda _: {"because": "A drill."}), (operator_acts, "read_request")),
    "lift": Kind(operate("lift", lambda _: {}), (operator_acts, "read_request")),
    "advance the epoch": Kind(
        operate("advance_epoch", lambda caller: {"because": "A drill.", **caller.reviewed()}),
        (operator_acts, "read_request"),
    ),
    "approve": Kind(operate("approve", approval), (operator_acts, "read_request")),
    "declare": Kind(declare, (declaring, "read_declarations")),
    "v0: create": Kind(create, (v0, "parse_v0")),
    "v0: update": Kind(update, (v0, "parse_v0")),
    "a profile: save": Kind(save, (profiles, "parse_profile")),
    "a profile: start": Kind(start, (profile_starts, "parse_event")),
}


def is_refused(act: Callable[[], Any]) -> bool:
    with pytest.raises(InvalidSchedule) as refused:
        act()
    return [fault.code for fault in refused.value.faults] == ["unknown_timezone"]


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_what_was_done_is_answered_though_its_document_is_refused_today(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, kind: Kind
) -> None:
    change = kind.ready(desk)
    key = new_key()
    done = change(key)
    monkeypatch.setattr(*kind.parser, refusing)
    desk.now = at(7_200)
    assert change(key) == Receipt(document={**done.document, "replayed": True}, replayed=True)
    assert is_refused(lambda: change(new_key()))


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_what_was_never_done_is_refused_and_binds_no_key(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, kind: Kind
) -> None:
    change, key = kind.ready(desk), new_key()
    with monkeypatch.context() as patch:
        patch.setattr(*kind.parser, refusing)
        assert is_refused(lambda: change(key))
    assert not change(key).replayed


def test_an_approval_is_told_again_after_it_has_ended(desk: Desk) -> None:
    """A passed end is a fault of a new approval, and none of one that was given."""
    change = operate("approve", approval)(desk)
    key = new_key()
    done = change(key)
    desk.now = at(3_601)
    assert change(key).document["receipt_id"] == done.document["receipt_id"]
    with pytest.raises(InvalidSchedule) as refused:
        change(new_key())
    assert [fault.pointer for fault in refused.value.faults] == ["/expires_at"]


def test_a_file_that_is_refused_creates_no_environment(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    change, key = declare(desk), new_key()
    monkeypatch.setattr(declaring, "read_declarations", refusing)
    assert is_refused(lambda: change(key))
    scope = Scope(org_id="acme", environment_id=f"declared{desk.key.schedule_id[-6:]}")
    with pytest.raises(NotFound, match="environment"):
        desk.read(find_receipt, scope, OPERATOR, key)


def test_an_attempt_keeps_what_came_of_it_and_holds_back_nothing_that_no_receipt_can_be_of() -> None:
    assert attempt(str, 5) == Attempt(5, "5")
    assert attempt(refusing, 5).is_refused
    assert is_refused(attempt(refusing, 5).value)
    assert is_refused(lambda: attempt(refusing, {"weight": float("nan")}))
