"""Add the leases of a cluster.

Revision: 0016.
"""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "lease",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=True),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("token", sa.Integer(), nullable=False),
        sa.Column("ends_at", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["user.id"], name=op.f("fk_lease_user_id_user")),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_lease")),
    )
    op.create_index(op.f("ix_lease_user_id"), "lease", ["user_id"])
