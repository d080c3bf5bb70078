"""What an admin can ask heed to do with a slash: figures, people, access, and the updates of everybody.

Reached through `bot.commands.run` only, which says to anybody else that there is no such command.
"""

from bot.context import CommandSpec, Context, Said
from bot.errors import InvalidField


async def _pair(context: Context) -> Said:
    code = _one_word(context, "/pair takes the 8-character code")
    paired = await context.core.access.pair(code, _name(context))
    name = paired.display_name or "somebody"
    return Said(f"{name} ({paired.platform}:{paired.account}) is let in")


def _one_word(context: Context, usage: str) -> str:
    words = context.argument.split()
    if len(words) != 1:
        raise InvalidField(usage, "text")
    return words[0]


def _name(context: Context) -> str:
    return f"{context.author.platform}:{context.author.account}"


COMMANDS: dict[str, CommandSpec] = {
    "pair": CommandSpec("/pair <code>", "let in who was shown this code", _pair, (), True, True),
}
