"""Histories as the server keeps them: whole chains of continued workflows, and what one turn of a schedule writes."""

from collections.abc import Sequence
from dataclasses import dataclass

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client

_FIRED = EventType.EVENT_TYPE_TIMER_FIRED


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """A workflow with everything that it was continued from, first to last: its events, and its bytes on the server."""

    events: Sequence[HistoryEvent]
    size_bytes: int

    @property
    def turns(self) -> int:
        """How often its timer has fired and fired again."""
        return max(sum(each.event_type == _FIRED for each in self.events) - 1, 0)

    @property
    def within_turns(self) -> Sequence[HistoryEvent]:
        """The events of whole turns: behind the first time that a timer fired, until the last time that one did.

        What continues a history as a new one is among them where it happened.
        """
        fired = [place for place, each in enumerate(self.events) if each.event_type == _FIRED]
        return self.events[fired[0] + 1 : fired[-1] + 1] if fired else ()

    @property
    def bytes_of_turns(self) -> float:
        """The bytes of `within_turns`, as far as all events are alike."""
        return self.size_bytes * len(self.within_turns) / len(self.events)


async def chain_of(client: Client, workflow_id: str) -> Chain:
    """The chain of a workflow, from its newest run backwards."""
    runs: list[Sequence[HistoryEvent]] = []
    size_bytes, run_id = 0, None
    while run_id != "":
        handle = client.get_workflow_handle(workflow_id, run_id=run_id)
        described = (await handle.describe()).raw_description
        size_bytes += described.workflow_execution_info.history_size_bytes
        # The newest run may be continued between two questions, so both ask for the same one.
        run = described.workflow_execution_info.execution.run_id
        events = (await client.get_workflow_handle(workflow_id, run_id=run).fetch_history()).events
        runs.append(events)
        run_id = events[0].workflow_execution_started_event_attributes.continued_execution_run_id
    return Chain(events=[each for events in reversed(runs) for each in events], size_bytes=size_bytes)
