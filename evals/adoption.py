"""One correction: is it adopted on questions never asked before, and what else changed on the same answers?

The retried answer is not counted. Feeds the parts adoption and collateral.
"""

from dataclasses import dataclass
from functools import partial

from evals import cases
from evals.cases import Question, Wish
from evals.config import EvalConfig
from evals.study import Study
from evals.verdict import judge


def units(config: EvalConfig) -> int:
    """Return steps of the progress bar."""
    return config.seeds * len(config.preferences) * len(config.histories)


async def run(study: Study) -> None:
    """Record every probe of every person who corrects once, away from the default."""
    for seed in range(study.config.seeds):
        for preference in study.config.preferences:
            for history in study.config.histories:
                one = partial(_one, study, seed, preference, history)
                await study.once(f"adoption/{seed}/{preference}/{history}", one)


async def _one(study: Study, seed: int, preference: str, history: int) -> None:
    wish = cases.wish_for(seed, (preference, 1), "adoption", history)
    questions = cases.probes(seed, study.config.probes, "adoption", preference)
    about = cases.corrected(seed, 1, "adoption", preference, history)[0]
    before = await study.before([q.text for q in questions])
    async with study.pair("adoption", seed, preference, history) as pair:
        for question in cases.earlier(seed, history, "adoption", preference):
            await pair.trained.say(question)
        lesson = await pair.teach(about, wish)
        answers = await pair.answers(questions)
    study.lesson("adoption", seed, lesson, preference=preference, history=history, wish=wish.text)
    for arm, texts in answers.items():
        for asked, old, new in zip(questions, before, texts, strict=True):
            _record(study, seed, wish, Judged(arm, history, asked, old, new))
    study.advance("adoption")


@dataclass(frozen=True)
class Judged:
    """An answer before and after the lesson, by one arm."""

    arm: str
    history: int
    question: Question
    before: str
    after: str


def _record(study: Study, seed: int, wish: Wish, given: Judged) -> None:
    verdict = judge(given.question, given.before, given.after, [wish])
    study.record(
        "adoption", seed, arm=given.arm, preference=wish.preference, history=given.history,
        question=given.question.text, before=given.before, text=given.after, holds=verdict.held[wish.preference],
        changed=list(verdict.changed), compared=verdict.compared, facts_lost=verdict.facts_lost,
    )  # fmt: skip
