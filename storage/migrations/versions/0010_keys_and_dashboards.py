"""API keys, who looked at whose words, and what the dashboards show of an update.

Revision: 0010.
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _api_key()
    _admin_view()
    op.add_column("update_run", sa.Column("curves", sa.JSON(), nullable=True))
    op.add_column("update_run", sa.Column("notes", sa.JSON(), nullable=True))
    op.create_index(op.f("ix_completion_chat_id_user_id"), "completion", ["chat_id", "user_id"])


def _api_key() -> None:
    op.create_table(
        "api_key",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("account", sa.String(), nullable=False),
        sa.Column("scopes", sa.JSON(), nullable=False),
        sa.Column("messages_per_day", sa.Integer(), nullable=True),
        sa.Column("updates_per_day", sa.Integer(), nullable=True),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("last_used_at", sa.Float(), nullable=True),
        sa.Column("revoked_at", sa.Float(), nullable=True),
        sa.Column("counted_on", sa.String(), nullable=False),
        sa.Column("num_messages", sa.Integer(), nullable=False),
        sa.Column("num_updates", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_key")),
    )
    op.create_index(op.f("ix_api_key_sha256"), "api_key", ["sha256"], unique=True)
    op.create_index(op.f("ix_api_key_account"), "api_key", ["account"])


def _admin_view() -> None:
    op.create_table(
        "admin_view",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("page", sa.String(), nullable=False),
        sa.Column("about", sa.String(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["user.id"], name=op.f("fk_admin_view_user_id_user")),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_admin_view")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_admin_view_user_id"), "admin_view", ["user_id"])
