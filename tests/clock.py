"""A clock that goes on when a test says so."""


class Clock:
    """Time in seconds, called as a function or in the place of the module `time`."""

    def __init__(self, now_s: float = 0.0) -> None:
        self.now_s = now_s
        self.is_read = False

    def __call__(self) -> float:
        """Return the time."""
        self.is_read = True
        return self.now_s

    def monotonic(self) -> float:
        """Return the time."""
        return self()
