"""Many that are due in the same second, on a real server and with the runner as it is."""

import asyncio
from datetime import timedelta

import pytest

from tests.end_to_end.installation import FEWEST, installation, now, until

pytestmark = pytest.mark.server

HERD = 110
"""More than the SDK lets one worker do at the same time, unless it is told."""
WORK = 20
"""Seconds that each run takes: longer than it takes until all have begun."""
DAY = 24 * 60 * 60


def test_each_of_a_herd_begins_without_waiting_for_another_to_end(tmp_path):
    asyncio.run(_all_begin_before_any_ends(tmp_path))


async def _all_begin_before_any_ends(tmp_path):
    async with installation(tmp_path, parts=FEWEST) as it:
        keys = [await it.published(every=DAY, seconds=WORK) for _ in range(2)]
        # How long it takes to make one says when all can be ready.
        began = now()
        for key in keys:
            await it.enabled(key)
        each = (now() - began) / len(keys)
        due = (now() + (each + timedelta(milliseconds=50)) * HERD + timedelta(seconds=15)).replace(microsecond=0)
        herd = [await it.published(every=DAY, offset=int(due.timestamp()) % DAY, seconds=WORK) for _ in range(HERD)]
        for key in herd:
            await it.enabled(key)
        assert now() < due, "the machine was too slow to make them in time"

        def runs():
            return [run for key in herd for _, run in it.rows(key)]

        await until(
            lambda: sum(run is not None and run.begun_at is not None for run in runs()) == HERD,
            lambda: f"{HERD} beginnings; the ledger says {[it.told(key) for key in herd]}",
            within=(due - now()).total_seconds() + 60,
        )
        for key in [*keys, *herd]:
            await it.paused(key)
        for key in herd:
            await it.until_closed(key, 1)
        rows = [row for key in herd for row in it.rows(key)]
        first_end = min(entry.closed_at for entry, _ in rows)
        late = [run.begun_at - due for _, run in rows]
        assert max(run.begun_at for _, run in rows) < first_end, sorted(late)[-12:]
        assert {told for key in herd for told in it.told(key)} == {"succeeded"}
