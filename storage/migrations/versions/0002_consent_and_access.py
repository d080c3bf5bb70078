"""Consent to learning, who was let in, and indexes for figures by day.

Revision: 0002.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _consent()
    _access()
    _pairing()
    op.create_index(op.f("ix_completion_created_at"), "completion", ["created_at"])
    op.create_index(op.f("ix_feedback_created_at"), "feedback", ["created_at"])
    op.create_index(op.f("ix_update_run_started_at"), "update_run", ["started_at"])


def _consent() -> None:
    op.create_table(
        "consent",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("choice", sa.String(), nullable=False),
        sa.Column("wording", sa.String(), nullable=False),
        sa.Column("platform", sa.String(), nullable=False),
        sa.Column("place", sa.String(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["user.id"], name=op.f("fk_consent_user_id_user")),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_consent")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_consent_user_id"), "consent", ["user_id"])


def _access() -> None:
    op.create_table(
        "access",
        sa.Column("platform", sa.String(), nullable=False),
        sa.Column("account", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("decided_by", sa.String(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("platform", "account", name=op.f("pk_access")),
    )


def _pairing() -> None:
    op.create_table(
        "pairing",
        sa.Column("code", sa.String(), nullable=False),
        sa.Column("platform", sa.String(), nullable=False),
        sa.Column("account", sa.String(), nullable=False),
        sa.Column("display_name", sa.String(), nullable=False),
        sa.Column("place", sa.String(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("expires_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("code", name=op.f("pk_pairing")),
        sa.UniqueConstraint("platform", "account", name=op.f("uq_pairing_platform_account")),
    )
