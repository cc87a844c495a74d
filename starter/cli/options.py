"""Options and arguments that several commands have, told once."""

from collections.abc import Callable
from datetime import UTC, datetime
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NoReturn, TypeVar

import typer

from starter.cli.place import Where
from starter.cli.printing import Output
from starter.cli.times import parse_time

_Choice = TypeVar("_Choice", bound=StrEnum)
LARGEST_NUMBER = 2**31 - 1
"""Of revisions, generations and epochs. A server refuses a larger one, and a database has no room for it."""
LARGEST_ID = 10**18 - 1
"""Of an event, likewise."""
LARGEST_AMOUNT = 10**15
"""Of money, in minor units, likewise."""


def _time(text: str) -> datetime:
    try:
        return parse_time(text, now=datetime.now(UTC))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


parse_instant = _time
"""A time as a person writes it, for options of one command alone."""


def one_of(kind: type[_Choice]) -> Callable[[str], _Choice]:
    """A reader of one of a few names, which says which was probably meant."""

    def read(text: str) -> _Choice:
        names = [each.value for each in kind]
        if text in names:
            return kind(text)
        near = get_close_matches(text[:60].lower(), names, n=1)
        advice = f"Did you mean {near[0]!r}?" if near else f"It is one of {', '.join(names)}."
        raise typer.BadParameter(f"{text[:60]!r} is unknown. {advice}")

    return read


Document = Annotated[
    str, typer.Argument(metavar="FILE", help="A JSON or YAML file, or - for standard input.", show_default=False)
]
ScheduleId = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="The schedule's UUID, or its first 6 or more characters where no other begins so.",
        show_default=False,
    ),
]
Data = Annotated[
    Path | None,
    typer.Option(
        "--data", metavar="DIR", help="The data folder; else HORARIUM_DATA, else ./.horarium.", show_default=False
    ),
]
Server = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="URL",
        help="Ask this server, with HORARIUM_TOKEN; else HORARIUM_SERVER, else the data folder.",
        show_default=False,
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        "--key", help="The idempotency key; else a new one. The same key does the same thing once.", show_default=False
    ),
]
Epoch = Annotated[
    int | None,
    typer.Option(
        "--environment-epoch",
        min=0,
        max=LARGEST_NUMBER,
        help="The environment's authority epoch that was reviewed.",
        show_default=False,
    ),
]
Reset = Annotated[
    int | None,
    typer.Option(
        "--reset-generation",
        min=0,
        max=LARGEST_NUMBER,
        help="The environment's reset generation that was reviewed.",
        show_default=False,
    ),
]
Form = Annotated[
    Output | None,
    typer.Option(
        "--output",
        "-o",
        metavar="table|json|yaml",
        parser=one_of(Output),
        help="The form of the answer. Without it: a table on a terminal, JSON lines in a pipe.",
        show_default=False,
    ),
]
_TIME_HELP = "as 2027-03-28T07:30:00Z, '2027-03-28 07:30 Europe/Zurich', 2027-03-28 (midnight UTC), now, +2h or -1d."
ExpiresAt = Annotated[
    datetime,
    typer.Option(
        "--until", metavar="TIME", parser=_time, help=f"Until when it holds, {_TIME_HELP}", show_default=False
    ),
]
From = Annotated[
    datetime | None,
    typer.Option("--from", metavar="TIME", parser=_time, help=f"The first instant, {_TIME_HELP}", show_default=False),
]
Until = Annotated[
    datetime | None,
    typer.Option("--until", metavar="TIME", parser=_time, help="The last instant, likewise.", show_default=False),
]
Revision = Annotated[
    int | None,
    typer.Option("--revision", min=1, max=LARGEST_NUMBER, help="The version that was reviewed.", show_default=False),
]
Generation = Annotated[
    int | None,
    typer.Option(
        "--generation",
        min=0,
        max=LARGEST_NUMBER,
        help="The activation's generation that was reviewed, 0 for none.",
        show_default=False,
    ),
]
Digest = Annotated[
    str | None,
    typer.Option("--digest", help="The digest of the version that was reviewed, sha256:….", show_default=False),
]


def in_order(since: datetime | None, until: datetime | None) -> None:
    """Refuse a time that ends before it begins, as a mistake in the command."""
    if since is not None and until is not None and since > until:
        misused(f"The time ends at {until.isoformat()}, before it begins at {since.isoformat()}.", "--until")


def place(data: Path | None, server: str | None) -> Where:
    """Where the command acts; a data folder and a server at once are a mistake in the command."""
    if data is not None and server is not None:
        misused("A command acts on a data folder or at a server. Name one of them.", "--server")
    return Where(data=data, server=server)


def misused(sentence: str, option: str) -> NoReturn:
    """Refuse an option or argument as a mistake in the command: status 2."""
    raise typer.BadParameter(sentence, param_hint=repr(option))
