"""Add the server in which an update happened, where a platform has servers.

Revision: 0017.
"""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("inbox", sa.Column("server", sa.String(), nullable=False, server_default=""))
