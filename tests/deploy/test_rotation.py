"""Keys rotate by the runbook's own words, and at each step every process reads what any other writes."""

import asyncio
import base64
import os
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from sqlalchemy import text
from temporalio.api.common.v1 import Payload

from horarium.authority.signing import Keys, keys_named, sign, verify
from horarium.catalog import Catalog, migrate
from horarium.errors import HorariumError, Misconfigured
from tests.deploy.runbook import BLOCKS
from tests.deploy.test_restore import libpq
from worker.codec import EncryptingCodec
from worker.payload_keys import PayloadKeys, read_payload_keys

MESSAGE = Payload(metadata={"encoding": b"json/plain"}, data=b'"what an agent said"')


def after(name: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment that a block of the runbook leaves."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", BLOCKS[name] + "\nenv -0"],
        env={"PATH": os.environ["PATH"]} | dict(environ),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return dict(each.split("=", 1) for each in done.stdout.split("\0") if "=" in each)


def codec(environ: Mapping[str, str]) -> EncryptingCodec:
    keys = read_payload_keys(environ)
    assert isinstance(keys, PayloadKeys)
    return EncryptingCodec(keys)


def carried(writer: EncryptingCodec, reader: EncryptingCodec) -> bool:
    """Whether one process reads what another one wrote."""

    async def carry() -> Payload:
        (opened,) = await reader.decode(await writer.encode([MESSAGE]))
        return opened

    try:
        return asyncio.run(carry()) == MESSAGE
    except HorariumError:
        return False


def test_at_each_step_of_payload_keys_all_processes_read_one_another():
    first = base64.b64encode(os.urandom(32)).decode()
    steps = [{"HORARIUM_SECRET_PAYLOAD_K1": first, "HORARIUM_PAYLOAD_KEYS": "k1=HORARIUM_SECRET_PAYLOAD_K1"}]
    for step in ("one", "two", "three"):
        steps.append(after(f"rotate payload keys {step}", steps[-1]))
    codecs = [codec(each) for each in steps]
    for before, behind in pairwise(codecs):
        # Some have made the step and some have not.
        assert carried(before, behind)
        assert carried(behind, before)
    assert not carried(codecs[0], codecs[-1]), "the old key is gone"
    assert not carried(codecs[-1], codecs[0]), "two steps at once leave a gap"


def taken(signer: Keys, reader: Keys) -> bool:
    """Whether one side takes what the other one signs."""
    now = datetime.now(UTC)
    try:
        return verify(sign(b"{}", signer, message_id="m1", now=now), b"{}", reader, now=now) == "m1"
    except HorariumError:
        return False


def test_at_each_step_of_a_shared_secret_both_sides_take_one_anothers_messages():
    name = "HORARIUM_SECRET_ACME"
    before = {name: "an-old-secret-of-twenty-four-bytes-and-more"}
    both = after("rotate a shared secret", before)
    end = after("rotate a shared secret to its end", both)
    new, old = both[name].split()
    assert (old, end[name]) == (before[name], new)
    theirs_both = keys_named(name, {name: f"{old} {new}"})
    theirs_new = keys_named(name, {name: new})
    for ours, theirs in ((before, theirs_both), (both, theirs_both), (both, theirs_new), (end, theirs_new)):
        assert taken(keys_named(name, ours), theirs)
        assert taken(theirs, keys_named(name, ours))
    assert not taken(keys_named(name, both), keys_named(name, before)), "the other side has to take both first"
    assert not taken(keys_named(name, before), keys_named(name, end)), "the old one is gone"


def test_a_second_role_of_the_catalog_acts_as_the_first_and_the_first_signs_in_no_more(postgres):
    for role in ("horarium_b", "horarium"):
        assert not postgres.execute(f"SELECT 1 FROM pg_roles WHERE rolname = '{role}'"), "this server is not ours alone"
    name = postgres.create_database()
    postgres.execute("CREATE ROLE horarium LOGIN")
    postgres.execute(f"ALTER DATABASE {name} OWNER TO horarium")
    try:
        migrated(postgres.url(name, user="horarium"))
        programs = os.pathsep.join([str(postgres._programs), os.environ["PATH"]])
        told = {"ADMIN": libpq(postgres.url(name)), "NEW_PASSWORD": "it's new", "PATH": programs}
        after("rotate the password of the catalog", told)
        after("rotate the password of the catalog to its end", told)
        with pytest.raises(Misconfigured, match="not permitted to log in"):
            migrated(postgres.url(name, user="horarium"))
        catalog = Catalog.open(postgres.url(name, user="horarium_b"))
        try:
            migrate.upgrade(catalog)
            with catalog.writing() as connection:
                connection.execute(text("CREATE TABLE made_later (id integer)"))
        finally:
            catalog.close()
        owners = postgres.execute(
            "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'public'", database=name
        )
        assert owners == [("horarium",)]
        ((stored,),) = postgres.execute("SELECT rolpassword IS NOT NULL FROM pg_authid WHERE rolname = 'horarium_b'")
        assert stored, "it has the password"
    finally:
        postgres.drop_database(name)
        postgres.execute("DROP ROLE IF EXISTS horarium_b")
        postgres.execute("DROP ROLE horarium")


def migrated(url: str) -> None:
    catalog = Catalog.open(url)
    try:
        migrate.upgrade(catalog)
    finally:
        catalog.close()
