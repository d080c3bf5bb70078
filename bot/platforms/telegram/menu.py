"""The menu of commands on Telegram: one list for private chats, one for groups, one for each admin.

A list is set only if Telegram does not have it already.
"""

import re
from collections.abc import Sequence

from telegram import (
    Bot,
    BotCommand,
    BotCommandScope,
    BotCommandScopeAllGroupChats,
    BotCommandScopeAllPrivateChats,
    BotCommandScopeChat,
)
from telegram.constants import BotCommandLimit
from telegram.error import BadRequest

from bot.channel import CommandMenu

_NAME = re.compile(r"[a-z0-9_]{1,32}")


async def sync(bot: Bot, commands: Sequence[CommandMenu], admins: Sequence[str]) -> int:
    """Set what differs; how many lists that were. Raises TelegramError."""
    num_set = 0
    for scope, wanted in lists(commands, admins):
        if list(await bot.get_my_commands(scope)) != wanted:
            num_set += await _set(bot, scope, wanted)
    return num_set


def lists(commands: Sequence[CommandMenu], admins: Sequence[str]) -> list[tuple[BotCommandScope, list[BotCommand]]]:
    """Return the lists by scope. What is private is not offered in groups, because all members would see its answer."""
    common = [command for command in commands if not command.is_admin]
    return [
        (BotCommandScopeAllPrivateChats(), entries(common)),
        (BotCommandScopeAllGroupChats(), entries([command for command in common if not command.is_private])),
        *((BotCommandScopeChat(int(admin)), entries(commands)) for admin in admins),
    ]


def entries(commands: Sequence[CommandMenu]) -> list[BotCommand]:
    """Return the commands as Telegram takes them."""
    named = [command for command in commands if _NAME.fullmatch(command.name)]
    shown = [BotCommand(command.name, _description(command)) for command in named]
    return shown[: BotCommandLimit.MAX_COMMAND_NUMBER]


def _description(command: CommandMenu) -> str:
    text = f"{command.argument_hint}: {command.summary}" if command.argument_hint else command.summary
    return text[: BotCommandLimit.MAX_DESCRIPTION] or command.name


async def _set(bot: Bot, scope: BotCommandScope, wanted: list[BotCommand]) -> int:
    try:
        await bot.set_my_commands(wanted, scope)
    except BadRequest:
        if isinstance(scope, BotCommandScopeChat):
            return 0  # an admin who has not written to the bot yet: set at a later start
        raise
    return 1
