"""`audit`: the proof that every due instant has exactly one answer."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from horarium.control.audit import Audit, audit, document
from horarium.control.reckoning import Problem
from horarium.control.seals import Verified
from horarium.schedule.identity import ScheduleKey, Scope, schedule_key
from starter.cli.embedded import Embedded
from starter.cli.finding import find
from starter.cli.installation import catalog_of
from starter.cli.printing import Output, print_table, printable, short_ids, show
from worker.settings import load

SHOWN_OPEN = 20
"""Open entries that a table names one by one."""


async def show_audit(written: str | None, *, grace: timedelta, data: Path | None, output: Output | None) -> int:
    """Audit one schedule or all of the environment. The status is 1 if anything is not as it should be."""
    settings = load(data=data)
    async with catalog_of(settings) as catalog:
        subject: Scope | ScheduleKey = settings.scope
        if written is not None:
            subject = schedule_key(settings.scope, await find(Embedded(catalog, settings), written))
        result = await catalog.read(audit, subject, now=datetime.now(UTC), grace=grace)
    show(document(result), output, lambda: _print(result))
    return 0 if result.clean else 1


def _print(result: Audit) -> None:
    ids = short_ids([each.key.schedule_id for each in result.schedules])
    rows = [
        (
            each_id,
            each.name,
            each.due,
            ", ".join(f"{count} {disposition}" for disposition, count in each.dispositions.items()),
            each.not_entered or "",
            sum(1 for remark in each.problems),
        )
        for each_id, each in zip(ids, result.schedules, strict=True)
    ]
    if rows:
        print_table(("Schedule", "Name", "Due", "Ledger", "Open", "Problems"), rows, wraps={"Name", "Ledger"})
    sums = [f"{count} {disposition}" for disposition, count in result.dispositions.items()]
    if result.not_entered:
        sums.append(f"{result.not_entered} not entered yet")
    # The last three make the two sides equal where the ledger is wrong.
    sums += [f"{result.count(Problem.MISSING)} missing"] if result.count(Problem.MISSING) else []
    less = "".join(
        f" - {result.count(problem)} {problem}"
        for problem in (Problem.DUPLICATE, Problem.UNDUE)
        if result.count(problem)
    )
    print(f"Due {result.due} = {' + '.join(sums) or '0'}{less}")
    still = [(each, remark) for each in result.schedules for remark in each.open]
    for each, remark in still[:SHOWN_OPEN]:
        print(f"Open: {each.key.schedule_id}, generation {remark.generation}: {printable(remark.sentence)}")
    if len(still) > SHOWN_OPEN:
        print(f"Open: {len(still) - SHOWN_OPEN} more; -o json names them all.")
    for each in result.schedules:
        for remark in each.problems:
            sentence = printable(remark.sentence)
            print(f"{remark.kind.upper()}: {each.key.schedule_id}, generation {remark.generation}: {sentence}")
    if result.seals is not None:
        _print_seals(result.seals)
    sound = not any(each.problems for each in result.schedules)
    verdict = "Every due instant has exactly one entry." if sound else "The ledger is not what it should be."
    print(f"{verdict} What is younger than {result.grace.total_seconds():g} s may be open.")


def _print_seals(verified: Verified) -> None:
    for fault in verified.faults:
        print(f"SEAL: {printable(fault.sentence)}")
    if verified.archived:
        print(
            f"Audit events: {verified.archived} sealed ones are in archives; `horarium archive --verify` reads those."
        )
    if verified.redacted:
        print(
            f"Audit events: under {verified.redacted} seals a person's name was replaced, and what was sealed has no proof."
        )
    if verified.last is None and not verified.unsealed and not verified.faults:
        return
    verdict = "Some seals do not fit." if verified.faults else "Every seal fits."
    print(f"Audit events: {verified.events} sealed, {verified.unsealed} waiting for the next seal. {verdict}")
    if verified.last is not None:
        print(f"Newest seal: {verified.last.number}, {verified.last.digest}")
