"""Adapter versions: the store, the active one, undo, import and export."""
