"""The first tables.

Revision: 0001. There is no way back from it: an older heed is restored from a backup.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    _user()
    _identity()
    _chat()
    _completion()
    _platform_message()
    _feedback()
    _note()
    _adapter_version()
    _update_run()
    _eval_run()
    _inbox()
    _outbox()
    _setting()


def _user() -> None:
    op.create_table(
        "user",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("display_name", sa.String(), nullable=False),
        sa.Column("is_learning", sa.Boolean(), nullable=False),
        sa.Column("active_version", sa.Integer(), nullable=False),
        sa.Column("last_version", sa.Integer(), nullable=False),
        sa.Column("persona", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_user")),
    )


def _identity() -> None:
    op.create_table(
        "identity",
        sa.Column("platform", sa.String(), nullable=False),
        sa.Column("account", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["user.id"], name=op.f("fk_identity_user_id_user")),
        sa.PrimaryKeyConstraint("platform", "account", name=op.f("pk_identity")),
    )
    op.create_index(op.f("ix_identity_user_id"), "identity", ["user_id"])


def _chat() -> None:
    op.create_table(
        "chat",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("platform", sa.String(), nullable=False),
        sa.Column("external_id", sa.String(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("reset_seq", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["user.id"], name=op.f("fk_chat_user_id_user")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_chat")),
        sa.UniqueConstraint("platform", "external_id", "user_id", name=op.f("uq_chat_platform_external_id_user_id")),
    )
    op.create_index(op.f("ix_chat_user_id"), "chat", ["user_id"])


def _completion() -> None:
    op.create_table(
        "completion",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("chat_id", sa.String(), nullable=True),
        sa.Column("retry_of", sa.String(), nullable=True),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("messages", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("notes", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("choice_index", sa.Integer(), nullable=False),
        sa.Column("prompt_token_ids", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("completion_token_ids", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("logprobs", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("adapter_version", sa.Integer(), nullable=False),
        sa.Column("sampling", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("finish_reason", sa.String(), nullable=False),
        sa.Column("num_cached_tokens", sa.Integer(), nullable=False),
        sa.Column("time_to_first_token_s", sa.Float(), nullable=False),
        sa.Column("duration_s", sa.Float(), nullable=False),
        sa.Column("is_gold", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["chat_id"], ["chat.id"], name=op.f("fk_completion_chat_id_chat")),
        sa.ForeignKeyConstraint(["user_id"], ["user.id"], name=op.f("fk_completion_user_id_user")),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_completion")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_completion_chat_id"), "completion", ["chat_id"])
    op.create_index(op.f("ix_completion_id"), "completion", ["id"], unique=True)
    op.create_index(op.f("ix_completion_retry_of"), "completion", ["retry_of"])
    op.create_index(op.f("ix_completion_user_id"), "completion", ["user_id"])


def _platform_message() -> None:
    op.create_table(
        "platform_message",
        sa.Column("platform", sa.String(), nullable=False),
        sa.Column("chat_external_id", sa.String(), nullable=False),
        sa.Column("message_id", sa.String(), nullable=False),
        sa.Column("completion_id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["completion_id"], ["completion.id"], name=op.f("fk_platform_message_completion_id_completion")
        ),
        sa.PrimaryKeyConstraint("platform", "chat_external_id", "message_id", name=op.f("pk_platform_message")),
    )
    op.create_index(op.f("ix_platform_message_completion_id"), "platform_message", ["completion_id"])


def _feedback() -> None:
    op.create_table(
        "feedback",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("idempotency_key", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("completion_id", sa.String(), nullable=True),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("value", sa.String(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("training", sa.JSON(none_as_null=True), nullable=True),
        sa.ForeignKeyConstraint(["user_id"], ["user.id"], name=op.f("fk_feedback_user_id_user")),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_feedback")),
        sa.UniqueConstraint("user_id", "idempotency_key", name=op.f("uq_feedback_user_id_idempotency_key")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_feedback_completion_id"), "feedback", ["completion_id"])
    op.create_index(op.f("ix_feedback_id"), "feedback", ["id"], unique=True)
    op.create_index(op.f("ix_feedback_status"), "feedback", ["status"])
    op.create_index(op.f("ix_feedback_user_id"), "feedback", ["user_id"])


def _note() -> None:
    op.create_table(
        "note",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("feedback_id", sa.String(), nullable=True),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("learned_version", sa.Integer(), nullable=True),
        sa.Column("probe", sa.Float(), nullable=True),
        sa.Column("num_tokens", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["user.id"], name=op.f("fk_note_user_id_user")),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_note")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_note_feedback_id"), "note", ["feedback_id"])
    op.create_index(op.f("ix_note_id"), "note", ["id"], unique=True)
    op.create_index(op.f("ix_note_state"), "note", ["state"])
    op.create_index(op.f("ix_note_user_id"), "note", ["user_id"])


def _adapter_version() -> None:
    op.create_table(
        "adapter_version",
        sa.Column("lora_int_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("parent", sa.Integer(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("size_bytes", sa.Integer(), nullable=False),
        sa.Column("base_model", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("feedback_id", sa.String(), nullable=True),
        sa.Column("update_id", sa.String(), nullable=True),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["user.id"], name=op.f("fk_adapter_version_user_id_user")),
        sa.PrimaryKeyConstraint("lora_int_id", name=op.f("pk_adapter_version")),
        sa.UniqueConstraint("user_id", "number", name=op.f("uq_adapter_version_user_id_number")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_adapter_version_user_id"), "adapter_version", ["user_id"])


def _update_run() -> None:
    op.create_table(
        "update_run",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("feedback_id", sa.String(), nullable=True),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("started_at", sa.Float(), nullable=False),
        sa.Column("duration_ms", sa.Float(), nullable=False),
        sa.Column("phases_ms", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("steps", sa.Integer(), nullable=False),
        sa.Column("divergence_before", sa.Float(), nullable=True),
        sa.Column("divergence_after", sa.Float(), nullable=True),
        sa.Column("gate", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("heat", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("parent_version", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=True),
        sa.Column("error", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["user.id"], name=op.f("fk_update_run_user_id_user")),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_update_run")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_update_run_feedback_id"), "update_run", ["feedback_id"])
    op.create_index(op.f("ix_update_run_id"), "update_run", ["id"], unique=True)
    op.create_index(op.f("ix_update_run_user_id"), "update_run", ["user_id"])


def _eval_run() -> None:
    op.create_table(
        "eval_run",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("config", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("summary", sa.JSON(none_as_null=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_eval_run")),
    )


def _inbox() -> None:
    op.create_table(
        "inbox",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("platform", sa.String(), nullable=False),
        sa.Column("bot_id", sa.String(), nullable=False),
        sa.Column("update_id", sa.String(), nullable=False),
        sa.Column("account", sa.String(), nullable=False),
        sa.Column("chat_key", sa.String(), nullable=False),
        sa.Column("payload", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("received_at", sa.Float(), nullable=False),
        sa.Column("is_done", sa.Boolean(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_inbox")),
        sa.UniqueConstraint("platform", "bot_id", "update_id", name=op.f("uq_inbox_platform_bot_id_update_id")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_inbox_account"), "inbox", ["account"])
    op.create_index(op.f("ix_inbox_chat_key"), "inbox", ["chat_key"])
    op.create_index(op.f("ix_inbox_is_done"), "inbox", ["is_done"])


def _outbox() -> None:
    op.create_table(
        "outbox",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("platform", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=True),
        sa.Column("chat_key", sa.String(), nullable=False),
        sa.Column("payload", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("lease_until_s", sa.Float(), nullable=False),
        sa.Column("external_message_id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["user.id"], name=op.f("fk_outbox_user_id_user")),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_outbox")),
        sa.UniqueConstraint("id", name=op.f("uq_outbox_id")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_outbox_chat_key"), "outbox", ["chat_key"])
    op.create_index(op.f("ix_outbox_state"), "outbox", ["state"])
    op.create_index(op.f("ix_outbox_user_id"), "outbox", ["user_id"])


def _setting() -> None:
    op.create_table(
        "setting",
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("value", sa.JSON(none_as_null=True), nullable=True),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_setting")),
    )
