"""What must hold after the storm: each function holds one promise against the record, and tells every breach of it.

The agents' own log, the answers that people heard and the arithmetic of intervals are the witnesses; none of them is the
library's own word.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from horarium.catalog import ledger
from horarium.catalog.money import ReservationState
from horarium.control.admission import ADMITTED
from horarium.schedule.ledger import BY_CALENDAR, Disposition, Reason
from tests.chaos.fates import MAX_COST
from tests.chaos.people import Asked
from tests.chaos.record import Record, Story
from tests.chaos.schedules import ELSEWHERE, IDEMPOTENT, TIGHT
from tests.chaos.words import Said, Word

ATTEMPTS = 3
"""How often an agent on a runner is given a run at the most, where it is idempotent."""
_BEGUN = frozenset(
    {
        Disposition.STARTED,
        Disposition.SUCCEEDED,
        Disposition.FAILED,
        Disposition.TIMED_OUT,
        Disposition.CANCELLED,
        Disposition.TERMINATED,
    }
)
_REPORTED = {
    "succeeded": (Disposition.SUCCEEDED, None),
    "failed": (Disposition.FAILED, Reason.AGENT_REPORTED_FAILURE),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """A promise that was broken, and of which schedule and instant if it is about one."""

    sentence: str
    schedule_id: str | None = None
    instant: datetime | None = None


def every_instant_is_answered(record: Record) -> Iterator[Breach]:
    """Sum of what was entered is what was due, by the arithmetic of intervals, activation by activation."""
    for story in record.stories.values():
        entered: Counter[int] = Counter()
        for entry, _ in story.rows:
            if entry.closed_at is None:
                yield _about(story, entry, f"is open: {entry.disposition}")
            if entry.trigger == BY_CALENDAR:
                entered[entry.generation] += entry.count
        for each in story.activations:
            if not each.enabled:
                continue
            if each.ended_at is None:
                yield Breach(sentence=f"Generation {each.generation} has not ended.", schedule_id=story.schedule_id)
                continue
            interval = story.versions[each.revision].document["calendar"]["intervals"][0]
            every, offset = interval["every_seconds"], interval["offset_seconds"]
            due = _passed(each.ended_at, every, offset) - _passed(each.activated_at, every, offset)
            if due != entered[each.generation]:
                sentence = (
                    f"Generation {each.generation} had {due} instants due in ({each.activated_at}, {each.ended_at}], and "
                    f"{entered[each.generation]} are entered."
                )
                yield Breach(sentence=sentence, schedule_id=story.schedule_id, instant=each.activated_at)


def no_run_twice(record: Record, words: Sequence[Word]) -> Iterator[Breach]:
    """An agent that is not idempotent is given a run once; another one no oftener than it may be, and one at a time there."""
    given = Counter((word.agent, word.run_id) for word in words if word.said is Said.BEGUN)
    posted = Counter((word.agent, word.run_id) for word in words if word.said is Said.POSTED)
    for (agent, run_id), count in given.items():
        allowed = ATTEMPTS if agent in IDEMPOTENT and agent not in ELSEWHERE else None if agent in IDEMPOTENT else 1
        if allowed is not None and count > allowed:
            yield _of_run(record, run_id, f"was begun {count} times by {agent}")
    for (agent, run_id), count in posted.items():
        if agent not in IDEMPOTENT and count > 1:
            yield _of_run(record, run_id, f"was sent {count} times to {agent}")


def no_instant_twice(record: Record, words: Sequence[Word]) -> Iterator[Breach]:
    """No instant of a schedule has two runs, whatever their ids."""
    runs: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    found = record.runs
    for word in words:
        # Manual runs have nominal times of their own, one a second or more.
        if word.said is Said.BEGUN and word.run_id in found and found[word.run_id][1].trigger == BY_CALENDAR:
            runs[word.more["schedule"], word.more["nominal"]].add(word.run_id)
    for (schedule_id, nominal), ids in runs.items():
        if len(ids) > 1:
            sentence = f"The instant {nominal} was run as {', '.join(sorted(ids))}."
            yield Breach(sentence=sentence, schedule_id=schedule_id, instant=datetime.fromisoformat(nominal))


def ledger_and_agents_agree(record: Record, words: Sequence[Word]) -> Iterator[Breach]:
    """What an agent began, the ledger calls begun or unknown; what the ledger calls done, an agent did."""
    begun = {word.run_id for word in words if word.said is Said.BEGUN}
    ended: defaultdict[str, set[str]] = defaultdict(set)
    for word in words:
        if word.said is Said.ENDED:
            ended[word.run_id].add(word.more.get("outcome") or word.more["told"]["outcome"])
    runs = record.runs
    for run_id in begun - runs.keys():
        yield Breach(sentence=f"Run {run_id} was begun, and the ledger does not know it.")
    for run_id, (story, entry, run) in runs.items():
        elsewhere = run.agent_version in ELSEWHERE
        if run_id in begun:
            unknown = elsewhere and (entry.disposition, entry.reason) == (
                Disposition.NOT_STARTED,
                Reason.START_UNKNOWN,
            )
            if not unknown and (entry.disposition not in _BEGUN or run.begun_at is None):
                yield _about(story, entry, f"was begun by {run.agent_version}, and is {_told(entry)}")
        elif elsewhere and run.begun_at is not None:
            yield _about(story, entry, f"is begun, and {run.agent_version} never had it")
        if entry.disposition is Disposition.SUCCEEDED and "succeeded" not in ended[run_id]:
            yield _about(story, entry, f"succeeded, and {run.agent_version} did not")


def reports_count_once(record: Record, words: Sequence[Word]) -> Iterator[Breach]:
    """What an agent elsewhere was told to be taken, stands in the ledger; and it was told so of one outcome only."""
    runs = record.runs
    for word in words:
        if word.said is not Said.REPORTED or word.more["status"] != 200:
            continue
        story, entry, run = runs[word.run_id]
        told = word.more["told"]
        if (entry.disposition, entry.reason) != _REPORTED[told["outcome"]] or run.cost != told.get("cost"):
            yield _about(story, entry, f"is {_told(entry)} for {run.cost}, and was taken as {told}")


def money_adds_up(record: Record) -> Iterator[Breach]:
    """Nothing stays reserved, each run is settled by what became of it, and accounts are the sums of that."""
    spent: Counter[tuple[str, str]] = Counter()
    runs = record.runs
    for run_id, (story, entry, run) in runs.items():
        held = record.reservations.get(run_id)
        if run.decision == ADMITTED and held is None:
            yield _about(story, entry, "was admitted, and nothing was reserved for it")
        if held is None:
            continue
        expected = _price(entry, run)
        settled = held["settled"] if held["state"] == ReservationState.SETTLED else None
        if held["closed_at"] is None or settled != expected:
            yield _about(story, entry, f"is {_told(entry)}, should cost {expected}, and its money is {dict(held)}")
    for run_id, held in record.reservations.items():
        if run_id not in runs:
            yield Breach(sentence=f"A reservation of run {run_id}, which the ledger does not know: {dict(held)}.")
        if held["state"] == ReservationState.SETTLED:
            spent["budget", held["budget"]] += held["settled"]
            if held["wallet"] is not None:
                spent["wallet", held["wallet"]] += held["settled"]
    for place, row in record.accounts.items():
        if row["reserved"] != 0 or row["spent"] != spent[place]:
            yield Breach(sentence=f"{place} should have spent {spent[place]} and reserve nothing; it is {dict(row)}.")
    if spent["budget", "tight"] > TIGHT:
        yield Breach(sentence=f"The tight budget spent {spent['budget', 'tight']} of {TIGHT}.")


def every_answer_holds(record: Record, asked: Sequence[Asked]) -> Iterator[Breach]:
    """Each receipt that was given stands, each request happened at most once, and nothing happened that nobody asked for."""
    # A new activation is told as the end of the one before too, under the same receipt.
    told: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for event in record.events:
        if "receipt_id" in event["details"]:
            told[event["details"]["receipt_id"]][event["kind"]] += 1
    manual = Counter(
        entry.trigger.removeprefix("manual:")
        for story in record.stories.values()
        for entry, _ in story.rows
        if entry.trigger != BY_CALENDAR
    )
    expected = set()
    for each in asked:
        found = record.receipts.get((each.person, each.key))
        what = f"{each.person}'s {each.operation} with the key {each.key}"
        if each.receipt is not None and (found is None or found["receipt_id"] != each.receipt.receipt_id):
            yield Breach(
                sentence=f"{what} was answered with a receipt; stored is {found}.", schedule_id=each.schedule_id
            )
        if each.refused is not None and found is not None and not each.lost:
            yield Breach(sentence=f"{what} was refused, and has happened: {found}.", schedule_id=each.schedule_id)
        if each.receipt is None and each.refused is None:
            yield Breach(sentence=f"{what} has never had an answer.", schedule_id=each.schedule_id)
        if found is None:
            continue
        receipt_id = found["receipt_id"]
        expected.add(receipt_id)
        if set(told[receipt_id].values()) != {1} or len(told[receipt_id]) > 2:
            yield Breach(sentence=f"{what} is told as {dict(told[receipt_id])}.", schedule_id=each.schedule_id)
        if each.operation == "trigger" and manual[receipt_id] != 1:
            yield Breach(sentence=f"{what} is {manual[receipt_id]} runs.", schedule_id=each.schedule_id)
    for receipt_id in (told.keys() | manual.keys()) - expected:
        yield Breach(sentence=f"Receipt {receipt_id} is of something that nobody asked for.")
    for story in record.stories.values():
        published = sum(
            record.receipts.get((each.person, each.key)) is not None
            for each in asked
            if each.operation == "publish" and each.schedule_id == story.schedule_id
        )
        if published != story.schedule.head_revision:
            sentence = f"{published} publications made {story.schedule.head_revision} versions."
            yield Breach(sentence=sentence, schedule_id=story.schedule_id)


def states_are_settled(record: Record, states: Mapping[str, tuple[str, str | None]]) -> Iterator[Breach]:
    """What people read of each schedule is where it stands: paused, or in review with a reason."""
    for schedule_id, story in record.stories.items():
        state, reason = states.get(schedule_id, ("nowhere", None))
        last = story.activations[-1] if story.activations else None
        expected = "review" if last is not None and last.ended_as == "review" else "paused"
        if state != expected or (state == "review" and not reason):
            sentence = f"It is read as {state} ({reason}), and should be {expected}."
            yield Breach(sentence=sentence, schedule_id=schedule_id)


def attempts_at_the_same_time(words: Sequence[Word]) -> int:
    """How often an idempotent agent was given a run while an earlier attempt, in another process, still went on to its end.

    The contract allows it: a runner that stands still for longer than its heartbeat counts as lost, and may wake.
    """
    begun: defaultdict[str, list[Word]] = defaultdict(list)
    ended: defaultdict[tuple[str, int], list[datetime]] = defaultdict(list)
    for word in words:
        if word.said is Said.BEGUN:
            begun[word.run_id].append(word)
        elif word.said is Said.ENDED:
            ended[word.run_id, word.pid].append(word.at)
    return sum(
        any(at > later.at for at in ended[run_id, earlier.pid])
        for run_id, attempts in begun.items()
        for number, earlier in enumerate(attempts)
        for later in attempts[number + 1 :]
        if earlier.pid != later.pid
    )


def _price(entry: ledger.Entry, run: ledger.Run) -> int | None:
    """What a run must have cost; None where its reservation is given back."""
    if run.begun_at is not None:
        return MAX_COST if run.cost is None else run.cost
    sent = run.dispatch_sent is not None and entry.reason is not Reason.DISPATCH_REFUSED
    return MAX_COST if entry.reason is Reason.START_UNKNOWN or sent else None


def _passed(instant: datetime, every: int, offset: int) -> int:
    return int((instant.timestamp() - offset) // every)


def _told(entry: ledger.Entry) -> str:
    return entry.disposition if entry.reason is None else f"{entry.disposition} ({entry.reason})"


def _about(story: Story, entry: ledger.Entry, what: str) -> Breach:
    sentence = f"Generation {entry.generation}, {entry.trigger}, {entry.first_at.isoformat()}: it {what}."
    return Breach(sentence=sentence, schedule_id=story.schedule_id, instant=entry.first_at)


def _of_run(record: Record, run_id: str, what: str) -> Breach:
    found = record.runs.get(run_id)
    if found is None:
        return Breach(sentence=f"Run {run_id} {what}, and the ledger does not know it.")
    return _about(found[0], found[1], what)
