"""The commands of operators, which act on a data folder or at a server: their names, arguments and help."""
# A command imports what it needs and nothing else, so that `--help` and `validate` answer at once.
# ruff: noqa: PLC0415

from typing import Annotated

import typer

from starter.cli.options import (
    LARGEST_AMOUNT,
    LARGEST_ID,
    Data,
    Digest,
    Document,
    Epoch,
    ExpiresAt,
    Form,
    Key,
    Reset,
    Revision,
    ScheduleId,
    Server,
    place,
)
from starter.cli.refusals import leave
from starter.cli.review import Review

app = typer.Typer(
    help="What may run, and who says so: declarations, kill switches, approvals. For operators.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_BECAUSE = "Why, in one line. Everybody whom it stops can read it."
Because = Annotated[str, typer.Option("--because", metavar="TEXT", help=_BECAUSE)]
Organization = Annotated[bool, typer.Option("--organization", help="For the whole organization.")]


@app.command()
def apply(
    file: Document,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")] = False,
    key: Key = None,
    server: Server = None,
    data: Data = None,
    output: Form = None,
) -> None:
    """Make the environment what a file says, and show every change. One that is not there is created.

    A kind that the file does not name is left alone. Of a kind that it names, what does not stand there is withdrawn.
    """
    from starter.cli import authority

    where = place(data, server)
    work = authority.apply(file, dry_run=dry_run, review=Review(key=key), where=where, output=output)
    leave(work, output, file=file)


@app.command()
def show(server: Server = None, data: Data = None, output: Form = None) -> None:
    """Show what is declared, what was counted of money, which kill switches are on, and who did what last."""
    from starter.cli import authority

    leave(authority.show_overview(where=place(data, server), output=output), output)


@app.command()
def stop(
    *,
    because: Because,
    organization: Organization = False,
    key: Key = None,
    server: Server = None,
    data: Data = None,
    output: Form = None,
) -> None:
    """Let no run start from now on, staged, buffered and manual ones included. Runs that have started go on."""
    from starter.cli import authority

    request = {"everywhere": organization, "because": because}
    where = place(data, server)
    leave(authority.operate("stop", request, review=Review(key=key), where=where, output=output), output)


@app.command()
def lift(
    *,
    organization: Organization = False,
    key: Key = None,
    server: Server = None,
    data: Data = None,
    output: Form = None,
) -> None:
    """Let runs start again. Nothing is caught up: what was due meanwhile was refused."""
    from starter.cli import authority

    request = {"everywhere": organization}
    where = place(data, server)
    leave(authority.operate("lift", request, review=Review(key=key), where=where, output=output), output)


@app.command()
def epoch(
    *,
    because: Because,
    environment_epoch: Epoch = None,
    reset_generation: Reset = None,
    key: Key = None,
    server: Server = None,
    data: Data = None,
    output: Form = None,
) -> None:
    """Begin a new authority epoch: what was enabled before is refused from now on, and goes to review."""
    from starter.cli import authority

    review = Review(environment_epoch=environment_epoch, reset_generation=reset_generation, key=key)
    where = place(data, server)
    leave(authority.renew("advance_epoch", because, review=review, where=where, output=output), output)


@app.command()
def reset(
    *,
    because: Because,
    environment_epoch: Epoch = None,
    reset_generation: Reset = None,
    key: Key = None,
    server: Server = None,
    data: Data = None,
    output: Form = None,
) -> None:
    """Reset the environment: as a new epoch, and no uncertain request from before is recovered any more."""
    from starter.cli import authority

    review = Review(environment_epoch=environment_epoch, reset_generation=reset_generation, key=key)
    where = place(data, server)
    leave(authority.renew("reset", because, review=review, where=where, output=output), output)


@app.command()
def collect(
    wallet: Annotated[str, typer.Argument(metavar="WALLET", help="The wallet's name.", show_default=False)],
    amount: Annotated[
        int,
        typer.Argument(
            metavar="AMOUNT", min=1, max=LARGEST_AMOUNT, help="In minor units of its currency.", show_default=False
        ),
    ],
    *,
    key: Key = None,
    server: Server = None,
    data: Data = None,
    output: Form = None,
) -> None:
    """Record that a payment of what a wallet owes was collected. It is never more than is owed."""
    from starter.cli import authority

    request = {"wallet": wallet, "amount": amount}
    where = place(data, server)
    leave(authority.operate("collect", request, review=Review(key=key), where=where, output=output), output)


@app.command()
def approve(
    schedule: ScheduleId,
    *,
    until: ExpiresAt,
    revision: Revision = None,
    digest: Digest = None,
    key: Key = None,
    server: Server = None,
    data: Data = None,
    output: Form = None,
) -> None:
    """Approve one exact version for live runs: the newest, unless --revision names one. Another version needs another one."""
    from starter.cli import authority

    review = Review(revision=revision, digest=digest, key=key)
    where = place(data, server)
    leave(authority.approve(schedule, until=until, review=review, where=where, output=output), output)


@app.command()
def events(
    *,
    after: Annotated[
        int, typer.Option("--after", min=0, max=LARGEST_ID, help="Only events behind the one with this id.")
    ] = 0,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="Events, at most.")] = 1_000,
    server: Server = None,
    data: Data = None,
    output: Form = None,
) -> None:
    """Show what operators did in the environment and its organization, and when."""
    from starter.cli import authority

    leave(authority.show_acts(after=after, limit=limit, where=place(data, server), output=output), output)
