"""engine.reading.reader: a text on its way to the model and to the probe."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from engine.host.trainer_client import States
from engine.prompts.builder import PromptBuilder
from engine.reading.probe import DEPTHS, MEANINGS
from engine.reading.reactions import LabelledReaction
from engine.reading.reader import MAX_TOKENS, ReactionReader
from engine.sample import Passage
from storage.kinds import Meaning


class Telling:
    """A model whose states tell the meaning by the first token of a text."""

    def __init__(self) -> None:
        self.seen: list[Passage] = []

    async def states(self, passages: Sequence[Passage], depths: Sequence[float]) -> States:
        self.seen += passages
        random = np.random.default_rng(0)
        found = random.normal(size=(len(passages), len(depths), 8)).astype(np.float32)
        for state, passage in zip(found, passages, strict=True):
            state[:, passage.token_ids[passage.first] % 5] += 6
        return found


class Letters:
    """A tokenizer of letters with a plain template."""

    all_special_tokens: tuple[str, ...] = ()
    added_tokens_decoder: dict[int, str] = {}  # noqa: RUF012 - nothing is added
    init_kwargs: dict[str, object] = {}  # noqa: RUF012 - nothing is set

    def encode(self, text: str, **_: object) -> list[int]:
        return [ord(letter) for letter in text]

    def apply_chat_template(self, messages: Sequence[dict[str, str]], **_: object) -> str:
        return "".join(f"<{m['role']}>{m['content']}" for m in messages) + "<assistant>"


@pytest.fixture
def source() -> Telling:
    """A model."""
    return Telling()


def reader(source: Telling) -> ReactionReader:
    """Return a reader without a probe."""
    return ReactionReader(source, PromptBuilder(Letters(), 1000), None)


async def test_without_a_probe_nothing_is_read(source: Telling) -> None:
    """And the model is not asked."""
    assert await reader(source).read("too long") is None
    assert await reader(source).read_all(["too long"]) == []
    assert source.seen == []


async def test_a_fitted_probe_reads(source: Telling) -> None:
    """Fitted to labelled reactions, it reads others by what the model's states tell."""
    own = reader(source)
    letters = ["A", "B", "C", "D", "E"]
    endings = ["".join(pair) for pair in zip("bcdfghklmnpqrstvwxyz", "zxwvtsrqpnmlkhgfdcbj", strict=True)]
    taught = [LabelledReaction("en", MEANINGS[ord(a) % 5], f"{a}{end}{end[::-1]}") for a in letters for end in endings]
    assert await own.fit(taught) is own.probe
    found = await own.read("B says something")
    assert found is not None
    assert found.label == MEANINGS[ord("B") % 5]
    assert isinstance(found.label, Meaning)
    assert await own.read("  ") is None
    own.probe = replace(own.probe, choice=replace(own.probe.choice, accuracy=0.5))  # type: ignore[arg-type, union-attr]
    assert await own.read("B says something") is None  # a probe that reads badly decides nothing


async def test_a_long_text_is_cut(source: Telling) -> None:
    """The model sees its beginning between the marks of a person's turn."""
    own = reader(source)
    await own._states(["x" * 5000])
    (passage,) = source.seen
    assert passage.end - passage.first == MAX_TOKENS
    assert bytes(passage.token_ids[: passage.first]).decode().endswith("Here is my answer.<user>")
    assert bytes(passage.token_ids[passage.end :]).decode() == "<assistant>"
    assert len(DEPTHS) == 5
