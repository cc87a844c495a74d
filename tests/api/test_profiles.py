"""Agent classes and their profiles over HTTP (seed 004): listed, saved, run by a start event, read in their thread, deleted."""

import itertools
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import event, select, update

from horarium.api import profile_models as models
from horarium.api.routes import agent_classes
from horarium.catalog.environments import ensure_environment
from horarium.catalog.tables import profiles, runs
from horarium.control import admission, running
from horarium.control.principals import OPERATOR_SCOPE
from horarium.schedule.ceilings import Ceilings
from horarium.schedule.identity import Scope
from horarium.schedule.profiles import thread_id
from tests.api.house import BOTH_SCOPES, HUMAN, OPERATOR, PROGRAM, STRANGER, Api, make_catalog, new, token
from tests.api.profile_house import (
    CRON,
    HERE,
    ROOT,
    RUN,
    Triage,
    at,
    furnish_profiles,
    let_go_offline,
    report,
    submission,
)
from tests.control.desk import SCOPE
from tests.control.operators import Operator

_numbers = itertools.count(1)
EVERY_MINUTE = {**CRON, "minute": "*", "hour": "*", "day_of_week": "*"}


@pytest.fixture(scope="module", autouse=True)
def _furnished(catalog):
    furnish_profiles(catalog)


@pytest.fixture
def agent_id(catalog) -> str:
    """A profile's id of its own, with a binding."""
    name = f"own-{next(_numbers)}"
    Operator(catalog, SCOPE).declare("binding", f"cron:Triage/{name}", run=RUN)
    return name


def save(api, agent_id, document=None, **more):
    return api.ask("PUT", at(agent_id), json=submission() if document is None else document, key=new(), **more)


def trigger(api, agent_id, start_event="CronStartEvent", body=None, **more):
    return api.post(at(agent_id, f"/{start_event}"), {} if body is None else body, key=new(), **more)


def classes(api, query=""):
    answer = api.get(f"{ROOT}?{HERE}{query}")
    assert answer.status_code == 200, answer.text
    return {each["agent_class"]: each for each in answer.json()["agent_classes"]}


def code(answer):
    return answer.status_code, answer.json().get("code")


def faults(answer):
    assert code(answer) == (400, "invalid_profile"), answer.text
    return [(each["pointer"], each["code"]) for each in answer.json()["errors"]]


# Classes


def test_classes_say_what_they_can_do_by_what_they_handle(api):
    found = classes(api)
    assert (found["Triage"]["is_schedulable"], found["Triage"]["is_conversational"]) == (True, False)
    assert (found["Assistant"]["is_schedulable"], found["Assistant"]["is_conversational"]) == (False, True)
    assert found["Triage"]["start_events"] == ["CronStartEvent", "Sweep"]
    assert found["Triage"]["offline_since"] is None
    assert [each["agent_version"] for each in found["Triage"]["agent_versions"]] == ["triage@1"]


def test_a_class_without_a_user_message_is_absent_from_the_conversational_list(api):
    assert "Triage" not in classes(api, "&is_conversational=true")
    assert "Assistant" in classes(api, "&is_conversational=true")
    assert "Assistant" not in classes(api, "&is_schedulable=true")
    assert set(classes(api, "&is_schedulable=true&is_conversational=true")) == set()


def test_the_form_shows_the_schedule_last_and_only_of_a_schedulable_class(api):
    found = {name: api.get(f"{ROOT}/{name}?{HERE}").json() for name in ("Triage", "Assistant")}
    assert [each["name"] for each in found["Triage"]["form"]] == ["folder", "cron"]
    assert list(found["Triage"]["submission_schema"]["properties"]) == ["folder", "cron"]
    assert found["Assistant"]["form"] == []
    assert "cron" not in str(found["Assistant"]["submission_schema"])
    assert list(found["Triage"]["event_schemas"]) == ["CronStartEvent", "Sweep"]
    assert list(found["Triage"]["event_schemas"]["Sweep"]["properties"]) == ["folder"]
    assert found["Triage"]["event_schemas"]["Sweep"]["required"] == ["folder"]


def test_a_class_that_nobody_reported_is_not_found(api):
    for path in (f"{ROOT}/Nobody?{HERE}", f"{ROOT}/Nobody/profiles?{HERE}"):
        assert code(api.get(path)) == (404, "agent_class_not_found")
    answer = api.ask("PUT", at("support", agent_class="Nobody"), json=submission(), key=new())
    assert code(answer) == (404, "agent_class_not_found")


