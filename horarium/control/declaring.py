"""Applying a file of declarations: what would change, and the change itself, in one transaction (DESIGN.md, section 8)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from horarium.authority.declared import KINDS, Declared, stored
from horarium.authority.file import EVERYWHERE, PLURALS, AuthorityFile, Declarations, read_declarations
from horarium.authority.references import check_references
from horarium.calendar.faults import Faults, pointer
from horarium.catalog import money
from horarium.catalog.declarations import (
    Declaration,
    declare_all,
    list_declarations,
    lock_organization,
    record_act,
    withdraw_all,
)
from horarium.catalog.environments import Environment, change_environment, create_environment, find_environment
from horarium.control.attempts import Attempt, attempt
from horarium.control.principals import OPERATOR_SCOPE, Principal, authorize
from horarium.control.receipts import Receipt, perform
from horarium.schedule.identity import Scope

APPLY = "apply"
_FIRST = 1
"""The epoch and the reset generation of a new environment."""
_NAMED = 20
"""How many names a warning lists; the changes have them all."""

Standing = Mapping[tuple[str, str], Declaration]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One difference between what is declared and a file; `before` and `after` are None where there is nothing."""

    kind: str
    name: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None

    @property
    def document(self) -> dict[str, Any]:
        """The difference as people and programs read it."""
        action = "created" if self.before is None else "withdrawn" if self.after is None else "changed"
        return {"action": action, "kind": self.kind, "name": self.name, "from": self.before, "to": self.after}


def apply(
    connection: Connection,
    principal: Principal,
    scope: Scope,
    declared: object,
    key: str,
    *,
    now: datetime,
    required_scope: str = OPERATOR_SCOPE,
) -> Receipt:
    """Make an environment what a file says, by a person or a key; the receipt tells every change.

    An environment that is not there is created, at epoch 1 and reset generation 1. A kind that the file does not name is left
    alone; of one that it names, what does not stand there is withdrawn. Epoch, reset generation, kill switches and what was
    counted of money are never touched. A file that changes nothing records nothing but its receipt. `declared` is the
    document, or an `Attempt` of `read_declarations`.

    Raises `NotFound` for another organization's environment, `Forbidden`, and `InvalidSchedule` with every fault of the file,
    references to what will not stand and a new currency for what was counted among them; then nothing has changed, and no
    environment was created.
    """
    authorize(principal, scope, required_scope)
    asked = _attempt(declared)
    created = False
    if not asked.is_refused or find_environment(connection, scope) is None:
        # What is refused raises here, unless there may be a receipt of it.
        created = create_environment(connection, _environment(scope, _read(asked, scope).file))

    def act(environment: Environment, receipt_id: str) -> dict[str, Any]:
        read = _read(asked, scope)
        if EVERYWHERE & read.kinds.keys():
            lock_organization(connection, scope)
        changes = _changes(connection, None if created else environment, scope, read)
        _carry_out(connection, scope, read, changes, by=principal.name, now=now, receipt_id=receipt_id)
        return {"changes": [each.document for each in changes], "warnings": _withdrawals(changes)}

    return perform(
        connection,
        scope,
        principal,
        key,
        operation=APPLY,
        body=asked.document,
        expected=None,
        now=now,
        act=act,
        outlives_resets=True,
    )


def preview_of(
    connection: Connection,
    principal: Principal,
    scope: Scope,
    declared: object,
    *,
    required_scope: str = OPERATOR_SCOPE,
) -> dict[str, Any]:
    """What `apply` would change now, as `{"operation": "apply", "dry_run": true, "changes": […]}`. Changes nothing."""
    authorize(principal, scope, required_scope)
    read = _read(_attempt(declared), scope)
    changes = _changes(connection, find_environment(connection, scope), scope, read)
    return {
        "operation": APPLY,
        "dry_run": True,
        "changes": [each.document for each in changes],
        "warnings": _withdrawals(changes),
    }


def _withdrawals(changes: Sequence[Change]) -> list[str]:
    """A sentence for each kind of which a file withdraws something: whoever meant to add to it is told what is gone."""
    names: dict[str, list[str]] = {}
    for each in changes:
        if each.after is None:
            names.setdefault(PLURALS[each.kind], []).append(repr(each.name))
    return [
        f"The file names {kind}, and of what stood there it withdraws {', '.join(gone[:_NAMED])}"
        + (f" and {len(gone) - _NAMED:,} more" if len(gone) > _NAMED else "")
        + ": a kind that a file names is replaced whole."
        for kind, gone in names.items()
    ]


def _attempt(declared: object) -> Attempt[Declarations]:
    return declared if isinstance(declared, Attempt) else attempt(read_declarations, declared)


def _read(asked: Attempt[Declarations], scope: Scope) -> Declarations:
    read = asked.value()
    require_scope_of(read, scope)
    return read


