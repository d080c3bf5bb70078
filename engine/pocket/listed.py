"""Lists of words beside the code: lines, or lines with the name of what they belong to, a tab before them."""

from pathlib import Path


def lines(path: Path) -> tuple[str, ...]:
    """Return the lines of a file."""
    return tuple(path.read_text(encoding="utf-8").splitlines())


def lines_by_name(path: Path) -> dict[str, tuple[str, ...]]:
    """Return the lines of a file by the name before their tab, in their order."""
    found: dict[str, list[str]] = {}
    for line in lines(path):
        name, _, words = line.partition("\t")
        found.setdefault(name, []).append(words)
    return {name: tuple(words) for name, words in found.items()}
