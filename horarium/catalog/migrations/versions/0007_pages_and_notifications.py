"""Sessions of the pages; what was archived, pruned and erased; who is told of what, and what was told; sums by second"""

from collections import Counter

import sqlalchemy as sa
from alembic import op

from horarium.catalog.types import Instant

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _make_sessions()
    _make_archives()
    op.create_index(
        "ix_runtime_in_review",
        "runtime",
        ["schedule"],
        sqlite_where=sa.text("state = 'review'"),
        postgresql_where=sa.text("state = 'review'"),
    )
    _make_notifications()
    _add_up_by_seconds()


def downgrade() -> None:
    _add_up_by_days()
    _drop_notifications()
    op.drop_index("ix_runtime_in_review", "runtime")
    _drop_archives()
    _drop_sessions()


def _make_sessions() -> None:
    op.create_table(
        "sessions",
        sa.Column("secret_hash", sa.String(length=64), nullable=False),
        sa.Column("org_id", sa.String(length=200), nullable=False),
        sa.Column("person", sa.String(length=200), nullable=False),
        sa.Column("scopes", sa.JSON(), nullable=False),
        sa.Column("began_at", Instant(), nullable=False),
        sa.Column("used_at", Instant(), nullable=False),
        sa.Column("ends_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("secret_hash", name=op.f("pk_sessions")),
    )
    op.create_index("ix_sessions_person", "sessions", ["org_id", "person", "began_at"])
    op.create_index("ix_sessions_ends_at", "sessions", ["ends_at"])
    op.create_table(
        "sign_in_codes",
        sa.Column("code_hash", sa.String(length=64), nullable=False),
        sa.Column("org_id", sa.String(length=200), nullable=False),
        sa.Column("person", sa.String(length=200), nullable=False),
        sa.Column("scopes", sa.JSON(), nullable=False),
        sa.Column("ends_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("code_hash", name=op.f("pk_sign_in_codes")),
    )
    op.create_index("ix_sign_in_codes_ends_at", "sign_in_codes", ["ends_at"])


def _drop_sessions() -> None:
    op.drop_table("sign_in_codes")
    op.drop_table("sessions")


def _make_archives() -> None:
    key = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "pruned_ledgers",
        sa.Column("schedule", key, nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("through", Instant(), nullable=False),
        sa.Column("dispositions", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["schedule"], ["schedules.id"], name=op.f("fk_pruned_ledgers_schedule_schedules")),
        sa.PrimaryKeyConstraint("schedule", "generation", name=op.f("pk_pruned_ledgers")),
    )
    op.create_table(
        "archives",
        sa.Column("archive_id", sa.String(length=36), nullable=False),
        sa.Column("org_id", sa.String(length=200), nullable=False),
        sa.Column("environment_id", sa.String(length=200), nullable=False),
        sa.Column("before", Instant(), nullable=False),
        sa.Column("began_at", Instant(), nullable=False),
        sa.Column("digest", sa.String(length=71), nullable=False),
        sa.Column("seal", sa.Integer(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", Instant(), nullable=True),
        sa.PrimaryKeyConstraint("archive_id", name=op.f("pk_archives")),
    )
    op.create_table(
        "redactions",
        sa.Column("org_id", sa.String(length=200), nullable=False),
        sa.Column("environment_id", sa.String(length=200), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(length=71), nullable=False),
        sa.Column("redacted_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("org_id", "environment_id", "number", name=op.f("pk_redactions")),
    )


def _drop_archives() -> None:
    for name in ("redactions", "archives", "pruned_ledgers"):
        op.drop_table(name)


def _make_notifications() -> None:
    key = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.add_column("environments", sa.Column("notifies", sa.String(length=200), nullable=True))
    op.add_column("schedules", sa.Column("heartbeat", key, nullable=True))
    op.add_column("schedules", sa.Column("troubled", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.add_column("schedules", sa.Column("silent_since", Instant(), nullable=True))
    op.create_table(
        "endpoints",
        sa.Column("id", key, nullable=False),
        sa.Column("org_id", sa.String(length=200), nullable=False),
        sa.Column("environment_id", sa.String(length=200), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("url", sa.String(length=2000), nullable=False),
        sa.Column("secret", sa.String(length=100), nullable=False),
        sa.Column("private", sa.Boolean(), nullable=False),
        sa.Column("kinds", sa.String(length=200), nullable=False),
        sa.Column("schedule_id", sa.String(length=36), nullable=True),
        sa.Column("declared_at", Instant(), nullable=False),
        sa.Column("declared_by", sa.String(length=200), nullable=False),
        sa.Column("stopped_at", Instant(), nullable=True),
        sa.Column("stopped_because", sa.Text(), nullable=True),
        sa.Column("delivered_at", Instant(), nullable=True),
        sa.Column("held_until", Instant(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_endpoints")),
        sa.UniqueConstraint("org_id", "environment_id", "name", name=op.f("uq_endpoints_org_id_environment_id_name")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "notifications",
        sa.Column("id", key, nullable=False),
        sa.Column("message_id", sa.String(length=36), nullable=False),
        sa.Column("org_id", sa.String(length=200), nullable=False),
        sa.Column("environment_id", sa.String(length=200), nullable=False),
        sa.Column("schedule", key, nullable=True),
        sa.Column("endpoint", key, nullable=True),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("at", Instant(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=True),
        sa.Column("trigger", sa.String(length=60), nullable=True),
        sa.Column("first_at", Instant(), nullable=True),
        sa.Column("last_at", Instant(), nullable=True),
        sa.Column("count", sa.Integer(), nullable=True),
        sa.Column("disposition", sa.String(length=20), nullable=True),
        sa.Column("reason", sa.String(length=40), nullable=True),
        sa.Column("run_id", sa.String(length=36), nullable=True),
        sa.Column("because", sa.Text(), nullable=True),
        sa.Column("spread", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["schedule"], ["schedules.id"], name=op.f("fk_notifications_schedule_schedules")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notifications")),
        sa.UniqueConstraint("message_id", name=op.f("uq_notifications_message_id")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_notifications_unspread",
        "notifications",
        ["org_id", "environment_id", "id"],
        sqlite_where=sa.text("spread IS 0"),
        postgresql_where=sa.text("spread IS false"),
    )
    op.create_index(
        "ix_notifications_unspread_at",
        "notifications",
        ["at"],
        sqlite_where=sa.text("spread IS 0"),
        postgresql_where=sa.text("spread IS false"),
    )
    op.create_index("ix_notifications_at", "notifications", ["at"])
    op.create_table(
        "deliveries",
        sa.Column("id", key, nullable=False),
        sa.Column("notification", key, nullable=False),
        sa.Column("endpoint", key, nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("since", Instant(), nullable=False),
        sa.Column("next_at", Instant(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("last_status", sa.Integer(), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("ended_at", Instant(), nullable=True),
        sa.ForeignKeyConstraint(
            ["endpoint"], ["endpoints.id"], name=op.f("fk_deliveries_endpoint_endpoints"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["notification"],
            ["notifications.id"],
            name=op.f("fk_deliveries_notification_notifications"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deliveries")),
        sa.UniqueConstraint("notification", "endpoint", name=op.f("uq_deliveries_notification_endpoint")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_deliveries_endpoint", "deliveries", ["endpoint", "state", "next_at"])
    op.create_index("ix_deliveries_ended_at", "deliveries", ["ended_at"])
    for state, ordered in (("waiting", "since"), ("dead", "id")):
        of = sa.text(f"state = '{state}'")
        op.create_index(f"ix_deliveries_{state}", "deliveries", [ordered], sqlite_where=of, postgresql_where=of)
    op.create_table(
        "expected",
        sa.Column("schedule", key, nullable=False),
        sa.Column("org_id", sa.String(length=200), nullable=False),
        sa.Column("environment_id", sa.String(length=200), nullable=False),
        sa.Column("look_at", Instant(), nullable=False),
        sa.ForeignKeyConstraint(["schedule"], ["schedules.id"], name=op.f("fk_expected_schedule_schedules")),
        sa.PrimaryKeyConstraint("schedule", name=op.f("pk_expected")),
    )
    op.create_index("ix_expected_look_at", "expected", ["org_id", "environment_id", "look_at"])
    # All that are live are looked at once, and then when that is due.
    op.execute(
        "INSERT INTO expected (schedule, org_id, environment_id, look_at)"
        " SELECT schedules.id, schedules.org_id, schedules.environment_id, max(activations.activated_at)"
        " FROM activations JOIN schedules ON schedules.id = activations.schedule"
        " WHERE activations.ended_at IS NULL GROUP BY schedules.id, schedules.org_id, schedules.environment_id"
    )


def _drop_notifications() -> None:
    op.drop_table("expected")
    op.drop_table("deliveries")
    op.drop_table("notifications")
    op.drop_table("endpoints")
    for name in ("silent_since", "troubled", "heartbeat"):
        op.drop_column("schedules", name)
    op.drop_column("environments", "notifies")


def _add_up_by_seconds() -> None:
    """Beside the sums of days, which stay as they are, those of every five minutes and of every second."""
    op.add_column("declared", sa.Column("span", sa.Integer(), server_default="86400", nullable=False))
    op.add_column("declared", sa.Column("since", sa.Integer(), server_default="0", nullable=False))
    op.drop_index("ix_declared_day", "declared")
    op.create_index("ix_declared_part", "declared", ["span", "day", "since", "runs"])
    activations = sa.table(
        "activations",
        sa.column("changed_at", Instant()),
        sa.column("runs_per_month", sa.Integer()),
        sa.column("ended_at", Instant()),
    )
    declared = sa.table("declared", *(sa.column(name) for name in ("span", "day", "since", "runs")))
    live = sa.select(activations.c.changed_at, activations.c.runs_per_month).where(
        activations.c.ended_at.is_(None), activations.c.runs_per_month > 0
    )
    sums: Counter[tuple[int, int, int]] = Counter()
    for at, runs in op.get_bind().execute(live):
        second = at.hour * 3_600 + at.minute * 60 + at.second
        for span in (300, 1):
            sums[span, at.toordinal(), second - second % span] += runs
    rows = [{"span": span, "day": day, "since": since, "runs": runs} for (span, day, since), runs in sums.items()]
    if rows:
        op.get_bind().execute(sa.insert(declared), rows)


def _add_up_by_days() -> None:
    op.drop_index("ix_declared_part", "declared")
    op.execute("DELETE FROM declared WHERE span <> 86400")
    for name in ("since", "span"):
        op.drop_column("declared", name)
    op.create_index("ix_declared_day", "declared", ["day", "runs"])
