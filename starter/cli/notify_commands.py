"""The commands about notifications, which act on a data folder or at a server: their names, arguments and help."""
# A command imports what it needs and nothing else, so that `--help` and `validate` answer at once.
# ruff: noqa: PLC0415

from typing import Annotated

import typer

from starter.cli.options import LARGEST_ID, LARGEST_NUMBER, Data, Form, Key, ScheduleId, Server, place
from starter.cli.refusals import leave
from starter.cli.review import Review

app = typer.Typer(
    help="Who is told when something is missed, refused or fails, and when nothing succeeds. For operators.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Name = Annotated[str, typer.Argument(metavar="NAME", help="The endpoint's name.", show_default=False)]
Url = Annotated[
    str, typer.Option("--url", metavar="URL", help="Where signed messages are posted to.", show_default=False)
]
Secret = Annotated[
    str,
    typer.Option(
        "--secret",
        metavar="VARIABLE",
        help="The environment variable of the controller that holds the shared secret: HORARIUM_SECRET_….",
        show_default=False,
    ),
]
Private = Annotated[
    bool, typer.Option("--private", help="The address may be one of a private network, and reached over http://.")
]


@app.command()
def add(
    name: Name,
    *,
    url: Url,
    secret: Secret,
    on: Annotated[
        str,
        typer.Option(
            "--on",
            metavar="KINDS",
            help="What it is told of, with commas between: review, refused, missed, failed, recovered, overdue; or all.",
        ),
    ] = "all",
    schedule: Annotated[
        str | None,
        typer.Option("--schedule", metavar="ID", help="Of this schedule only; else of all.", show_default=False),
    ] = None,
    private: Private = False,
    key: Key = None,
    server: Server = None,
    data: Data = None,
    output: Form = None,
) -> None:
    """Declare an endpoint, or change the one of that name. It is told of what happens from now on."""
    from starter.cli import notify

    request = {"name": name, "url": url, "secret": secret, "on": notify.kinds(on), "private": private}
    where = place(data, server)
    leave(notify.declare("add", request, schedule, review=Review(key=key), where=where, output=output), output)


@app.command()
def heartbeat(
    schedule: ScheduleId,
    *,
    url: Url,
    secret: Secret,
    private: Private = False,
    key: Key = None,
    server: Server = None,
    data: Data = None,
    output: Form = None,
) -> None:
    """Post each success of a schedule to a watcher, which tells somebody when nothing comes. Its name is heartbeat:ID."""
    from starter.cli import notify

    request = {"url": url, "secret": secret, "private": private}
    where = place(data, server)
    leave(notify.declare("heartbeat", request, schedule, review=Review(key=key), where=where, output=output), output)


@app.command("list")
def show_list(server: Server = None, data: Data = None, output: Form = None) -> None:
    """Show every endpoint and heartbeat: what it is told, what waits for it, and since when a schedule is silent."""
    from starter.cli import notify

    leave(notify.show_endpoints(where=place(data, server), output=output), output)


@app.command()
def remove(name: Name, *, key: Key = None, server: Server = None, data: Data = None, output: Form = None) -> None:
    """Tell an endpoint nothing any more, what waits for it included."""
    from starter.cli import notify

    where = place(data, server)
    leave(notify.act("remove", {"name": name}, review=Review(key=key), where=where, output=output), output)


@app.command("test")
def try_out(name: Name, *, key: Key = None, server: Server = None, data: Data = None, output: Form = None) -> None:
    """Send a signed test to an endpoint. `list` shows whether it was heard."""
    from starter.cli import notify

    where = place(data, server)
    leave(notify.act("test", {"name": name}, review=Review(key=key), where=where, output=output), output)


@app.command()
def dead(
    *,
    after: Annotated[
        int, typer.Option("--after", min=0, max=LARGEST_ID, help="Only those behind the one with this id.")
    ] = 0,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="Letters, at most.")] = 1_000,
    server: Server = None,
    data: Data = None,
    output: Form = None,
) -> None:
    """Show what was given up after a day, or because its endpoint is gone, oldest first."""
    from starter.cli import notify

    leave(notify.show_dead(after=after, limit=limit, where=place(data, server), output=output), output)


@app.command()
def again(
    letter: Annotated[
        int,
        typer.Argument(metavar="ID", min=1, max=LARGEST_NUMBER, help="As `notify dead` shows it.", show_default=False),
    ],
    *,
    key: Key = None,
    server: Server = None,
    data: Data = None,
    output: Form = None,
) -> None:
    """Send a dead letter again, under the id that it had."""
    from starter.cli import notify

    where = place(data, server)
    leave(notify.act("again", {"id": letter}, review=Review(key=key), where=where, output=output), output)
