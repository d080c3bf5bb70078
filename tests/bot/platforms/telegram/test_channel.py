"""bot.platforms.telegram.channel: one bot, against a Bot API server, through the real library."""

import asyncio
import io
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from telegram.request import HTTPXRequest

from bot.channel import Button, ChannelError, File, Gone, NotOffered, Post, Refused, SlowDown, Unreachable
from bot.config import TelegramSettings
from bot.errors import StartError
from bot.events import (
    Author,
    ButtonPressed,
    ChatMigrated,
    CommandReceived,
    MessageEdited,
    MessageReceived,
    Place,
    ReactionChanged,
)
from bot.platforms.telegram import client
from bot.platforms.telegram.channel import TelegramChannel, bot_id
from bot.platforms.telegram.markup import measure
from tests.bot.platforms.telegram_bench import SECRET, WEBHOOK, Taken, heard, place, settings, started
from tests.contract.telegram_server import (
    ANA,
    BEN,
    FORUM,
    GROUP,
    SMALL_GROUP,
    TOKEN,
    Fault,
    Json,
    TelegramServer,
    private,
)
from tests.patience import PATIENCE_S, until

pytestmark = pytest.mark.filterwarnings("ignore:Deprecated since version v22.2")  # PTB's own use of retry_after

HOME = private(ANA)
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


@pytest.fixture
async def server() -> AsyncIterator[TelegramServer]:
    """A Bot API server that Ana and two groups know."""
    async with TelegramServer() as server:
        for chat in (HOME, GROUP, FORUM, SMALL_GROUP):
            server.meet(chat)
        server.threads.add((FORUM["id"], 9))
        yield server


@pytest.fixture
async def channel(server: TelegramServer) -> AsyncIterator[TelegramChannel]:
    """A channel at work."""
    async with started(server) as channel:
        yield channel


def post(text: str, chat: Json = HOME, thread: int | None = None, **fields: Any) -> Post:
    """A message to show."""
    return Post(place(chat, thread), text, **fields)


# ------------------------------------------------------------------------------------------------- start


async def test_it_knows_itself(server: TelegramServer, channel: TelegramChannel) -> None:
    """Who it is, and that all is well."""
    assert (channel.bot_id, channel.username, channel.platform) == ("123456789", "heed_bot", "telegram")
    assert channel.health() == "ok"
    assert channel.notices == []


