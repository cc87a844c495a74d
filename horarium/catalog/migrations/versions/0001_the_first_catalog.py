"""The first catalog"""

import sqlalchemy as sa
from alembic import op

from horarium.catalog.types import Instant

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "agents",
        sa.Column("org_id", sa.String(length=200), nullable=False),
        sa.Column("environment_id", sa.String(length=200), nullable=False),
        sa.Column("agent_version", sa.String(length=200), nullable=False),
        sa.Column("discovery", sa.JSON(), nullable=False),
        sa.Column("lifecycle", sa.String(length=20), nullable=False),
        sa.Column("lease_until", Instant(), nullable=False),
        sa.Column("seen_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("org_id", "environment_id", "agent_version", name=op.f("pk_agents")),
    )
    op.create_table(
        "environments",
        sa.Column("org_id", sa.String(length=200), nullable=False),
        sa.Column("environment_id", sa.String(length=200), nullable=False),
        sa.Column("mode", sa.String(length=20), nullable=False),
        sa.Column("authority_epoch", sa.Integer(), nullable=False),
        sa.Column("reset_generation", sa.Integer(), nullable=False),
        sa.Column("runtime_profile", sa.String(length=200), nullable=True),
        sa.PrimaryKeyConstraint("org_id", "environment_id", name=op.f("pk_environments")),
    )
    op.create_table(
        "schedules",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("org_id", sa.String(length=200), nullable=False),
        sa.Column("environment_id", sa.String(length=200), nullable=False),
        sa.Column("schedule_id", sa.String(length=36), nullable=False),
        sa.Column("contract", sa.String(length=20), nullable=False),
        sa.Column("head_revision", sa.Integer(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("retired_at", Instant(), nullable=True),
        sa.Column("unobserved", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_schedules")),
        sa.UniqueConstraint(
            "org_id", "environment_id", "schedule_id", name=op.f("uq_schedules_org_id_environment_id_schedule_id")
        ),
    )
    op.create_index(
        "ix_schedules_unobserved",
        "schedules",
        ["org_id", "environment_id"],
        sqlite_where=sa.text("unobserved IS 1"),
        postgresql_where=sa.text("unobserved IS true"),
    )
    op.create_table(
        "workers",
        sa.Column("instance", sa.String(length=200), nullable=False),
        sa.Column("role", sa.String(length=20), nullable=False),
        sa.Column("seen_at", Instant(), nullable=False),
        sa.Column("tzdata", sa.String(length=40), nullable=False),
        sa.PrimaryKeyConstraint("instance", name=op.f("pk_workers")),
    )
    op.create_table(
        "activations",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("schedule", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("changed_at", Instant(), nullable=False),
        sa.Column("changed_by", sa.String(length=200), nullable=False),
        sa.Column("activated_at", Instant(), nullable=False),
        sa.Column("accounted_through", Instant(), nullable=False),
        sa.Column("attended_until", Instant(), nullable=True),
        sa.Column("waiting", sa.Boolean(), nullable=False),
        sa.Column("catchup_started", sa.Integer(), nullable=False),
        sa.Column("ended_at", Instant(), nullable=True),
        sa.Column("ended_as", sa.String(length=20), nullable=True),
        sa.Column("ended_reason", sa.Text(), nullable=True),
        sa.Column("workflow_closed", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["schedule"], ["schedules.id"], name=op.f("fk_activations_schedule_schedules")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_activations")),
        sa.UniqueConstraint("schedule", "generation", name=op.f("uq_activations_schedule_generation")),
    )
    op.create_index(
        "ix_activations_live",
        "activations",
        ["schedule", "generation"],
        sqlite_where=sa.text("ended_at IS NULL"),
        postgresql_where=sa.text("ended_at IS NULL"),
    )
    op.create_index(
        "ix_activations_lingering",
        "activations",
        ["schedule"],
        sqlite_where=sa.text("ended_at IS NOT NULL AND workflow_closed IS 0"),
        postgresql_where=sa.text("ended_at IS NOT NULL AND workflow_closed IS false"),
    )
    op.create_table(
        "audit_events",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("schedule", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("kind", sa.String(length=40), nullable=False),
        sa.Column("at", Instant(), nullable=False),
        sa.Column("actor", sa.String(length=200), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=True),
        sa.Column("revision", sa.Integer(), nullable=True),
        sa.Column("details", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["schedule"], ["schedules.id"], name=op.f("fk_audit_events_schedule_schedules")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_events")),
    )
    with op.batch_alter_table("audit_events", schema=None) as batch_op:
        batch_op.create_index("ix_audit_events_schedule_id", ["schedule", "id"], unique=False)

    op.create_table(
        "entries",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("schedule", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("trigger", sa.String(length=60), nullable=False),
        sa.Column("first_at", Instant(), nullable=False),
        sa.Column("last_at", Instant(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("disposition", sa.String(length=20), nullable=False),
        sa.Column("reason", sa.String(length=40), nullable=True),
        sa.Column("held_since", Instant(), nullable=True),
        sa.Column("closed_at", Instant(), nullable=True),
        sa.ForeignKeyConstraint(["schedule"], ["schedules.id"], name=op.f("fk_entries_schedule_schedules")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_entries")),
        sa.UniqueConstraint("schedule", "first_at", "trigger", name=op.f("uq_entries_schedule_first_at_trigger")),
    )
    op.create_index("ix_entries_schedule_generation_last_at", "entries", ["schedule", "generation", "last_at"])
    op.create_index("ix_entries_schedule_closed_at", "entries", ["schedule", "closed_at"])
    for name, columns in (("ix_entries_open", ["schedule", "first_at"]), ("ix_entries_open_by_time", ["first_at"])):
        op.create_index(
            name,
            "entries",
            columns,
            sqlite_where=sa.text("closed_at IS NULL"),
            postgresql_where=sa.text("closed_at IS NULL"),
        )
    op.create_index(
        "ix_entries_succeeded",
        "entries",
        ["schedule", "first_at"],
        sqlite_where=sa.text("disposition = 'succeeded'"),
        postgresql_where=sa.text("disposition = 'succeeded'"),
    )

    op.create_table(
        "runtime",
        sa.Column("schedule", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("observed_at", Instant(), nullable=False),
        sa.ForeignKeyConstraint(["schedule"], ["schedules.id"], name=op.f("fk_runtime_schedule_schedules")),
        sa.PrimaryKeyConstraint("schedule", name=op.f("pk_runtime")),
    )
    op.create_table(
        "versions",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("schedule", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("resource_id", sa.String(length=36), nullable=False),
        sa.Column("digest", sa.String(length=71), nullable=False),
        sa.Column("configuration", sa.Text(), nullable=False),
        sa.Column("published_at", Instant(), nullable=False),
        sa.Column("published_by", sa.String(length=200), nullable=False),
        sa.ForeignKeyConstraint(["schedule"], ["schedules.id"], name=op.f("fk_versions_schedule_schedules")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_versions")),
        sa.UniqueConstraint("resource_id", name=op.f("uq_versions_resource_id")),
        sa.UniqueConstraint("schedule", "revision", name=op.f("uq_versions_schedule_revision")),
    )
    op.create_table(
        "runs",
        sa.Column("run_id", sa.String(length=36), nullable=False),
        sa.Column("entry", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("workflow_id", sa.String(length=700), nullable=False),
        sa.Column("buffered", sa.Boolean(), nullable=False),
        sa.Column("window_from", Instant(), nullable=False),
        sa.Column("owner", sa.String(length=60), nullable=True),
        sa.Column("decision", sa.String(length=20), nullable=True),
        sa.Column("decided_at", Instant(), nullable=True),
        sa.Column("evidence", sa.JSON(), nullable=True),
        sa.Column("agent_version", sa.String(length=200), nullable=True),
        sa.Column("begun_at", Instant(), nullable=True),
        sa.Column("token_hash", sa.String(length=64), nullable=True),
        sa.Column("ended_at", Instant(), nullable=True),
        sa.Column("summary", sa.Text(), nullable=True),
        sa.Column("outputs", sa.JSON(), nullable=True),
        sa.Column("cost", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["entry"], ["entries.id"], name=op.f("fk_runs_entry_entries"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_runs")),
        sa.UniqueConstraint("entry", name=op.f("uq_runs_entry")),
        sa.UniqueConstraint("workflow_id", name=op.f("uq_runs_workflow_id")),
    )


def downgrade() -> None:
    op.drop_table("runs")
    op.drop_table("versions")
    op.drop_table("runtime")
    op.drop_table("entries")
    with op.batch_alter_table("audit_events", schema=None) as batch_op:
        batch_op.drop_index("ix_audit_events_schedule_id")

    op.drop_table("audit_events")
    op.drop_table("activations")
    op.drop_table("workers")
    op.drop_table("schedules")
    op.drop_table("environments")
    op.drop_table("agents")
