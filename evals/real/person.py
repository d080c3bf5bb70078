"""The parts of `heed eval real` with one wish a person: adoption, answers rewritten, reversal.

Each wish of each seed has persons of its own: one has the note (evals/real/ceiling.py), one corrects an answer to a
train prompt in the same words, and is then asked with the notes off (weights alone) and on (both). The one who is
reversed is the one who has adopted the wish: one lesson serves both parts. Invariants: no prompt is judged that its
person asked before a lesson; a wish that the model cannot follow is passed over.
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from evals.real.ceiling import ask_ceiling, can_follow
from evals.real.neutral import record_drift
from evals.real.study import RealStudy, arms_of
from evals.real.world import REAL_WISHES, RealPrompt, RealWish, real_prompts

MAX_IDEALS = 4  # train prompts whose answers are looked at for one that follows the wish


async def adoption(study: RealStudy, seed: int) -> None:
    """One correction per wish, each by a new person; and what it moved on neutral answers."""
    for wish in study.chosen:
        await ask_ceiling(study, seed, wish)
        await _teach_once(study, seed, wish)
        await _once(study, "adoption", seed, wish, _adopt, ())


async def rewritten(study: RealStudy, seed: int) -> None:
    """Give the answer as it should have been: the model's own, made with the note in its prompt."""
    for wish in study.chosen:
        await ask_ceiling(study, seed, wish)
        await _once(study, "rewritten", seed, wish, _rewrite, ("n", "t"))


async def reversal(study: RealStudy, seed: int) -> None:
    """Correct, once and by its opposite, a person who has adopted the wish; judged by the opposite."""
    for wish in (wish for wish in study.chosen if wish.opposite):
        await ask_ceiling(study, seed, wish)
        await _teach_once(study, seed, wish)
        await _once(study, "reversal", seed, wish, _reverse)


def lessons_of(part: str, wishes: tuple[str, ...]) -> int:
    """Return how many units of a part a seed has, the shared ceiling and the shared lesson among them."""
    if part == "reversal":
        return 3 * sum(bool(REAL_WISHES[name].opposite) for name in wishes)
    return len(wishes) * (3 if part == "adoption" else 2)


def _taught(study: RealStudy, seed: int, wish: RealWish) -> str:
    return study.name("taught", wish.name, seed)


async def _teach_once(study: RealStudy, seed: int, wish: RealWish) -> None:
    """Teach the wish to the person that adoption and reversal share."""
    person = _taught(study, seed, wish)
    prompt = real_prompts(seed, "train", 1, "corrected", wish.name)[0]
    work = partial(study.correct, person, wish, prompt, seed)
    await _if_followed(study, wish, f"taught/{wish.name}/{seed}", work, person)


async def _once(
    study: RealStudy,
    part: str,
    seed: int,
    wish: RealWish,
    work: Callable[..., Awaitable[None]],
    roles: Sequence[str] = ("n",),
) -> None:
    """Do a part's unit of one wish with new persons, one in each role: `work(study, seed, wish, *persons)`."""
    persons = [study.name(part, wish.name, seed, role) for role in roles]
    done = partial(work, study, seed, wish, *persons)
    await _if_followed(study, wish, f"{part}/{wish.name}/{seed}", done, *persons)


async def _if_followed(
    study: RealStudy, wish: RealWish, unit: str, work: Callable[[], Awaitable[None]], *persons: str
) -> None:
    """Do a unit once, or pass over it if the model cannot follow the wish."""
    if can_follow(study.journal.records, wish):
        await study.once(unit, work, *persons)
    else:
        study.pass_over(unit)


async def _adopt(study: RealStudy, seed: int, wish: RealWish) -> None:
    trained = _taught(study, seed, wish)
    await study.judge_arms("adoption", seed, wish, arms_of("", trained)[1:])
    await record_drift(study, seed, wish, trained)


async def _rewrite(study: RealStudy, seed: int, wish: RealWish, noted: str, trained: str) -> None:
    await study.client.note(noted, study.words(wish, seed))
    prompt, ideal = await _ideal(study, seed, wish, noted)
    answer = await study.client.chat(trained, prompt.messages)
    started_s = time.perf_counter()
    outcome = await study.client.rewrite(trained, answer.completion_id, ideal, study.config.overrides)
    await study.ended(trained, wish, answer, outcome, started_s)
    await study.judge_arms("rewritten", seed, wish, arms_of(noted, trained)[1:])


async def _ideal(study: RealStudy, seed: int, wish: RealWish, noted: str) -> tuple[RealPrompt, str]:
    """Return a train prompt and the answer that a person rewrites it to: the first that follows the wish.

    No one rewrites an answer into what they did not wish for. If none of several follows, the first is taken.
    """
    asked = real_prompts(seed, "train", MAX_IDEALS, "corrected", wish.name)
    await study.base_answers(asked)
    texts = await study.answers(noted, asked, "auto")
    follows = study.follows(wish, texts, asked)
    place = follows.index(True) if any(follows) else 0
    return asked[place], texts[place]


async def _reverse(study: RealStudy, seed: int, wish: RealWish, noted: str) -> None:
    """Judge after the second lesson, then go back to the first version: an answer counts if it followed the wish.

    The opposite is said of the answers that the person got after the first lesson, so "more detail" is held against
    those: against the base model's, which run into the limit of length, no answer is longer.
    """
    back, trained = REAL_WISHES[wish.opposite], _taught(study, seed, wish)
    version = _version_after(study, trained)
    if study.journal.is_resumed:  # this unit may have broken off behind its lesson
        await study.client.rollback(trained, version)
    await study.client.note(noted, study.words(back, seed))
    prompt = real_prompts(seed, "train", 2, "corrected", wish.name)[1]
    await study.correct(trained, back, prompt, seed)
    asked = _unasked(study, seed, wish)
    await study.base_answers(asked)
    found = {arm: await study.answers(person, asked, notes) for arm, person, notes in arms_of(noted, trained)}
    await study.client.rollback(trained, version)
    before = await study.answers(trained, asked, "off")
    was_away = study.follows(wish, before, asked)
    for arm, texts in {"base": before, **found}.items():
        labels = {"part": "reversal", "seed": seed, "arm": arm, "first": wish.name}
        follows = study.follows(back, texts, asked, before)
        for text, is_followed, counts in zip(texts, follows, was_away, strict=True):
            study.record(labels | {"counts": counts}, back, text, follows=is_followed)


def _unasked(study: RealStudy, seed: int, wish: RealWish) -> list[RealPrompt]:
    """Return prompts behind those that adoption asks the same person."""
    count = study.config.prompts
    return real_prompts(seed, study.config.split, 2 * count, "probes", wish.name)[-count:]


def _version_after(study: RealStudy, person: str) -> int:
    """Return the version that a person's first lesson left."""
    return next(int(r["version"]) for r in study.journal.records if r.get("person") == person)
