"""engine.prompts.token_bytes: the bytes of each token, also where a character is cut between tokens."""

import pickle

import pytest
from tokenizers import Tokenizer, decoders, models
from transformers import PreTrainedTokenizerFast

from engine.prompts.token_bytes import TokenBytes
from tests.tiny_model import tiny_tokenizer


@pytest.mark.parametrize("text", ["The tiger swims.", " \n\tcaf\u00e9 \u00fcber", "\U0001f642 \u65e5", "\u00ad\x7f"])
def test_the_bytes_of_all_tokens_are_the_text(text: str) -> None:
    """Byte-level tokens join to the text, although single ones may hold half a character."""
    tokenizer = tiny_tokenizer()
    token_bytes = TokenBytes(tokenizer)
    assert b"".join(token_bytes(token_id) for token_id in tokenizer.encode(text)).decode() == text


def test_a_special_token_is_its_own_name() -> None:
    """An added token stands for the characters it is written with; an id that is no token has none."""
    tokenizer = tiny_tokenizer()
    assert TokenBytes(tokenizer)(tokenizer.eos_token_id) == b"<|im_end|>"
    assert TokenBytes(tokenizer)(100_000) == b""


def test_another_process_reads_the_same() -> None:
    """A gateway gets it from an engine."""
    tokenizer = tiny_tokenizer()
    there = pickle.loads(pickle.dumps(TokenBytes(tokenizer)))  # noqa: S301  what was just written
    assert [there(token_id) for token_id in range(50)] == [TokenBytes(tokenizer)(token_id) for token_id in range(50)]


def test_bytes_without_a_token_and_spaces_are_read() -> None:
    """A tokenizer with a fallback writes bytes as <0xE2> and the space as a low line."""
    pieces = {"<unk>": 0, "\u2581bees": 1, "<0xE2>": 2}
    raw = Tokenizer(models.BPE(pieces, [], unk_token="<unk>", byte_fallback=True))
    raw.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
    token_bytes = TokenBytes(PreTrainedTokenizerFast(tokenizer_object=raw))
    assert [token_bytes(1), token_bytes(2)] == [b" bees", b"\xe2"]
