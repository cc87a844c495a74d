"""Questions about contents are asked outside of transactions, and a disk that hangs stops nobody."""

import asyncio
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from horarium.authority import local
from horarium.authority.asking import MOST_QUESTIONS, NOTHING_ASKED, Answers, Content, NotAsked, asked_outside
from horarium.authority.facts import Question
from horarium.authority.local import ASK_WITHIN, LocalAuthority
from horarium.catalog.schedules import require_schedule
from horarium.control import activation
from horarium.control.activation import Changed, Reviewed
from horarium.control.admission import pending
from horarium.errors import Conflict, NotAdmissible, Unavailable
from horarium.schedule.configuration import RunRequest, UsageClass
from horarium.schedule.identity import Scope
from tests.control.desk import SCOPE, Desk, at, every, seconds

REQUEST = RunRequest(
    agent_version="worked@1",
    input="in",
    output_target="out",
    grants=(),
    budget_id=None,
    usage_class=UsageClass.TEST_SIMULATION,
)
QUESTION = Question(scope=SCOPE, request=REQUEST, person="ada", digest="sha256:0")


async def ask(disk: "Disk", question: Question, *, within: timedelta = ASK_WITHIN) -> Answers:
    return await LocalAuthority(disk, within).ask(question)


class Disk:
    """Answers when it is let, counts who waits, and remembers what it was asked."""

    def __init__(self) -> None:
        self.free = threading.Event()
        self.free.set()
        self.asked: list[str] = []
        self.scopes: list[Scope] = []
        self.fails: OSError | None = None

    def of(self, scope: Scope) -> "Disk":
        self.scopes.append(scope)
        return self

    def has_input(self, reference: str) -> bool:
        self.asked.append(reference)
        self.free.wait()
        if self.fails:
            raise self.fails
        return True

    def has_output_target(self, target: str) -> bool:
        self.asked.append(target)
        return True

    def read_input(self, reference: str) -> bytes:
        raise AssertionError(reference)


def unanswered(within: float = ASK_WITHIN.total_seconds()) -> Answers:
    sentence = f"The folder of inputs and outputs did not answer within {within:g} s."
    return Answers(question=QUESTION, unanswered=sentence)


@pytest.fixture
def disk() -> Iterator[Disk]:
    disk = Disk()
    yield disk
    disk.free.set()


def test_a_disk_is_asked_about_one_request(disk: Disk) -> None:
    answers = asyncio.run(ask(disk, QUESTION))
    assert answers == Answers(question=QUESTION, readable=True, writable=True)
    assert disk.asked == ["in", "out"]
    assert answers.has_input("in")
    assert answers.has_output_target("out")


def test_a_disk_that_hangs_gives_no_answer_and_is_not_waited_for(disk: Disk) -> None:
    disk.free.clear()
    began = time.monotonic()
    answers = asyncio.run(ask(disk, QUESTION, within=seconds(0.1)))
    assert time.monotonic() - began < 5
    for question in (answers.has_input, answers.has_output_target):
        with pytest.raises(Unavailable, match="did not answer") as raised:
            question("in")
        assert raised.value.code == "content_unavailable"


def test_a_disk_that_fails_gives_no_answer_either(disk: Disk) -> None:
    disk.fails = OSError("Stale file handle")
    assert asyncio.run(ask(disk, QUESTION)) == unanswered()


def test_a_disk_that_hangs_for_long_takes_so_many_threads_and_no_more(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "_places", threading.BoundedSemaphore(2))
    disk.free.clear()

    async def five() -> list[Answers]:
        return list(await asyncio.gather(*(ask(disk, QUESTION, within=seconds(0.2)) for _ in range(5))))

    assert asyncio.run(five()) == [unanswered(0.2)] * 5
    assert len(disk.asked) == 2
    disk.free.set()
    for _ in range(100):
        if asyncio.run(ask(disk, QUESTION)).readable:
            break
        time.sleep(0.01)
    else:
        pytest.fail("its threads are not given back")


def enable(desk: Desk, disk: Disk) -> Changed:
    """As the API and the command line do."""

    async def act(content: Content) -> Changed:
        return await desk.catalog.write(activation.enable, desk.key, Reviewed(), content, by="ada", now=desk.now)

    return asyncio.run(asked_outside(LocalAuthority(disk), act))


