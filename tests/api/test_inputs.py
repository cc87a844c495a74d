"""A run reads its input over HTTP, with its own token, and as long as the person on whose word it runs may read it."""

import uuid
from collections.abc import Iterator

import pytest
import structlog

from horarium.api.limits import Limits, Rate
from horarium.catalog import ledger_changes, presence
from horarium.catalog.audit_events import list_events
from horarium.catalog.schedules import require_schedule
from horarium.errors import NotFound, Refused
from horarium.schedule.identity import ActivationKey, RunKey, Scope, schedule_key
from tests.api.house import HUMAN, UNLIMITED, Api
from tests.control.desk import AGENT, FAR, NOON, Desk, Loop, Shelf, at, every
from tests.control.operators import Operator, paid


class Reader:
    """A run that is with its agent, in a strict environment of its own, and the API by the clock of its desk."""

    def __init__(self, catalog) -> None:
        self.desk = Desk(catalog)
        scope = Scope(org_id=f"org{self.desk.key.schedule_id[-6:]}", environment_id="strict")
        self.desk.key = schedule_key(scope, self.desk.key.schedule_id)
        self.operator = Operator(catalog, scope)
        self.operator.open()
        self.operator.declare_usual()
        discovery = {"is_schedulable": True, "task_queue": "agents", "max_run_seconds": 60, "idempotent": False}
        self.desk.write(presence.register_agent, scope, AGENT, discovery, lease_until=FAR, now=NOON)
        self.loop: Loop = self.desk.enabled(paid(every(60)))
        self.api = self.served()
        self.token = self.started(60)

    def served(self, **more) -> Api:
        """An API that asks the desk's contents, by the desk's clock."""
        api = Api(self.desk.catalog, now=lambda: self.desk.now, **more)
        self.desk.content = api.content
        return api

    def started(self, offset: int) -> str:
        self.loop.step_at(offset - 3)
        self.desk.now = at(offset)
        admission = self.desk.admit(self.loop.run(offset))
        assert admission.outcome == "admitted", admission
        return self.desk.begin(self.loop.run(offset)).token

    @property
    def run(self) -> RunKey:
        return self.loop.run(60)

    def path(self, run_id: str | None = None) -> str:
        scope = self.desk.key.scope
        return f"!/v1/organizations/{scope.org_id}/environments/{scope.environment_id}/runs/{run_id or self.run.run_id}/input"

    def read(self, **parts):
        return self.api.get(parts.pop("path", self.path()), by=parts.pop("by", self.token), **parts)

    def noted(self) -> list[tuple[str, str]]:
        """The refused reads that are in the schedule's record."""
        events = self.desk.read(lambda c: list_events(c, require_schedule(c, self.desk.key), after=0, limit=100))
        return [
            (event["details"]["code"], event["details"]["person"])
            for event in events
            if event["kind"] == "input_refused"
        ]


@pytest.fixture
def reader(catalog) -> Iterator[Reader]:
    made = Reader(catalog)
    yield made
    made.api.close()


CHANGES = {
    "access to the input": (lambda it: it.declare("input", "in", readers=["bob"]), "input_unreadable"),
    "the input": (lambda it: it.withdraw("input", "in"), "input_unreadable"),
    "membership": (lambda it: it.declare("person", "ada", left=True), "principal_left"),
    "being a person": (lambda it: it.withdraw("person", "ada"), "principal_left"),
    "time": (lambda it: it.declare("input", "in", readers=["*"], expires_at="2026-11-30T12:01:30Z"), "input_expired"),
    "consent": (
        lambda it: it.declare("input", "in", readers=["*"], consent={"by": "ada", "withdrawn": True}),
        "consent_expired",
    ),
    "time of consent": (
        lambda it: it.declare(
            "input", "in", readers=["*"], consent={"by": "ada", "expires_at": "2026-11-30T12:01:30Z"}
        ),
        "consent_expired",
    ),
}


def test_a_run_reads_its_input_with_its_token(reader):
    answer = reader.read()
    assert (answer.status_code, answer.content) == (200, b"the input in")
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert reader.noted() == []


@pytest.mark.parametrize("lost", CHANGES)
def test_what_is_lost_stops_the_next_read_and_later_occurrences_and_is_written_down_once(reader, lost):
    change, code = CHANGES[lost]
    assert reader.read().status_code == 200
    change(reader.operator)
    reader.desk.now = at(90)
    for _ in range(3):
        answer = reader.read()
        assert (answer.status_code, answer.json()["code"]) == (403, code)
        assert answer.json()["next_step"] == "Stop reading, and report what was done until now."
    assert reader.noted() == [(code, "ada")]

    # The run itself goes on to its end, and the next occurrence is refused for the same.
    reader.desk.settle(reader.run)
    reader.loop.step_at(117)
    reader.desk.now = at(120)
    admission = reader.desk.admit(reader.loop.run(120))
    assert (admission.outcome, admission.reason) == ("refused", code)
    assert reader.desk.told() == [("succeeded", 60, 60, 1), ("refused", 120, 120, 1)]


def test_access_that_is_given_back_opens_the_input_again(reader):
    reader.operator.declare("input", "in", readers=["bob"])
    assert reader.read().status_code == 403
    reader.operator.declare("input", "in", readers=["ada"])
    assert reader.read().status_code == 200
    reader.operator.declare("person", "ada", left=True)
    assert reader.read().json()["code"] == "principal_left"
    assert reader.noted() == [("input_unreadable", "ada"), ("principal_left", "ada")]