async def test_updates_do_not_wait_for_the_menu(server: TelegramServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A getMyCommands that is never answered, and never given up, delays nothing."""
    monkeypatch.setattr(client, "ANSWER_TIMEOUT_S", 10 * PATIENCE_S)
    server.fail("getMyCommands", *[Fault(hangs=True)] * 10)
    taken = Taken()
    async with asyncio.timeout(PATIENCE_S), started(server, taken):
        server.say("bees?")
        await until(lambda: bool(taken.rows))
        assert server.called("getMyCommands")


async def test_a_wrong_token_is_named(server: TelegramServer) -> None:
    """With where to get a right one."""
    wrong = TelegramSettings.model_validate({"token": TOKEN[:-1] + "x", "api_base": server.url})
    with pytest.raises(StartError, match=r"TELEGRAM_BOT_TOKEN.*@BotFather") as caught:
        await TelegramChannel(wrong, ()).start(Taken().take)
    assert TOKEN[:-1] not in str(caught.value)


def test_a_text_that_is_no_token_is_named() -> None:
    """Telegram does not need to be asked."""
    with pytest.raises(StartError, match="TELEGRAM_BOT_TOKEN"):
        bot_id("hello")


async def test_a_webhook_set_elsewhere_is_named(server: TelegramServer) -> None:
    """It is not removed: another program may live by it."""
    server.webhook = {"url": "https://elsewhere.example/hook"}
    with pytest.raises(StartError, match=r"https://elsewhere.example/hook.*deleteWebhook"):
        await TelegramChannel(settings(server), ()).start(Taken().take)
    assert server.webhook


async def test_privacy_mode_is_told(server: TelegramServer) -> None:
    """heed starts all the same."""
    server.me["can_read_all_group_messages"] = False
    async with started(server) as channel:
        assert "/setprivacy" in channel.notices[0]
        assert channel.health() == "ok"


async def test_it_starts_where_telegram_is_down(server: TelegramServer) -> None:
    """It waits in the background, and takes what was said meanwhile."""
    server.fail("getMe", Fault(status=502, body=b"down"))
    server.say("bees?")
    taken = Taken()
    async with started(server, taken) as channel:
        assert "cannot be reached" in channel.health()
        await taken.first(1)
        assert channel.health() == "ok"


async def test_a_token_that_turns_out_wrong_ends_this_channel_only(server: TelegramServer) -> None:
    """What was not known at the start is told by health."""
    server.fail("getMe", Fault(cuts=True), Fault(status=401, description="Unauthorized"))
    async with started(server) as channel:
        await server.until(lambda: len(server.called("getMe")) == 2)
        await until(lambda: "BotFather" in channel.health())


async def test_a_menu_that_cannot_be_set_stops_nothing(server: TelegramServer) -> None:
    """Commands work without it."""
    server.fail("getMyCommands", Fault(status=500, description="no"))
    async with started(server) as channel:
        assert channel.health() == "ok"


async def test_health_tells_of_a_silence(server: TelegramServer) -> None:
    """A poll that never comes back is noticed."""
    server.fail("getUpdates", *[Fault(hangs=True)] * 10)
    async with started(server, watchdog_s=0.1) as channel:
        await server.until(lambda: len(server.called("getUpdates")) >= 2)
        assert channel.health() != "ok"


async def test_after_stop_nothing_is_taken_and_posting_works(server: TelegramServer) -> None:
    """Answers that are still being written can be shown."""
    taken = Taken()
    async with started(server, taken) as channel:
        await server.polled.wait()
        await channel.stop()
        server.say("bees?")
        await channel.post(post("the last words"))
        assert taken.rows == []
        assert channel.health() == "stopped"
    assert server.texts(HOME) == ["the last words"]
    with pytest.raises(Unreachable) as caught:
        await channel.post(post("too late"))
    assert not caught.value.is_ambiguous


async def test_updates_come_by_webhook(server: TelegramServer) -> None:
    """Set with the secret and with reactions; served by heed's own HTTP server."""
    taken = Taken()
    async with started(server, taken, webhook=True) as channel:
        app = web.Application()
        app.add_routes(channel.routes())
        async with TestServer(app) as http:
            server.webhook_gateway = str(http.make_url("/")).rstrip("/")
            server.say("bees?")
            server.react(HOME, 1, ["👍"])
            await taken.first(2)
            await server.until(lambda: server.num_pending == 0)
    assert server.webhook["url"] == WEBHOOK
    assert server.webhook["secret_token"] == SECRET
    assert server.called("getUpdates") == []
    assert [type(record) for row in taken.rows for record in channel.read(row.payload)] == [
        MessageReceived,
        ReactionChanged,
    ]


async def test_a_channel_that_polls_serves_no_route(channel: TelegramChannel) -> None:
    """There is nothing to forge."""
    assert channel.routes() == []


async def test_a_webhook_waits_for_the_start(server: TelegramServer) -> None:
    """Before and after, an update is not taken; Telegram keeps it."""
    channel = TelegramChannel(settings(server, webhook_url=WEBHOOK, webhook_secret=SECRET), ())
    with pytest.raises(ChannelError):
        await channel._arrived([{"update_id": 1}])
    await channel.close()


async def test_a_webhook_that_telegram_refuses_is_tried_again(server: TelegramServer) -> None:
    """Too many requests, say."""
    server.fail("setWebhook", Fault(retry_after=1))
    async with started(server, webhook=True) as channel:
        assert "cannot be reached" in channel.health()
        await server.until(lambda: server.webhook)


# ------------------------------------------------------------------------------------------------- hearing


async def test_a_conversation_is_heard(server: TelegramServer) -> None:
    """Messages, edits, reactions, presses and a move, in order and as they were meant."""
    taken = Taken()
    async with started(server, taken) as channel:
        await server.polled.wait()
        asked = server.say("@heed_bot bees?", chat=GROUP)
        shown = int(await channel.post(post("Bees.", GROUP, rows=((Button("👍", "up"),),))))
        server.say("shorter", chat=GROUP, reply_to=shown, sender=BEN)
        server.edit(asked, "@heed_bot ants?")
        server.react(GROUP, shown, ["👍"])
        server.count(GROUP, shown, {"👍": 2})
        server.press(GROUP, shown, "up")
        server.say("/help")
        server.migrate(SMALL_GROUP, GROUP)
        records = await heard(server, taken, channel)
    kinds = [
        MessageReceived,
        MessageReceived,
        MessageEdited,
        ReactionChanged,
        ButtonPressed,
        CommandReceived,
        ChatMigrated,
        ChatMigrated,
    ]
    assert sorted(type(record).__name__ for record in records) == sorted(kind.__name__ for kind in kinds)
    in_group = [record for record in records if not isinstance(record, ChatMigrated) and record.place == place(GROUP)]
    assert [type(record) for record in in_group] == kinds[:5]
    assert isinstance(in_group[1], MessageReceived)
    assert (in_group[1].reply_to, in_group[1].is_addressed) == (str(shown), True)


async def test_an_answer_to_a_question_is_heard(server: TelegramServer) -> None:
    """The question's id is what the answer replies to; the field for it is open already."""
    taken = Taken()
    async with started(server, taken) as channel:
        await server.polled.wait()
        question = await channel.post(post("What should it say?", wants_reply=True))
        server.say("Buzz.", reply_to=int(question))
        (record,) = await heard(server, taken, channel)
    assert isinstance(record, MessageReceived)
    assert record.reply_to == question
    assert server.called("sendMessage")[0].params["reply_markup"]["force_reply"]


# ------------------------------------------------------------------------------------------------- posting


async def test_a_message_is_shown(server: TelegramServer, channel: TelegramChannel) -> None:
    """As HTML, without previews of links; its id comes back."""
    shown_id = await channel.post(post("**Bees** make <honey> & wax."))
    (shown,) = server.shown(HOME)
    assert shown["text"] == "Bees make <honey> & wax."
    assert shown["entities"] == [{"type": "bold", "offset": 0, "length": 4}]
    assert shown_id == str(shown["message_id"])
    assert server.called("sendMessage")[0].params["link_preview_options"] == {"is_disabled": True}


async def test_a_message_answers_another(server: TelegramServer, channel: TelegramChannel) -> None:
    """Also where that one is gone by now: then it answers none."""
    asked = server.say("bees?")
    await channel.post(post("Bees.", reply_to=str(asked["message_id"])))
    await channel.post(post("Bees again.", reply_to="999"))
    first, second = server.shown(HOME)
    assert first["reply_to_message"]["message_id"] == asked["message_id"]
    assert "reply_to_message" not in second


@pytest.mark.parametrize(("thread", "sent", "typed"), [(None, None, None), (1, None, 1), (9, 9, 9)])
async def test_topics(
    server: TelegramServer, channel: TelegramChannel, thread: int | None, sent: int | None, typed: int | None
) -> None:
    """The general one must not be named when sending, and must be when typing."""
    await channel.post(post("Bees.", FORUM, thread))
    await channel.typing(place(FORUM, thread))
    await channel.post(post("Why?", FORUM, thread, wants_reply=True))
    assert [call.params.get("message_thread_id") for call in server.called("sendMessage")] == [sent, sent]
    assert server.called("sendChatAction")[0].params.get("message_thread_id") == typed


async def test_buttons_carry_their_action(server: TelegramServer, channel: TelegramChannel) -> None:
    """Row by row."""
    rows = ((Button("👍", "up"), Button("👎", "down")), (Button("again", "again"),))
    await channel.post(post("Bees.", rows=rows))
    shown = server.shown(HOME)[0]["reply_markup"]["inline_keyboard"]
    assert [[(key["text"], key["callback_data"]) for key in row] for row in shown] == [
        [("👍", "up"), ("👎", "down")],
        [("again", "again")],
    ]


@pytest.mark.parametrize("action", ["", "x" * 65, "é" * 33])
async def test_an_action_that_does_not_fit_is_refused(channel: TelegramChannel, action: str) -> None:
    """Telegram takes 1 to 64 bytes; it is not asked."""
    with pytest.raises(Refused, match="64 bytes"):
        await channel.post(post("Bees.", rows=((Button("x", action),),)))


async def test_what_telegram_cannot_parse_is_shown_plainly(
    server: TelegramServer, channel: TelegramChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it was written, and no answer is lost; so with an edit."""
    monkeypatch.setattr(client, "as_html", lambda text: f"<p>{text}</p>")
    shown_id = await channel.post(post("**Bees**"))
    await channel.edit(place(HOME), shown_id, "**Ants**")
    assert server.texts(HOME) == ["**Ants**"]
    assert len(server.called("sendMessage")) == len(server.called("editMessageText")) == 2


async def test_a_text_that_is_nothing_but_marks_is_shown(server: TelegramServer, channel: TelegramChannel) -> None:
    """As HTML nothing would be left of it."""
    await channel.post(post("```\n```"))
    assert server.texts(HOME) == ["```\n```"]


async def test_the_limit_is_telegrams(server: TelegramServer, channel: TelegramChannel) -> None:
    """4096 UTF-16 units fit, one more does not; an emoji is two."""
    fits = "🐝" * 2048
    assert measure(fits) == channel.limits.text_units
    await channel.post(post(fits))
    with pytest.raises(Refused, match="too long"):
        await channel.post(post(fits + "x"))
    assert server.texts(HOME) == [fits]


async def test_odd_characters_are_shown(server: TelegramServer, channel: TelegramChannel) -> None:
    """Half of a surrogate pair and NUL are replaced; right-to-left marks stay."""
    await channel.post(post("a\ud83db\x00c \u202ed"))
    assert server.texts(HOME) == ["a\ufffdb\ufffdc \u202ed"]


@pytest.mark.parametrize("text", ["", " \n"])
async def test_nothing_to_show_is_refused(channel: TelegramChannel, text: str) -> None:
    """Trying again would not help."""
    with pytest.raises(Refused):
        await channel.post(post(text))


@pytest.mark.parametrize("chat", [private(BEN), {"id": -5, "type": "group"}])
async def test_a_chat_that_is_not_there(channel: TelegramChannel, chat: Json) -> None:
    """Nobody ever wrote from it."""
    with pytest.raises(Gone):
        await channel.post(post("Bees.", chat))


@pytest.mark.parametrize("external_id", ["", "hive", "12/x", "1/2/3"])
async def test_a_place_that_is_none(channel: TelegramChannel, external_id: str) -> None:
    """Nor is there anybody at what is no number."""
    with pytest.raises(Gone):
        await channel.post(Post(Place("telegram", external_id), "Bees."))


@pytest.mark.parametrize("chat", [HOME, GROUP])
async def test_somebody_who_blocked_the_bot_is_gone(
    server: TelegramServer, channel: TelegramChannel, chat: Json
) -> None:
    """Or who put it out of the group; for everything that can be shown."""
    server.blocked.add(chat["id"])
    for attempt in (
        channel.post(post("Bees.", chat)),
        channel.edit(place(chat), "1", "Bees."),
        channel.typing(place(chat)),
        channel.post(post("Why?", chat, wants_reply=True)),
    ):
        with pytest.raises(Gone, match="bot was"):
            await attempt


# ------------------------------------------------------------------------------------------------- faults


async def test_a_wait_is_passed_on(server: TelegramServer, channel: TelegramChannel) -> None:
    """Whoever paces knows what to do."""
    server.fail("sendMessage", Fault(retry_after=31))
    server.fail("editMessageText", Fault(retry_after=32))
    server.fail("sendMessageDraft", Fault(retry_after=33))
    waits = []
    for attempt in (
        channel.post(post("Bees.")),
        channel.edit(place(HOME), "1", "Bees."),
        channel.draft(place(HOME), 1, "Bees."),
    ):
        with pytest.raises(SlowDown) as caught:
            await attempt
        waits.append(caught.value.retry_after_s)
    assert waits == [31.0, 32.0, 33.0]


FAULTS = {
    "cut off": Fault(cuts=True),
    "cut off after": Fault(cuts=True, is_done=True),
    "hangs": Fault(hangs=True, is_done=True),
    "502": Fault(status=502, body=b"<html>Bad Gateway</html>"),
    "500 after": Fault(status=500, description="Internal Server Error", is_done=True),
    "half an answer": Fault(body=b'{"ok": true, "resu', is_done=True),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
async def test_a_silence_after_the_request_is_ambiguous(
    server: TelegramServer, monkeypatch: pytest.MonkeyPatch, fault: Fault
) -> None:
    """The message may be there, and in some of these cases it is."""
    async with started(server) as channel:
        requests = channel._client.bot.request
        assert isinstance(requests, HTTPXRequest)
        assert requests.read_timeout == client.ANSWER_TIMEOUT_S
        server.fail("sendMessage", fault)
        with monkeypatch.context() as patch:
            if fault.hangs:
                patch.setattr(requests._client, "timeout", httpx.Timeout(PATIENCE_S, read=0.3))
            with pytest.raises(Unreachable) as caught:
                await channel.post(post("Bees."))
        assert caught.value.is_ambiguous
        await server.until(lambda: len(server.shown(HOME)) == fault.is_done)
        await channel.post(post("Bees."))


async def test_a_server_that_is_down_got_nothing(server: TelegramServer, channel: TelegramChannel) -> None:
    """So the post can be made again without a second copy; it works once the server is back."""
    await server.stop()
    for _ in range(3):  # a connection that was open may break first
        with pytest.raises(Unreachable) as caught:
            await channel.post(post("Bees."))
    assert not caught.value.is_ambiguous
    await server.start()
    await channel.post(post("Bees."))
    assert server.texts(HOME) == ["Bees."]


async def test_a_group_that_moved_is_followed(server: TelegramServer, channel: TelegramChannel) -> None:
    """New messages go to the supergroup; old ones stayed behind, and their numbers mean other messages there."""
    old = await channel.post(post("before", SMALL_GROUP))
    server.migrate(SMALL_GROUP, GROUP)
    await channel.post(post("after", SMALL_GROUP, reply_to=old))
    await channel.typing(place(SMALL_GROUP))
    await channel.post(post("later", SMALL_GROUP))
    assert server.texts(GROUP) == ["after", "later"]
    assert "reply_to_message" not in server.shown(GROUP)[0]
    with pytest.raises(Gone):
        await channel.edit(place(SMALL_GROUP), old, "changed")


async def test_an_edit_of_a_message_that_stayed_behind(server: TelegramServer, channel: TelegramChannel) -> None:
    """Telegram says where the group went; the message is not there."""
    old = await channel.post(post("before", SMALL_GROUP))
    server.migrate(SMALL_GROUP, GROUP)
    with pytest.raises(Gone):
        await channel.edit(place(SMALL_GROUP), old, "changed")


# ------------------------------------------------------------------------------------------------- editing


async def test_a_message_is_changed(server: TelegramServer, channel: TelegramChannel) -> None:
    """Text and buttons; without buttons they go."""
    shown_id = await channel.post(post("…"))
    await channel.edit(place(HOME), shown_id, "*Bees*.", ((Button("👍", "up"),),))
    assert server.shown(HOME)[0]["reply_markup"]["inline_keyboard"]
    await channel.edit(place(HOME), shown_id, "*Bees*.")
    assert server.texts(HOME) == ["Bees."]
    assert not server.shown(HOME)[0]["reply_markup"]


async def test_an_unchanged_message_is_success(server: TelegramServer, channel: TelegramChannel) -> None:
    """Telegram refuses it: nothing has to be done."""
    shown_id = await channel.post(post("Bees."))
    await channel.edit(place(HOME), shown_id, "Bees.")
    assert len(server.called("editMessageText")) == 1


@pytest.mark.parametrize("shown_id", ["999", "x"])
async def test_a_message_that_was_deleted_is_gone(channel: TelegramChannel, shown_id: str) -> None:
    """There is nothing left to change."""
    with pytest.raises(Gone):
        await channel.edit(place(HOME), shown_id, "Bees.")


async def test_somebody_elses_message_cannot_be_changed(server: TelegramServer, channel: TelegramChannel) -> None:
    """It is refused, for good."""
    said = server.say("bees?")
    with pytest.raises(Refused):
        await channel.edit(place(HOME), str(said["message_id"]), "ants?")


# ------------------------------------------------------------------------------------------------- drafts, typing


async def test_a_draft_is_shown_as_it_is_written(server: TelegramServer, channel: TelegramChannel) -> None:
    """Without marks made of it: what is shown only grows."""
    for text in ("", "**Be", "**Bees**"):
        await channel.draft(place(HOME), 7, text)
    assert server.drafts[HOME["id"], 7] == ["", "**Be", "**Bees**"]


async def test_a_long_draft_is_cut(server: TelegramServer, channel: TelegramChannel) -> None:
    """The rest is shown with the answer."""
    await channel.draft(place(HOME), 7, "🐝" * 5000)
    assert server.drafts[HOME["id"], 7] == ["🐝" * 2048]


async def test_drafts_are_for_private_chats(server: TelegramServer, channel: TelegramChannel) -> None:
    """Telegram is not asked elsewhere."""
    with pytest.raises(NotOffered):
        await channel.draft(place(GROUP), 7, "Bees.")
    assert server.called("sendMessageDraft") == []


async def test_a_server_without_drafts_is_asked_once(server: TelegramServer, channel: TelegramChannel) -> None:
    """A Bot API server of one's own may be older."""
    server.has_drafts = False
    for _ in range(3):
        with pytest.raises(NotOffered):
            await channel.draft(place(HOME), 7, "Bees.")
    assert len(server.called("sendMessageDraft")) == 1


async def test_a_draft_that_is_refused_is_not_offered(server: TelegramServer, channel: TelegramChannel) -> None:
    """A placeholder does instead, this once."""
    with pytest.raises(NotOffered):
        await channel.draft(place(HOME), 0, "Bees.")
    await channel.draft(place(HOME), 7, "Bees.")


async def test_typing_is_shown(server: TelegramServer, channel: TelegramChannel) -> None:
    """For the next few seconds."""
    await channel.typing(place(HOME))
    assert server.called("sendChatAction")[0].params == {"chat_id": 111, "action": "typing"}


# ------------------------------------------------------------------------------------------------- presses, questions


async def test_a_press_is_answered(server: TelegramServer, channel: TelegramChannel) -> None:
    """With a notice of at most 200 characters, or with none."""
    first, second = server.press(HOME, 1, "up"), server.press(HOME, 1, "up")
    await channel.acknowledge(first)
    await channel.acknowledge(second, "x" * 300)
    assert server.answered == {first: "", second: "x" * 200}


async def test_a_late_answer_to_a_press_is_success(server: TelegramServer, channel: TelegramChannel) -> None:
    """Too late, a second time, or to nothing at all."""
    query = server.press(HOME, 1, "up")
    await channel.acknowledge(query)
    await channel.acknowledge(query)
    await channel.acknowledge("")
    assert len(server.called("answerCallbackQuery")) == 2


async def test_a_press_that_cannot_be_answered_is_told(server: TelegramServer, channel: TelegramChannel) -> None:
    """As any other request."""
    server.fail("answerCallbackQuery", Fault(retry_after=3))
    with pytest.raises(SlowDown):
        await channel.acknowledge(server.press(HOME, 1, "up"))


async def test_a_question_in_a_group_is_put_to_one_person(server: TelegramServer, channel: TelegramChannel) -> None:
    """Telegram opens the field for those whom the text names, so the text names the person who was asked."""
    button = await channel.post(post("Bees.", GROUP))
    asked = Author("telegram", str(ANA["id"]), "Ana <3")
    question = replace(post("What?", GROUP, reply_to=button, wants_reply=True), asked=asked)
    await channel.post(question)
    shown = server.shown(GROUP)[-1]
    assert shown["reply_markup"]["selective"]
    assert shown["text"] == "Ana <3: What?\n(Answer by replying to this message.)"
    (mention,) = shown["entities"]
    assert (mention["type"], mention["length"], mention["user"]["id"]) == ("text_mention", 6, ANA["id"])


@pytest.mark.parametrize(
    ("text", "placeholder"),
    [
        ("What should be different? Reply to this message.", "What should be different?"),
        ("What should be different in " + "very " * 12 + "much? Reply.", None),
    ],
)
async def test_the_field_shows_a_whole_question(
    server: TelegramServer, channel: TelegramChannel, text: str, placeholder: str | None
) -> None:
    """One that is too long for the field is left out; it is never cut in the middle."""
    await channel.post(post(text, wants_reply=True))
    assert server.shown(HOME)[0]["reply_markup"].get("input_field_placeholder") == placeholder


# ------------------------------------------------------------------------------------------------- files


async def test_a_file_comes_with_its_words(server: TelegramServer, channel: TelegramChannel) -> None:
    """In one message, so that it cannot be half sent."""
    files = (File("export.json", b"{}"),)
    shown_id = await channel.post(post("**All** of it.", files=files, rows=((Button("x", "x"),),)))
    (shown,) = server.shown(HOME)
    assert shown["document"]["file_name"] == "export.json"
    assert (shown["caption"], str(shown["message_id"])) == ("All of it.", shown_id)
    assert shown["reply_markup"]["inline_keyboard"]
    assert server.called("sendDocument")[0].files["document"] == ("export.json", b"{}")


async def test_a_picture_is_shown_as_one(server: TelegramServer, channel: TelegramChannel) -> None:
    """Only what Telegram takes for a picture."""
    await channel.post(post("", files=(File("chart.png", PNG),)))
    assert "photo" in server.shown(HOME)[0]


async def test_long_words_come_after_their_files(server: TelegramServer, channel: TelegramChannel) -> None:
    """A caption has 1024 units."""
    files = (File("a.txt", b"a"), File("b.txt", b"b"))
    await channel.post(post("x" * 1025, files=files, rows=((Button("x", "x"),),)))
    first, second, third = server.shown(HOME)
    assert [message["document"]["file_name"] for message in (first, second)] == ["a.txt", "b.txt"]
    assert third["text"] == "x" * 1025
    assert third["reply_markup"]["inline_keyboard"]


# ------------------------------------------------------------------------------------------------- secrets


async def test_no_secret_is_ever_logged(server: TelegramServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything at DEBUG, with every kind of failure: neither the token nor the webhook's secret is in it."""
    monkeypatch.setattr(client, "ANSWER_TIMEOUT_S", 0.3)
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        await _everything(server)
        await _everything(server, webhook=True)
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    assert "[hidden]" in written.getvalue()  # the library did log an address
    for secret in (TOKEN, TOKEN.partition(":")[2], SECRET):
        assert secret not in written.getvalue()


async def _everything(server: TelegramServer, **options: Any) -> None:
    """A short life with all kinds of failures; every exception is logged."""
    log = logging.getLogger("everything")
    faults = [Fault(retry_after=1), Fault(cuts=True), Fault(hangs=True), Fault(status=502, body=TOKEN.encode())]
    server.fail("getUpdates", faults[1], faults[3])
    server.fail("sendMessage", *faults, Fault(body=f'{{"ok": "{TOKEN}"'.encode()))
    async with started(server, **options) as channel:
        for _ in range(6):
            try:
                await channel.post(post("Bees."))
            except ChannelError:
                log.exception("not shown")
    server.webhook = {"url": "https://elsewhere.example"}
    for token in (TOKEN, TOKEN[:-1] + "x", "1:x"):
        chosen = TelegramSettings.model_validate({"token": token, "api_base": server.url})
        try:
            await TelegramChannel(chosen, ()).start(Taken().take)
        except StartError:
            log.exception("not started")
    server.webhook = {}
