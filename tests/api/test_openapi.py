"""The OpenAPI page: whole, honest, and with an example of everything that is sent and answered."""

import json

import pytest
from jsonschema_rs import Draft202012Validator

from horarium.api import examples, models, openapi, v0_examples
from horarium.api.routes.previews import _asked
from horarium.control.cancellation import CancelRequest
from horarium.control.requests import ActivateRequest, RetireRequest, TriggerRequest, read_publication, read_request
from tests.api.house import new, publication
from tests.control.desk import NOON
from tests.schedule.test_v0 import CRON, ONE_SHOT


@pytest.fixture(scope="module")
def page(api):
    """As a caller gets it, that is through JSON."""
    return json.loads(json.dumps(api.app.openapi()))


def operations(page):
    return [
        (f"{method.upper()} {path}", operation)
        for path, methods in page["paths"].items()
        for method, operation in methods.items()
    ]


def validate(page, schema, value):
    whole = {"$ref": "#/schema", "schema": schema, "components": page["components"]}
    faults = [f"{error.instance_path}: {error.message}" for error in Draft202012Validator(whole).iter_errors(value)]
    assert faults == []


def test_the_page_is_openapi_3_1_and_is_served(api, page):
    answer = api.get("!/openapi.json", by=None)
    assert answer.json() == page
    assert page["openapi"] == "3.1.0"
    assert len(operations(page)) >= 20


def test_the_cautions_of_the_contract_stand_where_a_caller_reads(page):
    said = " ".join(page["info"]["description"].split())
    for caution in (
        "no proof that an installed worker has ever completed a scheduled run",
        "It is not the present state",
        "Idempotency-Key until the outcome is known",
        "No preview of occurrences is implied by a record",
        "only after confirming the same account and environment",
        "do not enable automatically after a recovered publication",
        "A reset or a revoked authority can refuse recovery",
        "a failed one included. It is not proof of a successful execution",
    ):
        assert caution in said, caution
    by_id = {operation["operationId"]: " ".join(operation["description"].split()) for _, operation in operations(page)}
    assert "no proof that an installed worker has ever completed" in by_id["get_environment"]
    assert "No preview of occurrences is implied" in by_id["get_schedule"]
    assert "No preview of occurrences is implied" in by_id["list_schedules"]
    assert "the activation may have changed since" in by_id["get_receipt"]
    assert "It does not enable execution" in by_id["publish_schedule"]
    assert "Do not enable automatically after a recovered publication" in by_id["set_activation"]
    assert "cannot revive" in by_id["retire_schedule"]
    schemas = page["components"]["schemas"]
    assert "It is not the present state" in " ".join(schemas["Receipt"]["description"].split())
    runtime = schemas["Runtime"]["properties"]
    assert "not proof of a successful" in runtime["observed_at"]["description"]
    told = runtime["state"]["description"]
    assert [state for state in runtime["state"]["enum"] if f"`{state}`:" not in told] == []
    assert "each occurrence still needs authority of its own" in told
    assert "it does not resume by itself, and a new activation generation is required" in told


def test_every_operation_has_a_summary_a_description_and_a_name_of_its_own(page):
    names = [operation["operationId"] for _, operation in operations(page)]
    assert len(names) == len(set(names))
    assert [name for name, operation in operations(page) if not operation.get("description")] == []


def test_every_answer_has_an_example_that_its_schema_accepts(page):
    for name, operation in operations(page):
        successes = [each for status, each in operation["responses"].items() if status.startswith("2")]
        assert len(successes) == 1, name
        ((kind, content),) = successes[0]["content"].items()
        assert "example" in content, name
        if kind == "application/json":
            validate(page, content["schema"], content["example"])


def test_every_body_has_an_example_that_its_schema_accepts(page):
    bodies = [operation["requestBody"] for _, operation in operations(page) if "requestBody" in operation]
    assert len(bodies) == len([name for name, _ in operations(page) if name.startswith(("POST", "PUT"))])
    for body in bodies:
        content = body["content"]["application/json"]
        validate(page, content["schema"], content["example"])


def test_the_examples_of_bodies_are_what_the_control_plane_reads():
    assert read_publication(examples.PUBLISH).configuration.name == "Daily review"
    assert read_request(ActivateRequest, examples.SET_ACTIVATION).enabled is True
    assert read_request(RetireRequest, examples.RETIRE).expected_generation == 1
    assert read_request(TriggerRequest, examples.TRIGGER).overlap is None
    assert read_request(CancelRequest, examples.CANCEL).expected_environment_epoch == 1
    assert _asked(examples.PREVIEW_REQUEST, NOON).limit == 2


