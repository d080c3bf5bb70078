"""Six different corrections in a row: what holds at the end, and what it cost in skills no one talked about.

Every seed shuffles the preferences and teaches one person the first six and another one the rest. Feeds the parts
retention and skills. How each lesson had been adopted when it was new, and what held then of those before it, is read
at the end, by going back version by version, so that no probe is asked before the last lesson.
"""

from collections.abc import Sequence
from functools import partial

from evals import cases, skills
from evals.arms import WEIGHTS, Pair, TaughtLesson
from evals.cases import Question, Wish
from evals.config import CORRECTIONS_IN_SEQUENCE, EvalConfig
from evals.study import Study
from evals.verdict import follows, judge


def units(config: EvalConfig) -> int:
    """Return steps of the progress bar: one per lesson."""
    length = min(CORRECTIONS_IN_SEQUENCE, len(config.preferences))
    return config.seeds * length * -(-len(config.preferences) // CORRECTIONS_IN_SEQUENCE)


async def run(study: Study) -> None:
    """Record every probe and every exercise of every person who corrects six times."""
    for seed in range(study.config.seeds):
        for number, run_of in enumerate(cases.sequences(seed, study.config.preferences, CORRECTIONS_IN_SEQUENCE)):
            await study.once(f"retention/{seed}/{number}", partial(_one, study, seed, number, run_of))


async def _one(study: Study, seed: int, number: int, preferences: Sequence[str]) -> None:
    wishes = [cases.wish_for(seed, (p, 1), "retention", number) for p in preferences]
    questions = cases.probes(seed, study.config.probes, "retention", number)
    async with study.pair("retention", seed, number) as pair:
        lessons = await _teach(study, seed, number, pair, wishes)
        if study.config.wants("skills"):
            asked = cases.exercises(seed, study.config.skills, study.rehearsed, number)
            await skills.record(study, "skills", seed, asked, pair.answers_to, number=number)
        if study.config.wants("retention"):
            await _held(study, seed, number, pair, questions, wishes)
            await _adopted(study, seed, number, pair, questions, list(zip(wishes, lessons, strict=True)))


async def _teach(study: Study, seed: int, number: int, pair: Pair, wishes: Sequence[Wish]) -> list[TaughtLesson]:
    lessons = []
    about = cases.corrected(seed, len(wishes), "retention", number)
    for question, wish in zip(about, wishes, strict=True):
        lesson = await pair.teach(question, wish)
        study.lesson("retention", seed, lesson, number=number, preference=wish.preference, wish=wish.text)
        study.advance("retention")
        lessons.append(lesson)
    return lessons


async def _held(
    study: Study, seed: int, number: int, pair: Pair, questions: list[Question], wishes: Sequence[Wish]
) -> None:
    before = await study.before([q.text for q in questions])
    for arm, texts in (await pair.answers(questions)).items():
        for question, old, new in zip(questions, before, texts, strict=True):
            verdict = judge(question, old, new, wishes)
            study.record(
                "retention", seed, arm=arm, number=number, question=question.text, before=old, text=new,
                held=verdict.held, changed=list(verdict.changed), compared=verdict.compared,
                facts_lost=verdict.facts_lost,
            )  # fmt: skip


async def _adopted(
    study: Study, seed: int, number: int, pair: Pair, questions: list[Question], taught: list[tuple[Wish, TaughtLesson]]
) -> None:
    """Go through the versions, the newest first: heed goes back along a person's versions, never forward."""
    for place, (wish, lesson) in reversed(list(enumerate(taught))):
        await pair.trained.roll_back(lesson.version)
        texts = await pair.trained.answers([q.text for q in questions], "off")
        held = [sum(follows(text, w) for text in texts) / len(texts) for w, _ in taught[: place + 1]]
        study.record(
            "adopted", seed, arm=WEIGHTS, number=number, preference=wish.preference, share=held[-1], lesson=place,
            held_so_far=held,
        )  # fmt: skip
