"""What CI brings beside Python packages: what it cannot bring it says, and goes on."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.deploy.product import ROOT

TOOLS = ROOT / ".ci" / "tools"
NEEDED = ("bash", "dirname", "mkdir", "mktemp", "rm", "id", "timeout", "sleep", "dpkg-deb", "tar", "install", "cat")
"""What the script itself calls."""
LEFT_OUT = re.compile(r"Left out: (.+), since (.+)\.")


def bring(folder: Path, *, apt: str | None, within: int = 60) -> dict[str, str]:
    """Let it run on a machine that has nothing but a shell, and an apt-get that does this. What it left out, and why."""
    programs = folder / "bin"
    programs.mkdir()
    for name in NEEDED:
        if found := shutil.which(name):
            (programs / name).symlink_to(found)
    if apt is not None:
        (programs / "apt-get").write_text(f"#!/bin/sh\n{apt}\n")
        (programs / "apt-get").chmod(0o755)
    done = subprocess.run(
        ["bash", TOOLS, folder / "tools"],
        env={"PATH": str(programs), "PYTHON": "false", "WITHIN": str(within), "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = [LEFT_OUT.fullmatch(line) for line in done.stdout.splitlines()]
    assert all(found), done.stdout
    return {match[1]: match[2] for match in found if match is not None}


def reason(told: dict[str, str], word: str) -> str:
    """Why the one thing with this word in it was left out."""
    (why,) = [why for what, why in told.items() if word in what]
    return why


WORDS = ("promtool", "TypeScript", "browser", "Helm")


def test_a_machine_without_apt_says_what_it_leaves_out(tmp_path):
    told = bring(tmp_path, apt=None)
    assert len(told) == len(WORDS)
    for word in WORDS[:3]:
        assert reason(told, word) == "there is no apt-get here"
    assert "could not be fetched" in reason(told, "Helm")


@pytest.mark.skipif(os.getuid() != 0, reason="others than root may not use apt-get, and are told so")
def test_where_the_packages_cannot_be_reached_it_asks_once_and_goes_on(tmp_path):
    told = bring(tmp_path, apt=f"echo asked >> {tmp_path}/asked; exit 100")
    assert (tmp_path / "asked").read_text() == "asked\n"
    for word in WORDS[:3]:
        assert reason(told, word) == "`apt-get update` did not succeed within 60 seconds"


@pytest.mark.skipif(os.getuid() != 0, reason="others than root may not use apt-get, and are told so")
def test_an_apt_that_hangs_is_given_up(tmp_path):
    told = bring(tmp_path, apt="exec sleep 600", within=1)
    assert reason(told, "promtool") == "`apt-get update` did not succeed within 1 seconds"


@pytest.mark.skipif(os.getuid() != 0, reason="others than root may not use apt-get, and are told so")
def test_a_package_without_the_program_is_left_out_too(tmp_path):
    told = bring(tmp_path, apt='case "$*" in *download*) : > prometheus_1_all.deb;; esac')
    assert reason(told, "promtool") == "Debian's package prometheus has no promtool that runs here"
    assert not list((tmp_path / "tools").iterdir())


def test_what_was_left_out_is_the_last_that_ci_says():
    script = (ROOT / ".ci" / "run").read_text()
    assert script.index("trap ") < script.index("make check") < script.index("make test")
    assert re.search(r"^trap 'echo .*left_out.* EXIT$", script, re.MULTILINE)
    assert "set -euo pipefail" in script
