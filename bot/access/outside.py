"""Names what leaves the machine that heed runs on: for better answers, through a platform, to a database elsewhere."""

from urllib.parse import urlsplit

from bot.config import Settings

LOCAL = frozenset({"", "localhost", "127.0.0.1", "::1"})
PLATFORM = "What is said on {name} goes through {name}'s servers."
TEACHER = "Poor answers, with their conversations and notes, go to {host}, which writes better ones."
DATABASE = "The database is on {host}."
COPIES = "Copies of what was learned are in {place}."


def outside(settings: Settings) -> list[str]:
    """Return a sentence about each thing that leaves this machine; none if everything stays."""
    platforms = {"Telegram": settings.telegram.token, "Discord": settings.discord.token}
    said = [PLATFORM.format(name=name) for name, token in platforms.items() if token is not None]
    hosts = ((TEACHER, settings.curriculum.url), (DATABASE, settings.database_url or ""))
    named = [(sentence, urlsplit(url).hostname or "") for sentence, url in hosts]
    copies = urlsplit(settings.object_store or "")
    said += [COPIES.format(place=f"{copies.scheme}://{copies.netloc}")] if copies.netloc else []
    return [sentence.format(host=host) for sentence, host in named if host not in LOCAL] + said
