"""Where schedules stand: their newest versions and what is enabled, in as many queries for fifty schedules as for one."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, select

from horarium.catalog.schedules import Activation, Schedule, activation_of_row
from horarium.catalog.tables import activations, schedules, versions
from horarium.catalog.versions import Version, version_of_row
from horarium.schedule.ledger import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A schedule with its head, and its activation with the version that this is of; both None where there is none."""

    schedule: Schedule
    head: Version
    activation: Activation | None
    activated: Version | None

    @property
    def state(self) -> tuple[str, str | None]:
        """Whether it fires, and why not: `enabled`, `review` with its reason, or `paused`.

        What a retired schedule is called is for its contract to say.
        """
        current = self.activation
        if current is not None and current.is_live:
            return "enabled", None
        if current is not None and current.ended_as == Reason.REVIEW:
            return "review", current.ended_reason
        return "paused", None


def standings(connection: Connection, of: Sequence[Schedule]) -> list[Standing]:
    """Where each of these schedules stands, in their order."""
    rows = [schedule.row for schedule in of]
    head = (versions.c.schedule == schedules.c.id) & (versions.c.revision == schedules.c.head_revision)
    current = (activations.c.schedule == schedules.c.id) & (activations.c.generation == schedules.c.generation)
    activated = (versions.c.schedule == activations.c.schedule) & (versions.c.revision == activations.c.revision)
    # By joins, since the texts are large: to ask for all these revisions of all these schedules would read others too.
    heads = select(versions).select_from(schedules.join(versions, head))
    generations = select(activations).select_from(schedules.join(activations, current))
    enabled = select(versions).select_from(schedules.join(activations, current).join(versions, activated))
    asked = schedules.c.id.in_(rows)
    head_of = {row["schedule"]: version_of_row(row) for row in connection.execute(heads.where(asked)).mappings()}
    generation_of = {
        row["schedule"]: activation_of_row(row) for row in connection.execute(generations.where(asked)).mappings()
    }
    activated_of = {row["schedule"]: version_of_row(row) for row in connection.execute(enabled.where(asked)).mappings()}
    return [
        Standing(
            schedule=schedule,
            head=head_of[schedule.row],
            activation=generation_of.get(schedule.row),
            activated=activated_of.get(schedule.row),
        )
        for schedule in of
    ]
