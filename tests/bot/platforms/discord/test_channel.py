"""Tests of bot.platforms.discord.channel: the channel as the core uses it, on the real discord.py."""

import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from bot.channel import Button, File, Gone, NotOffered, Post, Refused, SlowDown, Unreachable
from bot.errors import StartError
from bot.events import (
    Author,
    ButtonPressed,
    CommandReceived,
    FormSubmitted,
    MessageEdited,
    MessageReceived,
    Place,
    ReactionChanged,
)
from bot.platforms.discord.channel import account_in
from tests.bot.platforms.discord_bench import HASTE, PACE, Bench, bench
from tests.contract.discord_server import Fault
from tests.contract.discord_world import ANA, BEN, BOT, CANNOT_SEND, NO_ACCESS, TOKEN, Refusal
from tests.patience import PATIENCE_S

ME = Author("discord", "111", "Ana")
DM, ROOM = Place("discord", "500"), Place("discord", "600", is_private=False)
MENTION = f"<@{BOT['id']}>"
POSTS = "/channels/500/messages"


@pytest_asyncio.fixture
async def table(quick_dir: Path) -> AsyncIterator[Bench]:
    """A channel that is connected, with a private chat and a server's channel."""
    async with bench(quick_dir, is_started=False) as made:
        made.server.dm()
        made.server.text()
        await made.start()
        yield made


async def test_a_private_message_arrives(table: Bench) -> None:
    """What a person writes in private is taken under the message's id and read as said to heed."""
    message = await table.server.say(table.server.dm(), "hello")
    await table.until(lambda: table.keys)
    assert table.keys == [f"m:{message['id']}"]
    assert (table.taken[-1].account, table.taken[-1].chat_key) == ("111", "500")
    assert table.said == [MessageReceived(ME, DM, message["id"], "hello")]


async def test_on_a_server_only_what_is_meant_for_heed_is_taken(table: Bench) -> None:
    """A mention and a reply to heed are taken, a bystander's and a bot's words are not stored at all."""
    room = table.server.text()
    answer = await table.channel.post(Post(ROOM, "a llama"))
    await table.server.say(room, "nobody asked heed")
    await table.server.say(room, f"{MENTION} I am a bot", author=BEN | {"bot": True})
    asked = await table.server.say(room, f"{MENTION} what is it?")
    replied = await table.server.say(room, "too long", author=BEN, reply_to=answer)
    await table.until(lambda: len(table.keys) >= 2)
    assert table.said == [
        MessageReceived(ME, ROOM, asked["id"], "what is it?"),
        MessageReceived(Author("discord", "222", "Ben"), ROOM, replied["id"], "too long", reply_to=answer),
    ]


async def test_a_thread_is_a_place_of_its_own(table: Bench) -> None:
    """A message in a thread belongs to the thread, and is answered there."""
    message = await table.server.say(table.server.thread(), f"{MENTION} hi")
    await table.until(lambda: table.keys)
    assert table.said == [MessageReceived(ME, Place("discord", "700", is_private=False), message["id"], "hi")]


async def test_an_edit_arrives_once(table: Bench) -> None:
    """An edit is taken under the time it was made; what Discord adds to a message by itself is none."""
    message = await table.server.say(table.server.dm(), "to long")
    await table.until(lambda: table.keys)
    await table.server.sockets.send("MESSAGE_UPDATE", message | {"embeds": [{}]})
    await table.server.edit(message, "too long")
    await table.until(lambda: len(table.keys) == 2)
    assert table.keys[1].startswith(f"e:{message['id']}:")
    assert table.said[1] == MessageEdited(ME, DM, message["id"], "too long")


async def test_reactions_arrive_as_often_as_they_change(table: Bench) -> None:
    """Putting an emoji on, taking it off and putting it on again are three updates; a repetition is none."""
    await table.channel.post(Post(DM, "a llama"))
    answer = next(iter(table.server.dm().messages.values()))
    for on in (True, True, False, False, True):
        await table.server.react(answer, "👍", on=on)
    await table.until(lambda: len(table.keys) == 3)
    await table.settled()
    assert [key.split(":")[1::4] for key in table.keys] == [["add", "1"], ["remove", "1"], ["add", "2"]]
    assert [(r.added, r.removed) for r in table.said if isinstance(r, ReactionChanged)] == [
        (("👍",), ()),
        ((), ("👍",)),
        (("👍",), ()),
    ]


