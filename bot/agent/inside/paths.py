"""Paths that a model names: relative to the workspace, and inside of it once links are followed."""

from pathlib import Path, PurePosixPath

from bot.agent.inside.result import ToolFailed

GIT = ".git"


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


def changeable(root: Path, name: str) -> Path:
    """Return the file of that name if it is none of git's own. Raises ToolFailed."""
    path = resolved(root, name)
    if is_gits(root, path):
        why = "its hooks and settings name programs that would run outside of the sandbox later"
        raise ToolFailed(f"{name} belongs to git itself, and {why}.", "Leave it as it is, and tell the person.")
    return path


def is_gits(root: Path, path: Path) -> bool:
    """Return True for a folder .git of the workspace, a file of that name, and all that lies below."""
    return any(part.casefold() == GIT for part in path.relative_to(root).parts)


def named(root: Path, path: Path) -> str:
    """Return what a file of the workspace is called in it."""
    return path.relative_to(root).as_posix()
