"""Alembic's entry: the migrations work in the transaction that storage.migrations has begun."""

from alembic import context
from sqlmodel import SQLModel

from storage import leases, tables  # noqa: F401  define the tables in SQLModel.metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=SQLModel.metadata,
    render_as_batch=True,  # SQLite alters a table by making it anew
)
with context.begin_transaction():
    context.run_migrations()
