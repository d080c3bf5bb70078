"""A data directory after a first start and a clean stop: migrating takes a tenth of a second, copying it nothing."""

import asyncio
import atexit
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from storage.database import Database


@cache
def new_data_dir() -> Path:
    """The one of this process; tests work on copies of it."""
    folder = Path(tempfile.mkdtemp(prefix="heed-new-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with ThreadPoolExecutor(1) as elsewhere:  # in this thread a loop may be running
        elsewhere.submit(lambda: asyncio.run(Database.open(folder).close())).result()
    return folder


def copy_to(data_dir: Path) -> Path:
    """A data directory of a test's own; the folder may be there already."""
    return Path(shutil.copytree(new_data_dir(), data_dir, dirs_exist_ok=True))
