"""The answer to a COMMIT is lost: it took effect, and whoever asked cannot know. The same call again tells, and changes nothing."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from horarium.catalog import Catalog
from horarium.catalog.failures import OutcomeUnknown
from horarium.control.receipts import Receipt
from horarium.control.stepping import Status
from horarium.schedule.ledger import Disposition
from horarium.schedule.plan import plan
from tests.control.caller import Caller, events
from tests.control.desk import Desk, at, every, furnish
from tests.postgres.databases import Database
from tests.postgres.proxy import LosingProxy
from tests.postgres.server import PostgresServer


@pytest.fixture
def proxy(postgres: PostgresServer) -> Iterator[LosingProxy]:
    with LosingProxy(postgres.port) as proxy:
        yield proxy


@pytest.fixture
def desk(postgres: PostgresServer, proxy: LosingProxy, tmp_path) -> Iterator[Desk]:
    with Database(postgres).migrated(tmp_path) as url:
        catalog = Catalog.open(url.replace(f":{postgres.port}/", f":{proxy.port}/"))
        furnish(catalog)
        yield Desk(catalog)
        catalog.close()


def lost(proxy: LosingProxy, call: Callable[[], Any]) -> Any:
    """Make a call whose answer is lost, and then the same call again: what that one is told."""
    proxy.armed = True
    with pytest.raises(OutcomeUnknown):
        call()
    assert not proxy.armed
    return call()


def test_a_publication_is_told_by_the_same_key(desk: Desk, proxy: LosingProxy) -> None:
    caller = Caller(desk)
    request = caller.publication(every(60))
    receipt: Receipt = lost(proxy, lambda: caller.send_publication(request, "mine"))
    assert receipt.replayed
    assert [each["kind"] for each in events(desk)] == ["published"]


def test_an_activation_is_told_by_the_same_key(desk: Desk, proxy: LosingProxy) -> None:
    caller = Caller(desk)
    request = caller.about(caller.publish(every(60)).document["reference"], 0, enabled=True)
    assert lost(proxy, lambda: caller.set(request, "mine")).replayed
    assert desk.activation().generation == 1


def test_a_step_finds_its_mark(desk: Desk, proxy: LosingProxy) -> None:
    loop = desk.enabled(every(60))
    desk.now = at(59)
    facts = loop.gather().facts
    assert facts is not None
    again = lost(proxy, lambda: loop.commit(plan(facts)))
    assert (again.status, again.staged) == (Status.STALE, (loop.run(60),))
    desk.check_ledger()


def test_a_decision_and_an_end_are_the_same_again(desk: Desk, proxy: LosingProxy) -> None:
    loop = desk.enabled(every(60))
    loop.step_at(59)
    desk.now = at(60)
    assert lost(proxy, lambda: desk.admit(loop.run(60))).outcome == "admitted"
    desk.begin(loop.run(60))
    lost(proxy, lambda: desk.settle(loop.run(60)))
    assert Counter(entry.disposition for entry in desk.entries()) == {Disposition.SUCCEEDED: 1}