def test_a_class_that_is_offline_says_since_when(api, catalog):
    let_go_offline(catalog, Triage(), ago=timedelta(hours=2))
    try:
        since = datetime.fromisoformat(classes(api)["Triage"]["offline_since"])
        assert timedelta(hours=1) < datetime.now(UTC) - since < timedelta(hours=3)
    finally:
        report(catalog, Triage())


# Saving


def test_a_saved_profile_fires_and_is_read_back_as_it_was_saved(api, agent_id):
    answer = save(api, agent_id)
    assert answer.status_code == 200, answer.text
    receipt = answer.json()
    assert (receipt["operation"], receipt["enabled"], receipt["replayed"]) == ("profile_save", True, False)
    assert receipt["thread_id"] == thread_id("Triage", agent_id)
    profile = api.get(at(agent_id)).json()
    assert (profile["config"], profile["cron"]) == (submission()["config"], CRON)
    assert (profile["state"], profile["tenant_id"], profile["fault"]) == ("enabled", "acme-support", None)
    assert datetime.fromisoformat(profile["next_due"]) > datetime.now(UTC)
    assert (profile["changed_by"], profile["schedule_id"]) == ("ada", receipt["schedule_id"])
    record = api.get(f"/schedules/{receipt['schedule_id']}").json()
    assert record["activation"]["enabled"] is True


def test_saving_the_same_again_stores_no_other_version(api, agent_id):
    first, again = save(api, agent_id).json(), save(api, agent_id).json()
    assert first["reference"] == again["reference"]
    changed = save(api, agent_id, submission(folder="Archive")).json()
    assert changed["reference"]["revision"] == 2


def test_a_profile_without_a_cron_fires_no_more_and_keeps_its_schedule(api, agent_id):
    saved = save(api, agent_id).json()
    api.hands.calls.clear()
    cleared = save(api, agent_id, submission(cron=None)).json()
    assert (cleared["enabled"], cleared["ended_generation"]) == (False, saved["generation"])
    assert api.hands.calls == [("nudge", (saved["generation"], "pause"))]
    profile = api.get(at(agent_id)).json()
    assert (profile["cron"], profile["next_due"]) == (None, None)
    assert api.get(f"/schedules/{saved['schedule_id']}").json()["retired"] is False
    taken_up = save(api, agent_id).json()
    assert (taken_up["schedule_id"], taken_up["enabled"]) == (saved["schedule_id"], True)


def test_a_profile_may_have_no_schedule_at_all(api):
    answer = save(api, "manual-only", {"config": {"folder": "INBOX"}})
    assert answer.status_code == 200, answer.text
    profile = api.get(at("manual-only")).json()
    assert (profile["state"], profile["cron"], profile["schedule_id"]) == ("unscheduled", None, None)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"cron": {**CRON, "minute": "61"}}, "/config/cron/minute"),
        ({"cron": {name: text for name, text in CRON.items() if name != "hour"}}, "/config/cron/hour"),
        ({"cron": {**CRON, "timezone": "Mars/Base"}}, "/config/cron/timezone"),
        ({"cron": {"$formkit": "cron", "name": "cron", "label": "Schedule"}}, "/config/cron/minute"),
        ({"cron": "30 7 * * 1-5"}, "/config/cron"),
        ({"cron": {}}, "/config/cron/minute"),
        ({"folder": 7}, "/config/folder"),
        ({"colour": "red"}, "/config/colour"),
        ({"tenant_id": 7}, "/tenant_id"),
    ],
)
def test_what_is_wrong_is_refused_with_400_at_its_place(api, agent_id, document, expected):
    answer = save(api, agent_id, submission(**document))
    assert expected in [pointer for pointer, _ in faults(answer)]
    assert code(api.get(at(agent_id))) == (404, "profile_not_found")


def test_all_faults_of_a_submission_are_told_at_once(api, agent_id):
    document = {**submission(cron={**CRON, "minute": "x", "month": "13"}, folder=[]), "surprise": 1}
    told = [pointer for pointer, _ in faults(save(api, agent_id, document))]
    assert {"/config/cron/minute", "/config/cron/month", "/config/folder", "/surprise"} <= set(told)