def test_enabling_asks_outside_of_its_transaction(desk: Desk, disk: Disk) -> None:
    desk.publish(every(60))
    disk.free.clear()
    thread = threading.Thread(target=enable, args=(desk, disk))
    thread.start()
    while not disk.asked:
        time.sleep(0.001)
    # Somebody else writes meanwhile.
    Desk(desk.catalog).publish(every(60))
    disk.free.set()
    thread.join()
    assert desk.activation().generation == 1
    assert disk.scopes == [SCOPE]


def test_enabling_without_an_answer_is_unavailable_and_changes_nothing(desk: Desk, disk: Disk) -> None:
    desk.publish(every(60))
    disk.fails = OSError("Stale file handle")
    with pytest.raises(Unavailable) as raised:
        enable(desk, disk)
    assert raised.value.code == "content_unavailable"
    disk.fails = None
    assert enable(desk, disk).activation.generation == 1


def test_a_version_that_was_published_in_between_is_asked_about_itself(desk: Desk, disk: Disk) -> None:
    desk.publish(every(60))
    with pytest.raises(NotAsked) as unknown:
        desk.write(activation.enable, desk.key, Reviewed(), NOTHING_ASKED, by="ada", now=desk.now)
    answers = Answers(question=unknown.value.question, readable=True, writable=True)
    other = every(60)
    other["run"]["input"] = "another"
    desk.publish(other)
    with pytest.raises(NotAsked) as again:
        desk.write(activation.enable, desk.key, Reviewed(), answers, by="ada", now=desk.now)
    assert again.value.question.request.input == "another"


def test_what_is_not_there_is_an_objection_as_ever(desk: Desk) -> None:
    desk.publish(every(60))

    async def act(content: Content) -> Any:
        return await desk.catalog.write(activation.enable, desk.key, Reviewed(), content, by="ada", now=desk.now)

    desk.content.readable = desk.content.writable = False
    with pytest.raises(NotAdmissible) as refused:
        asyncio.run(asked_outside(LocalAuthority(desk.content), act))
    assert [each["code"] for each in refused.value.objections] == ["input_unreadable", "output_missing"]


class Restless:
    """An authority during whose answers somebody publishes another version, so many times."""

    def __init__(self, desk: Desk, times: int) -> None:
        self.desk = desk
        self.times = times
        self.asked: list[Question] = []
        self._local = LocalAuthority(desk.content)

    async def ask(self, question: Question, *, run_id: str | None = None) -> Answers:
        self.asked.append(question)
        if len(self.asked) <= self.times:
            self.desk.publish(every(60 + len(self.asked)))
        return await self._local.ask(question, run_id=run_id)


def enabled_by(authority: Any, desk: Desk) -> Changed:
    async def act(content: Content) -> Any:
        return await desk.catalog.write(activation.enable, desk.key, Reviewed(), content, by="ada", now=desk.now)

    changed: Changed = asyncio.run(asked_outside(authority, act))
    return changed


@pytest.mark.parametrize("times", [0, 1, 2, MOST_QUESTIONS - 1])
def test_it_is_asked_again_while_others_change_what_the_question_is_about(desk: Desk, times: int) -> None:
    desk.publish(every(60))
    authority = Restless(desk, times)
    assert enabled_by(authority, desk).version.revision == times + 1
    assert len({each.digest for each in authority.asked}) == times + 1


def test_whoever_is_overtaken_each_time_hears_that_it_was_changed_and_nothing_is_done(desk: Desk) -> None:
    desk.publish(every(60))
    authority = Restless(desk, MOST_QUESTIONS)
    with pytest.raises(Conflict) as refused:
        enabled_by(authority, desk)
    assert refused.value.code == "changed_meanwhile"
    assert (len(authority.asked), desk.read(require_schedule, desk.key).generation) == (MOST_QUESTIONS, 0)


@pytest.mark.parametrize(("late", "outcome"), [(10, "unavailable"), (301, "refused")])
def test_a_run_without_an_answer_waits_inside_its_window_and_is_refused_beyond(
    desk: Desk, late: float, outcome: str
) -> None:
    loop = desk.enabled(every(60, window=300))
    loop.step_at(57)
    desk.now = at(60 + late)
    desk.content = Answers(question=desk.read(pending, loop.run(60)).question)  # type: ignore[assignment] # it keeps the same contract
    if outcome == "refused":
        admission = desk.admit(loop.run(60))
        assert (admission.outcome, admission.reason) == ("refused", "authority_unavailable")
        return
    with pytest.raises(Unavailable) as raised:
        desk.admit(loop.run(60))
    assert raised.value.code == "content_unavailable"
    assert desk.told() == [("staged", 60, 60, 1)]
