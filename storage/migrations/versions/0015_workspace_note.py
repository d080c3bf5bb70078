"""Add the notes about workspaces.

Revision: 0015.
"""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "workspace_note",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("workspace", sa.String(), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["user.id"], name=op.f("fk_workspace_note_user_id_user")),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_workspace_note")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_workspace_note_user_id"), "workspace_note", ["user_id"])
