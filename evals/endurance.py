"""Hundreds of corrections by one person, at random and often back again: is the latest state of everything right?

Each lesson turns one preference, drawn at random, to its other side. At the end every preference is probed, with its
latest value; then heed goes back to the version after the fiftieth lesson, and the skills no one talked about are
asked. A person else, who was taught once before, is asked the same after every hundred lessons (`evals.bystander`).
"""

from collections.abc import Sequence
from functools import partial

from engine.pocket.style import Direction
from evals import cases, skills
from evals.arms import WEIGHTS, TaughtPerson, Texts
from evals.bystander import Bystander
from evals.cases import Question, Wish
from evals.config import EvalConfig
from evals.study import Study
from evals.verdict import judge

ALERTS = ("entropy", "variety", "drift")  # the gates that watch for collapse
BYSTANDER_EVERY = 100
SKILLS_AFTER = 50
PART = "endurance"


def units(config: EvalConfig) -> int:
    """Return steps of the progress bar: one per lesson."""
    return config.seeds * config.updates


async def run(study: Study) -> None:
    """Record the lessons, the probes at the end, the skills, and the answers of another person."""
    for seed in range(study.config.seeds):
        await _one(study, seed)


def wishes(seed: int, preferences: Sequence[str], count: int) -> list[Wish]:
    """`count` corrections, each the opposite of what its preference was."""
    rng = cases.draw(seed, "endurance")
    name = cases.wish_for(seed, ("name", 1), "endurance").name
    is_away = dict.fromkeys(preferences, False)
    told = []
    for number in range(count):
        preference = rng.choice(list(preferences))
        is_away[preference] = not is_away[preference]
        direction: Direction = (preference, 1 if is_away[preference] else 0)
        told.append(cases.wish_for(seed, direction, "endurance", number, name=name))
    return told


async def _one(study: Study, seed: int) -> None:
    """Every lesson is a unit of its own: a run that breaks off goes on with the same person at the next one."""
    told = wishes(seed, study.config.preferences, study.config.updates)
    questions = cases.probes(seed, study.config.probes, "endurance")
    about = cases.corrected(seed, len(told), "endurance")
    async with (
        study.pair(PART, seed, goes_on=True) as pair,
        study.pair(PART, "bystander", seed, goes_on=True) as other,
    ):
        person, bystander = pair.trained, Bystander(study, PART, seed, other.trained, questions)
        await bystander.meet()
        for number, wish in enumerate(told, 1):
            learn = partial(_lesson, study, seed, person, about[(number - 1) % len(about)], wish)
            await study.once(f"{PART}/{seed}/lesson/{number}", learn)
            if number % BYSTANDER_EVERY == 0 or number == len(told):
                await bystander.ask_again(number)
        latest = list({wish.preference: wish for wish in told}.values())
        await study.once(f"{PART}/{seed}/latest", partial(_record, study, seed, person, questions, latest))
        await study.once(f"{PART}/{seed}/skills", partial(_skills, study, seed, person))


async def _lesson(study: Study, seed: int, person: TaughtPerson, question: Question, wish: Wish) -> None:
    lesson = await person.correct(question, wish.text)
    checks = lesson.update.get("gate", {}).get("checks", {})
    alerts = [name for name in ALERTS if checks.get(name) is False]
    study.lesson(PART, seed, lesson, preference=wish.preference, wish=wish.text, alerts=alerts)
    study.advance(PART)


async def _record(study: Study, seed: int, person: TaughtPerson, questions: list[Question], latest: list[Wish]) -> None:
    """Record the state: `latest` is the last wish about each preference; one no one spoke of is at its default."""
    asked = [q.text for q in questions]
    before = await study.before(asked)
    for arm, texts in (await person.both_ways(asked)).items():
        for question, old, new in zip(questions, before, texts, strict=True):
            verdict = judge(question, old, new, latest)
            study.record(
                PART, seed, arm=arm, question=question.text, text=new, facts_lost=verdict.facts_lost, held=verdict.held
            )


async def _skills(study: Study, seed: int, person: TaughtPerson) -> None:
    """Of the version after fifty lessons: heed goes back along a person's versions, never forward."""
    lessons = [r for r in study.records if (r["part"], r["seed"], r.get("event")) == (PART, seed, "lesson")]
    after = min(SKILLS_AFTER, len(lessons))
    await person.roll_back(lessons[after - 1]["version"])
    asked = cases.exercises(seed, study.config.skills, study.rehearsed, "endurance")

    async def alone(texts: list[str]) -> Texts:
        return {WEIGHTS: await person.answers(texts, "off")}

    await skills.record(study, PART, seed, asked, alone, after=after)
