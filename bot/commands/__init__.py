"""Slash commands: the table, and the handlers of people and of admins."""
