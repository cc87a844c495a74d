"""What operators do about notifications over HTTP: endpoints, heartbeats, tests and dead letters."""

import itertools
from datetime import timedelta
from uuid import uuid4

import pytest
from sqlalchemy import select

from horarium.api import models, notification_models
from horarium.catalog.deliveries import claim, mark_failed, spread
from horarium.catalog.notification_tables import endpoints
from horarium.control.principals import OPERATOR_SCOPE
from tests.api.house import HUMAN, OPERATOR, new, token
from tests.control.desk import NOON, SCOPE

PROGRAM = token(sub="ci", kind="key", scope=OPERATOR_SCOPE)
ADDRESS = {"url": "https://pager.acme.example/hook", "secret": "HORARIUM_SECRET_PAGER"}
_numbers = itertools.count(1)


@pytest.fixture
def name() -> str:
    return f"pager{next(_numbers)}"


def act(api, what, body, *, by=OPERATOR, key=None):
    return api.post(f"/notifications/{what}", body, key=key or new(), by=by)


def shown(api, name):
    endpoints = api.get("/notifications", by=OPERATOR).json()["endpoints"]
    return next((each for each in endpoints if each["name"] == name), None)


def given_up(api, name):
    """A test message to an endpoint that was given up, as the list of dead letters shows it."""
    receipt = act(api, "test", {"name": name}).json()
    with api.catalog.writing() as connection:
        spread(connection, SCOPE, now=NOON, limit=100)
        row = connection.execute(select(endpoints.c.id).where(endpoints.c.name == name)).scalar_one()
        (claimed,) = claim(connection, row, now=NOON + timedelta(days=1), lease=timedelta(seconds=1), limit=1)
        mark_failed(connection, claimed, status=500, error="It answered with status 500.", next_at=None, now=NOON)
    dead = api.get("/notifications/dead", by=OPERATOR).json()["dead"]
    return receipt, next(each for each in dead if each["endpoint"] == name)


def test_an_endpoint_is_declared_changed_and_removed_each_with_a_receipt(api, name):
    body = {"name": name, **ADDRESS, "on": ["failed", "missed"]}
    key = new()
    answer = act(api, "add", body, key=key)
    assert answer.status_code == 201, answer.text
    receipt = answer.json()
    notification_models.NotificationReceipt.model_validate(receipt)
    assert (receipt["changed"], receipt["on"], receipt["schedule_id"]) == (False, ["missed", "failed"], None)
    assert act(api, "add", body, key=key).json() == {**receipt, "replayed": True}
    assert act(api, "add", {**body, "on": ["review"]}).json()["changed"] is True
    assert shown(api, name)["on"] == ["review"]
    notification_models.Endpoints.model_validate(api.get("/notifications", by=OPERATOR).json())
    assert act(api, "remove", {"name": name}).json()["name"] == name
    assert shown(api, name) is None
    answer = act(api, "remove", {"name": name})
    assert (answer.status_code, answer.json()["code"]) == (404, "endpoint_not_found")
    acts = api.get("/authority", by=OPERATOR).json()["acts"]
    assert [each["kind"] for each in acts[:3]] == ["endpoint_removed", "endpoint_declared", "endpoint_declared"]
    models.AuthorityOverview.model_validate(api.get("/authority", by=OPERATOR).json())


@pytest.mark.parametrize("what", ["test", "remove"])
@pytest.mark.parametrize("wrong", ["a\x00b", "\x00", "é" * 100])
def test_what_no_endpoint_can_be_called_names_none(api, what, wrong):
    answer = act(api, what, {"name": wrong})
    assert (answer.status_code, answer.json()["code"]) == (404, "endpoint_not_found")


