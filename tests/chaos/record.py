"""Everything that a catalog holds after the storm, read at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping, select

from horarium.catalog import ledger
from horarium.catalog.schedules import Activation, Schedule, list_activations, list_schedules, require_version
from horarium.catalog.tables import accounts, audit_events, receipts, reservations
from horarium.catalog.versions import Version
from horarium.schedule.identity import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One schedule: its versions by revision, its activations, and its ledger."""

    schedule: Schedule
    versions: Mapping[int, Version]
    activations: Sequence[Activation]
    rows: Sequence[tuple[ledger.Entry, ledger.Run | None]]

    @property
    def schedule_id(self) -> str:
        return self.schedule.key.schedule_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The catalog. `events` are the schedules' audit events, `receipts` are by person and key."""

    stories: Mapping[str, Story]
    events: Sequence[RowMapping]
    receipts: Mapping[tuple[str, str], dict[str, Any]]
    reservations: Mapping[str, RowMapping]
    accounts: Mapping[tuple[str, str], RowMapping]

    @property
    def runs(self) -> Mapping[str, tuple[Story, ledger.Entry, ledger.Run]]:
        """Every run by its id."""
        return {
            run.run_id: (story, entry, run)
            for story in self.stories.values()
            for entry, run in story.rows
            if run is not None
        }


def read_record(connection: Connection, scope: Scope) -> Record:
    """Read it all, in one transaction."""
    found = list_schedules(connection, scope, after=None, limit=1_000, include_retired=True)
    return Record(
        stories={each.key.schedule_id: _story(connection, each) for each in found},
        events=connection.execute(select(audit_events).order_by(audit_events.c.id)).mappings().all(),
        receipts={(row["principal"], row["key"]): row["document"] for row in _all(connection, receipts)},
        reservations={row["run_id"]: row for row in _all(connection, reservations)},
        accounts={(row["kind"], row["name"]): row for row in _all(connection, accounts)},
    )


def _story(connection: Connection, schedule: Schedule) -> Story:
    return Story(
        schedule=schedule,
        versions={
            revision: require_version(connection, schedule, revision)
            for revision in range(1, schedule.head_revision + 1)
        },
        activations=list_activations(connection, schedule),
        rows=ledger.list_entries(connection, schedule),
    )


def _all(connection: Connection, table: Any) -> Sequence[RowMapping]:
    return connection.execute(select(table)).mappings().all()
