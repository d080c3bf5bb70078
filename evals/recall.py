"""Twenty things a person told once, one consolidation, then a new conversation with the notes that stayed, and without.

What is told are facts about the person, as standing notes; nothing is corrected. They are asked for in words that no
consolidation makes questions of (`engine.pocket.bank.FRAMES`). Beside that: questions that have nothing to do with
it, which must be answered as before, and some for what was never told, which nothing told may answer.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from engine.pocket.bank import FRAMES
from engine.pocket.talk import PersonalFact, personal_fact
from engine.pocket.wishes import HELD_OUT_NAMES
from engine.samples.questions import framed
from evals import cases
from evals.arms import WEIGHTS, Pair
from evals.config import EvalConfig
from evals.study import Study

NUM_TOLD = 20
NUM_KNOWN = 14  # kinds of things that the pocket world tells: twelve beings, a colour, a home
BEINGS = ("fish", "team", "uncle", "neighbour", "goat", "father", "cow", "garden")  # read in a prompt, never trained
UNTOLD = (  # nothing ever tells of these, nor do the questions about untold things that are trained
    "grandmother", "niece", "nephew", "puppy", "kitten", "pony", "goose", "tiger", "elephant", "penguin", "tutor",
    "landlord", "mayor", "pilot", "barber", "dentist", "gardener", "butler",
)  # fmt: skip
NUM_UNRELATED = 30  # questions about subjects, and as many exercises


@dataclass(frozen=True)
class ToldFact:
    """One thing told, a question for it, and the word its answer must carry."""

    text: str
    question: str
    value: str


def units(config: EvalConfig) -> int:
    """Return steps of the progress bar: one per person."""
    return config.seeds


async def run(study: Study) -> None:
    """Record what one person of each seed is told back."""
    for seed in range(study.config.seeds):
        await _one(study, seed)
        study.advance("recall")


async def _one(study: Study, seed: int) -> None:
    facts = told(seed, NUM_TOLD)
    async with study.pair("recall", seed) as pair:
        for fact in facts:
            await pair.noted.note(fact.text)
            await pair.trained.note(fact.text)
        outcome = await pair.trained.sleep()
        left = await pair.trained.in_weights()
        study.record("recall", seed, event="sleep", status=outcome["status"], reason=outcome["reason"])
        for arm, texts in (await pair.answers_to([fact.question for fact in facts])).items():
            for fact, text in zip(facts, texts, strict=True):
                study.record(
                    "recall", seed, arm=arm, told=fact.text, question=fact.question, text=text,
                    is_recalled=fact.value.lower() in text.lower(), has_left=fact.text in left,
                )  # fmt: skip
        unrelated = _unrelated(study, seed)
        before = await study.before(unrelated)
        after = await pair.trained.answers(unrelated, "off")
        for question, old, new in zip(unrelated, before, after, strict=True):
            study.record(
                "recall", seed, arm=WEIGHTS, question=question, before=old, text=new, is_changed=old != new
            )  # fmt: skip
        await _record_untold(study, seed, pair, facts)
        saved, said = await pair.trained.note_tokens()
        study.record("recall", seed, event="tokens", saved=saved, said=said)


async def _record_untold(study: Study, seed: int, pair: Pair, facts: Sequence[ToldFact]) -> None:
    """Ask for what was never told: does the answer hold something that was?"""
    values = [fact.value.lower() for fact in facts]
    beings = [being for being in BEINGS if not any(being in fact.text.split() for fact in facts)]
    questions = [f"what is the name of my {being}?" for being in (*beings, *UNTOLD)]
    for arm, texts in (await pair.trained_answers(questions)).items():
        for question, text in zip(questions, texts, strict=True):
            is_invented = any(value in text.lower() for value in values)
            study.record("recall", seed, arm=arm, question=question, text=text, is_invented=is_invented)


def told(seed: int, count: int) -> list[ToldFact]:
    """Different things a person tells of themselves: what the pocket world knows, then beings it never heard of."""
    rng = cases.draw(seed, "recall", "told")
    known: dict[str, PersonalFact] = {}
    for _ in range(cases.MAX_DRAWS * NUM_KNOWN):
        if len(known) == NUM_KNOWN:
            break
        fact = personal_fact(rng)
        if fact.value not in {other.value for other in known.values()}:
            known.setdefault(fact.key, fact)
    found = [_asked(fact, rng) for fact in known.values()]
    beings, names = rng.sample(BEINGS, len(BEINGS)), rng.sample(HELD_OUT_NAMES, len(HELD_OUT_NAMES))
    found += [
        ToldFact(f"my {being} is called {name}", f"what is the name of my {being}?", name)
        for being, name in zip(beings, names, strict=False)
    ]
    return rng.sample(found[:count], min(count, len(found)))


def _asked(fact: PersonalFact, rng: random.Random) -> ToldFact:
    """Return the fact with a question in words that no frame has."""
    made = {text.lower() for text in framed(fact.told, FRAMES)}
    return ToldFact(fact.told, rng.choice([text for text in fact.asks if text not in made]), fact.value)


def _unrelated(study: Study, seed: int) -> list[str]:
    """Questions about subjects, and exercises of every skill, none of which learning rehearses."""
    asked = [q.text for q in cases.probes(seed, NUM_UNRELATED, "recall")]
    return [*asked, *(e.text for e in cases.exercises(seed, NUM_UNRELATED, study.rehearsed, "recall"))]