def test_a_class_that_is_not_schedulable_takes_no_cron(api):
    answer = api.ask("PUT", at("desk", agent_class="Assistant"), json={"config": {"cron": CRON}}, key=new())
    assert code(answer) == (409, "agent_class_not_schedulable")


def test_a_profile_without_a_binding_is_refused_and_told_whom_to_ask(api):
    answer = save(api, "unbound")
    assert code(answer) == (409, "binding_missing")
    assert "cron:Triage/unbound" in answer.json()["detail"] + answer.json()["next_step"]


def test_a_binding_of_another_class_is_refused(api, catalog):
    run = {**RUN, "agent_version": "assistant@1"}
    Operator(catalog, SCOPE).declare("binding", "cron:Triage/crossed", run=run)
    assert code(save(api, "crossed")) == (409, "binding_mismatch")


def test_a_schedule_with_more_runs_than_the_deployment_allows_is_refused_at_saving(catalog, agent_id):
    for ceiling, status in ((43_199, 409), (43_200, 200)):
        api = Api(catalog, ceilings=Ceilings(per_profile=ceiling))
        try:
            answer = save(api, agent_id, submission(cron=EVERY_MINUTE))
            assert answer.status_code == status, answer.text
            if status == 409:
                assert code(answer) == (409, "ceiling_exceeded")
                assert "43,199" in answer.json()["errors"][0]["detail"]
                assert api.get(at(agent_id)).status_code == 404
        finally:
            api.close()


def test_saving_asks_about_the_contents_before_the_transaction(api, agent_id):
    # The input is nobody's business who saves it: the run has no user.
    api.content.readable = api.content.writable = False
    try:
        answer = save(api, agent_id)
        assert code(answer) == (409, "output_missing")
        assert [each["code"] for each in answer.json()["errors"]] == ["output_missing"]
    finally:
        api.content.readable = api.content.writable = True
    assert save(api, agent_id).status_code == 200


def test_a_malformed_stored_row_is_told_and_starves_nobody(api, catalog):
    for name in ("sales", "support"):
        assert save(api, name).status_code == 200
    row = (profiles.c.agent_id == "sales") & (profiles.c.org_id == SCOPE.org_id)
    with catalog.writing() as connection:
        connection.execute(update(profiles).where(row).values(config='{"cron": {"minute": "*"}}'))
    page = {each["agent_id"]: each for each in pages(api)}
    assert page["sales"]["fault"]
    assert (page["support"]["fault"], page["support"]["state"]) == (None, "enabled")
    for each in page.values():
        models.Profile.model_validate(each)
    assert save(api, "sales").status_code == 200
    assert api.get(at("sales")).json()["fault"] is None


def pages(api, limit=50):
    found, after = [], ""
    while True:
        answer = api.get(f"{ROOT}/Triage/profiles?{HERE}&limit={limit}{after}").json()
        found += answer["profiles"]
        if answer["next_cursor"] is None:
            return found
        after = f"&after={answer['next_cursor']}"


def test_pages_of_profiles_are_walked_by_their_ids(api):
    for number in range(5):
        save(api, f"page-{number}", submission(cron=None))
    whole = [each["agent_id"] for each in pages(api)]
    assert whole == sorted(set(whole))
    assert [each["agent_id"] for each in pages(api, limit=2)] == whole


# Start events


def test_every_start_event_of_a_class_is_a_route_and_the_user_is_whoever_asks(api, agent_id, catalog):
    save(api, agent_id)
    for start_event, body in (("CronStartEvent", {}), ("Sweep", {"event": {"folder": "Archive"}})):
        api.hands.calls.clear()
        answer = trigger(api, agent_id, start_event, body)
        assert answer.status_code == 201, answer.text
        receipt = answer.json()
        assert receipt["operation"] == "profile_trigger"
        assert [(what, key.run_id) for what, key in api.hands.calls] == [("start_run", receipt["run_id"])]
        run = api.get(f"/runs/{receipt['run_id']}").json()
        assert (run["trigger"], run["triggered_by"]) == (receipt["trigger"], "ada")
    with catalog.reading() as connection:
        stored = connection.execute(select(runs).where(runs.c.run_id == receipt["run_id"])).one()
    assert (stored.start_event, stored.event_data) == ("Sweep", {"folder": "Archive"})


