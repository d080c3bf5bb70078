"""bot.platforms.telegram.reader: what raw updates say."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.events import (
    Author,
    ButtonPressed,
    ChatMigrated,
    CommandReceived,
    Inbound,
    MessageEdited,
    MessageReceived,
    Place,
    ReactionChanged,
)
from bot.platforms.telegram.reader import Reader, labelled, sender_and_chat
from tests.contract.telegram_server import ANA, FORUM, GROUP, SMALL_GROUP, Json, entities, private

HEED: Json = {"id": 123456789, "is_bot": True, "first_name": "heed", "username": "heed_bot"}
ANA_AUTHOR = Author("telegram", "111", "Ana")
HOME = Place("telegram", "111", is_private=True)
BEES = Place("telegram", "-1001", is_private=False)

READER = Reader("123456789", ["help", "feedback"])


def message(text: str, chat: Json | None = None, /, sender: Json = ANA, **fields: Any) -> Json:
    """A message as Telegram sends it; fields that are None are left out."""
    content = {"message_id": 5, "date": 1700000000, "chat": chat or private(ANA), "from": sender, "text": text}
    content |= {"entities": entities(text), **fields}
    return {key: value for key, value in content.items() if value is not None}


def read(**update: Any) -> list[Inbound]:
    """What an update says."""
    return READER.read(labelled({"update_id": 1, **update}, "heed_bot"))


def said(text: str, /, *, chat: Json | None = GROUP, **fields: Any) -> MessageReceived:
    """The one thing that a message says."""
    (record,) = read(message=message(text, chat, **fields))
    assert isinstance(record, MessageReceived)
    return record


def answer(message_id: int = 3, chat: Json = GROUP, sender: Json = HEED, **fields: Any) -> Json:
    """A message that is replied to."""
    return {"message_id": message_id, "date": 1700000000, "chat": chat, "from": sender, "text": "Bees.", **fields}


def test_a_private_message_is_addressed() -> None:
    """Everything said in private is said to heed."""
    assert read(message=message("bees?")) == [MessageReceived(ANA_AUTHOR, HOME, "5", "bees?", None, is_addressed=True)]


def test_a_group_message_is_not() -> None:
    """People talk to one another there."""
    assert read(message=message("bees?", GROUP)) == [
        MessageReceived(ANA_AUTHOR, BEES, "5", "bees?", None, is_addressed=False)
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("@heed_bot what are bees?", "what are bees?"),
        ("what are bees? @HEED_BOT", "what are bees?"),
        ("🐝 ask @heed_bot about it", "🐝 ask @heed_bot about it"),
        ("@heed_bot", ""),
    ],
)
def test_a_mention_addresses_heed(text: str, words: str) -> None:
    """The name goes where it only calls heed, and stays where it is part of a sentence."""
    (record,) = read(message=message(text, GROUP))
    assert isinstance(record, MessageReceived)
    assert (record.text, record.is_addressed) == (words, True)


def test_another_bots_name_does_not() -> None:
    """Neither a longer name that begins the same."""
    assert not said("@heed_bot2 what are bees?").is_addressed


def test_a_mention_without_a_username_addresses_heed() -> None:
    """Telegram names the user in the entity then; offsets are UTF-16 units."""
    entity = {"type": "text_mention", "offset": 3, "length": 4, "user": HEED}
    record = said("🐝 heed: bees?", entities=[entity])
    assert record.is_addressed


def test_a_reply_to_heed_is_addressed() -> None:
    """Its `reply_to` is the message it answers."""
    record = said("shorter", reply_to_message=answer())
    assert record.is_addressed
    assert record.reply_to == "3"


def test_a_reply_to_somebody_else_is_not() -> None:
    """It still says what it answers."""
    record = said("shorter", reply_to_message=answer(sender=ANA))
    assert not record.is_addressed
    assert record.reply_to == "3"


def test_what_is_no_text_is_heard_as_nothing_said() -> None:
    """So that heed can say that it reads texts only."""
    voice = {"file_id": "a", "file_unique_id": "a", "duration": 3}
    record = said("", chat=None, text=None, entities=None, voice=voice)
    assert (record.text, record.is_addressed) == ("", True)


def test_a_caption_is_a_text() -> None:
    """What is written under a picture."""
    record = said("", chat=None, text=None, caption="@heed_bot look", caption_entities=entities("@heed_bot look"))
    assert record.text == "look"


@pytest.mark.parametrize(
    ("text", "chat", "name", "argument"),
    [
        ("/help", None, "help", ""),
        ("/Feedback  too long ", None, "feedback", "too long"),
        ("/feedback\ntoo long", None, "feedback", "too long"),
        ("/dance", None, "dance", ""),
        ("/help", GROUP, "help", ""),
        ("/help@Heed_Bot me", GROUP, "help", "me"),
        ("/dance@heed_bot", GROUP, "dance", ""),
        ("@heed_bot /help me", GROUP, "help", "me"),
    ],
)
def test_commands_are_read(text: str, chat: Json | None, name: str, argument: str) -> None:
    """By the entity that Telegram marks, with or without the bot's name."""
    (record,) = read(message=message(text, chat))
    assert isinstance(record, CommandReceived)
    assert (record.name, record.argument) == (name, argument)


