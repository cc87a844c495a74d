"""The commands of the HTTP API: their names, arguments and help."""
# A command imports what it needs and nothing else, so that `--help` and `validate` answer at once.
# ruff: noqa: PLC0415

import re
from datetime import timedelta
from enum import StrEnum
from typing import Annotated

import typer

from starter.cli.options import Data, Form
from starter.cli.refusals import leave

app = typer.Typer()

PORT = 8080
CODEC_PORT = 8234
"""Beside that of Temporal's pages."""
_DURATION = re.compile(r"(\d{1,6})([smhd])", re.ASCII)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


class Kind(StrEnum):
    """Whom a token is for."""

    HUMAN = "human"
    KEY = "key"


def _duration(text: str) -> timedelta:
    match = _DURATION.fullmatch(text)
    if match is None:
        raise typer.BadParameter(f"{text[:40]!r} is no duration. Write 90s, 15m, 1h or 7d.")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


@app.command()
def api(
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65_535, help="0 for any free one.")] = PORT,
    data: Data = None,
) -> None:
    """Serve the HTTP API until Ctrl-C. Publication and reads work while Temporal and the workers are down."""
    from starter.cli import tokens

    leave(tokens.serve(host=host, port=port, data=data), None)


@app.command()
def codec(
    *,
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65_535, help="0 for any free one.")] = CODEC_PORT,
    origin: Annotated[
        list[str] | None,
        typer.Option(
            "--origin",
            metavar="URL",
            help="Where Temporal's pages are, may be repeated; else HORARIUM_TEMPORAL_UI.",
            show_default=False,
        ),
    ] = None,
    without_token: Annotated[
        bool,
        typer.Option(
            "--without-token", help="Ask for no token. On this machine alone, for whoever can reach the port."
        ),
    ] = False,
    data: Data = None,
) -> None:
    """Decrypt payloads for Temporal's pages and command line until Ctrl-C, with the keys in HORARIUM_PAYLOAD_KEYS."""
    from starter.cli import payloads

    leave(
        payloads.serve(host=host, port=port, origins=origin or [], without_token=without_token, data=data),
        None,
    )


@app.command()
def token(
    *,
    kind: Annotated[
        Kind, typer.Option("--kind", help="A key publishes and reads; a human enables, pauses and retires too.")
    ] = Kind.HUMAN,
    scope: Annotated[
        list[str] | None,
        typer.Option(
            "--scope",
            help="What it allows, may be repeated; else what all of schedules needs. The acts of operators need "
            "horarium:authority:write.",
            show_default=False,
        ),
    ] = None,
    organization: Annotated[
        str | None, typer.Option("--organization", help="Whose it is; else HORARIUM_ORGANIZATION.", show_default=False)
    ] = None,
    subject: Annotated[
        str | None, typer.Option("--subject", help="Whom the record shall name; else you.", show_default=False)
    ] = None,
    expires: Annotated[
        timedelta, typer.Option("--expires", metavar="DURATION", parser=_duration, help="As 90s, 15m, 1h or 7d.")
    ] = "1h",  # type: ignore[assignment]  # typer parses the default like what a person writes
    sign_in: Annotated[
        bool,
        typer.Option(
            "--sign-in",
            help="Print a link instead that signs you in to the pages at HORARIUM_PUBLIC_URL, once within 5 minutes.",
        ),
    ] = False,
    data: Data = None,
    output: Form = None,
) -> None:
    """Print a token for the API of a development installation, signed with the key in its data folder."""
    from starter.cli import tokens

    leave(
        tokens.issue(
            kind=kind.value,
            scopes=scope or [],
            organization=organization,
            subject=subject,
            lifetime=expires,
            data=data,
            output=output,
            sign_in=sign_in,
        ),
        output,
    )
