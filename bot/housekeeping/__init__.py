"""Periodic background tasks: retention, the pause file, reloading settings."""
