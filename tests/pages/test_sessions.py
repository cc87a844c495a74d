"""A person's session: its ends, its bounds, and what the catalog knows of it."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import func, select, text

from horarium.catalog import Catalog, migrate
from horarium.catalog.declarations import declare
from horarium.catalog.session_tables import sessions as table
from horarium.control import sessions
from horarium.control.principals import Principal, PrincipalKind
from horarium.errors import Forbidden
from horarium.schedule.identity import Scope
from tests.postgres.databases import Database

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
SCOPE = Scope(org_id="acme", environment_id="test")
ADA = Principal(name="ada", kind=PrincipalKind.HUMAN, org_id="acme", scopes=frozenset({"a", "b"}))
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


@pytest.fixture(scope="module")
def catalog(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    with database.migrated(tmp_path_factory.mktemp("catalog")) as url:
        opened = Catalog.open(url)
        migrate.require_current(opened)
        yield opened
        opened.close()


@pytest.fixture(autouse=True)
def nobody_is_signed_in(catalog: Catalog) -> None:
    with catalog.writing() as connection:
        for name in ("sessions", "sign_in_codes", "declarations"):
            connection.execute(text(f"DELETE FROM {name}"))


def begin(catalog: Catalog, who: Principal = ADA, *, now: datetime = NOON, **more) -> str:
    with catalog.writing() as connection:
        return sessions.begin(connection, who, now=now, **more)


def resume(catalog: Catalog, secret: str, *, now: datetime = NOON) -> sessions.Session | None:
    with catalog.reading() as connection:
        return sessions.resume(connection, secret, now=now)


def touch(catalog: Catalog, secret: str, *, now: datetime) -> None:
    with catalog.writing() as connection:
        sessions.touch(connection, secret, now=now)


def test_a_session_is_of_the_person_and_the_scopes_it_was_begun_with(catalog):
    found = resume(catalog, begin(catalog))
    assert found is not None
    assert found.principal == ADA


def test_a_secret_of_nobody_is_no_session(catalog):
    begin(catalog)
    assert resume(catalog, "of nobody") is None


def test_the_catalog_holds_no_secret(catalog):
    secret = begin(catalog)
    with catalog.reading() as connection:
        (row,) = connection.execute(select(table)).all()
    assert secret not in str(row)
    assert sessions.form_token(secret) not in str(row)


def test_a_session_that_nobody_uses_ends_and_one_that_is_used_lives_on(catalog):
    idle, used = begin(catalog), begin(catalog)
    touch(catalog, used, now=NOON + 59 * MINUTE)
    assert resume(catalog, idle, now=NOON + HOUR - timedelta(seconds=1)) is not None
    assert resume(catalog, idle, now=NOON + HOUR) is None
    assert resume(catalog, used, now=NOON + HOUR) is not None


def test_no_session_outlives_twelve_hours_however_busy(catalog):
    secret = begin(catalog)
    for hours in range(12):
        touch(catalog, secret, now=NOON + hours * HOUR + 59 * MINUTE)
    assert resume(catalog, secret, now=NOON + 12 * HOUR - timedelta(seconds=1)) is not None
    assert resume(catalog, secret, now=NOON + 12 * HOUR) is None


def test_a_session_ends_with_what_it_was_begun_by(catalog):
    secret = begin(catalog, until=NOON + 10 * MINUTE)
    assert resume(catalog, secret, now=NOON + 9 * MINUTE) is not None
    assert resume(catalog, secret, now=NOON + 10 * MINUTE) is None


def test_signing_out_ends_one_session_and_no_other(catalog):
    one, other = begin(catalog), begin(catalog)
    with catalog.writing() as connection:
        sessions.end(connection, one)
    assert resume(catalog, one) is None
    assert resume(catalog, other) is not None


def test_signing_in_again_ends_the_session_that_the_browser_had(catalog):
    before = begin(catalog)
    after = begin(catalog, before=before)
    assert after != before
    assert resume(catalog, before) is None
    assert resume(catalog, after) is not None


def test_a_person_has_ten_sessions_at_the_most_and_others_keep_theirs(catalog):
    bob = Principal(name="bob", kind=PrincipalKind.HUMAN, org_id="acme")
    ada_of_globex = Principal(name="ada", kind=PrincipalKind.HUMAN, org_id="globex")
    others = [begin(catalog, bob), begin(catalog, ada_of_globex)]
    mine = [begin(catalog, now=NOON + timedelta(seconds=number)) for number in range(12)]
    alive = [resume(catalog, secret, now=NOON + MINUTE) is not None for secret in mine]
    assert alive == [False, False] + [True] * 10
    assert all(resume(catalog, secret, now=NOON + MINUTE) for secret in others)


def test_what_is_over_is_forgotten_when_somebody_signs_in(catalog):
    begin(catalog)
    begin(catalog, now=NOON + 13 * HOUR)
    with catalog.reading() as connection:
        assert connection.execute(select(func.count()).select_from(table)).scalar_one() == 1


def test_a_person_who_left_is_out_at_once_and_gets_in_no_more(catalog):
    secret = begin(catalog)
    with catalog.writing() as connection:
        declare(connection, SCOPE, "person", "ada", {"left": False}, version=1, everywhere=True)
    assert resume(catalog, secret) is not None
    with catalog.writing() as connection:
        declare(connection, SCOPE, "person", "ada", {"left": True}, version=2, everywhere=True)
    assert resume(catalog, secret) is None
    with pytest.raises(Forbidden, match="has left"):
        begin(catalog)


def test_a_key_has_no_session(catalog):
    with pytest.raises(Forbidden, match="human_session_required"):
        begin(catalog, Principal(name="ci", kind=PrincipalKind.KEY, org_id="acme"))


def test_it_is_written_down_once_a_minute_that_somebody_is_there(catalog):
    secret = begin(catalog)
    fresh, later = resume(catalog, secret), resume(catalog, secret, now=NOON + MINUTE)
    assert fresh is not None
    assert later is not None
    assert (fresh.is_stale, later.is_stale) == (False, True)


def test_forms_of_two_sessions_have_two_tokens(catalog):
    one, other = begin(catalog), begin(catalog)
    assert sessions.form_token(one) == resume(catalog, one).form_token
    assert sessions.form_token(one) != sessions.form_token(other)


def code(catalog: Catalog) -> str:
    with catalog.writing() as connection:
        return sessions.make_code(connection, ADA, now=NOON)


def redeem(catalog: Catalog, text: str, *, now: datetime = NOON) -> Principal | None:
    with catalog.writing() as connection:
        return sessions.redeem(connection, text, now=now)


def test_a_code_lets_its_person_in_once(catalog):
    made = code(catalog)
    assert re.fullmatch(r"([A-Z2-9]{4}-){3}[A-Z2-9]{4}", made)
    assert redeem(catalog, f" {made.lower()}\n") == ADA
    assert redeem(catalog, made) is None


def test_a_code_is_over_after_five_minutes(catalog):
    made = code(catalog)
    assert redeem(catalog, made, now=NOON + 5 * MINUTE) is None
    assert redeem(catalog, made, now=NOON + 5 * MINUTE - timedelta(seconds=1)) == ADA


def test_a_code_that_never_was_lets_nobody_in(catalog):
    code(catalog)
    assert redeem(catalog, "AAAA-AAAA-AAAA-AAAA") is None
