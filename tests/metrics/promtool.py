"""Prometheus's own tool, which reads its configuration and carries its rules out."""

import shutil
import subprocess

import pytest


def promtool(*arguments: str) -> None:
    """Let it look at something. Fails with what it says, and skips where it is not installed."""
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("there is no promtool on the PATH; Debian's package `prometheus` has it")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
