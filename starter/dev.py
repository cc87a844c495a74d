"""`horarium dev`: a whole installation on this machine, as one process tree."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from examples.ingestion import sample
from starter.child import Child, Program
from starter.data_folder import DataFolder
from starter.ports import free_port, refuse_taken
from starter.processes import ProcessTree
from starter.setup import prepare_data, prepare_temporal
from starter.temporal_server import TemporalServer
from worker.composition import AGENT_GRACE, GRACE
from worker.connection import connect
from worker.settings import Settings

EXAMPLE_AGENTS = ("examples.ingestion",)
HOST = "127.0.0.1"
API_GRACE = timedelta(seconds=10)
"""What the API gives to requests that are under way."""
OTHER_GRACE = timedelta(seconds=5)
"""What a process may take to leave beside the grace of its work: its lease, its heartbeat, the interpreter's end."""
_ROOT = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """Where the parts of a development installation are."""

    data: Path
    temporal_address: str
    ui_address: str | None
    api_address: str | None

    def as_document(self) -> dict[str, str | None]:
        """The same for programs."""
        return {
            "data": str(self.data),
            "temporal": self.temporal_address,
            "ui": self.ui_address,
            "api": self.api_address,
        }


async def start(
    tree: ProcessTree,
    settings: Settings,
    *,
    temporal_port: int,
    ui_port: int,
    api_port: int | None,
    agents: Sequence[str],
) -> Running:
    """Prepare the data folder, then start Temporal, workers, controller, API and agent runners, in that order.

    Ports of 0 mean any free one; without `api_port` there is no API.
    From then on this process means this Temporal server alone, whatever its environment said. Raises `Misconfigured`
    where a port is taken or a part does not come up.
    """
    prepare_data(settings)
    _lay_out_example(settings)
    if api_port:
        refuse_taken(HOST, api_port, "--api-port")
    elif api_port == 0:
        api_port = free_port()
    server = TemporalServer(settings.data, port=temporal_port, ui_port=ui_port)
    await tree.start(server)
    _mean_only(server)
    await prepare_temporal(await connect(wait_seconds=10))
    environment = {**settings.environment(), **_example_environment(settings)}
    parts = [
        ("The workers", "worker", ("-m", "worker"), GRACE),
        ("The controller", "controller", ("-m", "starter", "controller"), timedelta(0)),
        *(
            []
            if api_port is None
            else [("The API", "api", ("-m", "starter", "api", "--host", HOST, "--port", str(api_port)), API_GRACE)]
        ),
        *(
            (f"The agent runner of {module}", f"agents-{module}", ("-m", "worker", "agents", module), AGENT_GRACE)
            for module in agents
        ),
    ]
    await _start_together(
        tree,
        [_child(settings, name, log, arguments, environment, grace=grace) for name, log, arguments, grace in parts],
    )
    return Running(
        data=settings.data,
        temporal_address=server.address,
        ui_address=server.ui_address,
        api_address=None if api_port is None else f"http://{HOST}:{api_port}",
    )


async def dev(
    settings: Settings, *, temporal_port: int, ui_port: int, api_port: int, agents: Sequence[str], json_output: bool
) -> int:
    """Run a development installation until Ctrl-C."""
    with DataFolder(settings.data):
        async with ProcessTree() as tree:
            running = await start(
                tree, settings, temporal_port=temporal_port, ui_port=ui_port, api_port=api_port, agents=agents
            )
            _tell(running, settings, json_output=json_output)
            await tree.run_until_stopped()
        if not json_output:
            print("Stopped.", file=sys.stderr)
    return 0


def _mean_only(server: TemporalServer) -> None:
    """Let the SDK's environment configuration, ours and our children's, mean this server.

    A person may have a hosted service in the environment or in a profile, with its namespace, key and TLS.
    """
    for name in [name for name in os.environ if name.startswith("TEMPORAL_")]:
        del os.environ[name]
    os.environ |= {
        "TEMPORAL_ADDRESS": server.address,
        "TEMPORAL_NAMESPACE": server.namespace,
        "TEMPORAL_CONFIG_FILE": os.devnull,
    }


async def _start_together(tree: ProcessTree, children: Sequence[Child]) -> None:
    """Start children at the same time: each takes a second or so to import what it needs.

    The tree takes them up in their order all the same, so that it stops agents before the workers that settle their runs.
    """
    try:
        async with asyncio.TaskGroup() as group:
            for child in children:
                group.create_task(child.start())
    except BaseException:
        for child in children:
            child.kill()
        raise
    for child in children:
        await tree.start(child)


def _child(
    settings: Settings,
    name: str,
    log: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    *,
    grace: timedelta,
) -> Child:
    return Child(
        Program(
            name=name,
            argv=(sys.executable, *arguments),
            log=settings.data / "logs" / f"{log}.log",
            environment=environment,
            folder=_ROOT,
            grace=grace + OTHER_GRACE,
        )
    )


def _lay_out_example(settings: Settings) -> None:
    """Give the example agent an input, an output target and a few files to look at, where they are not there yet."""
    inputs, outputs = settings.data / "content" / "inputs", settings.data / "content" / "outputs"
    (outputs / "ingestion-reports").mkdir(exist_ok=True)
    manifest = inputs / "ingestion" / "manifest.json"
    if not manifest.exists():
        manifest.parent.mkdir(exist_ok=True)
        manifest.write_bytes(sample.MANIFEST.read_bytes())
    if not _example_root(settings).exists():
        sample.prepare(_example_root(settings))


def _example_root(settings: Settings) -> Path:
    return settings.data / "example-files"


def _example_environment(settings: Settings) -> dict[str, str]:
    return {"HORARIUM_EXAMPLE_ROOT": os.environ.get("HORARIUM_EXAMPLE_ROOT", str(_example_root(settings)))}


def _tell(running: Running, settings: Settings, *, json_output: bool) -> None:
    if json_output:
        print(json.dumps(running.as_document()), flush=True)
        return
    print(
        f"""Horarium runs. Ctrl-C stops everything.
  Temporal      {running.temporal_address}   UI {running.ui_address}
  API           {running.api_address}   a token for it: horarium token
  Data          {running.data}
  Logs          {running.data / "logs"}
  Environment   {settings.scope.org_id}/{settings.scope.environment_id}
Next, in another terminal (with --data {running.data} unless it is the default):
  horarium publish examples/ingestion/schedule.yaml
  horarium enable SCHEDULE_ID
  horarium occurrences SCHEDULE_ID --follow""",
        flush=True,
    )