async def test_a_reaction_on_somebody_elses_message_is_not_taken(table: Bench) -> None:
    """What people think of each other is not heed's business."""
    message = await table.server.say(table.server.text(), "hi Ben")
    await table.server.react(message, "👍", user=BEN)
    await table.server.say(table.server.dm(), "after")
    await table.until(lambda: table.keys)
    await table.settled()
    assert [key[:2] for key in table.keys] == ["m:"]


async def test_cleared_reactions_are_taken_off(table: Bench) -> None:
    """Where a moderator clears a message, each reaction that was on is off."""
    answer = await table.channel.post(Post(ROOM, "a llama"))
    message = table.server.text().messages[answer]
    await table.server.react(message, "👍")
    await table.server.react(message, "🎉", user=BEN)
    await table.server.sockets.send(
        "MESSAGE_REACTION_REMOVE_ALL", {"channel_id": "600", "message_id": answer, "guild_id": "900"}
    )
    await table.until(lambda: len(table.keys) == 4)
    assert sorted(key.split(":")[1] for key in table.keys) == ["add", "add", "remove", "remove"]


async def test_a_post_shows_text_buttons_reply_and_files(table: Bench) -> None:
    """Everything a post has reaches Discord; nobody is pinged and no preview is made."""
    asked = await table.server.say(table.server.dm(), "export?")
    rows = ((Button("👍", "up"), Button("👎", "down")),)
    post = Post(DM, "here @everyone", rows, asked["id"], nonce="n1", files=(File("a.json", b"{}"),))
    message = table.server.dm().messages[await table.channel.post(post)]
    body = message["_body"]
    assert (message["content"], message["message_reference"]["message_id"]) == ("here @everyone", asked["id"])
    assert [button["custom_id"] for button in body["components"][0]["components"]] == ["up", "down"]
    assert body["allowed_mentions"] == {"parse": [], "replied_user": False}
    assert (body["nonce"], body["enforce_nonce"], body["flags"]) == ("n1", True, 4)
    assert table.server.made("POST", POSTS)[0].files == (("a.json", b"{}"),)


async def test_a_post_sent_twice_is_shown_once(table: Bench) -> None:
    """The nonce makes an answer that got lost on the way harmless: the second try names the first message."""
    table.server.fail("POST", POSTS, Fault(body=b"{", status=200, is_done=True))
    with pytest.raises(Unreachable) as caught:
        await table.channel.post(Post(DM, "a llama", nonce="n1"))
    again = await table.channel.post(Post(DM, "a llama", nonce="n1"))
    assert caught.value.is_ambiguous
    assert table.server.said(table.server.dm()) == ["a llama"]
    assert again in table.server.dm().messages


async def test_a_message_can_be_edited(table: Bench) -> None:
    """An edit shows the new text; buttons that are not given any more go away."""
    answer = await table.channel.post(Post(DM, "…", ((Button("👍", "up"),),)))
    await table.channel.edit(DM, answer, "a llama")
    message = table.server.dm().messages[answer]
    assert (message["content"], message["components"], message["_edits"]) == ("a llama", [], 1)


async def test_typing_is_shown(table: Bench) -> None:
    """Typing reaches the place it is meant for."""
    await table.channel.typing(DM)
    assert table.server.dm().typed == 1


async def test_a_long_rate_limit_is_handed_on(table: Bench) -> None:
    """What Discord asks to wait comes back as SlowDown, while other places go on."""
    table.server.fail("POST", POSTS, Fault(retry_after=60.0))
    with pytest.raises(SlowDown) as caught:
        await table.channel.post(Post(DM, "a llama"))
    assert caught.value.retry_after_s == 60.0
    assert await table.channel.post(Post(ROOM, "elsewhere"))


async def test_a_short_rate_limit_is_waited_out(table: Bench) -> None:
    """A limit of a moment is nobody else's business."""
    table.server.fail("POST", POSTS, Fault(retry_after=0.01))
    assert await table.channel.post(Post(DM, "a llama"))
    assert len(table.server.made("POST", POSTS)) == 2


@pytest.mark.parametrize("fault", [Fault(status=503), Fault(status=200, body=b'{"id')])
async def test_a_failing_server_is_unreachable(table: Bench, fault: Fault) -> None:
    """5xx and half an answer mean: it may have been done, try again."""
    table.server.fail("POST", POSTS, *[fault] * 5)
    with pytest.raises(Unreachable) as caught:
        await table.channel.post(Post(DM, "a llama"))
    assert caught.value.is_ambiguous


