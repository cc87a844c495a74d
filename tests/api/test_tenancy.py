"""What another organization owns is not there: for every route that the application has, a new one included."""

import re

import pytest

from horarium.api import examples, notification_examples
from horarium.api.routes import (
    agent_classes,
    authority,
    environments,
    ledger,
    notifications,
    previews,
    receipts,
    runs,
    schedules,
    v0,
)
from horarium.api.routes.paths import PREFIX
from tests.api.house import (
    HUMAN,
    OPERATOR,
    STRANGER,
    Api,
    Recorder,
    make_catalog,
    new,
    publication,
    review,
    token,
)

CANCEL = {"expected_environment_epoch": 1, "expected_reset_generation": 1}
OF_OPERATORS = {
    *(f"/authority{end}" for end in ("", "/events", "/stop", "/lift", "/epoch", "/reset", "/collections")),
    *(f"/notifications{end}" for end in ("", "/dead", "/add")),
}
"""What operators do names no id of acme's."""
OF_AGENTS = {("GET", f"{PREFIX}/runs/{{run_id}}/input"), ("POST", f"{PREFIX}/runs/{{run_id}}/outcome")}
"""What runs open with a token or a signature of their own; test_inputs and test_outcomes hold it against other tenants."""
BY_QUERY = (v0, agent_classes)
"""Routes whose path names no environment: it stands in the query, and so may the organization, which is the token's else."""
OPEN = {"/healthz", "/readyz", "/version", "/metrics", "/openapi.json"}
"""What has no tenant in it."""


def routes():
    modules = (authority, environments, ledger, notifications, previews, receipts, runs, schedules)
    return sorted(
        (method, route.path) for module in modules for route in module.router.routes for method in sorted(route.methods)
    )


def routes_by_query():
    return sorted(
        (method, route.path)
        for module in BY_QUERY
        for route in module.router.routes
        for method in sorted(route.methods)
    )


@pytest.fixture(scope="module")
def owned(tmp_path_factory):
    """An application, and what acme owns in it: a schedule that is enabled, with a run, and the keys of its receipts."""
    catalog = make_catalog(tmp_path_factory.mktemp("tenancy"))
    api = Api(catalog, hands=Recorder())
    receipt = api.publish()
    api.change(receipt, 0, "enable", key="enabled")
    run = api.change(receipt, 1, "trigger").json()["run_id"]
    yield api, {**receipt, "run_id": run, "key": "enabled"}
    api.close()
    catalog.close()


def body_of(path, thing):
    end = path.rsplit("/", 1)[-1]
    match end:
        case "schedules":
            return publication(thing["schedule_id"], revision=1)
        case "activation":
            return {**review(thing, 1), "enabled": False}
        case "retirement" | "runs":
            return review(thing, 1)
        case "cancel":
            return CANCEL
        case "schedule-previews":
            return {"spec": publication()["configuration"]}
        case "authority":
            return {**examples.AUTHORITY_FILE, "environment": "test"}
        case "stop":
            return examples.STOP
        case "lift":
            return examples.LIFT
        case "epoch" | "reset":
            # Of a state that nobody reviewed, so that what is the stranger's own stays as it is.
            return {"because": "A test.", "expected_environment_epoch": 99, "expected_reset_generation": 99}
        case "collections":
            return examples.COLLECT
        case "approvals":
            return {"version": thing["reference"], "expires_at": "2099-01-01T00:00:00Z"}
        case "add":
            return notification_examples.ADD
        case "heartbeat":
            return {**notification_examples.HEARTBEAT, "schedule_id": thing["schedule_id"]}
        case "remove" | "test":
            return {"name": "of-acme"}
        case "again":
            return notification_examples.AGAIN
    raise AssertionError(f"give this test a body for {path}")


def address(path, thing, organization):
    profile = {"agent_class": "Triage", "agent_id": "support", "start_event": "CronStartEvent"}
    names = {"org_id": organization, "environment_id": "test", **profile, **thing}
    return "!" + re.sub(r"\{(\w+)(?::\w+)?\}", lambda match: names[match[1]], path)


