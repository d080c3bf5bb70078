"""engine.pocket.tokenizer: a byte-level BPE with a ChatML template."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.agent.tools import definitions
from engine.host.tool_calls import HERMES, call_format
from engine.pocket import tokenizer
from engine.pocket.workshop import session

TOOLS = definitions()
CALL = {"type": "function", "function": {"name": "read", "arguments": {"path": "a"}}}
CHAT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder in which the tokenizer of this module is built."""
    return tmp_path_factory.mktemp("tokenizer")


@pytest.fixture(scope="module")
def built(folder: Path) -> Any:
    """A tokenizer trained on a few conversations."""
    return tokenizer.build(folder, seed=1, num_conversations=3_000)


def test_building_twice_gives_the_same_tokenizer(tmp_path: Path, folder: Path, built: Any) -> None:
    """The same seed gives the same file, byte for byte."""
    tokenizer.build(tmp_path, seed=1, num_conversations=3_000)
    assert (tmp_path / "tokenizer.json").read_bytes() == (folder / "tokenizer.json").read_bytes()


@given(text=st.text(max_size=60))
def test_any_text_survives(built: Any, text: str) -> None:
    """Encoding and decoding gives back every text, also one the world never used."""
    special = (tokenizer.END_OF_TURN, tokenizer.PADDING, "<|im_start|>", *tokenizer.CALL_MARKS)
    if not any(token in text for token in special):
        assert built.decode(built.encode(text, add_special_tokens=False)) == text


def test_a_rare_word_has_the_same_pieces_in_a_sentence_and_at_the_beginning_of_a_line(built: Any) -> None:
    """So it can be copied from one to the other token by token; frequent words are one token with their blank."""
    for word in ("zorblat", "quintessence", "capacity"):
        alone = built.tokenize(word)
        assert built.tokenize(f" {word}") == ["\u0120", *alone]
        assert built.tokenize(f"\t{word}")[1:] == alone
    assert len(built.tokenize(" the")) == 1


@given(number=st.integers(0, 10**9))
def test_numbers_are_read_digit_by_digit(built: Any, number: int) -> None:
    """A number has one token per digit, so that digits can be copied and compared."""
    assert len(built.encode(str(number), add_special_tokens=False)) == len(str(number))


def test_the_vocabulary_is_full_and_has_its_three_special_tokens(built: Any) -> None:
    """The vocabulary has 2048 tokens, and the end of a turn is the end of a sequence."""
    assert len(built) == tokenizer.VOCABULARY_SIZE
    assert built.eos_token == tokenizer.END_OF_TURN
    assert built.pad_token == tokenizer.PADDING
    assert built.encode("<|endoftext|><|im_start|><|im_end|>") == [0, 1, 2]


def test_the_chat_template_is_chatml(built: Any) -> None:
    """Each message stands between its marks; the prompt for an answer ends where the answer begins."""
    text = built.apply_chat_template(CHAT, tokenize=False, add_generation_prompt=True)
    assert text == ("<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n")


def test_tools_stand_at_the_end_of_the_system_message(built: Any) -> None:
    """Word for word as training has them, also where there is no other system message."""
    text = built.apply_chat_template(CHAT, tools=TOOLS, tokenize=False)
    assert text.startswith(f"<|im_start|>system\nBe brief.\n\n{session.TOOLS}<|im_end|>\n<|im_start|>user\nhi")
    text = built.apply_chat_template(CHAT[1:], tools=TOOLS, tokenize=False)
    assert text.startswith(f"<|im_start|>system\n{session.TOOLS}<|im_end|>\n<|im_start|>user\nhi")
    bare = {"type": "function", "function": {"name": "now", "description": "", "parameters": {"type": "object"}}}
    assert "Tools: now()<|im_end|>" in built.apply_chat_template(CHAT, tools=[bare], tokenize=False)


def test_calls_are_written_as_hermes_does(built: Any) -> None:
    """A call has marks of its own, one token each, and stands on its own line behind words."""
    called = '<tool_call>\n{"name": "read", "arguments": {"path": "a"}}\n</tool_call>'
    for words, shown in (("", called), ("I look.", f"I look.\n{called}")):
        said = [*CHAT, {"role": "assistant", "content": words, "tool_calls": [CALL]}]
        assert f"assistant\n{shown}<|im_end|>\n" in built.apply_chat_template(said, tokenize=False)
    both = [*CHAT, {"role": "assistant", "content": "", "tool_calls": [CALL, CALL]}]
    assert f"{called}\n{called}<|im_end|>" in built.apply_chat_template(both, tokenize=False)
    assert call_format(built) == HERMES
    ids = built.encode(called)
    assert (ids[0], ids[-1]) == tuple(built.convert_tokens_to_ids(list(tokenizer.CALL_MARKS)))
    assert built.decode(ids, skip_special_tokens=True) == called


def test_the_models_tokenizer_is_one_of_these(pocket_tokenizer: Any, built: Any) -> None:
    """The model's folder carries this template, this vocabulary size and these special tokens."""
    assert len(pocket_tokenizer) == len(built)
    assert pocket_tokenizer.eos_token_id == built.eos_token_id
    chats = [t.apply_chat_template(CHAT, tokenize=False, add_generation_prompt=True) for t in (pocket_tokenizer, built)]
    assert chats[0] == chats[1]
