"""Indexes for pages of a ledger, by nominal time"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_entries_first_at", "entries", ["first_at", "id"], unique=False)
    for name, columns in (
        ("ix_entries_spans", ["last_at"]),
        ("ix_entries_spans_of_schedule", ["schedule", "last_at"]),
    ):
        op.create_index(
            name,
            "entries",
            columns,
            unique=False,
            sqlite_where=sa.text("count > 1"),
            postgresql_where=sa.text("count > 1"),
        )


def downgrade() -> None:
    for name in ("ix_entries_spans_of_schedule", "ix_entries_spans", "ix_entries_first_at"):
        op.drop_index(name, table_name="entries")