def send(api, method, path, thing, *, by, organization="acme"):
    parts = {}
    if method in {"POST", "PUT"}:
        parts = {"json": body_of(path, thing), "key": new()}
    return api.ask(method, address(path, thing, organization), by=by, **parts)


def state(api, thing):
    """All that acme can see of its schedule."""
    return [
        api.get(path).json()
        for path in (
            f"/schedules/{thing['schedule_id']}",
            f"/schedules/{thing['schedule_id']}/events",
            f"/runs/{thing['run_id']}",
            "/schedules",
        )
    ]


def test_the_routes_are_all_that_the_application_has(owned):
    api, _ = owned
    described = {
        (method.upper(), path.replace("/receipts/{key}", "/receipts/{key:path}"))
        for path, operations in api.app.openapi()["paths"].items()
        for method in operations
    }
    open_to_all = {("GET", path) for path in OPEN - {"/openapi.json"}}
    assert described - set(routes()) == open_to_all | OF_AGENTS | set(routes_by_query())
    assert {path for _, path in routes() if not path.startswith(PREFIX)} == set()
    assert len(routes()) >= 16


@pytest.mark.parametrize(("method", "path"), routes())
def test_another_organizations_route_is_not_there(owned, method, path):
    api, thing = owned
    before = state(api, thing)
    answer = send(api, method, path, thing, by=STRANGER)
    assert (answer.status_code, answer.json()["code"]) == (404, "environment_not_found")
    # In the same words as an environment that does not exist at all.
    nowhere = send(api, method, path, thing, by=STRANGER, organization="nowhere")
    assert nowhere.json()["detail"] == answer.json()["detail"].replace("'acme'", "'nowhere'")
    assert state(api, thing) == before


@pytest.mark.parametrize(("method", "path"), routes())
def test_an_id_of_another_organization_is_not_found_in_ones_own(owned, method, path):
    """The ids are guessed right, and the environment is the stranger's own."""
    api, thing = owned
    before = state(api, thing)
    answer = send(api, method, path, thing, by=STRANGER, organization="globex")
    if path.removeprefix(PREFIX) in {"", "/schedules", "/schedule-previews", "/occurrences", "/runs", *OF_OPERATORS}:
        # What these say is about the stranger's own environment, where nothing has those ids.
        assert not any(thing[name] in answer.text for name in ("resource_id", "run_id", "receipt_id"))
    else:
        assert (answer.status_code, answer.json()["code"].endswith("_not_found")) == (404, True), answer.text
    assert state(api, thing) == before


@pytest.mark.parametrize(("method", "path"), routes())
def test_no_route_answers_without_a_token(owned, method, path):
    api, thing = owned
    assert send(api, method, path, thing, by=None).status_code == 401


@pytest.mark.parametrize(("method", "path"), routes())
def test_no_route_answers_without_the_scope(owned, method, path):
    api, thing = owned
    answer = send(api, method, path, thing, by=token(scope="openid profile"))
    assert (answer.status_code, answer.json()["code"]) == (403, "scope_missing")


@pytest.mark.parametrize(
    ("method", "path"), [each for each in routes() if each[0] in {"POST", "PUT"} and "previews" not in each[1]]
)
def test_every_change_needs_a_key(owned, method, path):
    api, thing = owned
    answer = api.ask(method, address(path, thing, "acme"), json=body_of(path, thing), by=OPERATOR)
    assert (answer.status_code, answer.json()["code"]) == (400, "idempotency_key_missing")


def in_environment(api, method, path, thing, environment_id, *, organization=None, **parts):
    """One request about an environment that the query names, and of an organization where it names that too."""
    named = {"environment_id": environment_id, "org_id": organization}
    query = "?" + "&".join(f"{name}={value}" for name, value in named.items() if value is not None)
    if method in {"POST", "PUT"}:
        parts = {"json": {}, "key": new(), **parts}
    return api.ask(method, address(path, thing, "acme") + query, **parts)


