"""The running heed that a command talks to: where it listens, by the settings, and the key it wants."""

from collections.abc import Callable
from typing import Annotated

import typer

from bot.cli.client import HeedClient
from bot.cli.console import settings

Url = Annotated[str, typer.Option("--url", help="Where heed runs, if not where the settings say.")]


def client_of(user: str, url: str) -> Callable[[], HeedClient]:
    """Return what connects a user to the heed at `url`, empty: where the settings say it is."""
    http = settings().http
    host = "127.0.0.1" if http.host in ("0.0.0.0", "::") else http.host  # noqa: S104  compared, not bound
    key = http.api_keys[user].get_secret_value() if user in http.api_keys else ""
    if not key and http.key is not None:
        key = http.key.get_secret_value()
    return lambda: HeedClient(url or f"http://{host}:{http.port}", user, key)
