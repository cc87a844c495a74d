"""Reading the documents that a person names on the command line: JSON and YAML files, and standard input.

YAML is read as JSON with another notation, after the core schema of YAML 1.2
(https://yaml.org/spec/1.2.2/#103-core-schema): `on` and `no` are texts and so are dates, times and `07`. PyYAML's own
rules are those of YAML 1.1, where `no` is false and `7:30` is the number 450. What has no JSON form is refused:
aliases, tags, keys that are not texts, keys that stand twice.
"""

import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import yaml

from horarium.calendar.faults import Faults, pointer, shown
from horarium.errors import Fault, InvalidSchedule, Misconfigured
from horarium.schedule.document import (
    MAX_DEPTH,
    MAX_DOCUMENT_BYTES,
    MAX_INTEGER_DIGITS,
    decode,
    json_faults,
    place,
    read_json,
)

STANDARD_INPUT = "-"
T = TypeVar("T")
_READ_ALL_THE_SAME = {"duplicate_key", "key_not_text"}
"""Faults beside which a value was read, so that what is wrong with it is told, too."""

_TAG = "tag:yaml.org,2002:"
_TEXT, _NULL, _BOOLEAN, _INTEGER, _FLOAT = (_TAG + name for name in ("str", "null", "bool", "int", "float"))


def read_checked(path: str | Path, check: Callable[[Any], T], *, most: int = MAX_DOCUMENT_BYTES) -> tuple[Any, T]:
    """Read the one document in a file, of `most` bytes, and check it; returns it and what `check` makes of it.

    All faults are told at once: those of the notation, and those that `check` finds in what could be read. Raises as
    `read_document` and `check` do.
    """
    document, faults = _document(path, most=most)
    try:
        checked = check(document)
    except InvalidSchedule as error:
        if not faults:
            raise
        unread = [fault.pointer for fault in faults if fault.code not in _READ_ALL_THE_SAME]
        raise InvalidSchedule(
            [*faults, *(each for each in error.faults if not _within(each.pointer, unread))]
        ) from None
    if faults:
        raise InvalidSchedule(faults)
    return document, checked


def read_document(path: str | Path) -> Any:
    """Read the one document in a file, or on standard input where `path` is `-`.

    `.json` is JSON, `.yaml` and `.yml` are YAML. Any other name and standard input are JSON where the text begins
    with `{` or `[` and is JSON, else YAML. Both notations have the bounds of `horarium.schedule.document`, and give the same
    plain values.

    Raises `Misconfigured` where nothing can be read (no such file, a folder, no right to read, too large) and
    `InvalidSchedule` with all faults where the text is not one document.
    """
    document, faults = _document(path)
    if faults:
        raise InvalidSchedule(faults)
    return document


def load_yaml(data: bytes | str) -> Any:
    """Read one YAML document as plain dicts, lists, texts, numbers, booleans and None.

    Raises `InvalidSchedule`: one fault with line and column where the text is not YAML, else all faults with their
    places.
    """
    document, faults = _read_yaml(data)
    if faults:
        raise InvalidSchedule(faults)
    return document


def _document(path: str | Path, *, most: int = MAX_DOCUMENT_BYTES) -> tuple[Any, list[Fault]]:
    """What could be read of a document, and what could not."""
    data = _read(path, most)
    suffix = "" if str(path) == STANDARD_INPUT else Path(path).suffix.lower()
    if suffix == ".json":
        return read_json(data, most=most)
    if suffix not in {".yaml", ".yml"} and data.lstrip()[:1] in {b"{", b"["}:
        try:
            return read_json(data, most=most)
        except InvalidSchedule as not_json:
            # YAML in its flow style begins as JSON does. What only JSON can say so wrongly, as NaN, is told as its fault.
            if {fault.code for fault in not_json.faults} == {"not_json"}:
                with suppress(InvalidSchedule):
                    return _read_yaml(data, most=most)
            raise
    return _read_yaml(data, most=most)


def _within(pointer_text: str, places: Iterable[str]) -> bool:
    """Whether a place is one of some others, or below one of them."""
    return any(pointer_text == place or pointer_text.startswith(f"{place}/") for place in places)


def _read_yaml(data: bytes | str, *, most: int = MAX_DOCUMENT_BYTES) -> tuple[Any, list[Fault]]:
    text = decode(data, most=most)
    with _faults_of_yaml(text):
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
        finally:
            loader.dispose()
    if node is None:
        raise InvalidSchedule([Fault("", "not_yaml", "The document is empty; an object was expected.")])
    faults = Faults()
    document = _value(node, "", faults)
    # A check may take values alone that JSON can have, so it sees only those.
    if foreign := json_faults(document):
        raise InvalidSchedule([*faults.found, *foreign])
    return document, faults.found


