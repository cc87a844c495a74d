"""A person is removed from everywhere the catalog names them, and what the record proves stays proven."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import JSON, String, Text, func, insert, select, update

from horarium.api.problems import Rejected
from horarium.api.tokens import principal_of
from horarium.catalog import deliveries, personal, presence
from horarium.catalog.audit_events import record_event
from horarium.catalog.declarations import declare, record_act, set_stop
from horarium.catalog.endpoints import find_endpoint, put_endpoint
from horarium.catalog.environments import ensure_environment
from horarium.catalog.notifications import tell_review, tell_test
from horarium.catalog.receipts import StoredReceipt, insert_receipt
from horarium.catalog.schedules import find_activation, require_schedule
from horarium.catalog.session_tables import sessions as session_table
from horarium.catalog.tables import (
    activations,
    audit_events,
    authority_events,
    metadata,
    receipts,
    runs,
    schedules,
    versions,
)
from horarium.control import erasing
from horarium.control.audit import audit, document
from horarium.control.erasing import Erased, erase_person, new_name
from horarium.control.notifications import body_of
from horarium.control.seals import Verified, seal_due, verify_seals
from horarium.errors import Conflict, Refused
from horarium.schedule.identity import Scope
from horarium.schedule.ledger import Disposition
from horarium.schedule.notifications import ASKED_FOR
from tests.control.desk import NOON, SCOPE, Desk, at, every

NAME = "ada.lövelace@acme.example"
OTHERS = Scope(org_id="globex", environment_id="test")


@pytest.fixture
def desk(own_desk: Desk) -> Desk:
    return own_desk


def lived(desk: Desk) -> None:
    """Somebody published, enabled, triggered and paused; was told of; signed in; and wrote down a word or two."""
    loop = desk.enabled(every(60))
    loop.step_at(58)
    run = loop.run(60)
    desk.now = at(60)
    desk.admit(run)
    desk.begin(run)
    desk.now = at(70)
    desk.settle(run, Disposition.SUCCEEDED)
    desk.pause()
    desk.write(named, desk)
    desk.write(seal_due, SCOPE, now=at(121))
    desk.write(named_again, desk)
    desk.write(seal_due, SCOPE, now=at(181))
    desk.write(named_again, desk)


def named(connection: Any, desk: Desk) -> None:
    row = require_schedule(connection, desk.key).row
    connection.execute(update(versions).where(versions.c.schedule == row).values(published_by=NAME))
    connection.execute(
        update(activations)
        .where(activations.c.schedule == row)
        .values(changed_by=NAME, ended_reason=f"Paused by {NAME!r}.")
    )
    evidence = {"person": NAME, "sentence": f"{NAME!r} may read it."}
    connection.execute(update(runs).values(triggered_by=NAME, evidence=evidence, summary=f"Wrote to {NAME} twice."))
    record_act(connection, SCOPE, "stopped", actor=NAME, now=NOON, details={"by": NAME, "names": {NAME: 1}})
    record_act(connection, SCOPE, "stopped", actor=NAME, now=NOON, details={}, everywhere=True)
    set_stop(connection, SCOPE, everywhere=False, by=NAME, because="enough", now=NOON)
    receipt = StoredReceipt(
        receipt_id="a-receipt",
        operation="publish",
        body_digest="sha256:0",
        reset_generation=1,
        document={"record": {"published_by": NAME}},
        created_at=NOON,
    )
    insert_receipt(connection, SCOPE, NAME, "key", receipt)
    connection.execute(
        insert(session_table).values(
            secret_hash="0" * 64, org_id="acme", person=NAME, scopes=[], began_at=NOON, used_at=NOON, ends_at=at(9e6)
        )
    )
    named_again(connection, desk)


def named_again(connection: Any, desk: Desk) -> None:
    schedule = require_schedule(connection, desk.key)
    details = {"to": {"changed_by": NAME}, "because": f"{NAME!r} said so", "other": "bob"}
    record_event(connection, schedule, "noted", at=at(80), actor=NAME, details=details)
    record_event(connection, schedule, "noted", at=at(81), actor="bob", details={"because": "of nobody"})


def erased(desk: Desk, *, dry: bool = False, instead: str | None = None, name: str = NAME) -> Erased:
    return erase_person(
        desk.catalog, SCOPE, name, instead=instead or new_name(), by="olga", clock=lambda: at(300), dry=dry
    )


def whole(desk: Desk) -> str:
    """Everything that the catalog holds, as text."""

    def read(connection: Any) -> str:
        return "\n".join(
            f"{table.name}: {json.dumps(dict(row._mapping), default=str, ensure_ascii=False)}"
            for table in metadata.sorted_tables
            for row in connection.execute(select(table))
        )

    return desk.read(read)


def test_a_dry_run_says_where_the_person_is_named_and_changes_nothing(desk: Desk) -> None:
    lived(desk)
    before = whole(desk)
    found = erased(desk, dry=True)
    assert whole(desk) == before
    assert found.dry
    assert found.rows == {
        "versions": 1,
        "activations": 2,
        "runs": 1,
        "receipts": 1,
        "authority_events": 2,
        "stops": 1,
        "audit_events": 3,
        "sessions": 1,
    }
    assert found.seals == 2
    assert found.texts == {"runs.summary": 1}


def test_the_name_gives_way_everywhere_and_the_audit_says_what_has_no_proof_any_more(desk: Desk) -> None:
    lived(desk)
    dry = erased(desk, dry=True)
    was = desk.read(verify_seals, SCOPE)
    done = erased(desk)
    assert (done.rows, done.seals, done.texts) == (dry.rows, dry.seals, dry.texts)
    left = [line for line in whole(desk).splitlines() if NAME in line]
    assert [line.partition(":")[0] for line in left] == ["runs"], "what an agent wrote is its own"

    result = desk.read(audit, SCOPE, now=at(300))
    assert result.clean, document(result)
    assert result.seals.redacted == 2
    assert result.seals.last == was.last, "the chain is that of before"
    assert desk.read(lambda c: find_activation(c, require_schedule(c, desk.key), 1)).changed_by == done.instead
    principal, told = desk.read(lambda c: c.execute(select(receipts.c.principal, receipts.c.document)).one())
    assert (principal, told) == (done.instead, {"record": {"published_by": done.instead}})
    act = desk.read(lambda c: c.execute(select(authority_events).order_by(authority_events.c.id.desc()).limit(1)).one())
    assert (act.kind, act.actor, act.details["instead"]) == ("person_erased", "olga", done.instead)
    assert NAME not in json.dumps(act.details, ensure_ascii=False)


def test_what_is_changed_after_a_redaction_is_found_as_ever(desk: Desk) -> None:
    lived(desk)
    erased(desk)
    desk.write(lambda c: c.execute(update(audit_events).where(audit_events.c.actor == "bob").values(actor="eve")))
    assert {fault.code for fault in desk.read(verify_seals, SCOPE).faults} == {"event_changed"}


def test_a_seal_that_does_not_fit_is_not_covered_up(desk: Desk) -> None:
    lived(desk)
    desk.write(lambda c: c.execute(update(audit_events).where(audit_events.c.actor == "bob").values(actor="eve")))
    before = whole(desk)
    with pytest.raises(Refused, match="audit_not_clean"):
        erased(desk)
    assert whole(desk) == before


def test_a_seal_that_does_not_fit_in_another_environment_keeps_the_name_everywhere(desk: Desk) -> None:
    """Else the person would be half erased, and could not be wholly until somebody found out about that seal."""
    lived(desk)
    elsewhere = Scope(org_id=SCOPE.org_id, environment_id="zoo")
    desk.write(lambda c: ensure_environment(c, elsewhere, mode="simulation", runtime_profile="embedded"))
    key = replace(desk.key, environment_id=elsewhere.environment_id)

    def there(connection: Any) -> None:
        row = dict(
            connection.execute(select(schedules).where(schedules.c.schedule_id == key.schedule_id)).one()._mapping
        )
        del row["id"]
        connection.execute(insert(schedules).values({**row, "environment_id": key.environment_id}))
        record_event(connection, require_schedule(connection, key), "noted", at=at(80), actor=NAME, details={})

    desk.write(there)
    desk.write(seal_due, elsewhere, now=at(121))
    desk.write(
        lambda c: c.execute(
            update(audit_events).where(audit_events.c.schedule == require_schedule(c, key).row).values(kind="changed")
        )
    )
    before = whole(desk)
    with pytest.raises(Refused, match="audit_not_clean"):
        erased(desk)
    assert whole(desk) == before


def test_what_is_changed_while_a_person_is_erased_is_not_covered_up(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    lived(desk)
    verify = erasing.verify_seals

    def changed_after(connection: Any, scope: Scope) -> Verified:
        found = verify(connection, scope)
        monkeypatch.undo()
        desk.write(lambda c: c.execute(update(audit_events).where(audit_events.c.actor == "bob").values(actor="eve")))
        return found

    monkeypatch.setattr(erasing, "verify_seals", changed_after)
    with pytest.raises(Refused, match="audit_not_clean"):
        erased(desk)
    assert {fault.code for fault in desk.read(verify_seals, SCOPE).faults} == {"event_changed"}
    assert desk.read(verify_seals, SCOPE).redacted == 0


def test_an_event_that_is_sealed_meanwhile_is_not_passed_over(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    lived(desk)
    verify = erasing.verify_seals

    def sealed_after(connection: Any, scope: Scope) -> Verified:
        found = verify(connection, scope)
        monkeypatch.undo()
        assert desk.write(seal_due, SCOPE, now=at(301)) is not None
        return found

    monkeypatch.setattr(erasing, "verify_seals", sealed_after)
    assert erased(desk).seals == 3
    assert [line.partition(":")[0] for line in whole(desk).splitlines() if NAME in line] == ["runs"]
    assert desk.read(verify_seals, SCOPE).faults == ()


def test_seals_go_on_after_an_erasure(desk: Desk) -> None:
    lived(desk)
    erased(desk)
    assert desk.write(seal_due, SCOPE, now=at(400)).number == 3
    assert desk.read(verify_seals, SCOPE).faults == ()


def test_whoever_is_relied_on_stays_until_somebody_else_is(desk: Desk) -> None:
    loop = desk.enabled(every(60))
    row = desk.read(lambda c: require_schedule(c, desk.key).row)
    desk.write(lambda c: c.execute(update(activations).where(activations.c.schedule == row).values(changed_by=NAME)))
    with pytest.raises(Conflict, match="person_relied_on") as refused:
        erased(desk)
    assert desk.key.schedule_id in str(refused.value)
    assert erased(desk, dry=True).rows == {"activations": 1}
    del loop
    desk.pause()
    assert erased(desk).rows == {"activations": 1}


@pytest.mark.parametrize(
    ("kind", "name", "facts"),
    [("person", NAME, {"left": True}), ("input", "letters", {"readers": [NAME]}), ("grant", "g", {"by": NAME})],
)
def test_whoever_is_declared_is_first_taken_out_of_the_file(desk: Desk, kind: str, name: str, facts: Any) -> None:
    desk.write(declare, SCOPE, kind, name, facts, version=1, everywhere=kind == "person")
    with pytest.raises(Conflict, match="person_declared") as refused:
        erased(desk)
    assert f"{kind} {name!r}" in str(refused.value)


def test_the_same_name_in_another_organization_is_somebody_else(desk: Desk) -> None:
    lived(desk)
    desk.write(lambda c: ensure_environment(c, OTHERS, mode="simulation", runtime_profile="embedded"))
    desk.write(lambda c: record_act(c, OTHERS, "stopped", actor=NAME, now=NOON, details={"by": NAME}))
    erased(desk)
    theirs = desk.read(lambda c: c.execute(select(authority_events).where(authority_events.c.org_id == "globex")).one())
    assert (theirs.actor, theirs.details) == (NAME, {"by": NAME})


@pytest.mark.parametrize("dies_at", [1, 3, 6])
def test_an_erasure_that_was_interrupted_is_finished_under_the_same_name(
    dies_at: int, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    lived(desk)
    change, count, instead = personal.change_row, 0, new_name()

    def dying(*args: Any) -> None:
        nonlocal count
        count += 1
        if count == dies_at:
            raise KeyboardInterrupt
        change(*args)

    monkeypatch.setattr(personal, "change_row", dying)
    with pytest.raises(KeyboardInterrupt):
        erased(desk, instead=instead)
    monkeypatch.undo()
    assert desk.read(audit, SCOPE, now=at(300)).clean
    erased(desk, instead=instead)
    assert [line.partition(":")[0] for line in whole(desk).splitlines() if NAME in line] == ["runs"]
    assert set(re.findall(r"erased:[0-9a-f]{32}", whole(desk))) == {instead}


def test_whoever_erases_themselves_is_not_written_down_by_it(desk: Desk) -> None:
    lived(desk)
    instead = new_name()
    erase_person(desk.catalog, SCOPE, NAME, instead=instead, by=NAME, clock=lambda: at(300), dry=False)
    assert [line.partition(":")[0] for line in whole(desk).splitlines() if NAME in line] == ["runs"]


def test_a_name_of_ours_is_no_person_and_what_stands_instead_is_no_name(desk: Desk) -> None:
    for wrong in ("", "system:controller", new_name(), "x" * 201, "a\nb"):
        with pytest.raises(Refused, match="invalid_principal"):
            erased(desk, name=wrong)
    with pytest.raises(Refused, match="invalid_tombstone"):
        erased(desk, instead="bob")


def test_no_token_can_claim_to_be_who_was_erased() -> None:
    with pytest.raises(Rejected, match="unauthenticated"):
        principal_of(name=new_name(), kind="human", org_id="acme", scope="")


def test_every_column_that_may_name_a_person_is_looked_at() -> None:
    """A new table that names persons, or has sentences in which one may be, has to say so, or be among those that do not."""
    looked_at = {
        (place.table.name, column)
        for place in (*personal.PLACES, personal.EVENTS)
        for column in (*place.names, *place.documents, *place.texts)
    }
    removed = {("sessions", "person"), ("sign_in_codes", "person")}
    may_name = re.compile(r"(.*_)?(by|actor|principal|person|user|owner|subject|because|error)")
    found = {
        (table.name, column.name)
        for table in metadata.sorted_tables
        for column in table.columns
        if isinstance(column.type, String | Text | JSON)
        and (may_name.fullmatch(column.name) or (isinstance(column.type, Text) and column.name.endswith("reason")))
    }
    assert found - looked_at - removed == {("runs", "owner")}, "the owner of a run is a workflow"


def notified(desk: Desk, *, org: Scope = SCOPE, by: str = NAME) -> None:
    """Somebody declared an endpoint, tried it, and sent a schedule to review; none of it was heard."""
    pager = {"url": "https://pager.example/", "secret": "HORARIUM_SECRET_PAGER", "private": False}
    told = {"kinds": ASKED_FOR, "schedule_id": None, "now": NOON}
    desk.write(put_endpoint, org, "pager", by=by, **pager, **told)
    desk.write(lambda c: tell_test(c, org, find_endpoint(c, org, "pager"), by=by, now=NOON))
    if org == SCOPE:
        desk.write(
            lambda c: tell_review(
                c, require_schedule(c, desk.key, lock=True), 1, because=f"Revoked by {by!r}.", now=NOON
            )
        )
    desk.write(deliveries.spread, org, now=NOON, limit=10)
    endpoint = desk.read(find_endpoint, org, "pager")
    assert endpoint is not None
    desk.write(deliveries.mark_gone, org, endpoint, status=410, because=f"No {by!r} here.", now=NOON)


def test_whoever_was_told_of_is_erased_where_people_are_told(desk: Desk) -> None:
    desk.enabled(every(60))
    desk.pause()
    notified(desk)
    row = desk.read(lambda c: require_schedule(c, desk.key).row)
    desk.write(presence.observe, row, generation=2, state="review", reason=f"Revoked by {NAME!r}.", now=NOON)
    assert erased(desk, dry=True).rows == {"endpoints": 1, "notifications": 2, "deliveries": 2, "runtime": 1}
    done = erased(desk)
    assert done.rows == {"endpoints": 1, "notifications": 2, "deliveries": 2, "runtime": 1}
    assert done.texts == {}
    assert NAME not in whole(desk)
    assert desk.read(lambda c: find_endpoint(c, SCOPE, "pager").declared_by) == done.instead
    dead = desk.read(deliveries.list_dead, SCOPE, after=0, limit=10)
    assert [json.loads(body_of(each.notification))["data"]["because"] for each in dead] == [
        f"A test, asked for by {done.instead!r}.",
        f"Revoked by {done.instead!r}.",
    ]


def test_an_endpoint_that_is_named_after_somebody_is_counted_for_whoever_looks(desk: Desk) -> None:
    desk.enabled(every(60))
    desk.pause()
    pager = {"url": "https://pager.example/ada", "secret": "HORARIUM_SECRET_PAGER", "private": False}
    told = {"kinds": ASKED_FOR, "schedule_id": None, "now": NOON}
    desk.write(put_endpoint, SCOPE, "ada", by="bob", **pager, **told)
    assert erased(desk, name="ada").texts == {"endpoints.name": 1, "endpoints.url": 1}


@pytest.mark.parametrize(
    ("text", "is_of_the_person"),
    [
        (f"paused by {NAME}", True),
        (f"Everything was stopped at noon by {NAME}: enough", True),
        (f"The approval of this version by {NAME} expired at noon.", True),
        (f"Refused: {NAME!r} may not read it.", True),
        (f"paused by {NAME}.jr", False),
        (f"paused by {NAME} the second", False),
    ],
)
def test_a_sentence_of_ours_names_nobody_any_more_and_names_others_as_before(
    text: str, is_of_the_person: bool, desk: Desk
) -> None:
    desk.enabled(every(60))
    desk.pause()
    desk.write(lambda c: c.execute(update(activations).values(ended_reason=text)))
    done = erased(desk)
    found = desk.read(lambda c: c.execute(select(activations.c.ended_reason)).scalars().first())
    assert found == (text.replace(NAME, done.instead) if is_of_the_person else text)


def test_whoever_another_organization_tells_of_is_somebody_else(desk: Desk) -> None:
    desk.enabled(every(60))
    desk.pause()
    desk.write(lambda c: ensure_environment(c, OTHERS, mode="simulation", runtime_profile="embedded"))
    notified(desk, org=OTHERS)
    before = whole(desk)
    assert NAME in before
    assert erased(desk).rows == {}
    left = [line for line in whole(desk).splitlines() if NAME in line]
    assert left == [line for line in before.splitlines() if NAME in line]


def test_the_directory_of_sessions_knows_nobody_any_more(desk: Desk) -> None:
    lived(desk)
    erased(desk)
    assert desk.read(lambda c: c.execute(select(func.count()).select_from(session_table)).scalar_one()) == 0
