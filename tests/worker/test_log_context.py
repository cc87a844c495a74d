"""Each line says what it is about: schedule, generation, nominal time and run."""

import json
import logging
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from horarium.schedule.identity import ActivationKey, RunKey, ScheduleKey
from worker.log_context import identity, name_what_it_is_about

REPOSITORY = Path(__file__).parents[2]
SCHEDULE = ScheduleKey(org_id="acme", environment_id="test", schedule_id="7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11")
ACTIVATION = ActivationKey(schedule=SCHEDULE, generation=4)
RUN = RunKey(activation=ACTIVATION, nominal_time=datetime(2026, 11, 29, 7, 30, tzinfo=UTC))
ABOUT_RUN = {
    "schedule_id": SCHEDULE.schedule_id,
    "generation": 4,
    "nominal_time": "2026-11-29T07:30:00Z",
    "run_id": RUN.run_id,
}


def test_it_follows_from_the_id_of_a_workflow() -> None:
    assert identity(ACTIVATION.workflow_id) == {"schedule_id": SCHEDULE.schedule_id, "generation": 4}
    assert identity(RUN.workflow_id) == ABOUT_RUN
    by_hand = RunKey(activation=ACTIVATION, nominal_time=RUN.nominal_time, trigger="manual:receipt-1")
    assert identity(by_hand.workflow_id) == {
        "schedule_id": SCHEDULE.schedule_id,
        "generation": 4,
        "receipt": "receipt-1",
        "run_id": by_hand.run_id,
    }
    for other in ("", "order-17", "run/acme", f"{RUN.workflow_id}/more"):
        assert identity(other) == {}


def test_what_a_line_says_itself_is_not_said_otherwise() -> None:
    line = name_what_it_is_about(None, "info", {"event": "it", "workflow_id": RUN.workflow_id, "generation": 7})
    assert line == {**ABOUT_RUN, "event": "it", "workflow_id": RUN.workflow_id, "generation": 7}
    assert name_what_it_is_about(None, "info", {"event": "it"}) == {"event": "it"}


PROGRAM = f"""
import logging
from worker.logs import configure
configure()
told = {{"attempt": 1, "workflow_id": {RUN.workflow_id!r}}}
logging.getLogger("temporalio.workflow").warning(
    "polling ended: %s (%s)", "why", told, extra={{"temporal_workflow": told}}
)
"""


def test_a_workflows_own_lines_say_so_too() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    line = json.loads(done.stderr)
    assert line["event"] == "polling ended: why"
    assert line.items() >= {**ABOUT_RUN, "workflow_id": RUN.workflow_id}.items()
    assert logging.getLevelName(line["level"].upper()) == logging.WARNING
