"""Record the consolidation that took in a piece of feedback or a dropped answer.

Revision: 0005.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in ("feedback", "completion"):
        op.add_column(table, sa.Column("consolidated_by", sa.String(), nullable=True))
