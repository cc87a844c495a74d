"""One storm from its first to its last second: published, enabled, hit, calmed, and held to its promises."""

import asyncio
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, func, select

from horarium.catalog import ledger, lingering, presence
from horarium.catalog.tables import entries, reservations
from horarium.client import ClientError
from horarium.control.audit import audit, document
from tests.chaos import proof
from tests.chaos.fleet import REPOSITORY, Fleet, fleet
from tests.chaos.havoc import Havoc
from tests.chaos.people import Asked, Person
from tests.chaos.proof import Breach
from tests.chaos.record import Record, Story, read_record
from tests.chaos.schedules import PEOPLE, Planned, planned
from tests.chaos.words import Said, read_words

UP_WITHIN = 180.0
FIRES_AGAIN_WITHIN = 240.0
"""A blocked schedule whose nudge was lost looks by itself after a minute, and by then a second one may have been."""
QUIET_WITHIN = 240.0
"""The time limit of a run, what an agent may be away, and the pauses that settlements have reached meanwhile."""
_ROWS_SHOWN = 12


@dataclass(kw_only=True)
class Result:
    """What came of a storm: everything that was broken, and the figures."""

    folder: Path
    seed: int
    breaches: list[Breach] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    evidence: list[str] = field(default_factory=list)

    def told(self) -> str:
        """All of it, for a person who has to find out why."""
        lines = [json.dumps(self.figures, indent=2, default=str)]
        if self.breaches:
            lines += [f"Broken with seed {self.seed}; everything is kept in {self.folder}:"]
            for each in self.breaches:
                about = "" if each.schedule_id is None else f"schedule {each.schedule_id}: "
                lines.append(f"- {about}{each.sentence}")
            lines += self.evidence
        return "\n".join(lines)


async def storm(folder: Path, *, seconds: float, seed: int, catalog: str, say: Callable[[str], None] = print) -> Result:
    """Go through a storm of so many seconds. The folder is the caller's to remove."""
    result = Result(folder=folder, seed=seed)
    chance = random.Random(seed)
    schedules = list(planned(chance))
    async with fleet(folder, catalog=catalog, schedules=schedules, chance=random.Random(chance.random())) as it:
        for each in schedules:
            (it.settings.content.inputs / f"{each.schedule_id}.json").write_text(json.dumps(each.chances))
        if it.postgres is not None:
            say(f"PostgreSQL's folder is {it.postgres.folder}.")
        asked: list[Asked] = []
        retired: set[str] = set()
        async with AsyncExitStack() as stack:
            people = [
                await stack.enter_async_context(
                    Person(name, it, random.Random(chance.random()), asked=asked, retired=retired)
                )
                for name in PEOPLE
            ]
            await _begin(people[0], schedules)
            say(f"{len(schedules)} schedules are enabled; the storm of {seconds:g} s begins.")
            havoc = Havoc(it, random.Random(chance.random()))
            acting = [asyncio.create_task(each.act_at_random(schedules)) for each in people]
            await havoc.wreak(seconds)
            for each in acting:
                each.cancel()
            for each in await asyncio.gather(*acting, return_exceptions=True):
                if not isinstance(each, asyncio.CancelledError):
                    raise each  # a person lives until the storm is over
            await it.all_up()
            for each in people:
                await each.finish()
            say("All is up again.")
            await _calm(it, people[0], result, say)
            states = await _states(it, people[0], schedules)
            await _prove(it, result, asked, states)
        result.figures |= {
            "seconds": seconds,
            "blows": dict(sorted(havoc.blows.items())),
            "deaths": dict(sorted(it.deaths.items())),
            "errors in logs": _errors(folder / "logs"),
        }
    if it.postgres is not None and not result.breaches:
        it.postgres.remove()
    return result


async def _begin(person: Person, schedules: Sequence[Planned]) -> None:
    for each in schedules:
        asked = await person.publish(each.schedule_id, each.document, revision=0)
        assert asked.receipt is not None, asked
    async with asyncio.timeout(UP_WITHIN):
        for each in schedules:
            while True:
                record = await person.client.schedules.get(person.scope, each.schedule_id)
                asked = await person.enable(record)
                if asked.receipt is not None:
                    break


