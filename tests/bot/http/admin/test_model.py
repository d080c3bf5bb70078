"""bot.http.admin.model: the calibration, a model that is not trained, and readings beside choices."""

import json
from dataclasses import replace

from bot.http.admin.model import BOUNDS, ReadingLine, figures, lines, totals
from engine.calibration import prior
from engine.calibration.record import SHIPPED
from engine.config import LearnConfig
from engine.pocket import WEIGHTS
from engine.requests import ModelLearning, Sampling
from storage.reports.readings import ReadingCount
from tests.bot.http.admin.rig import Operator

MEASURED = ModelLearning(
    architecture="Llama",
    is_measured=True,
    learning_rate=0.002,
    steps=20,
    bounds={"max_divergence_left": 0.61, "max_new": 3.0},
    figures={"closed": {"Please answer in Spanish.": 0.83}, "neutral": 0.021, "neutral_placebo": 0.018},
)
FOUND = [
    ReadingCount("remark", "answer", True, 1, 0.2),
    ReadingCount("wish", "", False, 4, 0.7),
    ReadingCount("wish", "always", False, 3, 0.8),
    ReadingCount("wish", "answer", True, 2, 0.1),
]


async def test_a_measured_model_shows_its_figures(operator: Operator) -> None:
    """Rate, steps, bounds (also one that has no label yet), and what was measured of each wish."""
    operator.heed.engine.learning = MEASURED
    page = await operator.text("/admin/model")
    for shown in ("measured</span>", "0.002", "0.61", "max_new", "0.021", "0.018", "Please answer in Spanish.", "83 %"):
        assert shown in page
    assert "heed calibrate" in page


def test_every_bound_of_a_calibration_has_its_label() -> None:
    """Of those that are shipped, and of the estimate for any other model."""
    shipped = [json.loads(path.read_text())["gate"] for path in SHIPPED.glob("*.json")]
    estimate = prior.estimate(WEIGHTS, "pocket", "", LearnConfig())
    assert shipped
    assert {name for bounds in (*shipped, estimate.gate) for name in bounds} == set(BOUNDS)


async def test_the_sampling_in_force_is_shown(operator: Operator) -> None:
    """As the model asks for, where nothing is set."""
    operator.heed.engine.sampling = Sampling(0.6, 0.95, top_k=20)
    assert "temperature 0.6, top_p 0.95, top_k 20" in await operator.text("/admin/model")


async def test_an_estimate_says_so_and_names_the_command(operator: Operator) -> None:
    """What the project ships may have no figures."""
    page = await operator.text("/admin/model")
    assert "estimated</span>" in page
    assert "run <code>heed calibrate</code>" in page
    operator.heed.engine.learning = ModelLearning(progress="heed measures it by itself: 3 trials so far.")
    assert "heed measures it by itself: 3 trials so far." in await operator.text("/admin/model")
    operator.heed.engine.learning = replace(MEASURED, figures={})
    assert "The figures of this calibration were not kept." in await operator.text("/admin/model")


async def test_a_model_that_is_not_trained_says_why(operator: Operator) -> None:
    """With the remedy; there are no rates to show."""
    operator.heed.engine.learning = ModelLearning("It is quantised (AWQ).", "Set HEED_MODEL.", "Llama")
    page = await operator.text("/admin/model")
    assert "It is quantised (AWQ)." in page
    assert "Set HEED_MODEL." in page
    assert "Learning rate" not in page
    assert "It is quantised (AWQ)." in await operator.text("/admin")


async def test_readings_stand_beside_choices(operator: Operator) -> None:
    """A correction of which heed is unsure and its choice are in the table and in the file."""
    assert "Nothing yet." in await operator.text("/admin/model")
    answer = await operator.heed.ask("Australia")
    await operator.heed.correct(answer["id"], "unsure, the capital is Canberra")
    page = await operator.text("/admin/model")
    assert "A remark on this answer" in page
    rows = (await operator.text("/admin/model?format=csv")).splitlines()
    assert rows == ["reading,scope,is_unsure,number,mean_margin", "remark,,True,1,"]


def test_a_choice_agrees_if_it_was_taught_like_that() -> None:
    """Of wishes the choice "From now on", of remarks "Just this answer"."""
    wish, remark = lines(FOUND)
    assert wish == ReadingLine("A wish for all answers", this_answer=2, from_now_on=3, unanswered=4, agreed=3)
    assert (wish.answered, wish.share) == (5, 0.6)
    assert (remark.agreed, remark.share) == (1, 1.0)
    sure, unsure = totals(FOUND)
    assert (sure.share, unsure.share) == (1.0, 1 / 3)
    assert sure.unanswered == 4
    assert [line.share for line in totals([])] == [None, None]


def test_figures_that_were_not_kept_are_left_out() -> None:
    """A calibration of another time may have measured less."""
    assert figures({"neutral": 0.1}) == [("Change of neutral answers after a lesson (nats)", "0.1")]
    assert [value for _, value in figures(MEASURED.figures)] == ["83 %", "0.021", "0.018"]
