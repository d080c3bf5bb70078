"""The ceiling of a wish: what the model itself does with the note in its prompt, asked before anything is taught.

The note is given in the words of the correction, and as heed keeps it. The words of all seeds are asked before any of
them is taught, and decide together: a dozen answers follow a wish by chance now and then, and a seed that was chosen
for its luck is followed less the next time. Invariant: what the model cannot follow is not taught: there is nothing to
distil, and no ratio.
"""

from collections.abc import Sequence
from functools import partial

from evals.journal import Record
from evals.real.score import CEILING, ratio_of, shares_of
from evals.real.study import RealStudy
from evals.real.world import RealWish


async def ask_ceiling(study: RealStudy, seed: int, wish: RealWish) -> None:
    """Record the answers of the base model and of a person with the note, for every seed; once for all parts."""
    for each in study.config.numbers:
        noted = study.name(CEILING, wish.name, each)
        await study.do_once(f"{CEILING}/{wish.name}/{each}", partial(_ask, study, each, wish, noted), noted)
    study.pass_over(f"{CEILING}/{wish.name}/{seed}")


def can_follow(records: Sequence[Record], wish: RealWish) -> bool:
    """Return True if the model follows a wish, over the words of all seeds, by the records of `ask_ceiling`."""
    answers = [r for r in records if (r.get("part"), r.get("wish")) == (CEILING, wish.name)]
    base, note = (shares_of(answers)[arm] for arm in ("base", "note"))
    return base is not None and note is not None and ratio_of(base, note, note) is not None


async def _ask(study: RealStudy, seed: int, wish: RealWish, noted: str) -> None:
    await study.client.note(noted, study.words(wish, seed))
    asked = study.probes(seed, wish)
    base = await study.base_answers(asked)
    study.judge({"part": CEILING, "seed": seed, "arm": "base"}, wish, base, asked)
    await study.judge_arms(CEILING, seed, wish, (("note", noted, "auto"),))