async def _calm(it: Fleet, person: Person, result: Result, say: Callable[[str], None]) -> None:
    """Wait until all fires again, then pause it all, and wait until nothing is open."""
    scope = it.settings.scope

    async def ready() -> bool:
        now = datetime.now(UTC)
        return await it.catalog.read(presence.execution_ready, now=now) and (
            len(await it.catalog.read(presence.present_agents, scope, now=now)) == 2
        )

    await _until(ready, UP_WITHIN, result, "The workers and the agents are not there again.")
    since = datetime.now(UTC)

    async def all_fire() -> bool:
        return not _silent(await it.catalog.read(read_record, scope), since)

    if not await _until(all_fire, FIRES_AGAIN_WITHIN, result, ""):
        for story in _silent(await it.catalog.read(read_record, scope), since):
            sentence = f"It is enabled, and has begun nothing since {since.isoformat()}."
            result.breaches.append(Breach(sentence=sentence, schedule_id=story.schedule_id, instant=since))
    say(f"All fires again, after {(datetime.now(UTC) - since).total_seconds():.0f} s.")
    await _pause_all(it, person)

    async def quiet() -> bool:
        return await it.catalog.read(_open, scope) == 0

    if not await _until(quiet, QUIET_WITHIN, result, ""):
        result.breaches.append(Breach(sentence=f"{await it.catalog.read(_open, scope)} things are still open."))
    say(f"All is quiet, {(datetime.now(UTC) - since).total_seconds():.0f} s after it was up.")


async def _pause_all(it: Fleet, person: Person) -> None:
    async with asyncio.timeout(UP_WITHIN):
        while live := [
            story.schedule_id
            for story in (await it.catalog.read(read_record, it.settings.scope)).stories.values()
            if story.activations and story.activations[-1].is_live
        ]:
            for schedule_id in live:
                with suppress(ClientError):
                    await person.pause(await person.client.schedules.get(person.scope, schedule_id))


def _silent(record: Record, since: datetime) -> list[Story]:
    """The enabled schedules of which nothing was decided since then but what waits."""
    return [
        story
        for story in record.stories.values()
        if story.activations
        and story.activations[-1].is_live
        and not any(
            run is not None and entry.trigger == "schedule" and run.decided_at is not None and run.decided_at > since
            for entry, run in story.rows
        )
    ]


def _open(connection: Connection, scope: Any) -> int:
    """Entries without an answer, money without an end, and workflows that have not closed."""
    counts = [
        connection.execute(select(func.count()).select_from(table).where(table.c.closed_at.is_(None))).scalar_one()
        for table in (entries, reservations)
    ]
    return sum(counts) + len(lingering.lingering(connection, scope))


async def _states(it: Fleet, person: Person, schedules: Sequence[Planned]) -> dict[str, tuple[str, str | None]]:
    """What people read of each schedule, once the controllers have had time to look; what they read last, if they did not."""
    found: dict[str, tuple[str, str | None]] = {}
    deadline = time.monotonic() + UP_WITHIN
    while time.monotonic() < deadline:
        with suppress(ClientError):
            page = await person.client.schedules.list(person.scope, limit=50, include_retired=True)
            found = {each.schedule_id: (each.runtime.state, each.runtime.reason) for each in page.schedules}
            settled = not any(state in {"pending", "stopping", "active"} for state, _ in found.values())
            if settled and len(found) == len(schedules):
                break
        await asyncio.sleep(0.5)
    return found


async def _prove(it: Fleet, result: Result, asked: Sequence[Asked], states: dict[str, tuple[str, str | None]]) -> None:
    scope, now = it.settings.scope, datetime.now(UTC)
    record, words = await it.catalog.read(read_record, scope), read_words(it.words)
    found = await it.catalog.read(audit, scope, now=now, grace=timedelta(0))
    breaches = result.breaches
    if not found.clean or found.not_entered:
        breaches.append(Breach(sentence=f"The audit is not clean: {json.dumps(document(found), default=str)}"))
    breaches += [
        *proof.every_instant_is_answered(record),
        *proof.no_run_twice(record, words),
        *proof.no_instant_twice(record, words),
        *proof.ledger_and_agents_agree(record, words),
        *proof.reports_count_once(record, words),
        *proof.money_adds_up(record),
        *proof.every_answer_holds(record, asked),
        *proof.states_are_settled(record, states),
        *await _audited(it),
        *await _running_workflows(it),
    ]
    breaches += [
        Breach(sentence=f"{each.person}'s {each.operation} was answered with a failure of the server: {failure}")
        for each in asked
        for failure in each.failures
    ]
    result.evidence += [line for each in breaches for line in _rows_around(record, each)]
    result.figures |= _figures(record, words, asked) | {"due": found.due, "dispositions": dict(found.dispositions)}


async def _audited(it: Fleet) -> list[Breach]:
    """Let the command find everything in order, as a person would ask it."""
    command = (sys.executable, "-m", "starter", "audit", "--grace", "0", "--data", str(it.folder), "-o", "json")
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=REPOSITORY,
        env=it.environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    said, errors = await process.communicate()
    if process.returncode == 0:
        return []
    return [Breach(sentence=f"`horarium audit` said {said.decode()[:2_000]} {errors.decode()[:2_000]}")]


