"""Add the title that a person gives a conversation.

Revision: 0012.
"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("chat") as batch:
        batch.add_column(sa.Column("title", sa.String(), nullable=False, server_default=""))
    with op.batch_alter_table("chat") as batch:
        batch.alter_column("title", server_default=None)
