"""A minute of chaos for every build: kills, stops and power cuts, and every promise held afterwards.

`make chaos` goes on for longer, on either database, with a seed of one's own.
"""

import asyncio
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.chaos.fleet import POSTGRESQL
from tests.chaos.storm import storm

SEED = 49
"""One whose minute hits every kind of process."""


@pytest.mark.server
@pytest.mark.timeout(900)  # a minute of chaos, and on a busy machine several until all is quiet
def test_whatever_dies_for_a_minute_every_promise_holds_afterwards():
    # Kept where it fails, and not below pytest's folders, which keep only the last three.
    folder = Path(tempfile.mkdtemp(prefix="horarium-chaos-"))
    result = asyncio.run(storm(folder, seconds=60, seed=SEED, catalog=POSTGRESQL))
    assert not result.breaches, result.told()
    shutil.rmtree(folder)
