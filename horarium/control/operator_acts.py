"""What every act of an operator has in common: a person's own session, and a receipt that outlives resets."""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from pydantic import BaseModel
from sqlalchemy import Connection

from horarium.catalog.environments import Environment
from horarium.control.attempts import Attempt, attempt
from horarium.control.principals import Principal, authorize
from horarium.control.receipts import Preconditions, Receipt, perform
from horarium.control.requests import read_request
from horarium.schedule.identity import Scope

Did = Callable[[Environment, str], Mapping[str, Any]]
"""What an act changes, given the environment and the id of its receipt; its part of the receipt's document."""
R = TypeVar("R", bound=BaseModel)


def let(kind: type[R], principal: Principal, scope: Scope, request: object, required_scope: str) -> Attempt[R]:
    """Let a person through, and read what is asked for.

    Raises `NotFound` for another organization's environment, and `Forbidden`.
    """
    authorize(principal, scope, required_scope, human=True)
    return attempt(partial(read_request, kind), request)


def perform_act(
    connection: Connection,
    principal: Principal,
    scope: Scope,
    request: object,
    key: str,
    *,
    operation: str,
    now: datetime,
    act: Did,
    expected: Callable[[], Preconditions] | None = None,
) -> Receipt:
    """Carry out an operator's act once for its key. See `receipts.perform` for what it raises."""
    return perform(
        connection,
        scope,
        principal,
        key,
        operation=operation,
        body=request,
        expected=expected,
        now=now,
        act=lambda environment, receipt_id: {**act(environment, receipt_id), "warnings": []},
        outlives_resets=True,
    )