def test_the_manual_trigger_needs_no_body(api, agent_id):
    save(api, agent_id)
    answer = api.ask("POST", at(agent_id, "/CronStartEvent"), key=new())
    assert answer.status_code == 201, answer.text


def test_an_event_that_the_class_does_not_declare_is_not_there(api, agent_id):
    save(api, agent_id)
    for start_event in ("UserMessageEvent", "StartEvent", "cronstartevent", "thread"):
        assert code(trigger(api, agent_id, start_event)) == (404, "start_event_not_found")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"event": {"run": {}, "folder": "INBOX"}}, ["/event/run"]),
        ({"event": []}, ["/event"]),
        ({"events": {}}, ["/events", "/event/folder"]),
        ({"event": {"folder": "x" * 70_000}}, ["/event"]),
        ({"event": {"folder": ["INBOX"]}}, ["/event/folder"]),
        ({"event": {"run": {}}}, ["/event/run", "/event/folder"]),
        ({}, ["/event/folder"]),
        ([], [""]),
    ],
)
def test_an_event_with_faults_is_refused_at_its_place(api, agent_id, body, expected):
    save(api, agent_id)
    assert [pointer for pointer, _ in faults(trigger(api, agent_id, "Sweep", body))] == expected


def test_what_is_not_there_cannot_be_run(api):
    assert code(trigger(api, "never-saved")) == (404, "profile_not_found")


# The thread


def test_a_thread_is_there_from_the_first_run_on_and_is_read_by_operators(api, agent_id):
    save(api, agent_id)
    assert code(api.get(at(agent_id, "/thread"), by=OPERATOR)) == (404, "thread_not_found")
    assert code(api.get(at(agent_id, "/thread"))) == (403, "scope_missing")
    only = token(sub="olga", scope=OPERATOR_SCOPE)
    assert code(api.get(at(agent_id, "/thread"), by=only)) == (404, "thread_not_found")


def test_a_run_leaves_its_events_in_the_thread_a_page_at_a_time(api, agent_id, catalog):
    save(api, agent_id)
    for _ in range(2):
        api.hands.calls.clear()
        trigger(api, agent_id)
        ((_, run),) = api.hands.calls
        with catalog.writing() as connection:
            decided = admission.decide(connection, run, api.content, owner="test", now=datetime.now(UTC))
            assert decided.outcome == "admitted", decided
            running.begin(connection, run.run_id, again=False, now=datetime.now(UTC))
    whole = api.get(at(agent_id, "/thread"), by=OPERATOR).json()
    models.Thread.model_validate(whole)
    assert (whole["thread_id"], whole["members"]) == (thread_id("Triage", agent_id), [])
    assert (whole["tenant_id"], whole["next_cursor"]) == ("acme-support", None)
    assert [(each["kind"], each["data"]["by"]) for each in whole["events"]] == [("run_started", "ada")] * 2
    first = api.get(at(agent_id, "/thread", query="&limit=1"), by=OPERATOR).json()
    rest = api.get(at(agent_id, "/thread", query=f"&after={first['next_cursor']}"), by=OPERATOR).json()
    assert [*first["events"], *rest["events"]] == whole["events"]


def test_classes_are_listed_a_page_at_a_time(api):
    first = api.get(f"{ROOT}?{HERE}&limit=1").json()
    assert [each["agent_class"] for each in first["agent_classes"]] == [first["next_cursor"]]
    rest = api.get(f"{ROOT}?{HERE}&limit=50&after={first['next_cursor']}").json()
    assert rest["next_cursor"] is None
    assert {each["agent_class"] for each in (*first["agent_classes"], *rest["agent_classes"])} == set(classes(api))
    for wrong in ("limit=0", "limit=51", "limit=1.5", "after=%00"):
        assert api.get(f"{ROOT}?{HERE}&{wrong}").status_code == 422


def test_answers_are_what_the_page_promises(api, agent_id):
    receipts = [save(api, agent_id).json(), trigger(api, agent_id).json()]
    models.AgentClasses.model_validate(api.get(f"{ROOT}?{HERE}").json())
    models.AgentClass.model_validate(api.get(f"{ROOT}/Triage?{HERE}").json())
    models.Profiles.model_validate(api.get(f"{ROOT}/Triage/profiles?{HERE}").json())
    models.Profile.model_validate(api.get(at(agent_id)).json())
    receipts += [api.ask("DELETE", at(agent_id, part), key=new()).json() for part in ("/cron", "")]
    assert [each["operation"] for each in receipts] == [
        "profile_save",
        "profile_trigger",
        "profile_clear",
        "profile_delete",
    ]
    told = models.ProfileReceipt.model_fields["operation"].description
    for each in receipts:
        models.ProfileReceipt.model_validate(each)
        assert set(each) <= set(models.ProfileReceipt.model_fields), each["operation"]
        assert f"`{each['operation']}`" in told


