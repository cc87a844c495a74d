"""The configuration of a schedule version, as a person writes it (the canonical contract), and as a value.

A configuration has exactly four parts: what the schedule is called, when it is due, what happens when it cannot simply
start, and which request an occurrence makes. Nothing is inferred from what is missing, since it runs unattended.
"""

import copy
import difflib
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final, TypeVar

from horarium.calendar import Calendar, parse_calendar
from horarium.calendar.faults import Faults, pointer, shown
from horarium.errors import Fault, InvalidSchedule
from horarium.schedule.canonical import canonical_json
from horarium.schedule.document import MAX_DOCUMENT_BYTES
from horarium.schedule.policy import (
    MAX_CATCHUP_WINDOW,
    MAX_CONCURRENT_RUNS,
    MIN_CATCHUP_WINDOW,
    Overlap,
    Policy,
)
from horarium.schedule.timing import TIMING, evaluated, stored_timing

CONTRACT: Final = "schedules"
"""How a schedule's row and a preview name the canonical contract (seed 000). Its documents name no contract."""
MAX_NAME_LENGTH = 200
"""Characters in the name of a schedule."""
MAX_REFERENCE_LENGTH = 200
"""Characters in a reference to an agent version, an input, an output target, a grant or a budget."""
MAX_GRANTS = 64
"""Grants that one run request may carry; each is checked at every occurrence."""

_REFERENCE = re.compile(r"[A-Za-z0-9._@:/-]+")
# Joiners make one emoji of several, and separate letters in Persian; every other invisible format character, such as
# those that reverse the direction of what follows, makes a list lie to its reader.
_JOINERS = frozenset("\u200c\u200d")
_Kind = TypeVar("_Kind", bound=StrEnum)
_UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


class UsageClass(StrEnum):
    """What kind of authority and funding a run needs (DESIGN.md, section 8)."""

    TEST_SIMULATION = "test_simulation"
    """Nothing is paid; the only class that needs no budget."""
    TEST_COMPUTE = "test_compute"
    """Paid computing in a test environment, by credits or wallet."""
    LIVE = "live"
    """Production, by credits or wallet, with an approval where the environment asks for one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What every occurrence asks for: who runs, on what, to where, by which rights and at whose cost.

    All are references whose meaning belongs to the authority, which is asked again at every occurrence. `agent_version`
    names one exact version. `budget_id` is None only for `UsageClass.TEST_SIMULATION`.
    """

    agent_version: str
    input: str
    output_target: str
    grants: tuple[str, ...]
    budget_id: str | None
    usage_class: UsageClass


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """One immutable configuration.

    `timing` is the timing as it is stored, under the name of its kind (`{"calendar": {…}}`), and `calendar` is the same
    ready to evaluate. The digest of a version is not taken over this value but over the document as it was submitted:
    `horarium.schedule.canonical.digest`.
    """

    name: str
    timing: Mapping[str, Any]
    calendar: Calendar
    policy: Policy
    run: RunRequest


def parse_configuration(document: object) -> Configuration:
    """Check a configuration of the canonical contract and return it as a value.

    Raises `InvalidSchedule` with all faults at once, those of the calendar included, each with a JSON pointer into the
    document. Unknown fields are refused wherever they stand. Booleans are no integers here, and null is no empty list.
    """
    faults = Faults()
    configuration = _configuration(document, faults)
    faults.raise_if_any()
    assert configuration is not None, "without a fault there is a value"
    size = len(canonical_json(document))
    if size > MAX_DOCUMENT_BYTES:
        sentence = f"The configuration has {size:,} bytes of JSON; at most {MAX_DOCUMENT_BYTES:,} are stored."
        faults.add("", "too_large", sentence)
        faults.raise_if_any()
    return configuration


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredConfiguration:
    """A configuration that was accepted once, perhaps by another release with other zone data.

    It is not judged again: what was stored says what runs. The calendar alone may be beyond use, since its zone may be gone.
    `timing` is as in `Configuration`, and may be a cron or an instant too; whichever it is, `calendar` answers for it.
    """

    name: str
    timing: Mapping[str, Any]
    policy: Policy
    run: RunRequest
    evaluated: Calendar | InvalidSchedule

    @property
    def calendar(self) -> Calendar:
        """The calendar; `InvalidSchedule` where this release cannot evaluate it."""
        if isinstance(self.evaluated, InvalidSchedule):
            raise InvalidSchedule(self.evaluated.faults)
        return self.evaluated


