"""The part `remarks` of `heed eval real`."""

import pytest

from evals.journal import Journal
from evals.real.remarks import KINDS, REMARKS, kinds_of
from evals.real.run import PART_WORK, RealConfig
from evals.real.score import summarise
from evals.real.study import RealStudy
from evals.real.world import PROMPTS
from tests.evals.brief_heed import BriefHeed, served


def test_there_are_sixty_remarks_of_several_kinds() -> None:
    """None of them twice, and none to a prompt that is asked afterwards."""
    assert len({r.remark for r in REMARKS}) == 60
    assert {kind: sum(r.kind == kind for r in REMARKS) for kind in KINDS} == dict.fromkeys(KINDS, 10)
    assert not {r.question for r in REMARKS} & {p.turns[-1] for p in PROMPTS if p.split != "train"}


def test_every_kind_belongs_to_one_seed() -> None:
    """The number of remarks does not grow with the seeds."""
    assert sorted(kind for seed in range(4) for kind in kinds_of(seed, 4)) == sorted(KINDS)


@pytest.mark.parametrize(("leaks", "changed"), [(False, 0.0), (True, 1.0)])
async def test_a_remark_that_reaches_other_answers_is_seen(leaks: bool, changed: float) -> None:
    """Notes on and off; the noise stands beside it."""
    journal, heed = Journal(), BriefHeed(leaks=leaks)
    async for client in served(heed):
        study = RealStudy(RealConfig(prompts=2, seeds=len(KINDS)), client, journal, lambda _: None)
        await PART_WORK["remarks"](study, 0)
    found = summarise(journal.records)["remarks"]
    assert (found["changed"], found["by_notes"], found["noise"]) == (changed, {"off": changed, "auto": changed}, 0.0)
    assert (found["remarks"], found["answers"]) == (10, 4)
    assert found["trained"] == {KINDS[0]: 10 * leaks}
    assert len(heed.corrected) == 10
