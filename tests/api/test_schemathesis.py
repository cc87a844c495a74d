"""Every operation of the OpenAPI page, with inputs that it allows and inputs that it does not, against all checks.

Driven by hand: the plugin of schemathesis 4.32 does not know pytest 9.2, and our own parameters name the operations.
"""

from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import load_all_checks
from schemathesis.generation.modes import GenerationMode
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from horarium.api.app import create_app
from tests.api.house import OPERATOR, Api, let_workers_beat, make_catalog, new
from tests.api.profile_house import at, furnish_profiles, submission
from tests.api.v0_house import V0, bind

load_all_checks()

EXAMPLES = 12
UNSAYABLE = {
    "publish_schedule": "ranges are ordered and disjoint, zones exist, names print: no schema says so",
    "preview_schedule": "as above, and a window ends after it began",
    "set_activation": "the version in the body is one of the schedule in the path",
    "retire_schedule": "as above",
    "trigger_run": "as above",
    "cancel_run": "an integer is written without a point: to JSON Schema 0.0 is one too",
    "report_outcome": "the signature has to fit",
    "list_occurrences": "a cursor is one that was given out",
    "list_runs": "as above",
    "list_schedule_occurrences": "as above",
    "apply_authority": "names and addresses have a form, and what a declaration refers to is declared too",
    "stop_everything": "a reason is one line of printable characters",
    "advance_epoch": "as above",
    "reset_environment": "as above",
    "collect_payment": "nobody pays what is not owed",
    "create_v0_schedule": "a cron, a zone and an instant have a form, and a target has a binding: no schema says so",
    "update_v0_schedule": "as above",
    "save_profile": "cron positions and zones have a form, and a class has a schema of its own",
    "trigger_profile": "the events of a class have fields of their own",
    "approve_version": "there is such a version, and an approval ends in the future",
    "add_endpoint": "an address has a host that there may be, and is https:// unless it is said to be private",
    "set_heartbeat": "as above",
    "send_again": "an integer is written without a point: to JSON Schema 1.0 is one too",
}
"""Operations that refuse, as they should, some of what their schema lets through, each with what the schema cannot say."""


def described() -> dict[str, bool]:
    """The operations by their ids, and whether each takes any input. The application is only asked for its description."""
    page = create_app(None, None, tokens=None).openapi()
    found = [operation for methods in page["paths"].values() for operation in methods.values()]
    return {each["operationId"]: "parameters" in each or "requestBody" in each for each in found}


OPERATIONS = described()
CASES = [
    (name, mode)
    for name, takes in OPERATIONS.items()
    for mode in GenerationMode
    if takes or mode is GenerationMode.POSITIVE
]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    catalog = make_catalog(tmp_path_factory.mktemp("schemathesis"))
    made = Api(catalog)
    for _ in range(3):
        receipt = made.publish()
        made.change(receipt, 0, "enable")
        made.change(receipt, 1, "trigger")
    bind(catalog)
    V0(api=made).created()
    furnish_profiles(catalog)
    saved = made.ask("PUT", at("support"), json=submission(), key=new())
    assert saved.status_code == 200, saved.text
    yield made
    made.close()
    catalog.close()


@pytest.fixture(scope="module")
def operations(api):
    schema = schemathesis.openapi.from_asgi("/openapi.json", api.app)
    found = {}
    for result in schema.get_all_operations():
        operation = result.ok()
        found[operation.definition.raw["operationId"]] = operation
    assert set(found) == set(OPERATIONS)
    return found


@pytest.mark.parametrize(("name", "mode"), CASES, ids=[f"{name}-{mode.value}" for name, mode in CASES])
def test_an_operation_keeps_to_its_description(api, operations, name, mode):
    operation = operations[name]
    excluded = [positive_data_acceptance] if name in UNSAYABLE else []

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(case=operation.as_strategy(generation_mode=mode))
    def holds(case):
        let_workers_beat(api.catalog)
        # Every request is a change of its own, or the second would be told the receipt of the first.
        headers = {"Authorization": f"Bearer {OPERATOR}"}
        if case.headers and "Idempotency-Key" in case.headers and mode is GenerationMode.POSITIVE:
            headers["Idempotency-Key"] = new()
        # Ours are the real organization and environment most of the time: others are 404 whatever else they are.
        if mode is GenerationMode.POSITIVE and "org_id" in case.path_parameters:
            case.path_parameters |= {"org_id": "acme", "environment_id": "test"}
        if mode is GenerationMode.POSITIVE and "environment_id" in (case.query or {}):
            case.query |= {"environment_id": "test"}
            if "org_id" in case.query:
                case.query |= {"org_id": "acme"}
        if mode is GenerationMode.POSITIVE:
            ours = {"agent_class": "Triage", "agent_id": "support", "start_event": "CronStartEvent"}
            case.path_parameters |= {name: ours[name] for name in ours if name in case.path_parameters}
        response = case.call(headers=headers)
        # The check for refused nonsense does not know these: nonsense that is too large is refused for its size.
        sized = [negative_data_rejection] if response.status_code in {413, 414, 431} else []
        case.validate_response(response, headers=headers, excluded_checks=[*excluded, *sized])

    holds()


def test_what_a_schema_cannot_say_is_about_operations_that_there_are():
    assert set(UNSAYABLE) <= set(OPERATIONS)
