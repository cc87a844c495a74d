"""Outcomes over HTTP: signed by the destination that has the run, counted once, and told to whoever waits."""

import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from horarium.api.limits import Limits, Rate
from horarium.authority.signing import Keys, sign
from horarium.catalog.declarations import declare, withdraw_all
from horarium.control import admission, dispatching, running
from horarium.control.dispatching import Claim
from horarium.control.running import Outcome
from horarium.schedule.identity import RunKey, schedule_key
from horarium.schedule.ledger import Disposition, Reason
from tests.api.house import HUMAN, UNLIMITED, Api
from tests.control.desk import SCOPE, Shelf, every

OURS, OTHERS = "a-secret-of-thirty-two-bytes-no-less", "another-secret-that-is-long-enough"
SUCCESS = {"outcome": "succeeded", "summary": "done", "outputs": ["a"], "cost": 7}


@pytest.fixture(scope="module", autouse=True)
def declarations(catalog):
    facts = {"max_cost": 0, "max_run_seconds": 60, "gateway": "http"}
    with catalog.writing() as connection:
        for name in ("lines", "other"):
            to = {"url": "https://agent.test/", "secret": f"HORARIUM_SECRET_{name.upper()}"}
            declare(connection, SCOPE, "destination", name, to, version=1, everywhere=False)
        declare(connection, SCOPE, "agent", "posted@1", {**facts, "destination": "lines"}, version=1, everywhere=False)


@pytest.fixture(autouse=True)
def secrets(monkeypatch):
    monkeypatch.setenv("HORARIUM_SECRET_LINES", OURS)
    monkeypatch.setenv("HORARIUM_SECRET_OTHER", OTHERS)


def sent(api: Api, *, claimed: bool = True) -> tuple[RunKey, Claim | None]:
    """A run that was admitted, and is on its way to its agent."""
    configuration = every(3600)
    configuration["run"]["agent_version"] = "posted@1"
    receipt = api.publish(configuration=configuration)
    assert api.change(receipt, 0, "enable").status_code == 201
    triggered = api.change(receipt, 1, "trigger").json()
    line = api.get(f"/runs/{triggered['run_id']}").json()
    key = RunKey(
        activation=dispatching.ActivationKey(schedule=schedule_key(SCOPE, receipt["schedule_id"]), generation=1),
        nominal_time=datetime.fromisoformat(line["first_at"]),
        trigger=line["trigger"],
    )
    now = datetime.now(UTC)
    decided = api.run(api.catalog.write(admission.decide, key, Shelf(), owner="execution", now=now))
    assert decided.outcome == "admitted"
    if not claimed:
        return key, None
    return key, api.run(api.catalog.write(dispatching.claim, key, owner="execution", now=now))


def report(api: Api, key: RunKey, said: Any = SUCCESS, *, secret: str = OURS, **how: Any) -> Any:
    body = said if isinstance(said, bytes) else json.dumps(said).encode()
    at = how.pop("at", None) or datetime.now(UTC)
    message_id = how.pop("message_id", key.run_id)
    headers = sign(body, Keys((secret.encode(),)), message_id=message_id, now=at)
    headers |= {"Content-Type": "application/json", **how.pop("headers", {})}
    return api.ask("POST", how.pop("path", f"/runs/{key.run_id}/outcome"), by=None, content=body, headers=headers)


def test_an_outcome_settles_the_run_and_wakes_its_workflow(api):
    key, _ = sent(api)
    answer = report(api, key)
    assert answer.status_code == 200, answer.text
    assert answer.json() == {"run_id": key.run_id, "disposition": "succeeded", "reason": None, "replayed": False}
    run = api.get(f"/runs/{key.run_id}").json()
    assert (run["disposition"], run["summary"], run["outputs"], run["cost"]) == ("succeeded", "done", ["a"], 7)
    assert ("tell_run", (key.run_id, "outcome_reported")) in api.hands.calls


def test_the_same_outcome_again_is_told_so_and_another_is_refused(api):
    key, _ = sent(api)
    report(api, key, {"outcome": "failed"})
    again = report(api, key, {"outcome": "failed", "summary": ""})
    assert (again.status_code, again.json()["replayed"], again.json()["reason"]) == (
        200,
        True,
        "agent_reported_failure",
    )
    other = report(api, key)
    assert (other.status_code, other.json()["code"]) == (409, "outcome_conflict")
    assert api.get(f"/runs/{key.run_id}").json()["disposition"] == "failed"


def test_a_late_outcome_is_told_how_the_run_ended(api):
    key, claimed = sent(api)
    assert isinstance(claimed, Claim)
    service = api.app.state.service
    late = claimed.sent_at + timedelta(seconds=61)
    before = service.now
    object.__setattr__(service, "now", lambda: late)
    try:
        answers = [report(api, key, at=late) for _ in range(2)]
    finally:
        object.__setattr__(service, "now", before)
    assert [(each.status_code, each.json()["code"]) for each in answers] == [(409, "run_ended")] * 2
    assert "time limit" in answers[0].json()["detail"]
    assert api.get(f"/runs/{key.run_id}").json()["disposition"] == "timed_out"


def test_an_outcome_of_a_cancelled_run_is_told_so(api):
    key, _ = sent(api)
    cancelled = Outcome(disposition=Disposition.CANCELLED, reason=Reason.CANCELLED_BY_OPERATOR)
    api.run(api.catalog.write(running.settle, key, cancelled, now=datetime.now(UTC)))
    answer = report(api, key)
    assert (answer.status_code, answer.json()["code"]) == (409, "run_ended")
    assert "cancelled" in answer.json()["detail"]


