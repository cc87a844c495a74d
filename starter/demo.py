"""`horarium demo`: the main job from end to end, in a temporary folder and on free ports, in about a minute."""

import asyncio
import shutil
import tempfile
import textwrap
import time
import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from examples.ingestion import sample
from horarium.calendar import parse_calendar
from horarium.calendar.zones import local_time
from horarium.catalog import Catalog
from horarium.control.activation import Reviewed, enable, pause
from horarium.control.audit import Audit, audit
from horarium.control.preview import preview
from horarium.control.publication import publish
from horarium.control.reckoning import Problem
from horarium.control.records import occurrences
from horarium.errors import Misconfigured, Unavailable
from horarium.schedule.identity import ActivationKey, ScheduleKey, schedule_key
from horarium.schedule.ledger import Disposition
from starter.cli.printing import near, program, shorten
from starter.cli.tokens import sign_in_link
from starter.data_folder import DataFolder
from starter.dev import EXAMPLE_AGENTS, Running, start
from starter.documents import read_document
from starter.processes import ProcessTree
from starter.temporal_server import find_temporal
from worker.exit import INTERRUPTED
from worker.settings import Settings, load

WATCH = timedelta(seconds=31)
"""Six instants of the example, which is due every five seconds."""
ENABLE_WITHIN = timedelta(seconds=20)
LAST_RUN_WITHIN = timedelta(seconds=15)
LATE_MS = 5_000
"""A run later than this is no demonstration of anything."""
FEWEST = 3
"""Instants that have to be answered, of six."""

WIDTH = 100
"""Columns that a line may take: what most terminals have."""

Row = dict[str, Any]
"""A line of the ledger, as `horarium.control.records` tells it."""


async def demo(*, keep: bool) -> int:
    """Show a schedule at work. Returns 0 only if every due instant was answered by a success and the audit agrees.

    With `keep` everything runs on until Ctrl-C, which then changes nothing about the result, and the folder is left. It is
    also left where something failed, for its logs. Ctrl-C before the demo was shown is status 130 and leaves nothing.
    """
    folder = Path(tempfile.mkdtemp(prefix="horarium-demo-"))
    settings = load({}, data=folder)
    status: int | None = None
    interrupted = False
    try:
        with DataFolder(folder):
            async with ProcessTree() as tree:
                status = await _shown(tree, settings, keep=keep)
                if keep:
                    await tree.run_until_stopped()
            interrupted = status is None
    except asyncio.CancelledError:
        interrupted = True
        raise
    finally:
        if interrupted or (status == 0 and not keep):
            shutil.rmtree(folder, ignore_errors=True)
        else:
            _say(f"\nWhat it left is in {folder}; rm -r {folder} removes it.")
    return INTERRUPTED if status is None else status


async def _shown(tree: ProcessTree, settings: Settings, *, keep: bool) -> int:
    began = time.monotonic()
    api = ", the API" if keep else ""
    _say(f"Starting a Temporal server, two workers, the controller{api} and an agent runner …")
    # Pages are for whoever has the time to look at them.
    api_port = 0 if keep else None
    running = await start(tree, settings, temporal_port=0, ui_port=0, api_port=api_port, agents=EXAMPLE_AGENTS)
    while_it_runs = "" if keep else "\n  It is there while this demo runs."
    _say(
        f"Ready after {time.monotonic() - began:.1f} s. Temporal's user interface: {running.ui_address}{while_it_runs}"
    )
    catalog = Catalog.open(settings.catalog_url)
    try:
        key = schedule_key(settings.scope, str(uuid.uuid4()))
        await _enabled(catalog, settings, key)
        await _watch(catalog, key, for_seconds=WATCH.total_seconds())
        await catalog.write(pause, key, Reviewed(), by=settings.principal, now=datetime.now(UTC))
        _say("Paused. A run that was admitted goes on; what was staged ahead is taken back.")
        rows = await _settled(catalog, key)
        checked = await catalog.read(audit, key, now=datetime.now(UTC), grace=timedelta(0))
    finally:
        catalog.close()
    _conclude(rows, checked, settings)
    problems = _problems(rows, checked)
    for problem in problems:
        _say(f"NOT AS IT SHOULD BE: {problem}")
    if keep:
        _invite(running, settings, key)
    else:
        _say(
            f"\nThis demo ends here, and with it the server at {running.ui_address} and all that is shown above.\n"
            "`make demo KEEP=1` leaves everything running to look around in."
        )
    return 1 if problems else 0


