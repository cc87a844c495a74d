"""Receipts: a change happens once for a caller's key, however often it is asked for (DESIGN.md, section 7).

The lock on the environment puts mutations in a row, so that of two equal requests at the same time the second finds the
receipt of the first.
"""

import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from horarium.catalog import receipts
from horarium.catalog.environments import Environment, require_environment
from horarium.catalog.receipts import StoredReceipt
from horarium.control.archived import or_archived
from horarium.control.principals import Principal
from horarium.errors import Conflict, Fault, InvalidSchedule, NotFound
from horarium.schedule.canonical import digest
from horarium.schedule.identity import Scope, instant_text

MAX_KEY = 200
"""Characters of an idempotency key."""
_KEY = re.compile(rf"[!-~](?:[ -~]{{0,{MAX_KEY - 2}}}[!-~])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Preconditions:
    """The state of the environment that the caller reviewed."""

    environment_epoch: int
    reset_generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The answer to a mutation, ready for JSON.

    It confirms that the operation was carried out. It is not the present state, which may have changed since. `replayed`
    tells that it was carried out before, and not now again; the document says so too, under the same name.
    """

    document: dict[str, Any]
    replayed: bool


Act = Callable[[Environment, str], Mapping[str, Any]]
"""What a mutation does with the environment under lock and the receipt's id; it returns its part of the document."""


def perform(
    connection: Connection,
    scope: Scope,
    principal: Principal,
    key: str,
    *,
    operation: str,
    body: object,
    expected: Callable[[], Preconditions] | None,
    now: datetime,
    act: Act,
    outlives_resets: bool = False,
) -> Receipt:
    """Carry out a mutation and bind the caller's key to its receipt, in the one transaction of `connection`.

    A key that is bound already gives its receipt again, if operation and body are the same and the environment was not reset
    since; a newer authority epoch alone refuses nothing then. With `outlives_resets` a reset refuses nothing either: what
    operators do is about the environment, and not in it. A refused request binds no key. Whether the principal still may do
    it is asked by the caller, before this. `expected` is None for what is right in every state of the environment. It and
    `act` are called where no receipt is found, and not before: what they raise must never hide one. An `act` that changes the
    numbers of the environment tells them in its part of the document.

    Raises `InvalidSchedule` for a key that is none, `Conflict` with `idempotency_key_reused`, `environment_reset` or
    `environment_epoch_changed`, and whatever `expected` and `act` raise; then nothing has changed.
    """
    require_key(key)
    environment = require_environment(connection, scope, lock=True)
    body_digest = digest(body)
    stored = receipts.find_receipt(connection, scope, principal.name, key)
    if stored is not None:
        return _replayed(environment, stored, operation, body_digest, outlives_resets=outlives_resets)
    if expected is not None:
        _require(environment, expected())
    receipt_id = str(uuid.uuid4())
    document = {
        "receipt_id": receipt_id,
        "operation": operation,
        "environment_epoch": environment.authority_epoch,
        "reset_generation": environment.reset_generation,
        **act(environment, receipt_id),
        "created_at": instant_text(now),
    }
    stored = StoredReceipt(
        receipt_id=receipt_id,
        operation=operation,
        body_digest=body_digest,
        reset_generation=environment.reset_generation,
        document=document,
        created_at=now,
    )
    receipts.insert_receipt(connection, scope, principal.name, key, stored)
    return _receipt(document, replayed=False)


def find_receipt(connection: Connection, scope: Scope, principal: Principal, key: str) -> Receipt:
    """The receipt that a principal's own key is bound to.

    It is told after a reset too: to read what happened recovers nothing, and `reset_generation` shows how old it is. Raises
    `NotFound` for a key that is not bound, and for another principal's in the same words.
    """
    require_key(key)
    require_environment(connection, scope)
    stored = receipts.find_receipt(connection, scope, principal.name, key)
    if stored is None:
        raise NotFound(
            "receipt_not_found",
            f"No receipt of {principal.name!r} has the key {key!r} in {scope.org_id}/{scope.environment_id}.",
            next_step="A request without a receipt was refused, or has not arrived so far. Compare the account and the "
            "environment, then send the same body with the same key." + or_archived(connection, scope),
        )
    return _receipt(stored.document, replayed=True)


def require_key(key: str) -> None:
    """Raise `InvalidSchedule` for what is no idempotency key: 1 to 200 printable ASCII characters, no space at its ends."""
    if not _KEY.fullmatch(key):
        sentence = (
            f"An idempotency key has 1 to {MAX_KEY} printable ASCII characters and no space at its ends; "
            f"found {key[:80]!r}. A UUID is a good one."
        )
        raise InvalidSchedule([Fault("", "invalid_idempotency_key", sentence)])


def _replayed(
    environment: Environment, stored: StoredReceipt, operation: str, body_digest: str, *, outlives_resets: bool
) -> Receipt:
    if (stored.operation, stored.body_digest) != (operation, body_digest):
        raise Conflict(
            "idempotency_key_reused",
            f"This key is bound to receipt {stored.receipt_id} of another request: {stored.operation}, at "
            f"{instant_text(stored.created_at)}.",
            next_step="Send the body that belongs to the key, or take a new key for a new request.",
        )
    if stored.reset_generation != environment.reset_generation and not outlives_resets:
        raise Conflict(
            "environment_reset",
            f"The environment was reset since: from generation {stored.reset_generation} to "
            f"{environment.reset_generation}. Receipt {stored.receipt_id} is not given out as if it still held.",
            next_step="Keep the request for investigation, and review the present state before any new one.",
        )
    return _receipt(stored.document, replayed=True)


def _require(environment: Environment, expected: Preconditions) -> None:
    name = environment.scope.environment_id
    if environment.reset_generation != expected.reset_generation:
        raise Conflict(
            "environment_reset",
            f"Environment {name!r} is at reset generation {environment.reset_generation}, not {expected.reset_generation}.",
            next_step="Read the environment again and review what the reset means for this request.",
        )
    if environment.authority_epoch != expected.environment_epoch:
        raise Conflict(
            "environment_epoch_changed",
            f"Environment {name!r} is at authority epoch {environment.authority_epoch}, not {expected.environment_epoch}.",
            next_step="Read the environment again and review what changed.",
        )


def _receipt(document: Mapping[str, Any], *, replayed: bool) -> Receipt:
    return Receipt(document={**document, "replayed": replayed}, replayed=replayed)
