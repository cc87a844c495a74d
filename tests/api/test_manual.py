"""Runs that people ask for through the API, decided as the run worker decides: what they obey, and what is left of them."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from horarium.catalog import presence
from horarium.control import admission
from horarium.schedule.identity import ActivationKey, RunKey, Scope, schedule_key
from tests.api.house import EXPECTED, Api, new, review, token
from tests.control.desk import AGENT, FAR, SCOPE, Shelf, every
from tests.control.operators import Operator, paid

BUDGET = {"usage_classes": ["test_compute"], "pays_by": "credits", "limit": 1_000, "currency": "CHF"}

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Office:
    """A strict environment of an organization of its own, with its operator, and the people who ask for runs."""

    api: Api
    operator: Operator

    @property
    def path(self) -> str:
        scope = self.operator.scope
        return f"!/v1/organizations/{scope.org_id}/environments/{scope.environment_id}"

    def post(self, path: str, body: dict[str, Any], *, by: str = "ada") -> Any:
        who = token(sub=by, org=self.operator.scope.org_id)
        return self.api.post(f"{self.path}{path}", body, key=new(), by=who)

    def enabled(self) -> dict[str, Any]:
        """A paid schedule that is due in ten years; what a person reviews of it."""
        configuration = paid(every(316_224_000, overlap="allow"))
        body = {"schedule_id": new(), "expected_revision": 0, **EXPECTED, "configuration": configuration}
        receipt = self.post("/schedules", body).json()
        answer = self.post(f"/schedules/{receipt['schedule_id']}/activation", {**review(receipt, 0), "enabled": True})
        assert answer.status_code == 201, answer.text
        return review(receipt, 1)

    def triggered(self, reviewed: dict[str, Any], *, by: str = "ada") -> RunKey:
        answer = self.post(f"/schedules/{reviewed['version']['schedule_id']}/runs", reviewed, by=by)
        assert answer.status_code == 201, answer.text
        (_, run) = self.api.hands.calls[-1]
        assert run.run_id == answer.json()["run_id"]
        return run

    def line(self, run: RunKey) -> dict[str, Any]:
        shown = self.api.get(f"{self.path}/runs/{run.run_id}", by=token(org=self.operator.scope.org_id))
        assert shown.status_code == 200, shown.text
        return shown.json()


@pytest.fixture
def office(api: Api) -> Office:
    """Everything in it is as the usual request needs it."""
    scope = Scope(org_id=f"office{next(_numbers)}", environment_id="strict")
    operator = Operator(api.catalog, scope)
    operator.open()
    operator.declare_usual(people=("ada", "bob"))
    discovery = {"is_schedulable": True, "task_queue": "agents", "max_run_seconds": 60, "idempotent": False}
    with api.catalog.writing() as connection:
        presence.register_agent(connection, scope, AGENT, discovery, lease_until=FAR, now=datetime.now(UTC))
    return Office(api=api, operator=operator)


def decided(api: Api, run: RunKey, *, now: datetime | None = None) -> str:
    """What the run worker's decision is."""
    at = now or max(datetime.now(UTC), run.nominal_time)
    return api.run(api.catalog.write(admission.decide, run, Shelf(), owner="execution", now=at)).outcome


def nothing(_operator: Operator) -> None:
    pass


def agent_goes_offline(operator: Operator) -> None:
    lapsed = datetime.now(UTC) - timedelta(minutes=5)
    with operator.catalog.writing() as connection:
        presence.renew_lease(connection, operator.scope, AGENT, lease_until=lapsed, now=lapsed)