def read_stored(document: Any) -> StoredConfiguration:
    """Read a configuration that a contract has accepted before it was stored: the canonical one, or another (`TIMING`).

    Raises `InvalidSchedule` where parts of it are not there or are something else: it was damaged.
    """
    try:
        timing = stored_timing(document)
        policy, run = document["policy"], document["run"]
        return StoredConfiguration(
            name=str(document["name"]),
            timing=timing,
            policy=Policy(
                overlap=Overlap(policy["overlap"]),
                catchup_window=timedelta(seconds=policy["catchup_window_seconds"]),
                pause_on_failure=bool(policy["pause_on_failure"]),
                max_concurrent_runs=policy.get("max_concurrent_runs", 1),
                defer_once=bool(policy.get("defer_once", False)),
            ),
            run=RunRequest(
                agent_version=str(run["agent_version"]),
                input=str(run["input"]),
                output_target=str(run["output_target"]),
                grants=tuple(run["grants"]),
                budget_id=run["budget_id"],
                usage_class=UsageClass(run["usage_class"]),
            ),
            evaluated=evaluated(timing, at=f"/{TIMING}" if TIMING in document else ""),
        )
    except (LookupError, TypeError, ValueError, AttributeError, AssertionError, OverflowError) as error:
        sentence = f"The stored configuration cannot be read ({type(error).__name__}: {shown(str(error))})."
        raise InvalidSchedule([Fault("", "unreadable", sentence)]) from error


def _configuration(document: object, faults: Faults) -> Configuration | None:
    fields = _object(document, "", ("name", "calendar", "policy", "run"), (), faults)
    if fields is None:
        return None
    name = _name(fields["name"], "/name", faults) if "name" in fields else None
    calendar = _calendar(fields["calendar"], faults) if "calendar" in fields else None
    policy = _policy(fields["policy"], "/policy", faults) if "policy" in fields else None
    run = _run(fields["run"], "/run", faults) if "run" in fields else None
    if name is None or calendar is None or policy is None or run is None:
        return None
    # A copy, so that the caller's later changes to its document do not reach the version.
    timing = {"calendar": copy.deepcopy(fields["calendar"])}
    return Configuration(name=name, timing=timing, calendar=calendar, policy=policy, run=run)


def _calendar(value: object, faults: Faults) -> Calendar | None:
    try:
        return parse_calendar(value, at="/calendar")
    except InvalidSchedule as error:
        faults.extend(error)
        return None


def _name(value: object, at: str, faults: Faults) -> str | None:
    if not isinstance(value, str):
        faults.add(at, "not_text", f"The name is a text; found {shown(value)}.")
        return None
    if not value.strip():
        faults.add(at, "blank", "The name is blank; write what people shall call this schedule.")
        return None
    if len(value) > MAX_NAME_LENGTH:
        sentence = f"The name has at most {MAX_NAME_LENGTH} characters; this one has {len(value)}."
        faults.add(at, "too_long", sentence)
        return None
    for position, character in enumerate(value, start=1):
        if unicodedata.category(character) in _UNPRINTABLE and character not in _JOINERS:
            code_point = f"U+{ord(character):04X}"
            sentence = f"The name is one line of printable characters; character {position} is {code_point}. Remove it."
            faults.add(at, "not_printable", sentence)
            return None
    return value


def _policy(value: object, at: str, faults: Faults) -> Policy | None:
    required = ("overlap", "catchup_window_seconds", "pause_on_failure")
    fields = _object(value, at, required, ("max_concurrent_runs",), faults)
    if fields is None:
        return None
    overlap = window = pause = None
    runs: int | None = 1
    if "overlap" in fields:
        overlap = _choice(fields["overlap"], pointer(at, "overlap"), Overlap, faults)
    if "catchup_window_seconds" in fields:
        bounds = (int(MIN_CATCHUP_WINDOW.total_seconds()), int(MAX_CATCHUP_WINDOW.total_seconds()))
        place = pointer(at, "catchup_window_seconds")
        window = _integer(fields["catchup_window_seconds"], place, bounds, faults)
    if "pause_on_failure" in fields:
        pause = fields["pause_on_failure"]
        if not isinstance(pause, bool):
            sentence = f"pause_on_failure is true or false, without quotes; found {shown(pause)}."
            faults.add(pointer(at, "pause_on_failure"), "not_a_boolean", sentence)
            pause = None
    if "max_concurrent_runs" in fields:
        place = pointer(at, "max_concurrent_runs")
        runs = _integer(fields["max_concurrent_runs"], place, (1, MAX_CONCURRENT_RUNS), faults)
        if overlap is Overlap.ALLOW:
            sentence = 'Overlap "allow" starts every run, so it has no max_concurrent_runs. Leave one of the two out.'
            faults.add(place, "contradiction", sentence)
            runs = None
    if overlap is None or window is None or pause is None or runs is None:
        return None
    return Policy(
        overlap=overlap,
        catchup_window=timedelta(seconds=window),
        pause_on_failure=pause,
        max_concurrent_runs=runs,
    )


