"""How a command leaves: with its status, and with a foreseen error as sentences on stderr."""

import sys
from collections.abc import Coroutine
from typing import Any, NoReturn

from horarium.errors import HorariumError, InvalidSchedule, Refused
from starter.cli.printing import Output, json_text
from starter.cli.review import Uncertain
from worker.exit import run


def leave(work: Coroutine[Any, Any, int | None], output: Output | None) -> NoReturn:
    """Do the work of a command and leave the process through the one way out. Raises SystemExit, always."""
    run(_told(work, output))


async def _told(work: Coroutine[Any, Any, int | None], output: Output | None) -> int | None:
    try:
        return await work
    except HorariumError as error:
        # An answer that was begun shall stand before the error, where both go to one terminal.
        sys.stdout.flush()
        print(json_text(as_document(error)) if output is Output.JSON else str(error), file=sys.stderr)
        return 1


def as_document(error: HorariumError) -> dict[str, Any]:
    """A foreseen error for programs: `code`, `sentence`, `next_step`, and the `faults` of a document."""
    match error:
        case InvalidSchedule():
            count = len(error.faults)
            return {
                "code": "invalid_schedule",
                "sentence": f"The document has {count} {'fault' if count == 1 else 'faults'}.",
                "next_step": "Correct what the faults name, then try again. Nothing was stored.",
                "faults": [
                    {"pointer": fault.pointer, "code": fault.code, "sentence": fault.sentence} for fault in error.faults
                ],
            }
        case Refused():
            return {"code": error.code, "sentence": error.sentence, "next_step": error.next_step, "faults": []}
        case Uncertain():
            told = {"code": error.code, "sentence": error.sentence, "next_step": error.next_step, "faults": []}
            return {**told, "key": error.key}
        case _:
            return {"code": "misconfigured", "sentence": str(error), "next_step": "", "faults": []}
