"""Neutral prompts: topics for people with few prompts of their own, and anchors that an update must not change.

Owns five lists. `topics` are questions whose answers show a person's style (counterfactual rollouts), kind by kind, and
`foreign` are more of them in other languages: what is taught on everyday questions alone does not reach code or German.
`anchors` are questions with one right answer (the student is held to the base on them). All are disjoint from every
evaluation. `frames` are questions with a place {x} for a word of a note, `things` are common things to tell of
(`engine.samples.questions`). A model folder may bring its own list (`heed_bank.json`); any other model uses the shipped
one.
"""

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from engine.requests import ChatMessage

FILE_NAME = "heed_bank.json"
_LEAST_KNOWN = 0.5  # of a text's trigrams; English ones have .6 to .95 of the shipped bank's, others 0 to .5
_TELLING = 20  # prompts that show the trigrams of a language
_SHIPPED = Path(__file__).parent / "bank.json"


@dataclass(frozen=True)
class Bank:
    """Conversations that end in a user message, and frames of such messages."""

    topics: tuple[str, ...]
    anchors: tuple[str, ...]
    frames: tuple[str, ...] = ()
    things: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError if a list is empty."""
        if not (self.topics and self.anchors):
            raise ValueError("a bank needs topics and anchors")

    def sample_topics(self, count: int, rng: random.Random) -> list[list[ChatMessage]]:
        """Draw `count` different topics, one from each stretch of the list, so that every kind is among them."""
        topics = (*self.topics, *self.foreign)
        count = min(count, len(topics))
        bounds = [i * len(topics) // count for i in range(count + 1)] if count else []
        drawn = [rng.choice(topics[low:high]) for low, high in pairwise(bounds)]
        return [_asked(t) for t in rng.sample(drawn, count)]

    def is_foreign_to(self, prompts: Sequence[str]) -> bool:
        """Return True if a person's prompts seem to be in another language: few of their trigrams are the bank's.

        A bank of a few prompts cannot tell.
        """
        if len(self.topics) + len(self.anchors) < _TELLING:
            return False
        found = _trigrams(prompts)
        return bool(found) and len(found & self._known_trigrams) < _LEAST_KNOWN * len(found)

    def sample_anchors(self, count: int, rng: random.Random) -> list[list[ChatMessage]]:
        """Draw `count` different anchors, fewer if the bank is smaller."""
        return [_asked(t) for t in rng.sample(self.anchors, min(count, len(self.anchors)))]

    @cached_property
    def _known_trigrams(self) -> set[str]:
        return _trigrams((*self.topics, *self.anchors))


def _trigrams(texts: Iterable[str]) -> set[str]:
    plain = [f" {' '.join(text.casefold().split())} " for text in texts]
    return {text[i : i + 3] for text in plain for i in range(len(text) - 2)}


def _asked(text: str) -> list[ChatMessage]:
    return [{"role": "user", "content": text}]


def load_bank(folder: Path) -> Bank:
    """Read the bank of a model folder, or the shipped one. Raises ValueError on a damaged file."""
    own = folder / FILE_NAME
    values = json.loads((own if own.is_file() else _SHIPPED).read_text())
    more = (tuple(values.get(name, ())) for name in ("frames", "things", "foreign"))
    return Bank(tuple(values["topics"]), tuple(values["anchors"]), *more)
