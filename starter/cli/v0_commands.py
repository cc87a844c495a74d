"""The commands on schedules of scheduler v0, which act on a data folder or at a server: their names, arguments and help."""
# A command imports what it needs and nothing else, so that `--help` and `validate` answer at once.
# ruff: noqa: PLC0415

from typing import Annotated, Literal

import typer

from starter.cli.options import LARGEST_ID, Data, Document, Form, Key, ScheduleId, Server, place
from starter.cli.refusals import leave
from starter.cli.review import Review

app = typer.Typer(
    help="Schedules in the words of scheduler v0: one-shots, intervals and crons of an agent in a workspace.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command()
def create(file: Document, *, key: Key = None, server: Server = None, data: Data = None, output: Form = None) -> None:
    """Create a schedule and enable it. What runs is what an operator's binding says of the target."""
    from starter.cli import v0

    where = place(data, server)
    leave(v0.create(file, review=Review(key=key), where=where, output=output), output, file=file, where=where)


@app.command()
def update(
    schedule: ScheduleId,
    file: Document,
    *,
    key: Key = None,
    server: Server = None,
    data: Data = None,
    output: Form = None,
) -> None:
    """Replace what a schedule does. An enabled one, and a one-shot that has run, goes on with it; a paused one stays paused."""
    from starter.cli import v0

    where = place(data, server)
    work = v0.update(schedule, file, review=Review(key=key), where=where, output=output)
    leave(work, output, file=file, where=where)


def _move(act: Literal["pause", "resume", "disable"], *, does: str) -> None:
    """Add a command that changes whether a schedule fires."""

    @app.command(act, help=does)
    def change(
        schedule: ScheduleId, *, key: Key = None, server: Server = None, data: Data = None, output: Form = None
    ) -> None:
        from starter.cli import v0

        where = place(data, server)
        work = v0.move(act, schedule, review=Review(key=key), where=where, output=output)
        leave(work, output, where=where)


_move("pause", does="Stop firing. Runs that were admitted go on; what falls due meanwhile is never caught up.")
_move("resume", does="Fire again, as the newest version says. Nothing of the past fires.")
_move("disable", does="End a schedule for good. Its versions, its ledger and its events stay.")


@app.command()
def get(schedule: ScheduleId, server: Server = None, data: Data = None, output: Form = None) -> None:
    """Show a schedule: its document as it came, whether it fires, and when it is due next."""
    from starter.cli import v0

    leave(v0.get(schedule, where=place(data, server), output=output), output)


@app.command("list")
def list_schedules(
    *,
    limit: Annotated[int, typer.Option("--limit", min=1, max=50, help="Schedules on the page.")] = 25,
    after: Annotated[
        str | None, typer.Option("--after", metavar="UUID", help="The page behind this schedule.", show_default=False)
    ] = None,
    server: Server = None,
    data: Data = None,
    output: Form = None,
) -> None:
    """Show the schedules of this contract, a page at a time, by UUID, the disabled ones too."""
    from starter.cli import v0

    leave(v0.list_schedules(limit=limit, after=after, where=place(data, server), output=output), output)


@app.command()
def events(
    schedule: ScheduleId,
    *,
    after: Annotated[
        int, typer.Option("--after", min=0, max=LARGEST_ID, help="Only events behind the one with this id.")
    ] = 0,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="Events, at most.")] = 1_000,
    server: Server = None,
    data: Data = None,
    output: Form = None,
) -> None:
    """Show what happened to a schedule: SCHEDULE_CREATED, SCHEDULE_TRIGGERED, MISFIRED_SKIPPED and the others, beside ours."""
    from starter.cli import v0

    leave(v0.events(schedule, after=after, limit=limit, where=place(data, server), output=output), output)
