"""What a caller can ask for by documents, and what it is refused: the sentences of the canonical contract."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from horarium.catalog import presence
from horarium.catalog.schedules import find_version, require_schedule
from horarium.control import operations
from horarium.control.attempts import attempt
from horarium.control.operations import activation_to_nudge, run_to_start
from horarium.control.principals import PrincipalKind
from horarium.control.receipts import Receipt
from horarium.control.requests import read_publication
from horarium.errors import Conflict, Forbidden, InvalidSchedule, NotAdmissible, NotFound, Refused, Unavailable
from horarium.schedule.identity import ActivationKey
from horarium.schedule.ledger import Disposition
from tests.control.caller import Caller, change_environment, events, new_key, own_environment, principal
from tests.control.desk import AGENT, NOON, Desk, Loop, at, configuration, every

OTHER = "7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11"
NO_DIGEST = f"sha256:{'0' * 64}"


@pytest.fixture
def caller(desk: Desk) -> Caller:
    return Caller(desk)


def generation(desk: Desk) -> int:
    return desk.read(lambda c: require_schedule(c, desk.key)).generation


def code_of(act: Callable[[], Any], kind: type[Refused] = Conflict) -> str:
    with pytest.raises(kind) as caught:
        act()
    assert caught.value.sentence
    return caught.value.code


def faults_of(act: Callable[[], Any]) -> list[tuple[str, str]]:
    with pytest.raises(InvalidSchedule) as caught:
        act()
    assert all(fault.sentence for fault in caught.value.faults)
    return [(fault.pointer, fault.code) for fault in caught.value.faults]


class TestPublication:
    def test_it_creates_an_immutable_version_and_enables_nothing(self, caller: Caller) -> None:
        receipt = caller.publish(every(60))
        assert generation(caller.desk) == 0
        caller.publish(every(90), expected=1)
        first = caller.desk.read(lambda c: find_version(c, require_schedule(c, caller.desk.key), 1))
        assert dict(first.document) == every(60)
        assert receipt.document["resource_id"] == first.resource_id

    def test_a_key_and_a_person_may_publish(self, caller: Caller) -> None:
        caller.principal = principal("ci", PrincipalKind.KEY)
        assert caller.publish(every(60)).document["reference"]["revision"] == 1
        caller.principal = principal("ada")
        assert caller.publish(every(90), expected=1).document["reference"]["revision"] == 2

    def test_its_author_stands_in_the_version_and_in_the_event(self, caller: Caller) -> None:
        caller.principal = principal("ci", PrincipalKind.KEY)
        caller.publish(every(60))
        assert caller.desk.read(lambda c: find_version(c, require_schedule(c, caller.desk.key), 1)).published_by == "ci"
        assert events(caller.desk)[0]["actor"] == "ci"

    def test_a_replacement_does_not_replace_an_enabled_version(self, caller: Caller) -> None:
        caller.enabled(every(60))
        caller.publish(every(90), expected=1)
        activation = caller.desk.activation()
        assert (activation.generation, activation.revision, activation.is_live) == (1, 1, True)

    @pytest.mark.parametrize("expected", [0, 2])
    def test_another_head_than_the_reviewed_one_is_a_conflict(self, caller: Caller, expected: int) -> None:
        caller.publish(every(60))
        assert code_of(lambda: caller.publish(every(90), expected=expected)) == "revision_conflict"

    def test_it_cannot_revive_a_retired_schedule(self, caller: Caller) -> None:
        reference = caller.publish(every(60)).document["reference"]
        caller.retire(caller.about(reference, 0))
        assert code_of(lambda: caller.publish(every(60), expected=1)) == "schedule_retired"

    def test_what_can_never_be_due_is_stored_with_a_warning(self, caller: Caller) -> None:
        over = configuration([{"every_seconds": 60, "offset_seconds": 0}], "skip", end_at=at(-60))
        assert "its last one has passed" in caller.publish(over).document["warnings"][0]

    def test_a_capital_uuid_names_the_same_schedule(self, caller: Caller) -> None:
        caller.publish(every(60))
        capital = caller.publication(every(90), expected=1, schedule_id=caller.desk.key.schedule_id.upper())
        assert caller.send_publication(capital).document["reference"]["revision"] == 2

    def test_all_faults_are_told_at_once_those_of_the_configuration_below_it(self, caller: Caller) -> None:
        bad = copy.deepcopy(every(60))
        bad["policy"]["overlap"] = "perhaps"
        bad["calendar"]["intervals"] = None
        request = caller.publication(bad, expected=0, schedule_id="x", expected_revision="0", note="hello")
        del request["expected_reset_generation"]
        assert faults_of(lambda: caller.send_publication(request)) == [
            ("/expected_reset_generation", "missing_field"),
            ("/schedule_id", "not_a_uuid"),
            ("/expected_revision", "not_an_integer"),
            ("/note", "unknown_field"),
            ("/configuration/calendar/intervals", "null_array"),
            ("/configuration/policy/overlap", "unknown_value"),
        ]

    def test_a_request_may_be_read_before_the_transaction(self, caller: Caller) -> None:
        request = caller.publication(every(60))
        key = new_key()
        assert not caller.send_publication(attempt(read_publication, request), key).replayed
        assert caller.send_publication(request, key).replayed


BAD: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {
    "text for a number": ({"expected_generation": "0"}, [("/expected_generation", "not_an_integer")]),
    "a fraction for a number": ({"expected_generation": 0.0}, [("/expected_generation", "not_an_integer")]),
    "a boolean for a number": (
        {"expected_environment_epoch": True},
        [("/expected_environment_epoch", "not_an_integer")],
    ),
    "null for a number": ({"expected_generation": None}, [("/expected_generation", "not_an_integer")]),
    "a negative number": ({"expected_generation": -1}, [("/expected_generation", "out_of_range")]),
    "a number that no column holds": ({"expected_generation": 10**30}, [("/expected_generation", "out_of_range")]),
    "a text for a boolean": ({"enabled": "true"}, [("/enabled", "not_a_boolean")]),
    "a number for a boolean": ({"enabled": 1}, [("/enabled", "not_a_boolean")]),
    "null for a boolean": ({"enabled": None}, [("/enabled", "not_a_boolean")]),
    "a version that is no object": ({"version": "1"}, [("/version", "not_an_object")]),
    "an empty version": (
        {"version": {}},
        [
            ("/version/schedule_id", "missing_field"),
            ("/version/revision", "missing_field"),
            ("/version/digest", "missing_field"),
        ],
    ),
    "a version with a field too many": (
        {"version": {"schedule_id": OTHER, "revision": 0, "digest": "sha256:0", "head": True}},
        [
            ("/version/revision", "out_of_range"),
            ("/version/digest", "not_a_digest"),
            ("/version/head", "unknown_field"),
        ],
    ),
    "a version in other types": (
        {"version": {"schedule_id": 7, "revision": "1", "digest": None}},
        [
            ("/version/schedule_id", "not_text"),
            ("/version/revision", "not_an_integer"),
            ("/version/digest", "not_text"),
        ],
    ),
    "a field too many": ({"force": True}, [("/force", "unknown_field")]),
}


@pytest.mark.parametrize(("changed", "faults"), BAD.values(), ids=BAD)
def test_a_request_is_read_strictly(caller: Caller, changed: dict[str, Any], faults: list[tuple[str, str]]) -> None:
    reference = caller.publish(every(60)).document["reference"]
    request = {**caller.about(reference, 0, enabled=True), **changed}
    assert faults_of(lambda: caller.set(request)) == faults
    assert generation(caller.desk) == 0


@pytest.mark.parametrize("document", [None, [], "{}", 7, True])
def test_a_request_is_an_object(caller: Caller, document: Any) -> None:
    for send in (caller.send_publication, caller.set, caller.retire, caller.trigger):
        assert faults_of(lambda send=send: send(document)) == [("", "not_an_object")]


def test_the_enabled_boolean_is_explicit_and_belongs_to_activation_alone(caller: Caller) -> None:
    reference = caller.publish(every(60)).document["reference"]
    assert faults_of(lambda: caller.set(caller.about(reference, 0))) == [("/enabled", "missing_field")]
    retiring = caller.about(reference, 0, enabled=False)
    assert faults_of(lambda: caller.retire(retiring)) == [("/enabled", "unknown_field")]


class TestActivation:
    def test_only_a_person_enables_pauses_retires_and_triggers(self, caller: Caller) -> None:
        reference = caller.enabled(every(60))
        caller.principal = principal("ci", PrincipalKind.KEY)
        asks = [
            lambda: caller.set(caller.about(reference, 1, enabled=True)),
            lambda: caller.set(caller.about(reference, 1, enabled=False)),
            lambda: caller.retire(caller.about(reference, 1)),
            lambda: caller.trigger(caller.about(reference, 1)),
        ]
        for ask in asks:
            assert code_of(ask, Forbidden) == "human_session_required"
        assert generation(caller.desk) == 1

    def test_the_answer_says_which_version_at_which_generation_and_what_it_ended(self, caller: Caller) -> None:
        reference = caller.publish(every(60)).document["reference"]
        first = caller.set(caller.about(reference, 0, enabled=True))
        second = caller.set(caller.about(reference, 1, enabled=False))
        told = ("operation", "reference", "generation", "enabled", "ended_generation")
        assert [first.document[name] for name in told] == ["enable", reference, 1, True, None]
        assert [second.document[name] for name in told] == ["pause", reference, 2, False, 1]
        assert activation_to_nudge(caller.desk.key.scope, first) is None
        assert activation_to_nudge(caller.desk.key.scope, second) == ActivationKey(
            schedule=caller.desk.key, generation=1
        )
        assert run_to_start(caller.desk.key.scope, second) is None

    @pytest.mark.parametrize(
        ("changed", "expected", "code"),
        [
            ({"revision": 2}, 1, "version_not_found"),
            ({"digest": NO_DIGEST}, 1, "digest_conflict"),
            ({}, 0, "generation_conflict"),
            ({}, 2, "generation_conflict"),
        ],
    )
    def test_whoever_reviewed_something_else_changes_nothing(
        self, caller: Caller, changed: dict[str, Any], expected: int, code: str
    ) -> None:
        reference = caller.enabled(every(60))
        request = caller.about({**reference, **changed}, expected)
        for ask in (
            lambda: caller.set({**request, "enabled": True}),
            lambda: caller.set({**request, "enabled": False}),
            lambda: caller.retire(request),
            lambda: caller.trigger(request),
        ):
            assert code_of(ask, Refused) == code
        assert generation(caller.desk) == 1

    def test_pausing_and_retiring_name_the_version_that_is_enabled_not_the_head(self, caller: Caller) -> None:
        enabled = caller.enabled(every(60))
        head = caller.publish(every(90), expected=1).document["reference"]
        for ask in (
            lambda: caller.set(caller.about(head, 1, enabled=False)),
            lambda: caller.retire(caller.about(head, 1)),
            lambda: caller.trigger(caller.about(head, 1)),
        ):
            assert code_of(ask) == "version_conflict"
        assert not caller.set(caller.about(enabled, 1, enabled=False)).replayed

    def test_without_an_activation_retiring_names_the_head(self, caller: Caller) -> None:
        old = caller.publish(every(60)).document["reference"]
        head = caller.publish(every(90), expected=1).document["reference"]
        assert code_of(lambda: caller.retire(caller.about(old, 0))) == "version_conflict"
        assert caller.retire(caller.about(head, 0)).document["generation"] == 1

    def test_pausing_what_is_paused_or_was_never_enabled_is_a_conflict(self, caller: Caller) -> None:
        reference = caller.publish(every(60)).document["reference"]
        assert code_of(lambda: caller.set(caller.about(reference, 0, enabled=False))) == "already_paused"
        caller.set(caller.about(reference, 0, enabled=True))
        caller.set(caller.about(reference, 1, enabled=False))
        assert code_of(lambda: caller.set(caller.about(reference, 2, enabled=False))) == "already_paused"

    def test_enabling_what_is_enabled_makes_a_new_generation(self, caller: Caller) -> None:
        reference = caller.enabled(every(60))
        assert caller.set(caller.about(reference, 1, enabled=True)).document["generation"] == 2

    def test_retirement_is_final_and_keeps_versions_and_receipts(self, caller: Caller) -> None:
        reference = caller.publish(every(60)).document["reference"]
        request, key = caller.about(reference, 0, enabled=True), new_key()
        caller.set(request, key)
        caller.retire(caller.about(reference, 1))
        for ask in (
            lambda: caller.set(caller.about(reference, 2, enabled=True)),
            lambda: caller.set(caller.about(reference, 2, enabled=False)),
            lambda: caller.retire(caller.about(reference, 2)),
            lambda: caller.trigger(caller.about(reference, 2)),
        ):
            assert code_of(ask) == "schedule_retired"
        assert caller.set(request, key).replayed
        assert caller.desk.read(lambda c: find_version(c, require_schedule(c, caller.desk.key), 1)) is not None

    def test_a_version_of_another_schedule_than_asked_for_is_a_fault(self, caller: Caller) -> None:
        reference = caller.publish(every(60)).document["reference"]
        request = caller.about(reference, 0, enabled=True)
        asked = (caller.principal, caller.desk.key.scope, request, new_key())
        named = {"content": caller.desk.content, "now": NOON}
        assert faults_of(lambda: caller.desk.write(operations.set_activation, *asked, **named, schedule_id=OTHER)) == [
            ("/version/schedule_id", "other_schedule")
        ]
        here = caller.desk.key.schedule_id.upper()
        assert caller.desk.write(operations.set_activation, *asked, **named, schedule_id=here).document["enabled"]

    def test_a_schedule_that_is_not_there_is_not_found(self, caller: Caller) -> None:
        request = caller.about({"schedule_id": OTHER, "revision": 1, "digest": NO_DIGEST}, 0)
        for ask in (
            lambda: caller.set({**request, "enabled": True}),
            lambda: caller.retire(request),
            lambda: caller.trigger(request),
        ):
            assert code_of(ask, NotFound) == "schedule_not_found"


class TestEnabling:
    @pytest.fixture
    def caller(self, desk: Desk) -> Caller:
        own_environment(desk)
        return Caller(desk)

    def enable(self, caller: Caller) -> Callable[[], Receipt]:
        reference = caller.publish(every(60)).document["reference"]
        return lambda: caller.set(caller.about(reference, 0, enabled=True))

    def test_it_is_refused_while_a_runtime_worker_is_missing(self, caller: Caller) -> None:
        enable = self.enable(caller)
        caller.desk.write(presence.leave, instance="runs")
        try:
            assert code_of(enable, Unavailable) == "execution_unavailable"
            assert generation(caller.desk) == 0
        finally:
            caller.desk.write(presence.beat, instance="runs", role="runs", tzdata="t", now=NOON)
        assert enable().document["enabled"]

    def test_it_is_refused_without_a_runtime_profile(self, caller: Caller) -> None:
        enable = self.enable(caller)
        change_environment(caller.desk, runtime_profile=None)
        assert code_of(enable, Refused) == "runtime_unconfigured"

    def test_the_refusal_lists_every_reason_with_what_was_looked_at(self, caller: Caller) -> None:
        enable = self.enable(caller)
        caller.desk.content.readable = caller.desk.content.writable = False
        discovery = {"is_schedulable": False, "task_queue": "q", "max_run_seconds": 60, "idempotent": False}
        scope = caller.desk.key.scope
        caller.desk.write(presence.register_agent, scope, AGENT, discovery, lease_until=at(-42), now=NOON)
        with pytest.raises(NotAdmissible) as caught:
            enable()
        assert caught.value.code == "agent_not_schedulable"
        assert [each["code"] for each in caught.value.objections] == [
            "agent_not_schedulable",
            "agent_offline",
            "input_unreadable",
            "output_missing",
        ]
        offline = caught.value.objections[1]
        assert offline["evidence"]["offline_seconds"] == 42.0
        for each in caught.value.objections:
            assert each["sentence"] in caught.value.sentence
        assert generation(caller.desk) == 0


def test_switching_to_another_version_hands_over(desk: Desk) -> None:
    """The old activation ends, what it kept waiting is dropped with a reason, and its run still counts for overlap."""
    caller = Caller(desk)
    first = caller.enabled(every(60, overlap="buffer_all"))
    loop = Loop(desk, ActivationKey(schedule=desk.key, generation=1))
    loop.step_at(57)
    desk.now = at(60)
    desk.admit(loop.run(60))
    desk.begin(loop.run(60))
    loop.step_at(181)
    assert desk.told() == [("started", 60, 60, 1), ("buffered", 120, 120, 1), ("buffered", 180, 180, 1)]
    second = caller.publish(every(60, overlap="skip"), expected=1).document["reference"]
    desk.now = at(200)
    receipt = caller.set(caller.about(second, 1, enabled=True))
    assert receipt.document["ended_generation"] == 1
    assert (desk.activation(1).ended_as, desk.activation(1).ended_at) == ("superseded", at(200))
    dropped = [entry for entry in desk.entries() if entry.disposition is Disposition.DROPPED]
    assert [(entry.first_at, str(entry.reason)) for entry in dropped] == [
        (at(120), "superseded"),
        (at(180), "superseded"),
    ]
    again = Loop(desk, ActivationKey(schedule=desk.key, generation=2))
    again.step_at(240.5)
    again.step_at(301)
    desk.now = at(310)
    desk.settle(loop.run(60))
    assert [told for told in desk.told(2) if told[0] == "skipped"] == [("skipped", 240, 300, 2)]
    assert again.step_at(357).starts == (at(360),)
    desk.check_ledger()
    superseded = next(event for event in events(desk) if event["kind"] == "superseded")
    assert superseded["details"]["from"] == {"reference": first, "generation": 1, "state": "enabled"}
