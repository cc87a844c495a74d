"""The commands: their names, arguments and help. What each does is in the module that it imports when it is called."""
# A command imports what it needs and nothing else, so that `--help` and `validate` answer at once.
# ruff: noqa: PLC0415

from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from horarium.control.preview import MAX_LISTED
from horarium.schedule.ledger import Disposition
from starter.cli import api_commands
from starter.cli.options import (
    Data,
    Digest,
    Document,
    Form,
    From,
    Generation,
    Revision,
    ScheduleId,
    Until,
    in_order,
    misused,
)
from starter.cli.printing import Output
from starter.cli.refusals import leave

app = typer.Typer(
    help="Durable schedules for unattended agent runs, on Temporal.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
database = typer.Typer(help="The catalog's tables.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(api_commands.app)
app.add_typer(database, name="db")


@app.command()
def validate(file: Document, output: Form = None) -> None:
    """Check a configuration and name every fault with its place. Nothing is stored."""
    from starter.cli import drafts

    leave(drafts.validate(file, output), output)


@app.command()
def preview(
    file: Document,
    since: From = None,
    until: Until = None,
    count: Annotated[
        int | None, typer.Option("--count", min=1, max=MAX_LISTED, help="How many instants.", show_default=False)
    ] = None,
    output: Form = None,
) -> None:
    """Show when a configuration, or a calendar alone, is due, and what changes of the clock do to it.

    Without --from from now on; without --until and --count the next 10 instants. Both ends are included.
    """
    from starter.cli import drafts

    in_order(since, until)
    leave(drafts.preview(file, since=since, until=until, count=count, output=output), output)


@app.command()
def publish(
    file: Document,
    schedule: Annotated[
        str | None,
        typer.Option("--schedule", metavar="UUID", help="The schedule; without it, a new one.", show_default=False),
    ] = None,
    expected_revision: Annotated[
        int | None,
        typer.Option("--expected-revision", min=0, help="The head that was reviewed, 0 for none.", show_default=False),
    ] = None,
    data: Data = None,
    output: Form = None,
) -> None:
    """Store a configuration as the next version of a schedule. It enables nothing and replaces no enabled version."""
    from starter.cli import changes

    leave(
        changes.publish(file, schedule=schedule, expected_revision=expected_revision, data=data, output=output), output
    )


@app.command()
def enable(
    schedule: ScheduleId,
    *,
    revision: Revision = None,
    generation: Generation = None,
    digest: Digest = None,
    data: Data = None,
    output: Form = None,
) -> None:
    """Let a version fire from now on: the newest, unless --revision names one. Nothing of the past fires."""
    _change("enable", schedule, revision=revision, generation=generation, digest=digest, data=data, output=output)


@app.command()
def pause(
    schedule: ScheduleId,
    *,
    revision: Revision = None,
    generation: Generation = None,
    digest: Digest = None,
    data: Data = None,
    output: Form = None,
) -> None:
    """Stop firing. Runs that were admitted go on; what is due meanwhile is never caught up."""
    _change("pause", schedule, revision=revision, generation=generation, digest=digest, data=data, output=output)


@app.command()
def retire(
    schedule: ScheduleId,
    *,
    revision: Revision = None,
    generation: Generation = None,
    digest: Digest = None,
    data: Data = None,
    output: Form = None,
) -> None:
    """End a schedule for good. Its versions and its ledger stay; it can never be enabled or published again."""
    _change("retire", schedule, revision=revision, generation=generation, digest=digest, data=data, output=output)


@app.command()
def get(schedule: ScheduleId, revision: Revision = None, data: Data = None, output: Form = None) -> None:
    """Show a schedule: its head or one revision, its activation, and how it stands."""
    from starter.cli import reading

    leave(reading.get(schedule, revision=revision, data=data, output=output), output)


@app.command("list")
def list_schedules(
    limit: Annotated[int, typer.Option("--limit", min=1, max=50, help="Schedules on the page.")] = 25,
    after: Annotated[
        str | None, typer.Option("--after", metavar="UUID", help="The page behind this schedule.", show_default=False)
    ] = None,
    include_retired: Annotated[bool, typer.Option("--include-retired", help="Show retired ones too.")] = False,
    data: Data = None,
    output: Form = None,
) -> None:
    """Show the schedules of the environment, a page at a time, by UUID."""
    from starter.cli import reading

    leave(
        reading.list_schedules(limit=limit, after=after, include_retired=include_retired, data=data, output=output),
        output,
    )


@app.command()
def occurrences(
    schedule: ScheduleId,
    *,
    since: From = None,
    until: Until = None,
    disposition: Annotated[
        list[Disposition] | None,
        typer.Option("--disposition", help="Only entries that stand so; may be repeated.", show_default=False),
    ] = None,
    generation: Generation = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="The newest entries, at most.")] = 1_000,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what is new, until Ctrl-C.")] = False,
    data: Data = None,
    output: Form = None,
) -> None:
    """Show what became of every due instant, and why: the ledger, by nominal time."""
    from starter.cli import ledger

    in_order(since, until)
    leave(
        ledger.show_occurrences(
            schedule,
            since=since,
            until=until,
            dispositions=disposition or [],
            generation=generation,
            limit=limit,
            follow=follow,
            data=data,
            output=output,
        ),
        output,
    )