# Clearing and deleting


def test_a_cleared_profile_fires_no_more_and_keeps_its_settings(api, agent_id):
    saved = save(api, agent_id).json()
    api.hands.calls.clear()
    key = new()
    cleared = api.ask("DELETE", at(agent_id, "/cron"), key=key)
    assert cleared.status_code == 200, cleared.text
    assert (cleared.json()["enabled"], cleared.json()["ended_generation"]) == (False, saved["generation"])
    assert api.hands.calls == [("nudge", (saved["generation"], "pause"))]
    shown = api.get(at(agent_id)).json()
    assert (shown["state"], shown["config"]) == ("unscheduled", {**submission()["config"], "cron": None})
    assert api.ask("DELETE", at(agent_id, "/cron"), key=key).json()["replayed"] is True
    refused = trigger(api, agent_id)
    assert (code(refused), refused.json()["next_step"]) == (
        (409, "not_enabled"),
        "Save it with a cron, then try again.",
    )
    assert code(api.ask("DELETE", at("never-saved", "/cron"), key=new())) == (404, "profile_not_found")
    by_program = api.ask("DELETE", at(agent_id, "/cron"), key=new(), by=PROGRAM)
    assert code(by_program) == (403, "human_session_required")


def test_a_deleted_profile_fires_no_more_and_is_taken_up_again_when_it_is_saved(api, agent_id):
    saved = save(api, agent_id).json()
    api.hands.calls.clear()
    key = new()
    deleted = api.ask("DELETE", at(agent_id), key=key)
    assert deleted.status_code == 200, deleted.text
    assert (deleted.json()["operation"], deleted.json()["ended_generation"]) == ("profile_delete", saved["generation"])
    assert api.hands.calls == [("nudge", (saved["generation"], "pause"))]
    assert code(api.get(at(agent_id))) == (404, "profile_not_found")
    assert agent_id not in {each["agent_id"] for each in pages(api)}
    record = api.get(f"/schedules/{saved['schedule_id']}").json()
    assert (record["activation"]["enabled"], record["retired"]) == (False, False)
    assert api.ask("DELETE", at(agent_id), key=key).json()["replayed"] is True
    assert code(api.ask("DELETE", at(agent_id), key=new())) == (404, "profile_not_found")
    again = save(api, agent_id).json()
    assert (again["schedule_id"], again["enabled"]) == (saved["schedule_id"], True)


def test_an_id_that_can_name_no_profile_is_refused_at_its_place_when_it_is_saved_and_else_not_there(api):
    for agent_id in ("a%20b", "%C3%A9", "x" * 201):
        answer = save(api, agent_id)
        assert code(answer) == (422, "invalid_parameter")
        assert [each["pointer"] for each in answer.json()["errors"]] == ["/path/agent_id"]
        assert code(api.get(at(agent_id))) == (404, "profile_not_found")


@pytest.mark.parametrize("text", ["%00", "a%00b", "%ff", "%ed%a0%80", "%F0%9F%98%80", "a%20b", "x" * 1_500])
def test_what_can_be_no_name_names_nothing_on_any_database(api, text):
    by = {"by": OPERATOR}
    for path in (f"{ROOT}/{text}?{HERE}", f"{ROOT}/{text}/profiles?{HERE}"):
        assert code(api.get(path, **by)) in {(404, "agent_class_not_found"), (404, "path_not_found")}
    for path in (at(text), at("x", agent_class=text)):
        assert code(api.get(path, **by)) in {(404, "profile_not_found"), (404, "path_not_found")}
        assert api.ask("DELETE", path, key=new()).status_code == 404
    assert api.get(at(text, "/thread"), **by).status_code == 404
    assert api.post(at(text, "/CronStartEvent"), {}, key=new()).status_code in {404, 405}
    assert code(api.post(at("support", f"/{text}"), {}, key=new())) in {
        (404, "start_event_not_found"),
        (404, "profile_not_found"),
        (404, "path_not_found"),
        (405, "method_not_allowed"),
    }
    listed = api.get(f"{ROOT}/Triage/profiles?{HERE}&after={text}")
    assert listed.status_code == 422


