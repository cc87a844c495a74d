"""`setup`, `db upgrade`, and the commands that keep running: `worker`, `controller`, `dev` and `demo`."""

import asyncio
import importlib.util
import math
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from temporalio.service import RPCError

from horarium.catalog import Catalog
from horarium.catalog.migrate import upgrade
from horarium.errors import Misconfigured, Unavailable
from starter.cli.installation import refuse_absent
from starter.cli.printing import Output, show
from starter.setup import NOT_OURS, prepare_data, prepare_temporal
from starter.temporal_server import find_temporal
from worker.connection import connect
from worker.logs import configure, tell
from worker.processes import serve, serve_agents
from worker.settings import Settings, load

_AGAIN_AFTER = timedelta(seconds=1)


async def set_up(*, temporal: bool, wait: timedelta, data: Path | None, output: Output | None) -> int:
    """Prepare the installation and the Temporal server, waiting so long in all for either. Doing it again changes nothing.

    Search attributes that were not there are waited for beyond that, for two minutes at the most: Temporal reads them now and
    then.

    What could be done stays done where the rest fails. Raises `Unavailable` where one of them does not answer in time, and
    `Misconfigured` where waiting does not help.
    """
    settings = load(data=data)
    until = time.monotonic() + wait.total_seconds()
    await _prepare_data(settings, until)
    scope = f"{settings.scope.org_id}/{settings.scope.environment_id}"
    done = [f"The data folder {str(settings.data)!r}, its catalog and environment {scope} are ready."]
    done += await _told_by_temporal(until) if temporal else []
    answer = {"data": str(settings.data), "environment": scope, "done": done}
    show(answer, output, lambda: print(*done, sep="\n"))
    return 0


async def _prepare_data(settings: Settings, until: float) -> None:
    is_told = False
    while True:
        try:
            return prepare_data(settings)
        except Unavailable:
            if time.monotonic() >= until:
                raise
        if not is_told:
            tell(f"Waiting for the catalog (up to {_left(until)} s) …")
            is_told = True
        await asyncio.sleep(_AGAIN_AFTER.total_seconds())


async def _told_by_temporal(until: float) -> Sequence[str]:
    try:
        client = await connect(wait_seconds=_left(until))
    except Unavailable as error:
        raise _half_done(error.code, error.sentence, error.next_step) from error
    while True:
        try:
            changed = await prepare_temporal(client)
        except Unavailable as error:
            raise _half_done(error.code, error.sentence, error.next_step) from error
        except RPCError as error:
            if error.status in NOT_OURS:
                raise Misconfigured(
                    f"Temporal does not let us change namespace {client.namespace!r}: {error.message}. Register the search "
                    "attributes and a retention of at least 3 days by its own tools, then use --no-temporal."
                ) from error
            if time.monotonic() >= until:
                raise _half_done("temporal_unavailable", f"Temporal answers with {error.message}.") from error
            await asyncio.sleep(_AGAIN_AFTER.total_seconds())
        else:
            return changed or [f"Temporal's namespace {client.namespace!r} has all that is needed."]


def _left(until: float) -> int:
    return max(math.ceil(until - time.monotonic()), 0)


def _half_done(code: str, sentence: str, next_step: str = "See what it lacks.") -> Unavailable:
    return Unavailable(
        code,
        f"{sentence} The data folder and the catalog are ready; what Temporal must know is not, and nothing fires without it.",
        next_step=f"{next_step} Then run `horarium setup` again, with --wait SECONDS where it is still coming up, or with "
        "--no-temporal to leave it out.",
    )


async def upgrade_catalog(*, data: Path | None, output: Output | None) -> int:
    """Bring the catalog to this release's form."""
    settings = load(data=data)
    refuse_absent(settings)
    catalog = Catalog.open(settings.catalog_url)
    try:
        upgrade(catalog)
    finally:
        catalog.close()
    sentence = "The catalog has the form that this release works with."
    show({"done": [sentence]}, output, lambda: print(sentence))
    return 0


async def work(roles: Sequence[str], *, data: Path | None) -> int:
    """Run workers, as `python -m worker` does."""
    configure()
    settings = _present(data)
    match list(roles):
        case ["agents", module]:
            await serve_agents(settings, module, command=f"horarium worker agents {module}")
        case _:
            await serve(settings, list(dict.fromkeys(roles)) or ["schedules", "runs"])
    return 0


async def control(*, data: Path | None) -> int:
    """Run a controller."""
    from starter import controller  # noqa: PLC0415 - what only this command needs

    configure()
    await controller.control(_present(data))
    return 0


async def develop(
    *,
    temporal_port: int,
    ui_port: int,
    api_port: int,
    agents: Sequence[str],
    data: Path | None,
    output: Output | None,
) -> int:
    """Run a whole installation on this machine."""
    _require_checkout()
    from starter.dev import EXAMPLE_AGENTS, dev  # noqa: PLC0415 - what only this command needs

    try:
        return await dev(
            load(data=data),
            temporal_port=temporal_port,
            ui_port=ui_port,
            api_port=api_port,
            agents=agents or EXAMPLE_AGENTS,
            json_output=output is Output.JSON,
        )
    except asyncio.CancelledError:
        # Ctrl-C before there was anything to stop; from then on it is the process tree that is told.
        print("Stopped.", file=sys.stderr)
        return 0


async def demonstrate(*, keep: bool) -> int:
    """Show the main job."""
    _require_checkout()
    from starter.demo import demo  # noqa: PLC0415 - what only this command needs

    return await demo(keep=keep)


def _require_checkout() -> None:
    """Raise `Misconfigured` where a server or the examples are missing, as in an image for production."""
    find_temporal()
    if importlib.util.find_spec("examples") is None:
        raise Misconfigured(
            "The examples are not here, so this is no checkout. `horarium dev` and `horarium demo` run from one; in an image, "
            "start the processes one by one (deploy/README.md)."
        )


def _present(data: Path | None) -> Settings:
    settings = load(data=data)
    refuse_absent(settings)
    return settings
