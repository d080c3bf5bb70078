"""The platforms heed knows, and which of them are switched on: those with a token."""

from bot.channel import Channel
from bot.commands import person
from bot.config import Settings
from storage.database import Database


def switched_on(settings: Settings, database: Database) -> list[Channel]:
    """Return the channels of each platform that has a token, one for each of its connections.

    Raises StartError if a token cannot be one.
    """
    made: list[Channel] = []
    menu = person.menu()
    if settings.telegram.token is not None:
        from bot.platforms.telegram.channel import TelegramChannel  # brings its library along

        made.append(TelegramChannel(settings.telegram, menu, admins=_numbers(settings, "telegram")))
    if settings.discord.token is not None:
        from bot.platforms.discord.channel import DiscordChannel
        from bot.platforms.discord.shard import Shard

        shards = [Shard(number, settings.discord.shards) for number in range(settings.discord.shards)]
        made += [DiscordChannel(settings.discord, menu, database, shard=shard) for shard in shards]
    return made


def _numbers(settings: Settings, platform: str) -> list[str]:
    """Return the admins' account numbers on a platform."""
    named = (admin.partition(":") for admin in settings.access.admins)
    return [number for name, _, number in named if name == platform]
