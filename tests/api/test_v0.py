"""Scheduler v0's routes: what they take, answer and refuse, whose they are, and what Temporal is told meanwhile."""

import json

import pytest

from horarium.api import models, v0_models
from horarium.api.routes import v0 as routes
from horarium.catalog.environments import ensure_environment
from horarium.control import v0
from horarium.schedule.identity import Scope
from horarium.schedule.v0 import CONTRACT
from tests.api.house import HUMAN, PROGRAM, STRANGER, new, publication, token
from tests.api.v0_house import BOUND, FAR_OFF, NOBODY, V0, bind, code, faults
from tests.control.caller import refusing
from tests.control.desk import every
from tests.schedule.test_v0 import CRON, ONE_SHOT

MINUTES = {"type": "interval", "spec": {"every_seconds": 60}, "target": CRON["target"]}


@pytest.fixture
def caller(api):
    bind(api.catalog)
    api.hands.calls.clear()
    return V0(api=api)


class TestALife:
    def test_it_is_created_updated_paused_resumed_and_disabled_with_a_receipt_each(self, caller):
        receipts = [caller.create(CRON)]
        schedule_id = receipts[0].json()["schedule_id"]
        receipts.append(caller.update(schedule_id, MINUTES))
        receipts += [caller.move(schedule_id, what) for what in ("pause", "resume", "disable")]
        assert [each.status_code for each in receipts] == [201] * 5
        documents = [each.json() for each in receipts]
        assert [each["operation"] for each in documents] == [
            "v0_create",
            "v0_update",
            "v0_pause",
            "v0_resume",
            "v0_disable",
        ]
        assert [each["generation"] for each in documents] == [1, 2, 3, 4, 5]
        assert [each["ended_generation"] for each in documents] == [None, 1, 2, 3, 4]
        assert [each["enabled"] for each in documents] == [True, True, False, True, False]
        assert [each["reference"]["revision"] for each in documents] == [1, 2, 2, 2, 2]
        assert caller.told(schedule_id) == [
            "SCHEDULE_CREATED",
            "SCHEDULE_UPDATED",
            "SCHEDULE_PAUSED",
            "SCHEDULE_RESUMED",
            "SCHEDULE_DISABLED",
        ]

    def test_temporal_is_told_of_what_each_change_ended(self, caller):
        schedule_id = caller.created()
        assert caller.api.hands.calls == []
        caller.update(schedule_id, MINUTES)
        for what in ("pause", "resume", "disable"):
            caller.move(schedule_id, what)
        assert caller.api.hands.calls == [("nudge", (number, "pause")) for number in (1, 2, 3)] + [
            ("nudge", (4, "retire"))
        ]

    def test_its_state_is_read_after_each(self, caller):
        schedule_id = caller.created()
        states = [caller.get(schedule_id)["state"]]
        for what in ("pause", "resume", "disable"):
            caller.move(schedule_id, what)
            states.append(caller.get(schedule_id)["state"])
        assert states == ["enabled", "paused", "enabled", "disabled"]

    def test_an_update_of_a_paused_one_ends_nothing(self, caller):
        schedule_id = caller.created()
        caller.move(schedule_id, "pause")
        caller.api.hands.calls.clear()
        receipt = caller.update(schedule_id, MINUTES).json()
        assert (receipt["enabled"], receipt["ended_generation"], receipt["generation"]) == (False, None, 2)
        assert caller.api.hands.calls == []
        assert caller.get(schedule_id)["schedule"] == MINUTES

    def test_what_needs_to_know_of_contents_asks_for_them(self, caller):
        schedule_id = caller.created()
        caller.move(schedule_id, "pause")
        caller.api.content.readable = False
        try:
            answers = [caller.create(CRON), caller.move(schedule_id, "resume")]
        finally:
            caller.api.content.readable = True
        assert [code(each) for each in answers] == [(409, "input_unreadable")] * 2
        assert answers[0].json()["errors"][0]["evidence"]["input"] == BOUND["input"]

    def test_it_is_one_of_the_schedules_that_every_other_route_knows(self, caller):
        schedule_id = caller.created()
        record = caller.api.get(f"/schedules/{schedule_id}").json()
        assert (record["configuration"]["contract"], record["configuration"]["source"]) == (CONTRACT, CRON)
        assert record["reference"] == caller.get(schedule_id)["reference"]