def _invite(running: Running, settings: Settings, key: ScheduleKey) -> None:
    """Say how to look at what is left running, in commands that work from this folder."""
    called, short = program(), key.schedule_id[:8]
    _say(
        f"""
Everything is left running until Ctrl-C. The schedule is paused: `enable` lets it fire again.
In another terminal, from this folder:
  export HORARIUM_DATA={settings.data}
  export TEMPORAL_ADDRESS={running.temporal_address}
  export HORARIUM_PUBLIC_URL={running.api_address}
  {called} list
  {called} occurrences {short} -o table
  {called} enable {short}
  {called} audit
  {near(Path(find_temporal()))} workflow list
The pages: {sign_in_link(replace(settings, public_url=str(running.api_address)))}
  signs you in once, within 5 minutes; another one:
  {called} token --sign-in
Temporal's user interface: {running.ui_address}/namespaces/default/workflows
  the schedule's workflow: {ActivationKey(schedule=key, generation=1).workflow_id}
Inputs, and what the agent wrote: {settings.content.inputs.parent}"""
    )


async def _enabled(catalog: Catalog, settings: Settings, key: ScheduleKey) -> None:
    document = read_document(sample.SCHEDULE)
    published = await catalog.write(
        publish, key, document, expected_revision=0, by=settings.principal, now=datetime.now(UTC)
    )
    _say(
        f"Published {document['name']!r} as schedule {key.schedule_id}, revision {published.version.revision}:\n"
        f"  {published.version.digest}\n"
        "  It is due every 5 seconds, and on weekdays at 07:30 in Zurich. By the second rule alone, next:"
    )
    weekdays = parse_calendar({**document["calendar"], "intervals": []})
    for text in preview(weekdays, start=datetime.now(UTC), limit=2)["occurrences"]:
        local = local_time(datetime.fromisoformat(text), weekdays.timezone)
        _say(f"    {local:%A %Y-%m-%d %H:%M:%S %z}  =  {text}")
    deadline = time.monotonic() + ENABLE_WITHIN.total_seconds()
    while True:
        try:
            changed = await catalog.write(
                enable,
                key,
                Reviewed(),
                settings.content,
                by=settings.principal,
                now=datetime.now(UTC),
                ceilings=settings.ceilings,
            )
        except Unavailable:
            # The workers have only just begun to say that they are there.
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.2)
        else:
            break
    _say(f"Enabled by {settings.principal}, generation {changed.activation.generation}. Nothing of the past fires.\n")


async def _watch(catalog: Catalog, key: ScheduleKey, *, for_seconds: float) -> None:
    """Print each occurrence as it is answered."""
    _say("  due                   agent began   outcome")
    until, told = time.monotonic() + for_seconds, set[str]()
    while time.monotonic() < until:
        for row in await catalog.read(occurrences, key):
            if row["ended_at"] is not None and row["first_at"] not in told:
                told.add(row["first_at"])
                said = f"{row['disposition']}: {row['summary'] or row['reason'] or ''}"
                _say(shorten(f"  {row['first_at']}  {_late(row):>9}    {said}", WIDTH))
        await asyncio.sleep(0.1)
    if not told:
        raise Misconfigured("No occurrence was answered within half a minute. The logs in the data folder say why.")


async def _settled(catalog: Catalog, key: ScheduleKey) -> Sequence[Row]:
    deadline = time.monotonic() + LAST_RUN_WITHIN.total_seconds()
    while True:
        rows = await catalog.read(occurrences, key)
        if all(not Disposition(row["disposition"]).is_open for row in rows) or time.monotonic() > deadline:
            return rows
        await asyncio.sleep(0.2)


def _conclude(rows: Sequence[Row], checked: Audit, settings: Settings) -> None:
    _say("\nThe ledger:")
    for row in rows:
        answer = f"{row['disposition']:<10} {row['reason'] or '':<8}"
        _say(f"  {row['first_at']}  {answer} {_late(row):>9}  run {(row['run_id'] or '-')[:8]}")
    outputs = [output for row in rows for output in (row["outputs"] or [])]
    if outputs:
        report = settings.content.outputs / outputs[-1]
        _say("\nThe agent's last report:\n")
        for line in report.read_text().splitlines():
            _say(textwrap.fill(line, WIDTH, initial_indent="  ", subsequent_indent="      ", break_long_words=False))
    _say("\nhorarium audit:")
    _say(f"  due {checked.due} = " + " + ".join(f"{count} {name}" for name, count in checked.dispositions.items()))
    _say("  " + ", ".join(f"{problem} {checked.count(problem)}" for problem in Problem))


def _problems(rows: Sequence[Row], checked: Audit) -> list[str]:
    problems = [
        f"{row['first_at']} was {row['disposition']} ({row['reason']})."
        for row in rows
        if row["disposition"] != "succeeded"
    ]
    problems += [f"{row['first_at']} began {_late(row)} late." for row in rows if (row["lateness_ms"] or 0) > LATE_MS]
    if not checked.clean:
        problems.append("The audit is not clean.")
    if len(rows) < FEWEST:
        problems.append(f"Only {len(rows)} instants were answered.")
    return problems


def _late(row: Row) -> str:
    return "" if row["lateness_ms"] is None else f"+{row['lateness_ms']} ms"


def _say(text: str) -> None:
    print(text, flush=True)
