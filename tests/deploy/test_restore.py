"""Back up and restore, by the commands of the runbook, on both databases: under real processes, and nothing runs twice."""

import asyncio
import os
import subprocess
import sys
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from horarium.catalog import Catalog
from horarium.control.audit import audit, document
from tests.deploy.runbook import BLOCKS
from tests.end_to_end.installation import FEWEST, Installation, installation, now, until
from tests.postgres.databases import KINDS

pytestmark = pytest.mark.server


def libpq(url: str) -> str:
    """The address of a catalog as PostgreSQL's own tools take it."""
    return url.replace("postgresql+psycopg://", "postgresql://")


def run(name: str, folder: Path, it: Installation, programs: str, **more: str) -> str:
    """Run a block of the runbook as it stands there."""
    environment = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), programs, os.environ["PATH"]]),
        **it.settings.environment(),
        "TEMPORAL_ADDRESS": it.server.address,
        **more,
    }
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", BLOCKS[name]],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.timeout(900)
def test_what_is_restored_goes_on_and_nothing_runs_twice(kind, tmp_path, request):
    server = request.getfixturevalue("postgres") if kind == "postgresql" else None
    asyncio.run(_restored(server, tmp_path))


async def _restored(server, folder: Path) -> None:
    url = None if server is None else server.url(server.create_database())
    programs = "" if server is None else str(server._programs)
    async with AsyncExitStack() as stack, installation(folder / "data", parts=FEWEST, catalog_url=url) as it:
        key = await it.published(every=2)
        await it.enabled(key)
        await it.until_closed(key, 3)
        kept = len(it.rows(key))
        kind = "sqlite" if url is None else "postgresql"
        run(f"back up {kind}", folder, it, programs, CATALOG=libpq(url or ""))
        begun = len(it.begun(key))
        await until(lambda: len(it.begun(key)) >= begun + 2, "runs that the backup does not know")
        await asyncio.gather(*map(it.stop, FEWEST))
        it.catalog.close()
        restored = ""
        if server is not None:
            restored = server.url(server.create_database())
            it.settings = replace(it.settings, catalog_url=restored)
        it.children.clear()  # they were told of the other database
        run(f"restore {kind}", folder, it, programs, RESTORED=libpq(restored))
        it.catalog = Catalog.open(it.settings.catalog_url)
        stack.callback(it.catalog.close)
        assert kept <= len(it.rows(key)) < len(it.begun(key))
        run("hold back", folder, it, programs)
        back = now()
        await asyncio.gather(*map(it.start, FEWEST))
        await until(
            lambda: (
                max(entry.last_at for entry, _ in it.rows(key)) >= back
                and all(entry.closed_at for entry, _ in it.rows(key) if entry.first_at < back)
            ),
            lambda: f"an answer for each instant until {back}; the ledger says {it.told(key)}",
            # A run whose workflow is closed already is found to be lost, and not told so: ten seconds and a sweep for each.
            within=300,
        )
        result = await it.catalog.read(audit, key, now=now() - timedelta(seconds=5), grace=timedelta(0))
        assert result.clean, document(result)
        times = Counter(line["nominal"] for line in it.begun(key))
        assert all(count == 1 for count in times.values()), times
        run("go on", folder, it, programs)
        begun = len(it.begun(key))
        await until(lambda: len(it.begun(key)) >= begun + 2, "runs after it was lifted")
        await it.paused(key)
        print(it.told(key))
