"""The ceiling of a wish: what the model itself does with the note in its prompt, asked before anything is taught.

The note is in the words of the correction, as heed keeps it. Invariant: what the model cannot follow in these words is
not taught in them: there is nothing to distil, and no ratio.
"""

from collections.abc import Sequence
from functools import partial

from evals.journal import Record
from evals.real_score import CEILING, ratio_of, shares_of
from evals.real_study import RealStudy
from evals.real_world import RealWish


async def ask_ceiling(study: RealStudy, seed: int, wish: RealWish) -> None:
    """Record the answers of the base model and of a person with the note; once for all parts."""
    noted = study.name(CEILING, wish.name, seed)
    await study.once(f"{CEILING}/{wish.name}/{seed}", partial(_ask, study, seed, wish, noted), noted)


def can_follow(records: Sequence[Record], seed: int, wish: RealWish) -> bool:
    """Return True if the model follows a wish in the words of a seed, by the records of `ask_ceiling`."""
    unit = (CEILING, seed, wish.name)
    answers = [r for r in records if (r.get("part"), r.get("seed"), r.get("wish")) == unit]
    base, note = (shares_of(answers)[arm] for arm in ("base", "note"))
    return base is not None and note is not None and ratio_of(base, note, note) is not None


async def _ask(study: RealStudy, seed: int, wish: RealWish, noted: str) -> None:
    await study.client.note(noted, study.words(wish, seed))
    asked = study.probes(seed, wish)
    base = await study.base_answers(asked)
    study.judge({"part": CEILING, "seed": seed, "arm": "base"}, wish, base, base)
    await study.judge_arms(CEILING, seed, wish, (("note", noted, "auto"),))
