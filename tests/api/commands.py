"""The command line as a process of its own, with nothing of this machine's environment and without a Temporal server."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
READY_WITHIN = 90
"""Seconds, on a busy machine."""


def environment(**more):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HORARIUM_", "TEMPORAL_"))}
    # Nothing listens on port 1.
    return {**kept, "TEMPORAL_ADDRESS": "127.0.0.1:1", **more}


def horarium(*arguments, **more):
    return subprocess.run(
        [sys.executable, "-m", "starter", *arguments],
        cwd=ROOT,
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=READY_WITHIN,
        check=False,
    )
