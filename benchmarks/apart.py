"""The parts of a suite, each measured even where another one fails."""

import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping

from benchmarks.figures import Figure
from benchmarks.progress import tell


def each_apart(parts: Mapping[str, Callable[[], Iterable[Figure]]]) -> Iterator[Figure]:
    """The figures of all parts, by what they are called. What fails is told at once.

    Raises an `ExceptionGroup` of what failed when all have had their turn.
    """
    failed: list[Exception] = []
    for name, measure in parts.items():
        tell(f"{name} …")
        try:
            yield from measure()
        except Exception as error:  # noqa: BLE001 # whatever it is, the other parts have figures of their own
            tell(f"{traceback.format_exc()}{name}: failed, as told above")
            failed.append(error)
    if failed:
        raise ExceptionGroup(f"{len(failed)} of {len(parts)} parts have failed", failed)
