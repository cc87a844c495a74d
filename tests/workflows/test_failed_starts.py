"""Runs of profiles that no runner could claim: each in the log by name, and the first with what went wrong at the runner."""

from datetime import timedelta
from typing import Any

from structlog.testing import capture_logs

from activities import agents
from horarium.control import profile_logs, profiles
from horarium.control.starts import StartFailures
from horarium.errors import Unavailable
from horarium.schedule.identity import ActivationKey, ScheduleKey, schedule_key
from tests.control.operators import Operator
from tests.workflows.house import SCOPE, workers_beat
from tests.workflows.test_a_year import ADA, CRON, RUN

EVERY_MINUTE = {**CRON, "minute": "*", "hour": "*"}


async def saved(house, agent_id: str) -> ScheduleKey:
    """A profile that fires each minute from now on."""
    Operator(house.catalog, SCOPE).declare("binding", f"cron:Worked/{agent_id}", run=RUN)
    now = await house.now()
    await house.catalog.write(workers_beat, at=now)
    document = {"config": {"cron": EVERY_MINUTE}}
    names = (ADA, SCOPE, "Worked", agent_id)
    receipt = await house.catalog.write(
        profiles.save, *names, document, f"save {agent_id}", content=house.content, now=now
    )
    key = schedule_key(SCOPE, receipt.document["schedule_id"])
    assert await house.temporal.start_schedule(ActivationKey(schedule=key, generation=1))
    return key


async def test_what_kept_a_run_from_starting_at_its_runner_is_in_the_log_of_the_installation(skipping, monkeypatch):
    async def out(run_id: str, **_: Any) -> None:
        raise Unavailable("catalog_unavailable", f"The catalog does not answer about {run_id}.")

    monkeypatch.setattr(agents, "CLAIM_WITHIN", timedelta(0))
    monkeypatch.setattr(profile_logs, "STARTS", StartFailures())
    async with skipping() as house:
        house.expected.append("Completing activity as failed")
        monkeypatch.setattr(house.host, "begin", out)
        minute = await house.on_the_minute()
        keys = [await saved(house, agent_id) for agent_id in ("inbox", "outbox")]
        with capture_logs() as logs:
            await house.advance_to(minute + timedelta(seconds=30))
            await house.until(lambda: all(entry.closed_at for key in keys for entry in house.entries(key)))
        for key in keys:
            assert house.fates(key, since=minute) == [(0, 0, "not_started", "claim_failed")]
            await house.paused(key)

        lines = [each for each in logs if each["event"] == "run_not_started"]
        assert {(each["agent_class"], each["profile"]) for each in lines} == {("Worked", "inbox"), ("Worked", "outbox")}
        assert {(each["nominal_time"], each["reason"]) for each in lines} == {
            (minute.isoformat().replace("+00:00", "Z"), "claim_failed")
        }
        first, second = lines
        assert "exception" not in second
        # The frames of another process, as Temporal carried them, and what was raised there.
        assert "in out" in first["exception"]
        assert "catalog_unavailable" in first["exception"]
        assert first["run_id"] in first["exception"]