class _Loader(yaml.SafeLoader):
    """Scans and composes; the values are made by `_value`, with their places."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - PyYAML's name
    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call] # the stubs leave it out
        at = f"line {event.start_mark.line + 1}, column {event.start_mark.column + 1}"
        if isinstance(event, yaml.AliasEvent):
            # Followed, aliases make a document of a few hundred bytes as large as memory.
            self.get_event()  # type: ignore[no-untyped-call] # as above
            found = Fault("", "alias", f"An alias ({shown(event.anchor)}) stands at {at}. Write the value out.")
            return _UnreadNode(found, event)
        tag = event.tag
        if tag is not None:
            event.tag, event.implicit = None, (True, False) if isinstance(event, yaml.ScalarEvent) else True
        inside = isinstance(event, yaml.CollectionStartEvent)
        self.depth += inside
        if self.depth > MAX_DEPTH:
            raise _refused("too_deep", f"More than {MAX_DEPTH} objects and lists stand inside one another at {at}.")
        node = super().compose_node(parent, index)
        self.depth -= inside
        if tag is not None:
            return _UnreadNode(
                Fault("", "tag", f"A tag ({shown(tag)}) stands at {at}. Leave it out; JSON has no tags."), event
            )
        return node


class _UnreadNode(yaml.ScalarNode):
    """Stands for a value that is not read, with what is wrong with it."""

    def __init__(self, fault: Fault, event: Any) -> None:
        super().__init__(_NULL, "", event.start_mark, event.end_mark)
        self.fault = fault


for _tag, _pattern, _first in (
    (_NULL, r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    (_BOOLEAN, r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    # Neither 0o17 nor 0x1F nor 007, which different programs read as different numbers: those stay texts.
    (_INTEGER, r"[-+]?(?:0|[1-9][0-9]*)", list("-+0123456789")),
    (_FLOAT, r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", list("-+.0123456789")),
    (_FLOAT, r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", list("-+.")),
):
    _Loader.add_implicit_resolver(_tag, re.compile(rf"(?:{_pattern})\Z"), _first)


def _value(node: yaml.Node, at: str, faults: Faults) -> Any:
    if isinstance(node, _UnreadNode):
        faults.add(at, node.fault.code, node.fault.sentence)
        return None
    if isinstance(node, yaml.SequenceNode):
        return [_value(each, pointer(at, index), faults) for index, each in enumerate(node.value)]
    if isinstance(node, yaml.MappingNode):
        return _members(node, at, faults)
    if node.tag == _NULL:
        return None
    if node.tag == _BOOLEAN:
        return node.value.lower() == "true"
    if node.tag == _INTEGER:
        if len(node.value.lstrip("+-")) > MAX_INTEGER_DIGITS:
            sentence = f"An integer has at most {MAX_INTEGER_DIGITS} digits; found {shown(node.value)} at {_at(node)}."
            faults.add(at, "integer_too_long", sentence)
            return None
        return int(node.value)
    if node.tag == _FLOAT:
        number = float(re.sub(r"\.(inf|nan)", r"\1", node.value.lower()))
        if not math.isfinite(number):
            faults.add(at, "not_a_number", f"JSON has no {number}; write a number at {_at(node)}.")
            return None
        return number
    return _joined(node.value)


def _members(node: yaml.MappingNode, at: str, faults: Faults) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for key_node, value_node in node.value:
        if not isinstance(key_node, yaml.ScalarNode) or key_node.tag != _TEXT:
            found = key_node.value if isinstance(key_node, yaml.ScalarNode) else "a list or an object"
            sentence = f"A key is a text; found {shown(found)} at {_at(key_node)}. Put it in quotes."
            faults.add(at, "key_not_text", sentence)
            continue
        key = _joined(key_node.value)
        here = pointer(at, key)
        if key in members:
            sentence = f"The key {shown(key)} stands twice in one object, again at {_at(key_node)}. Keep one."
            faults.add(here, "duplicate_key", sentence)
        members[key] = _value(value_node, here, faults)
    return members


def _joined(text: str) -> str:
    r"""A text whose "\ud83d\ude00" is one character, as in JSON. Half of such a pair stays, and is found later."""
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        return text


def _at(node: yaml.Node) -> str:
    return f"line {node.start_mark.line + 1}, column {node.start_mark.column + 1}"


@contextmanager
def _faults_of_yaml(text: str) -> Iterator[None]:
    """Turn what PyYAML raises into one fault that says where."""
    try:
        yield
    except yaml.reader.ReaderError as error:
        code_point = f"U+{ord(text[error.position]):04X}"
        where = place(text, error.position)
        raise _refused("not_yaml", f"The character {code_point} at {where} may not stand in YAML.") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = " ".join(part for part in (error.context, error.problem) if part)
        advice = " Indent with spaces." if "\\t" in (error.problem or "") else ""
        raise _refused("not_yaml", f"This is not YAML{where}: {problem}.{advice}") from error
    except InvalidSchedule:
        raise
    except (ValueError, OverflowError) as error:
        # PyYAML converts "\UFFFFFFFF" and the numbers of a %YAML line without looking at their size.
        raise _refused("not_yaml", f"This is not YAML: {error}.") from error


def _refused(code: str, sentence: str) -> InvalidSchedule:
    return InvalidSchedule([Fault("", code, sentence)])


def _read(path: str | Path, most: int) -> bytes:
    name = str(path)
    try:
        if name == STANDARD_INPUT:
            data = sys.stdin.buffer.read(most + 1)
        else:
            with Path(name).open("rb") as file:
                data = file.read(most + 1)
    except FileNotFoundError as error:
        raise Misconfigured(f"There is no file {name!r}, seen from {str(Path.cwd())!r}. Check the name.") from error
    except IsADirectoryError as error:
        raise Misconfigured(f"{name!r} is a folder. Name one file in it, or - for standard input.") from error
    except PermissionError as error:
        raise Misconfigured(f"{name!r} may not be read by this user. Change its permissions, or copy it.") from error
    except (OSError, ValueError) as error:  # a name that is too long or holds NUL, a disk that fails
        reason = getattr(error, "strerror", None) or str(error)
        raise Misconfigured(
            f"{name[:200]!r} cannot be read: {reason}. Name another file, or - for standard input."
        ) from error
    if len(data) > most:
        raise Misconfigured(
            f"{name!r} has more than {most:,} bytes, which no such document needs. Is it the right file?"
        )
    return data
