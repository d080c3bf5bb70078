"""Every preference corrected once, ordinary chats in each gap: what holds in the end, and the prompt tokens it saves.

The chats are questions and small talk without feedback. No one is probed before the last lesson.
"""

from functools import partial

from engine.pocket.talk import SMALL_TALK
from evals import cases
from evals.arms import Pair
from evals.cases import Question, Wish
from evals.config import EvalConfig
from evals.study import Study
from evals.verdict import judge


def units(config: EvalConfig) -> int:
    """Return steps of the progress bar: one per lesson."""
    return config.seeds * len(config.preferences)


async def run(study: Study) -> None:
    """Record every probe of every person who corrects as many times as there are preferences."""
    for seed in range(study.config.seeds):
        await study.once(f"lasting/{seed}", partial(_one, study, seed))


async def _one(study: Study, seed: int) -> None:
    wishes = [cases.wish_for(seed, (p, 1), "lasting") for p in cases.shuffled(seed, study.config.preferences)]
    questions = cases.probes(seed, study.config.probes, "lasting")
    about = cases.corrected(seed, len(wishes), "lasting")
    async with study.pair("lasting", seed) as pair:
        for question, wish in zip(about, wishes, strict=True):
            lesson = await pair.teach(question, wish)
            study.lesson("lasting", seed, lesson, preference=wish.preference, wish=wish.text)
            await chat(pair, seed, study.config.between, wish.preference)
            study.advance("lasting")
        saved, said = await pair.trained.note_tokens()
        study.record("lasting", seed, event="tokens", saved=saved, said=said)
        await _record(study, seed, pair, questions, wishes)


async def chat(pair: Pair, seed: int, count: int, *labels: object) -> None:
    """Ordinary messages of the trained person, in order, half of them small talk; nothing is said about the answers."""
    rng = cases.draw(seed, "chats", *labels)
    questions = [q.text for q in cases.earlier(seed, count, "chats", *labels)]
    small = [rng.choice(asks) for _, asks, _ in SMALL_TALK]
    texts = [rng.choice(small) if i % 2 else text for i, text in enumerate(questions)]
    await pair.trained.answers(texts)


async def _record(study: Study, seed: int, pair: Pair, questions: list[Question], wishes: list[Wish]) -> None:
    before = await study.before([q.text for q in questions])
    for arm, texts in (await pair.answers(questions)).items():
        for question, old, new in zip(questions, before, texts, strict=True):
            verdict = judge(question, old, new, wishes)
            study.record(
                "lasting", seed, arm=arm, question=question.text, before=old, text=new, held=verdict.held,
                facts_lost=verdict.facts_lost,
            )  # fmt: skip
