"""The commands that keep the catalog from holding more than it should: their names, arguments and help."""
# A command imports what it needs and nothing else, so that `--help` and `validate` answer at once.
# ruff: noqa: PLC0415

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from starter.cli.options import Data, Form, misused, parse_instant
from starter.cli.refusals import leave

app = typer.Typer()


@app.command()
def archive(
    *,
    before: Annotated[
        datetime | None,
        typer.Option(
            "--before",
            metavar="TIME",
            parser=parse_instant,
            help="What is older, as 2026-10-01 or -90d; 30 days at the least.",
            show_default=False,
        ),
    ] = None,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="DIR", help="Where archives are kept.", show_default=False)
    ] = None,
    prune: Annotated[
        bool,
        typer.Option("--prune", help="Remove from the catalog what was written, also what an interrupted call left."),
    ] = False,
    verify: Annotated[
        Path | None,
        typer.Option("--verify", metavar="DIR", help="Only look whether one archive is whole.", show_default=False),
    ] = None,
    data: Data = None,
    output: Form = None,
) -> None:
    """Write old ledger entries, runs, receipts and events that nothing needs any more to files; with --prune, remove them."""
    from starter.cli import keeping

    if verify is not None:
        if before is not None or to is not None or prune:
            misused("To verify an archive, name it and nothing else.", "--verify")
        leave(keeping.verify(verify, output=output), output)
    if before is None or to is None:
        misused("An archive needs a time and a folder.", "--before" if before is None else "--to")
    leave(keeping.archive(before=before, to=to, prune=prune, data=data, output=output), output)


@app.command("erase-person")
def erase_person(
    name: Annotated[str, typer.Argument(metavar="NAME", help="As the record names the person.", show_default=False)],
    really: Annotated[
        bool, typer.Option("--really", help="Do it. Without, it is only said what would be changed.")
    ] = False,
    instead: Annotated[
        str | None,
        typer.Option(
            "--as", metavar="erased:…", help="What an interrupted call has printed, to finish it.", show_default=False
        ),
    ] = None,
    data: Data = None,
    output: Form = None,
) -> None:
    """Replace a person's name everywhere in the organization by one that says nothing, and sign them out."""
    from starter.cli import keeping

    leave(keeping.erase(name, really=really, instead=instead, data=data, output=output), output)
