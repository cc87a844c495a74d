"""The proof after a storm finds what it is there to find: each promise, broken once in a record that is otherwise in order."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from horarium.catalog import ledger
from horarium.catalog.schedules import Schedule
from horarium.control.admission import ADMITTED
from horarium.schedule.identity import ScheduleKey
from horarium.schedule.ledger import BY_CALENDAR, Disposition, Reason
from tests.chaos import proof
from tests.chaos.people import Asked
from tests.chaos.record import Record, Story
from tests.chaos.words import Said, Word

START = datetime(2026, 11, 30, 12, 0, 1, tzinfo=UTC)
ID = "7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11"
FIRST, SECOND = "first run", "second run"
ASKED = Asked(person="ada", operation="publish", schedule_id=ID, request={}, key="k")
ASKED.receipt = SimpleNamespace(receipt_id="r")


def entry(number: int, **values) -> ledger.Entry:
    at = START.replace(second=5 * number)
    usual = {"generation": 1, "trigger": BY_CALENDAR, "first_at": at, "last_at": at, "count": 1, "held_since": at}
    ended = {"disposition": Disposition.SUCCEEDED, "reason": None, "closed_at": at}
    return ledger.Entry(**{"row": number, **usual, **ended, **values})


def run(run_id: str, agent: str, **values) -> ledger.Run:
    names = ledger.Run.__dataclass_fields__
    usual = {"run_id": run_id, "decision": ADMITTED, "agent_version": agent, "begun_at": START, "cost": 3}
    return ledger.Run(**{**dict.fromkeys(names), **usual, **values})


def record(*, first=None, ran=None, second=None, held=None, **values) -> Record:
    """One schedule every five seconds, whose activation of ten seconds had two runs, of three units each."""
    key = ScheduleKey(org_id="o", environment_id="e", schedule_id=ID)
    interval = {"every_seconds": 5, "offset_seconds": 0}
    ended = START + timedelta(seconds=10)
    activation = SimpleNamespace(
        generation=1, revision=1, enabled=True, activated_at=START, ended_at=ended, ended_as="paused"
    )
    rows = [
        (entry(1, **(first or {})), run(FIRST, "once@1", **(ran or {}))),
        (entry(2, **(second or {})), run(SECOND, "posted-once@1")),
    ]
    story = Story(
        schedule=Schedule(
            row=1, key=key, contract="v1", head_revision=1, generation=1, created_at=START, retired_at=None
        ),
        versions={1: SimpleNamespace(document={"calendar": {"intervals": [interval]}})},
        activations=[activation],
        rows=rows,
    )
    money = {"state": "settled", "settled": 3, "closed_at": START, "budget": "wide", "wallet": None, **(held or {})}
    usual = {
        "stories": {ID: story},
        "events": [{"kind": "published", "details": {"receipt_id": "r"}}],
        "receipts": {("ada", "k"): {"receipt_id": "r"}},
        "reservations": {FIRST: money, SECOND: {**money, "settled": 3, "state": "settled", "closed_at": START}},
        "accounts": {("budget", "wide"): {"reserved": 0, "spent": 6}},
    }
    return Record(**{**usual, **values})


def word(said: Said, run_id: str, agent: str, nominal: int, **more) -> Word:
    told = {"schedule": ID, "nominal": START.replace(second=5 * nominal).isoformat(), **more}
    return Word(said=said, run_id=run_id, agent=agent, pid=1, at=START, more=told)


WORDS = [
    word(Said.BEGUN, FIRST, "once@1", 1),
    word(Said.ENDED, FIRST, "once@1", 1, outcome="succeeded", cost=3),
    word(Said.POSTED, SECOND, "posted-once@1", 2),
    word(Said.BEGUN, SECOND, "posted-once@1", 2),
    word(Said.ENDED, SECOND, "posted-once@1", 2, told={"outcome": "succeeded", "cost": 3}),
    word(Said.REPORTED, SECOND, "posted-once@1", 2, told={"outcome": "succeeded", "cost": 3}, status=200),
]


def breaches(found: Record, words=WORDS, asked=(ASKED,), state=("paused", None)) -> list[str]:
    told = [
        *proof.every_instant_is_answered(found),
        *proof.no_run_twice(found, words),
        *proof.no_instant_twice(found, words),
        *proof.ledger_and_agents_agree(found, words),
        *proof.reports_count_once(found, words),
        *proof.money_adds_up(found),
        *proof.every_answer_holds(found, asked),
        *proof.states_are_settled(found, {ID: state}),
    ]
    return [each.sentence for each in told]


def test_of_a_record_in_order_nothing_is_told():
    assert breaches(record()) == []


NOT_STARTED = {"disposition": Disposition.NOT_STARTED, "reason": Reason.NOT_PICKED_UP}


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        ({"found": record(first={"count": 2})}, "had 2 instants due"),
        ({"found": record(first={"closed_at": None})}, "is open"),
        ({"found": record(first={"generation": 2})}, "1 are entered"),
        ({"found": record(first=NOT_STARTED)}, "was begun by once@1, and is not_started"),
        ({"found": record(), "words": [*WORDS, WORDS[0]]}, "was begun 2 times by once@1"),
        ({"found": record(), "words": [*WORDS, WORDS[2]]}, "was sent 2 times"),
        ({"found": record(), "words": [*WORDS, replace(WORDS[0], run_id="x")]}, "the ledger does not know it"),
        ({"found": record(), "words": [*WORDS, word(Said.BEGUN, SECOND, "again@1", 1)]}, "was run as"),
        ({"found": record(), "words": WORDS[2:]}, "succeeded, and once@1 did not"),
        ({"found": record(), "words": [WORDS[0], WORDS[1], WORDS[4]]}, "posted-once@1 never had it"),
        ({"found": record(second={"disposition": Disposition.TIMED_OUT})}, "was taken as"),
        ({"found": record(held={"closed_at": None, "state": "held"})}, "should cost 3"),
        ({"found": record(held={"settled": 4})}, "should cost 3"),
        ({"found": record(ran={"cost": None})}, "should cost 10"),
        ({"found": record(accounts={("budget", "wide"): {"reserved": 10, "spent": 6}})}, "reserve nothing"),
        ({"found": record(reservations={})}, "nothing was reserved"),
        ({"found": record(receipts={})}, "stored is None"),
        ({"found": record(), "asked": ()}, "nobody asked for"),
        ({"found": record(), "asked": (ASKED, replace(ASKED, key="other"))}, "stored is None"),
        ({"found": record(events=2 * record().events)}, "is told as"),
        ({"found": record(events=[])}, "is told as"),
        ({"found": record(), "state": ("active", None)}, "is read as active"),
    ],
)  # fmt: skip
def test_what_is_broken_is_told(broken, told):
    assert any(told in sentence for sentence in breaches(**broken)), breaches(**broken)
