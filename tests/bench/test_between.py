"""The heed between an instant model and an instant platform."""

from bench.between import running
from bench.instant import update


async def test_a_message_goes_all_the_way() -> None:
    """Taken, asked of the model, shown; a stranger needs no code."""
    async with running(2) as heed:
        assert await heed.channels.inbox.take(update(7, 1))
        await heed.channel.until_shown(1)
        assert set(heed.engine.asked_s) == {"7-1"}
        assert set(heed.channel.shown_s) == {"7"}
