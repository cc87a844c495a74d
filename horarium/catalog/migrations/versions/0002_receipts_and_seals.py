"""Receipts, seals and sweeps, and who asked for a manual run"""

import sqlalchemy as sa
from alembic import op

from horarium.catalog.types import Instant

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "receipts",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("org_id", sa.String(length=200), nullable=False),
        sa.Column("environment_id", sa.String(length=200), nullable=False),
        sa.Column("principal", sa.String(length=200), nullable=False),
        sa.Column("key", sa.String(length=200), nullable=False),
        sa.Column("receipt_id", sa.String(length=36), nullable=False),
        sa.Column("operation", sa.String(length=20), nullable=False),
        sa.Column("body_digest", sa.String(length=71), nullable=False),
        sa.Column("reset_generation", sa.Integer(), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_receipts")),
        sa.UniqueConstraint(
            "org_id", "environment_id", "principal", "key", name=op.f("uq_receipts_org_id_environment_id_principal_key")
        ),
        sa.UniqueConstraint("receipt_id", name=op.f("uq_receipts_receipt_id")),
    )
    op.create_table(
        "seals",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("org_id", sa.String(length=200), nullable=False),
        sa.Column("environment_id", sa.String(length=200), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("minute", Instant(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("first_event", sa.BigInteger(), nullable=False),
        sa.Column("last_event", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.String(length=71), nullable=False),
        sa.Column("previous", sa.String(length=71), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_seals")),
        sa.UniqueConstraint("org_id", "environment_id", "minute", name=op.f("uq_seals_org_id_environment_id_minute")),
        sa.UniqueConstraint("org_id", "environment_id", "number", name=op.f("uq_seals_org_id_environment_id_number")),
    )
    op.create_table(
        "sweeps",
        sa.Column("org_id", sa.String(length=200), nullable=False),
        sa.Column("environment_id", sa.String(length=200), nullable=False),
        sa.Column("swept_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("org_id", "environment_id", name=op.f("pk_sweeps")),
    )
    # Events of before stay as they are: without a seal, until the first one takes them all.
    op.add_column("audit_events", sa.Column("seal", sa.Integer(), nullable=True))
    op.create_index(
        "ix_audit_events_unsealed",
        "audit_events",
        ["id"],
        unique=False,
        sqlite_where=sa.text("seal IS NULL"),
        postgresql_where=sa.text("seal IS NULL"),
    )
    op.add_column("runs", sa.Column("triggered_by", sa.String(length=200), nullable=True))


def downgrade() -> None:
    op.drop_column("runs", "triggered_by")
    op.drop_index(
        "ix_audit_events_unsealed",
        table_name="audit_events",
        sqlite_where=sa.text("seal IS NULL"),
        postgresql_where=sa.text("seal IS NULL"),
    )
    op.drop_column("audit_events", "seal")
    op.drop_table("sweeps")
    op.drop_table("seals")
    op.drop_table("receipts")
