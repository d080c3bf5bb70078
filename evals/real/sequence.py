"""The parts of `heed eval real` with one person of several wishes: retention, and closed questions.

Owns that person, who is shared: four wishes that one answer can follow together (first those that the model can follow
at all), corrected one after another with ordinary chats between. Retention asks if the weights hold each of them,
beside the ceiling (all notes in the prompt); the closed questions ask how much of what the base model knows is lost,
beside what the notes alone would cost: a wish for a language that a model speaks badly costs it what it knows.
Invariant: neither is asked before the last lesson; a closed question counts if one of its accepted answers is in the
answer as whole words.
"""

import asyncio

from evals.client import Client, Notes
from evals.real.ceiling import ask_ceiling, can_follow
from evals.real.study import RealStudy, arms_of
from evals.real.world import RealWish, compatible, read_rows, real_prompts, says
from evals.study import BASE_MODEL

NUM_WISHES = 4
NUM_CHATS = 10  # between two lessons
BRIEF_TOKENS = 32
BRIEFLY = " Answer in a few words."
CLOSED = tuple((row["question"], row["accepted"]) for row in read_rows("closed.tsv"))
BASE_UNIT = "closed/base"


async def retention(study: RealStudy, seed: int) -> None:
    """Ask a person of four wishes with the notes off, and another with all notes in the prompt."""
    await _teach_once(study, seed)
    noted = study.name("retention", seed, "n")
    await study.once(f"retention/{seed}", lambda: _retained(study, seed, noted), noted)


async def closed(study: RealStudy, seed: int) -> None:
    """Ask the closed questions of the base model, once, of a person after their lessons, and of one with the notes."""
    await _teach_once(study, seed)
    if seed == 0:
        await study.once(BASE_UNIT, lambda: _ask_closed(study, seed, "base", study.base))
    await study.once(f"closed/{seed}", lambda: _ask_closed(study, seed, "weights", _person(study, seed)))
    noted = study.name("closed", seed, "n")
    await study.once(f"closed/{seed}/note", lambda: _ask_noted(study, seed, noted), noted)


def _person(study: RealStudy, seed: int) -> str:
    return study.name("sequence", seed)


def _wishes(study: RealStudy, seed: int) -> list[RealWish]:
    likely = {wish.name for wish in study.chosen if can_follow(study.journal.records, wish)}
    return compatible(seed, study.config.wishes, NUM_WISHES, likely)


async def _teach_once(study: RealStudy, seed: int) -> None:
    for wish in study.chosen:
        await ask_ceiling(study, seed, wish)
    person = _person(study, seed)
    await study.once(f"sequence/{seed}", lambda: _teach(study, seed, person), person)


async def _teach(study: RealStudy, seed: int, person: str) -> None:
    wishes = _wishes(study, seed)
    corrected = real_prompts(seed, "train", len(wishes), "sequence")
    for place, (wish, prompt) in enumerate(zip(wishes, corrected, strict=True)):
        if place:
            await study.answers(person, real_prompts(seed, "train", NUM_CHATS, "chats", place), "auto")
        await study.correct(person, wish, prompt, seed)


async def _note_all(study: RealStudy, seed: int, noted: str) -> list[RealWish]:
    """Give a person all the wishes of a seed as notes, and return them."""
    wishes = _wishes(study, seed)
    for wish in wishes:
        await study.client.note(noted, study.words(wish, seed))
    return wishes


async def _retained(study: RealStudy, seed: int, noted: str) -> None:
    wishes = await _note_all(study, seed, noted)
    asked = study.probes(seed, "retention")
    texts = {"base": await study.base_answers(asked)}
    arms = arms_of(noted, _person(study, seed))[:2]
    texts |= {arm: await study.answers(person, asked, notes) for arm, person, notes in arms}
    for arm, found in texts.items():
        for wish in wishes:
            study.judge({"part": "retention", "seed": seed, "arm": arm}, wish, found, asked)


async def _ask_noted(study: RealStudy, seed: int, noted: str) -> None:
    await _note_all(study, seed, noted)
    await _ask_closed(study, seed, "note", noted, "auto")


async def _ask_closed(study: RealStudy, seed: int, arm: str, person: str, notes: Notes = "off") -> None:
    client = study.client.brief(BRIEF_TOKENS)
    model = BASE_MODEL if arm == "base" else "heed"
    texts = await asyncio.gather(*(_ask(client, person, question, notes, model) for question, _ in CLOSED))
    for (question, accepted), text in zip(CLOSED, texts, strict=True):
        study.journal.record({
            "event": "closed", "seed": seed, "arm": arm, "question": question, "text": text,
            "is_right": says(text, accepted),
        })  # fmt: skip


async def _ask(client: Client, person: str, question: str, notes: Notes, model: str) -> str:
    answer = await client.chat(person, [{"role": "user", "content": question + BRIEFLY}], notes=notes, model=model)
    return answer.text