class TestReceipts:
    @pytest.mark.parametrize("what", ["create", "update", "pause", "resume", "disable"])
    def test_the_same_key_does_it_once_and_is_told_the_same_receipt(self, caller, what):
        schedule_id, key = caller.created(), new()
        if what == "resume":
            caller.move(schedule_id, "pause")
        acts = {
            "create": lambda: caller.create(CRON, key=key),
            "update": lambda: caller.update(schedule_id, MINUTES, key=key),
        }
        act = acts.get(what, lambda: caller.move(schedule_id, what, key=key))
        first, again = act().json(), act().json()
        assert (first.pop("replayed"), again.pop("replayed")) == (False, True)
        assert first == again
        found = caller.api.get(f"/receipts/{key}").json()
        assert {**first, "replayed": True} == found

    @pytest.mark.parametrize("what", ["create", "update"])
    def test_so_it_is_where_this_release_would_refuse_the_document(self, caller, monkeypatch, what):
        schedule_id, key = caller.created(), new()

        def act(key):
            return caller.create(CRON, key=key) if what == "create" else caller.update(schedule_id, MINUTES, key=key)

        first = act(key).json()
        monkeypatch.setattr(routes, "parse_v0", refusing)
        assert act(key).json() == {**first, "replayed": True}
        assert act(new()).status_code == 422

    def test_the_key_of_one_change_is_not_anothers(self, caller):
        schedule_id, other, key = caller.created(), caller.created(), new()
        assert caller.move(schedule_id, "pause", key=key).status_code == 201
        for answer in (
            caller.move(other, "pause", key=key),
            caller.move(schedule_id, "resume", key=key),
            caller.create(CRON, key=key),
        ):
            assert code(answer) == (409, "idempotency_key_reused")

    def test_a_refused_request_uses_no_key_up_and_stores_nothing(self, caller):
        key, before = new(), len(listed(caller))
        assert code(caller.create(NOBODY, key=key)) == (409, "binding_missing")
        assert faults(caller.create({**CRON, "type": "daily"}, key=key))
        assert len(listed(caller)) == before
        assert caller.create(CRON, key=key).status_code == 201

    def test_real_receipts_are_what_the_page_promises(self, caller):
        receipts = [caller.create(CRON).json()]
        schedule_id = receipts[0]["schedule_id"]
        receipts.append(caller.update(schedule_id, MINUTES).json())
        receipts += [caller.move(schedule_id, what).json() for what in ("pause", "resume", "disable")]
        told = models.Receipt.model_fields["operation"].description
        for each in receipts:
            models.Receipt.model_validate(each)
            assert set(each) <= set(models.Receipt.model_fields), each["operation"]
            assert f"`{each['operation']}`" in told


class TestBodies:
    @pytest.mark.parametrize(
        "body", [{}, {"json": {}}, {"content": b" { } ", "headers": {"Content-Type": "application/json"}}]
    )
    def test_a_change_that_the_path_says_brings_no_body_or_an_empty_one(self, caller, body):
        assert caller.move(caller.created(), "pause", **body).status_code == 201

    @pytest.mark.parametrize("what", ["pause", "resume", "disable"])
    @pytest.mark.parametrize(
        ("body", "places"),
        [
            ({"a": 1, "b/c": 2}, [("/a", "unknown_field"), ("/b~1c", "unknown_field")]),
            ([], [("", "not_an_object")]),
            (None, [("", "not_an_object")]),
            ("x", [("", "not_an_object")]),
        ],
    )
    def test_any_other_is_refused_with_all_of_it_and_changes_nothing(self, caller, what, body, places):
        schedule_id = caller.created()
        content = {"content": json.dumps(body), "headers": {"Content-Type": "application/json"}}
        assert faults(caller.move(schedule_id, what, **content)) == places
        assert caller.get(schedule_id)["state"] == "enabled"

    def test_a_body_that_comes_in_parts_is_read(self, caller):
        async def parts():
            yield b'{"surprise"'
            yield b": true}"

        schedule_id = caller.created()
        headers = {"Content-Type": "application/json"}
        assert faults(caller.move(schedule_id, "pause", content=parts(), headers=headers)) == [
            ("/surprise", "unknown_field")
        ]

    def test_one_that_is_no_json_is_refused_as_everywhere(self, caller):
        schedule_id = caller.created()
        as_json = {"headers": {"Content-Type": "application/json"}}
        assert code(caller.move(schedule_id, "pause", content=b"{", **as_json)) == (400, "invalid_json")
        assert code(caller.move(schedule_id, "pause", content=b"{}", headers={"Content-Type": "text/plain"})) == (
            415,
            "unsupported_media_type",
        )

    def test_a_large_document_is_read_before_the_transaction_and_never_in_it(self, caller, monkeypatch):
        monkeypatch.setattr(v0, "parse_v0", None)
        many = {f"field {number}": number for number in range(2_000)}
        places = faults(caller.create({**CRON, **many}))
        assert (len(places), places[-1]) == (200, ("", "more_faults"))


