"""Collecting what is wrong with a document: all of it at once, and bounded however bad the input is."""

from difflib import get_close_matches
from typing import Final

from horarium.errors import Fault, InvalidSchedule

MAX_FAULTS: Final = 200  # beyond this nobody reads on, and an answer must stay small
_MAX_SHOWN = 60  # characters of a value or name that a sentence repeats


class Faults:
    """The faults found so far, in the order of the document."""

    def __init__(self) -> None:
        self._found: list[Fault] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, pointer: str, code: str, sentence: str) -> None:
        """Note one fault. After `MAX_FAULTS` they are only counted."""
        self._count += 1
        if self._count <= MAX_FAULTS:
            self._found.append(Fault(pointer, code, sentence))

    def extend(self, refused: InvalidSchedule) -> None:
        """Take over the faults of a part that was parsed by itself."""
        for fault in refused.faults:
            self.add(fault.pointer, fault.code, fault.sentence)

    @property
    def found(self) -> list[Fault]:
        """What was noted. The last of very many faults says how many more there are."""
        if self._count <= MAX_FAULTS:
            return list(self._found)
        more = self._count - MAX_FAULTS + 1
        sentence = f"{more} more faults are not shown. Correct these first."
        return [*self._found[:-1], Fault("", "more_faults", sentence)]

    def raise_if_any(self) -> None:
        """Refuse the document if anything was found."""
        if self._count:
            raise InvalidSchedule(self.found)

    def check_members(self, document: dict[object, object], at: str, known: tuple[str, ...]) -> None:
        """Refuse every member that is not known, with the name that was probably meant."""
        for key in document:
            if isinstance(key, str) and key in known:
                continue
            near = get_close_matches(key, known, n=1) if isinstance(key, str) and len(key) <= _MAX_SHOWN else []
            names = f"Known are {', '.join(known)}." if known else "None is known."
            advice = f"Did you mean {near[0]!r}?" if near else names
            self.add(pointer(at, key), "unknown_field", f"{shown(key)} is not a field here. {advice}")


def pointer(at: str, key: object) -> str:
    """Extend a JSON pointer by one member name or index. Names are cut at a bounded length."""
    name = key if isinstance(key, str) else shown(key)
    if len(name) > _MAX_SHOWN:
        name = name[: _MAX_SHOWN - 1] + "…"
    name = name.encode("utf-8", "backslashreplace").decode("utf-8")  # a lone surrogate cannot be printed
    return f"{at}/{name.replace('~', '~0').replace('/', '~1')}"


def shown(value: object) -> str:
    """Write a value for a sentence: never long, never failing, and never more than one level deep."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        # Python refuses to print an int of more than 4,300 digits.
        return str(int(value)) if value.bit_length() <= 64 else "an integer of more than 19 digits"
    if isinstance(value, float):
        return float.__repr__(value)
    if isinstance(value, str):
        text = ascii(value[:_MAX_SHOWN])
        return text if len(value) <= _MAX_SHOWN else f"{text}… ({len(value)} characters)"
    if isinstance(value, list | tuple):
        return f"an array of {len(value)}"
    if isinstance(value, dict):
        return "an object"
    return f"a value of type {type(value).__name__[:_MAX_SHOWN]}"
