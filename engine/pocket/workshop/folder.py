"""A folder of the workshop: a few files of lines `key = value`, their copies under tests/, and a check.

Pure; `texts` is what stands on disk. Lines keep their order.
"""

import random
from dataclasses import dataclass, replace

from engine.pocket.workshop import names

CHECK = "check.sh"
TESTS = "tests/"
Lines = tuple[str, ...]


@dataclass(frozen=True)
class FileLine:
    """One line of a file."""

    key: str
    value: str

    def line(self, *, is_tight: bool = False) -> str:
        """Return it as written, with blanks around the sign or `is_tight` without."""
        return f"{self.key}={self.value}" if is_tight else f"{self.key} = {self.value}"


@dataclass(frozen=True)
class Folder:
    """Files by name, each with its lines, and what the check demands: (file, line), None if it is content."""

    files: dict[str, Lines]
    demand: tuple[str, FileLine] | None = None

    @property
    def texts(self) -> dict[str, str]:
        """Return every file's text, the check's included."""
        return {name: "".join(f"{line}\n" for line in lines) for name, lines in self.files.items()} | {
            CHECK: self.check_text
        }

    @property
    def check_text(self) -> str:
        """Return the check as a shell script: silent about what is right, it names what is wrong."""
        if self.demand is None:
            return "echo ok\n"
        name, wanted = self.demand
        pattern = f"^{wanted.key} *= *{wanted.value}$"
        return f'if grep -q "{pattern}" {name}; then echo ok; else echo "{self.complaint}"; exit 1; fi\n'

    @property
    def complaint(self) -> str:
        """Return what a check that fails says."""
        assert self.demand is not None
        name, wanted = self.demand
        return f"{name}: {wanted.key} must be {wanted.value}"

    @property
    def is_right(self) -> bool:
        """True if the check passes."""
        if self.demand is None:
            return True
        name, wanted = self.demand
        return any(line in (wanted.line(), wanted.line(is_tight=True)) for line in self.files[name])

    def with_lines(self, name: str, lines: Lines) -> "Folder":
        """Return the folder with a file's lines in place of what it had."""
        return replace(self, files={**self.files, name: lines})

    def keys(self, name: str) -> list[str]:
        """Return the keys of a file, in the order of its lines."""
        return [line.partition("=")[0].strip() for line in self.files[name]]

    def position(self, name: str, key: str) -> int:
        """Return the number of a key's line, counted from 1."""
        return self.keys(name).index(key) + 1

    def value(self, name: str, key: str) -> str:
        """Return what a key is set to."""
        return self.files[name][self.position(name, key) - 1].partition("=")[2].strip()


def drawn(rng: random.Random, *, is_held_out: bool = False) -> Folder:
    """Draw a folder of two or three files with two to four lines each; no key stands in two of them."""
    stems = names.apart(rng.choice((2, 2, 3)), names.stem, rng, is_held_out=is_held_out)
    keys = names.apart(4 * len(stems), names.key, rng, is_held_out=is_held_out)
    files = {}
    for stem in stems:
        name = f"{stem}.{rng.choice(names.SUFFIXES)}"
        mine = [keys.pop() for _ in range(rng.randint(2, 4))]
        files[name] = tuple(FileLine(k, names.value(rng, is_held_out=is_held_out)).line() for k in mine)
    return Folder(files)