@pytest.mark.parametrize("fault", [Fault(status=502), Fault(hangs=True)])
async def test_a_server_that_keeps_us_waiting_is_unreachable(quick_dir: Path, fault: Fault) -> None:
    """What discord.py tries again, and no answer at all, mean the same once the call's time is over."""
    async with bench(quick_dir, HASTE) as table:
        table.server.dm()
        table.server.fail("POST", POSTS, *[fault] * 5)
        with pytest.raises(Unreachable) as caught:
            await table.channel.post(Post(DM, "a llama"))
        assert caught.value.is_ambiguous


async def test_a_server_that_is_away_has_done_nothing(table: Bench) -> None:
    """Where no connection could be made the message was certainly not sent."""
    await table.server.stop()
    with pytest.raises(Unreachable) as caught:
        await table.channel.post(Post(DM, "a llama"))
    assert not caught.value.is_ambiguous
    await table.server.start()


@pytest.mark.parametrize("refusal", [Refusal(403, CANNOT_SEND, "blocked"), Refusal(403, NO_ACCESS, "no access")])
async def test_who_blocked_heed_is_gone(table: Bench, refusal: Refusal) -> None:
    """A person who blocked the bot, and a channel it was taken out of, are gone for good."""
    table.server.dm().refusal = refusal
    with pytest.raises(Gone):
        await table.channel.post(Post(DM, "a llama"))
    table.server.dm().refusal = None


async def test_what_was_deleted_is_gone(table: Bench) -> None:
    """An unknown channel and an unknown message are gone."""
    with pytest.raises(Gone):
        await table.channel.post(Post(Place("discord", "404"), "a llama"))
    with pytest.raises(Gone):
        await table.channel.edit(DM, "404", "a llama")


async def test_what_discord_does_not_take_is_refused(table: Bench) -> None:
    """A text that is too long, an empty one and one edit too many of an old message are never tried again."""
    answer = await table.channel.post(Post(DM, "a llama"))
    table.server.dm().messages[answer]["_is_old"] = True
    with pytest.raises(Refused):
        await table.channel.edit(DM, answer, "an alpaca")
    for text in ("", "x" * 2001):
        with pytest.raises(Refused):
            await table.channel.post(Post(DM, text))


async def test_there_are_no_drafts(table: Bench) -> None:
    """Discord has no drafts; the core shows a placeholder."""
    with pytest.raises(NotOffered):
        await table.channel.draft(DM, 1, "a")


async def test_a_command_is_answered_in_its_first_answer(table: Bench) -> None:
    """A slash command is deferred, taken, and answered by editing the deferred answer; doing it twice shows one."""
    given = await table.server.command(table.server.dm(), "learning", "on")
    await table.until(lambda: table.keys)
    command = table.said[0]
    assert isinstance(command, CommandReceived)
    assert (command.name, command.argument, command.author, command.place) == ("learning", "on", ME, DM)
    assert given.first == {"type": 5, "data": {}}
    await table.channel.post(Post(DM, "learning is on", token=command.token))
    assert table.server.said(table.server.dm()) == ["learning is on"]


async def test_a_private_command_is_answered_to_the_asker_alone(table: Bench) -> None:
    """What others should not read is deferred so that only the asker sees the answer, and its later parts, too."""
    given = await table.server.command(table.server.text(), "privacy")
    await table.until(lambda: table.keys)
    token = table.said[0].token  # type: ignore[union-attr]
    await table.channel.post(Post(ROOM, "part 1", token=token, is_private=True))
    await table.channel.post(Post(ROOM, "part 2", token=token, is_private=True, files=(File("a.txt", b"a"),)))
    assert given.first == {"type": 5, "data": {"flags": 64}}
    assert table.server.said(table.server.text()) == ["part 1"]
    assert [(part["content"], part["flags"]) for part in given.follow_ups] == [("part 2", 64 | 4)]


async def test_a_private_answer_to_an_open_command_stays_private(table: Bench) -> None:
    """How a command was deferred cannot be changed, so the answer follows to the asker alone."""
    given = await table.server.command(table.server.text(), "help")
    await table.until(lambda: table.keys)
    token = table.said[0].token  # type: ignore[union-attr]
    await table.channel.post(Post(ROOM, "secret", token=token, is_private=True))
    assert table.server.said(table.server.text()) == ["Only you can see the answer."]
    assert [part["content"] for part in given.follow_ups] == ["secret"]


