"""Sessions of the pages, and the codes that begin one; what was archived, pruned and erased"""

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


def downgrade() -> None:
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
