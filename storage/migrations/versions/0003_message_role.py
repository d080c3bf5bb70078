"""Add the role of a message on a platform: why it was shown.

Revision: 0003.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "message_role",
        sa.Column("platform", sa.String(), nullable=False),
        sa.Column("chat_external_id", sa.String(), nullable=False),
        sa.Column("message_id", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("about", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["user.id"], name=op.f("fk_message_role_user_id_user")),
        sa.PrimaryKeyConstraint("platform", "chat_external_id", "message_id", name=op.f("pk_message_role")),
    )
    op.create_index(op.f("ix_message_role_user_id"), "message_role", ["user_id"])
