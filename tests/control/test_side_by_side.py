"""Many processes that ask for the same thing at the same moment, each with connections of its own: one of them gets it, and
the others are told what they would be told one after the other."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest
from sqlalchemy import func, select

from horarium.catalog import Catalog, presence
from horarium.catalog.environments import ensure_environment, find_environment
from horarium.catalog.schedules import require_schedule, require_version
from horarium.catalog.tables import agents, seals, workers
from horarium.control import activation, admission, operations, running, stepping
from horarium.control.activation import Reviewed
from horarium.control.admission import ADMITTED, WITHDRAWN
from horarium.control.audit import audit
from horarium.control.publication import Published, publish
from horarium.control.receipts import Receipt
from horarium.control.running import Outcome
from horarium.control.seals import seal_due
from horarium.control.stepping import Committed, Status
from horarium.errors import Refused
from horarium.schedule.identity import ActivationKey, Scope
from horarium.schedule.ledger import Disposition
from horarium.schedule.plan import plan
from tests.control.caller import Caller
from tests.control.desk import FAR, LOOK, SCOPE, Desk, Loop, at, every, open_undurable

AT_ONCE = 50
SOME = 16
"""Enough to meet wherever the order of two matters."""
Ask = Callable[..., Any]


@pytest.fixture
def desk(own_desk: Desk) -> Desk:
    # A desk lets workers beat in each of its transactions, which would put all writers in a row.
    own_desk.workers_beat = False
    return own_desk


@pytest.fixture
def processes(own_catalog: Catalog) -> Iterator[list[Catalog]]:
    url = own_catalog.engine.url.render_as_string(hide_password=False)
    with ExitStack() as stack:
        opened = [open_undurable(url) for _ in range(AT_ONCE)]
        for each in opened:
            stack.callback(each.close)
        yield opened


def at_once(processes: Sequence[Catalog], asks: Sequence[Ask]) -> list[Any]:
    """What each process is told that makes its one transaction at the same moment as all others: an answer or a refusal."""
    gate = threading.Barrier(len(asks))

    def one(process: Catalog, ask: Ask) -> Any:
        with process.reading():
            pass  # a connection is there
        gate.wait()
        try:
            with process.writing() as connection:
                return ask(connection)
        except Refused as error:
            return error

    with ThreadPoolExecutor(len(asks)) as pool:
        return list(pool.map(one, processes[: len(asks)], asks))


def told(answers: Sequence[Any]) -> Counter[str]:
    """The answers by their class, or by the code of a refusal."""
    return Counter(each.code if isinstance(each, Refused) else type(each).__name__ for each in answers)


def test_the_first_version_of_a_schedule_is_published_once(desk: Desk, processes: list[Catalog]) -> None:
    asks = [
        partial(publish, key=desk.key, document=every(60 + n), expected_revision=0, by="ada", now=desk.now)
        for n in range(AT_ONCE)
    ]
    assert told(at_once(processes, asks)) == {"Published": 1, "revision_conflict": AT_ONCE - 1}
    assert desk.read(require_schedule, desk.key).head_revision == 1


def test_versions_that_expect_nothing_are_all_published_each_with_a_number(
    desk: Desk, processes: list[Catalog]
) -> None:
    asks = [
        partial(publish, key=desk.key, document=every(60 + n), expected_revision=None, by="ada", now=desk.now)
        for n in range(AT_ONCE)
    ]
    answers: list[Published] = at_once(processes, asks)
    assert sorted(each.version.revision for each in answers) == list(range(1, AT_ONCE + 1))
    schedule = desk.read(require_schedule, desk.key)
    for each in answers:
        assert desk.read(require_version, schedule, each.version.revision).digest == each.version.digest


def test_an_environment_is_made_once_and_left_as_it_is(desk: Desk, processes: list[Catalog]) -> None:
    scope = Scope(org_id="acme", environment_id="new")
    asks = [partial(ensure_environment, scope=scope, mode="live", runtime_profile=f"p{n}") for n in range(AT_ONCE)]
    assert told(at_once(processes, asks)) == {"NoneType": AT_ONCE}
    made = desk.read(find_environment, scope)
    desk.write(ensure_environment, scope, mode="simulation", runtime_profile="late")
    assert desk.read(find_environment, scope) == made


def test_requests_of_one_expected_revision_make_one_version_and_one_receipt(
    desk: Desk, processes: list[Catalog]
) -> None:
    caller = Caller(desk)
    asks = [
        partial(operations.publish, **sent(caller, caller.publication(every(60 + n)), f"key-{n}"))
        for n in range(AT_ONCE)
    ]
    assert told(at_once(processes, asks)) == {"Receipt": 1, "revision_conflict": AT_ONCE - 1}


def test_requests_of_one_key_and_body_are_one_receipt(desk: Desk, processes: list[Catalog]) -> None:
    caller = Caller(desk)
    ask = partial(operations.publish, **sent(caller, caller.publication(every(60)), "one"))
    answers: list[Receipt] = at_once(processes, [ask] * AT_ONCE)
    assert told(answers) == {"Receipt": AT_ONCE}
    assert Counter(each.replayed for each in answers) == {False: 1, True: AT_ONCE - 1}
    assert len({each.document["receipt_id"] for each in answers}) == 1
    assert desk.read(require_schedule, desk.key).head_revision == 1


def sent(caller: Caller, request: object, key: str) -> dict[str, Any]:
    scope = caller.desk.key.scope
    return {"principal": caller.principal, "scope": scope, "request": request, "key": key, "now": caller.desk.now}


def test_one_generation_is_enabled_once(desk: Desk, processes: list[Catalog]) -> None:
    desk.publish(every(60))
    ask = partial(
        activation.enable, key=desk.key, reviewed=Reviewed(generation=0), content=desk.content, by="ada", now=desk.now
    )
    assert told(at_once(processes, [ask] * SOME)) == {"Changed": 1, "generation_conflict": SOME - 1}


def test_a_plan_is_carried_out_once(desk: Desk, processes: list[Catalog]) -> None:
    loop = desk.enabled(every(60))
    desk.now = at(600)
    gathered = loop.gather()
    assert gathered.facts is not None
    ask = partial(
        stepping.commit, key=loop.key, plan=plan(gathered.facts), now=desk.now, attended_until=desk.now + LOOK
    )
    answers: list[Committed] = at_once(processes, [ask] * SOME)
    assert Counter(each.status for each in answers) == {Status.DONE: 1, Status.STALE: SOME - 1}
    assert len({each.staged for each in answers}) == 1
    desk.check_ledger()


def staged(desk: Desk, offset: int = 60) -> Any:
    """A run of the schedule that is due at that offset, and its loop."""
    loop = desk.enabled(every(60))
    loop.step_at(offset - 1)
    desk.now = at(offset)
    return loop.run(offset)


def test_a_run_is_decided_for_one_owner(desk: Desk, processes: list[Catalog]) -> None:
    run = staged(desk)
    asks = [
        partial(admission.decide, key=run, content=desk.content, owner=f"owner{n}", now=desk.now) for n in range(SOME)
    ]
    assert Counter(each.outcome for each in at_once(processes, asks)) == {ADMITTED: 1, WITHDRAWN: SOME - 1}


def test_attempts_of_one_owner_are_told_the_same_decision(desk: Desk, processes: list[Catalog]) -> None:
    ask = partial(admission.decide, key=staged(desk), content=desk.content, owner="one", now=desk.now)
    assert Counter(each.outcome for each in at_once(processes, [ask] * SOME)) == {ADMITTED: SOME}


def test_a_run_is_begun_once(desk: Desk, processes: list[Catalog]) -> None:
    run = staged(desk)
    assert desk.admit(run).outcome == ADMITTED
    ask = partial(running.begin, run_id=run.run_id, again=False, now=desk.now)
    assert told(at_once(processes, [ask] * SOME)) == {"Begun": 1, "already_begun": SOME - 1}


def test_a_run_has_one_end(desk: Desk, processes: list[Catalog]) -> None:
    run = staged(desk)
    desk.admit(run)
    desk.begin(run)
    asks = [
        partial(
            running.settle,
            key=run,
            outcome=Outcome(disposition=Disposition.SUCCEEDED, reason=None, summary=f"end {n}"),
            now=at(61 + n),
        )
        for n in range(SOME)
    ]
    at_once(processes, asks)
    [entry] = desk.entries()
    row = desk.run_row(run)
    assert row is not None
    assert (entry.disposition, entry.closed_at) == (Disposition.SUCCEEDED, row.ended_at)
    assert row.summary == f"end {round((row.ended_at - at(61)).total_seconds())}"
    assert desk.holding() == 0


def test_events_are_sealed_once(desk: Desk, processes: list[Catalog]) -> None:
    desk.publish(every(60))
    asks = [partial(seal_due, scope=SCOPE, now=at(120))] * SOME
    assert told(at_once(processes, asks)) == {"Seal": 1, "NoneType": SOME - 1}
    assert desk.read(lambda c: c.execute(select(func.count()).select_from(seals)).scalar_one()) == 1


def test_heartbeats_and_leases_of_one_name_are_one_row(desk: Desk, processes: list[Catalog]) -> None:
    beats = [partial(presence.beat, instance="new", role="runs", tzdata="t", now=at(n / 100)) for n in range(SOME // 2)]
    leases = [
        partial(presence.register_agent, scope=SCOPE, agent_version="new", discovery={}, lease_until=FAR, now=at(n))
        for n in range(SOME // 2)
    ]
    assert told(at_once(processes, [*beats, *leases])) == {"NoneType": SOME}
    for table, name in ((workers, workers.c.instance), (agents, agents.c.agent_version)):
        rows = desk.read(lambda c, t=table, n=name: c.execute(select(func.count()).select_from(t).where(n == "new")))
        assert rows.scalar_one() == 1


def _step(desk: Desk, _rows: list[int], _chance: random.Random) -> None:
    Loop(desk, ActivationKey(schedule=desk.key, generation=desk.activation().generation)).step()


def _decide(desk: Desk, _rows: list[int], chance: random.Random) -> None:
    for entry in desk.entries():
        if entry.disposition is Disposition.STAGED and entry.first_at <= desk.now:
            desk.admit(entry.run_key(desk.key), owner=f"owner{chance.randint(1, 3)}")


def _run(desk: Desk, _rows: list[int], _chance: random.Random) -> None:
    for entry in desk.entries():
        if entry.disposition is Disposition.ADMITTED:
            desk.begin(entry.run_key(desk.key))
        elif entry.disposition is Disposition.STARTED:
            desk.settle(entry.run_key(desk.key))


def _observe(desk: Desk, rows: list[int], chance: random.Random) -> None:
    seen = [
        presence.Seen(row=row, generation=chance.randint(1, 9), state="active", reason=None)
        for row in chance.sample(rows, chance.randint(1, len(rows)))
    ]
    desk.write(presence.observe_all, seen, now=desk.now)


ACTS: dict[str, Callable[[Desk, list[int], random.Random], Any]] = {
    "step": _step,
    "decide": _decide,
    "run": _run,
    "observe": _observe,
    "publish": lambda desk, _, chance: desk.publish(every(10, overlap="allow", window=chance.randint(60, 3_600))),
    "enable": lambda desk, _rows, _chance: desk.enable(),
    "pause": lambda desk, _rows, _chance: desk.pause(),
    "seal": lambda desk, _rows, _chance: desk.write(seal_due, SCOPE, now=desk.now),
    "beat": lambda desk, _, chance: desk.write(
        presence.beat, instance=f"w{chance.randint(1, 3)}", role="runs", tzdata="t", now=desk.now
    ),
}
SECONDS_A_SECOND = 30
"""How fast the clock of the last test goes."""


def test_whatever_goes_on_side_by_side_no_two_wait_for_each_other(desk: Desk, processes: list[Catalog]) -> None:
    """Whoever is refused is refused by the state and never by a lock, and the ledger is whole afterwards."""
    keys = []
    for _ in range(4):
        each = Desk(desk.catalog)
        each.enabled(every(10, overlap="allow"))
        keys.append(each.key)
    rows = [desk.read(require_schedule, key).row for key in keys]
    began, done, troubles = time.monotonic(), Counter[str](), list[str]()

    def busy(process: Catalog, number: int) -> None:
        chance = random.Random(number)
        while time.monotonic() < began + 3 and not troubles:
            own = Desk(process, now=at(SECONDS_A_SECOND * (time.monotonic() - began)))
            own.workers_beat, own.key = False, chance.choice(keys)
            name = chance.choice(list(ACTS))
            try:
                ACTS[name](own, rows, chance)
                done[name] += 1
            except Refused as error:
                if error.code in {"catalog_unavailable", "internal_error"}:
                    troubles.append(f"{name}: {error}")

    with ThreadPoolExecutor(SOME) as pool:
        for finished in [pool.submit(busy, process, number) for number, process in enumerate(processes[:SOME])]:
            finished.result()
    assert troubles == []
    assert done.keys() == ACTS.keys()
    for key in keys:
        desk.key = key
        desk.check_ledger()
    result = desk.read(audit, SCOPE, now=at(SECONDS_A_SECOND * 3 + 1))
    assert result.clean, result
