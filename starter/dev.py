"""`horarium dev`: a whole installation on this machine, as one process tree."""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from examples.ingestion import sample
from horarium.catalog import Catalog
from horarium.catalog.presence import present_agents
from horarium.errors import Misconfigured
from starter.child import Child, Program
from starter.cli.printing import near, program
from starter.cli.tokens import sign_in_link
from starter.data_folder import DataFolder
from starter.ports import free_port, refuse_any_taken, refuse_equal, refuse_taken
from starter.processes import ProcessTree
from starter.setup import prepare_data, prepare_temporal
from starter.temporal_server import TemporalServer
from worker.agent_modules import elsewhere, refuse_unknown
from worker.composition import AGENT_GRACE, GRACE
from worker.connection import DEFAULT_ADDRESS, connect
from worker.page_settings import TEMPORAL_UI
from worker.settings import LOCAL_API, Settings, load

EXAMPLE_AGENTS = ("examples.ingestion",)
HOST = "127.0.0.1"
API_GRACE = timedelta(seconds=10)
"""What the API gives to requests that are under way."""
READY_WITHIN = timedelta(seconds=120)
"""How long a process may take until it works. One that ends by itself is told at once, so this is for a busy machine alone."""
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

    Ports of 0 mean any free one; without `api_port` there is no API. All of it means this Temporal server alone, whatever
    the environment says. Raises `Misconfigured` where a port is taken or a part does not come up.
    """
    prepare_data(settings)
    if _with_examples(agents):
        _lay_out_example(settings)
    if api_port:
        refuse_taken(HOST, api_port, "--api-port")
    elif api_port == 0:
        api_port = free_port()
    server = TemporalServer(settings.data, port=temporal_port, ui_port=ui_port)
    await tree.start(server)
    await prepare_temporal(await connect(address=server.address, namespace=server.namespace, wait_seconds=10))
    # Workers of a named build would wait until somebody makes it current.
    settings = replace(settings, deployment=None)
    environment = {**settings.environment(), **_means_only(server), **_example_environment(settings)}
    if api_port is not None and "HORARIUM_PUBLIC_URL" not in os.environ:
        environment["HORARIUM_PUBLIC_URL"] = f"http://{HOST}:{api_port}"
    if server.ui_address is not None and TEMPORAL_UI not in os.environ:
        environment[TEMPORAL_UI] = server.ui_address
    parts = [
        ("The workers", "worker", ("-m", "worker"), GRACE),
        ("The controller", "controller", ("-m", "starter", "controller"), timedelta(0)),
        *(
            []
            if api_port is None
            else [("The API", "api", ("-m", "starter", "api", "--host", HOST, "--port", str(api_port)), API_GRACE)]
        ),
    ]
    children = [
        _child(settings, name, log, arguments, environment, grace=grace) for name, log, arguments, grace in parts
    ]
    for module in agents:
        theirs = {**environment, **elsewhere(_typed(module))}
        name, arguments = f"The agent runner of {module}", ("-m", "worker", "agents", module)
        children.append(_child(settings, name, f"agents-{module}", arguments, theirs, grace=AGENT_GRACE))
    await _start_together(tree, children)
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
    for module in agents:
        refuse_unknown(module, command=_typed(module), path=[str(Path.cwd())], inside=True)
    ports = {"--temporal-port": temporal_port, "--ui-port": ui_port, "--api-port": api_port}
    refuse_equal(ports)
    made = not settings.data.exists()
    with DataFolder(settings.data):
        try:
            refuse_any_taken(HOST, ports)
        except Misconfigured:
            if made:
                shutil.rmtree(settings.data, ignore_errors=True)
            raise
        async with ProcessTree() as tree:
            named = " and ".join(agents)
            print(
                f"Starting a Temporal server, workers, the controller, the API and the agents of {named} …",
                file=sys.stderr,
            )
            running = await start(
                tree, settings, temporal_port=temporal_port, ui_port=ui_port, api_port=api_port, agents=agents
            )
            _tell(running, settings, agents, json_output=json_output)
            try:
                await tree.run_until_stopped()
            finally:
                if not json_output:
                    print("Stopping; a second Ctrl-C kills what is left.", file=sys.stderr)
        if not json_output:
            print("Stopped.", file=sys.stderr)
    return 0


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
            forget="TEMPORAL_",
            folder=_ROOT,
            ready_within=READY_WITHIN,
            grace=grace + OTHER_GRACE,
        )
    )


def _lay_out_example(settings: Settings) -> None:
    """Give the example agent an input, an output target and a few files to look at, where they are not there yet."""
    inputs, outputs = settings.content.inputs, settings.content.outputs
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


def _means_only(server: TemporalServer) -> dict[str, str]:
    """The SDK's environment configuration for a child, and no other.

    A person may have a hosted service in the environment or in a profile, with its namespace, key and TLS.
    """
    return {
        "TEMPORAL_ADDRESS": server.address,
        "TEMPORAL_NAMESPACE": server.namespace,
        "TEMPORAL_CONFIG_FILE": os.devnull,
    }


def _with_examples(agents: Sequence[str]) -> bool:
    return any(module in EXAMPLE_AGENTS for module in agents)


def _typed(module: str) -> str:
    """What a person types to run the agents of a module here."""
    return f"horarium dev --agents {module}"


def _tell(running: Running, settings: Settings, agents: Sequence[str], *, json_output: bool) -> None:
    if json_output:
        print(json.dumps(running.as_document()), flush=True)
        return
    present = _agents_present(settings)
    print(
        f"""Horarium runs. Ctrl-C stops everything.
  Temporal      {running.temporal_address}   UI {running.ui_address}
  Pages         {_pages(running, settings)}
  API           {running.api_address}   a token for it: {program()} token{_where(settings)}
  Processes     Temporal server; worker (schedules and runs); controller; API; {_runners(agents)}
  Agents        {", ".join(present) or "none"}
  Data          {running.data}
  Logs          {running.data / "logs"}
  Environment   {settings.scope.org_id}/{settings.scope.environment_id}
