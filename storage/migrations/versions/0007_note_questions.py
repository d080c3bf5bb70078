"""The questions that a standing note answers.

Revision: 0007.
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("note", sa.Column("questions", sa.JSON(none_as_null=True), nullable=True))