def _run(value: object, at: str, faults: Faults) -> RunRequest | None:
    required = ("agent_version", "input", "output_target", "grants", "budget_id", "usage_class")
    fields = _object(value, at, required, (), faults)
    if fields is None:
        return None
    agent_version, input_, output_target = (
        _reference(fields[name], pointer(at, name), faults) if name in fields else None
        for name in ("agent_version", "input", "output_target")
    )
    grants = _grants(fields["grants"], pointer(at, "grants"), faults) if "grants" in fields else None
    usage_class = budget_id = None
    if "usage_class" in fields:
        usage_class = _choice(fields["usage_class"], pointer(at, "usage_class"), UsageClass, faults)
    if fields.get("budget_id") is not None:
        budget_id = _reference(fields["budget_id"], pointer(at, "budget_id"), faults)
    elif "budget_id" in fields and usage_class not in {None, UsageClass.TEST_SIMULATION}:
        sentence = f'Usage class "{usage_class}" is paid, so name a budget; null is for "test_simulation" only.'
        faults.add(pointer(at, "budget_id"), "budget_required", sentence)
    if agent_version is None or input_ is None or output_target is None or grants is None or usage_class is None:
        return None
    return RunRequest(
        agent_version=agent_version,
        input=input_,
        output_target=output_target,
        grants=grants,
        budget_id=budget_id,
        usage_class=usage_class,
    )


def _grants(value: object, at: str, faults: Faults) -> tuple[str, ...] | None:
    if not isinstance(value, list | tuple):
        code = "null_array" if value is None else "not_an_array"
        faults.add(at, code, f"grants is an array of references; found {shown(value)}. Write [] for none.")
        return None
    if len(value) > MAX_GRANTS:
        faults.add(at, "too_many_grants", f"A run carries at most {MAX_GRANTS} grants; found {len(value)}.")
        return None
    first_at: dict[str, int] = {}
    for index, each in enumerate(value):
        place = pointer(at, index)
        reference = _reference(each, place, faults)
        if reference is None:
            continue
        if reference in first_at:
            sentence = f"The grant {shown(reference)} stands at {pointer(at, first_at[reference])} already. Keep one."
            faults.add(place, "duplicate_grant", sentence)
        first_at.setdefault(reference, index)
    return tuple(first_at)


def _reference(value: object, at: str, faults: Faults) -> str | None:
    if not isinstance(value, str):
        sentence = f"A reference is a text; found {shown(value)}."
    elif not value:
        sentence = "A reference is not empty."
    elif len(value) > MAX_REFERENCE_LENGTH:
        sentence = f"A reference has at most {MAX_REFERENCE_LENGTH} characters; this one has {len(value)}."
    elif _REFERENCE.fullmatch(value) is None:
        sentence = f"A reference consists of the letters A to Z, digits and . _ - @ : / only; found {shown(value)}."
    elif value.startswith("/") or ".." in value:
        sentence = f'A reference does not start with "/" and has no ".."; found {shown(value)}.'
    else:
        return value
    faults.add(at, "not_a_reference", sentence)
    return None


def _integer(value: object, at: str, bounds: tuple[int, int], faults: Faults) -> int | None:
    least, most = bounds
    expected = f"an integer from {least:,} to {most:,}"
    if not isinstance(value, int) or isinstance(value, bool):
        faults.add(at, "not_an_integer", f"This is {expected}, without quotes or a point; found {shown(value)}.")
        return None
    if not least <= value <= most:
        faults.add(at, "out_of_range", f"This is {expected}; found {shown(value)}.")
        return None
    return value


def _choice(value: object, at: str, kind: type[_Kind], faults: Faults) -> _Kind | None:
    if isinstance(value, str) and value in list(kind):
        return kind(value)
    choices = ", ".join(f'"{each}"' for each in kind)
    faults.add(at, "unknown_value", f"This is one of {choices}; found {shown(value)}.{_meant(value, list(kind))}")
    return None


def _object(
    value: object, at: str, required: tuple[str, ...], optional: tuple[str, ...], faults: Faults
) -> dict[str, Any] | None:
    """The members of an object that has these and no others. What is missing is a fault where it would stand."""
    names = (*required, *optional)
    if not isinstance(value, dict):
        sentence = f"This is an object with the fields {', '.join(names)}; found {shown(value)}."
        faults.add(at, "not_an_object", sentence)
        return None
    for name in required:
        if name not in value:
            faults.add(pointer(at, name), "missing_field", f"The field {name} is required.")
    faults.check_members(value, at, names)
    return value


def _meant(found: object, names: list[str]) -> str:
    if not isinstance(found, str):
        return ""
    close = difflib.get_close_matches(found[:MAX_NAME_LENGTH].lower().replace("-", "_").replace(" ", "_"), names, n=1)
    return f' Did you mean "{close[0]}"?' if close else ""
