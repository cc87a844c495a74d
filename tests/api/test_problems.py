"""Every refusal is a problem document (RFC 9457), and every code that the source knows is reached by a request."""

import ast
import asyncio
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import text, update
from sqlalchemy.exc import OperationalError

from horarium.api.guard import Guard
from horarium.api.limits import Limits, Rate
from horarium.api.metrics import Metrics
from horarium.api.problems import TITLES
from horarium.api.tokens import FetchedKeys, TokenVerifier
from horarium.authority.asking import Answers
from horarium.authority.local import LocalAuthority
from horarium.catalog.endpoints import find_endpoint, stop_endpoint
from horarium.catalog.failures import OutcomeUnknown
from horarium.catalog.tables import environments, workers
from horarium.control import notifications, operations, pages
from horarium.errors import Misconfigured
from tests.api import house, profile_house
from tests.api.house import (
    BASE,
    HUMAN,
    OPERATOR,
    PROGRAM,
    UNLIMITED,
    Api,
    Recorder,
    make_catalog,
    new,
    publication,
    set_workers,
    token,
)
from tests.api.v0_house import FAR_OFF, NOBODY, V0, bind
from tests.control.desk import NOON, SCOPE, every
from tests.control.operators import Operator
from tests.schedule.test_v0 import ONE_SHOT

SOURCE = Path(__file__).parents[2] / "horarium"
RAISED = {"Conflict", "NotFound", "Forbidden", "Unavailable", "Refused", "Rejected"}
ABSENT = "7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11"

REACHED = {}


def reaches(code, status):
    def note(request):
        REACHED[code] = (status, request)
        return request

    return note


