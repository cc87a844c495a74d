"""The runbook: every command in it exists, and every place that it points to is there."""

import re
import subprocess

import pytest

from tests.deploy.product import DEPLOY, commands_in, refusal, settings
from tests.deploy.runbook import BLOCKS, TEXT

README = (DEPLOY / "README.md").read_text()
COMMANDS = [*commands_in(TEXT), *commands_in(README)]
OUTSIDE = {"COMMAND"}
"""What stands for any command."""


def slug(heading: str) -> str:
    """What a heading is called in an address."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def headings(text: str) -> set[str]:
    return {slug(line.lstrip("#").strip()) for line in text.splitlines() if re.match(r"#{1,4} ", line)}


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_command_exists(arguments):
    if arguments[:1] == ["deployment"] and "--name" not in arguments:
        arguments = [*arguments, "--name", "horarium"]  # HORARIUM_DEPLOYMENT has it where that is told
    if arguments[0] not in OUTSIDE:
        assert refusal([each for each in arguments if each != "…"]) is None


def test_there_are_commands_to_look_at():
    assert len(COMMANDS) > 40


def test_every_place_that_is_pointed_to_is_there():
    for text, name in ((TEXT, "RUNBOOK.md"), (README, "README.md")):
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            file, _, place = target.partition("#")
            if file.startswith("http"):
                continue
            path = DEPLOY / file if file else DEPLOY / name
            assert path.exists(), (name, target)
            if place:
                assert place in headings(path.read_text()), (name, target)


def test_every_setting_that_is_named_is_one():
    named = set(re.findall(r"`((?:HORARIUM|SCHEDULER)_[A-Z0-9_]*[A-Z0-9])(?:=[^`]*)?`", TEXT))
    assert named - {"HORARIUM_TAG", "HORARIUM_TOKEN"} <= settings()


@pytest.mark.parametrize("name", sorted(BLOCKS))
def test_a_block_of_commands_can_be_read_by_a_shell(name):
    done = subprocess.run(["bash", "-n", "-c", BLOCKS[name]], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
