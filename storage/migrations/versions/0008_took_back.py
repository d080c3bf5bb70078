"""Record the complaint that undid a lesson.

Revision: 0008.
"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("feedback", sa.Column("took_back", sa.Integer(), nullable=True))
