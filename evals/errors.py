"""The errors that keep a measurement from running, one leaf per remedy.

    EvalError
    ├── ArgumentError (ValueError)       a key=value argument is wrong: names the key and what it wants
    ├── StartFailed (RuntimeError)       the heed to measure did not become ready
    ├── Unreachable (ConnectionError)    no heed answers at the address, or it went away
    └── Refused (RuntimeError)           heed answered a call with an error

A figure that misses its target is a result, not an error.
"""


class EvalError(Exception):
    """Root of every error the measurements raise on purpose."""


class ArgumentError(EvalError, ValueError):
    """A key=value argument is wrong."""


class StartFailed(EvalError, RuntimeError):
    """The heed to measure did not become ready."""


class HeedUnreachable(EvalError, ConnectionError):
    """No heed answers at the address."""


class CallRefused(EvalError, RuntimeError):
    """heed answered a call with an error; `status` is the HTTP status, `code` names the error, if the answer does."""

    def __init__(self, message: str, status: int, code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class MeasurementFailed(EvalError, RuntimeError):
    """Something other than what is measured has happened."""