@pytest.mark.parametrize("is_done", [True, False])
async def test_a_first_answer_without_a_reply_counts_if_it_was_taken(quick_dir: Path, is_done: bool) -> None:
    """The person sees heed at it, and gets the answer; where Discord did not take it no one acts on it."""
    async with bench(quick_dir, replace(PACE, first_answer_s=0.3)) as table:
        table.server.text()
        table.server.fail("POST", "/interactions/.*/callback", Fault(hangs=True, is_done=is_done))
        given = await table.server.command(table.server.text(), "help")
        await table.until(lambda: table.server.made("GET", "/webhooks/.*/messages/@original"))
        table.channel._interactions._first_answer_s = PATIENCE_S
        await table.server.command(table.server.text(), "help")
        await table.until(lambda: len(table.keys) == 1 + is_done)
        assert (given.first is not None) is is_done


async def test_an_interaction_that_ran_out_is_answered_openly(table: Bench) -> None:
    """After fifteen minutes what everybody may see is an ordinary message, and a private answer is gone."""
    given = await table.server.command(table.server.text(), "help")
    await table.until(lambda: table.keys)
    token = table.said[0].token  # type: ignore[union-attr]
    given.is_expired = True
    await table.channel.post(Post(ROOM, "late", token=token))
    assert table.server.said(table.server.text()) == ["late"]
    with pytest.raises(Gone):
        await table.channel.post(Post(ROOM, "secret", token=token, is_private=True))
    await table.channel.acknowledge(token, "too late is success")


async def test_a_press_is_acknowledged_and_read(table: Bench) -> None:
    """A press is acknowledged before it is taken; a notice about it is for the one who pressed alone."""
    answer = await table.channel.post(Post(ROOM, "a llama", ((Button("👍", "up"),),)))
    pressed = await table.server.press(table.server.text().messages[answer], "up", user=BEN)
    await table.until(lambda: table.keys)
    press = table.said[0]
    assert isinstance(press, ButtonPressed)
    assert (press.author.account, press.message_id, press.action) == ("222", answer, "up")
    assert pressed.first == {"type": 6, "data": {}}
    await table.channel.acknowledge(press.token)
    await table.channel.acknowledge(press.token, "not yours")
    assert [(part["content"], part["flags"]) for part in pressed.follow_ups] == [("not yours", 64 | 4)]
    await table.channel.post(Post(ROOM, "learned", token=press.token, nonce="n2"))
    assert table.server.said(table.server.text()) == ["a llama", "learned"]


@pytest.mark.parametrize("action", ["fix", "why:4"])
async def test_asking_for_words_opens_a_form(table: Bench, action: str) -> None:
    """A press that wants a text opens a form at once; only the sent form is taken, under the same action."""
    answer = await table.channel.post(Post(DM, "a llama", ((Button("correct", action),),)))
    opened = await table.server.press(table.server.dm().messages[answer], action)
    await table.until(lambda: opened.first)
    assert opened.first is not None
    assert (opened.first["type"], opened.first["data"]["custom_id"]) == (9, action)
    sent = await table.server.submit(opened, "too long")
    await table.until(lambda: table.keys)
    form = table.said[0]
    assert isinstance(form, FormSubmitted)
    assert (form.action, form.text, form.message_id, form.author) == (action, "too long", answer, ME)
    assert sent.first == {"type": 6, "data": {}}


async def test_an_interaction_that_came_too_late_is_not_taken(table: Bench) -> None:
    """Where the first answer failed Discord tells the person so, and nothing is done behind their back."""
    answer = await table.channel.post(Post(DM, "a llama", ((Button("👍", "up"),),)))
    await table.server.press(table.server.dm().messages[answer], "up", is_too_late=True)
    await table.server.say(table.server.dm(), "after")
    await table.until(lambda: table.keys)
    await table.settled()
    assert [key[:2] for key in table.keys] == ["m:"]


async def test_commands_are_completed(table: Bench) -> None:
    """While an argument is typed the fitting ones are proposed; nothing of it is taken."""
    typing = await table.server.complete(table.server.dm(), "learning", "of")
    await table.until(lambda: typing.first)
    assert typing.first == {"type": 8, "data": {"choices": [{"name": "off", "value": "off"}]}}
    assert table.keys == []


