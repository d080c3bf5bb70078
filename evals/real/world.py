"""Prompts and wishes for any model: what a person asks, what they wish for, and in which words.

Owns the reading of prompts.json and wishes.json, and the draw. Invariants: an answer is corrected on a train
prompt and judged on prompts of the asked split; fresh phrasings are for reports alone, nothing is ever tuned on them.
"""

import csv
import json
import random
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from evals.wish_checks import echoes, follows_wish, repeats

PhrasingSet = Literal["tuned", "fresh"]
Turns = list[dict[str, str]]
_FOLDER = Path(__file__).parent
_ROLES = ("user", "assistant")
# Wishes that no one answer can follow together; "spanish" stands apart, since it renames every other answer.
_ALTERNATIVES = (
    {"shorter", "longer", "one_sentence", "concise"}, {"one_sentence", "list", "numbered", "no_list"},
    {"lowercase", "capitals"}, {"emoji", "no_emoji", "formal"}, {"begins_with", "numbered", "list"},
    {"spanish", "english"},
)  # fmt: skip


@dataclass(frozen=True)
class RealPrompt:
    """A conversation that ends with what a person asks."""

    split: str  # train, development or test
    kind: str
    turns: tuple[str, ...]  # by the person and the model alternately

    @property
    def question(self) -> str:
        """The person's last turn."""
        return self.turns[-1]

    @property
    def messages(self) -> Turns:
        """As a chat call takes them."""
        return [{"role": _ROLES[place % 2], "content": text} for place, text in enumerate(self.turns)]


@dataclass(frozen=True)
class RealWish:
    """A wish whose following a program can check."""

    name: str  # also of its check
    word: str
    tuned: tuple[str, ...]
    fresh: tuple[str, ...]
    opposite: str  # the name of the wish that takes it back, or nothing

    def phrasing(self, seed: int, phrasings: str) -> str:
        """Return the words of a person who wishes this."""
        known = self.fresh if phrasings == "fresh" else self.tuned
        return known[seed % len(known)]

    def is_followed(self, text: str, base: str, question: str = "") -> bool:
        """Return True if an answer follows it, given the base model's answer to the same question.

        An echo of the wish or of the question follows nothing.
        """
        if repeats(text, question) or any(echoes(text, said) for said in (*self.tuned, *self.fresh)):
            return False
        return follows_wish(self.name, text, base, self.word)


def _prompts() -> tuple[RealPrompt, ...]:
    rows = json.loads((_FOLDER / "prompts.json").read_text(encoding="utf-8"))
    return tuple(RealPrompt(row["split"], row["kind"], tuple(row["turns"])) for row in rows)


def _wishes() -> dict[str, RealWish]:
    rows = json.loads((_FOLDER / "wishes.json").read_text(encoding="utf-8"))
    return {r["name"]: RealWish(**r | {"tuned": tuple(r["tuned"]), "fresh": tuple(r["fresh"])}) for r in rows}


def read_rows(name: str) -> list[dict[str, str]]:
    """Return the rows of a table that stands beside this module."""
    return list(csv.DictReader((_FOLDER / name).read_text(encoding="utf-8").splitlines(), delimiter="\t"))


def says(text: str, accepted: str) -> bool:
    """Return True if one of the accepted answers, with bars between, is in the text as whole words."""
    words = accepted.split("|")
    return any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) for word in words)


PROMPTS, REAL_WISHES = _prompts(), _wishes()


def compatible(seed: int, names: Sequence[str], count: int, likely: Collection[str] = ()) -> list[RealWish]:
    """Draw at most `count` wishes that one answer can follow together.

    The `likely` ones come first, and Spanish only where there is nothing else.
    """
    drawn = random.Random(f"{seed}/sequence").sample(sorted(names), len(names))
    found: list[str] = []
    for name in sorted(drawn, key=lambda name: (name not in likely, name == "spanish")):
        if len(found) < count and not any(name in group and group & set(found) for group in _ALTERNATIVES):
            found.append(name)
    return [REAL_WISHES[name] for name in found]


def real_prompts(seed: int, split: str, count: int, *labels: object) -> list[RealPrompt]:
    """Draw `count` different prompts of a split: one kind after the other, so that a few are of several kinds."""
    rng = random.Random("/".join(map(str, (seed, split, *labels))))
    by_kind: dict[str, list[RealPrompt]] = {}
    for prompt in (p for p in PROMPTS if p.split == split):
        by_kind.setdefault(prompt.kind, []).append(prompt)
    columns = [rng.sample(found, len(found)) for found in by_kind.values()]
    rng.shuffle(columns)
    rounds = range(max(map(len, columns)))
    return [column[place] for place in rounds for column in columns if place < len(column)][:count]
