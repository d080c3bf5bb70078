"""Add a reading to feedback, and how far the person says that it reaches.

Revision: 0011.
"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("feedback", sa.Column("reading_margin", sa.Float(), nullable=True))
    with op.batch_alter_table("feedback", table_kwargs={"sqlite_autoincrement": True}) as batch:
        batch.add_column(sa.Column("scope", sa.String(), nullable=False, server_default=""))
        batch.add_column(sa.Column("reading", sa.String(), nullable=False, server_default=""))
        batch.add_column(sa.Column("is_unsure", sa.Boolean(), nullable=False, server_default=sa.false()))
    with op.batch_alter_table("feedback", table_kwargs={"sqlite_autoincrement": True}) as batch:
        for name in ("scope", "reading", "is_unsure"):
            batch.alter_column(name, server_default=None)
