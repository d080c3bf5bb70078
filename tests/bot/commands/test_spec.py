"""bot.commands.spec: the records that commands share."""

import dataclasses

import pytest

from bot.channel import CommandMenu
from bot.commands.spec import CommandContext, CommandReply, CommandSpec
from bot.core.core import Core
from bot.events import Command
from tests.bot.conftest import Heed


@pytest.mark.parametrize("kind", [Core, CommandContext, CommandReply, CommandSpec, CommandMenu])
def test_records_cannot_be_changed(kind: type) -> None:
    """A handler gets its context and answers; it changes neither."""
    assert dataclasses.is_dataclass(kind)
    assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]


@pytest.mark.parametrize(("written", "argument"), [("", ""), ("  too long ", "too long"), ("\n5\t", "5")])
async def test_an_argument_has_no_blanks_around_it(heed: Heed, written: str, argument: str) -> None:
    """However it was typed."""
    core = heed.core
    given = {entry.name: None for entry in dataclasses.fields(CommandContext)}
    known = CommandContext(**(given | {"core": core, "command": Command("feedback", written)}))  # type: ignore[arg-type]
    assert known.argument == argument


def test_what_is_said_is_public_and_plain_unless_it_says_otherwise() -> None:
    """No files, no buttons, no lesson."""
    assert CommandReply("yes") == CommandReply("yes", None, None, (), (), is_private=False)