class TestTheEnvironment:
    """The organization is that of the token; the environment stands in the query."""

    def test_it_is_required_and_the_refusal_says_where_and_what(self, caller):
        answer = caller.api.get("!/v0/schedules")
        assert code(answer) == (422, "invalid_parameter")
        assert [(each["pointer"], each["code"]) for each in answer.json()["errors"]] == [
            ("/query/environment_id", "missing_parameter")
        ]
        assert "environment_id" in answer.json()["detail"]

    def test_it_is_named_once(self, caller):
        answer = caller.api.get("!/v0/schedules?environment_id=test&environment_id=production")
        assert code(answer) == (422, "invalid_parameter")

    @pytest.mark.parametrize("name", ["nowhere", "", "TEST", "..", "test%00", "a" * 2_000, "%ff"])
    def test_one_that_is_not_there_is_404(self, caller, name):
        for answer in (
            V0(api=caller.api, environment=name).ask("GET", ""),
            V0(api=caller.api, environment=name).create(CRON),
        ):
            assert code(answer) == (404, "environment_not_found")

    def test_one_of_another_organization_is_404(self, caller):
        with caller.api.catalog.writing() as connection:
            scope = Scope(org_id="globex", environment_id="theirs")
            ensure_environment(connection, scope, mode="simulation", runtime_profile="embedded")
        assert V0(api=caller.api, by=STRANGER, environment="theirs").ask("GET", "").status_code == 200
        assert code(V0(api=caller.api, environment="theirs").ask("GET", "")) == (404, "environment_not_found")

    def test_a_schedule_of_another_environment_of_ours_is_not_there(self, caller):
        with caller.api.catalog.writing() as connection:
            scope = Scope(org_id="acme", environment_id="beside")
            ensure_environment(connection, scope, mode="simulation", runtime_profile="embedded")
        schedule_id = caller.created()
        beside = V0(api=caller.api, environment="beside")
        for answer in (
            beside.ask("GET", f"/{schedule_id}"),
            beside.ask("GET", f"/{schedule_id}/events"),
            beside.move(schedule_id, "pause"),
        ):
            assert code(answer) == (404, "schedule_not_found")
        assert listed(beside) == []
        assert caller.get(schedule_id)["state"] == "enabled"

    def test_other_parameters_are_refused(self, caller):
        answer = caller.ask("GET", "?limit=0&more=1", also=True)
        places = [each["pointer"] for each in answer.json()["errors"]]
        assert (answer.status_code, places) == (422, ["/query/limit", "/query/more"])
        answer = caller.ask("POST", "?dry_run=true", also=True, json=CRON, key=new())
        assert code(answer) == (422, "invalid_parameter")


class TestWhoMay:
    def test_a_key_reads_and_changes_nothing(self, caller):
        schedule_id = caller.created()
        program = V0(api=caller.api, by=PROGRAM)
        for path in ("", f"/{schedule_id}", f"/{schedule_id}/events"):
            assert program.ask("GET", path).status_code == 200
        for answer in (
            program.create(CRON),
            program.update(schedule_id, CRON),
            *(program.move(schedule_id, what) for what in ("pause", "resume", "disable")),
        ):
            assert code(answer) == (403, "human_session_required")
        assert caller.get(schedule_id)["generation"] == 1

    @pytest.mark.parametrize(
        ("by", "refused"), [(None, (401, "unauthenticated")), (token(scope="openid"), (403, "scope_missing"))]
    )
    def test_nobody_else_does_either(self, caller, by, refused):
        schedule_id = caller.created()
        nobody = V0(api=caller.api, by=by)
        for answer in (
            nobody.ask("GET", ""),
            nobody.ask("GET", f"/{schedule_id}"),
            nobody.ask("GET", f"/{schedule_id}/events"),
            nobody.create(CRON),
            nobody.update(schedule_id, CRON),
            *(nobody.move(schedule_id, what) for what in ("pause", "resume", "disable")),
        ):
            assert code(answer) == refused

    def test_without_a_token_nothing_is_told_of_the_query(self, caller):
        assert code(caller.api.get("!/v0/schedules?more=1", by=None)) == (401, "unauthenticated")

    def test_a_stranger_who_guesses_the_id_finds_nothing(self, caller):
        schedule_id = caller.created()
        stranger = V0(api=caller.api, by=STRANGER)
        for answer in (
            stranger.ask("GET", f"/{schedule_id}"),
            stranger.ask("GET", f"/{schedule_id}/events"),
            stranger.update(schedule_id, CRON),
            *(stranger.move(schedule_id, what) for what in ("pause", "resume", "disable")),
        ):
            assert code(answer) == (404, "schedule_not_found")
        assert schedule_id not in str(listed(stranger))
        assert caller.get(schedule_id)["generation"] == 1

    def test_every_change_needs_a_key(self, caller):
        schedule_id = caller.created()
        for method, path, parts in (
            ("POST", "", {"json": CRON}),
            ("PUT", f"/{schedule_id}", {"json": CRON}),
            *(("POST", f"/{schedule_id}/{what}", {}) for what in ("pause", "resume", "disable")),
        ):
            assert code(caller.ask(method, path, **parts)) == (400, "idempotency_key_missing")


