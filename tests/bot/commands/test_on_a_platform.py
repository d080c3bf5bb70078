"""Commands, consent and access through the dispatcher: what people see, on a platform in memory."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bot.commands import admin, person
from bot.events import Author
from storage.kinds import AccessState
from storage.learning import versions
from storage.people import access, consent
from tests.bot.fake_channel import ANA, FakeChannel, FakePlatform
from tests.bot.messaging.test_dispatcher import Counter, actions
from tests.bot.platform_rig import rig
from tests.storage.new_data_dir import copy_to
from tests.storage.stored import all_ids

BOSS = Author("telegram", "1", "Boss")
ARGUMENTS = {
    "feedback": "too long",
    "note": "call me Ana",
    "forget": "everything",
    "allow": "7",
    "block": "8",
    "rollback": f"{ANA.account} 0",
}


@pytest.fixture
def desk_with(tmp_path: Path) -> Any:
    """Opens a dispatcher with the access settings given; account 1 is its admin."""
    copy_to(tmp_path / "data")

    @asynccontextmanager
    async def opened(**settings: Any) -> AsyncIterator[Counter]:
        chosen = {"admins": ("telegram:1",), "mode": "open"} | settings
        async with rig(tmp_path / "data", FakeChannel(FakePlatform()), access=chosen) as heed:
            yield Counter(heed)

    def open_desk(**settings: Any) -> AbstractAsyncContextManager[Counter]:
        return opened(**settings)

    return open_desk


@pytest.mark.parametrize("name", [*person.COMMANDS, *admin.COMMANDS])
async def test_every_command_is_answered(desk_with: Any, name: str) -> None:
    """An admin who has said something gets an answer to each of them."""
    async with desk_with() as counter:
        await counter.say("bees", author=BOSS)
        await counter.say("bees")
        answered = await counter.command(name, ARGUMENTS.get(name, ""), author=BOSS)
        assert answered, name
        assert "heed met an error" not in answered[0].text


@pytest.mark.parametrize("name", admin.COMMANDS)
async def test_an_admins_command_is_unknown_to_others(desk_with: Any, name: str) -> None:
    """The same sentence as for any command that does not exist."""
    async with desk_with() as counter:
        await counter.say("bees")
        (said,) = await counter.command(name)
        assert said.text == f"There is no command /{name}. /help lists them."


async def test_a_stranger_is_paired_by_an_admin(desk_with: Any) -> None:
    """Code, approval, word of it, and then the greeting; what was written before is not read."""
    async with desk_with(mode="pair") as counter:
        (shown,) = await counter.say("my secret")
        code = shown.text.partition("Your code is ")[2][:8]
        assert await counter.user_id() == ""
        said = await counter.command("pair", code, author=BOSS)
        texts = [message.text for message in said]
        assert any("is let in" in text for text in texts)
        greeting, answer = await counter.say("bees")
        assert actions(greeting) == ["learn:yes", "learn:no"]
        assert "bees" in answer.text
        assert all("my secret" not in message.text for message in counter.platform.messages)


async def test_a_blocked_person_gets_nothing(desk_with: Any) -> None:
    """Neither an answer nor a notice, whatever they do."""
    async with desk_with() as counter:
        _, answer = await counter.say("bees")
        await counter.command("block", ANA.account, author=BOSS)
        assert await counter.say("bees") == []
        assert await counter.command("help") == []
        assert await counter.press(answer, "again") == []


async def test_withdrawing_by_buttons(desk_with: Any) -> None:
    """/learning off asks, the button removes adapter and examples, and it is on record."""
    async with desk_with() as counter:
        greeting, answer = await counter.say("bees")
        await counter.press(greeting, "learn:yes")
        await counter.say("too long", reply_to=answer.message_id)
        (asked,) = await counter.command("learning", "off")
        (done,) = await counter.press(asked, "learn:withdraw")
        assert "is removed" in done.text
        user_id = await counter.user_id()
        database = counter.heed.database
        assert await database.read(lambda s: versions.history(s, user_id)) == []
        assert await counter.feedback() == []
        steps = await database.read(lambda s: consent.history(s, user_id))
        assert [step.choice for step in steps] == ["asked", "yes", "withdrawn"]


async def test_forgetting_by_buttons(desk_with: Any) -> None:
    """/forget asks, the button erases the person and their being let in; the answer still comes."""
    async with desk_with(mode="allow") as counter:
        await counter.heed.core.access.allow(ANA.platform, ANA.account, "operator")
        await counter.say("bees")
        (asked,) = await counter.command("forget")
        (done,) = await counter.press(asked, "forget:yes")
        assert "erased" in done.text
        database = counter.heed.database
        assert await database.read(all_ids) == []
        assert await database.read(lambda s: access.state(s, ANA.platform, ANA.account)) != AccessState.ALLOWED


async def test_files_are_attached(desk_with: Any) -> None:
    """/export brings the zip, /stats the picture."""
    async with desk_with() as counter:
        await counter.say("bees", author=BOSS)
        for name, start in (("export", b"PK"), ("stats", b"\x89PNG")):
            (said,) = await counter.command(name, author=BOSS)
            assert said.files[0].content.startswith(start)