def codes_in_source():
    """Each code that a refusal is raised with, and the file that raises it."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        if "client" in path.relative_to(SOURCE).parts:
            continue
        module = ast.parse(path.read_text())
        named = texts_with_a_name(module)
        for node in ast.walk(module):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in RAISED:
                for given in node.args[1 if node.func.id == "Rejected" else 0 :][:1]:
                    code = named.get(given.id) if isinstance(given, ast.Name) else getattr(given, "value", None)
                    if isinstance(code, str):
                        found.setdefault(code, set()).add(path.relative_to(SOURCE).as_posix())
    return found


def texts_with_a_name(module):
    """The texts that a module gives a name, since a code that is compared elsewhere has one."""
    return {
        each.target.id: each.value.value
        for each in module.body
        if isinstance(each, ast.AnnAssign)
        and isinstance(each.target, ast.Name)
        and isinstance(each.value, ast.Constant)
    }


FOR_AGENTS = "raised to agents and their runners, which do not come over this API"
BEFORE = "the API finds the fault itself, before the control plane is asked"
OF_OPERATORS = "reached in tests/api/test_authority.py, with an operator's token"
OF_RUNS = "reached in tests/api/test_outcomes.py, in an agent's signed message"
ON_PAGES = "A page tells it to a person (tests/pages)."
OF_ARCHIVES = "raised at the command line alone, which makes archives (tests/control/test_archiving.py)"
OF_ERASING = "raised at the command line alone, which erases people (tests/control/test_erasing.py)"
ELSEWHERE = {
    "foreign_form": ON_PAGES,
    "form_outdated": ON_PAGES,
    "invalid_form": ON_PAGES,
    "issuer_unavailable": ON_PAGES,
    "principal_left": ON_PAGES,
    "sign_in_refused": ON_PAGES,
    "sign_in_unknown": ON_PAGES,
    "config_invalid": FOR_AGENTS,
    "invalid_agent_id": BEFORE,
    "owes_less": OF_OPERATORS,
    "outcome_conflict": OF_RUNS,
    "agent_missing": FOR_AGENTS,
    "bad_signature": "It is for whoever verifies a message; a caller is told what a stranger is told.",
    "already_begun": FOR_AGENTS,
    "event_not_handled": FOR_AGENTS,
    "input_too_large": FOR_AGENTS,
    "not_admitted": FOR_AGENTS,
    "output_missing": FOR_AGENTS,
    "output_name": FOR_AGENTS,
    "output_too_large": FOR_AGENTS,
    "output_unwritable": FOR_AGENTS,
    "too_early": FOR_AGENTS,
    "invalid_limit": BEFORE,
    "invalid_principal": BEFORE,
    "invalid_schedule_id": BEFORE,
    "invalid_scope": BEFORE,
    "invalid_window": BEFORE,
    "archive_damaged": OF_ARCHIVES,
    "other_environment": OF_ARCHIVES,
    "too_young": OF_ARCHIVES,
    "audit_not_clean": f"{OF_ARCHIVES}; {OF_ERASING}",
    "invalid_tombstone": OF_ERASING,
    "person_declared": OF_ERASING,
    "person_relied_on": OF_ERASING,
}


# Requests that cannot be read


@reaches("invalid_json", 400)
def _(api):
    return api.post("/schedules", content=b"{", headers={"Content-Type": "application/json", "Idempotency-Key": "k"})


@reaches("idempotency_key_missing", 400)
def _(api):
    return api.post("/schedules", publication())


@reaches("invalid_idempotency_key", 422)
def _(api):
    return api.post("/schedules", publication(), key="x" * 201)


@reaches("invalid_cursor", 400)
def _(api):
    return api.get("/occurrences?after=x")


@reaches("unauthenticated", 401)
def _(api):
    return api.get("", by=None)


@reaches("keys_unavailable", 503)
def _(api):
    unreachable = Api(api.catalog, tokens=TokenVerifier(FetchedKeys("http://127.0.0.1:1/")))
    return closing(unreachable, unreachable.get(""))


@reaches("scope_missing", 403)
def _(api):
    return api.get("", by=token(scope="other"))


@reaches("human_session_required", 403)
def _(api):
    return api.change(api.publish(), 0, "enable", by=PROGRAM)


@reaches("path_not_found", 404)
def _(api):
    return api.get("!/v1/nothing")


@reaches("method_not_allowed", 405)
def _(api):
    return api.ask("DELETE", "/schedules")


@reaches("request_timeout", 408)
def _(api):
    async def trickle():
        yield b"{"
        await asyncio.sleep(30)

    limits = Limits(per_principal=UNLIMITED, per_peer=UNLIMITED, body_within=timedelta(seconds=0.05))
    slow = Api(api.catalog, limits=limits)
    headers = {"Content-Type": "application/json", "Idempotency-Key": "k"}
    return closing(slow, slow.post("/schedules", content=trickle(), headers=headers))


@reaches("body_too_large", 413)
def _(api):
    return api.post("/schedules", publication(padding="x" * 300_000), key=new())


@reaches("query_too_long", 414)
def _(api):
    return api.get("/schedules?after=" + "x" * 5_000)


@reaches("path_too_long", 414)
def _(api):
    return api.get("/receipts/" + "x" * 3_000)


@reaches("unsupported_media_type", 415)
def _(api):
    return api.post("/schedules", content=b"{}", headers={"Content-Type": "text/plain", "Idempotency-Key": "k"})


@reaches("invalid_parameter", 422)
def _(api):
    return api.get("/schedules?limit=0&more=1")


@reaches("invalid_schedule", 422)
def _(api):
    return api.post("/schedules", {}, key=new())


@reaches("rate_limited", 429)
def _(api):
    limited = Api(api.catalog, limits=Limits(per_principal=Rate(per_second=1, burst=1), per_peer=UNLIMITED))
    limited.get("")
    return closing(limited, limited.get(""))


@reaches("headers_too_large", 431)
def _(api):
    return api.get("", headers={"X-Padding": "x" * 20_000})


# What is not there


@reaches("environment_not_found", 404)
def _(api):
    return api.get("!/v1/organizations/acme/environments/none")


@reaches("schedule_not_found", 404)
def _(api):
    return api.get(f"/schedules/{ABSENT}")


@reaches("version_not_found", 404)
def _(api):
    return api.get(f"/schedule-versions/{ABSENT}")


@reaches("run_not_found", 404)
def _(api):
    return api.get(f"/runs/{ABSENT}")


@reaches("receipt_not_found", 404)
def _(api):
    return api.get("/receipts/none")


# What the present state forbids


@reaches("revision_conflict", 409)
def _(api):
    return api.post("/schedules", publication(revision=4), key=new())


@reaches("generation_conflict", 409)
def _(api):
    return api.change(api.publish(), 4, "enable")


@reaches("digest_conflict", 409)
def _(api):
    receipt = api.publish()
    return api.change(receipt, 0, "enable", version={**receipt["reference"], "digest": "sha256:" + "0" * 64})


@reaches("version_conflict", 409)
def _(api):
    receipt = api.publish()
    api.change(receipt, 0, "enable")
    return api.change(api.publish(receipt["schedule_id"], revision=1), 1, "pause")


@reaches("already_paused", 409)
def _(api):
    return api.change(api.publish(), 0, "pause")


@reaches("schedule_retired", 409)
def _(api):
    receipt = api.publish()
    api.change(receipt, 0, "retire")
    return api.change(receipt, 1, "enable")


@reaches("runtime_unconfigured", 409)
def _(api):
    receipt = api.publish()
    profile(api, None)
    try:
        return api.change(receipt, 0, "enable")
    finally:
        profile(api, "embedded")


@reaches("input_unreadable", 409)
def _(api):
    receipt = api.publish()
    api.content.readable = False
    try:
        return api.change(receipt, 0, "enable")
    finally:
        api.content.readable = True


@reaches("not_enabled", 409)
def _(api):
    return api.change(api.publish(), 0, "trigger")


@reaches("overlap", 409)
def _(api):
    receipt = api.publish()
    api.change(receipt, 0, "enable")
    api.change(receipt, 1, "trigger")
    return api.change(receipt, 1, "trigger")


@reaches("run_ended", 409)
def _(api):
    receipt = api.publish()
    api.change(receipt, 0, "enable")
    run = api.change(receipt, 1, "trigger").json()["run_id"]
    with api.catalog.writing() as connection:
        connection.execute(
            text(
                "UPDATE entries SET disposition = 'failed', closed_at = first_at WHERE id = (SELECT entry FROM runs WHERE run_id = :run)"
            ),
            {"run": run},
        )
    return api.post(f"/runs/{run}/cancel", {"expected_environment_epoch": 1, "expected_reset_generation": 1}, key=new())


@reaches("idempotency_key_reused", 409)
def _(api):
    key = new()
    api.post("/schedules", publication(), key=key)
    return api.post("/schedules", publication(), key=key)


@reaches("environment_reset", 409)
def _(api):
    return api.post("/schedules", publication(expected_reset_generation=9), key=new())


@reaches("environment_epoch_changed", 409)
def _(api):
    return api.post("/schedules", publication(expected_environment_epoch=9), key=new())


@reaches("binding_missing", 409)
def _(api):
    return V0(api=api).create(NOBODY)


@reaches("not_paused", 409)
def _(api):
    bind(api.catalog)
    caller = V0(api=api)
    return caller.move(caller.created(), "resume")


@reaches("other_contract", 409)
def _(api):
    bind(api.catalog)
    return api.post("/schedules", publication(V0(api=api).created(), revision=1), key=new())


@reaches("run_at_passed", 409)
def _(api):
    bind(api.catalog)
    caller = V0(api=api)
    return caller.update(caller.created(FAR_OFF), ONE_SHOT)


# Cron profiles


def profiled(api, agent_id="support"):
    """The catalog with agent classes, and a profile that is saved."""
    profile_house.furnish_profiles(api.catalog)
    return api.ask("PUT", profile_house.at(agent_id), json=profile_house.submission(), key=new())


@reaches("invalid_profile", 400)
def _(api):
    profiled(api)
    return api.ask("PUT", profile_house.at("support"), json={"config": {"cron": {}}}, key=new())


@reaches("agent_class_not_found", 404)
def _(api):
    return api.get(f"{profile_house.ROOT}/Nobody?{profile_house.HERE}")


@reaches("profile_not_found", 404)
def _(api):
    return api.get(profile_house.at("never-saved"))


@reaches("start_event_not_found", 404)
def _(api):
    profiled(api)
    return api.post(profile_house.at("support", "/UserMessageEvent"), {}, key=new())


@reaches("thread_not_found", 404)
def _(api):
    profiled(api)
    return api.get(profile_house.at("support", "/thread"), by=OPERATOR)


@reaches("agent_class_not_schedulable", 409)
def _(api):
    profiled(api)
    body = {"config": {"cron": profile_house.CRON}}
    return api.ask("PUT", profile_house.at("desk", agent_class="Assistant"), json=body, key=new())


@reaches("binding_mismatch", 409)
def _(api):
    profiled(api)
    run = {**profile_house.RUN, "agent_version": "assistant@1"}
    Operator(api.catalog, SCOPE).declare("binding", "cron:Triage/crossed", run=run)
    return api.ask("PUT", profile_house.at("crossed"), json=profile_house.submission(), key=new())


# Notifications


def tell(api, what, body):
    return api.post(f"/notifications/{what}", body, key=new(), by=OPERATOR)


def endpoint(name):
    return {"name": name, "url": "https://pager.acme.example/", "secret": "HORARIUM_SECRET_PAGER", "on": ["failed"]}


@reaches("endpoint_not_found", 404)
def _(api):
    return tell(api, "test", {"name": "none"})


@reaches("dead_letter_not_found", 404)
def _(api):
    return tell(api, "again", {"id": 2**53 - 1})


@reaches("too_many_endpoints", 409)
def _(api):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(notifications, "MAX_ENDPOINTS", 0)
        return tell(api, "add", endpoint("one-more"))


@reaches("endpoint_stopped", 409)
def _(api):
    tell(api, "add", endpoint("gone"))
    with api.catalog.writing() as connection:
        gone = find_endpoint(connection, SCOPE, "gone")
        stop_endpoint(connection, SCOPE, gone, because="It answered with status 410.", now=NOON)
    return tell(api, "test", {"name": "gone"})


# What does not answer, and what fails


@reaches("execution_unavailable", 503)
def _(api):
    receipt = api.publish()
    set_workers(api.catalog, present=False)
    try:
        return api.change(receipt, 0, "enable")
    finally:
        set_workers(api.catalog, present=True)


@reaches("content_unavailable", 503)
def _(api):
    def fails(_shelf, _reference):
        raise OSError("stale file handle")

    receipt = api.publish()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(api.content), "has_input", fails)
        return api.change(receipt, 0, "enable")


@reaches("changed_meanwhile", 409)
def _(api):
    bind(api.catalog)
    v0 = V0(api=api)
    schedule_id = v0.created(FAR_OFF)
    answers = LocalAuthority.ask

    async def while_others_declare(self, question, **more):
        bind(api.catalog, input=new())
        return await answers(self, question, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalAuthority, "ask", while_others_declare)
        answer = v0.update(schedule_id, FAR_OFF)
    bind(api.catalog)
    return answer


@reaches("authority_unavailable", 503)
def _(api):
    async def gives_none(_self, question, **_):
        return Answers(question=question, unanswered="It is silent.", unanswered_code="authority_unavailable")

    receipt = api.publish()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalAuthority, "ask", gives_none)
        return api.change(receipt, 0, "enable")


@reaches("clock_skew", 503)
def _(api):
    receipt = api.publish()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(house, "let_workers_beat", let_workers_be_ahead)
        return api.change(receipt, 0, "enable")


@reaches("catalog_unavailable", 503)
def _(api):
    return failing(api, lambda *_, **__: busy())


@reaches("commit_lost", 500)
def _(api):
    def lost(*_, **__):
        raise OutcomeUnknown("catalog_unavailable", "The connection to db.internal was lost while it committed.")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operations, "publish", lost)
        return api.post("/schedules", publication(), key=new())


@reaches("misconfigured", 500)
def _(api):
    def broken(*_, **__):
        raise Misconfigured("The catalog's file /srv/secret.db is damaged.")

    return failing(api, broken)


@reaches("internal_error", 500)
def _(api):
    return failing(api, lambda *_, **__: 1 // 0)


def failing(api, function):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "environment", function)
        return api.get("")


def busy():
    raise OperationalError(
        "SELECT 1", {}, sqlite3.OperationalError("database is locked: host=db.internal password=hunter2")
    )


def let_workers_be_ahead(catalog):
    with catalog.writing() as connection:
        connection.execute(update(workers).values(seen_at=datetime.now(UTC) + timedelta(minutes=5)))


def profile(api, value):
    with api.catalog.writing() as connection:
        connection.execute(
            update(environments).where(environments.c.org_id == SCOPE.org_id).values(runtime_profile=value)
        )


def closing(api, answer):
    api.close()
    return answer


def is_problem(answer):
    """Hold an answer against RFC 9457 and our own promises, and return it."""
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert set(body) == {"type", "title", "status", "detail", "code", "next_step", "errors", "request_id"}
    assert body["status"] == answer.status_code
    assert body["title"] == TITLES[answer.status_code]
    assert body["type"] == f"urn:horarium:problem:{body['code']}"
    assert body["detail"].endswith((".", "!", "?", "now."))
    assert body["request_id"] == answer.headers["x-request-id"]
    assert answer.headers["cache-control"] == "no-store"
    for fault in body["errors"]:
        assert {*fault} - {"evidence"} == {"pointer", "code", "detail"}
    return body


@pytest.mark.parametrize("code", REACHED)
def test_a_request_reaches_this_code(api, code):
    status, request = REACHED[code]
    answer = request(api)
    body = is_problem(answer)
    assert (answer.status_code, body["code"]) == (status, code), body
    assert body["next_step"], "a person is told what to do"
    if status in {429, 503}:
        assert int(answer.headers["retry-after"]) >= 1


def test_every_code_in_the_source_is_reached_or_has_a_reason_why_not():
    known = {*REACHED, *ELSEWHERE}
    assert {code: files for code, files in codes_in_source().items() if code not in known} == {}


def test_no_reason_stands_for_a_code_that_is_gone_or_reached():
    found = codes_in_source()
    assert [code for code in ELSEWHERE if code not in found or code in REACHED] == []


@pytest.mark.parametrize("code", ["catalog_unavailable", "commit_lost", "misconfigured", "internal_error"])
def test_what_fails_inside_is_not_told_to_the_caller(api, code):
    answer = REACHED[code][1](api).text
    for secret in ("hunter2", "db.internal", "/srv", "ZeroDivision", "Traceback", "SELECT"):
        assert secret not in answer


def test_a_failure_is_logged_with_its_trace_under_the_request_id(api, capsys):
    answer = REACHED["internal_error"][1](api)
    said = capsys.readouterr().out
    assert "ZeroDivisionError" in said
    assert answer.json()["request_id"] in said


def test_the_log_holds_no_token_and_no_query(api, capsys):
    api.get("/schedules?limit=7")
    api.get("/schedules", by="a.bad.token")
    said = capsys.readouterr().out
    assert f"path={BASE}/schedules" in said
    assert "principal=acme/ada" in said
    for secret in (HUMAN, HUMAN.split(".")[2], "a.bad.token", "limit=7", "Bearer"):
        assert secret not in said


@pytest.mark.parametrize(
    "path", ["!/", "!/v1", "!/v1/organizations", "!/docs", "!/healthz/", "/schedules/", "/nothing", "!//etc"]
)
def test_an_unknown_path_is_a_problem_too(api, path):
    answer = api.get(path)
    assert (answer.status_code, is_problem(answer)["code"]) == (404, "path_not_found")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/schedules", "GET, POST"),
        ("PATCH", "", "GET"),
        ("HEAD", "/schedules", "GET, POST"),
        ("OPTIONS", "/schedule-previews", "POST"),
        ("TRACE", "!/healthz", "GET"),
        ("DELETE", f"/schedules/{ABSENT}", "GET"),
    ],
)
def test_another_method_is_refused_with_those_that_are_allowed(api, method, path, allowed):
    answer = api.ask(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
    if method != "HEAD":
        assert is_problem(answer)["code"] == "method_not_allowed"


def test_an_answer_that_breaks_off_ends_the_connection(api):
    """What was begun as a success cannot be made a problem any more, so it must not look whole."""

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ValueError("too late")

    sent = []

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": []}
    with pytest.raises(ValueError, match="too late"):
        api.run(Guard(app, limits=Limits(), metrics=Metrics())(scope, None, send))
    assert [message["type"] for message in sent] == ["http.response.start"]


def test_a_caller_who_goes_away_in_the_middle_of_a_body_is_no_failure(api, capsys):
    async def receive():
        return next(messages)

    messages = iter([{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}])
    sent = []

    async def send(message):
        sent.append(message)

    headers = {"authorization": f"Bearer {HUMAN}", "content-type": "application/json", "idempotency-key": "k"}
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "path": f"{BASE}/schedules",
        "raw_path": f"{BASE}/schedules".encode(),
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("api.test", 80),
        "scheme": "http",
        "root_path": "",
    }
    api.run(api.app(scope, receive, send))
    assert sent[0]["status"] == 400
    assert "Traceback" not in capsys.readouterr().out


def test_a_catalog_that_is_locked_by_another_process_is_503(tmp_path, monkeypatch):
    monkeypatch.setattr("horarium.catalog.engine.BUSY_TIMEOUT_SECONDS", 0.2)
    catalog = make_catalog(tmp_path)
    api = Api(catalog)
    other = sqlite3.connect(tmp_path / "catalog.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        body, key = publication(configuration=every(60)), new()
        answer = api.post("/schedules", body, key=key)
        assert (answer.status_code, is_problem(answer)["code"]) == (503, "catalog_unavailable")
        other.execute("ROLLBACK")
        assert api.post("/schedules", body, key=key).json()["replayed"] is False
    finally:
        other.close()
        api.close()
        catalog.close()


def test_cancelling_while_temporal_is_down_is_503_and_can_be_repeated(catalog):
    hands = Recorder()
    api = Api(catalog, hands=hands)
    try:
        receipt = api.publish()
        api.change(receipt, 0, "enable")
        run = api.change(receipt, 1, "trigger").json()["run_id"]
        body, key = {"expected_environment_epoch": 1, "expected_reset_generation": 1}, new()
        hands.reachable = False
        answer = api.post(f"/runs/{run}/cancel", body, key=key)
        assert (answer.status_code, is_problem(answer)["code"]) == (503, "execution_unavailable")
        hands.reachable = True
        hands.calls.clear()
        again = api.post(f"/runs/{run}/cancel", body, key=key)
        assert (again.status_code, again.json()["replayed"]) == (202, True)
        assert [what for what, _ in hands.calls] == ["cancel_run"]
        kinds = [each["kind"] for each in api.get(f"/schedules/{receipt['schedule_id']}/events").json()["events"]]
        assert kinds.count("cancel_asked") == 1
    finally:
        api.close()


def test_cancelling_a_run_that_was_not_started_yet_starts_it_so_that_it_learns_of_it(catalog):
    """The record is staged and its workflow has yet to be started: a cancellation that only looks for it would be lost."""
    hands = Recorder(knows_run=False)
    api = Api(catalog, hands=hands)
    try:
        receipt = api.publish()
        api.change(receipt, 0, "enable")
        run = api.change(receipt, 1, "trigger").json()["run_id"]
        hands.calls.clear()
        body = {"expected_environment_epoch": 1, "expected_reset_generation": 1}
        answer = api.post(f"/runs/{run}/cancel", body, key=new())
        assert (answer.status_code, answer.json()["run_id"]) == (202, run)
        assert [what for what, _ in hands.calls] == ["cancel_run", "start_run", "cancel_run"]
        assert {key.run_id for _, key in hands.calls} == {run}
    finally:
        api.close()


def test_the_key_of_one_cancellation_is_not_another_runs(catalog):
    """The bodies are equal: the run is in the path, and belongs to what the key stands for."""
    api = Api(catalog)
    try:
        runs = []
        for _ in range(2):
            receipt = api.publish()
            api.change(receipt, 0, "enable")
            runs.append(api.change(receipt, 1, "trigger").json()["run_id"])
        body, key = {"expected_environment_epoch": 1, "expected_reset_generation": 1}, new()
        assert api.post(f"/runs/{runs[0]}/cancel", body, key=key).status_code == 202
        answer = api.post(f"/runs/{runs[1]}/cancel", body, key=key)
        assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_key_reused")
    finally:
        api.close()
