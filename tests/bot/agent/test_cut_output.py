"""bot.agent.cut_output: the beginning and the end of an output of any length."""

import pytest

from bot.agent.cut_output import CutOutput


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_the_middle_is_cut(size: int) -> None:
    """However it comes in pieces, the same is kept; a short one is whole."""
    data = b"".join(b"%03d " % number for number in range(100))
    kept, whole = CutOutput(40), CutOutput(400)
    for start in range(0, len(data), size):
        kept.take(data[start : start + size])
        whole.take(data[start : start + size])
    assert kept.text == "000 001 002 003 004 \n... 360 characters ...\n095 096 097 098 099 "
    assert whole.text == data.decode()


def test_characters_come_in_pieces_and_some_are_none() -> None:
    """A character that is cut is put together; what is no UTF-8 is replaced."""
    output = CutOutput(100)
    for byte in "né€🙂".encode() + b"\xff!":
        output.take(bytes([byte]))
    assert output.text == "né€🙂\ufffd!"
