"""Chats, completions, inbox, outbox, message roles."""
