"""What a caller is given: typed values, and the whole document beside them."""

import asyncio
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from horarium.client import Receipt, Reference, UnexpectedAnswer

from .test_requests import CALLS
from .wire import ENTRY, ENVIRONMENT, PUBLICATION, RECEIPT, RECORD, REFERENCE, SCHEDULE, SCOPE, Server


def get(answer, call):
    return asyncio.run(call(Server(answer).client()))


def test_a_record_is_typed_and_its_instants_are_aware():
    record = get(RECORD, lambda c: c.schedules.get(SCOPE, SCHEDULE))
    assert record.reference == Reference(**REFERENCE)
    assert record.reference.as_document() == REFERENCE
    assert record.published_at == datetime(2026, 11, 30, 12, tzinfo=UTC)
    assert (record.activation.generation, record.activation.version.revision, record.head.revision) == (4, 2, 3)
    assert record.runtime.observed_at.utcoffset() == timedelta(0)
    assert record.document == RECORD


def test_a_schedule_that_was_never_enabled_has_no_activation_and_no_observation():
    document = {**RECORD, "activation": None, "runtime": {"state": "paused", "generation": 0}}
    record = get(document, lambda c: c.schedules.get(SCOPE, SCHEDULE))
    assert record.activation is None
    assert record.runtime.observed_at is None


def test_a_receipt_carries_what_the_next_call_needs():
    receipt = get(RECEIPT, lambda c: c.schedules.publish(SCOPE, PUBLICATION, "k"))
    assert isinstance(receipt, Receipt)
    assert receipt.resource_id == RECEIPT["resource_id"]
    assert receipt.warnings == ("It will never run.",)
    assert receipt.created_at == datetime(2026, 11, 30, 12, 0, 0, 250_000, tzinfo=UTC)
    assert not receipt.replayed


def test_a_page_holds_entries_and_the_cursor_behind_them():
    page = get({"schedules": [ENTRY], "next_cursor": SCHEDULE}, lambda c: c.schedules.list(SCOPE))
    assert page.next_cursor == SCHEDULE
    assert page.schedules[0].next_due == datetime(2026, 12, 1, 6, 30, tzinfo=UTC)


@pytest.mark.parametrize("name", CALLS)
def test_what_a_newer_server_says_more_is_kept_and_disturbs_nothing(name):
    call, answer, *_ = CALLS[name]
    found = get({**answer, "invented_later": {"x": 1}}, call)
    assert found.document["invented_later"] == {"x": 1}


FOREIGN = {
    "a list": [],
    "a text": "hello",
    "another object": {"status": "ok"},
    "another type": {**ENVIRONMENT, "authority_epoch": "many"},
    "no mode": {name: value for name, value in ENVIRONMENT.items() if name != "mode"},
}


@pytest.mark.parametrize("answer", FOREIGN.values(), ids=FOREIGN)
def test_an_answer_of_another_form_is_told_and_not_believed(answer):
    with pytest.raises(UnexpectedAnswer):
        get(answer, lambda c: c.environments.get(SCOPE))


def test_an_instant_without_a_zone_is_not_believed():
    with pytest.raises(UnexpectedAnswer, match="published_at"):
        get({**RECORD, "published_at": "2026-11-30T12:00:00"}, lambda c: c.schedules.get(SCOPE, SCHEDULE))


@pytest.mark.parametrize("status", [200, 301, 302, 403, 404, 502])
def test_a_page_of_something_else_is_told_as_that(status):
    def answer(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(status, text="<html>Sign in</html>", headers={"Location": "http://elsewhere.test"})

    server = Server(answer)
    with pytest.raises(UnexpectedAnswer, match=f"status {status}"):
        asyncio.run(server.client().environments.get(SCOPE))
    assert len(server.requests) == 1, "a token is not carried to where a redirection leads"
