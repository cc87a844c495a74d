"""What is installed is what constraints.txt says, to the last package."""

import re
from importlib.metadata import requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

CONSTRAINTS = Path(__file__).parents[2] / "constraints.txt"
EXTRAS = ("app", "dev-server", "test", "check")
LINES = [line for line in CONSTRAINTS.read_text().splitlines() if line and not line.startswith("#")]


def closure(package: str, extras: tuple[str, ...]) -> set[str]:
    """The names of all that `package` with its extras needs here, and what those need in turn, without itself."""
    needed: set[tuple[str, str]] = set()
    waiting = [(package, extra) for extra in ("", *extras)]
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in needed:
            continue
        needed.add((name, extra))
        for line in requires(name) or ():
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                waiting += [(canonicalize_name(requirement.name), wanted) for wanted in ("", *requirement.extras)]
    return {name for name, _ in needed} - {package}


def test_every_line_pins_one_package_exactly_and_names_no_address():
    assert [line for line in LINES if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line)] == []


def test_no_package_is_pinned_twice():
    names = [canonicalize_name(line.partition("==")[0]) for line in LINES]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("name", sorted(closure("horarium", EXTRAS)))
def test_an_installed_package_has_the_version_that_is_pinned(name):
    pins = {canonicalize_name(line.partition("==")[0]): line.partition("==")[2] for line in LINES}
    assert pins.get(name) == version(name), f"constraints.txt should say {name}=={version(name)}"


def test_the_closure_reaches_through_extras_and_dependencies():
    assert closure("horarium", EXTRAS) >= {"temporalio", "protobuf", "pytest", "iniconfig", "mypy", "tzdata"}
    assert "pytest" not in closure("horarium", ())
