"""Discord's shards: several connections of one bot, which share the servers that it is on among them."""

from dataclasses import dataclass

from bot.platforms.discord.events import PLATFORM


@dataclass(frozen=True)
class Shard:
    """One of them; the first of one hears everything."""

    number: int = 0  # from 0
    count: int = 1

    @property
    def name(self) -> str:
        """The name of the connection among all of heed's."""
        return PLATFORM if self.is_alone else f"{PLATFORM}/{self.number}"

    @property
    def is_alone(self) -> bool:
        """True for one that hears everything."""
        return self.count == 1

    @property
    def is_first(self) -> bool:
        """True for the one that hears private chats, and does what the bot needs once."""
        return self.number == 0

    def hears(self, server: str) -> bool:
        """Return True for a server whose events come here, by Discord's formula; "" stands for private chats."""
        place = int(server) >> 22 if server.isdecimal() else 0
        return place % self.count == self.number
