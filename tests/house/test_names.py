"""Our flat top-level names mean this repository, whatever else is installed."""

import json
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
NAMES = ("workflows", "activities", "worker", "starter", "horarium", "examples", "benchmarks")

IMPORT = """
import importlib, json, sys
print(json.dumps({name: list(importlib.import_module(name).__path__) for name in sys.argv[1:]}))
"""


def test_every_top_level_name_resolves_to_this_repository_from_anywhere(tmp_path):
    """Names like `worker` are common, and a package that installs one of them would be found before ours."""
    found = subprocess.run(
        [sys.executable, "-c", IMPORT, *NAMES], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert json.loads(found.stdout) == {name: [str(REPOSITORY / name)] for name in NAMES}
