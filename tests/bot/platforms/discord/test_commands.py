"""Tests of bot.platforms.discord.commands."""

from pathlib import Path

import pytest

from bot.channel import CommandMenu
from bot.platforms.discord.commands import completions, definition, is_same
from tests.bot.platforms.discord_bench import bench
from tests.contract.discord_server import Fault
from tests.contract.discord_world import APPLICATION

LEARNING = CommandMenu("learning", "learn from me", "on or off", choices=("on", "off"))
EXTRA = {"id": "7", "version": "1", "application_id": "1", "nsfw": False, "dm_permission": True}


def test_a_command_is_defined_with_its_argument() -> None:
    """What a command takes is one optional text, with proposals where there are choices."""
    (option,) = definition(LEARNING)["options"]
    assert (option["name"], option["required"], option["autocomplete"]) == ("text", False, True)
    assert definition(CommandMenu("help", "h"))["options"] == []
    assert definition(CommandMenu("note", "n", "text"))["options"][0]["autocomplete"] is False
    assert len(definition(CommandMenu("x", "y" * 300, "z" * 300))["description"]) == 100


def test_admin_commands_are_hidden_from_most() -> None:
    """A server's members do not see what only the operator can use."""
    assert definition(CommandMenu("stats", "s", is_admin=True))["default_member_permissions"] == "0"


@pytest.mark.parametrize(
    "change", [{"description": "other"}, {"options": []}, {"name": "teaching"}, {"default_member_permissions": "0"}]
)
def test_what_discord_adds_is_no_change(change: dict[str, object]) -> None:
    """Ids and defaults of Discord's do not count; any of our own words does."""
    wanted = [definition(LEARNING)]
    assert is_same(wanted, [wanted[0] | EXTRA])
    assert not is_same(wanted, [wanted[0] | EXTRA | change])
    assert not is_same(wanted, [])


@pytest.mark.parametrize(
    ("typed", "expected"), [("", ["on", "off"]), ("of", ["off"]), ("F", ["off"]), ("o", ["on", "off"]), ("x", [])]
)
def test_proposals_fit_what_was_typed(typed: str, expected: list[str]) -> None:
    """What begins so comes first, then what contains it."""
    found = completions([LEARNING], {"name": "learning", "options": [{"name": "text", "value": typed}]})
    assert [choice["value"] for choice in found] == expected


def test_there_are_never_more_than_25_proposals() -> None:
    """Discord takes 25, each of 100 characters at most; of an unknown command it gets none."""
    menu = CommandMenu("x", "y", choices=tuple(f"{n:03}" * 50 for n in range(40)))
    found = completions([menu], {"name": "x"})
    assert (len(found), max(len(choice["value"]) for choice in found)) == (25, 100)
    assert completions([menu], {"name": "z"}) == []


async def test_commands_that_could_not_be_set_are_set_later(quick_dir: Path) -> None:
    """A failure stops nothing else, and the next session tries again."""
    path = f"/applications/{APPLICATION}/commands"
    async with bench(quick_dir, is_started=False) as table:
        table.server.fail("GET", path, Fault(status=503))
        await table.start()
        await table.until(lambda: table.server.made("GET", path))
        await table.settled()
        assert table.server.world.commands == []
        table.server.sockets.forget()
        table.server.sockets.cut()
        await table.until(lambda: table.server.world.commands)
