"""Backups: create, restore, manifest, snapshot."""
