"""People's sessions at the pages: begun at sign-in, ended by signing out, by time, and when the person leaves.

A session's secret is known to the browser alone; the catalog keeps its hash.
"""

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection

from horarium.catalog import sessions as stored
from horarium.catalog.sessions import SignedIn, StoredSession
from horarium.control.principals import Principal, PrincipalKind
from horarium.errors import Forbidden

IDLE: Final = timedelta(hours=1)
"""How long a session lives after the person did something last. A page that refreshes itself is no such thing."""
LONGEST: Final = timedelta(hours=12)
"""How long a session lives at the most; then the person signs in again, so whoever lost access is out by then."""
MOST_SESSIONS: Final = 10
"""Sessions of one person at a time. One more ends the oldest."""
CODE_LIFETIME: Final = timedelta(minutes=5)
"""How long a code may be used to sign in."""
TOUCH_EVERY: Final = timedelta(minutes=1)
"""How exactly it is known when a person did something last: each look at a page would else be a change of the catalog."""
MOST_ENVIRONMENTS: Final = 1_000
"""Environments that one person is shown to choose from."""
_SECRET_BYTES: Final = 32
_ALPHABET: Final = "ABCDEFGHJKMNPQRSTVWXYZ23456789"
_GROUPS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A session that is alive. `form_token` stands in each of its forms, and cannot be told from outside of the session."""

    principal: Principal
    form_token: str = field(repr=False)
    is_stale: bool
    """Whether `touch` is due."""


def begin(
    connection: Connection,
    principal: Principal,
    *,
    now: datetime,
    before: str | None = None,
    until: datetime | None = None,
) -> str:
    """Begin a session of a person and return its secret.

    `before` is the secret that the browser showed: that session ends, so nobody who put one there shares the new one. `until`
    is when it ends at the latest, where that is sooner than usual. Raises `Forbidden` for a key, and for a person who has left.
    """
    if principal.kind is not PrincipalKind.HUMAN:
        raise Forbidden(
            "human_session_required",
            f"{principal.name!r} is a key, and the pages are for people.",
            next_step="Sign in as a person; a program asks the API.",
        )
    if stored.has_left(connection, org_id=principal.org_id, person=principal.name):
        raise Forbidden("principal_left", f"{principal.name!r} has left the organization {principal.org_id!r}.")
    stored.delete_ended(connection, now=now)
    if before is not None:
        stored.delete_session(connection, _hash(before))
    who = SignedIn(org_id=principal.org_id, person=principal.name, scopes=sorted(principal.scopes))
    stored.make_room(connection, who, most=MOST_SESSIONS)
    secret = secrets.token_urlsafe(_SECRET_BYTES)
    session = StoredSession(
        secret_hash=_hash(secret),
        who=who,
        began_at=now,
        used_at=now,
        ends_at=min(now + LONGEST, until or now + LONGEST),
    )
    stored.insert_session(connection, session)
    return secret


def resume(connection: Connection, secret: str, *, now: datetime) -> Session | None:
    """The session of a secret; None where it has ended, the person has left, or there never was one."""
    found = stored.find_session(connection, _hash(secret))
    if found is None or now >= min(found.ends_at, found.used_at + IDLE):
        return None
    if stored.has_left(connection, org_id=found.who.org_id, person=found.who.person):
        return None
    return Session(
        principal=_principal(found.who),
        form_token=form_token(secret),
        is_stale=now - found.used_at >= TOUCH_EVERY,
    )


def touch(connection: Connection, secret: str, *, now: datetime) -> None:
    """Write down that the person did something."""
    stored.touch_session(connection, _hash(secret), now=now)


def end(connection: Connection, secret: str) -> None:
    """Sign out."""
    stored.delete_session(connection, _hash(secret))


def make_code(connection: Connection, principal: Principal, *, now: datetime) -> str:
    """A code with which a person signs in once, within `CODE_LIFETIME`. It is easily typed: no letter looks like another."""
    code = "-".join("".join(secrets.choice(_ALPHABET) for _ in range(_GROUPS)) for _ in range(_GROUPS))
    who = SignedIn(org_id=principal.org_id, person=principal.name, scopes=sorted(principal.scopes))
    stored.delete_ended(connection, now=now)
    stored.insert_code(connection, _hash(code), who, ends_at=now + CODE_LIFETIME)
    return code


def redeem(connection: Connection, code: str, *, now: datetime) -> Principal | None:
    """Use a code up: the person it was made for, or None for one that was used, is over, or never was."""
    found = stored.take_code(connection, _hash(code.strip().upper()), now=now)
    return None if found is None else _principal(found)


def environments(connection: Connection, principal: Principal) -> Sequence[str]:
    """The environments that a person may choose from: those of their organization."""
    return stored.environments_of(connection, org_id=principal.org_id, limit=MOST_ENVIRONMENTS)


def form_token(secret: str) -> str:
    """What the forms of a session hold. It follows from the secret, and the secret does not follow from it."""
    return hmac.new(secret.encode(), b"horarium form", hashlib.sha256).hexdigest()


def _principal(who: SignedIn) -> Principal:
    return Principal(name=who.person, kind=PrincipalKind.HUMAN, org_id=who.org_id, scopes=frozenset(who.scopes))


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
