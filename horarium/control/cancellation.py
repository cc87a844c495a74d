"""Cancelling a run: who asked for it is recorded, then its workflow is told."""

from datetime import datetime
from functools import partial
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from horarium.catalog.environments import Environment
from horarium.catalog.schedules import find_activation, require_schedule
from horarium.control import events, pages
from horarium.control.attempts import attempt
from horarium.control.principals import WRITE_SCOPE, Principal, authorize
from horarium.control.receipts import Preconditions, Receipt, perform
from horarium.control.requests import Number, read_request
from horarium.errors import Conflict
from horarium.schedule.identity import Scope, schedule_key


class CancelRequest(BaseModel):
    """The end of a run, asked for by a person."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    expected_environment_epoch: Number = Field(description="`authority_epoch` of the environment that was read.")
    expected_reset_generation: Number = Field(description="`reset_generation` of the environment that was read.")


def cancel(
    connection: Connection,
    principal: Principal,
    scope: Scope,
    request: object,
    key: str,
    *,
    run_id: str,
    now: datetime,
    required_scope: str = WRITE_SCOPE,
) -> Receipt:
    """Record that a person wants a run to end. Its workflow is told after the commit, and again where the key is repeated.

    The run ends `cancelled` once its agent has stopped; one that is over by then keeps its outcome. Raises `NotFound`,
    `Forbidden`, `InvalidSchedule`, and `Conflict` with `run_ended` or for another environment than was reviewed.
    """
    authorize(principal, scope, required_scope, human=True)
    asked = attempt(partial(read_request, CancelRequest), request)

    def act(_environment: Environment, receipt_id: str) -> dict[str, Any]:
        line = pages.run(connection, scope, run_id)
        assert line.run is not None
        schedule = require_schedule(connection, schedule_key(scope, line.schedule_id), lock=True)
        # Read again under the lock: it may have ended meanwhile.
        line = pages.run(connection, scope, run_id)
        assert line.run is not None
        if not line.entry.disposition.is_open:
            raise Conflict(
                "run_ended",
                f"Run {run_id} is over: {line.entry.disposition}.",
                next_step="There is nothing to cancel any more; read the run.",
            )
        activation = find_activation(connection, schedule, line.entry.generation)
        assert activation is not None
        standing = events.activated(connection, schedule, activation)
        events.tell(
            connection,
            schedule,
            "cancel_asked",
            by=principal.name,
            now=now,
            before=standing,
            after=standing,
            receipt_id=receipt_id,
            more={"run_id": run_id},
        )
        return {
            "schedule_id": line.schedule_id,
            "run_id": run_id,
            "workflow_id": line.run.workflow_id,
            "warnings": [],
        }

    return perform(
        connection,
        scope,
        principal,
        key,
        operation="cancel_run",
        # The run is a part of what was asked for: the same key for another run is another request.
        body={"run_id": run_id, "request": request},
        expected=lambda: _expected(asked.value()),
        now=now,
        act=act,
    )


def _expected(request: CancelRequest) -> Preconditions:
    return Preconditions(
        environment_epoch=request.expected_environment_epoch, reset_generation=request.expected_reset_generation
    )
