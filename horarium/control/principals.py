"""Who asks, and what that allows. Asked anew at every request, a repeated one included."""

from dataclasses import dataclass
from enum import StrEnum

from horarium.catalog.environments import environment_not_found
from horarium.errors import Forbidden
from horarium.schedule.identity import Scope

WRITE_SCOPE = "synapse:schedules:write"
"""The scope of every operation on schedules, reads included, unless the installation sets another (seed 000)."""
OPERATOR_SCOPE = "horarium:authority:write"
"""The scope of everything that operators do, reads included, unless the installation sets another."""
MAX_NAME = 200
"""Characters of a principal's name."""


class PrincipalKind(StrEnum):
    """What stands behind a request."""

    HUMAN = "human"
    """A person in a session of their own."""
    KEY = "key"
    """A program with a key. It publishes and reads; it enables nothing."""
    LOCAL = "local"
    """The person at the embedded installation's own command line: a human with every scope."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """One who asks. `name` is what the record shows as the actor; it is unique in its organization over all kinds."""

    name: str
    kind: PrincipalKind
    org_id: str
    scopes: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not 1 <= len(self.name) <= MAX_NAME or not self.name.isprintable():
            raise Forbidden(
                "invalid_principal",
                f"A principal has a name of 1 to {MAX_NAME} printable characters; found {self.name[:80]!r}.",
            )


def local_principal(name: str, scope: Scope) -> Principal:
    """The person at the command line of the embedded installation of `scope`."""
    return Principal(name=name, kind=PrincipalKind.LOCAL, org_id=scope.org_id)


def authorize(principal: Principal, scope: Scope, required: str = WRITE_SCOPE, *, human: bool = False) -> None:
    """Let a principal through to an environment, or raise.

    `NotFound` for another organization, `Forbidden` without the `required` scope, and with `human` for whoever is no person.
    """
    require_organization(principal, scope)
    require_scope(principal, required)
    if human:
        require_human(principal)


def require_organization(principal: Principal, scope: Scope) -> None:
    """Raise `NotFound` for another organization's environment: the same answer as for one that does not exist."""
    if principal.org_id != scope.org_id:
        raise environment_not_found(scope)


def require_scope(principal: Principal, required: str) -> None:
    """Raise `Forbidden` with `scope_missing` unless the principal holds a scope. A local person holds all."""
    if principal.kind is not PrincipalKind.LOCAL and required not in principal.scopes:
        raise Forbidden(
            "scope_missing",
            f"{principal.name!r} does not hold the scope {required!r}, which this operation needs.",
            next_step=f"Use a token with that scope; in development `horarium token --scope {required}` prints one.",
        )


def require_human(principal: Principal) -> None:
    """Raise `Forbidden` with `human_session_required` for a key."""
    if principal.kind is PrincipalKind.KEY:
        raise Forbidden(
            "human_session_required",
            f"{principal.name!r} is a key, and this needs a person's own session: enabling, pausing, retiring and running now, "
            "and of an operator's acts all but applying a file.",
            next_step="Ask a person to do it; a key may publish, read, and apply.",
        )
