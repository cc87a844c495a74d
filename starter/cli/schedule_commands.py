"""The commands on schedules, which act on a data folder or at a server: their names, arguments and help."""
# A command imports what it needs and nothing else, so that `--help` and `validate` answer at once.
# ruff: noqa: PLC0415

from typing import Annotated, Literal

import typer

from horarium.control.preview import MAX_LISTED
from horarium.schedule.ledger import Disposition
from starter.cli.options import (
    LARGEST_ID,
    LARGEST_NUMBER,
    Data,
    Digest,
    Document,
    Epoch,
    Form,
    From,
    Generation,
    Key,
    Reset,
    Revision,
    ScheduleId,
    Server,
    Until,
    in_order,
    misused,
    one_of,
    place,
)
from starter.cli.place import Lines
from starter.cli.refusals import leave
from starter.cli.review import Review

app = typer.Typer()

Publication = Annotated[
    str | None,
    typer.Option("--schedule", metavar="UUID", help="The schedule; without it, a new one.", show_default=False),
]


@app.command()
def validate(file: Document, output: Form = None) -> None:
    """Check a configuration and name every fault with its place. Nothing is stored."""
    from starter.cli import drafts

    leave(drafts.validate(file, output), output, file=file)


@app.command()
def preview(
    file: Document,
    *,
    since: From = None,
    until: Until = None,
    count: Annotated[
        int | None, typer.Option("--count", min=1, max=MAX_LISTED, help="How many instants.", show_default=False)
    ] = None,
    server: Server = None,
    output: Form = None,
) -> None:
    """Show when a document of any contract, a calendar or a cron is due, and what changes of the clock do to it.

    Of a cron, an interval or a single instant it also shows the canonical calendar of the same instants, or says which change
    of the clock makes the difference. Without --from from now on; without --until and --count the next 10 instants. Both ends
    are included. A server lists 1,000 instants at the most; without one nothing is needed but this program.
    """
    from starter.cli import drafts

    in_order(since, until)
    where = place(None, server)
    leave(drafts.preview(file, since=since, until=until, count=count, where=where, output=output), output, file=file)


@app.command()
def publish(
    file: Document,
    *,
    schedule: Publication = None,
    expected_revision: Annotated[
        int | None,
        typer.Option(
            "--expected-revision",
            min=0,
            max=LARGEST_NUMBER,
            help="The head that was reviewed, 0 for none.",
            show_default=False,
        ),
    ] = None,
    environment_epoch: Epoch = None,
    reset_generation: Reset = None,
    key: Key = None,
    server: Server = None,
    data: Data = None,
    output: Form = None,
) -> None:
    """Store a configuration as the next version of a schedule. It enables nothing and replaces no enabled version."""
    from starter.cli import changes

    review = Review(environment_epoch=environment_epoch, reset_generation=reset_generation, key=key)
    work = changes.publish(
        file,
        schedule=schedule,
        expected_revision=expected_revision,
        review=review,
        where=place(data, server),
        output=output,
    )
    leave(work, output, file=file)


@app.command()
def apply(
    named: Annotated[
        str | None,
        typer.Argument(metavar="FILE", help="A JSON or YAML file, or - for standard input.", show_default=False),
    ] = None,
    *,
    file: Annotated[
        str | None, typer.Option("--file", "-f", metavar="FILE", help="The same, named so.", show_default=False)
    ] = None,
    schedule: Annotated[
        str | None,
        typer.Option(
            "--schedule",
            metavar="UUID",
            help="The schedule; without it, the one of the configuration's name, or a new one.",
            show_default=False,
        ),
    ] = None,
    key: Key = None,
    server: Server = None,
    data: Data = None,
    output: Form = None,
) -> None:
    """Publish a configuration if it differs from the head of its schedule. It never enables anything."""
    from starter.cli import changes

    where = place(data, server)
    if named is not None and file is not None:
        misused("One FILE is applied at a time; name it once.", "--file")
    file = named if file is None else file
    if file is None:
        misused("Which FILE? As in `apply schedule.yaml`.", "FILE")
    leave(changes.apply(file, schedule=schedule, review=Review(key=key), where=where, output=output), output, file=file)


@app.command()
def diff(file: Document, schedule: ScheduleId, server: Server = None, data: Data = None, output: Form = None) -> None:
    """Show what a configuration would change, against the head and against the enabled version. Exits 1 if anything."""
    from starter.cli import differing

    leave(differing.diff(file, schedule, where=place(data, server), output=output), output, file=file)


