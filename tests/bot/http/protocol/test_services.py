"""bot.http.protocol.services: the parts under one key."""

from tests.bot.conftest import Heed


async def test_commands_get_the_same_parts(heed: Heed) -> None:
    """The core that commands work with is made of the application's own parts."""
    core = heed.services.core
    assert (core.gateway, core.lessons, core.database) == (
        heed.services.gateway,
        heed.services.lessons,
        heed.services.database,
    )
