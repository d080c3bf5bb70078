"""Neutral prompts: topics for people with few prompts of their own, and anchors that an update must not change.

Owns seven lists. `topics` are questions whose answers show a person's style (counterfactual rollouts), kind by kind,
`threads` are more of them behind earlier turns, and `foreign` in other languages: what is taught on everyday questions
alone does not reach the middle of a chat, code or German. `tasks` are what an agent is asked to do, some of them begun:
the topics of a correction of its work.
`anchors` are questions with one right answer (the student is held to the base on them). All are disjoint from every
evaluation. `frames` are questions with a place {x} for a word of a note, `things` are common things to tell of
(`engine.samples.questions`). A model folder may bring its own list (`heed_bank.json`); any other model uses the shipped
one.
"""

import json
import random
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from engine.requests import ChatMessage

FILE_NAME = "heed_bank.json"
_LEAST_KNOWN = 0.5  # of a text's trigrams; English ones have .6 to 1 of the shipped topics', most others 0 to .5
_TELLING = 20  # topics that show the trigrams of a language
_ROLES = ("user", "assistant")
Task = tuple[tuple[str, str], ...]  # role and text of each message, the person's first
_SHIPPED = Path(__file__).parent / "bank.json"


@dataclass(frozen=True)
class Bank:
    """Conversations that end in a user message, and frames of such messages."""

    topics: tuple[str, ...]
    anchors: tuple[str, ...]
    frames: tuple[str, ...] = ()
    things: tuple[str, ...] = ()
    threads: tuple[tuple[str, ...], ...] = ()  # turns of a person and the model, the last one a person's
    foreign: tuple[str, ...] = ()
    tasks: tuple[Task, ...] = ()
    task_tools: tuple[str, ...] = ()  # names of the tools that a task may need

    def __post_init__(self) -> None:
        """Raise ValueError if a list is empty."""
        if not (self.topics and self.anchors):
            raise ValueError("a bank needs topics and anchors")

    def sample_topics(self, count: int, rng: random.Random) -> list[list[ChatMessage]]:
        """Draw `count` different topics, one from each stretch of the list, so that every kind is among them."""
        topics = [*map(_asked, self.topics), *map(_conversation, self.threads), *map(_asked, self.foreign)]
        return _spread(topics, count, rng)

    def sample_tasks(self, count: int, tools: Collection[str], rng: random.Random) -> list[list[ChatMessage]]:
        """Draw as `sample_topics` does; none if an agent has not all the tools that a task may need."""
        if not self.tasks or not {*self.task_tools} <= {*tools}:
            return []
        return _spread([[{"role": role, "content": text} for role, text in task] for task in self.tasks], count, rng)

    def is_foreign_to(self, prompts: Sequence[str]) -> bool:
        """Return True if a person's prompts seem to be in another language: few of their trigrams are the topics'.

        Anchors are full of names, which all languages share; a bank of a few topics cannot tell.
        """
        if len(self.topics) < _TELLING:
            return False
        found = _trigrams(prompts)
        return bool(found) and len(found & self._known_trigrams) < _LEAST_KNOWN * len(found)

    def sample_anchors(self, count: int, rng: random.Random) -> list[list[ChatMessage]]:
        """Draw `count` different anchors, fewer if the bank is smaller."""
        return [_asked(t) for t in rng.sample(self.anchors, min(count, len(self.anchors)))]

    @cached_property
    def _known_trigrams(self) -> set[str]:
        return _trigrams(self.topics)


def _spread(topics: Sequence[list[ChatMessage]], count: int, rng: random.Random) -> list[list[ChatMessage]]:
    """Draw one from each of `count` stretches of a list, in random order."""
    count = min(count, len(topics))
    bounds = [i * len(topics) // count for i in range(count + 1)] if count else []
    return rng.sample([rng.choice(topics[low:high]) for low, high in pairwise(bounds)], count)


def _trigrams(texts: Iterable[str]) -> set[str]:
    plain = [f" {' '.join(text.casefold().split())} " for text in texts]
    return {text[i : i + 3] for text in plain for i in range(len(text) - 2)}


def _asked(text: str) -> list[ChatMessage]:
    return _conversation([text])


def _conversation(turns: Sequence[str]) -> list[ChatMessage]:
    return [{"role": _ROLES[place % 2], "content": text} for place, text in enumerate(turns)]


def load_bank(folder: Path) -> Bank:
    """Read the bank of a model folder, or the shipped one. Raises ValueError on a damaged file."""
    own = folder / FILE_NAME
    return _read(own) if own.is_file() else shipped_bank()


def shipped_bank() -> Bank:
    """Read the bank of every model that brings none."""
    return _read(_SHIPPED)


def _read(path: Path) -> Bank:
    values = json.loads(path.read_text())
    threads = tuple(map(tuple, values.get("threads", ())))
    tasks = tuple(tuple((role, text) for role, text in task) for task in values.get("tasks", ()))
    more = {name: tuple(values.get(name, ())) for name in ("frames", "things", "foreign", "task_tools")}
    return Bank(tuple(values["topics"]), tuple(values["anchors"]), threads=threads, tasks=tasks, **more)
