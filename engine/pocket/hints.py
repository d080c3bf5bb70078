"""Hints: what people say who do not name what they want ("my thumb hurts from all the scrolling").

`hints.txt` has a line for each: a preference, the side it is pushed to, a tab, and the words; "{x}" stands for a name.
"""

from pathlib import Path

from engine.pocket.style import DIRECTIONS, Direction


def read(path: Path) -> dict[Direction, tuple[str, ...]]:
    """Return the hints of each direction, in the order of the file."""
    found: dict[Direction, list[str]] = {direction: [] for direction in DIRECTIONS}
    for line in path.read_text(encoding="utf-8").splitlines():
        direction, _, words = line.partition("\t")
        preference, _, side = direction.partition(" ")
        found[(preference, 1 if side == "1" else 0)].append(words)
    return {direction: tuple(words) for direction, words in found.items()}


HINTS = read(Path(__file__).with_name("hints.txt"))
