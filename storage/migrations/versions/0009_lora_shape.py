"""The shape of a person's adapter, where it is not the setting's.

Revision: 0009.
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("user", sa.Column("lora_shape", sa.JSON(none_as_null=True), nullable=True))
