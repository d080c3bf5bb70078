"""Makes small programs for tests that need a command on PATH to behave in a certain way."""

from pathlib import Path


def make_command(folder: Path, name: str, script: str) -> Path:
    """A shell script of this name in the folder, executable."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path
