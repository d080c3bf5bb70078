"""Engines among others: a person has one at a time that teaches them, and gateways find it.

Ray reads its settings when it is imported, so they are made here, before any module of this package is.
"""

import os
import secrets

SECRET_SETTING = "RAY_AUTH_TOKEN"  # noqa: S105  a name; without it no process may call another one

IS_SECRET_GIVEN = bool(os.environ.get(SECRET_SETTING))  # by the operator: several machines need the same one

os.environ |= {
    "RAY_AUTH_MODE": "token",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # its ports are on the loopback address, as on those systems
}
if not IS_SECRET_GIVEN:
    os.environ[SECRET_SETTING] = secrets.token_hex(32)
