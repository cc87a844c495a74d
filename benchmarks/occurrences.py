"""The life of an occurrence in the catalog alone: what the schedule, its admission and its agent do there, without Temporal."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from benchmarks.stored_schedules import Contents
from horarium.catalog import Catalog
from horarium.catalog.schedules import find_live, require_version
from horarium.control import admission, dispatching, running, stepping
from horarium.control.running import Outcome
from horarium.schedule.ceilings import USUAL, Ceilings
from horarium.schedule.identity import ActivationKey, RunKey
from horarium.schedule.ledger import Disposition
from horarium.schedule.plan import plan

LEAD = timedelta(seconds=4)
"""How early a run is staged, as workers do it at the least."""
TAKES = timedelta(seconds=1)
"""What a run takes. Its end is dated so, and nobody waits for it."""
_OWNER = "bench"


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """The occurrences of one activation, one after the other, each at its own time and as fast as the catalog goes.

    Each method is the transactions of one part, in its order: `step` of the schedule's workflow, `admit` of the admission,
    `finish` of the agent and of the settlement.
    """

    catalog: Catalog
    key: ActivationKey
    ceilings: Ceilings = USUAL

    def next_due(self) -> datetime:
        """The first instant that is not accounted for."""
        with self.catalog.reading() as connection:
            found = find_live(connection, self.key)
            assert found is not None, "it is enabled"
            schedule, activation = found
            calendar = require_version(connection, schedule, activation.revision).configuration.calendar
        due = calendar.after(activation.accounted_through)
        assert due is not None, "its calendar has no end"
        return due

    def step(self, due: datetime) -> RunKey:
        """Gather, plan and commit a little before an instant is due: its run is staged."""
        now = due - LEAD
        with self.catalog.reading() as connection:
            gathered = stepping.gather(connection, self.key, now=now, lead=LEAD)
        assert gathered.facts is not None, gathered
        decided = plan(gathered.facts)
        with self.catalog.writing() as connection:
            committed = stepping.commit(connection, self.key, decided, now=now, attended_until=None)
        (run,) = committed.staged
        return run

    def admit(self, run: RunKey) -> None:
        """Decide a run at its second."""
        with self.catalog.reading() as connection:
            assert admission.pending(connection, run) is not None, "it was staged"
        with self.catalog.writing() as connection:
            decided = dispatching.decide(
                connection, run, Contents(), owner=_OWNER, now=run.nominal_time, ceilings=self.ceilings
            )
        assert decided.admission.outcome == admission.ADMITTED, decided

    def finish(self, run: RunKey) -> None:
        """Let its agent begin it, and settle it as a success."""
        with self.catalog.writing() as connection:
            running.begin(connection, run.run_id, again=False, now=run.nominal_time)
        done = Outcome(disposition=Disposition.SUCCEEDED, reason=None, summary="done")
        with self.catalog.writing() as connection:
            running.settle(connection, run, done, now=run.nominal_time + TAKES)

    def live(self) -> None:
        """One whole occurrence."""
        run = self.step(self.next_due())
        self.admit(run)
        self.finish(run)