async def _running_workflows(it: Fleet) -> list[Breach]:
    """Visibility lags a little, so it is asked until it says that nothing runs."""
    client = await it.temporal_client()
    left: list[str] = []
    for _ in range(60):
        left = [each.id async for each in client.list_workflows("ExecutionStatus = 'Running'")]
        if not left:
            break
        await asyncio.sleep(1)
    return [Breach(sentence=f"The workflow {each} is still running.") for each in left]


def _rows_around(record: Record, breach: Breach) -> list[str]:
    if breach.schedule_id is None or breach.schedule_id not in record.stories:
        return []
    story = record.stories[breach.schedule_id]
    lines = [f"Schedule {breach.schedule_id} ({story.versions[1].document['name']}), {breach.sentence}"]
    lines += [
        f"  generation {each.generation}, revision {each.revision}, enabled {each.enabled}: {each.activated_at} to "
        f"{each.ended_at} ({each.ended_as}: {each.ended_reason}), accounted through {each.accounted_through}"
        for each in story.activations
    ]
    rows = list(story.rows)
    if breach.instant is not None:
        at = breach.instant
        rows.sort(key=lambda row: abs((row[0].first_at - at).total_seconds()))
        rows = sorted(rows[:_ROWS_SHOWN], key=lambda row: (row[0].first_at, row[0].row))
    else:
        rows = rows[-_ROWS_SHOWN:]
    return [*lines, *(f"  {_row(entry, run)}" for entry, run in rows)]


def _row(entry: ledger.Entry, run: ledger.Run | None) -> str:
    told = (
        f"{entry.generation} {entry.trigger} {entry.first_at}..{entry.last_at} ({entry.count}): {entry.disposition} "
        f"{entry.reason}, held {entry.held_since}, closed {entry.closed_at}"
    )
    if run is None:
        return told
    return (
        f"{told}; run {run.run_id} {run.decision} at {run.decided_at}, sent {run.dispatch_sent}, begun {run.begun_at}, ended "
        f"{run.ended_at}, cost {run.cost}: {run.summary}"
    )


def _figures(record: Record, words: Sequence[Any], asked: Sequence[Asked]) -> dict[str, Any]:
    reasons: Counter[str] = Counter()
    for story in record.stories.values():
        for entry, _ in story.rows:
            reasons[" ".join(filter(None, [entry.disposition, entry.reason]))] += entry.count
    return {
        "answers": dict(sorted(reasons.items())),
        "runs": len(record.runs),
        "manual runs": sum(entry.trigger != "schedule" for _, entry, _ in record.runs.values()),
        "said by agents": dict(Counter(word.said.value for word in words)),
        "reports answered": dict(
            Counter(f"{word.more['status']} {word.more['because']}" for word in words if word.said is Said.REPORTED)
        ),
        "runs begun more than once": sum(
            count > 1 for count in Counter(word.run_id for word in words if word.said is Said.BEGUN).values()
        ),
        "attempts at the same time": proof.attempts_at_the_same_time(words),
        "activations": sum(len(story.activations) for story in record.stories.values()),
        "in review": sum(each.ended_as == "review" for story in record.stories.values() for each in story.activations),
        "versions": sum(len(story.versions) for story in record.stories.values()),
        "mutations": dict(
            Counter(
                f"{each.operation} {'done' if each.receipt is not None else each.refused}" for each in asked
            ).most_common()
        ),
        "answers lost": sum(each.lost for each in asked),
        "replayed": sum(each.receipt is not None and each.receipt.replayed for each in asked),
        "spent": {" ".join(place): row["spent"] for place, row in record.accounts.items()},
    }


def _errors(logs: Path) -> dict[str, int]:
    """What the processes wrote as errors, by process and kind: nothing of it need be a fault, and each is worth a look."""
    found: Counter[str] = Counter()
    for log in sorted(logs.glob("*.log*")):
        for line in log.read_text(errors="replace").splitlines():
            if line.startswith("Traceback"):
                found[f"{log.stem} Traceback"] += 1
            if not line.startswith("{"):
                continue
            with suppress(ValueError):
                event = json.loads(line)
                if event.get("level") in {"error", "critical"}:
                    found[f"{log.stem} {event.get('event')}"] += 1
    return dict(found.most_common(40))


async def _until(condition: Callable[[], Awaitable[bool]], within: float, result: Result, sentence: str) -> bool:
    """Wait until something holds. Where it does not in time, that is a breach if a sentence says so."""
    deadline = time.monotonic() + within
    while not await condition():
        if time.monotonic() > deadline:
            if sentence:
                result.breaches.append(Breach(sentence=sentence))
            return False
        await asyncio.sleep(0.5)
    return True
