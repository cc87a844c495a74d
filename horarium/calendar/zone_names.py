"""The name of a zone in a document."""

from difflib import get_close_matches

from horarium.calendar.faults import Faults, pointer, shown
from horarium.calendar.zones import tzdata_version, zone_names

_MAX_NAME = 64  # the longest name of the zone data has 32 characters


def check_timezone(name: object, at: str, faults: Faults, *, present: bool = True) -> str:
    """Take the exact name of a zone, or note the fault at `timezone` with the name that was probably meant."""
    here = pointer(at, "timezone")
    if not present:
        faults.add(here, "missing_field", "'timezone' is required: an exact IANA name such as 'Europe/Zurich'.")
    elif not isinstance(name, str):
        faults.add(here, "not_a_timezone", f"Expected an exact IANA name such as 'Europe/Zurich', not {shown(name)}.")
    elif name in zone_names():
        return name
    else:
        sentence = f"{shown(name)} is not an exact name of the zone data {tzdata_version()}."
        faults.add(here, "unknown_timezone", f"{sentence} {_advice(name)}")
    return "UTC"


def _advice(name: str) -> str:
    if len(name) <= _MAX_NAME:
        folded = name.strip().replace(" ", "_").casefold()
        same = sorted(known for known in zone_names() if known.casefold() == folded)
        near = same or get_close_matches(name, sorted(zone_names()), n=1, cutoff=0.75)
        if near:
            return f"Did you mean {near[0]!r}?"
    return "Names look like 'Europe/Zurich' or 'UTC'."
