"""heed among people on a Discord in memory: greeting, mentions, corrections, reactions, presses, commands, forms."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import discord
import pytest
from simcord import ChannelHandle, Env, InteractionResult, MemberActor, SetupError

from bot.messaging.request import NOT_YOURS
from tests.bot.platforms.discord.test_end_to_end import Talk, heed_on
from tests.bot.platforms.simulated_discord import NoServer, SimulatedGateway

pytestmark = pytest.mark.usefixtures("short_end")

BUTTONS = ["up", "down", "fix", "again"]


@dataclass
class Room:
    """A channel of a server with heed and two people in it."""

    talk: Talk
    env: Env
    channel: ChannelHandle
    ana: MemberActor
    ben: MemberActor

    def said(self, channel: ChannelHandle | None = None) -> list[discord.Message]:
        """What heed has said to everybody, oldest first."""
        return [m for m in (channel or self.channel).history() if m.author == self.env.bot.user]

    async def shows(
        self, words: str, channel: ChannelHandle | None = None, *, after: discord.Message | None = None
    ) -> discord.Message:
        """The newest message of heed with these words, once it is there."""
        oldest = after.id if after else 0

        def found() -> list[discord.Message]:
            return [m for m in self.said(channel) if words in m.content and m.id > oldest]

        await self.talk.server.until(found)
        return found()[-1]

    async def ask(self, text: str, person: MemberActor | None = None) -> discord.Message:
        """Mention heed with a question; the finished answer."""
        asked = await (person or self.ana).send(self.channel, f"{self.env.bot.user.mention} {text}")
        answer = await self.shows("know more?", after=asked)
        await self.talk.quiet()
        return answer

    async def lets_learn(self, person: MemberActor) -> None:
        """Somebody says hello, and yes to the greeting."""
        await self.ask("hello", person)
        pressed = await person.click(await self.shows("May I learn"), custom_id="learn:yes")
        await self.talk.server.until(lambda: pressed.followups)
        assert "learning is on" in pressed.followups[0].content
        assert pressed.followups[0].ephemeral
        await self.talk.quiet()

    async def ended(self, given: InteractionResult) -> str:
        """What a command or a press was answered in the end."""
        await self.talk.server.until(lambda: given.acknowledged)
        await self.talk.quiet()
        assert given.response is not None
        return given.response.content


@pytest.fixture
async def room(monkeypatch: pytest.MonkeyPatch, quick_dir: Path) -> AsyncIterator[Room]:
    """heed, Ana and Ben in one channel; nobody has said anything yet."""
    monkeypatch.setattr("bot.platforms.discord.channel.DiscordGateway", SimulatedGateway)
    async with heed_on(NoServer(), quick_dir) as talk:  # type: ignore[arg-type]
        gateway = talk.channel._gateway
        assert isinstance(gateway, SimulatedGateway)
        env = gateway.env
        guild = env.create_guild()
        channel = guild.create_text_channel("general")
        ana, ben = (guild.add_member(env.create_user(name)) for name in ("ana", "ben"))
        yield Room(talk, env, channel, ana, ben)


async def test_a_stranger_is_greeted_and_may_say_no(room: Room) -> None:
    """In private: the greeting comes with the first answer, once, and after a no a correction teaches nothing."""
    home = room.ana.user.dm_channel
    await room.ana.send_dm("bees")
    greeting, answer = await room.shows("May I learn", home), await room.shows("know more?", home)
    await room.talk.quiet()
    await room.ana.user.click(greeting, custom_id="learn:no")
    await room.shows("Learning is off", home)
    await room.ana.user.slash("feedback", text="too long")
    again = await room.shows("You asked about bees", home, after=answer)
    await room.talk.quiet()
    assert room.talk.engine.num_learned == 0
    assert not any("Learned: v" in message.content for message in room.said(home))
    await room.ana.user.send_dm("ants")
    await room.shows("You asked about ants", home, after=again)
    await room.talk.quiet()
    assert sum("May I learn" in message.content for message in room.said(home)) == 1


async def test_a_server_is_answered_where_heed_is_named(room: Room) -> None:
    """What people say to each other meets silence; a mention is answered as a reply that pings nobody."""
    await room.ben.send(room.channel, "nothing for heed")
    asked = await room.ana.send(room.channel, f"{room.env.bot.user.mention} wasps")
    answer = await room.shows("You asked about wasps")
    await room.talk.quiet()
    assert answer.reference is not None
    assert answer.reference.message_id == asked.id
    assert answer.mentions == []
    assert not any("nothing for heed" in message.content for message in room.said())


async def test_a_reply_corrects_and_undo_takes_it_back(room: Room) -> None:
    """The notice, then the changed answer; after the undo the old one."""
    await room.lets_learn(room.ana)
    answer = await room.ask("bees")
    await room.ana.send(room.channel, "too long", reply_to=answer)
    notice = await room.shows("Learned: v1", after=answer)
    again = await room.shows("You asked about bees", after=notice)
    await room.talk.quiet()
    assert again.content != answer.content
    await room.ana.click(notice, custom_id="undo")
    await room.shows("Undone", after=notice)
    await room.talk.quiet()
    assert (await room.ask("bees")).content == answer.content


async def test_a_reaction_put_on_taken_off_and_put_on_again(room: Room) -> None:
    """Each thumb down that is put on asks why; taking one off says nothing."""
    await room.lets_learn(room.ana)
    answer = await room.ask("bees")
    await room.ana.react(answer, "👎")
    question = await room.shows("What should be different?", after=answer)
    await room.talk.quiet()
    num_said = len(room.said())
    await room.ana.unreact(answer, "👎")
    await room.talk.quiet()
    assert len(room.said()) == num_said
    await room.ana.click(question, custom_id="why:0")
    await room.shows("Learned: v1", after=question)


async def test_a_reaction_of_somebody_else_teaches_nothing(room: Room) -> None:
    """Ben's thumb is not about what Ana wants."""
    answer = await room.ask("bees")
    num_said = len(room.said())
    await room.ben.react(answer, "👎")
    await room.talk.quiet()
    assert len(room.said()) == num_said


