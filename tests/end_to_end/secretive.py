"""An agent that says what nobody may read at Temporal: in its report, in its outputs, in an error and in where that came from."""

import json

from horarium.agents import Agent, AgentReport, CronStartEvent, RunContext, handles

MARKER = "MARKER-nobody-may-read-this"
"""In all that is said, by whoever says it. The words before and after tell where it was found."""


class Secretive(Agent):
    """Does what its input says: succeeds, reports a failure, or raises."""

    name = "secretive"
    version = "1"

    @handles(CronStartEvent)
    async def work(self, event: CronStartEvent, context: RunContext) -> AgentReport:
        del event
        match json.loads(await context.read_input()):
            case {"how": "raises"}:
                raise RuntimeError(f"error {MARKER}")
            case {"how": "fails"}:
                return AgentReport.failed(f"failure {MARKER}")
        written = await context.write_output(f"output-{MARKER}.txt", b"done")
        return AgentReport.succeeded(f"summary {MARKER}", outputs=[written], cost=7)


agents = [Secretive()]