Next, in another terminal, from this folder:
{_export(running)}{_next(settings, agents, present)}""",
        flush=True,
    )


def _pages(running: Running, settings: Settings) -> str:
    """Where the pages are: a link that lets whoever sits here in, or where they are, if people sign in with an issuer."""
    address = os.environ.get("HORARIUM_PUBLIC_URL") or running.api_address or settings.public_url
    if settings.api.keys_url is not None:
        return f"{address}/ui"
    another = f"{program()} token --sign-in{_where(settings)}"
    link = sign_in_link(replace(settings, public_url=address.rstrip("/")))
    return f"{link}\n{' ' * 16}signs you in once, within 5 minutes; {another} prints another"


def _runners(agents: Sequence[str]) -> str:
    return "; ".join(f"agent runner of {module}" for module in agents)


def _next(settings: Settings, agents: Sequence[str], present: Sequence[str]) -> str:
    at = _where(settings)
    if _with_examples(agents):
        publish = f"  {program()} publish {near(sample.SCHEDULE)}{at}"
    else:
        content = settings.content
        publish = f"""  {program()} publish YOUR_SCHEDULE.yaml{at}
    whose run.agent_version is {" or ".join(present) or "one of yours"},
    run.input a file in {near(content.inputs)},
    run.output_target a folder in {near(content.outputs)}"""
    return f"{publish}\n  {program()} enable SCHEDULE_ID{at}\n  {program()} occurrences SCHEDULE_ID --follow{at}"


def _export(running: Running) -> str:
    """What whoever runs agents or imports from another terminal has to set first; nothing where the server is the usual one."""
    port = running.temporal_address.rpartition(":")[2]
    usual = DEFAULT_ADDRESS.rpartition(":")[2]
    exports = "" if port == usual else f"  export TEMPORAL_ADDRESS={running.temporal_address}\n"
    if running.api_address not in {None, LOCAL_API} and "HORARIUM_PUBLIC_URL" not in os.environ:
        exports += f"  export HORARIUM_PUBLIC_URL={running.api_address}\n"
    return exports


def _where(settings: Settings) -> str:
    """What commands have to end with, so that they mean this installation; nothing where they do so by themselves."""
    return "" if load({}).data == settings.data else f" --data {near(settings.data)}"


def _agents_present(settings: Settings) -> list[str]:
    """The agents that have just reported that they are there."""
    catalog = Catalog.open(settings.catalog_url)
    try:
        with catalog.reading() as connection:
            return list(present_agents(connection, settings.scope, now=datetime.now(UTC)))
    finally:
        catalog.close()
