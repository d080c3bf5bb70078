"""One process that forks a new heed for every life, which saves each life the imports.

It reads lines "<data dir> <mode> <crash point> <number>" and writes the child's pid, then "gone <exit code>" when that
and all that it had begun have ended, the code being minus the signal where one has ended it. Linux gives it the
processes that an ended heed leaves behind as its own children, whatever session or group they are in: none is missed.
"""

import ctypes
import faulthandler
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

TELL = signal.SIGUSR1  # a life that gets it writes to standard error where each of its threads is
Live = Callable[[str, str, str, int], None]
_PR_SET_CHILD_SUBREAPER = 36


def fork_lives(live: Live) -> None:
    """Fork a life for every line."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "what a heed leaves behind cannot be seen here")
    for line in sys.stdin:
        data_dir, mode, point, number = line.split()
        pid = os.fork()
        if pid == 0:
            status = 1
            faulthandler.register(TELL)
            try:
                live(data_dir, mode, point, int(number))
                status = 0
            finally:
                os._exit(status)
        print(pid, flush=True)
        _, ended = os.waitpid(pid, 0)
        with suppress(ChildProcessError):  # there is none any more
            while True:
                os.wait()
        print(f"gone {os.waitstatus_to_exitcode(ended)}", flush=True)
