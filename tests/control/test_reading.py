"""A started run reads its input: the authority is asked at each read, in the name of the person on whose word it runs."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from horarium.authority.asking import Answers
from horarium.authority.facts import Facts, InputFacts, Question
from horarium.authority.local import LocalAuthority
from horarium.catalog import Catalog, presence
from horarium.catalog.audit_events import list_events
from horarium.catalog.schedules import require_schedule
from horarium.control import reading
from horarium.errors import Forbidden, NotFound, Refused, Unavailable
from horarium.schedule.identity import Scope, schedule_key
from tests.control.desk import AGENT, FAR, NOON, Desk, Loop, Shelf, at, every
from tests.control.operators import Operator

_numbers = iter(range(1, 1_000_000))


class Reader:
    """A run that is with its agent, in a strict environment."""

    def __init__(self, catalog: Catalog, **more: Any) -> None:
        self.desk = Desk(catalog)
        scope = Scope(org_id=f"reader{next(_numbers)}", environment_id="strict")
        self.desk.key = schedule_key(scope, self.desk.key.schedule_id)
        self.operator = Operator(catalog, scope)
        self.operator.open(mode="simulation")
        self.operator.declare_usual()
        discovery = {"is_schedulable": True, "task_queue": "agents", "max_run_seconds": 60, "idempotent": False, **more}
        self.desk.write(presence.register_agent, scope, AGENT, discovery, lease_until=FAR, now=NOON)
        self.loop: Loop = self.desk.enabled(every(60))
        self.loop.step_at(57)
        self.desk.now = at(60)
        assert self.desk.admit(self.loop.run(60)).outcome == "admitted"
        self.token = self.desk.begin(self.loop.run(60)).token
        self.authority: Any = LocalAuthority(self.desk.content)

    async def reads(self, *, scope: Scope | None = None) -> bytes:
        run_id = self.loop.run(60).run_id
        return await reading.read_input(
            self.desk.catalog, self.authority, run_id, self.token, scope=scope, now=self.desk.now
        )

    def read(self, **how: Any) -> bytes:
        return asyncio.run(self.reads(**how))

    def events(self) -> list[dict[str, Any]]:
        listed = self.desk.read(lambda c: list_events(c, require_schedule(c, self.desk.key), after=0, limit=100))
        return [event for event in listed if event["kind"] == "input_refused"]


@pytest.fixture
def reader(catalog: Catalog) -> Reader:
    return Reader(catalog)


def test_a_run_reads_as_long_as_its_person_may(reader: Reader) -> None:
    assert reader.read() == b"the input in"
    assert reader.read(scope=reader.desk.key.scope) == b"the input in"
    with pytest.raises(NotFound, match="that this token opens"):
        reader.read(scope=Scope(org_id=reader.desk.key.org_id, environment_id="another"))


def test_a_refused_read_is_an_event_that_says_who_may_not_and_why(reader: Reader) -> None:
    reader.operator.declare("person", "ada", left=True)
    reader.desk.now = at(75)
    with pytest.raises(Forbidden) as refused:
        reader.read()
    assert refused.value.code == "principal_left"
    [event] = reader.events()
    assert (event["at"], event["actor"], event["generation"], event["revision"]) == (at(75), "system:input", 1, 1)
    assert event["details"] == {
        "run_id": reader.loop.run(60).run_id,
        "code": "principal_left",
        "because": f"'ada', on whose word this runs, is no member of organization {reader.desk.key.org_id!r}.",
        "person": "ada",
    }
    assert reader.token not in repr(event)


def test_many_reads_at_once_are_refused_and_written_down_once(reader: Reader) -> None:
    reader.operator.declare("input", "in", readers=["bob"])

    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*(reader.reads() for _ in range(12)), return_exceptions=True)

    told = asyncio.run(all_of_them())
    assert {getattr(each, "code", each) for each in told} == {"input_unreadable"}
    assert len(reader.events()) == 1


def test_what_began_before_a_second_attempt_is_still_one_run(catalog: Catalog) -> None:
    """Of an agent that may repeat itself: the newer token reads, the older one does not."""
    reader = Reader(catalog, idempotent=True)
    older, reader.token = reader.token, reader.desk.begin(reader.loop.run(60), again=True).token
    assert reader.read() == b"the input in"
    reader.token = older
    with pytest.raises(NotFound):
        reader.read()


def test_nothing_but_person_and_input_matters_once_a_run_has_begun(reader: Reader) -> None:
    """A stop lets nothing start; what runs goes on, and needs what it reads."""
    reader.operator.stop(everywhere=True)
    reader.operator.change(authority_epoch=9, reset_generation=9, mode="live", runtime_profile=None)
    reader.operator.withdraw("agent", AGENT)
    reader.operator.withdraw("output", "out")
    reader.desk.content.writable = False
    assert reader.read() == b"the input in"


@pytest.mark.parametrize("error", [OSError("stale file handle"), TimeoutError()])
def test_contents_that_do_not_answer_refuse_nothing(
    reader: Reader, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_self: Shelf, _reference: str) -> bool:
        raise error

    monkeypatch.setattr(Shelf, "has_input", fails)
    with pytest.raises(Unavailable) as refused:
        reader.read()
    assert refused.value.code == "content_unavailable"
    assert reader.events() == []


class Platform:
    """A platform's own authority, which answers what the test says and is asked by name."""

    def __init__(self, answer: Callable[[Question], Answers]) -> None:
        self.answer = answer
        self.asked: list[str | None] = []

    async def ask(self, question: Question, *, run_id: str | None = None) -> Answers:
        assert run_id is None, "a read reserves nothing"
        self.asked.append(question.person)
        return self.answer(question)

    async def read_input(self, _scope: Scope, reference: str, *, person: str | None) -> bytes:
        return f"{reference} for {person}".encode()


def test_a_platform_s_authority_is_asked_with_the_identity_of_the_person(reader: Reader) -> None:
    facts = Facts(member=True, input=InputFacts(readable=True))
    reader.authority = Platform(lambda question: Answers(question=question, facts=facts))
    assert reader.read() == b"in for ada"
    left = facts.model_copy(update={"member": False})
    reader.authority.answer = lambda question: Answers(question=question, facts=left)
    with pytest.raises(Forbidden) as refused:
        reader.read()
    assert refused.value.code == "principal_left"
    assert reader.authority.asked == ["ada", "ada"]


def test_a_platform_s_authority_that_is_silent_is_no_refusal(reader: Reader) -> None:
    def silent(question: Question) -> Answers:
        return Answers(question=question, unanswered="It timed out.", unanswered_code="authority_unavailable")

    reader.authority = Platform(silent)
    with pytest.raises(Unavailable) as refused:
        reader.read()
    assert refused.value.code == "authority_unavailable"
    assert reader.events() == []


def test_an_input_that_is_too_large_is_not_a_matter_of_rights(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    def large(_self: Shelf, _reference: str) -> bytes:
        raise Refused("input_too_large", "The input 'in' is larger than 4194304 bytes.")

    monkeypatch.setattr(Shelf, "read_input", large)
    with pytest.raises(Refused) as refused:
        reader.read()
    assert refused.value.code == "input_too_large"
    assert reader.events() == []
