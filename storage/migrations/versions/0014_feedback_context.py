"""Add what was told with a piece of feedback.

Revision: 0014.
"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("feedback", sa.Column("context", sa.JSON(none_as_null=True), nullable=True))
