"""Sessions of the pages, and the codes that begin one"""

import sqlalchemy as sa
from alembic import op

from horarium.catalog.types import Instant

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _make_sessions()
    op.create_index(
        "ix_runtime_in_review",
        "runtime",
        ["schedule"],
        sqlite_where=sa.text("state = 'review'"),
        postgresql_where=sa.text("state = 'review'"),
    )


def downgrade() -> None:
    op.drop_index("ix_runtime_in_review", "runtime")
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
