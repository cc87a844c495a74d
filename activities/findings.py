"""What a process found that should not be, counted here until it is written down with the process's next sign of life."""

from collections import Counter
from datetime import datetime

from horarium.catalog import Catalog, findings
from horarium.schedule.findings import Finding
from horarium.schedule.identity import Scope


class Findings:
    """The counts of one process. They cost no transaction of their own where things go wrong; a killed process loses a few."""

    def __init__(self) -> None:
        self._counts: Counter[Finding] = Counter()

    def note(self, kind: Finding) -> None:
        """Count one."""
        self._counts[kind] += 1

    async def store(self, catalog: Catalog, scope: Scope, *, now: datetime) -> None:
        """Add what was counted to the catalog's counts. What cannot be written is kept for the next time, and raised."""
        counted, self._counts = self._counts, Counter()
        if not counted:
            return
        try:
            await catalog.write(findings.add, scope, counted, now=now)
        except BaseException:
            self._counts.update(counted)
            raise
