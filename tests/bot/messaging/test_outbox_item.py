"""bot.messaging.outbox_item: what is kept comes back as it was, and its parts are told apart."""

from dataclasses import replace

from bot.channel import Button, File, Post
from bot.events import Author, Place
from bot.messaging.outbox_item import NONCE_BYTES, OutboxItem, chat_of
from storage.kinds import OutboxState
from tests.storage import rows

TOPIC = Place("telegram", "-100/7", is_private=False)
POST = Post(
    TOPIC,
    "text",
    ((Button("Undo", "undo"),),),
    "5",
    files=(File("a.bin", b"\x00\xff"),),
    token="t",
    is_private=True,
    wants_reply=True,
    asked=Author("telegram", "7", "Ana"),
)


def test_a_parcel_survives_the_outbox() -> None:
    """Text, buttons, files and where it goes come back from the stored row."""
    outbox_item = OutboxItem.of_post(POST, "u", "key", is_answer=True, role="lesson", about="3")
    outbox_item.shown, outbox_item.after = ["9"], "8"
    row = outbox_item.row()
    assert OutboxItem.of_row(row) == outbox_item
    assert (row.id, row.chat_key, row.external_message_id, row.state) == ("key", "-100", "9", OutboxState.WAITING)


def test_the_first_part_answers_and_the_last_has_the_buttons() -> None:
    """Each part has a nonce of its own, the same every time, and what replaces a message that is gone another one."""
    outbox_item = OutboxItem.of_post(POST, None, "key")
    first, last = (outbox_item.part(["a", "b"], place) for place in range(2))
    assert (first.text, first.reply_to, first.token, first.rows, first.files) == ("a", "5", "t", (), ())
    assert (last.text, last.reply_to, last.token, last.rows, last.files) == ("b", None, "t", POST.rows, POST.files)
    open_post = replace(POST, is_private=False)
    assert OutboxItem.of_post(open_post, None, "key").part(["a", "b"], 1).token == ""
    assert first.nonce != last.nonce
    assert first.nonce == OutboxItem.of_post(POST, None, "key").nonce(0)
    assert len({first.nonce, *(OutboxItem.of_post(POST, None, "key").nonce(0, gone) for gone in ("7", "8"))}) == 3
    assert len(first.nonce) == 2 * NONCE_BYTES <= 25


def test_without_an_answer_there_is_nothing_to_press() -> None:
    """An error in place of an answer has no buttons; an answer keeps them and its id."""
    outbox_item = OutboxItem.of_post(POST, "u", "key", is_answer=True)
    outbox_item.retell("sorry", None)
    assert (outbox_item.post.text, outbox_item.post.rows, outbox_item.completion_id) == ("sorry", (), "")
    outbox_item = OutboxItem.of_post(POST, "u", "key", is_answer=True)
    completion = rows.completion("u")
    outbox_item.retell("llama", completion)
    assert (outbox_item.post.rows, outbox_item.completion_id) == (POST.rows, completion.id)


def test_threads_share_their_chat() -> None:
    """Message ids are unique in a chat with all its topics."""
    assert chat_of(TOPIC) == "-100"
    assert chat_of(Place("discord", "123")) == "123"