CHANGES: dict[str, tuple[Callable[[Operator], None], str | None]] = {
    "nothing": (nothing, None),
    "stop of the environment": (lambda operator: operator.stop(), "stopped_by_operator"),
    "stop of the organization": (lambda operator: operator.stop(everywhere=True), "stopped_by_operator"),
    "budget exhausted": (
        lambda operator: operator.declare("budget", "team", **{**BUDGET, "limit": 9}),
        "budget_exhausted",
    ),
    "agent offline": (agent_goes_offline, "agent_offline"),
    "agent withdrawn": (lambda operator: operator.withdraw("agent", AGENT), "agent_missing"),
    "she left": (lambda operator: operator.withdraw("person", "ada"), "principal_left"),
    "she may not read": (lambda operator: operator.declare("input", "in", readers=["bob"]), "input_unreadable"),
    "new epoch": (lambda operator: operator.change(authority_epoch=2), "environment_epoch_changed"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_it_obeys_admission_whatever_changed_since_it_was_asked_for(office, change):
    act, reason = CHANGES[change]
    run = office.triggered(office.enabled())
    act(office.operator)
    assert decided(office.api, run) == ("admitted" if reason is None else "refused")
    shown = office.line(run)
    assert (shown["disposition"], shown["reason"]) == (("admitted", None) if reason is None else ("refused", reason))
    assert (shown["triggered_by"], shown["trigger"]) == ("ada", run.trigger)


@pytest.mark.parametrize(
    "change", ["stop of the environment", "stop of the organization", "budget exhausted", "agent offline"]
)
def test_it_obeys_admission_whatever_was_so_when_it_was_asked_for(office, change):
    """The request is taken, and its line says by whom it was made and why nothing came of it."""
    act, reason = CHANGES[change]
    reviewed = office.enabled()
    act(office.operator)
    run = office.triggered(reviewed)
    assert decided(office.api, run) == "refused"
    shown = office.line(run)
    assert (shown["disposition"], shown["reason"], shown["triggered_by"]) == ("refused", reason, "ada")
    assert shown["sentence"]
    assert (shown["begun_at"], shown["cost"]) == (None, None)


def test_it_runs_though_it_is_asked_for_in_the_very_second_in_which_a_stop_is_lifted(office):
    reviewed = office.enabled()
    office.operator.stop(now=datetime.now(UTC))
    office.operator.lift(now=datetime.now(UTC))
    assert decided(office.api, office.triggered(reviewed)) == "admitted"


def test_it_reads_its_input_as_the_person_who_asked_and_not_as_the_one_who_enabled(office):
    office.operator.declare("input", "in", readers=["ada"])
    reviewed = office.enabled()
    by_bob, by_ada = office.triggered(reviewed, by="bob"), office.triggered(reviewed)
    assert (decided(office.api, by_bob), decided(office.api, by_ada)) == ("refused", "admitted")
    assert (office.line(by_bob)["reason"], office.line(by_bob)["triggered_by"]) == ("input_unreadable", "bob")


@pytest.mark.parametrize(
    ("change", "generation", "reason"), [("pause", 1, "paused"), ("retire", 1, "retired"), ("enable", 1, "superseded")]
)
def test_where_its_activation_ends_before_its_admission_it_is_dropped_and_its_line_is_kept(
    office, change, generation, reason
):
    reviewed = office.enabled()
    run = office.triggered(reviewed)
    schedule_id = reviewed["version"]["schedule_id"]
    path, asked = "activation", {**reviewed, "enabled": change == "enable"}
    if change == "retire":
        path, asked = "retirement", reviewed
    assert office.post(f"/schedules/{schedule_id}/{path}", asked).status_code == 201
    assert decided(office.api, run) == "withdrawn"
    shown = office.line(run)
    assert (shown["disposition"], shown["reason"]) == ("dropped", reason)
    assert (shown["triggered_by"], shown["generation"]) == ("ada", generation)


def schedule_of(api: Api, overlap: str) -> dict[str, Any]:
    receipt = api.publish(configuration=every(316_224_000, overlap=overlap))
    assert api.change(receipt, 0, "enable").status_code == 201
    return receipt


def at_once(api: Api, receipt: dict[str, Any], keys: list[str], **asked: Any) -> list[Any]:
    """So many requests at the same time, each with its key, and their answers."""
    path = f"/v1/organizations/acme/environments/test/schedules/{receipt['schedule_id']}/runs"
    body = {**review(receipt, 1), **asked}

    async def send() -> list[Any]:
        async with api.client() as client:
            posts = [client.post(path, json=body, headers={"Idempotency-Key": key}) for key in keys]
            return await asyncio.gather(*posts)

    return api.run(send())


@pytest.mark.parametrize(("overlap", "asked"), [("allow", {}), ("skip", {"overlap": "allow"})])
def test_fifty_keys_in_one_second_are_fifty_runs(api, overlap, asked):
    receipt = schedule_of(api, overlap)
    moment = datetime.now(UTC).replace(microsecond=250_000)
    # The clock stands, so that all of them are of one second.
    service = api.app.state.service
    usual = service.now
    object.__setattr__(service, "now", lambda: moment)
    try:
        answers = at_once(api, receipt, [new() for _ in range(50)], **asked)
    finally:
        object.__setattr__(service, "now", usual)
    assert Counter(answer.status_code for answer in answers) == {201: 50}
    assert len({answer.json()["run_id"] for answer in answers}) == 50
    shown = api.get(f"/schedules/{receipt['schedule_id']}/occurrences?limit=50").json()["occurrences"]
    assert len({each["run_id"] for each in shown}) == 50
    assert len({each["first_at"] for each in shown}) == 1


def test_one_key_fifty_times_at_once_is_one_run(api):
    receipt = schedule_of(api, "allow")
    answers = at_once(api, receipt, [new()] * 50)
    assert Counter(answer.status_code for answer in answers) == {201: 50}
    assert len({answer.json()["run_id"] for answer in answers}) == 1
    assert sum(not answer.json()["replayed"] for answer in answers) == 1


def test_of_fifty_at_once_where_runs_may_not_overlap_one_runs_and_the_others_are_told_why(api):
    receipt = schedule_of(api, "skip")
    answers = at_once(api, receipt, [new() for _ in range(50)])
    assert Counter(answer.status_code for answer in answers) == {201: 1, 409: 49}
    assert {answer.json()["code"] for answer in answers if answer.status_code == 409} == {"overlap"}
    shown = api.get(f"/schedules/{receipt['schedule_id']}/occurrences").json()["occurrences"]
    assert [each["disposition"] for each in shown] == ["staged"]


def test_a_refused_request_leaves_its_key_free_for_when_the_slot_is(api):
    receipt = schedule_of(api, "skip")
    first, key = api.change(receipt, 1, "trigger").json(), new()
    assert api.change(receipt, 1, "trigger", key=key).json()["code"] == "overlap"
    run = RunKey(
        activation=ActivationKey(schedule=schedule_key(SCOPE, receipt["schedule_id"]), generation=1),
        nominal_time=datetime.fromisoformat(first["nominal_time"]),
        trigger=first["trigger"],
    )
    late = run.nominal_time + timedelta(hours=2)
    assert decided(api, run, now=late) == "missed", "a run by hand is of its second, and is not made up for hours later"
    again = api.change(receipt, 1, "trigger", key=key)
    assert (again.status_code, again.json()["replayed"]) == (201, False)