STRANGE = "3f1f0c5e-1d2b-5c8a-9b77-5a2f8f1f0b9d"


@pytest.mark.parametrize(
    "how",
    [
        {"secret": OTHERS},
        {"secret": "a-guess-of-a-secret-long-enough"},
        {"at": -timedelta(minutes=6)},
        {"at": timedelta(minutes=9)},
        {"message_id": STRANGE},
        {"headers": {"webhook-signature": "v1,"}},
        {"headers": {"webhook-signature": "v1a,AAAA"}},
        {"headers": {"webhook-timestamp": "soon"}},
        {"said": b"{}", "headers": {"webhook-signature": f"v1,{'A' * 44}"}},
        {"path": "!/v1/organizations/globex/environments/test/runs/{run}/outcome"},
        {"path": "!/v1/organizations/acme/environments/other/runs/{run}/outcome"},
    ],
)
def test_whoever_may_not_report_learns_nothing_and_changes_nothing(api, how):
    """In the words that a run gets which does not exist."""
    key, _ = sent(api)
    how = dict(how)
    if "path" in how:
        how["path"] = how["path"].format(run=key.run_id)
    if "at" in how:
        how["at"] += datetime.now(UTC)
    refused = report(api, key, how.pop("said", SUCCESS), **how)
    unknown = report(api, key, path=f"/runs/{STRANGE}/outcome")
    assert (refused.status_code, unknown.status_code) == (404, 404)
    said, same = refused.json(), json.loads(unknown.text.replace(STRANGE, key.run_id))
    assert {**said, "request_id": ""} == {**same, "request_id": ""}
    assert api.get(f"/runs/{key.run_id}").json()["disposition"] == "admitted"


def test_what_was_signed_cannot_be_changed(api):
    key, _ = sent(api)
    body = json.dumps(SUCCESS).encode()
    headers = sign(body, Keys((OURS.encode(),)), message_id=key.run_id, now=datetime.now(UTC))
    headers["Content-Type"] = "application/json"
    changed = body.replace(b"7", b"0")
    path = f"/runs/{key.run_id}/outcome"
    assert api.ask("POST", path, by=None, content=changed, headers=headers).status_code == 404
    assert api.ask("POST", path, by=None, content=body, headers=headers).status_code == 200


def test_both_secrets_count_while_one_is_being_replaced(api, monkeypatch):
    key, _ = sent(api)
    monkeypatch.setenv("HORARIUM_SECRET_LINES", f"{OTHERS} {OURS}")
    assert report(api, key, secret=OURS).status_code == 200
    assert report(api, key, secret=OTHERS).json()["replayed"] is True


def test_a_run_that_was_not_sent_yet_cannot_be_reported_on(api):
    key, _ = sent(api, claimed=False)
    assert report(api, key).status_code == 404


def test_a_destination_that_was_withdrawn_reports_nothing(api):
    key, _ = sent(api)
    with api.catalog.writing() as connection:
        withdraw_all(connection, SCOPE, [("destination", "lines")], everywhere=False)
    try:
        assert report(api, key).status_code == 404
    finally:
        with api.catalog.writing() as connection:
            to = {"url": "https://agent.test/", "secret": "HORARIUM_SECRET_LINES"}
            declare(connection, SCOPE, "destination", "lines", to, version=1, everywhere=False)
    assert report(api, key).status_code == 200


def test_a_secret_that_this_process_lacks_is_its_operators_trouble_and_not_the_agents(api, monkeypatch):
    """A 404 would tell the agent to give up; it shall come again."""
    key, _ = sent(api)
    monkeypatch.delenv("HORARIUM_SECRET_LINES")
    answer = report(api, key)
    assert (answer.status_code, answer.json()["code"]) == (500, "misconfigured")
    assert "HORARIUM_SECRET" not in answer.text


@pytest.mark.parametrize(
    ("said", "status", "code"),
    [
        (b"{", 400, "invalid_json"),
        (b'{"outcome": "failed", "outcome": "succeeded"}', 400, "invalid_json"),
        ({"outcome": "done"}, 422, "invalid_schedule"),
        ({"outcome": "succeeded", "cost": -1}, 422, "invalid_schedule"),
        ({"outcome": "succeeded", "cost": 10**16}, 422, "invalid_schedule"),
        ({"outcome": "succeeded", "summary": "x" * 300_000}, 413, "body_too_large"),
    ],
)
def test_a_report_that_cannot_be_read_changes_nothing(api, said, status, code):
    key, _ = sent(api)
    answer = report(api, key, said)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert report(api, key).json()["replayed"] is False


def test_strangers_are_limited_by_their_address_and_agents_by_their_runs(catalog):
    api = Api(catalog, limits=Limits(per_principal=UNLIMITED, per_peer=Rate(per_second=0.01, burst=3)))
    try:
        key, _ = sent(api)
        for _ in range(5):
            assert report(api, key).status_code == 200
        assert [report(api, key, secret=OTHERS).status_code for _ in range(4)] == [404, 404, 404, 429]
    finally:
        api.close()


def test_an_outcome_counts_while_temporal_does_not_answer(api):
    key, _ = sent(api)
    api.hands.reachable = False
    try:
        assert report(api, key).status_code == 200
    finally:
        api.hands.reachable = True
    assert api.get(f"/runs/{key.run_id}", by=HUMAN).json()["disposition"] == "succeeded"


def test_a_person_with_a_token_and_no_signature_reports_nothing(api):
    key, _ = sent(api)
    headers = {"webhook-id": key.run_id, "webhook-timestamp": str(int(time.time()))}
    answer = api.post(f"/runs/{key.run_id}/outcome", SUCCESS, by=HUMAN, headers=headers)
    assert answer.status_code == 404