@pytest.mark.parametrize(("text", "chat"), [("/help@other_bot", GROUP), ("/help@other_bot", None), ("/ban", GROUP)])
def test_other_bots_commands_are_left_alone(text: str, chat: Json | None) -> None:
    """Those that name another bot, and in groups those that heed does not have."""
    assert read(message=message(text, chat)) == []


def test_a_slash_inside_a_text_is_no_command() -> None:
    """It has to be the first thing said."""
    assert said("see /help", chat=None).text == "see /help"


def test_a_command_is_about_what_it_answers() -> None:
    """`/feedback` as a reply."""
    (record,) = read(message=message("/feedback shorter", GROUP, reply_to_message=answer()))
    assert isinstance(record, CommandReceived)
    assert record.reply_to == "3"


@pytest.mark.parametrize(
    ("chat", "fields", "place"),
    [
        (FORUM, {"message_thread_id": 9, "is_topic_message": True}, "-1002/9"),
        (FORUM, {}, "-1002/1"),
        (GROUP, {"message_thread_id": 9}, "-1001"),
        (None, {"message_thread_id": 9, "is_topic_message": True}, "111/9"),
    ],
)
def test_a_topic_is_a_place(chat: Json | None, fields: Json, place: str) -> None:
    """Of a forum or of a private chat; General has no id of its own; a thread of replies is no topic."""
    assert said("bees?", chat=chat, **fields).place.external_id == place
    raw = {"update_id": 1, "message": message("bees?", chat, **fields)}
    assert sender_and_chat(raw) == ("111", place)


def test_a_message_in_a_topic_is_no_reply() -> None:
    """Telegram makes it one to the message that opened the topic."""
    topic = {"message_thread_id": 9, "is_topic_message": True}
    opened = answer(9, FORUM, forum_topic_created={"name": "Bees", "icon_color": 7322096})
    assert said("bees?", chat=FORUM, reply_to_message=opened, **topic).reply_to is None
    assert said("bees?", chat=FORUM, reply_to_message=answer(9, FORUM), **topic).reply_to is None
    assert said("bees?", chat=FORUM, reply_to_message=answer(8, FORUM), **topic).reply_to == "8"


def test_the_root_of_a_thread_of_replies_is_replied_to() -> None:
    """Outside of forums the thread's id is the message that is answered."""
    assert said("shorter", message_thread_id=3, reply_to_message=answer(3)).reply_to == "3"


@pytest.mark.parametrize(
    "fields",
    [
        {"sender": {**ANA, "is_bot": True}},
        {"sender_chat": GROUP},
        {"from": None},
        {"text": None, "entities": None},
        {"text": None, "entities": None, "new_chat_title": "Wasps"},
    ],
)
def test_nobody_is_not_heard(fields: Json) -> None:
    """Bots, channels, anonymous admins, and messages without words."""
    assert read(message=message("bees?", GROUP, **fields)) == []


def test_an_edit_is_read() -> None:
    """With the words as they are now."""
    edited = message("@heed_bot shorter", GROUP, edit_date=1700000009)
    assert read(edited_message=edited) == [MessageEdited(ANA_AUTHOR, BEES, "5", "shorter")]


def test_an_edited_command_keeps_its_name() -> None:
    """So that it can be told from a plain text."""
    (record,) = read(edited_message=message("/feedback@heed_bot shorter", GROUP))
    assert isinstance(record, MessageEdited)
    assert record.text == "/feedback shorter"


