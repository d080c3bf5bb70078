"""The marks that git leaves in a file where two changes meet: found, and said.

Pure. Invariant: a line of equals signs, as headings have, is no conflict without the marks around it.
"""

BEGIN, MIDDLE, END = "<<<<<<<", "=======", ">>>>>>>"
MOST_LINES = 5  # that are named


def begun_at(text: str) -> list[int]:
    """Return the lines, counted from 1, at which conflicts begin."""
    if BEGIN not in text:
        return []
    found, start, has_middle = list[int](), 0, False
    for number, line in enumerate(text.splitlines(), 1):
        mark = line.split(" ", 1)[0]
        if mark == BEGIN:
            start, has_middle = number, False
        elif mark == MIDDLE and start:
            has_middle = True
        elif mark == END and has_middle:
            found.append(start)
            start, has_middle = 0, False
    return found


def about(name: str, text: str) -> str:
    """Return a sentence about the conflicts in a file, empty if there are none."""
    found = begun_at(text)
    if not found:
        return ""
    return f"{name} has {_counted(found)}: both sides stand in it between {BEGIN} and {END}."


def about_change(name: str, before: str, after: str) -> str:
    """Return a sentence about the conflicts in a file that is changed, empty if there are none before or after."""
    old, new = begun_at(before), begun_at(after)
    if not old and not new:
        return ""
    if not old:
        return f"With this change {name} has {_counted(new)}."
    left = f"{_counted(new)} left" if new else "none left"
    return f"{name} has {_counted(old)}; after this change there {'is' if len(new) == 1 else 'are'} {left}."


def _counted(lines: list[int]) -> str:
    named = ", ".join(map(str, lines[:MOST_LINES])) + (" ..." if len(lines) > MOST_LINES else "")
    is_one = len(lines) == 1
    return f"{len(lines)} unresolved conflict{'' if is_one else 's'} of git (line{'' if is_one else 's'} {named})"