# Who may


def test_changes_need_a_person_and_reads_do_not(api, agent_id):
    for answer in (
        save(api, agent_id, by=PROGRAM),
        trigger(api, agent_id, by=PROGRAM),
        api.ask("DELETE", at(agent_id), key=new(), by=PROGRAM),
    ):
        assert code(answer) == (403, "human_session_required")
    save(api, agent_id)
    for path in (f"{ROOT}?{HERE}", f"{ROOT}/Triage?{HERE}", f"{ROOT}/Triage/profiles?{HERE}", at(agent_id)):
        assert api.get(path, by=PROGRAM).status_code == 200


ROUTES = sorted((method, route.path) for route in agent_classes.router.routes for method in route.methods)


def ask(api, method, path, environment_id, **more):
    names = {"agent_class": "Triage", "agent_id": "support", "start_event": "CronStartEvent"}
    body = {"json": submission()} if method == "PUT" else {}
    return api.ask(method, f"!{path.format(**names)}?environment_id={environment_id}", **body, **more)


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_another_organizations_environment_is_told_of_as_one_that_is_not_there(api, catalog, method, path):
    with catalog.writing() as connection:
        ensure_environment(
            connection, Scope(org_id="globex", environment_id="theirs"), mode="simulation", runtime_profile=None
        )
    by = token(sub="olga", scope=BOTH_SCOPES)
    theirs, none = (ask(api, method, path, each, key=new(), by=by) for each in ("theirs", "nowhere"))
    assert code(theirs) == code(none) == (404, "environment_not_found")
    assert theirs.json()["detail"].replace("theirs", "nowhere") == none.json()["detail"]


@pytest.mark.parametrize(("method", "path"), [each for each in ROUTES if each[0] != "GET"])
def test_every_change_needs_a_key(api, method, path):
    assert code(ask(api, method, path, "test")) == (400, "idempotency_key_missing")


def test_the_organization_is_that_of_the_token(api, agent_id):
    """Both have an environment `test`; only one has the class."""
    save(api, agent_id)
    assert api.get(f"{ROOT}?{HERE}", by=STRANGER).json() == {"agent_classes": [], "next_cursor": None}
    assert api.get(at(agent_id), by=STRANGER).status_code == 404
    assert api.get(at(agent_id), by=HUMAN).status_code == 200


def test_the_same_key_does_the_same_thing_once_and_has_a_receipt(api, agent_id):
    save(api, agent_id)
    key = new()
    first = api.post(at(agent_id, "/CronStartEvent"), {}, key=key).json()
    again = api.post(at(agent_id, "/CronStartEvent"), {}, key=key).json()
    assert (first["replayed"], again["replayed"], again["run_id"]) == (False, True, first["run_id"])
    assert api.get(f"/receipts/{key}").json()["receipt_id"] == first["receipt_id"]
    # Another event, or another profile, is another request.
    assert code(api.post(at(agent_id, "/Sweep"), {}, key=key)) == (409, "idempotency_key_reused")
    assert code(api.post(at("support", "/CronStartEvent"), {}, key=key)) in {
        (409, "idempotency_key_reused"),
        (404, "profile_not_found"),
    }


def test_a_page_of_fifty_profiles_asks_as_much_as_one_of_one(tmp_path):
    """Whatever a page holds, it is asked for in a fixed number of queries."""
    catalog = make_catalog(tmp_path)
    furnish_profiles(catalog)
    for number in range(30):
        Operator(catalog, SCOPE).declare("binding", f"cron:Triage/n-{number:02}", run=RUN)
    api = Api(catalog)
    asked = []
    try:
        for number in range(30):
            assert save(api, f"n-{number:02}").status_code == 200
        event.listen(catalog.engine, "before_cursor_execute", lambda *found: asked.append(found[2]))
        counts = []
        for limit in (1, 30):
            asked.clear()
            assert len(api.get(f"{ROOT}/Triage/profiles?{HERE}&limit={limit}").json()["profiles"]) == limit
            counts.append(len(asked))
        assert counts[0] == counts[1]
    finally:
        api.close()
        catalog.close()