@pytest.mark.parametrize(
    ("changed", "pointer", "code"),
    [
        ({"name": "heartbeat:x"}, "/name", "invalid_name"),
        ({"url": "ftp://pager.example/"}, "/url", "not_an_address"),
        ({"url": "https://pager..example:0x1/"}, "/url", "not_an_address"),
        ({"url": "https://[::1/"}, "/url", "not_an_address"),
        ({"url": "https://pager.example/" + 2_000 * "a"}, "/url", "not_an_address"),
        ({"url": "https://user:hunter2@pager.example/"}, "/url", "not_plain"),
        ({"url": "https://pager.example/?token=hunter2"}, "/url", "not_plain"),
        ({"url": "http://pager.example/"}, "/url", "not_https"),
        ({"secret": "hunter2 itself"}, "/secret", "not_a_variable"),
        ({"on": ["failed", "everything"]}, "/on", "unknown_kinds"),
        ({"on": []}, "/on", "unknown_kinds"),
        ({"on": ["heartbeat"]}, "/on", "unknown_kinds"),
        ({"schedule_id": "x"}, "/schedule_id", "not_a_uuid"),
        ({"private": "yes"}, "/private", "not_a_boolean"),
        ({"more": 1}, "/more", "unknown_field"),
    ],
)
def test_what_is_no_endpoint_is_refused_at_its_place_and_no_secret_is_repeated(api, name, changed, pointer, code):
    answer = act(api, "add", {"name": name, **ADDRESS, "on": ["failed"], **changed})
    assert answer.status_code == 422, answer.text
    assert [(each["pointer"], each["code"]) for each in answer.json()["errors"]] == [(pointer, code)]
    assert "hunter2" not in answer.text
    assert shown(api, name) is None


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("HORARIUM_PAYLOAD_KEYS", "k1=HORARIUM_SECRET_PAGER"),
        ("HORARIUM_OIDC_CLIENT_SECRET", "HORARIUM_SECRET_PAGER"),
        ("HORARIUM_AUTHORITY_SECRET", "HORARIUM_SECRET_PAGER"),
    ],
)
def test_a_variable_that_is_there_for_something_else_is_no_secret_of_an_endpoint(
    api, name, setting, value, monkeypatch
):
    monkeypatch.setenv(setting, value)
    for what, body in (("add", {"name": name, "on": ["failed"]}), ("heartbeat", {"schedule_id": str(uuid4())})):
        answer = act(api, what, {**body, **ADDRESS})
        assert answer.status_code == 422, answer.text
        (fault,) = answer.json()["errors"]
        assert (fault["pointer"], fault["code"]) == ("/secret", "of_another_purpose")
        assert setting in fault["detail"]
    assert shown(api, name) is None


def test_all_faults_are_told_at_once(api):
    answer = act(api, "add", {"name": "-", "url": "x", "secret": "x", "on": ["x"]})
    assert {each["pointer"] for each in answer.json()["errors"]} == {"/name", "/url", "/secret", "/on"}


@pytest.mark.parametrize("what", ["add", "heartbeat", "remove", "test", "again"])
def test_only_a_persons_session_with_the_scope_of_operators_may(api, what):
    answer = act(api, what, {}, by=PROGRAM)
    assert (answer.status_code, answer.json()["code"]) == (403, "human_session_required")
    answer = act(api, what, {}, by=HUMAN)
    assert (answer.status_code, answer.json()["code"]) == (403, "scope_missing")


def test_a_heartbeat_is_of_a_schedule_that_is_there(api):
    schedule_id = api.publish()["schedule_id"]
    receipt = act(api, "heartbeat", {"schedule_id": schedule_id, **ADDRESS}).json()
    assert (receipt["name"], receipt["on"]) == (f"heartbeat:{schedule_id}", ["heartbeat"])
    assert shown(api, receipt["name"])["silent_since"] is None
    answer = act(api, "heartbeat", {"schedule_id": "7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11", **ADDRESS})
    assert (answer.status_code, answer.json()["code"]) == (404, "schedule_not_found")
    assert act(api, "remove", {"name": receipt["name"]}).status_code == 201


def test_a_dead_letter_is_seen_and_sent_again_once(api, name):
    act(api, "add", {"name": name, **ADDRESS, "on": ["failed"]})
    receipt, letter = given_up(api, name)
    notification_models.DeadLetters.model_validate(api.get("/notifications/dead", by=OPERATOR).json())
    assert letter["message_id"] == receipt["message_id"]
    assert (letter["message"]["type"], letter["last_status"]) == ("test", 500)
    assert (shown(api, name)["dead"], shown(api, name)["last_error"]) == (1, "It answered with status 500.")
    sent = act(api, "again", {"id": letter["id"]})
    assert (sent.status_code, sent.json()["message_id"]) == (201, letter["message_id"])
    assert (shown(api, name)["waiting"], shown(api, name)["dead"]) == (1, 0)
    answer = act(api, "again", {"id": letter["id"]})
    assert (answer.status_code, answer.json()["code"]) == (404, "dead_letter_not_found")


def test_a_dead_letter_of_another_environment_is_not_there(api, name):
    act(api, "add", {"name": name, **ADDRESS, "on": ["failed"]})
    _, letter = given_up(api, name)
    path = "!/v1/organizations/globex/environments/test/notifications/again"
    stranger = token(sub="eve", org="globex", scope=OPERATOR_SCOPE)
    answer = api.post(path, {"id": letter["id"]}, key=new(), by=stranger)
    assert answer.status_code == 404
    assert shown(api, name)["dead"] == 1


def test_an_environment_has_so_many_endpoints_and_no_more(api, monkeypatch, name):
    monkeypatch.setattr("horarium.control.notifications.MAX_ENDPOINTS", 0)
    answer = act(api, "add", {"name": name, **ADDRESS, "on": ["failed"]})
    assert (answer.status_code, answer.json()["code"]) == (409, "too_many_endpoints")