class TestReading:
    def test_pages_of_the_directory_are_walked_by_uuid(self, caller):
        made = {caller.created() for _ in range(5)}
        found = listed(caller, limit=2)
        ids = [each["schedule_id"] for each in found]
        assert (made <= set(ids), ids) == (True, sorted(set(ids)))
        assert len(caller.ask("GET", "?limit=1", also=True).json()["schedules"]) == 1
        by_id = {each["schedule_id"]: each for each in found}
        for each in made:
            assert by_id[each] == caller.get(each)

    def test_what_the_canonical_contract_made_is_not_there(self, caller):
        schedule_id = caller.api.publish()["schedule_id"]
        assert code(caller.ask("GET", f"/{schedule_id}")) == (404, "schedule_not_found")
        assert schedule_id not in {each["schedule_id"] for each in listed(caller)}
        for what in ("pause", "resume", "disable"):
            assert code(caller.move(schedule_id, what)) == (404, "schedule_not_found")

    @pytest.mark.parametrize("path", ["/x", "/7b0c7c3e4f0e4f539f0b0a5d2f2d8a11", "/%00", "/x/events"])
    def test_an_id_that_is_no_uuid_names_nothing(self, caller, path):
        assert code(caller.ask("GET", path)) == (404, "schedule_not_found")

    def test_an_id_in_capitals_is_the_same_id(self, caller):
        schedule_id = caller.created()
        assert caller.get(schedule_id.upper())["schedule_id"] == schedule_id

    def test_events_come_in_pages(self, caller):
        schedule_id = caller.created()
        caller.move(schedule_id, "pause")
        whole = caller.ask("GET", f"/{schedule_id}/events").json()
        assert whole["next_cursor"] is None
        kinds = [each["kind"] for each in whole["events"]]
        assert kinds == ["published", "SCHEDULE_CREATED", "enabled", "paused", "SCHEDULE_PAUSED"]
        first = caller.ask("GET", f"/{schedule_id}/events?limit=2", also=True).json()
        rest = caller.ask("GET", f"/{schedule_id}/events?after={first['next_cursor']}", also=True).json()
        assert (first["events"], rest["events"]) == (whole["events"][:2], whole["events"][2:])

    def test_real_answers_are_what_the_page_promises(self, caller):
        schedule_id = caller.created()
        caller.created(ONE_SHOT)
        v0_models.V0Schedule.model_validate(caller.get(schedule_id))
        v0_models.V0Directory.model_validate(caller.ask("GET", "").json())
        models.Events.model_validate(caller.ask("GET", f"/{schedule_id}/events").json())


class TestConflicts:
    def test_what_is_enabled_is_not_resumed_and_what_is_paused_not_paused(self, caller):
        schedule_id = caller.created()
        assert code(caller.move(schedule_id, "resume")) == (409, "not_paused")
        caller.move(schedule_id, "pause")
        assert code(caller.move(schedule_id, "pause")) == (409, "already_paused")

    def test_what_is_disabled_is_so_for_good(self, caller):
        schedule_id = caller.created()
        caller.move(schedule_id, "disable")
        for answer in (
            caller.update(schedule_id, CRON),
            *(caller.move(schedule_id, what) for what in ("pause", "resume", "disable")),
        ):
            assert code(answer) == (409, "schedule_retired")

    def test_an_instant_that_has_been_answered_for_is_refused(self, caller):
        schedule_id = caller.created(FAR_OFF)
        assert code(caller.update(schedule_id, ONE_SHOT)) == (409, "run_at_passed")
        assert caller.get(schedule_id)["schedule"] == FAR_OFF

    def test_the_canonical_contract_publishes_nothing_over_it(self, caller):
        schedule_id = caller.created()
        body = publication(schedule_id, revision=1, configuration=every(60))
        assert code(caller.api.post("/schedules", body, key=new())) == (409, "other_contract")
        assert caller.get(schedule_id)["reference"]["revision"] == 1


def listed(caller, *, limit=50):
    """All pages of the directory."""
    found, after = [], ""
    while True:
        page = caller.ask("GET", f"?limit={limit}{after}", also=True).json()
        found += page["schedules"]
        if page["next_cursor"] is None:
            return found
        after = f"&after={page['next_cursor']}"


def test_while_temporal_does_not_answer_everything_is_stored_all_the_same(api):
    bind(api.catalog)
    api.hands.reachable = False
    try:
        caller = V0(api=api, by=HUMAN)
        schedule_id = caller.created()
        assert caller.move(schedule_id, "pause").status_code == 201
    finally:
        api.hands.reachable = True
    assert caller.get(schedule_id)["state"] == "paused"
