"""`import temporal`: a native schedule as a configuration of ours, to be reviewed and published by a person."""

import json
import shlex
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from temporalio.api.schedule.v1 import Schedule
from temporalio.api.workflowservice.v1 import DescribeScheduleRequest
from temporalio.service import RPCError, RPCStatusCode

from horarium.errors import Misconfigured, NotFound, Unavailable
from starter.cli.place import Document
from starter.cli.printing import Output, printable, program, show
from starter.importing import Choices, imported
from worker.connection import connect

ANSWER_WITHIN = timedelta(seconds=30)
"""It is the schedule itself that answers: one that searches for its next time keeps its describer waiting, too."""
_TO_JSON = ".json"


async def import_temporal(schedule_id: str, choices: Choices, *, file: str | None, output: Output | None) -> int:
    """Read a native schedule, and print what it is here or write it to a file that is not there yet."""
    native = await _described(schedule_id)
    found = imported(schedule_id, native, choices, since=datetime.now(UTC))
    if file is None:
        # The document alone goes where a pipe or a file may take it.
        show(found.configuration, output, lambda: print(_as_yaml(found.configuration), end=""))
        for note in found.notes:
            print(f"Note: {printable(note)}", file=sys.stderr)
        return 0
    _write(file, found.configuration)
    answer = {"written": file, "configuration": found.configuration, "notes": list(found.notes)}

    def table() -> None:
        print(f"Written: {printable(file)}")
        for note in found.notes:
            print(f"Note: {printable(note)}")
        print(f"Next: {program()} preview {shlex.quote(printable(file))}")

    show(answer, output, table)
    return 0


async def _described(schedule_id: str) -> Schedule:
    """A native schedule as the server has it, in the namespace of the settings."""
    client = await connect()
    request = DescribeScheduleRequest(namespace=client.namespace, schedule_id=schedule_id)
    try:
        answer = await client.workflow_service.describe_schedule(request, timeout=ANSWER_WITHIN)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise NotFound(
                "native_schedule_not_found",
                f"Temporal has no schedule {schedule_id!r} in namespace {client.namespace!r}.",
                next_step="`temporal schedule list` shows those that are there; TEMPORAL_NAMESPACE names another namespace.",
            ) from error
        if error.status in {RPCStatusCode.INVALID_ARGUMENT, RPCStatusCode.PERMISSION_DENIED}:
            raise Misconfigured(f"Temporal refuses to describe {schedule_id[:200]!r}: {error.message}.") from error
        raise Unavailable(
            "temporal_unavailable", f"Temporal answers with {error.message}.", next_step="Try the same again."
        ) from error
    return answer.schedule


def _as_yaml(configuration: Document) -> str:
    text: str = yaml.safe_dump(configuration, sort_keys=False, allow_unicode=True)
    return text


def _write(file: str, configuration: Document) -> None:
    """Write a new file: one that is there may have been filled in by a person already."""
    as_json = Path(file).suffix.lower() == _TO_JSON
    text: Any = f"{json.dumps(configuration, indent=2)}\n" if as_json else _as_yaml(configuration)
    try:
        with Path(file).open("x", encoding="utf-8") as written:
            written.write(text)
    except FileExistsError as error:
        raise Misconfigured(f"{file!r} is there already, and is left as it is. Name another file.") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise Misconfigured(f"{file[:200]!r} cannot be written: {reason}. Name another file.") from error
