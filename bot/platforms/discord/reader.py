"""Reads what `discord_events` stored back into inbound records. Pure; a payload that makes no sense says nothing."""

import re

from bot.events import (
    Author,
    ButtonPressed,
    CommandReceived,
    FormSubmitted,
    Inbound,
    MessageEdited,
    MessageReceived,
    Place,
    ReactionChanged,
)
from bot.platforms.discord.events import CREATED, INTERACTION, MALFORMED, PLATFORM, REACTED, UPDATED, Json

# A command that was written as a message: a name and nothing else behind the slash, so that "/etc/hosts" is none.
_WRITTEN = re.compile(r"/(\w{1,32})(?:\s+(.*))?", re.ASCII | re.DOTALL)


def read(payload: Json) -> list[Inbound]:
    """Return what a stored payload says; empty if heed has no use for it."""
    try:
        return _read(payload["type"], payload["data"])
    except MALFORMED:
        return []


def _read(event: str, data: Json) -> list[Inbound]:
    if event == CREATED:
        return _message(data)
    if event == UPDATED:
        return [MessageEdited(_author(data), _place(data), str(data["id"]), str(data["text"]))]
    if event in REACTED.values():
        return [_reaction(event, data)]
    return [_interaction(data)] if event == INTERACTION else []


def _message(data: Json) -> list[Inbound]:
    author, place, text, message_id = _author(data), _place(data), str(data["text"]), str(data["id"])
    if written := _WRITTEN.fullmatch(text):
        name, argument = written[1].lower(), (written[2] or "").strip()
        return [CommandReceived(author, place, message_id, name, argument, data["reply_to"])]
    return [MessageReceived(author, place, message_id, text, data["reply_to"])]


def _reaction(event: str, data: Json) -> ReactionChanged:
    emoji = (str(data["emoji"]),)
    author, place, message_id = _author(data), _place(data), str(data["message_id"])
    if event == REACTED["add"]:
        return ReactionChanged(author, place, message_id, added=emoji)
    return ReactionChanged(author, place, message_id, removed=emoji)


def _interaction(data: Json) -> Inbound:
    author, place, message_id, token = _author(data), _place(data), str(data["message_id"]), str(data["token"])
    match data["kind"]:
        case "command":
            return CommandReceived(author, place, message_id, str(data["name"]), str(data["text"]), None, token)
        case "press":
            return ButtonPressed(author, place, message_id, str(data["action"]), token)
        case "form":
            return FormSubmitted(author, place, message_id, str(data["action"]), str(data["text"]), token)
    raise ValueError(f"no such interaction: {data['kind']!r}")


def _author(data: Json) -> Author:
    return Author(PLATFORM, str(data["author"]["id"]), str(data["author"]["name"]))


def _place(data: Json) -> Place:
    return Place(PLATFORM, str(data["channel_id"]), bool(data["is_private"]), str(data.get("server", "")))
