"""How a command leaves: with its status, and with a foreseen error as sentences on stderr."""

import sys
from collections.abc import Coroutine, Iterator, Mapping
from typing import Any, NoReturn

from horarium.errors import HorariumError, InvalidSchedule, NotAdmissible, Refused
from horarium.schedule.ledger import Reason
from starter.cli.place import Where
from starter.cli.printing import Output, json_text, near, printable, program
from starter.cli.review import Uncertain
from worker.exit import run
from worker.settings import load


def leave(
    work: Coroutine[Any, Any, int | None],
    output: Output | None,
    *,
    file: str | None = None,
    where: Where | None = None,
) -> NoReturn:
    """Do the work of a command and leave the process through the one way out. Raises SystemExit, always.

    `file` is the document that faults are about, `where` the place that a refusal may name folders of.
    """
    run(_told(work, output, file, where))


async def _told(
    work: Coroutine[Any, Any, int | None], output: Output | None, file: str | None, where: Where | None
) -> int | None:
    try:
        return await work
    except HorariumError as error:
        # An answer that was begun shall stand before the error, where both go to one terminal.
        sys.stdout.flush()
        if output is Output.JSON:
            told = as_document(error)
            print(json_text(told if file is None or not told["faults"] else {**told, "file": file}), file=sys.stderr)
        else:
            # What is told may come from anybody: from a document, or from what answers at an address.
            lines = (each for told in _lines(error, file, where) for each in told.split("\n"))
            print(*map(printable, lines), sep="\n", file=sys.stderr)
        return 1


def _lines(error: HorariumError, file: str | None, where: Where | None) -> Iterator[str]:
    """An error for people: a line for each fault or reason."""
    match error:
        case InvalidSchedule() if file is not None:
            name = "standard input" if file == "-" else file
            yield from (f"{name}: {fault}" for fault in error.faults)
        case NotAdmissible():
            yield f"Enabling is refused, since an occurrence would be refused now. [{error.code}]"
            for each in error.objections:
                yield f"  {each['sentence']} [{each['code']}]{_expected(each, where)}"
            yield "Put this right, then enable again."
        case _:
            yield str(error)


def _expected(objection: Mapping[str, Any], where: Where | None) -> str:
    """Where an agent, an input or an output target is looked for; nothing where that is a server's business."""
    if where is None or where.address is not None:
        return ""
    content, evidence = load(data=where.data).content, objection["evidence"]
    match objection["code"]:
        case Reason.INPUT_UNREADABLE:
            return (
                f" It is looked for as the file {near(content.inputs)}/{evidence['input']}, or with .json behind that."
            )
        case Reason.OUTPUT_MISSING:
            return f" Make the folder {near(content.outputs)}/{evidence['output_target']}/."
        case Reason.AGENT_MISSING:
            exact = "" if "@" in evidence["agent_version"] else " An agent is named by name@version."
            return (
                f"{exact} It is there once its runner is: `{program()} worker agents MODULE`. "
                f"`{program()} profile classes` lists those that were seen."
            )
        case _:
            return ""


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
        case NotAdmissible():
            told = {"code": error.code, "sentence": error.sentence, "next_step": error.next_step, "faults": []}
            return {**told, "objections": list(error.objections)}
        case Refused():
            return {"code": error.code, "sentence": error.sentence, "next_step": error.next_step, "faults": []}
        case Uncertain():
            told = {"code": error.code, "sentence": error.sentence, "next_step": error.next_step, "faults": []}
            return {**told, "key": error.key}
        case _:
            return {"code": "misconfigured", "sentence": str(error), "next_step": "", "faults": []}
