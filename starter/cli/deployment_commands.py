"""The commands of worker deployments: their names, arguments and help."""
# A command imports what it needs and nothing else, so that `--help` and `validate` answer at once.
# ruff: noqa: PLC0415

from datetime import timedelta
from typing import Annotated

import typer

from starter.cli.options import Form
from starter.cli.refusals import leave

app = typer.Typer(
    help="Builds of the workers, told apart while one replaces the other. For operators, at the Temporal server.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Name = Annotated[
    str,
    typer.Option(
        "--name",
        metavar="NAME",
        envvar="HORARIUM_DEPLOYMENT",
        show_envvar=False,
        help="The deployment; else HORARIUM_DEPLOYMENT.",
        show_default=False,
    ),
]


@app.command()
def show(name: Name, output: Form = None) -> None:
    """Show the builds of a deployment: which one is current, which may be stopped, and whose workers poll."""
    from starter.cli import deployments

    leave(deployments.show_builds(name, output=output), output)


@app.command()
def current(
    build_id: Annotated[str, typer.Argument(metavar="BUILD_ID", help="Its HORARIUM_BUILD_ID.", show_default=False)],
    name: Name,
    wait: Annotated[
        float, typer.Option("--wait", min=0, max=3_600, help="Seconds to wait for both workers of the build.")
    ] = 30,
    output: Form = None,
) -> None:
    """Let a build have the schedules and every new run. Runs that have begun end on the build that they began on."""
    from starter.cli import deployments

    leave(deployments.make_build_current(name, build_id, wait=timedelta(seconds=wait), output=output), output)