def require_scope_of(read: Declarations, scope: Scope) -> None:
    """Raise `InvalidSchedule` for a file about another environment than it was sent to."""
    faults = Faults()
    for at, named, here in (
        ("organization", read.file.organization, scope.org_id),
        ("environment", read.file.environment, scope.environment_id),
    ):
        if named != here:
            sentence = (
                f"The file is about {at} {named!r}, and was to be applied to {here!r}. Let both be the same; at the command "
                f"line HORARIUM_{at.upper()} says which it is."
            )
            faults.add(f"/{at}", f"other_{at}", sentence)
    faults.raise_if_any()


def _changes(connection: Connection, environment: Environment | None, scope: Scope, read: Declarations) -> list[Change]:
    """Every difference, in the order of kinds and names. Raises `InvalidSchedule` where what will stand does not fit."""
    standing = {(each.kind, each.name): each for each in list_declarations(connection, scope)}
    _check(connection, scope, standing, read)
    before = None if environment is None else _settings(environment)
    after = _settings(_environment(scope, read.file))
    own = Change(kind="environment", name=scope.environment_id, before=before, after=after)
    found = [] if before == after else [own]
    for kind, named in read.kinds.items():
        wanted = {name: stored(declared) for name, declared in named.items()}
        present = {name: dict(each.facts) for (of, name), each in standing.items() if of == kind}
        found += [
            Change(kind=kind, name=name, before=present.get(name), after=wanted.get(name))
            for name in sorted(wanted.keys() | present.keys())
            if wanted.get(name) != present.get(name)
        ]
    return found


def _check(connection: Connection, scope: Scope, standing: Standing, read: Declarations) -> None:
    will_stand: dict[str, Mapping[str, Declared]] = {
        kind: {name: model.model_validate(each.facts) for (of, name), each in standing.items() if of == kind}
        for kind, model in KINDS.items()
        if kind not in read.kinds
    }
    faults = Faults()
    check_references({**will_stand, **read.kinds}, named=read.kinds, development=read.file.development, faults=faults)
    for kind in (money.BUDGET, money.WALLET):
        for name, declared in read.kinds.get(kind, {}).items():
            before = standing.get((kind, name))
            if before is not None and before.facts["currency"] != stored(declared)["currency"]:
                _check_nothing_counted(money.account(connection, scope, kind, name), before, faults)
    faults.raise_if_any()


def _check_nothing_counted(account: money.Account, before: Declaration, faults: Faults) -> None:
    """Amounts are minor units of whatever the currency is: with another one, they would mean other money."""
    if account.reserved or account.spent:
        sentence = (
            f"In the {before.kind} {before.name!r} {account.spent} minor units of {before.facts['currency']} were counted, and "
            f"{account.reserved} are reserved. Nothing is exchanged: declare a {before.kind} of another name."
        )
        at = pointer(pointer(pointer("", PLURALS[before.kind]), before.name), "currency")
        faults.add(at, "currency_counted", sentence)


def _carry_out(
    connection: Connection,
    scope: Scope,
    read: Declarations,
    changes: list[Change],
    *,
    by: str,
    now: datetime,
    receipt_id: str,
) -> None:
    """Two records at the most: what changed for the whole organization stands in the story of each environment."""
    for everywhere in (True, False):
        some = [each for each in changes if (each.kind in EVERYWHERE) is everywhere]
        if not some:
            continue
        details = {
            "environment_id": scope.environment_id,
            "changes": [each.document for each in some],
            "receipt_id": receipt_id,
        }
        number = record_act(connection, scope, "applied", actor=by, now=now, details=details, everywhere=everywhere)
        if any(each.kind == "environment" for each in some):
            change_environment(connection, scope, **_settings(_environment(scope, read.file)))
        declared = [each for each in some if each.kind != "environment"]
        withdrawn = [(each.kind, each.name) for each in declared if each.after is None]
        withdraw_all(connection, scope, withdrawn, everywhere=everywhere)
        made = [(each.kind, each.name, each.after) for each in declared if each.after is not None]
        declare_all(connection, scope, made, version=number, everywhere=everywhere)


def _environment(scope: Scope, file: AuthorityFile) -> Environment:
    """A new environment as a file has it."""
    return Environment(
        scope=scope,
        mode=file.mode,
        authority_epoch=_FIRST,
        reset_generation=_FIRST,
        runtime_profile=file.runtime_profile,
        development=file.development,
        live_needs_approval=file.live_needs_approval,
    )


def _settings(environment: Environment) -> dict[str, Any]:
    """What a file says of the environment itself."""
    return {
        "mode": environment.mode,
        "runtime_profile": environment.runtime_profile,
        "development": environment.development,
        "live_needs_approval": environment.live_needs_approval,
    }
