"""The commands that bring schedules from elsewhere: their names, arguments and help."""
# A command imports what it needs and nothing else, so that `--help` and `validate` answer at once.
# ruff: noqa: PLC0415

from datetime import timedelta
from typing import Annotated

import typer

from horarium.schedule.configuration import UsageClass
from horarium.schedule.policy import MAX_CATCHUP_WINDOW, MIN_CATCHUP_WINDOW
from starter.cli.options import Form, one_of
from starter.cli.refusals import leave

app = typer.Typer(help="Bring schedules from elsewhere.", no_args_is_help=True, rich_markup_mode=None)

_LEAST, _MOST = (int(window.total_seconds()) for window in (MIN_CATCHUP_WINDOW, MAX_CATCHUP_WINDOW))


@app.callback()
def main() -> None:
    """Bring schedules from elsewhere."""


@app.command()
def temporal(
    schedule: Annotated[
        str, typer.Argument(metavar="SCHEDULE_ID", help="The native schedule's id.", show_default=False)
    ],
    *,
    name: Annotated[
        str | None, typer.Option("--name", help="What it is called here; else its id.", show_default=False)
    ] = None,
    agent_version: Annotated[
        str | None, typer.Option("--agent-version", help="What runs, name@version.", show_default=False)
    ] = None,
    input_: Annotated[
        str | None, typer.Option("--input", metavar="REF", help="What it reads.", show_default=False)
    ] = None,
    output_target: Annotated[
        str | None, typer.Option("--output-target", metavar="REF", help="Where it writes.", show_default=False)
    ] = None,
    grants: Annotated[
        list[str] | None, typer.Option("--grant", metavar="REF", help="May be repeated.", show_default=False)
    ] = None,
    budget: Annotated[
        str | None, typer.Option("--budget", metavar="REF", help="What pays for it.", show_default=False)
    ] = None,
    usage_class: Annotated[
        UsageClass,
        typer.Option("--usage-class", metavar="NAME", parser=one_of(UsageClass), help="test_simulation is never paid."),
    ] = UsageClass.TEST_SIMULATION,
    catchup_window: Annotated[
        int | None,
        typer.Option(
            "--catchup-window",
            metavar="SECONDS",
            min=_LEAST,
            max=_MOST,
            help="How late an instant may still run, where the native one, a year unless it was set, has no equal.",
            show_default=False,
        ),
    ] = None,
    file: Annotated[
        str | None,
        typer.Option(
            "--file", "-f", metavar="FILE", help="A new file to write, JSON or YAML by its name.", show_default=False
        ),
    ] = None,
    output: Form = None,
) -> None:
    """Print a native Temporal schedule as a configuration, or say what of it has no equal here. Nothing is changed anywhere.

    The server is the one of TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE. What runs is not told by a native schedule: name it, or
    fill it in afterwards.
    """
    from starter.cli import importing
    from starter.importing import Choices

    told = {"agent_version": agent_version, "input": input_, "output_target": output_target, "budget_id": budget}
    run = {
        **{part: value for part, value in told.items() if value is not None},
        "grants": grants or [],
        "usage_class": usage_class.value,
    }
    window = None if catchup_window is None else timedelta(seconds=catchup_window)
    choices = Choices(name=name, catchup_window=window, run=run)
    leave(importing.import_temporal(schedule, choices, file=file, output=output), output)