async def test_only_who_asked_may_press(room: Room) -> None:
    """Ben is told so where nobody else sees it; Ana's press counts."""
    await room.lets_learn(room.ana)
    answer = await room.ask("bees")
    assert [button.custom_id for row in answer.components for button in row.children] == BUTTONS
    pressed = await room.ben.click(answer, custom_id="down")
    await room.talk.server.until(lambda: pressed.followups)
    (told,) = pressed.followups
    assert (told.content, told.ephemeral) == (NOT_YOURS, True)
    await room.talk.quiet()
    assert not any("What should be different?" in message.content for message in room.said())
    await room.ana.click(answer, custom_id="down")
    await room.shows("What should be different?", after=answer)


async def test_a_form_asks_for_words(room: Room) -> None:
    """The button opens a form, and what is sent in it is the next answer."""
    await room.lets_learn(room.ana)
    answer = await room.ask("bees")
    opened = await room.ana.click(answer, custom_id="fix")
    await room.talk.server.until(lambda: opened.modal)
    await room.ana.submit_modal(opened, {"text": "say it like this: Buzz."})
    notice = await room.shows("Learned: v1", after=answer)
    assert (await room.shows("Buzz.", after=notice)).content


async def test_a_command_proposes_and_answers(room: Room) -> None:
    """What is typed is completed, and what is about a person is shown to that person alone."""
    assert {"help", "learning", "undo", "stats"} <= {str(c["name"]) for c in room.env.backend.commands[None].values()}
    proposed = await room.ana.autocomplete(room.channel, "learning", "text", "of")
    assert [choice["value"] for choice in proposed] == ["off"]
    given = await room.ana.slash(room.channel, "help")
    assert "/learning" in await room.ended(given)
    assert given.ephemeral
    noted = await room.ana.slash(room.channel, "note", text="call me Ana")
    assert "Noted" in await room.ended(noted)
    assert not noted.ephemeral
    assert "Ana:" in (await room.ask("bees")).content


async def test_admins_commands_are_not_offered_to_others(room: Room) -> None:
    """Discord itself keeps them from who is no admin of the server."""
    assert "stats" not in room.ana.available_commands(room.channel)
    with pytest.raises(SetupError, match="default-member-permissions"):
        await room.ana.slash(room.channel, "stats")
