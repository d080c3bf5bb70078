"""Messages as heed shows them on Discord: sent once, edited, without pings.

A message carries its nonce and asks Discord to enforce it, so sending it again within some minutes gives back the
first one instead of a second.
"""

from typing import Any

from bot.channel import Limits, Post, Rows
from bot.events import Place
from bot.platforms.discord.components import rows_payload
from bot.platforms.discord.events import Json
from bot.platforms.discord.rest import DiscordRest

SILENT: dict[str, Any] = {"parse": [], "replied_user": False}  # allowed mentions: none
NO_PREVIEWS = 1 << 2  # message flag SUPPRESS_EMBEDS
LIMITS = Limits(
    text_units=2000,
    measure=len,
    edit_interval_s=1.0,
    post_interval_s=1.0,
    burst=5,
    has_edits_forever=False,
    has_nonces=True,
)


class DiscordMessages:
    """Messages in channels, threads and private chats."""

    def __init__(self, rest: DiscordRest) -> None:
        self._rest = rest

    async def send(self, post: Post) -> str:
        """Send a message; its id. Raises ChannelError."""
        body = content(post.text, post.rows)
        if post.nonce:
            body |= {"nonce": post.nonce, "enforce_nonce": True}
        if post.reply_to:
            body["message_reference"] = {"message_id": post.reply_to, "fail_if_not_exists": False}
        path = "/channels/{channel_id}/messages"
        sent = await self._rest.call("POST", path, {"channel_id": post.place.external_id}, body=body, files=post.files)
        return str(sent["id"])

    async def edit(self, place: Place, message_id: str, text: str, rows: Rows) -> None:
        """Change a message. Raises ChannelError."""
        await self._change(place, message_id, content(text, rows))

    async def take_buttons(self, place: Place, message_id: str) -> None:
        """Take the buttons off a message. Raises ChannelError."""
        await self._change(place, message_id, {"components": []})

    async def _change(self, place: Place, message_id: str, body: Json) -> None:
        path = "/channels/{channel_id}/messages/{message_id}"
        keys = {"channel_id": place.external_id, "message_id": message_id}
        await self._rest.call("PATCH", path, keys, body=body)

    async def typing(self, place: Place) -> None:
        """Show for ten seconds that something is being written. Raises ChannelError."""
        await self._rest.call("POST", "/channels/{channel_id}/typing", {"channel_id": place.external_id})


def content(text: str, rows: Rows = ()) -> Json:
    """Return what a message shows: the whole of it, so that buttons that are not given go away."""
    return {"content": text, "components": rows_payload(rows), "allowed_mentions": SILENT, "flags": NO_PREVIEWS}
