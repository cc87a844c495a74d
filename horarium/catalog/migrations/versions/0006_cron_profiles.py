"""Cron profiles, their threads, the event that starts a run by hand, what an activation declares, and pages by contract"""

import json
from contextlib import suppress
from typing import Any

import sqlalchemy as sa
from alembic import op

from horarium.catalog.types import Instant

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    # Without a count for what was enabled before: nobody counted it then.
    op.add_column("activations", sa.Column("runs_per_month", sa.Integer(), nullable=True))
    op.create_index(
        "ix_activations_in_order",
        "activations",
        ["changed_at", "id", "runs_per_month", "ended_at"],
        sqlite_where=sa.text("ended_at IS NULL"),
        postgresql_where=sa.text("ended_at IS NULL"),
    )
    op.create_index(
        "ix_activations_uncounted",
        "activations",
        ["runs_per_month", "changed_at", "id", "ended_at"],
        sqlite_where=sa.text("ended_at IS NULL AND runs_per_month IS NULL"),
        postgresql_where=sa.text("ended_at IS NULL AND runs_per_month IS NULL"),
    )
    op.create_table(
        "declared",
        sa.Column("id", _KEY, nullable=False),
        sa.Column("day", sa.Integer(), nullable=False),
        sa.Column("runs", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_declared")),
    )
    op.create_index("ix_declared_day", "declared", ["day", "runs"])
    # Empty for what is enabled: a calendar is evaluated by the release that runs, so the controller fills it.
    op.add_column("activations", sa.Column("look_by", Instant(), nullable=True))
    op.create_index(
        "ix_activations_look_by",
        "activations",
        ["look_by", "id"],
        sqlite_where=sa.text("ended_at IS NULL"),
        postgresql_where=sa.text("ended_at IS NULL"),
    )
    op.create_index(
        "ix_runtime_in_error",
        "runtime",
        ["schedule"],
        sqlite_where=sa.text("state = 'error'"),
        postgresql_where=sa.text("state = 'error'"),
    )
    op.create_index("ix_schedules_contract", "schedules", ["contract", "org_id", "environment_id", "schedule_id"])
    op.add_column("agents", sa.Column("registered_at", Instant(), nullable=True))
    op.execute("UPDATE agents SET registered_at = seen_at")
    op.add_column("agents", sa.Column("agent_class", sa.String(length=200), nullable=True))
    op.add_column("agents", sa.Column("description", sa.Text(), nullable=True))
    _tell_classes(op.get_bind())
    op.create_index("ix_agents_class", "agents", ["org_id", "environment_id", "agent_class"])
    op.add_column("runs", sa.Column("start_event", sa.String(length=200), nullable=True))
    op.add_column("runs", sa.Column("event_data", sa.JSON(), nullable=True))
    op.create_table(
        "profiles",
        sa.Column("id", _KEY, nullable=False),
        sa.Column("org_id", sa.String(length=200), nullable=False),
        sa.Column("environment_id", sa.String(length=200), nullable=False),
        sa.Column("agent_class", sa.String(length=200), nullable=False),
        sa.Column("agent_id", sa.String(length=200), nullable=False),
        sa.Column("tenant_id", sa.String(length=200), nullable=True),
        sa.Column("config", sa.Text(), nullable=False),
        sa.Column("schedule_id", sa.String(length=36), nullable=True),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("changed_at", Instant(), nullable=False),
        sa.Column("changed_by", sa.String(length=200), nullable=False),
        sa.Column("deleted_at", Instant(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_profiles")),
        sa.UniqueConstraint(
            "org_id",
            "environment_id",
            "agent_class",
            "agent_id",
            name=op.f("uq_profiles_org_id_environment_id_agent_class_agent_id"),
        ),
    )
    op.create_index("ix_profiles_schedule_id", "profiles", ["org_id", "environment_id", "schedule_id"])
    op.create_index(
        "ix_profiles_live",
        "profiles",
        ["org_id", "environment_id", "id"],
        sqlite_where=sa.text("deleted_at IS NULL"),
        postgresql_where=sa.text("deleted_at IS NULL"),
    )
    op.create_table(
        "threads",
        sa.Column("org_id", sa.String(length=200), nullable=False),
        sa.Column("environment_id", sa.String(length=200), nullable=False),
        sa.Column("thread_id", sa.String(length=64), nullable=False),
        sa.Column("agent_class", sa.String(length=200), nullable=False),
        sa.Column("agent_id", sa.String(length=200), nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("org_id", "environment_id", "thread_id", name=op.f("pk_threads")),
    )
    op.create_table(
        "thread_events",
        sa.Column("id", _KEY, nullable=False),
        sa.Column("org_id", sa.String(length=200), nullable=False),
        sa.Column("environment_id", sa.String(length=200), nullable=False),
        sa.Column("thread_id", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=40), nullable=False),
        sa.Column("at", Instant(), nullable=False),
        sa.Column("run_id", sa.String(length=36), nullable=True),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_thread_events")),
    )
    for last in ("id", "at"):
        op.create_index(f"ix_thread_events_{last}", "thread_events", ["org_id", "environment_id", "thread_id", last])


def _tell_classes(connection: sa.Connection) -> None:
    """What runners have reported of their agents' classes. A row that a hand has damaged is left without."""
    key = ("org_id", "environment_id", "agent_version")
    agents = sa.table("agents", *(sa.column(name) for name in (*key, "discovery", "agent_class", "description")))
    # As text: a damaged row must not keep the others from being read.
    told = sa.select(*(agents.c[name] for name in key), sa.cast(agents.c.discovery, sa.Text).label("told"))
    for row in connection.execute(told).mappings().all():
        with suppress(ValueError, RecursionError):
            here = sa.and_(*(agents.c[name] == row[name] for name in key))
            connection.execute(sa.update(agents).where(here).values(_class_in(json.loads(row["told"]))))


def _class_in(discovery: Any) -> dict[str, str | None]:
    """As it was stored from this release on: what a later one makes of it is no part of this revision."""
    told = discovery if isinstance(discovery, dict) else {}
    name, description = told.get("agent_class"), told.get("description")
    named = isinstance(name, str) and name.isidentifier() and len(name) <= 200
    return {
        "agent_class": name if named else None,
        "description": description.encode("utf-8", "replace").decode().replace("\0", "")
        if isinstance(description, str)
        else None,
    }


def downgrade() -> None:
    op.drop_index("ix_agents_class", "agents")
    op.drop_index("ix_runtime_in_error", "runtime")
    op.drop_index("ix_activations_look_by", "activations")
    op.drop_index("ix_activations_in_order", "activations")
    op.drop_index("ix_activations_uncounted", "activations")
    op.drop_index("ix_schedules_contract", "schedules")
    for table in ("thread_events", "threads", "profiles", "declared"):
        op.drop_table(table)
    for table, name in (
        ("runs", "event_data"),
        ("runs", "start_event"),
        ("activations", "runs_per_month"),
        ("activations", "look_by"),
        ("agents", "registered_at"),
        ("agents", "agent_class"),
        ("agents", "description"),
    ):
        op.drop_column(table, name)
