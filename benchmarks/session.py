"""One go through several suites: what one of them loses is told, and the others run all the same."""

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic

from benchmarks.figures import Figure, plain_names
from benchmarks.progress import tell
from benchmarks.records import Line, Records


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """What is measured together."""

    measure: Callable[[], Iterator[Figure]]
    """Yields figures as it measures them."""
    names: Callable[[], Sequence[str]]
    """The names of all figures that it yields at the chosen size: by them a table is known to be of this code."""
    minutes: int
    """About how long it takes at full size on two cores."""


@dataclass(slots=True, kw_only=True)
class Session:
    """Runs suites, keeps their figures, and says on stderr how far it is."""

    suites: Mapping[str, Suite]
    records: Records
    each: Callable[[Line], None]
    """Is given every line as it comes."""
    lines: list[Line] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    """The suites that did not come to a good end."""

    def run(self, names: Sequence[str], *, full: bool) -> None:
        """Run these suites in their order."""
        for place, name in enumerate(names):
            left = sum(self.suites[each].minutes for each in names[place:])
            about = f", about {self.suites[name].minutes} min, and {left} min until all have run" if full else ""
            tell(f"{name}: suite {place + 1} of {len(names)}{about} …")
            begun = monotonic()
            self._run(name)
            tell(f"{name}: took {(monotonic() - begun) / 60:.1f} min")

    def _run(self, name: str) -> None:
        suite, yielded = self.suites[name], list[str]()
        self.records.begin(name)
        try:
            for figure in suite.measure():
                line = self.records.add(name, figure)
                yielded.append(figure.name)
                self.lines.append(line)
                self.each(line)
            _compare(yielded, suite)
        except Exception:  # noqa: BLE001 # whatever it is, the other suites have figures of their own
            self.failed.append(name)
            tell(f"{traceback.format_exc()}{name}: failed, as told above; what it had measured until then is kept")


def _compare(yielded: Sequence[str], suite: Suite) -> None:
    """Hold a suite to the names that it tells: by them the README's table is held to be of this code."""
    found, told = plain_names(yielded), plain_names(suite.names())
    assert found == told, f"all is measured, but `names` tells {told}, and there are {found}"
