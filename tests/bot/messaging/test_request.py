"""bot.messaging.request: answers go where they belong, under keys that survive a restart."""

from bot.events import MessageReceived
from bot.messaging.inbox import Done
from bot.messaging.request import ANSWER_ROWS, ChatRequest
from tests.bot.fake_channel import ANA, GROUP, HOME, FakeChannel, FakePlatform


def request(**fields: object) -> ChatRequest:
    """Ana said something."""
    channel = FakeChannel(FakePlatform())
    item = channel.update(MessageReceived(ANA, HOME, "5", "bees"), "77")
    item.seq = 3
    values: dict[str, object] = {"place": HOME, "message_id": "5"} | fields
    return ChatRequest(channel, item, Done(3), ANA, **values)  # type: ignore[arg-type]


def test_what_is_said_in_a_group_says_to_whom() -> None:
    """In private and to an interaction nothing is quoted."""
    assert request(place=GROUP).post("x").reply_to == "5"
    assert request().post("x").reply_to is None
    assert request(place=GROUP).post("x", token="t").reply_to is None


def test_heeds_own_words_are_shown_letter_for_letter() -> None:
    """A person's words that heed says again are no Markdown."""
    assert request().post("Noted: 2*3*4, __init__.py").text == r"Noted: 2\*3\*4, \_\_init\_\_.py"


def test_keys_are_the_updates() -> None:
    """The same for the same update, whoever handles it."""
    assert request().idempotency_key == request().idempotency_key == "telegram:7:77"
    assert request().key("lesson") == "lesson-3"


def test_what_is_done_is_not_marked_done_again() -> None:
    """What is said after an effect that has marked the update is said without the mark, which would refuse it."""
    asked = request()
    assert asked.undone is asked.done
    asked.done.is_called = True
    assert asked.undone is None


def test_every_action_fits_into_a_button() -> None:
    """Telegram takes 64 bytes, the contract says 48."""
    assert all(button.action.isascii() and len(button.action) <= 48 for row in ANSWER_ROWS for button in row)
