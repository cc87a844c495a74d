"""The example profile is one that its class takes, and the example binding says what runs for it."""

from pathlib import Path

import examples
from examples.ingestion import agents
from horarium.agents import AgentRunner
from horarium.agents.cron import CronSchedule
from horarium.authority.file import read_declarations
from horarium.schedule.profiles import binding_name, parse_profile
from starter.documents import read_document

INGESTION = Path(examples.__file__).parent / "ingestion"


def test_the_profile_is_what_its_class_takes():
    (discovery,) = AgentRunner(agents).discovery()
    profile = parse_profile(read_document(INGESTION / "profile.yaml"), discovery.submission_schema)
    assert (profile.config["listed"], profile.tenant_id) == (50, None)
    assert CronSchedule.model_validate(profile.cron).timezone == "Europe/Zurich"
    assert discovery.form[-1]["name"] == "cron"


def test_the_binding_runs_the_agent_of_that_class():
    (discovery,) = AgentRunner(agents).discovery()
    declared = read_declarations(read_document(INGESTION / "bindings.yaml")).kinds
    assert set(declared) == {"binding"}
    bindings = {name: binding.model_dump() for name, binding in declared["binding"].items()}
    assert set(bindings) == {binding_name(discovery.agent_class, "deliveries")}
    assert {each["run"]["agent_version"] for each in bindings.values()} == {discovery.agent_version}
