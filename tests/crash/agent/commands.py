"""The commands that the agent of a crash run proposes, and the words that go with them: each has a number of its own.

A command writes its number into a file before it does anything else, so that a look at the file says how often it ran.
Pure, and the same on both sides of the socket.
"""

import random
import re

LOG = "log"  # in the workspace
ENDLESS = "sleep 4731"
FAILS = "exit 3"
_ENDS = ("sleep 0.03", "sleep 0.03", FAILS)
_EDITED = "-edited"
_NUMBER = re.compile(rf"echo (\S+) >> {LOG}")


def command(number: int, *, may_hang: bool) -> str:
    """Return the command with a number: it ends soon, fails, or lasts until it is ended."""
    ends = (*_ENDS, ENDLESS, ENDLESS) if may_hang else _ENDS
    return f"echo {number} >> {LOG}; {random.Random(number).choice(ends)}"


def number_of(command: str) -> str:
    """Return the number of a command."""
    found = _NUMBER.search(command)
    assert found is not None, command
    return found[1]


def edited(command: str) -> str:
    """Return a command that a person puts in place of another; its number is new."""
    number = number_of(command)
    return f"echo {number}{_EDITED} >> {LOG}; true"


def is_edited(number: str) -> bool:
    """Return True for the number of a person's command."""
    return number.endswith(_EDITED)


def task(name: str, calls: int) -> str:
    """Return the words that ask for so many calls."""
    return f"{name}: {calls} calls"


def num_calls(task: str) -> int:
    """Return how many calls were asked for."""
    return int(task.rpartition(": ")[2].split()[0])
