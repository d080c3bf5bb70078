"""Events of Discord's gateway and history, cut down to what heed keeps: plain JSON for the inbox.

A stored payload is `{"type": ..., "data": ...}` and stands alone: whether a message was meant for heed is decided here,
where the bot's own id is known. What is not for heed (bots, bystanders, system messages) is never stored. Update ids
name the thing and not its delivery, so that a replay or a look into history adds nothing; they outlive the erasure of a
person, so none of them has the number of an account.
"""

import hashlib
from typing import Any, Literal

from storage.tables import Inbox

PLATFORM = "discord"
CREATED, UPDATED, INTERACTION = "MESSAGE_CREATE", "MESSAGE_UPDATE", "INTERACTION_CREATE"
REACTED = {"add": "MESSAGE_REACTION_ADD", "remove": "MESSAGE_REACTION_REMOVE"}
SEEN = "SEEN"  # a key without content: this is accounted for
TALK = frozenset({0, 19})  # ordinary messages and replies; the other types are notices of Discord's
COMMAND, PRESS, AUTOCOMPLETE, FORM = 2, 3, 4, 5  # types of interactions

MARK_BYTES = 12

Json = dict[str, Any]
MALFORMED = (KeyError, TypeError, ValueError, AttributeError)  # what reading a malformed event raises


def message_row(event: str, message: Json, bot_id: str, *, is_private: bool | None = None) -> Inbox | None:
    """Return the inbox row of a message, None if it is not for heed. Raises if it is malformed."""
    author, stamp = message["author"], message.get("edited_timestamp")
    is_own_words = not author.get("bot") and not message.get("webhook_id") and message.get("type", 0) in TALK
    has_files = event == CREATED and bool(message.get("attachments") or message.get("sticker_items"))
    if not is_own_words or (event == UPDATED and not stamp) or not (message["content"] or has_files):
        return None
    private = message.get("guild_id") is None if is_private is None else is_private
    if not (private or _is_addressed(message, bot_id)):
        return None
    data: Json = {
        "id": str(message["id"]),
        "channel_id": str(message["channel_id"]),
        "is_private": private,
        "server": server_of(message),
        "author": _person(author),
        "text": _spoken(str(message["content"]), bot_id),
        "reply_to": _reply_to(message),
    }
    update_id = f"m:{data['id']}" if event == CREATED else f"e:{data['id']}:{stamp}"
    return row(bot_id, update_id, data["author"]["id"], {"type": event, "data": data})


def interaction_row(interaction: Json, bot_id: str, token: str) -> Inbox:
    """Return the inbox row of a slash command, a pressed button or a sent form. Raises if it is malformed."""
    kind, said = interaction["type"], interaction["data"]
    data: Json = {
        "id": str(interaction["id"]),
        "channel_id": str(interaction["channel_id"]),
        "is_private": interaction.get("guild_id") is None,
        "server": server_of(interaction),
        "author": person_of(interaction),
        "message_id": str((interaction.get("message") or interaction)["id"]),
        "token": token,
    }
    if kind == COMMAND:
        data |= {"kind": "command", "name": str(said["name"]), "text": _argument(said)}
    elif kind == PRESS:
        data |= {"kind": "press", "action": str(said["custom_id"])}
    else:
        data |= {"kind": "form", "action": str(said["custom_id"]), "text": _filled(said)}
    return row(bot_id, f"i:{data['id']}", data["author"]["id"], {"type": INTERACTION, "data": data})


def reaction_row(change: Literal["add", "remove"], reaction: Json, bot_id: str, number: int) -> Inbox:
    """Return the inbox row of an emoji put on a message or taken off it, for the `number`th time."""
    message, user = str(reaction["message_id"]), str(reaction["user_id"])
    person = (reaction.get("member") or {}).get("user") or {"id": user}
    data: Json = {
        "message_id": message,
        "channel_id": str(reaction["channel_id"]),
        "is_private": bool(reaction["is_private"] if "is_private" in reaction else reaction.get("guild_id") is None),
        "server": server_of(reaction),
        "author": _person(person),
        "emoji": shown_emoji(reaction["emoji"]),
    }
    update_id = f"r:{change}:{message}:{mark_of(message, user)}:{emoji_key(reaction['emoji'])}:{number}"
    return row(bot_id, update_id, user, {"type": REACTED[change], "data": data})


def row(bot_id: str, update_id: str, account: str, payload: Json) -> Inbox:
    """Return an inbox row of this platform; its chat and server are those of the payload."""
    data = payload["data"]
    return Inbox(
        platform=PLATFORM, bot_id=bot_id, update_id=update_id, chat_key=data["channel_id"], server=data["server"],
        account=account, payload=payload,
    )  # fmt: skip


def seen_row(bot_id: str, update_id: str, chat: str, account: str = "", server: str = "") -> Inbox:
    """Return an inbox row that says only that an update is accounted for."""
    payload = {"type": SEEN, "data": {"channel_id": chat, "server": server}}
    return row(bot_id, update_id, account, payload)


def server_of(event: Json) -> str:
    """Return the server on which something happened, empty in private."""
    return str(event.get("guild_id") or "")


def mark_of(message_id: str, account: str) -> str:
    """Return what stands for a person in the keys of reactions to one message."""
    return hashlib.blake2s(f"{message_id}:{account}".encode(), digest_size=MARK_BYTES).hexdigest()


def person_of(interaction: Json) -> Json:
    """Return the author of an interaction: a member in a server, a user in private."""
    return _person((interaction.get("member") or interaction)["user"])


def emoji_key(emoji: Json) -> str:
    """Return an emoji as update ids name it: Unicode itself, or a server's emoji by its id."""
    return str(emoji.get("id") or emoji["name"])


def emoji_of(key: str) -> Json:
    """Return the emoji that a key names; of a server's emoji only the id is known."""
    return {"id": key, "name": key} if key.isascii() and key.isdigit() else {"id": None, "name": key}


def shown_emoji(emoji: Json) -> str:
    """Return an emoji as people read it."""
    return f":{emoji['name']}:" if emoji.get("id") else str(emoji["name"])


def _person(user: Json) -> Json:
    return {"id": str(user["id"]), "name": str(user.get("global_name") or user.get("username") or "")}


def _is_addressed(message: Json, bot_id: str) -> bool:
    answered = message.get("referenced_message") or {}
    is_answer = str((answered.get("author") or {}).get("id")) == bot_id
    return is_answer or any(str(user["id"]) == bot_id for user in message.get("mentions") or ())


def _reply_to(message: Json) -> str | None:
    reference = message.get("message_reference") or {}
    is_reply = reference.get("type", 0) == 0 and reference.get("message_id") is not None
    return str(reference["message_id"]) if is_reply else None


def _spoken(text: str, bot_id: str) -> str:
    for mention in (f"<@{bot_id}>", f"<@!{bot_id}>"):
        text = text.replace(mention, "")
    return text.strip()


def _argument(said: Json) -> str:
    return " ".join(str(option["value"]) for option in said.get("options") or () if "value" in option)


def _filled(said: Json) -> str:
    boxes = [box for row in said["components"] for box in (row.get("components") or [row.get("component") or {}])]
    return "\n".join(str(box["value"]) for box in boxes if "value" in box)
