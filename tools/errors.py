"""The errors of the set-up.

SetupError              why, and what to do about it
└── NothingFoundError   pip's indexes do not have the package: check the network, or name another index
"""


class SetupError(Exception):
    """Set-up cannot go on; the text says why and what to do about it."""


class NothingFoundError(SetupError):
    """pip's indexes do not have the package in this version."""
