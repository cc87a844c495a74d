"""The agent: reads its manifest, looks at the files in a thread, writes the report."""

import asyncio
import os
import threading
from pathlib import Path

from examples.ingestion.checks import Check, Stopped
from examples.ingestion.config import IngestionConfig
from examples.ingestion.manifest import UnusableManifest, parse_manifest
from examples.ingestion.report import file_name, markdown, summary
from horarium.agents import Agent, AgentReport, CronStartEvent, RunContext, handles

ROOT_VARIABLE = "HORARIUM_EXAMPLE_ROOT"
"""Names the folder that all paths of a manifest lie below; without it that is the working directory."""


class IngestionCheck(Agent):
    """Checks that files arrived, are fresh and can be loaded.

    Findings are its product: a run that found a hundred faults has succeeded. A run fails where the manifest is
    unusable.
    """

    name = "ingestion-check"
    version = "1"
    description = "Finds missing, stale, empty, malformed and duplicate CSV files, and writes a report in Markdown."
    max_run_seconds = 300
    # It changes nothing, and a second attempt writes the same report over the first.
    idempotent = True
    config = IngestionConfig

    @handles(CronStartEvent)
    async def check(self, event: CronStartEvent, context: RunContext) -> AgentReport:
        """Do one check, as of the moment at which the run was admitted."""
        assert isinstance(context.config, IngestionConfig), "the runner reads it by the class that is named above"
        listed = context.config.listed
        # A thread cannot be cancelled: it is told to stop at its next breath.
        stop = threading.Event()

        def breathe(words: str) -> None:
            if stop.is_set():
                raise Stopped
            context.heartbeat(words)

        try:
            manifest = parse_manifest(await context.read_input())
            root = Path(os.environ.get(ROOT_VARIABLE) or ".")
            check = Check(manifest=manifest, root=root, at=event.run.actual_time, breathe=breathe)
            results = await asyncio.to_thread(check.run)
        except UnusableManifest as error:
            return AgentReport.failed(f"The manifest {event.run.input!r} is unusable: {error}")
        finally:
            stop.set()
        report = await context.write_output(file_name(event.run), markdown(results, event.run, listed=listed))
        context.logger.info("ingestion_checked", summary=summary(results))
        return AgentReport.succeeded(summary(results), outputs=[report], cost=0)
