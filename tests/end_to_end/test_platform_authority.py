"""A platform's own authority with the real processes: it admits, it falls silent, it comes back, and it holds nothing at the end."""

import asyncio
import json
from contextlib import suppress
from datetime import timedelta

import pytest

from horarium.authority.asking import asked_outside
from horarium.authority.http import ANSWER_WITHIN, HttpAuthority
from horarium.catalog.schedules import require_schedule, require_version
from horarium.control.activation import Reviewed, enable
from horarium.control.publication import publish
from horarium.errors import Unavailable
from horarium.schedule.ledger import Disposition
from tests.authority.platform import KEYS, Platform, serving
from tests.control.operators import Operator
from tests.end_to_end.installation import installation, now, until

pytestmark = pytest.mark.server

COST = 10
WINDOW = timedelta(seconds=10)
BUSY = timedelta(seconds=15)
"""What two cores with six processes may take on top. A question that is held for ever would take a minute."""


@pytest.fixture
def platform(monkeypatch):
    platform = Platform()
    platform.declare("person", "tester")
    platform.declare("agent", "scripted@1", max_cost=COST, max_run_seconds=30)
    platform.declare("output", "reports")
    platform.declare("budget", "team", usage_classes=["test_compute"], pays_by="credits", limit=10_000, currency="CHF")
    with serving(platform) as url:
        monkeypatch.setenv("HORARIUM_AUTHORITY_URL", url)
        monkeypatch.setenv("HORARIUM_AUTHORITY_SECRET", "HORARIUM_SECRET_PLATFORM")
        monkeypatch.setenv("HORARIUM_SECRET_PLATFORM", "shared-by-the-platform-and-this-test")
        platform.keys = type(KEYS)((b"shared-by-the-platform-and-this-test",))
        yield platform, url


async def published(it, platform):
    """A schedule every five seconds, whose runs may go on side by side, paid and described by the platform alone."""
    key = await it.published(every=5, overlap="allow", window=int(WINDOW.total_seconds()))
    platform.declare("input", key.schedule_id, readers=["tester"])
    platform.contents[key.schedule_id] = json.dumps({"seconds": 0.05, "fails": False}).encode()
    with it.catalog.reading() as connection:
        document = dict(require_version(connection, require_schedule(connection, key), 1).document)
    paid = {**document, "run": {**document["run"], "budget_id": "team", "usage_class": "test_compute"}}
    await it.catalog.write(publish, key, paid, expected_revision=1, by="tester", now=now())
    return key


async def enabled(it, key, url, platform):
    authority = HttpAuthority(base=url, keys=platform.keys)
    try:
        async with asyncio.timeout(60):
            while True:
                with suppress(Unavailable):
                    return await asked_outside(
                        authority,
                        lambda content: it.catalog.write(enable, key, Reviewed(), content, by="tester", now=now()),
                    )
                await asyncio.sleep(0.2)
    finally:
        await authority.aclose()


def refused(it, key, *, since):
    """How long after its window each run was refused, of those that were due since then and found no authority."""
    return [
        entry.closed_at - entry.first_at - WINDOW
        for entry, _ in it.rows(key)
        if entry.first_at > since and entry.reason == "authority_unavailable"
    ]


async def story(folder, platform, url):
    async with installation(folder) as it:
        Operator(it.catalog, it.settings.scope).change(mode="test", development=False)
        key = await published(it, platform)
        await enabled(it, key, url, platform)
        await it.until_closed(key, 2)
        assert it.told(key)[:2] == ["succeeded"] * 2

        async def fails(_path):
            return 500, b"{}"

        async def hangs(_path):
            await asyncio.sleep(60)

        for fault, extra in ((fails, timedelta(0)), (hangs, ANSWER_WITHIN)):
            platform.fault = fault
            silent = now()
            await until(lambda silent=silent: len(refused(it, key, since=silent)) >= 2, lambda: str(it.told(key)))
            for late in refused(it, key, since=silent):
                assert timedelta(0) < late < extra + BUSY
            platform.fault = None
            back = now()
            await until(
                lambda back=back: any(
                    entry.disposition is Disposition.SUCCEEDED and entry.first_at > back for entry, _ in it.rows(key)
                ),
                lambda: f"a run after the authority came back; the ledger says {it.told(key)}",
            )
        assert it.runtime(key) == ("active", None)
        assert {told.partition(" ")[2] for told in it.told(key)} <= {"", "authority_unavailable"}
        await it.kill("controller")
        await it.proven(key)
        await it.start("controller")
        await until(lambda: platform.holds() == {}, lambda: f"an end of {platform.holds()}")
        succeeded = it.told(key).count("succeeded")
        assert succeeded >= 4
        assert platform.spent == {"team": succeeded * COST}
        assert all(run.evidence for _, run in it.rows(key))


def test_a_platform_that_falls_silent_refuses_promptly_and_the_schedule_goes_on_when_it_is_back(tmp_path, platform):
    asyncio.run(story(tmp_path, *platform))
