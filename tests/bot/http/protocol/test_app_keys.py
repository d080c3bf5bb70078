"""bot.http.protocol.app_keys: the objects that handlers find in the application."""

from bot.http.protocol.app_keys import CORE, PLATFORMS, Platforms
from bot.http.server import application
from tests.bot.conftest import Heed


async def test_handlers_find_the_core_and_the_platforms(heed: Heed) -> None:
    """The application holds the very objects that it was made with."""
    platforms = Platforms(lambda: {"telegram": "ok"})
    app = application(heed.core, platforms)
    assert (app[CORE] is heed.core, app[PLATFORMS] is platforms) == (True, True)