@pytest.mark.parametrize(("method", "path"), routes_by_query())
class TestByQuery:
    """Each route whose path names no environment. That its ids are nobody else's is held beside the route itself."""

    def test_it_does_not_answer_without_a_token(self, owned, method, path):
        api, thing = owned
        answer = in_environment(api, method, path, thing, None, by=None)
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")

    def test_it_does_not_answer_without_the_scope(self, owned, method, path):
        api, thing = owned
        answer = in_environment(api, method, path, thing, "test", by=token(scope="openid profile"))
        assert (answer.status_code, answer.json()["code"]) == (403, "scope_missing")

    def test_without_an_environment_it_says_what_is_missing_and_where(self, owned, method, path):
        api, thing = owned
        answer = in_environment(api, method, path, thing, None)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_parameter")
        assert [(each["pointer"], each["code"]) for each in answer.json()["errors"]] == [
            ("/query/environment_id", "missing_parameter")
        ]

    @pytest.mark.parametrize("name", ["acme", "nowhere", "", "GLOBEX", "globex%00", "..", "%ff", "a" * 2_000])
    def test_another_organization_than_that_of_the_token_is_not_there(self, owned, method, path, name):
        """Though the token's own has an environment of that name."""
        api, thing = owned
        before = state(api, thing)
        answer = in_environment(api, method, path, thing, "test", organization=name, by=STRANGER)
        assert (answer.status_code, answer.json()["code"]) == (404, "environment_not_found")
        assert state(api, thing) == before

    def test_another_organization_is_told_of_in_the_words_for_one_that_does_not_exist(self, owned, method, path):
        api, thing = owned
        told = [
            in_environment(api, method, path, thing, "test", organization=name, by=STRANGER).json()["detail"]
            for name in ("acme", "nowhere")
        ]
        assert told[1] == told[0].replace("'acme'", "'nowhere'")

    def test_the_organization_of_the_token_may_be_named_once(self, owned, method, path):
        api, thing = owned
        silent = in_environment(api, method, path, thing, "test", by=OPERATOR)
        named = in_environment(api, method, path, thing, "test", organization="acme", by=OPERATOR)
        assert (named.status_code, named.json().get("code")) == (silent.status_code, silent.json().get("code"))
        twice = in_environment(api, method, path, thing, "test&org_id=globex", organization="acme", by=OPERATOR)
        assert (twice.status_code, twice.json()["code"]) == (422, "invalid_parameter")


@pytest.mark.parametrize(
    "name", ["acme%2Ftest", "..", "%2e%2e", "acme%00", "a" * 65, "ACME", "acme%20", "-", "é", "acme;", "%ff"]
)
def test_an_organization_of_another_spelling_is_another_one(owned, name):
    api, _ = owned
    answer = api.ask("GET", f"!/v1/organizations/{name}/environments/test")
    assert answer.status_code == 404
    assert api.get("", by=HUMAN).status_code == 200


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "0",
        "7b0c7c3e",
        "7b0c7c3e4f0e4f539f0b0a5d2f2d8a11",
        "{7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11}",
        "%00",
        "..%2f..",
        "1%27--",
    ],
)
@pytest.mark.parametrize(
    "path", ["/schedules/{}", "/schedules/{}/occurrences", "/schedules/{}/events", "/schedule-versions/{}", "/runs/{}"]
)
def test_an_id_that_is_no_uuid_names_nothing(owned, path, text):
    api, _ = owned
    assert api.get(path.format(text)).status_code == 404


def test_a_uuid_in_capitals_is_the_same_uuid(owned):
    api, thing = owned
    found = api.get(f"/schedules/{thing['schedule_id'].upper()}")
    assert found.json()["schedule_id"] == thing["schedule_id"]


def test_two_organizations_may_use_one_schedule_id(owned):
    api, thing = owned
    answer = api.ask(
        "POST",
        "!/v1/organizations/globex/environments/test/schedules",
        by=token(sub="eve", org="globex"),
        key=new(),
        json=publication(thing["schedule_id"]),
    )
    assert answer.status_code == 201
    assert api.get(f"/schedules/{thing['schedule_id']}").json()["published_by"] == "ada"
