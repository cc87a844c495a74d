"""Health, readiness, version, figures."""

import asyncio
import re

import pytest
from sqlalchemy import update

from horarium.api.counts import FRESH_FOR_SECONDS, Counts
from horarium.catalog import findings, presence
from horarium.catalog.schedules import require_schedule
from horarium.catalog.tables import environments
from horarium.control import pages
from horarium.control.records import record
from horarium.errors import Unavailable
from horarium.schedule.findings import Finding
from horarium.schedule.identity import schedule_key
from tests.api.house import Api, make_catalog, new, set_workers
from tests.control.desk import NOON, SCOPE


def figures(api):
    text = api.get("!/metrics", by=None).text
    lines = [line.rsplit(" ", 1) for line in text.splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, value in lines}


def test_operations_need_no_token(api):
    for path in ("/healthz", "/readyz", "/version", "/metrics", "/openapi.json"):
        assert api.get(f"!{path}", by=None).status_code == 200


def test_health_asks_nobody_and_readiness_asks_the_catalog(api, monkeypatch):
    def gone(*_, **__):
        raise Unavailable("catalog_unavailable", "The catalog does not answer.")

    monkeypatch.setattr("horarium.api.routes.health.execution_ready", gone)
    assert api.get("!/healthz").json() == {"status": "ok"}
    answer = api.get("!/readyz")
    assert (answer.status_code, answer.json()["code"]) == (503, "catalog_unavailable")


def test_a_process_is_ready_while_the_workers_are_away(api):
    set_workers(api.catalog, present=False)
    try:
        assert api.get("!/readyz").json() == {"ready": True, "execution_ready": False}
    finally:
        set_workers(api.catalog, present=True)


def test_requests_are_counted_by_template_and_nothing_of_a_caller_becomes_a_label(api):
    receipt = api.publish()
    secret = new()
    api.get(f"/schedules/{receipt['schedule_id']}")
    api.get(f"/schedules/{secret}")
    api.get(f"!/{secret}")
    api.ask(secret[:8].upper(), "/schedules")
    found = figures(api)
    prefix = "/v1/organizations/{org_id}/environments/{environment_id}"
    for status in ("200", "404"):
        name = (
            f'horarium_http_requests_total{{method="GET",route="{prefix}/schedules/{{schedule_id}}",status="{status}"}}'
        )
        assert found[name] >= 1
    assert found['horarium_http_requests_total{method="GET",route="unmatched",status="404"}'] >= 1
    text = api.get("!/metrics").text
    for word in (secret, secret[:8].upper(), receipt["schedule_id"], "acme", "ada"):
        # As a word: `ada` is a part of `unreadable`.
        assert re.search(rf"\b{re.escape(word)}\b", text) is None, word


def test_the_catalog_is_timed_by_call(api):
    api.publish()
    api.get("/schedules")
    found = figures(api)
    assert found['horarium_catalog_seconds_count{call="publish",kind="write"}'] >= 1
    assert found['horarium_catalog_seconds_count{call="directory",kind="read"}'] >= 1


def test_labels_stay_few_however_many_requests_come(api):
    series = len(figures(api))
    for _ in range(50):
        api.get(f"/schedules/{new()}")
        api.get(f"/{new()}?limit={new()}")
    assert len(figures(api)) <= series + 20


STATES = ("active", "error", "paused", "pending", "review", "stopping")


def test_schedules_are_counted_in_the_states_that_their_records_show(tmp_path):
    catalog = make_catalog(tmp_path)
    api = Api(catalog)
    try:
        ids = []
        for state in (*STATES, "never enabled", "retired", "old news"):
            receipt = api.publish()
            ids.append(receipt["schedule_id"])
            if state == "never enabled":
                continue
            api.change(receipt, 0, "enable")
            if state == "paused":
                api.change(receipt, 1, "pause")
            if state in {"retired", "stopping"}:
                api.change(receipt, 1, "retire" if state == "retired" else "pause")
            with catalog.writing() as connection:
                row = require_schedule(connection, schedule_key(SCOPE, receipt["schedule_id"])).row
                if state in {"active", "error", "review"}:
                    presence.observe(connection, row, generation=1, state=state, reason=None, now=NOON)
                if state == "paused":
                    presence.observe(connection, row, generation=2, state=state, reason=None, now=NOON)
                if state == "old news":
                    presence.observe(connection, row, generation=0, state="paused", reason=None, now=NOON)
        with catalog.reading() as connection:
            shown = [record(connection, schedule_key(SCOPE, each), now=NOON) for each in ids]
            counted = pages.count_by_state(connection)
        expected = {}
        for each in shown:
            if not each["retired"]:
                expected[each["runtime"]["state"]] = expected.get(each["runtime"]["state"], 0) + 1
        assert counted == expected
        assert set(counted) == set(STATES)
        assert figures(api)['horarium_schedules{state="pending"}'] == expected["pending"]
        with catalog.writing() as connection:
            connection.execute(update(environments).values(runtime_profile=None))
            assert pages.count_by_state(connection) == {"unconfigured": len(ids) - 1}
    finally:
        api.close()
        catalog.close()


def test_of_many_who_ask_at_once_one_counts_and_the_count_is_kept_for_a_while():
    class Clock:
        now = 0.0

        def __call__(self):
            return self.now

    asked = 0

    async def count():
        nonlocal asked
        asked += 1
        await asyncio.sleep(0.01)
        return {"active": asked}

    async def work():
        clock = Clock()
        counts = Counts(clock=clock)
        assert await asyncio.gather(*(counts.get(count) for _ in range(20))) == [{"active": 1}] * 20
        clock.now = FRESH_FOR_SECONDS
        assert await counts.get(count) == {"active": 2}

    asyncio.run(work())


def test_figures_are_given_while_the_catalog_does_not_answer(catalog, monkeypatch):
    def gone(_connection):
        raise Unavailable("catalog_unavailable", "The catalog does not answer.")

    api = Api(catalog)
    try:
        monkeypatch.setattr("horarium.api.routes.health.count_by_state", gone)
        text = api.get("!/metrics").text
        assert "horarium_http_requests_total" in text
        assert not re.search(r"^horarium_schedules\{", text, re.MULTILINE)
    finally:
        api.close()


@pytest.mark.parametrize("path", ["/healthz", "/schedules"])
def test_every_answer_carries_its_request_id_and_is_not_cached(api, path):
    answer = api.get(path if path == "/schedules" else f"!{path}")
    assert re.fullmatch("[0-9a-f]{32}", answer.headers["x-request-id"])
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_what_was_found_is_told_by_kind(tmp_path):
    catalog = make_catalog(tmp_path)
    with catalog.writing() as connection:
        findings.add(connection, SCOPE, {Finding.BREAKER_OPENED: 2}, now=NOON)
    api = Api(catalog)
    try:
        told = {name: value for name, value in figures(api).items() if name.startswith("horarium_findings_total")}
        expected = {f'horarium_findings_total{{kind="{kind}"}}': 0.0 for kind in Finding}
        assert told == expected | {'horarium_findings_total{kind="breaker_opened"}': 2.0}
    finally:
        api.close()
        catalog.close()
