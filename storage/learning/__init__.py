"""Feedback, notes, adapter versions, updates, consolidation signals."""