async def test_commands_are_set_only_where_they_changed(table: Bench) -> None:
    """The first start sets the commands, a second one finds them as they are."""
    await table.until(lambda: table.server.made("PUT", "/applications/.*"))
    assert [command["name"] for command in table.server.world.commands] == ["help", "learning", "privacy", "stats"]
    await table.restart()
    await table.until(lambda: len(table.server.made("GET", "/applications/.*")) == 2)
    await table.settled()
    assert len(table.server.made("PUT", "/applications/.*")) == 1


async def test_a_written_command_is_one(table: Bench) -> None:
    """`/help` typed as a message is the command, as one is that heed lacks; a path is just said."""
    await table.server.say(table.server.dm(), "/learning on")
    await table.server.say(table.server.dm(), "/dance")
    await table.server.say(table.server.dm(), "/etc/hosts is what?")
    await table.until(lambda: len(table.keys) == 3)
    assert isinstance(table.said[0], CommandReceived)
    assert (table.said[0].name, table.said[0].argument, table.said[0].token) == ("learning", "on", "")
    assert isinstance(table.said[1], CommandReceived)
    assert isinstance(table.said[2], MessageReceived)


async def test_a_refused_token_is_named(quick_dir: Path) -> None:
    """A wrong token ends this platform at the start, with what to do about it."""
    async with bench(quick_dir, is_started=False) as table:
        with pytest.raises(StartError, match=r"refuses the token.*DISCORD_BOT_TOKEN"):
            await table.start(token="wrong-token")


async def test_no_token_is_named(quick_dir: Path) -> None:
    """Without a token there is nothing to start."""
    async with bench(quick_dir, is_started=False) as table:
        with pytest.raises(StartError, match="DISCORD_BOT_TOKEN"):
            await table.start(token="")


async def test_a_missing_intent_is_named(quick_dir: Path) -> None:
    """Where the message content intent is off the switch is named."""
    async with bench(quick_dir, is_started=False) as table:
        table.server.sockets.has_message_content = False
        with pytest.raises(StartError, match=r"Message Content Intent is off.*Privileged Gateway Intents"):
            await table.start()
        assert "Message Content Intent" in table.channel.health()


async def test_a_token_that_is_refused_later_ends_the_platform(table: Bench) -> None:
    """A 401 while running closes the connection, is told by health, and is not asked for again and again."""
    assert table.channel.health() == "ok"
    table.server.is_token_valid = False
    with pytest.raises(Unreachable):
        await table.channel.post(Post(DM, "a llama"))
    await table.until(lambda: not table.server.sockets.is_connected)
    assert "refuses the token" in table.channel.health()
    before = len(table.server.calls)
    with pytest.raises(Unreachable):
        await table.channel.post(Post(DM, "a llama"))
    assert len(table.server.calls) == before


async def test_a_stopped_channel_still_posts(table: Bench) -> None:
    """After stop nothing is taken any more, and what is left to say can be said."""
    await table.channel.stop()
    await table.server.say(table.server.dm(), "too late")
    assert await table.channel.post(Post(DM, "bye"))
    assert table.keys == []
    await table.channel.close()
    with pytest.raises(Unreachable):
        await table.channel.post(Post(DM, "really"))


async def test_secrets_are_never_logged(quick_dir: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A run at DEBUG with failures writes neither the bot's token nor an interaction's nor what people say."""
    caplog.set_level(logging.DEBUG)
    async with bench(quick_dir) as table:
        await table.server.say(table.server.dm(), "my secret wish")
        given = await table.server.command(table.server.dm(), "help")
        await table.until(lambda: len(table.keys) == 2)
        table.server.fail("POST", POSTS, Fault(status=503))
        with pytest.raises(Unreachable):
            await table.channel.post(Post(DM, "my secret answer"))
        await table.server.sockets.close(4000)
        await table.until(lambda: table.server.sockets.resumed)
    written = "\n".join(record.getMessage() + str(record.exc_info or "") for record in caplog.records)
    for secret in (TOKEN, given.payload["token"], "my secret"):
        assert secret not in written


async def test_the_account_is_known_before_the_first_connection(quick_dir: Path) -> None:
    """The token begins with the account, so that what waits in the inbox finds its channel at once."""
    async with bench(quick_dir, is_started=False) as table:
        assert table.channel.bot_id == BOT["id"] == account_in(TOKEN)
    assert [account_in(token) for token in ("", "made-up", "!!!.x", "YWJj.x")] == ["", "", "", ""]
    assert ANA["id"] == "111"