@pytest.mark.parametrize(
    ("old", "new", "added", "removed"),
    [
        ([], ["👍"], ("👍",), ()),
        (["👍"], [], (), ("👍",)),
        (["👍"], ["👎"], ("👎",), ("👍",)),
        (["👍", "🔥"], ["👍", "❤"], ("❤",), ("🔥",)),
    ],
)
def test_reactions_are_compared(old: list[str], new: list[str], added: Any, removed: Any) -> None:
    """Telegram sends both lists; what is new in one is what happened."""
    records = read(message_reaction=reacted(old, new))
    assert records == [ReactionChanged(ANA_AUTHOR, BEES, "3", added, removed)]


def reacted(old: list[str], new: list[str], **fields: Any) -> Json:
    """A change of reactions."""
    lists = {"old_reaction": emoji(old), "new_reaction": emoji(new)}
    return {"chat": GROUP, "message_id": 3, "date": 1700000000, "user": ANA, **lists, **fields}


def emoji(texts: list[str]) -> list[Json]:
    """Reactions; a number is a custom emoji."""
    return [
        {"type": "custom_emoji", "custom_emoji_id": text} if text.isdigit() else {"type": "emoji", "emoji": text}
        for text in texts
    ]


@pytest.mark.parametrize(
    "change",
    [
        reacted(["👍"], ["👍"]),
        reacted([], ["5368324170671202286"]),
        {**reacted([], ["👍"], actor_chat=GROUP), "user": None},
        reacted([], ["👍"], user={**ANA, "is_bot": True}),
    ],
)
def test_reactions_that_say_nothing(change: Json) -> None:
    """No change, custom emoji, anonymous admins and bots."""
    assert read(message_reaction=change) == []


def test_a_press_is_read() -> None:
    """What was pressed, under which message, and what answers it."""
    query = {"id": "77", "from": ANA, "chat_instance": "1", "message": answer(3), "data": "up"}
    assert read(callback_query=query) == [ButtonPressed(ANA_AUTHOR, BEES, "3", "up", "77")]


def test_a_press_under_a_deleted_message_is_read() -> None:
    """Telegram says only which one it was."""
    gone = {"chat": GROUP, "message_id": 3, "date": 0}
    query = {"id": "77", "from": ANA, "chat_instance": "1", "message": gone, "data": "up"}
    assert read(callback_query=query) == [ButtonPressed(ANA_AUTHOR, BEES, "3", "up", "77")]


def test_a_press_without_a_message_is_not() -> None:
    """It belongs to an inline message, which heed never makes."""
    assert read(callback_query={"id": "77", "from": ANA, "chat_instance": "1", "data": "up"}) == []


def test_a_group_moves() -> None:
    """Both chats tell, and both say the same."""
    moved = [ChatMigrated(Place("telegram", "-77", is_private=False), BEES)]
    assert read(message=message("", SMALL_GROUP, migrate_to_chat_id=GROUP["id"])) == moved
    assert read(message=message("", GROUP, migrate_from_chat_id=SMALL_GROUP["id"])) == moved


def test_half_a_surrogate_pair_is_kept() -> None:
    """What to say about it is the core's business; a name is made showable here."""
    odd = {**ANA, "first_name": "A\ud83dna"}
    record = said("a\ud83db @heed_bot", sender=odd, entities=[{"type": "mention", "offset": 4, "length": 9}])
    assert (record.text, record.is_addressed, record.author.display_name) == ("a\ud83db", True, "A\ufffdna")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.data())
def test_malformed_updates_are_dropped(data: st.DataObject) -> None:
    """Any part of an update may be anything: nothing raises, and what is read can be kept."""
    update = json.loads(json.dumps(data.draw(st.sampled_from(UPDATES))))
    part = update
    while True:
        key = data.draw(st.sampled_from(sorted(part)))
        if not isinstance(part[key], dict) or not part[key] or data.draw(st.booleans()):
            break
        part = part[key]
    part[key] = data.draw(JSON)
    sender_and_chat(update)
    assert isinstance(READER.read(update), list)


UPDATES: list[Json] = [
    {"update_id": 1, "message": message("@heed_bot bees?", GROUP, reply_to_message=answer())},
    {"update_id": 1, "edited_message": message("/help", FORUM)},
    {"update_id": 1, "message_reaction": reacted(["👍"], ["👎"])},
    {
        "update_id": 1,
        "callback_query": {"id": "7", "from": ANA, "chat_instance": "1", "message": answer(), "data": "up"},
    },
]


@pytest.mark.parametrize("update", [{}, {"update_id": 1}, {"update_id": 1, "poll": {}}, {"message": 5}])
def test_what_heed_has_no_use_for(update: Json) -> None:
    """Other kinds of updates, and none at all."""
    assert READER.read(update) == []
    assert sender_and_chat(update) == ("", "")
