"""A module that shall have agents: where it is looked for, and one sentence for each way in which it has none."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from horarium.errors import Misconfigured
from worker.agent_modules import elsewhere, refuse_unknown

REPOSITORY = Path(__file__).parents[2]
AGENT = """
from horarium.agents import Agent, AgentReport, CronStartEvent, handles
class Greeting(Agent):
    "Says good morning."
    name = "greeting"
    version = "1"
    @handles(CronStartEvent)
    async def greet(self, event, context):
        return AgentReport.succeeded("Greeted.")
"""
FINDS = """
import sys
from worker.agent_modules import load_agents
from horarium.errors import Misconfigured
sys.path[:] = [part for part in sys.path if part]  # a console script has no working folder in it
try:
    print(*[agent.agent_version for agent in load_agents(sys.argv[1], command="horarium worker agents " + sys.argv[1])])
except Misconfigured as error:
    sys.exit(str(error))
"""


def find(folder: Path, module: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Load the agents of a module as a process that works in `folder`."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("HORARIUM_")}
    return subprocess.run(
        [sys.executable, "-c", FINDS, module],
        cwd=folder,
        env={**inherited, "PYTHONPATH": str(REPOSITORY), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_module_in_the_working_folder_is_found(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "agents.py").write_text(AGENT + "agents = [Greeting()]")
    assert find(tmp_path, "mine.agents").stdout == "greeting@1\n"


REFUSED = {
    "no such module": ("triage", None, "There is no module 'triage'", "set PYTHONPATH"),
    "no such module in a package": ("examples.triage", None, "There is no module 'examples.triage'", "set PYTHONPATH"),
    "a file": ("agents/triage.py", None, "'agents/triage.py' is a path", "try 'agents.triage'"),
    "a file of this folder": ("triage.py", AGENT, "'triage.py' is a path", "try 'triage'"),
    "a file from the root": ("/srv/bots/triage.py", None, "is a path", "try 'triage' in '/srv/bots'"),
    "no name": ("tri age", None, "'tri age' is no name of a module", "import examples.ingestion"),
    "what it imports is missing": (
        "mine",
        "import pandas_of_ours",
        "imports 'pandas_of_ours', which is not installed",
        "line 1",
    ),
    "it imports a name that is not there": ("mine", "\nfrom os import nothing_such", "cannot be imported", "line 2"),
    "no Python": ("mine", "agents = [\n", "is not Python: '[' was never closed", "mine.py, line 1"),
    "it raises": (
        "mine",
        "import os\nos.environ['NO_SUCH_KEY']",
        "raises KeyError when it is imported: 'NO_SUCH_KEY'",
        "line 2",
    ),
    "it exits": ("mine", "import sys\nsys.exit('usage')", "raises SystemExit when it is imported: usage", "line 2"),
    "no list": ("mine", AGENT, "has no list `agents`", "agents = [MyAgent()]"),
    "no list but an agent": (
        "mine",
        AGENT + "agents = Greeting()",
        "it is no list but Greeting",
        "agents = [MyAgent()]",
    ),
    "a class": ("mine", AGENT + "agents = [Greeting]", "holds Greeting, which is no agent", "Write Greeting()"),
    "something else": ("mine", "agents = [1]", "holds int, which is no agent", "Derive it from Agent"),
    "an empty list": ("mine", "agents = []", "is empty", "at least one agent"),
}


@pytest.mark.parametrize(("module", "text", "what", "advice"), REFUSED.values(), ids=REFUSED)
def test_what_has_no_agents_is_one_sentence_that_says_which_and_what_to_do(tmp_path, module, text, what, advice):
    if text is not None:
        (tmp_path / "mine.py").write_text(text)
    ended = find(tmp_path, module)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert len(ended.stderr.splitlines()) == 1, ended.stderr
    assert what in ended.stderr
    assert advice in ended.stderr
    assert "horarium worker agents" in ended.stderr


def test_a_child_names_what_the_person_typed(tmp_path):
    ended = find(tmp_path, "triage", HORARIUM_COMMAND="horarium dev --agents triage")
    assert "Run `horarium dev --agents triage` in the folder" in ended.stderr


def test_looking_for_a_module_imports_nothing(tmp_path):
    (tmp_path / "mine.py").write_text("raise AssertionError('imported')")
    before = list(sys.path)
    refuse_unknown("mine", command="c", path=[str(tmp_path)])
    refuse_unknown("mine.deeper", command="c", path=[str(tmp_path)])
    assert sys.path == before
    with pytest.raises(Misconfigured, match=re.escape("There is no module 'mine'")):
        refuse_unknown("mine", command="c")


def test_a_child_that_works_elsewhere_finds_what_is_found_here(tmp_path, monkeypatch):
    """Also where its own folder holds a module of that name."""
    (tmp_path / "examples.py").write_text(AGENT + "agents = [Greeting()]")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["lib", str(REPOSITORY), ""]))
    told = elsewhere("horarium dev --agents examples")
    assert told["PYTHONPATH"] == os.pathsep.join([str(tmp_path / "lib"), str(REPOSITORY)])
    assert find(REPOSITORY, "examples", **told).stdout == "greeting@1\n"
    assert f"looked for in {str(tmp_path)!r}" in find(REPOSITORY, "triage", **told).stderr


def test_a_package_is_looked_into_without_importing_it(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "__init__.py").write_text("raise AssertionError('imported')")
    (tmp_path / "mine" / "deep.py").touch()
    (tmp_path / "bare" / "barer").mkdir(parents=True)
    (tmp_path / "bare" / "barer" / "deep.py").touch()
    for module in ("mine.deep", "bare.barer.deep"):
        refuse_unknown(module, command="c", path=[str(tmp_path)], inside=True)
    for module in ("mine.deeper", "mine.deep.er", "bare.deep", "bare.barer.deeper"):
        with pytest.raises(Misconfigured, match=f"There is no module {module!r}"):
            refuse_unknown(module, command="c", path=[str(tmp_path)], inside=True)
