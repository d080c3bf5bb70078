"""Attacks on the machine behind an agent's sandbox: the written ones of attacks.tsv, and more drawn from their parts.

Each is a call of a tool as a model could write it, and what is run in the sandbox before. In both @canary stands for a
file outside that every account may read and write, @folder for its folder, @port for a port of this machine that
listens, and @pid for the process that starts the tool.
"""

import csv
import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

TABLE = Path(__file__).with_name("attacks.tsv")
OUT = ("@canary", "/proc/self/root@canary", "/proc/1/root@canary", "/proc/self/cwd/../../..@canary", "./..//..@canary")
INSIDE = ("link", "folder/file", "../../../../../../..@canary", "~/../..@canary", "%2e%2e@canary", "a/../..@canary")
BEFORE = ("ln -s @canary link", "mkdir -p folder a; ln -s {} folder/file", "ln -s / folder", "true")
READING = ("cat", "head -c 99")
HARMING = ("tee", "rm -f", "truncate -s 0", "chmod 0", "touch", "cp /dev/null", "ln -sf /dev/null", "sed -i d")


@dataclass(frozen=True)
class Attack:
    """A call with its arguments as JSON, and a command before it, empty for none."""

    name: str
    tool: str
    before: str
    arguments: str

    def on(self, known: Mapping[str, object]) -> "Attack":
        """Return it with what its marks stand for."""
        before, arguments = self.before, self.arguments
        for mark, value in known.items():
            before, arguments = before.replace(f"@{mark}", str(value)), arguments.replace(f"@{mark}", str(value))
        return Attack(self.name, self.tool, before, arguments)


def written() -> list[Attack]:
    """The attacks of the table."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    return [Attack(**row) for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)]


def drawn(count: int, seed: int = 0) -> Iterator[Attack]:
    """Yield attacks put together from ways to name the file, to reach it and to harm it."""
    rng = random.Random(seed)
    for number in range(count):
        path = rng.choice(OUT)
        before, target = rng.choice(BEFORE).format(path), rng.choice((path, rng.choice(INSIDE)))
        harm = "; ".join(f"{rng.choice(READING + HARMING)} {where} <<< owned" for where in (target, rng.choice(INSIDE)))
        calls = {
            "bash": {"command": harm},
            "read": {"path": target},
            "write": {"path": target, "content": "owned"},
            "edit_lines": {"path": target, "start": 1, "end": 1, "content": "owned"},
        }
        tool = rng.choice([*calls])
        yield Attack(f"drawn {number}", tool, before, json.dumps(calls[tool]))
