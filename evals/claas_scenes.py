"""Scenes: what CLaaS's metrics are measured on, for any model (its own three preferences) and for the pocket's world.

Owns the reading of claas_scenes.json, whose words are ours. A person wishes one preference for after one answer; its
pairs, probes and checks stand beside it. The pocket model knows neither English at large nor Python: there the three
preferences of its world that come closest take their place, its own renderer writes the pairs, and the general score
is the share of its skills' questions that are answered rightly. Invariant: no probe is a prompt that was corrected.
"""

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from engine.pocket.style import DEFAULT, render
from engine.pocket.wishes import apply
from evals import cases, claas_metrics
from evals.cases import Question, Wish
from evals.claas_metrics import NUM_PROBES
from evals.client import Messages
from evals.fibonacci import computes_fibonacci
from evals.real.world import real_prompts
from evals.verdict import follows, is_right

Score = Callable[[str], float]  # of an answer, 0 to 1
POCKET_PREFERENCES = ("emoji", "length", "name")
NUM_PAIRS = 3
NUM_EXERCISES = 24  # of the pocket's skills, in place of the general questions
OCEAN = "Describe the ocean for someone who has never seen it."  # the one prompt of entropy and self-ROUGE
POCKET_PROMPT = "Tell me about the koala."  # the same in the pocket's world, which has no ocean
CODE = (
    "Write a Python function fib(n) that returns the n-th Fibonacci number, where fib(0) is 0 and fib(1) is 1. "
    "Answer with the code alone."
)
FORMS: tuple[tuple[str, Score], ...] = (
    ("Tell me about the moon in exactly three sentences.", claas_metrics.has_three_sentences),
    ("Give me a numbered list of at least five fruits.", claas_metrics.has_five_items),
    ('Explain what a spreadsheet is for, without the word "function".', claas_metrics.avoids_the_word),
)
_CHECKS: dict[str, Score] = {
    "no_emoji": claas_metrics.no_emoji, "concise": claas_metrics.concise, "identity": claas_metrics.identity,
}  # fmt: skip


@dataclass(frozen=True)
class ExamplePair:
    """A prompt with an answer as the preference wants it, and one as it does not."""

    messages: Messages
    good: str
    bad: str


@dataclass(frozen=True)
class GeneralQuestion:
    """A question no preference is about, the score of its answer, and its weight in the general score."""

    messages: Messages
    score: Score
    weight: float


@dataclass(frozen=True)
class ClaasScene:
    """One preference, wished for by one person."""

    preference: str
    corrected: Messages
    words: str
    pairs: tuple[ExamplePair, ...]
    probes: tuple[Messages, ...]
    compliance: Score
    general: tuple[GeneralQuestion, ...]
    fixed: Messages  # the prompt of entropy and self-ROUGE


def asked(text: str) -> Messages:
    """Return a conversation of one question."""
    return [{"role": "user", "content": text}]


def real_scenes(seed: int) -> list[ClaasScene]:
    """Return CLaaS's own three preferences, for any model."""
    rows = json.loads((Path(__file__).parent / "claas_scenes.json").read_text(encoding="utf-8"))
    return [_real_scene(seed, row) for row in rows]


def _real_scene(seed: int, row: dict[str, Any]) -> ClaasScene:
    name = row["name"]
    return ClaasScene(
        preference=name,
        corrected=real_prompts(seed, "train", 1, "claas", name)[0].messages,
        words=row["words"][seed % len(row["words"])],
        pairs=tuple(ExamplePair(asked(pair["prompt"]), pair["good"], pair["bad"]) for pair in row["pairs"]),
        probes=tuple(prompt.messages for prompt in real_prompts(seed, "test", NUM_PROBES, "claas", name)),
        compliance=_CHECKS[name],
        general=(GeneralQuestion(asked(CODE), computes_fibonacci, 0.5), *_forms()),
        fixed=asked(OCEAN),
    )


def _forms() -> list[GeneralQuestion]:
    return [GeneralQuestion(asked(text), score, 0.5 / len(FORMS)) for text, score in FORMS]


def pocket_scenes(seed: int, rehearsed: Collection[str]) -> list[ClaasScene]:
    """Return three preferences of the pocket's world; `rehearsed` are the questions that learning itself asks."""
    return [_pocket_scene(seed, preference, rehearsed) for preference in POCKET_PREFERENCES]


def _pocket_scene(seed: int, preference: str, rehearsed: Collection[str]) -> ClaasScene:
    wish = cases.wish_for(seed, (preference, 1), "claas")
    exercises = cases.exercises(seed, NUM_EXERCISES, rehearsed, "claas")
    questions = cases.probes(seed, NUM_PROBES + NUM_PAIRS, "claas", preference)
    return ClaasScene(
        preference=preference,
        corrected=asked(cases.corrected(seed, 1, "claas", preference)[0].text),
        words=wish.text,
        pairs=tuple(_rendered(question, wish) for question in questions[NUM_PROBES:]),
        probes=tuple(asked(question.text) for question in questions[:NUM_PROBES]),
        compliance=partial(_follows, wish),
        general=tuple(
            GeneralQuestion(asked(one.text), partial(_is_right, one), 1 / len(exercises)) for one in exercises
        ),
        fixed=asked(POCKET_PROMPT),
    )


def _rendered(question: Question, wish: Wish) -> ExamplePair:
    good = render(question.content, apply(DEFAULT, [wish.direction], wish.name))
    return ExamplePair(asked(question.text), good, render(question.content, DEFAULT))


def _follows(wish: Wish, text: str) -> float:
    return float(follows(text, wish))


def _is_right(exercise: cases.Exercise, text: str) -> float:
    return float(is_right(text, exercise))
