"""Hints: what people say who do not name what they want ("my thumb hurts from all the scrolling").

`hints.txt` has a line for each: a preference, the side it is pushed to, a tab, and the words; "{x}" stands for a name.
"""

from pathlib import Path

from engine.pocket.listed import lines_by_name
from engine.pocket.style import DIRECTIONS, Direction


def read(path: Path) -> dict[Direction, tuple[str, ...]]:
    """Return the hints of each direction, in the order of the file."""
    found = lines_by_name(path)
    return {direction: found.get(f"{direction[0]} {direction[1]}", ()) for direction in DIRECTIONS}


HINTS = read(Path(__file__).with_name("hints.txt"))
