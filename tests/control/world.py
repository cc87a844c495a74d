"""Time passes at a desk: steps, admissions and ends of runs happen in their order, as far as their workers are up."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from horarium.control.activation import Changed
from horarium.control.stepping import Status
from horarium.schedule.identity import ActivationKey, RunKey
from horarium.schedule.ledger import Disposition
from tests.control.desk import Desk, Loop

MAX_STEPS_AT_ONCE = 10
"""More steps at one instant of the simulated clock are a schedule that does not sleep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What the agent does with one run."""

    takes: timedelta
    ends_as: Disposition = Disposition.SUCCEEDED


@dataclass(slots=True)
class World:
    """The processes around one schedule. `skew` is how far the run worker's clock is ahead."""

    desk: Desk
    work: Callable[[RunKey], Work]
    skew: timedelta = timedelta(0)
    schedules_up: bool = True
    runs_up: bool = True
    nudges_arrive: bool = True
    dies_before_starting: bool = False
    loops: dict[int, Loop] = field(default_factory=dict)
    running: dict[RunKey, tuple[datetime, Disposition]] = field(default_factory=dict)
    decided: dict[RunKey, str] = field(default_factory=dict)
    actual_starts: dict[RunKey, datetime] = field(default_factory=dict)
    last_step: tuple[int, datetime] | None = None
    steps_at_once: int = 0
    after_each: Callable[[], None] = lambda: None

    def establish(self, changed: Changed) -> None:
        """The controller starts the workflow of a new activation."""
        if changed.activation.is_live:
            self.loops[changed.key.generation] = Loop(self.desk, changed.key, wake=self.desk.now)

    def current(self) -> Loop | None:
        live = [loop for loop in self.loops.values() if not loop.ended]
        return live[-1] if live else None

    def pass_until(self, until: datetime) -> None:
        """Let everything happen that is due until then."""
        desk = self.desk
        while True:
            due = self._next()
            if due is None or due[0] > until:
                break
            when, happen = due
            desk.now = max(desk.now, when)
            happen()
            self.after_each()
        desk.now = max(desk.now, until)

    def nudge(self, key: ActivationKey | None) -> None:
        if key is not None and self.nudges_arrive:
            self.loops[key.generation].wake = self.desk.now

    def step(self, loop: Loop) -> None:
        this = (loop.key.generation, self.desk.now)
        self.steps_at_once = self.steps_at_once + 1 if self.last_step == this else 1
        self.last_step = this
        assert self.steps_at_once <= MAX_STEPS_AT_ONCE, f"a schedule that does not sleep at {self.desk.now}"
        status = loop.step(start=not self.dies_before_starting)
        if status is Status.STALE or (self.dies_before_starting and not loop.ended):
            # The step is not in the history yet, so it is made again.
            loop.wake = self.desk.now
        self.dies_before_starting = False

    def admit(self, run: RunKey) -> None:
        desk = self.desk
        stamp = desk.now + self.skew
        admission = desk.admit(run, owner="first", now=stamp)
        self.decided[run] = admission.outcome
        self.nudge(admission.nudge)
        if admission.outcome == "admitted":
            desk.begin(run)
            work = self.work(run)
            self.actual_starts[run] = desk.now
            self.running[run] = (desk.now + work.takes, work.ends_as)

    def settle(self, run: RunKey) -> None:
        _, disposition = self.running.pop(run)
        self.nudge(self.desk.settle(run, disposition))

    def _next(self) -> tuple[datetime, Callable[[], None]] | None:
        """The next event and its time. At one time runs end first, then schedules step, then runs are admitted."""
        events: list[tuple[datetime, int, int, Callable[[], None]]] = []
        now = self.desk.now
        if self.schedules_up:
            for run, (end, _) in self.running.items():
                events.append((max(end, now), 0, len(events), lambda run=run: self.settle(run)))
            for loop in self.loops.values():
                if not loop.ended and loop.wake is not None:
                    events.append((max(loop.wake, now), 1, len(events), lambda loop=loop: self.step(loop)))
        if self.runs_up:
            for run in self.desk.started - self.decided.keys():
                when = max(run.nominal_time - self.skew, now)
                events.append((when, 2, len(events), lambda run=run: self.admit(run)))
        if not events:
            return None
        when, _, _, happen = min(events, key=lambda each: each[:3])
        return when, happen
