"""`diff`: what a configuration in a file would change, against the head and against the version that is enabled."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from horarium.calendar.faults import pointer
from horarium.schedule.canonical import digest
from horarium.schedule.configuration import parse_configuration
from starter.cli.finding import find
from starter.cli.place import Document, Place, Where, reach
from starter.cli.printing import Output, json_text, printable, show
from starter.documents import read_checked

_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Change:
    """One place in which two documents differ. What is not there has no value."""

    pointer: str
    before: Any = _ABSENT
    after: Any = _ABSENT

    def as_document(self) -> Document:
        """The same for programs: `before` or `after` is left out where there is nothing."""
        values = {"before": self.before, "after": self.after}
        return {"pointer": self.pointer, **{name: value for name, value in values.items() if value is not _ABSENT}}

    def lines(self) -> Iterator[str]:
        """The same for people: what goes, then what comes."""
        for sign, value in (("-", self.before), ("+", self.after)):
            if value is not _ABSENT:
                yield f"{sign} {self.pointer or '(document)'}: {printable(json_text(value))}"


async def diff(file: str, written: str, *, where: Where, output: Output | None) -> int:
    """Show what publishing the file would change. The status is 1 if there is anything, 0 if not."""
    document, _ = read_checked(file, parse_configuration)
    async with reach(where) as place:
        schedule_id = await find(place, written)
        against = [_compared(name, each, document) for name, each in await _versions(place, schedule_id)]
    different = any(each["different"] for each in against)
    answer = {"schedule_id": schedule_id, "digest": digest(document), "different": different, "against": against}
    show(answer, output, lambda: _print(file, against))
    return int(different)


def changes(before: Any, after: Any, at: str = "") -> Iterator[Change]:
    """Where two JSON values differ, in the order of the first and then of what the second has more.

    Lists of one length are compared part by part, others as a whole: which parts moved is for the reader to say.
    """
    if isinstance(before, dict) and isinstance(after, dict):
        for name in [*before, *(each for each in after if each not in before)]:
            here = pointer(at, name)
            if name not in after:
                yield Change(here, before=before[name])
            elif name not in before:
                yield Change(here, after=after[name])
            else:
                yield from changes(before[name], after[name], here)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (left, right) in enumerate(zip(before, after, strict=True)):
            yield from changes(left, right, pointer(at, index))
    elif isinstance(before, bool) is not isinstance(after, bool) or before != after:
        yield Change(at, before=before, after=after)


async def _versions(place: Place, schedule_id: str) -> list[tuple[str, Document]]:
    """The head, and the version that is enabled where there is one, each with what it is called."""
    head = await place.record(schedule_id)
    activation = head["activation"]
    if activation is None or not activation["enabled"]:
        return [("head", head)]
    return [("head", head), ("enabled", await place.record(schedule_id, revision=activation["version"]["revision"]))]


def _compared(name: str, record: Document, document: Any) -> Document:
    return {
        "version": name,
        "reference": record["reference"],
        "different": record["reference"]["digest"] != digest(document),
        "changes": [each.as_document() for each in changes(record["configuration"], document)],
    }


def _print(file: str, against: list[Document]) -> None:
    for each in against:
        revision = each["reference"]["revision"]
        if not each["different"]:
            print(f"Equal to the {_called(each)}, revision {revision}.")
            continue
        print(f"--- {_called(each)}, revision {revision}\n+++ {printable(file)}")
        for found in each["changes"]:
            change = Change(found["pointer"], found.get("before", _ABSENT), found.get("after", _ABSENT))
            print("\n".join(change.lines()))
    if all(each["version"] != "enabled" for each in against):
        print("No version is enabled.")


def _called(compared: Document) -> str:
    return "head" if compared["version"] == "head" else "enabled version"
