"""engine.prompts.reasoning: thoughts and answer told apart."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.prompts.reasoning import (
    KNOWN_MARKS,
    USUAL_MARKS,
    Marks,
    Reasoning,
    ReasoningParts,
    marks_of,
    parted,
    without_thoughts,
)
from tests.engine.live import Live

PIECES = ["<think>", "</think>", "<", "/think>", "think>", "<thi", " ", "\n", "why", "because", "</", ">"]


@pytest.mark.parametrize(
    ("text", "reasoning", "said"),
    [
        ("plain words", "", "plain words"),
        ("  plain words \n", "", "  plain words \n"),
        ("<think>\nwhy?\n</think>\n\nBecause.", "why?", "Because."),
        (" \n<think>why?</think>Because. ", "why?", "Because. "),
        ("<think></think>\n\nBecause.", "", "Because."),
        ("<think>never ends", "never ends", ""),
        ("why?\n</think>\n\nBecause.", "why?", "Because."),
        ("Say <think>x<think>", "", "Say <think>x<think>"),
        ("<think>a</think>b</think>c", "a", "b</think>c"),
        ("<thinking> is a word", "", "<thinking> is a word"),
        ("<thi", "", "<thi"),
        ("", "", ""),
    ],
)
def test_a_whole_text_is_parted(text: str, reasoning: str, said: str) -> None:
    """Thoughts stand at the very beginning only; blanks beside the marks go, others stay."""
    assert parted(text) == ReasoningParts(reasoning, said)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (" <think>why?</think>\nBecause.", "Because."),
        ("Use <think> </think>.", "Use <think> </think>."),
        ("why? </think> Because.", "why? </think> Because."),
        ("<think>why?", "<think>why?"),
    ],
)
def test_only_closed_thoughts_at_the_beginning_are_cut_off(text: str, answer: str) -> None:
    """A text about thinking, thoughts that were never opened and thoughts that never end stay as they are."""
    assert without_thoughts(text) == answer


@pytest.mark.parametrize("marks", KNOWN_MARKS)
def test_every_known_pair_of_marks_is_parted(marks: Marks) -> None:
    """A model's own marks are its marks; those of another model are text."""
    said = f"{marks.opening}\nwhy?\n{marks.closing}\n\nBecause."
    assert parted(said, marks) == ReasoningParts("why?", "Because.")
    assert parted(said.removeprefix(marks.opening), marks) == ReasoningParts("why?", "Because.")
    assert without_thoughts(said) == "Because."
    other = next(pair for pair in KNOWN_MARKS if pair != marks)
    assert parted(said, other) == ReasoningParts("", said)


@given(
    pieces=st.lists(st.sampled_from(PIECES), max_size=12),
    cuts=st.sets(st.integers(0, 160)),
    marks=st.sampled_from(KNOWN_MARKS),
    is_open=st.booleans(),
)
def test_the_parts_do_not_depend_on_the_pieces(pieces: list[str], cuts: set[int], marks: Marks, is_open: bool) -> None:
    """A stream gives the same thoughts and the same answer for every way of cutting it."""
    text = "".join(pieces).replace("<think>", marks.opening).replace("</think>", marks.closing)
    places = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]
    assert streamed([text[a:b] for a, b in pairwise(places)], marks, is_open) == streamed([text], marks, is_open)


def streamed(pieces: list[str], marks: Marks, is_open: bool) -> ReasoningParts:
    """Return the joined parts of a stream."""
    reasoning = Reasoning(marks, is_open=is_open)
    found = [*map(reasoning.take, pieces), reasoning.rest()]
    return ReasoningParts("".join(p.reasoning for p in found), "".join(p.text for p in found))


def test_words_go_out_as_soon_as_they_are_certain() -> None:
    """Only a possible beginning of a mark is held back."""
    reasoning = Reasoning()
    assert reasoning.take("<th") == ReasoningParts("", "")
    assert reasoning.take("ink>why <") == ReasoningParts("why", "")
    assert reasoning.take("b>?</think>\n") == ReasoningParts(" <b>?", "")
    assert reasoning.take("\nBecause") == ReasoningParts("", "Because")
    assert reasoning.take(" so") == ReasoningParts("", " so")


@pytest.mark.engine
@pytest.mark.asyncio(loop_scope="session")
async def test_a_template_that_opens_the_thoughts_is_seen(
    live: Live, pocket_tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Text before the closing mark is reasoning, and the token record holds all of it."""
    plain = await live.result(await live.person(), "Tell me about the koala.")
    monkeypatch.setattr(pocket_tokenizer, "chat_template", pocket_tokenizer.chat_template + "<think>\n")
    monkeypatch.setattr(live.parts.context.prompts, "_tokenizer", pocket_tokenizer)
    result = await live.result(await live.person(), "Tell me about the koala.")
    assert (plain.reasoning, bool(plain.text)) == ("", True)
    assert result.text == ""
    assert result.reasoning.strip()
    assert len(result.completion_token_ids) == len(result.logprobs) > 1


class Named:
    """A tokenizer with a chat template and one token."""

    def __init__(self, template: str | None, token: str = "") -> None:
        self.chat_template = template
        self.added_tokens_decoder = {7: token}


def test_a_model_names_the_marks_of_its_thoughts() -> None:
    """In its chat template or among its tokens; a model that names none has the usual ones."""
    assert marks_of(Named("{{ bos }}[THINK]")) == marks_of(Named(None, "[THINK]")) == ("[THINK]", "[/THINK]")
    assert marks_of(Named("{{ bos }}<think>")) == marks_of(Named(None)) == ("<think>", "</think>")
    assert marks_of(Named("{{ bos }}<thinking>", "<think>")) == ("<thinking>", "</thinking>")
    assert marks_of(Named("no marks", "<|START_THINKING|>")) == ("<|START_THINKING|>", "<|END_THINKING|>")
    assert marks_of(Named("a word: thinking")) == USUAL_MARKS