def test_a_manual_run_reads_as_the_person_who_asked_for_it(reader):
    reader.desk.settle(reader.run)
    reader.operator.declare("person", "bob")
    reader.operator.declare("input", "in", readers=["ada", "bob"])
    reader.desk.now = at(70)
    key = ActivationKey(schedule=reader.desk.key, generation=1)
    run = RunKey(activation=key, nominal_time=at(70), trigger="manual:1")
    reader.desk.write(
        lambda c: ledger_changes.stage(
            c, require_schedule(c, reader.desk.key, lock=True), run, now=at(70), triggered_by="bob"
        )
    )
    assert reader.desk.admit(run).outcome == "admitted"
    token, path = reader.desk.begin(run).token, reader.path(run.run_id)
    reader.operator.declare("person", "ada", left=True)
    assert reader.read(by=token, path=path).status_code == 200
    reader.operator.declare("input", "in", readers=["ada"])
    assert reader.read(by=token, path=path).json()["code"] == "input_unreadable"
    assert reader.noted() == [("input_unreadable", "bob")]


def test_a_token_that_opens_nothing_is_told_nothing(reader):
    wrong = [reader.read(by=by) for by in ("guess", reader.token[:-1], reader.token + "x", HUMAN, "x" * 5_000)]
    elsewhere = reader.path().replace("/strict/", "/other/")
    wrong += [
        reader.read(path=reader.path(str(uuid.uuid4()))),
        reader.read(path=elsewhere),
        reader.read(path=reader.path().replace(reader.desk.key.org_id, "acme")),
    ]
    reader.desk.settle(reader.run)
    wrong.append(reader.read())  # it died with its run
    assert {(answer.status_code, answer.json()["code"]) for answer in wrong} == {(404, "run_not_found")}
    told = {answer.json()["detail"].replace(reader.run.run_id, "X").split(" ", 5)[-1] for answer in wrong}
    assert len(told) == 1
    assert reader.noted() == []


def test_without_a_token_of_its_own_nothing_is_read(reader):
    assert reader.read(by=None).status_code == 401
    header = {"Authorization": "Basic eDp5"}
    assert reader.read(by=None, headers=header).status_code == 401
    twice = reader.api.run(_with_two_tokens(reader))
    assert twice.status_code == 401
    assert reader.read(path=reader.path("no-uuid")).json()["code"] == "run_not_found"
    assert reader.read(path=reader.path().replace("/strict/", "/no%20name/")).json()["code"] == "environment_not_found"


async def _with_two_tokens(reader):
    async with reader.api.client(None) as client:
        headers = [("Authorization", f"Bearer {reader.token}"), ("Authorization", f"Bearer {reader.token}")]
        return await client.get(reader.path()[1:], headers=headers)


def test_an_authority_that_does_not_answer_is_asked_again_later(reader, monkeypatch):
    def hangs(_self, _reference):
        raise OSError("stale file handle")

    monkeypatch.setattr(Shelf, "has_input", hangs)
    answer = reader.read()
    assert (answer.status_code, answer.json()["code"]) == (503, "content_unavailable")
    assert answer.headers["retry-after"]
    monkeypatch.undo()
    assert reader.read().status_code == 200
    assert reader.noted() == [], "no answer is no refusal"


def test_an_input_that_vanishes_under_the_reader_is_refused_like_one_that_was_gone(reader, monkeypatch):
    def gone(_self, _reference):
        raise NotFound("input_unreadable", "There is no input 'in'.")

    monkeypatch.setattr(Shelf, "read_input", gone)
    assert (reader.read().status_code, reader.read().json()["code"]) == (403, "input_unreadable")
    assert reader.noted() == [("input_unreadable", "ada")]


def test_an_input_beyond_the_bounds_is_not_sent(reader, monkeypatch):
    def large(_self, _reference):
        raise Refused("input_too_large", "The input 'in' is larger than 4194304 bytes.")

    monkeypatch.setattr(Shelf, "read_input", large)
    answer = reader.read()
    assert (answer.status_code, answer.json()["code"]) == (409, "input_too_large")


def test_the_token_is_in_no_log(reader):
    with structlog.testing.capture_logs() as logs:
        reader.read()
        reader.operator.declare("person", "ada", left=True)
        reader.read()
        reader.read(by="guess")
    assert [each["event"] for each in logs] == ["request", "input_refused", "request", "request"]
    assert logs[0]["principal"] == f"{reader.desk.key.org_id}/run {reader.run.run_id}"
    assert reader.token not in repr(logs)
    assert "guess" not in repr(logs)


class TestRates:
    def test_an_address_may_guess_so_often_and_is_then_refused_whatever_it_shows(self, reader):
        api = reader.served(limits=Limits(per_principal=UNLIMITED, per_peer=Rate(per_second=0.01, burst=3)))
        told = [api.get(reader.path(), by="guess").status_code for _ in range(4)]
        assert told == [404, 404, 404, 429]
        assert api.get(reader.path(), by=reader.token).status_code == 429
        api.close()

    def test_an_address_with_many_runs_is_limited_as_each_of_them(self, reader):
        limits = Limits(per_principal=Rate(per_second=0.01, burst=5), per_peer=Rate(per_second=0.01, burst=2))
        api = reader.served(limits=limits)
        told = [api.get(reader.path(), by=reader.token).status_code for _ in range(6)]
        assert told == [200] * 5 + [429]
        api.close()
