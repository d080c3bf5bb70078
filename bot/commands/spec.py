"""The records that slash commands share: what a command works with and what it answers."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bot.channel import Rows
from bot.core.core import Core
from bot.core.lessons import LessonResult
from bot.events import Author, Command, Place
from storage.tables import Chat, Completion, User


@dataclass(frozen=True)
class CommandContext:
    """A command with its author and its place."""

    core: Core
    user_id: str
    author: Author
    place: Place
    chat: Chat | None  # None: nothing was said there yet
    command: Command
    is_admin: bool = False
    is_stranger: bool = False  # heed has no row of them yet

    @property
    def argument(self) -> str:
        """The text after the command's name."""
        return self.command.argument.strip()

    @property
    def chat_id(self) -> str:
        """The conversation's id, empty if nothing was said there yet."""
        return self.chat.id if self.chat else ""

    async def person(self) -> str:
        """Return the id of the person, made now if they are a stranger: what the command says is kept."""
        return await self.core.gateway.person(self.author) if self.is_stranger else self.user_id

    async def user(self) -> User:
        """Return the person's row as it is now; that of a stranger is not stored."""
        return await (
            self.core.gateway.known(self.author) if self.is_stranger else self.core.gateway.user(self.user_id)
        )


@dataclass(frozen=True)
class CommandReply:
    """The answer to a command. `is_private`: shown to the asker alone, if the platform can; `is_table`: in columns."""

    text: str
    lesson: LessonResult | None = None
    answer: Completion | None = None
    files: tuple[tuple[str, bytes], ...] = ()
    buttons: Rows = ()
    is_private: bool = False
    is_table: bool = False


@dataclass(frozen=True)
class CommandSpec:
    """One line of the table of commands."""

    usage: str
    summary: str
    handler: Callable[[CommandContext], Awaitable[CommandReply]]
    choices: tuple[str, ...] = ()
    is_private: bool = False  # shown to the asker alone, if the platform can
    is_secret: bool = False  # not shown at all if others would read it
    is_table: bool = False  # its answer has columns
