"""Add the sessions of agents.

Revision: 0013.
"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "agent_work",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("workspace", sa.String(), nullable=False),
        sa.Column("place", sa.String(), nullable=False),
        sa.Column("state", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["user.id"], name=op.f("fk_agent_work_user_id_user")),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_agent_work")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_agent_work_id"), "agent_work", ["id"], unique=True)
    op.create_index(op.f("ix_agent_work_user_id"), "agent_work", ["user_id"])
    op.create_index(op.f("ix_agent_work_place"), "agent_work", ["place"])
