"""Skills of the base model and of a person who taught something."""

from evals import cases, skills
from evals.arms import WEIGHTS, Texts
from evals.client import Client
from evals.config import EvalConfig
from evals.journal import Journal
from evals.study import Study
from tests.evals.fake_heed import FakeHeed, serving

EXERCISES = cases.exercises(0, 5, (), "skills")


async def test_every_exercise_is_judged_once_per_arm() -> None:
    """The base model solves all of them here, the taught person none."""
    fake, journal = FakeHeed(skills={e.text: e.expected for e in EXERCISES}), Journal()

    async def nothing(texts: list[str]) -> Texts:
        return {WEIGHTS: ["no idea"] * len(texts)}

    async with serving(fake) as url, Client(url) as client:
        study = Study(EvalConfig(), client, journal, lambda _: None)
        await skills.record(study, "skills", 0, EXERCISES, nothing, number=1)
    right = {arm: [r["is_right"] for r in journal.records if r["arm"] == arm] for arm in ("base", "weights")}
    assert right == {"base": [True] * 5, "weights": [False] * 5}
    assert {record["number"] for record in journal.records} == {1}
