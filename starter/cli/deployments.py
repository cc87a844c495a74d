"""`deployment show` and `deployment current`: what an operator sees and does of the builds of the workers."""

from datetime import timedelta

from starter.cli.printing import Output, print_table, show
from starter.deployments import builds, make_current
from worker.connection import connect
from worker.settings import Deployment


async def show_builds(name: str, *, output: Output | None) -> int:
    """Show the builds of a deployment."""
    found = await builds(await connect(), name)
    documents = [
        {
            "build_id": each.build_id,
            "standing": each.standing,
            "schedule_workers": each.schedule_workers,
            "run_workers": each.run_workers,
        }
        for each in found
    ]
    show(
        {"deployment": name, "builds": documents},
        output,
        lambda: print_table(
            ["BUILD", "STANDING", "SCHEDULE WORKERS", "RUN WORKERS"], [list(each.values()) for each in documents]
        ),
        lines=documents,
    )
    return 0


async def make_build_current(name: str, build_id: str, *, wait: timedelta, output: Output | None) -> int:
    """Let a build have what is new, and say which one had it."""
    before = await make_current(await connect(), Deployment(name=name, build_id=build_id), wait=wait)
    if before is None or before == build_id:
        rest = "" if before else " What workers without a build have begun moves to it too."
    else:
        rest = (
            f" Runs that began on {before!r} end there: keep its workers until `horarium deployment show` says drained."
        )
    sentence = f"Build {build_id!r} of {name!r} is current.{rest}"
    show(
        {"deployment": name, "build_id": build_id, "before": before, "done": [sentence]},
        output,
        lambda: print(sentence),
    )
    return 0
