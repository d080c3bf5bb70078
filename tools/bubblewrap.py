"""Makes sure that there is bubblewrap for the tests of the agent's sandbox: `make test` starts here.

Takes it from PATH, else installs Debian's as root, else says what to install and exits with code 2.
"""

import shutil
import sys

from tools import debian

NAME = "bwrap"


def main() -> None:
    """Find bubblewrap or install it."""
    if shutil.which(NAME) is None and not (debian.install("bubblewrap") and shutil.which(NAME)):
        sys.exit(none_found())


def none_found() -> int:
    """Say what is missing; returns the exit code."""
    print(
        "heed: the tests of the agent's sandbox need bubblewrap: install it (apt install bubblewrap)", file=sys.stderr
    )
    return 2


if __name__ == "__main__":
    main()
