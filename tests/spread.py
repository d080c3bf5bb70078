"""How the tests are spread over processes: file by file, and what takes twenty seconds to start is started in one."""

from functools import cache
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).parent.parent
STARTED_ONCE = ("tests.live_heed", "tests.engine.live")  # a whole heed, an engine by itself


@cache
def group(file: str) -> str:
    """Return the group a file's tests run in: all tests that name the same shared fixture, else the file alone."""
    text = (ROOT / file).read_text(encoding="utf-8")
    return next((module for module in STARTED_ONCE if f"from {module} import " in text), file)


class Spread(LoadScopeScheduling):
    """Gives each process one group after the other."""

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid.partition("::")[0])
