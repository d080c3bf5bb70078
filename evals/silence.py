"""Silence: questions, thanks and no correction at all, then corrections given half the time.

First part: a person has taught two things and goes on for 64 turns without a word of feedback; no update may run and
nothing may change. Then thanks and small talk come as replies to answers, as a correction would: again no update may
run. Second part: a person who wants two things says so only every other time they are missed, over 32
turns.
"""

from functools import partial

from evals import cases
from evals.arms import WEIGHTS, TaughtPerson
from evals.cases import Wish
from evals.config import EvalConfig
from evals.study import Study
from evals.verdict import follows, judge

QUIET_TURNS = 64
HALF_TURNS = 32
NUM_WISHES = 2
THANKS = ("thanks", "ok", "great answer", "cool, thanks", "", "perfect, thank you")  # "": they say nothing

REPLIES = (  # given as feedback on an answer, where a correction would stand
    "thanks", "thank you", "great answer", "perfect, thank you", "cool, thanks", "good morning", "it is raining here",
    "haha", "I am tired today", "that was helpful", "see you tomorrow", "nice",
)  # fmt: skip


def units(config: EvalConfig) -> int:
    """Return steps of the progress bar: two parts per seed."""
    return 2 * config.seeds


async def run(study: Study) -> None:
    """Record the answers before and after the quiet turns, and those after the half corrected ones."""
    for seed in range(study.config.seeds):
        await study.once(f"silence/{seed}/quiet", partial(_quiet, study, seed))
        await study.once(f"silence/{seed}/half", partial(_half, study, seed))


def _wishes(seed: int, preferences: tuple[str, ...], part: str) -> list[Wish]:
    chosen = cases.shuffled(seed, preferences, part)[:NUM_WISHES]
    return [cases.wish_for(seed, (p, 1), "silence", part) for p in chosen]


async def _quiet(study: Study, seed: int) -> None:
    wishes = _wishes(seed, study.config.preferences, "quiet")
    questions = cases.probes(seed, study.config.probes, "silence", "quiet")
    texts = [q.text for q in questions]
    async with study.pair("quiet", seed) as pair:
        person = pair.trained
        for question, wish in zip(cases.corrected(seed, NUM_WISHES, "quiet"), wishes, strict=True):
            study.lesson("silence", seed, await person.correct(question, wish.text), wish=wish.text)
        first, version = await person.answers(texts, "off"), await _version(person, seed)
        await _go_on(person, seed)
        last, later = await person.answers(texts, "off"), await _version(person, seed)
        await _reply(person, seed)
        replied, latest = await person.answers(texts, "off"), await _version(person, seed)
    study.record("silence", seed, event="quiet", updates=later - version)
    study.record("silence", seed, event="replied", updates=latest - later)
    for when, before, after in (("quiet", first, last), ("replied", last, replied)):
        for question, old, new in zip(questions, before, after, strict=True):
            is_changed = old != new or bool(judge(question, old, new, []).changed)
            study.record("silence", seed, arm=WEIGHTS, when=when, text=new, is_changed=is_changed)
    study.advance("silence")


async def _go_on(person: TaughtPerson, seed: int) -> None:
    rng = cases.draw(seed, "silence")
    for question in cases.earlier(seed, QUIET_TURNS, "silence"):
        answer = await person.say(question)
        if thanks := rng.choice(THANKS):
            await person.reply(question, answer, thanks)
    await person.settle()


async def _reply(person: TaughtPerson, seed: int) -> None:
    for question, text in zip(cases.earlier(seed, len(REPLIES), "replies"), REPLIES, strict=True):
        await person.correct(question, text)


async def _version(person: TaughtPerson, seed: int) -> int:
    return (await person.say(cases.earlier(seed, 1, "version")[0])).adapter_version


async def _half(study: Study, seed: int) -> None:
    wishes = _wishes(seed, study.config.preferences, "half")
    rng = cases.draw(seed, "half")
    questions = cases.probes(seed, study.config.probes, "silence", "half")
    async with study.pair("half", seed) as pair:
        for question in cases.earlier(seed, HALF_TURNS, "half"):
            answer = await pair.trained.say(question)
            missed = [wish for wish in wishes if not follows(answer.text, wish)]
            if missed and rng.random() < 0.5:
                wish = rng.choice(missed)
                study.lesson("silence", seed, await pair.trained.teach(answer, wish.text), wish=wish.text)
        texts = await pair.trained.answers([q.text for q in questions], "off")
    for text in texts:
        study.record(
            "silence", seed, arm=WEIGHTS, when="half", text=text, held={w.preference: follows(text, w) for w in wishes}
        )
    study.advance("silence")
