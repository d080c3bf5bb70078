"""The outbox has no leases and a time, what was shown has no chat, and keys of reactions name no person.

Revision: 0004.
"""

import hashlib
import time

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _outbox()
    if not op.get_context().as_sql:  # a script cannot make the new keys
        _reactions()


def _outbox() -> None:
    with op.batch_alter_table("outbox", table_kwargs={"sqlite_autoincrement": True}) as batch:
        batch.drop_column("attempts")
        batch.drop_column("lease_until_s")
        batch.add_column(sa.Column("created_at", sa.Float(), nullable=False, server_default=str(time.time())))
    with op.batch_alter_table("outbox", table_kwargs={"sqlite_autoincrement": True}) as batch:
        batch.alter_column("created_at", server_default=None)
    op.execute("UPDATE outbox SET state = 'waiting' WHERE state = 'sending'")
    op.execute("UPDATE outbox SET chat_key = '' WHERE state IN ('done', 'dead')")


def _reactions() -> None:
    """Replace the account in a key by the mark that bot.platforms.discord.events.mark_of makes of it."""
    connection = op.get_bind()
    query = sa.text("SELECT seq, update_id FROM inbox WHERE platform = 'discord' AND update_id LIKE 'r:%'")
    for seq, update_id in connection.execute(query).fetchall():
        kind, change, message, account, rest = update_id.split(":", 4)
        mark = hashlib.blake2s(f"{message}:{account}".encode(), digest_size=12).hexdigest()
        changed = {"seq": seq, "update_id": f"{kind}:{change}:{message}:{mark}:{rest}"}
        connection.execute(sa.text("UPDATE inbox SET update_id = :update_id WHERE seq = :seq"), changed)
