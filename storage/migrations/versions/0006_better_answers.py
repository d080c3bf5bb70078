"""Add the better answers that teachers wrote in place of bad ones.

Revision: 0006.
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "better_answer",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("completion_id", sa.String(), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("notes", sa.JSON(), nullable=False),
        sa.Column("preserved", sa.Float(), nullable=True),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("consolidated_by", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["user_id"], ["user.id"], name=op.f("fk_better_answer_user_id_user")),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_better_answer")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_better_answer_id"), "better_answer", ["id"], unique=True)
    op.create_index(op.f("ix_better_answer_user_id"), "better_answer", ["user_id"])
    op.create_index(op.f("ix_better_answer_completion_id"), "better_answer", ["completion_id"])
