"""bot.cli.connection: the heed that a command talks to."""

import pytest
from pydantic import SecretStr

from bot.cli import connection
from bot.config import HttpSettings, Settings


@pytest.mark.parametrize(
    ("http", "url", "expected"),
    [
        (HttpSettings(port=8090), "", "http://127.0.0.1:8090"),
        (HttpSettings(host="::", port=8090, api_keys={"ana": SecretStr("x" * 16)}), "", "http://127.0.0.1:8090"),
        (HttpSettings(), "http://elsewhere:1/", "http://elsewhere:1"),
    ],
)
async def test_where_heed_is_and_who_asks(
    monkeypatch: pytest.MonkeyPatch, http: HttpSettings, url: str, expected: str
) -> None:
    """Where the settings say, unless told otherwise; an address that stands for all is this machine's."""
    monkeypatch.setattr(connection, "settings", lambda: Settings(http=http))
    async with connection.client_of("ana", url)() as client:
        assert (client.url, client.user) == (expected, "ana")


async def test_the_persons_own_key_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the key of heed's own commands."""
    own, general = SecretStr("ana" * 8), SecretStr("all" * 8)
    http = HttpSettings(api_keys={"ana": own}, key=general)
    monkeypatch.setattr(connection, "settings", lambda: Settings(http=http))
    for user, key in (("ana", own), ("ben", general)):
        async with connection.client_of(user, "")() as client:
            assert client._session.headers["Authorization"] == f"Bearer {key.get_secret_value()}"
