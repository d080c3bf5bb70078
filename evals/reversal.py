"""The opposite correction: a person who taught a preference takes it back with one more correction.

An answer counts where the first correction had taken effect on the same question: that is read from the version the
first correction made, after everything else, by going back to it.
"""

from functools import partial

from evals import cases
from evals.arms import NOTES, Pair, Texts
from evals.config import EvalConfig
from evals.study import Study
from evals.verdict import follows


def units(config: EvalConfig) -> int:
    """Return steps of the progress bar."""
    return len(config.seeded_preferences)


async def run(study: Study) -> None:
    """Record, for every probe, whether it followed the first correction and whether it is back after the second."""
    await study.once_each("reversal", partial(_one, study))


async def _one(study: Study, seed: int, preference: str) -> None:
    away = cases.wish_for(seed, (preference, 1), "reversal")
    back = cases.opposite(seed, away, "reversal")
    questions = cases.probes(seed, study.config.probes, "reversal", preference)
    texts = [question.text for question in questions]
    about = cases.corrected(seed, 2, "reversal", preference)
    async with study.pair("reversal", seed, preference) as pair:
        lessons = [await pair.teach(about[0], away)]
        noted = await pair.noted.answers(texts)
        lessons.append(await pair.teach(about[1], back))
        second = await pair.answers(questions)
        first = {NOTES: noted, **await _gone_back(pair, lessons[0].version, texts)}
    for wish, lesson in zip((away, back), lessons, strict=True):
        study.lesson("reversal", seed, lesson, preference=preference, wish=wish.text)
    for arm, texts in second.items():
        for asked, old, new in zip(questions, first[arm], texts, strict=True):
            study.record(
                "reversal", seed, arm=arm, preference=preference, question=asked.text, before=old, text=new,
                was_away=follows(old, away), is_back=follows(new, back),
            )  # fmt: skip
    study.advance("reversal")


async def _gone_back(pair: Pair, version: int, texts: list[str]) -> Texts:
    await pair.trained.roll_back(version)
    return await pair.trained_answers(texts)
