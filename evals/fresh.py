"""Fresh words: one correction in wordings that no one has tuned on, told apart from every other figure.

The held-out phrasings of the pocket world served as a development set; these (fresh_wishes.json) are for reports alone.
Invariant: none of them is in the pocket's grammar, and no training, default or bound is ever chosen by this figure. The
subjects that are asked about are those of every part: the pocket model knows their facts in every style (ADR 4).
"""

import json
from functools import partial
from pathlib import Path

from engine.pocket.wishes import HELD_OUT_NAMES
from evals import cases
from evals.cases import Wish
from evals.config import EvalConfig
from evals.study import Study
from evals.verdict import follows

WORDINGS: dict[str, list[str]] = json.loads(Path(__file__).with_name("fresh_wishes.json").read_text(encoding="utf-8"))


def units(config: EvalConfig) -> int:
    """Return steps of the progress bar."""
    return len(config.seeded_preferences)


async def run(study: Study) -> None:
    """Record every probe of every person who corrects once in fresh words."""
    await study.once_each("fresh", partial(_one, study))


def fresh_wish(seed: int, preference: str) -> Wish:
    """Return a wish away from the default, in the fresh words of a seed."""
    name = cases.draw(seed, "fresh", preference).choice(HELD_OUT_NAMES)
    wordings = WORDINGS[preference]
    return Wish((preference, 1), name, wordings[seed % len(wordings)].replace("{x}", name))


async def _one(study: Study, seed: int, preference: str) -> None:
    wish = fresh_wish(seed, preference)
    questions = cases.probes(seed, study.config.probes, "fresh", preference)
    async with study.pair("fresh", seed, preference) as pair:
        lesson = await pair.teach(cases.corrected(seed, 1, "fresh", preference)[0], wish)
        answers = await pair.answers(questions)
    study.lesson("fresh", seed, lesson, preference=preference, wish=wish.text)
    for arm, texts in answers.items():
        for question, text in zip(questions, texts, strict=True):
            study.record(
                "fresh", seed, arm=arm, preference=preference, question=question.text, text=text,
                holds=follows(text, wish),
            )  # fmt: skip
    study.advance("fresh")
