"""The circuit breaker's account of each activation, and how often what should not be was found"""

import sqlalchemy as sa
from alembic import op

from horarium.catalog.types import Instant

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Without values for what is enabled: its next step opens the account, with what the ledger says is undecided.
    op.add_column("activations", sa.Column("allowance", sa.Integer(), nullable=True))
    op.add_column("activations", sa.Column("declared_until", Instant(), nullable=True))
    op.create_table(
        "findings",
        sa.Column("org_id", sa.String(length=200), nullable=False),
        sa.Column("environment_id", sa.String(length=200), nullable=False),
        sa.Column("kind", sa.String(length=40), nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.Column("last_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("org_id", "environment_id", "kind", name=op.f("pk_findings")),
    )


def downgrade() -> None:
    op.drop_table("findings")
    for name in ("declared_until", "allowance"):
        op.drop_column("activations", name)
