"""bot.channel: the contract between the core and the platforms."""

import re

import pytest

from bot import channel
from bot.channel import Button, ChannelError, Gone, NotOffered, Post, Refused, SlowDown, Unreachable
from bot.errors import BotError
from bot.events import Place


def test_the_tree_of_errors_is_the_one_drawn() -> None:
    """Every error of the module stands in its docstring, and the other way round."""
    drawn = set(re.findall(r"[├└]── (\w+)", channel.__doc__ or ""))
    assert drawn == {kind.__name__ for kind in ChannelError.__subclasses__()}
    assert issubclass(ChannelError, BotError)


@pytest.mark.parametrize(
    ("error", "is_retryable"),
    [
        (SlowDown("wait", 60.0), True),
        (Unreachable("down", is_ambiguous=True), True),
        (Refused("malformed"), False),
        (Gone("blocked"), False),
        (NotOffered("no drafts"), False),
    ],
)
def test_only_what_may_pass_is_tried_again(error: ChannelError, is_retryable: bool) -> None:
    """A platform that asks to wait or is down; never what it does not take."""
    assert error.retryable is is_retryable


def test_errors_carry_what_the_sender_needs() -> None:
    """How long to wait, and whether it may have been done all the same."""
    assert SlowDown("wait", 60.0).retry_after_s == 60.0
    assert Unreachable("down", is_ambiguous=True).is_ambiguous
    assert not Unreachable("down", is_ambiguous=False).is_ambiguous


def test_a_post_is_plain_unless_it_says_otherwise() -> None:
    """No buttons, no files, nothing private; equal ones are equal."""
    post = Post(Place("telegram", "5"), "hello")
    assert (post.rows, post.files, post.nonce, post.token, post.is_private) == ((), (), "", "", False)
    assert post == Post(Place("telegram", "5"), "hello")
    assert Button("Undo", "undo") == Button("Undo", "undo")
