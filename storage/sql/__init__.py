"""SQLite and PostgreSQL: connections, the writer thread, bulk rows."""
