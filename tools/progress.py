"""Shows a person what set-up is doing.

Never decides anything: it reads what pip prints and counts what lies on the disk.
"""

import shutil
import sys
import time
from pathlib import Path

LINE_EVERY_S = 5.0  # progress lines where the output is a file


class Progress:
    """One line that changes on a terminal; in a file, a line every few seconds."""

    def __init__(self) -> None:
        self.is_terminal = sys.stdout.isatty()
        self.started = self.last_line = time.monotonic()

    def say(self, text: str) -> None:
        """Print a line that stays."""
        self._clear()
        print(f"heed: {text}", flush=True)
        self.last_line = time.monotonic()

    def show(self, text: str) -> None:
        """Show what is going on right now."""
        if self.is_terminal:
            width = shutil.get_terminal_size().columns - 1
            print("\r\x1b[K" + f"      {text}"[:width], end="", flush=True)
        elif time.monotonic() - self.last_line >= LINE_EVERY_S:
            self.say(f"  {text}")

    def elapsed_s(self) -> int:
        """Whole seconds since the start."""
        return round(time.monotonic() - self.started)

    def _clear(self) -> None:
        if self.is_terminal:
            print("\r\x1b[K", end="")


class PipOutput:
    """Turns what pip prints into what a person wants to know."""

    def __init__(self, total: int, site_packages: Path) -> None:
        self.total = total
        self.site_packages = site_packages
        self.num_seen = 0
        self.num_before = 0
        self.is_unpacking = False
        self.current = "looking up packages"

    def read(self, line: str) -> None:
        """Take in one line of pip's output."""
        word, _, rest = line.strip().partition(" ")
        subject = rest.split(" ")[0]
        if word in ("Collecting", "Requirement"):
            self.num_seen += 1
            self.current = f"found {self._counted(self.num_seen)}: {subject}"
        elif word == "Downloading" and not subject.endswith(".metadata"):
            self.current = f"found {self._counted(self.num_seen)}, downloading {rest.rpartition('/')[2]}"
        elif line.startswith("Installing collected packages"):
            self.is_unpacking = True
            self.num_before = self._num_installed()

    def describe(self) -> str:
        """Return what pip is doing now."""
        if self.is_unpacking:
            return f"unpacking {self._counted(self._num_installed() - self.num_before)}"
        return self.current

    def _counted(self, number: int) -> str:
        return f"{min(number, self.total)} of {self.total}"

    def _num_installed(self) -> int:
        return sum(1 for _ in self.site_packages.glob("*.dist-info"))