def test_the_examples_of_scheduler_v0_are_those_of_its_contract(page):
    documents = [v0_examples.ONE_SHOT, v0_examples.CRON]
    assert documents == [ONE_SHOT, CRON]
    assert page["components"]["schemas"]["V0ScheduleDocument"]["examples"] == documents
    shown = [operation["requestBody"]["content"]["application/json"]["example"] for operation in takers(page)]
    assert all(each in shown for each in documents)


def takers(page):
    """The operations that take a document of scheduler v0."""
    bodies = ((name, operation) for name, operation in operations(page) if "requestBody" in operation)
    return [operation for name, operation in bodies if "/v0/schedules" in name and operation["requestBody"]["required"]]


def test_a_body_that_may_be_left_out_says_so(page):
    optional = [name for name, each in operations(page) if not each.get("requestBody", {"required": True})["required"]]
    assert optional == [
        *(f"POST /v0/schedules/{{schedule_id}}/{what}" for what in ("pause", "resume", "disable")),
        "POST /v1/agent-classes/{agent_class}/profiles/{agent_id}/{start_event}",
    ]


def test_every_refusal_that_is_described_is_a_problem(page):
    for name, operation in operations(page):
        for status, answer in operation["responses"].items():
            if not status.startswith("2"):
                assert list(answer["content"]) == ["application/problem+json"], (name, status)
                assert answer["content"]["application/problem+json"]["schema"] == {
                    "$ref": "#/components/schemas/Problem"
                }


def test_what_needs_a_token_or_a_key_says_so(page):
    for name, operation in operations(page):
        method, path = name.split()
        assert ("security" in operation) == path.startswith(("/v0/", "/v1/")), name
        headers = {each["name"]: each["required"] for each in operation.get("parameters", []) if each["in"] == "header"}
        changes = method in {"POST", "PUT", "DELETE"} and "previews" not in path
        needed = {"Idempotency-Key": True} if changes else {}
        if path.endswith("/outcome"):
            # The run is the key: it has one outcome.
            needed = {"webhook-id": True, "webhook-timestamp": True}
        assert headers == needed, name


def test_no_schema_is_left_over_and_none_is_missing(page):
    text = json.dumps(page)
    named = set(page["components"]["schemas"])
    assert {name for name in named if f'"#/components/schemas/{name}"' not in text} == set()
    assert "HTTPValidationError" not in text
    assert "#/$defs" not in text


def test_real_answers_are_what_the_page_promises(api, page):
    """Of a schedule with a life: answers are sent as they are, so they are held against their schemas here."""
    receipt = api.publish()
    api.change(receipt, 0, "enable")
    run = api.change(receipt, 1, "trigger").json()["run_id"]
    schedule_id = receipt["schedule_id"]
    promised = {
        "": models.Environment,
        "/schedules": models.Directory,
        f"/schedules/{schedule_id}": models.Record,
        f"/schedule-versions/{receipt['resource_id']}": models.Record,
        f"/schedules/{schedule_id}/occurrences": models.Occurrences,
        f"/schedules/{schedule_id}/events": models.Events,
        "/occurrences": models.EnvironmentOccurrences,
        "/runs": models.Runs,
        f"/runs/{run}": models.Run,
        "!/readyz": models.Ready,
        "!/version": models.Version,
        "!/healthz": models.Healthy,
    }
    for path, model in promised.items():
        model.model_validate(api.get(path).json())
    preview = api.post("/schedule-previews", {"spec": publication()["configuration"]})
    models.Preview.model_validate(preview.json())
    refused = api.post("/schedules", publication(), key=new(), by=None)
    models.Problem.model_validate(refused.json())
    models.Receipt.model_validate(receipt)
    assert page["components"]["schemas"]["Receipt"]["additionalProperties"] is True


def test_the_receipt_of_every_operation_is_described_whole(api):
    receipt = api.publish()
    receipts = [receipt, *(api.change(receipt, each, what).json() for each, what in enumerate(("enable", "trigger")))]
    body = {"expected_environment_epoch": 1, "expected_reset_generation": 1}
    receipts.append(api.post(f"/runs/{receipts[-1]['run_id']}/cancel", body, key=new()).json())
    receipts += [api.change(receipt, 1, "pause").json(), api.change(receipt, 2, "retire").json()]
    operations = [each["operation"] for each in receipts]
    assert operations == ["publish", "enable", "trigger", "cancel_run", "pause", "retire"]
    told = models.Receipt.model_fields["operation"].description
    for each in receipts:
        models.Receipt.model_validate(each)
        assert set(each) <= set(models.Receipt.model_fields), each["operation"]
        assert f"`{each['operation']}`" in told


def test_the_page_is_made_once(api):
    assert api.app.openapi() is api.app.openapi()
    assert openapi.DESCRIPTION in api.app.openapi()["info"]["description"]
