"""How long to wait after failures in a row: up to twice as long each time, with jitter, at most a minute."""

import random
from collections.abc import Callable

MAX_BACKOFF_S = 60.0
MIN_BACKOFF_S = 0.1
MAX_DOUBLINGS = 10  # far beyond the longest wait; a platform may be away for days, and 2.0**1024 is no number

Jitter = Callable[[float, float], float]


def backoff_s(num_failures: int, jitter: Jitter = random.uniform) -> float:
    """Seconds to wait after this many failures in a row."""
    return jitter(MIN_BACKOFF_S, min(2.0 ** min(num_failures, MAX_DOUBLINGS), MAX_BACKOFF_S))
