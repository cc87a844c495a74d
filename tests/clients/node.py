"""Node's own test runner: which tests a file has, and what became of each."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

OLDEST = 20
"""The oldest release of Node that the client is for."""
WITHIN = 280
"""Seconds for all tests of a run, on a busy machine too."""

_TEST = re.compile(r'^test\("([^"]+)"', re.MULTILINE)
_RESULT = re.compile(r"^(?P<bad>not )?ok \d+ - (?P<name>.*?)(?: # (?P<skip>SKIP) ?(?P<reason>.*))?$")


def missing() -> str | None:
    """Why there is no Node to test with; None where there is one."""
    if shutil.which("node") is None:
        return "there is no Node on this machine"
    found = subprocess.run(["node", "--version"], capture_output=True, text=True, timeout=WITHIN, check=True).stdout
    major = re.match(r"v(\d+)\.", found)
    if major is None or int(major[1]) < OLDEST:
        return f"Node {found.strip()} is older than {OLDEST}"
    return None


def names_in(path: Path) -> list[str]:
    """The names of the tests that stand in a file."""
    return _TEST.findall(path.read_text())


def run(paths: Iterable[Path], *, cwd: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Run the tests of files. Of each name: "" where it passed, else what was said of it; "skipped: …" where it was."""
    done = subprocess.run(
        ["node", "--test", "--test-reporter=tap", *map(str, paths)],
        cwd=cwd,
        env={**os.environ, **(more or {})},
        capture_output=True,
        text=True,
        timeout=WITHIN,
        check=False,
    )
    results = read(done.stdout)
    assert results, done.stdout + done.stderr
    return results


def read(tap: str) -> dict[str, str]:
    """The results in what Node prints (TAP version 13), by name."""
    results: dict[str, str] = {}
    bad = None
    for line in tap.splitlines():
        found = _RESULT.match(line)
        if found is None:
            if bad is not None:
                results[bad] += line + "\n"
            continue
        name = found["name"].replace("\\#", "#").replace("\\\\", "\\")
        results[name] = ("failed\n" if found["bad"] else "") or (f"skipped: {found['reason']}" if found["skip"] else "")
        bad = name if found["bad"] else None
    return results