@app.command()
def events(
    schedule: ScheduleId,
    after: Annotated[int, typer.Option("--after", min=0, help="Only events behind the one with this id.")] = 0,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="Events, at most.")] = 1_000,
    data: Data = None,
    output: Form = None,
) -> None:
    """Show who published, enabled, paused or retired a schedule, and when."""
    from starter.cli import reading

    leave(reading.events(schedule, after=after, limit=limit, data=data, output=output), output)


@app.command()
def audit(
    schedule: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="One schedule; without it, all.", show_default=False)
    ] = None,
    grace: Annotated[
        float, typer.Option("--grace", min=0, max=86_400, help="Seconds that an instant may be without an entry.")
    ] = 90,
    data: Data = None,
    output: Form = None,
) -> None:
    """Recompute what was due and hold it against the ledger. Exits 1 if anything is missing, duplicate or undue."""
    from starter.cli import proof

    leave(proof.show_audit(schedule, grace=timedelta(seconds=grace), data=data, output=output), output)


@app.command()
def worker(
    roles: Annotated[
        list[str] | None,
        typer.Argument(metavar="[schedules] [runs] | agents MODULE", help="Without any, schedules and runs."),
    ] = None,
    data: Data = None,
) -> None:
    """Run workers until Ctrl-C: those of schedules and runs, or the agents of a Python module."""
    given = roles or []
    agents = given[:1] == ["agents"] and len(given) == 2
    if not agents and not set(given) <= {"schedules", "runs"}:
        misused(f"{' '.join(given)!r} is neither schedules, runs or both, nor agents with one MODULE.", "worker")
    from starter.cli import hosting

    leave(hosting.work(given, data=data), None)


@app.command()
def controller(data: Data = None) -> None:
    """Run a controller until Ctrl-C. It makes Temporal agree with the catalog and writes what it observed."""
    from starter.cli import hosting

    leave(hosting.control(data=data), None)


@app.command()
def setup(
    temporal: Annotated[bool, typer.Option("--temporal/--no-temporal", help="Prepare the Temporal server too.")] = True,
    data: Data = None,
    output: Form = None,
) -> None:
    """Prepare a data folder with its catalog and environment, and the Temporal server if one answers."""
    from starter.cli import hosting

    leave(hosting.set_up(temporal=temporal, data=data, output=output), output)


@database.command("upgrade")
def upgrade(data: Data = None, output: Form = None) -> None:
    """Bring the catalog's tables to the form that this release works with."""
    from starter.cli import hosting

    leave(hosting.upgrade_catalog(data=data, output=output), output)


@app.command()
def dev(
    *,
    temporal_port: Annotated[
        int, typer.Option("--temporal-port", min=0, max=65_535, help="0 for any free one.")
    ] = 7233,
    ui_port: Annotated[int, typer.Option("--ui-port", min=0, max=65_535, help="0 for any free one.")] = 8233,
    api_port: Annotated[
        int, typer.Option("--api-port", min=0, max=65_535, help="0 for any free one.")
    ] = api_commands.PORT,
    agents: Annotated[
        list[str] | None,
        typer.Option("--agents", metavar="MODULE", help="Run these agents, not the examples; may be repeated."),
    ] = None,
    data: Data = None,
    output: Form = None,
) -> None:
    """Run everything on this machine until Ctrl-C: Temporal, workers, controller, API and example agents."""
    from starter.cli import hosting

    leave(
        hosting.develop(
            temporal_port=temporal_port,
            ui_port=ui_port,
            api_port=api_port,
            agents=agents or [],
            data=data,
            output=output,
        ),
        output,
    )


@app.command()
def demo(keep: Annotated[bool, typer.Option("--keep", help="Leave everything running until Ctrl-C.")] = False) -> None:
    """Show the main job from end to end, in a temporary folder and about a minute."""
    from starter.cli import hosting

    leave(hosting.demonstrate(keep=keep), None)


def _change(
    kind: str,
    schedule: str,
    *,
    revision: int | None,
    generation: int | None,
    digest: str | None,
    data: Path | None,
    output: Output | None,
) -> None:
    from horarium.control.activation import Reviewed
    from starter.cli import changes

    reviewed = Reviewed(revision=revision, digest=digest, generation=generation)
    leave(changes.change(kind, schedule, reviewed, data=data, output=output), output)
