"""All commands of the program, and those of an installation: their names, arguments and help.

What each does is in the module that it imports when it is called.
"""
# A command imports what it needs and nothing else, so that `--help` and `validate` answer at once.
# ruff: noqa: PLC0415

import importlib.metadata
import sys
from datetime import timedelta
from typing import Annotated

import typer

from starter.cli import (
    api_commands,
    authority_commands,
    deployment_commands,
    import_commands,
    keeping_commands,
    notify_commands,
    profile_commands,
    schedule_commands,
    v0_commands,
)
from starter.cli.options import Data, Form, misused
from starter.cli.refusals import leave
from starter.cli.words import Words

app = typer.Typer(
    cls=Words,
    help="Durable schedules for unattended agent runs, on Temporal.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
database = typer.Typer(help="The catalog's tables.", no_args_is_help=True, rich_markup_mode=None)


def _version(asked: bool) -> None:
    if asked:
        print(f"horarium {importlib.metadata.version('horarium')}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Durable schedules for unattended agent runs, on Temporal."""
    del version


app.add_typer(schedule_commands.app)
app.add_typer(api_commands.app)
app.add_typer(authority_commands.app, name="authority")
app.add_typer(notify_commands.app, name="notify")
app.add_typer(deployment_commands.app, name="deployment")
app.add_typer(keeping_commands.app)
app.add_typer(v0_commands.app, name="v0")
app.add_typer(profile_commands.app, name="profile")
app.add_typer(import_commands.app, name="import")
app.add_typer(database, name="db")


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
        misused(_no_worker(given), "worker")
    from starter.cli import hosting

    leave(hosting.work(given, data=data), None)


def _no_worker(given: list[str]) -> str:
    """What is wrong with the words behind `worker`, and what was probably meant."""
    match given:
        case ["agents"]:
            return "Say which agents: `worker agents MODULE`, where MODULE is what Python imports, such as examples.ingestion."
        case ["agent", module]:
            return f"'agent {module}' is no worker. Did you mean `worker agents {module}`?"
        case ["agents", *_]:
            return "An agent runner runs the agents of one MODULE; start another one for the others."
        case _:
            return f"{' '.join(given)!r} is no worker: there are schedules, runs, and agents with one MODULE."


@app.command()
def controller(data: Data = None) -> None:
    """Run a controller until Ctrl-C. It makes Temporal agree with the catalog and writes what it observed."""
    from starter.cli import hosting

    leave(hosting.control(data=data), None)


@app.command()
def setup(
    temporal: Annotated[bool, typer.Option("--temporal/--no-temporal", help="Prepare the Temporal server too.")] = True,
    wait: Annotated[
        float, typer.Option("--wait", min=0, max=3_600, help="Seconds to wait for the catalog and the Temporal server.")
    ] = 0,
    data: Data = None,
    output: Form = None,
) -> None:
    """Prepare a data folder with its catalog and environment, and the Temporal server. Fails where one does not answer."""
    from starter.cli import hosting

    leave(hosting.set_up(temporal=temporal, wait=timedelta(seconds=wait), data=data, output=output), output)


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
    try:
        from starter.cli import hosting
    except KeyboardInterrupt:  # importing takes a second, in which Ctrl-C means the same as later
        print("Stopped.", file=sys.stderr)
        raise typer.Exit(0) from None

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
