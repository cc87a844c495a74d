"""The example profile is one that its class takes, and the example bindings say what runs for it."""

from pathlib import Path

import examples
from examples.ingestion import agents
from horarium.agents import AgentRunner
from horarium.agents.cron import CronSchedule
from horarium.authority.file import read_declarations
from horarium.schedule.profiles import binding_name, parse_profile
from horarium.schedule.v0 import Target
from starter.documents import read_document

INGESTION = Path(examples.__file__).parent / "ingestion"


def test_the_profile_is_what_its_class_takes():
    (discovery,) = AgentRunner(agents).discovery()
    profile = parse_profile(read_document(INGESTION / "profile.yaml"), discovery.submission_schema)
    assert (profile.config["listed"], profile.tenant_id) == (50, None)
    assert CronSchedule.model_validate(profile.cron).timezone == "Europe/Zurich"
    assert discovery.form[-1]["name"] == "cron"


def test_the_bindings_of_the_profile_and_of_a_target_run_the_agent_of_that_class():
    (discovery,) = AgentRunner(agents).discovery()
    declared = read_declarations(read_document(INGESTION / "bindings.yaml")).kinds
    assert set(declared) == {"binding"}
    bindings = {name: binding.model_dump() for name, binding in declared["binding"].items()}
    target = Target(workspace_id="ws-001", agent_id="codex")
    assert set(bindings) == {binding_name(discovery.agent_class, "deliveries"), target.binding}
    assert {each["run"]["agent_version"] for each in bindings.values()} == {discovery.agent_version}
