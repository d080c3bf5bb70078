"""Paths that a model names: relative to the workspace, and inside of it once links are followed."""

from pathlib import Path, PurePosixPath

from bot.agent.inside.result import ToolFailed


def resolved(root: Path, name: str) -> Path:
    """Return the file or folder of that name. Raises ToolFailed if it is not in the workspace."""
    if not name or "\0" in name:
        raise ToolFailed("A path is needed.", "Name a file of the workspace, such as src/main.py.")
    if PurePosixPath(name).is_absolute() or name.startswith("~"):
        raise ToolFailed(f"{name} is an absolute path.", "Name it from the top of the workspace, such as src/main.py.")
    try:
        path = (root / name).resolve()
        path.exists()
    except (OSError, RuntimeError):  # too long, or a circle of links
        raise ToolFailed(f"{name} leads nowhere.", "Name a file of the workspace.") from None
    if not path.is_relative_to(root.resolve()):
        raise ToolFailed(f"{name} lies outside the workspace.", "Only what is in the workspace can be used.")
    return path


def named(root: Path, path: Path) -> str:
    """Return what a file of the workspace is called in it."""
    return path.relative_to(root).as_posix()
