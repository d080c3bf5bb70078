"""engine.prompts.shortening: the oldest turns go first, from all views alike."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from engine.prompts.shortening import ConversationViews, shortened, without_turns
from engine.requests import ChatMessage

SYSTEM = {"role": "system", "content": "be kind"}


def talk(num_turns: int, newest: str = "the newest question") -> list[ChatMessage]:
    """A conversation with a system message, some answered turns and a newest question."""
    turns = [
        [{"role": "user", "content": f"ask {i}"}, {"role": "assistant", "content": f"say {i}"}]
        for i in range(num_turns)
    ]
    return [SYSTEM, *(message for turn in turns for message in turn), {"role": "user", "content": newest}]


def over(room: int) -> Callable[[ConversationViews], int]:
    """Count a token for every character."""
    return lambda views: max(sum(len(m["content"]) for m in view) for view in views) - room


def cut(views: ConversationViews, room: int) -> ConversationViews | None:
    """Shorten with tokens of one character."""
    return shortened(views, over(room), lambda _text, count: count)


def test_what_fits_stays_as_it_is() -> None:
    """Not a copy: nothing has to be read anew."""
    views = [talk(3)]
    assert cut(views, 1000) is views


@given(num_turns=st.integers(0, 6), room=st.integers(1, 120))
def test_system_message_order_and_newest_turn_survive(num_turns: int, room: int) -> None:
    """Whatever the room: it fits, roles take turns, and as many of the newest turns stay as there is room for."""
    whole = talk(num_turns)
    found = cut([whole], room)
    if found is None:
        assert room <= len(SYSTEM["content"])
        return
    (kept,) = found
    assert over(room)([kept]) <= 0
    assert kept[0] == SYSTEM
    assert [m["role"] for m in kept[1:]] == [m["role"] for m in talk((len(kept) - 2) // 2)[1:]]
    assert whole[-1]["content"].endswith(kept[-1]["content"])
    assert kept[-1]["content"]
    dropped = num_turns - (len(kept) - 2) // 2
    assert dropped == 0 or over(room)([without_turns(whole, dropped - 1)]) > 0


def test_views_lose_the_same() -> None:
    """A longer view decides for both; the newest message is cut at the same place, before what stands behind it."""
    student, teacher = talk(3, "0123456789"), talk(3, "0123456789 [feedback]")
    found = cut([student, teacher], len("be kind") + len("789 [feedback]"))
    assert found is not None
    assert [m["content"] for m in found[0]] == ["be kind", "789"]
    assert [m["content"] for m in found[1]] == ["be kind", "789 [feedback]"]


def test_nothing_is_left_where_the_rest_is_too_long() -> None:
    """A system message that fills the room, or no message of a person."""
    assert cut([talk(2)], len("be kind")) is None
    assert cut([[SYSTEM]], 3) is None
