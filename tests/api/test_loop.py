"""The serving loop never stalls: not for a slow read, not for a writer elsewhere, not for a large document."""

import asyncio
import json
import sqlite3
import threading
import time
from datetime import timedelta

import pytest
from sqlalchemy import event, text

from horarium.api import bodies
from horarium.api.problems import Rejected
from horarium.api.routes import previews, schedules
from horarium.control import pages
from tests.api.house import BASE, Api, make_catalog, new, publication
from tests.control.desk import every

TOLERATED = 0.5
"""Seconds, on a machine that is busy with other things. A stalled loop waits for the whole read, four times as long."""


class Lag:
    """The longest that the loop did not come round, while the block ran."""

    async def __aenter__(self):
        self.worst = 0.0
        self._task = asyncio.create_task(self._watch())
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_):
        self._task.cancel()

    async def _watch(self):
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.005)
            self.worst = max(self.worst, time.perf_counter() - before - 0.005)


@pytest.fixture
def slow(tmp_path):
    """An application whose environment is read by a query that takes two seconds."""
    catalog = make_catalog(tmp_path)
    event.listen(catalog.engine, "connect", lambda connection, _: connection.create_function("nap", 1, time.sleep))
    catalog.engine.dispose()
    api = Api(catalog)
    yield api
    api.close()
    catalog.close()


def napping(function, seconds=2.0):
    def call(connection, *args, **kwargs):
        connection.execute(text(f"SELECT nap({seconds})"))
        return function(connection, *args, **kwargs)

    return call


def test_a_slow_read_does_not_stall_the_loop_and_others_are_answered_meanwhile(slow, monkeypatch):
    monkeypatch.setattr(pages, "environment", napping(pages.environment))

    async def work():
        async with slow.client() as client, Lag() as lag:
            reading = asyncio.create_task(client.get(BASE))
            await asyncio.sleep(0.1)
            began = time.perf_counter()
            assert (await client.get("/healthz")).status_code == 200
            assert (await client.get(f"{BASE}/schedules")).status_code == 200
            meanwhile = time.perf_counter() - began
            assert not reading.done()
            assert (await reading).status_code == 200
        return lag.worst, meanwhile

    worst, meanwhile = slow.run(work())
    assert worst < TOLERATED
    assert meanwhile < 1


def test_reads_do_not_wait_for_a_writer_elsewhere_nor_for_our_own(slow, tmp_path):
    """Another process holds the write lock: our write waits for it, reads and the loop do not."""
    body, key = publication(configuration=every(60)), new()

    async def work():
        other = sqlite3.connect(tmp_path / "catalog.sqlite", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        try:
            async with slow.client() as client, Lag() as lag:
                headers = {"Idempotency-Key": key}
                writing = asyncio.create_task(client.post(f"{BASE}/schedules", json=body, headers=headers))
                await asyncio.sleep(0.3)
                began = time.perf_counter()
                for _ in range(20):
                    assert (await client.get(f"{BASE}/schedules")).status_code == 200
                took = time.perf_counter() - began
                assert not writing.done()
                other.execute("ROLLBACK")
                assert (await writing).status_code == 201
            return lag.worst, took
        finally:
            other.close()

    worst, took = slow.run(work())
    assert worst < TOLERATED
    assert took < 1


def test_many_changes_behind_a_locked_catalog_are_refused_in_time_and_never_carried_out(tmp_path, monkeypatch):
    """One after the other they would wait for the lock, and the last one for longer than its client."""
    monkeypatch.setattr("horarium.catalog.engine.BUSY_TIMEOUT_SECONDS", 0.5)
    monkeypatch.setattr("horarium.api.service.BEGINS_WITHIN", timedelta(seconds=0.8))
    catalog = make_catalog(tmp_path)
    api = Api(catalog)
    changes = {new(): publication(configuration=every(60)) for _ in range(12)}

    async def send(client, key):
        return await client.post(f"{BASE}/schedules", json=changes[key], headers={"Idempotency-Key": key})

    async def work():
        async with api.client() as client:
            other = sqlite3.connect(tmp_path / "catalog.sqlite", isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            began = time.perf_counter()
            refused = await asyncio.gather(*(send(client, key) for key in changes))
            took = time.perf_counter() - began
            other.execute("ROLLBACK")
            other.close()
            return refused, took, [await send(client, key) for key in changes]

    try:
        refused, took, repeated = api.run(work())
    finally:
        api.close()
        catalog.close()
    assert {(each.status_code, each.json()["code"]) for each in refused} == {(503, "catalog_unavailable")}
    assert took < 3
    assert {(each.status_code, each.json()["replayed"]) for each in repeated} == {(201, False)}


def test_large_documents_are_read_and_judged_in_threads(slow, monkeypatch):
    """It takes tens of milliseconds for the largest: as long as that nobody else would be answered."""
    threads = {}

    def noted(module, name):
        function = getattr(module, name)

        def call(*args, **kwargs):
            threads[name] = threading.current_thread()
            return function(*args, **kwargs)

        monkeypatch.setattr(module, name, call)

    noted(bodies, "load_json")
    noted(schedules, "read_publication")
    noted(previews, "_previewed")
    configuration = every(60)
    rule = {
        name: [{"start": value, "end": value, "step": 1} for value in range(low, high + 1)]
        for name, (low, high) in {"second": (0, 59), "minute": (0, 59), "hour": (0, 23), "month": (1, 12)}.items()
    }
    rule |= {"day_of_month": [{"start": 1, "end": 31, "step": 1}], "day_of_week": [{"start": 0, "end": 6, "step": 1}]}
    years = [[{"start": 2000 + number, "end": 2000 + number, "step": 1}] for number in range(31)]
    configuration["calendar"]["calendars"] = [{**rule, "year": year} for year in years]
    assert len(json.dumps(configuration)) > 100_000
    slow.publish(configuration=configuration)
    assert slow.post("/schedule-previews", {"spec": configuration}).status_code == 200
    assert set(threads) == {"load_json", "read_publication", "_previewed"}
    assert threading.main_thread() not in threads.values()


def test_the_watch_would_notice_a_stalled_loop():
    async def work():
        async with Lag() as lag:
            time.sleep(0.3)  # noqa: ASYNC251 - the stall that is to be noticed
            await asyncio.sleep(0.02)
        return lag.worst

    assert asyncio.run(work()) > 0.2


def test_what_is_left_to_do_after_a_commit_does_not_hold_the_answer(catalog):
    class Slow:
        async def start_run(self, _key):
            await asyncio.sleep(60)

        async def nudge(self, _key, _signal):
            await asyncio.sleep(60)

        async def cancel_run(self, _key):
            raise Rejected(500, "unused", "unused")

    api = Api(catalog, hands=Slow())
    service = api.app.state.service

    async def work():
        async with api.client() as client:
            receipt = (
                await client.post(f"{BASE}/schedules", json=publication(), headers={"Idempotency-Key": new()})
            ).json()
            review = {"version": receipt["reference"], "expected_environment_epoch": 1, "expected_reset_generation": 1}
            path = f"{BASE}/schedules/{receipt['schedule_id']}"
            began = time.perf_counter()
            for generation, enabled in ((0, True), (1, False)):
                body = {**review, "expected_generation": generation, "enabled": enabled}
                answer = await client.post(f"{path}/activation", json=body, headers={"Idempotency-Key": new()})
                assert answer.status_code == 201
            assert len(service.errands) == 1
            await service.close(within=0.05)
            return time.perf_counter() - began

    assert api.run(work()) < 2
    assert service.errands == set()
    api.close()
