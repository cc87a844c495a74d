"""The authority: declarations, money, kill switches, and what operators did"""

import sqlalchemy as sa
from alembic import op

from horarium.catalog.types import Instant

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    key = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    scope = ("org_id", "environment_id")
    op.create_table(
        "declarations",
        *(sa.Column(name, sa.String(length=200), nullable=False) for name in scope),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("name", sa.String(length=420), nullable=False),
        sa.Column("version", key, nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint(*scope, "kind", "name", name=op.f("pk_declarations")),
    )
    op.create_table(
        "accounts",
        *(sa.Column(name, sa.String(length=200), nullable=False) for name in scope),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("reserved", sa.BigInteger(), nullable=False),
        sa.Column("spent", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint(*scope, "kind", "name", name=op.f("pk_accounts")),
    )
    op.create_table(
        "reservations",
        sa.Column("run_id", sa.String(length=36), nullable=False),
        *(sa.Column(name, sa.String(length=200), nullable=False) for name in scope),
        sa.Column("budget", sa.String(length=200), nullable=False),
        sa.Column("wallet", sa.String(length=200), nullable=True),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("remote", sa.Boolean(), nullable=False),
        sa.Column("settled", sa.BigInteger(), nullable=True),
        sa.Column("made_at", Instant(), nullable=False),
        sa.Column("keep_until", Instant(), nullable=True),
        sa.Column("closed_at", Instant(), nullable=True),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_reservations")),
    )
    op.create_index(
        "ix_reservations_open",
        "reservations",
        ["made_at"],
        unique=False,
        sqlite_where=sa.text("closed_at IS NULL"),
        postgresql_where=sa.text("closed_at IS NULL"),
    )
    op.create_table(
        "stops",
        *(sa.Column(name, sa.String(length=200), nullable=False) for name in scope),
        sa.Column("since", Instant(), nullable=False),
        sa.Column("by", sa.String(length=200), nullable=False),
        sa.Column("because", sa.Text(), nullable=False),
        sa.Column("lifted_at", Instant(), nullable=True),
        sa.PrimaryKeyConstraint(*scope, name=op.f("pk_stops")),
    )
    op.create_table(
        "authority_events",
        sa.Column("id", key, nullable=False),
        *(sa.Column(name, sa.String(length=200), nullable=False) for name in scope),
        sa.Column("kind", sa.String(length=40), nullable=False),
        sa.Column("at", Instant(), nullable=False),
        sa.Column("actor", sa.String(length=200), nullable=False),
        sa.Column("details", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_authority_events")),
    )
    op.create_index("ix_authority_events_environment", "authority_events", [*scope, "id"], unique=False)
    for name in ("development", "live_needs_approval"):
        op.add_column("environments", sa.Column(name, sa.Boolean(), server_default=sa.false(), nullable=False))
    # Environments of before were all of development installations: nothing else could be made.
    op.execute(sa.text("UPDATE environments SET development = :yes").bindparams(yes=True))
    for name in ("environment_epoch", "reset_generation"):
        op.add_column("activations", sa.Column(name, sa.Integer(), nullable=True))
    op.add_column("runs", sa.Column("destination", sa.String(length=200), nullable=True))
    op.add_column("runs", sa.Column("dispatch_sent", Instant(), nullable=True))
    op.add_column("runs", sa.Column("token_nonce", sa.String(length=32), nullable=True))
    op.add_column("runs", sa.Column("input_refused", sa.String(length=40), nullable=True))


def downgrade() -> None:
    for name in ("input_refused", "token_nonce", "dispatch_sent", "destination"):
        op.drop_column("runs", name)
    for name in ("reset_generation", "environment_epoch"):
        op.drop_column("activations", name)
    for name in ("live_needs_approval", "development"):
        op.drop_column("environments", name)
    op.drop_index("ix_authority_events_environment", table_name="authority_events")
    op.drop_table("authority_events")
    op.drop_table("stops")
    op.drop_index(
        "ix_reservations_open",
        table_name="reservations",
        sqlite_where=sa.text("closed_at IS NULL"),
        postgresql_where=sa.text("closed_at IS NULL"),
    )
    op.drop_table("reservations")
    op.drop_table("accounts")
    op.drop_table("declarations")
