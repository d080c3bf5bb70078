"""Neutral answers of `heed eval real`."""

import math
from pathlib import Path

import pytest

from engine.prompts.bank import load_bank
from evals.journal import Journal
from evals.real.neutral import NEUTRAL, kl_per_token, record_drift
from evals.real.run import RealConfig
from evals.real.study import RealStudy
from evals.real.world import PROMPTS, REAL_WISHES
from tests.evals.brief_heed import BriefHeed, served


def test_neutral_prompts_and_probes_are_none_that_a_lesson_trains_on() -> None:
    """Neither the bank's anchors nor its topics; at least 24 of them."""
    bank = load_bank(Path("no such model"))
    trained = {*bank.anchors, *bank.topics, *bank.foreign, *(turn for turns in bank.threads for turn in turns)}
    assert len(set(NEUTRAL)) >= 24
    assert not set(NEUTRAL) & trained
    assert not {p.turns[-1] for p in PROMPTS if p.split != "train"} & trained


def test_the_estimate_is_the_divergence() -> None:
    """Over tokens drawn from the base its mean is KL(base || weights); of equal models it is zero for each token."""
    base, weights = (0.7, 0.3), (0.5, 0.5)
    logs = [[math.log(p) for p in model] for model in (base, weights)]
    mean = sum(p * one for p, one in zip(base, kl_per_token(*logs), strict=True))
    assert mean == pytest.approx(sum(p * math.log(p / q) for p, q in zip(base, weights, strict=True)))
    assert kl_per_token(logs[0], logs[0]) == [0.0, 0.0]


@pytest.mark.parametrize(("logprob", "nats"), [(-0.5, 0.0), (-0.9, 0.07032)])
async def test_a_lesson_has_one_figure(logprob: float, nats: float) -> None:
    """The mean over all tokens of all answers; the base's answers are drawn once for two lessons."""
    heed, journal = BriefHeed(), Journal()
    heed.logprob = logprob
    async for client in served(heed):
        study = RealStudy(RealConfig(), client, journal, lambda _: None)
        for person in ("ana", "bo"):
            await record_drift(study, 0, REAL_WISHES["list"], person)
    assert [r["nats"] for r in journal.records] == [nats, nats]
    assert journal.records[0]["tokens"] == 2 * len(NEUTRAL)
    assert len(heed.asked) == len(NEUTRAL)
