"""What a command works with and what it answers: the records that `person` and `admin` share."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.access.accounts import AccessPolicy
from bot.access.consent import ConsentFlow
from bot.channel import Rows
from bot.config import Settings
from bot.core.gateway import Gateway
from bot.core.lessons import LearningService, LessonResult
from bot.events import Author, Command, Place
from storage.database import Database
from storage.tables import Chat, Completion

if TYPE_CHECKING:
    from engine.engine import Engine


@dataclass(frozen=True)
class Core:
    """The parts a command works with."""

    gateway: Gateway
    lessons: LearningService
    engine: "Engine"
    database: Database
    settings: Settings
    access: AccessPolicy
    consent: ConsentFlow


@dataclass(frozen=True)
class CommandContext:
    """Who said a command, and where."""

    core: Core
    user_id: str
    author: Author
    place: Place
    chat: Chat
    command: Command
    is_admin: bool = False

    @property
    def argument(self) -> str:
        """What was written after the command's name."""
        return self.command.argument.strip()


@dataclass(frozen=True)
class CommandReply:
    """What heed answers to a command. `is_private`: to the asker alone, where the platform can."""

    text: str
    lesson: LessonResult | None = None
    answer: Completion | None = None
    files: tuple[tuple[str, bytes], ...] = ()
    buttons: Rows = ()
    is_private: bool = False


@dataclass(frozen=True)
class CommandSpec:
    """One line of the table of commands."""

    usage: str
    summary: str
    handler: Callable[[CommandContext], Awaitable[CommandReply]]
    choices: tuple[str, ...] = ()
    is_private: bool = False  # shown to the asker alone, where the platform can
    is_secret: bool = False  # not shown at all where others would read it


@dataclass(frozen=True)
class CommandMenu:
    """One command as a platform's menu shows it. `argument_hint` is empty where it takes none."""

    name: str
    summary: str
    argument_hint: str = ""
    is_admin: bool = False
    is_private: bool = False
    choices: tuple[str, ...] = ()
