"""Reads what `discord_events` stored back into inbound records. Pure; a payload that makes no sense says nothing."""

from collections.abc import Collection

from bot.events import Author, Place
from bot.inbound import Commanded, Edited, Filled, Inbound, Pressed, Reacted, Said
from bot.platforms.discord_events import CREATED, INTERACTION, MALFORMED, PLATFORM, REACTED, UPDATED, Json


def read(payload: Json, commands: Collection[str]) -> list[Inbound]:
    """What a stored payload says; empty where heed has no use for it."""
    try:
        return _read(payload["type"], payload["data"], commands)
    except MALFORMED:
        return []


def _read(event: str, data: Json, commands: Collection[str]) -> list[Inbound]:
    if event == CREATED:
        return _message(data, commands)
    if event == UPDATED:
        return [Edited(_author(data), _place(data), str(data["id"]), str(data["text"]))]
    if event in REACTED.values():
        return [_reaction(event, data)]
    return [_interaction(data)] if event == INTERACTION else []


def _message(data: Json, commands: Collection[str]) -> list[Inbound]:
    author, place, text, message_id = _author(data), _place(data), str(data["text"]), str(data["id"])
    name, _, argument = text.removeprefix("/").partition(" ")
    if text.startswith("/") and name.lower() in commands:
        return [Commanded(author, place, message_id, name.lower(), argument.strip(), data["reply_to"])]
    return [Said(author, place, message_id, text, data["reply_to"])]


def _reaction(event: str, data: Json) -> Reacted:
    emoji = (str(data["emoji"]),)
    author, place, message_id = _author(data), _place(data), str(data["message_id"])
    if event == REACTED["add"]:
        return Reacted(author, place, message_id, added=emoji)
    return Reacted(author, place, message_id, removed=emoji)


def _interaction(data: Json) -> Inbound:
    author, place, message_id, token = _author(data), _place(data), str(data["message_id"]), str(data["token"])
    match data["kind"]:
        case "command":
            return Commanded(author, place, message_id, str(data["name"]), str(data["text"]), None, token)
        case "press":
            return Pressed(author, place, message_id, str(data["action"]), token)
        case "form":
            return Filled(author, place, message_id, str(data["action"]), str(data["text"]), token)
    raise ValueError(f"no such interaction: {data['kind']!r}")


def _author(data: Json) -> Author:
    return Author(PLATFORM, str(data["author"]["id"]), str(data["author"]["name"]))


def _place(data: Json) -> Place:
    return Place(PLATFORM, str(data["channel_id"]), bool(data["is_private"]))