def _activation(kind: Literal["enable", "pause", "retire"], *, does: str) -> None:
    """Add a command that changes an activation. All three name what was reviewed in the same way."""

    @app.command(kind, help=does)
    def change(
        schedule: ScheduleId,
        *,
        revision: Revision = None,
        generation: Generation = None,
        digest: Digest = None,
        environment_epoch: Epoch = None,
        reset_generation: Reset = None,
        key: Key = None,
        server: Server = None,
        data: Data = None,
        output: Form = None,
    ) -> None:
        from starter.cli import changes

        review = Review(
            revision=revision,
            generation=generation,
            digest=digest,
            environment_epoch=environment_epoch,
            reset_generation=reset_generation,
            key=key,
        )
        where = place(data, server)
        work = changes.set_activation(kind, schedule, review=review, where=where, output=output)
        leave(work, output, where=where)


_activation(
    "enable", does="Let a version fire from now on: the newest, unless --revision names one. Nothing of the past fires."
)
_activation("pause", does="Stop firing. Runs that were admitted go on; what is due meanwhile is never caught up.")
_activation(
    "retire",
    does="End a schedule for good. Its versions and its ledger stay; it can never be enabled or published again.",
)


@app.command()
def trigger(
    schedule: ScheduleId,
    *,
    overlap: Annotated[
        Literal["allow"] | None,
        typer.Option("--overlap", help="Begin although other runs hold every slot.", show_default=False),
    ] = None,
    revision: Revision = None,
    generation: Generation = None,
    digest: Digest = None,
    environment_epoch: Epoch = None,
    reset_generation: Reset = None,
    key: Key = None,
    server: Server = None,
    data: Data = None,
    output: Form = None,
) -> None:
    """Run the enabled version once, now. It is admitted as every run is, and may be refused."""
    from starter.cli import changes

    review = Review(
        revision=revision,
        generation=generation,
        digest=digest,
        environment_epoch=environment_epoch,
        reset_generation=reset_generation,
        key=key,
    )
    where = place(data, server)
    leave(
        changes.trigger(schedule, allow_overlap=overlap is not None, review=review, where=where, output=output), output
    )


@app.command()
def get(
    schedule: ScheduleId, revision: Revision = None, server: Server = None, data: Data = None, output: Form = None
) -> None:
    """Show a schedule: its head or one revision, its activation, and how it stands."""
    from starter.cli import reading

    leave(reading.get(schedule, revision=revision, where=place(data, server), output=output), output)


@app.command("list")
def list_schedules(
    *,
    limit: Annotated[int, typer.Option("--limit", min=1, max=50, help="Schedules on the page.")] = 25,
    after: Annotated[
        str | None, typer.Option("--after", metavar="UUID", help="The page behind this schedule.", show_default=False)
    ] = None,
    include_retired: Annotated[bool, typer.Option("--include-retired", help="Show retired ones too.")] = False,
    server: Server = None,
    data: Data = None,
    output: Form = None,
) -> None:
    """Show the schedules of the environment, a page at a time, by UUID."""
    from starter.cli import reading

    where = place(data, server)
    leave(
        reading.list_schedules(limit=limit, after=after, include_retired=include_retired, where=where, output=output),
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
        typer.Option(
            "--disposition",
            metavar="NAME",
            parser=one_of(Disposition),
            help="Only entries that stand so; may be repeated.",
            show_default=False,
        ),
    ] = None,
    generation: Annotated[
        int | None,
        typer.Option(
            "--generation",
            min=0,
            max=LARGEST_NUMBER,
            help="Only entries of this generation of the activation.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            min=1,
            max=100_000,
            help="The newest entries, at most.",
            show_default="1000; with --follow 10 of the past",
        ),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what is new, until Ctrl-C.")] = False,
    server: Server = None,
    data: Data = None,
    output: Form = None,
) -> None:
    """Show what became of every due instant and of runs by hand, and why: the ledger, by nominal time."""
    from starter.cli import ledger

    in_order(since, until)
    wanted = Lines(since=since, until=until, dispositions=disposition or [], generation=generation)
    where = place(data, server)
    leave(
        ledger.show_occurrences(schedule, wanted, limit=limit, follow=follow, where=where, output=output),
        output,
    )


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
    """Show who published, enabled, paused or retired a schedule, and when."""
    from starter.cli import reading

    leave(reading.events(schedule, after=after, limit=limit, where=place(data, server), output=output), output)
