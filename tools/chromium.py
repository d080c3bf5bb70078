"""Makes sure that there is a Chromium for the browser tests: `make test` starts here.

Takes one from PATH, else installs Debian's as root, else says what to install and exits with code 2.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator

from tools import debian

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
START_TIMEOUT_S = 60


def candidates() -> Iterator[str]:
    """Yield the Chromium-like browsers on PATH."""
    for name in NAMES:
        path = shutil.which(name)
        if path is not None:
            yield path


def does_run(path: str) -> bool:
    """Return True if the browser prints its version (Ubuntu's `chromium-browser` may only tell to install a snap)."""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, timeout=START_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def find() -> str | None:
    """Return the path of the first browser on PATH that runs."""
    return next((path for path in candidates() if does_run(path)), None)


def main() -> None:
    """Find a browser or install one."""
    if find() is None and not (debian.install("chromium") and find()):
        sys.exit(no_browser())


def no_browser() -> int:
    """Say what is missing; returns the exit code."""
    print("heed: the browser tests need Chromium on PATH: install it (apt install chromium)", file=sys.stderr)
    return 2


if __name__ == "__main__":
    main()
