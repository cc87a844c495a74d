"""Queries on people's sessions at the pages, and on the codes that begin one. Secrets come here as hashes only."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Row, delete, insert, select, update

from horarium.catalog.declarations import ORGANIZATION
from horarium.catalog.session_tables import sessions, sign_in_codes
from horarium.catalog.tables import declarations, environments


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedIn:
    """A person as the token or the issuer named them, with the scopes that they were given then."""

    org_id: str
    person: str
    scopes: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSession:
    """A session as stored. `used_at` is when the person did something last, and `ends_at` its end whatever they do."""

    secret_hash: str
    who: SignedIn
    began_at: datetime
    used_at: datetime
    ends_at: datetime


def insert_session(connection: Connection, session: StoredSession) -> None:
    """Store a new session."""
    connection.execute(
        insert(sessions).values(
            secret_hash=session.secret_hash,
            org_id=session.who.org_id,
            person=session.who.person,
            scopes=list(session.who.scopes),
            began_at=session.began_at,
            used_at=session.used_at,
            ends_at=session.ends_at,
        )
    )


def find_session(connection: Connection, secret_hash: str) -> StoredSession | None:
    """A session by the hash of its secret, or None."""
    row = connection.execute(select(sessions).where(sessions.c.secret_hash == secret_hash)).one_or_none()
    return None if row is None else _session(row)


def touch_session(connection: Connection, secret_hash: str, *, now: datetime) -> None:
    """Write down that the person did something now."""
    connection.execute(update(sessions).where(sessions.c.secret_hash == secret_hash).values(used_at=now))


def delete_session(connection: Connection, secret_hash: str) -> None:
    """End a session; nothing happens to one that is not there."""
    connection.execute(delete(sessions).where(sessions.c.secret_hash == secret_hash))


def make_room(connection: Connection, who: SignedIn, *, most: int) -> None:
    """End the oldest sessions of a person, so that fewer than `most` are left."""
    mine = (sessions.c.org_id == who.org_id, sessions.c.person == who.person)
    query = select(sessions.c.secret_hash).where(*mine).order_by(sessions.c.began_at.desc()).offset(most - 1)
    old = connection.execute(query).scalars().all()
    if old:
        connection.execute(delete(sessions).where(sessions.c.secret_hash.in_(old)))


def delete_ended(connection: Connection, *, now: datetime) -> None:
    """Forget the sessions and the codes whose time is over."""
    connection.execute(delete(sessions).where(sessions.c.ends_at <= now))
    connection.execute(delete(sign_in_codes).where(sign_in_codes.c.ends_at <= now))


def insert_code(connection: Connection, code_hash: str, who: SignedIn, *, ends_at: datetime) -> None:
    """Store a code that lets a person sign in once."""
    connection.execute(
        insert(sign_in_codes).values(
            code_hash=code_hash, org_id=who.org_id, person=who.person, scopes=list(who.scopes), ends_at=ends_at
        )
    )


def take_code(connection: Connection, code_hash: str, *, now: datetime) -> SignedIn | None:
    """Use a code up: of two who show the same one, one gets the person. None where it was used, is over, or never was."""
    taken = (
        delete(sign_in_codes)
        .where(sign_in_codes.c.code_hash == code_hash, sign_in_codes.c.ends_at > now)
        .returning(sign_in_codes.c.org_id, sign_in_codes.c.person, sign_in_codes.c.scopes)
    )
    row = connection.execute(taken).one_or_none()
    return None if row is None else SignedIn(org_id=row.org_id, person=row.person, scopes=row.scopes)


def has_left(connection: Connection, *, org_id: str, person: str) -> bool:
    """Whether the organization declares that a person has left. Of one that it does not declare it says nothing."""
    query = select(declarations.c.facts).where(
        declarations.c.org_id == org_id,
        declarations.c.environment_id == ORGANIZATION,
        declarations.c.kind == "person",
        declarations.c.name == person,
    )
    facts = connection.execute(query).scalar_one_or_none()
    if facts is None:
        return False
    # What a hand has damaged is no word that the person is still there.
    return not isinstance(facts, dict) or facts.get("left", False) is not False


def environments_of(connection: Connection, *, org_id: str, limit: int) -> Sequence[str]:
    """The ids of an organization's environments, in their order."""
    query = select(environments.c.environment_id).where(environments.c.org_id == org_id)
    return connection.execute(query.order_by(environments.c.environment_id).limit(limit)).scalars().all()


def _session(row: Row[tuple[object, ...]]) -> StoredSession:
    return StoredSession(
        secret_hash=row.secret_hash,
        who=SignedIn(org_id=row.org_id, person=row.person, scopes=row.scopes),
        began_at=row.began_at,
        used_at=row.used_at,
        ends_at=row.ends_at,
    )
