"""CLaaS's metrics over HTTP: a heed whose mind is known gives known figures."""

import pytest
from aiohttp.test_utils import TestServer

from evals import claas_probe
from evals.arms import BASE, WEIGHTS
from evals.claas_probe import ClaasProbe, Look, WeightsChange, scenes_of
from evals.client import Client
from evals.figure import Figure
from tests.evals.brief_heed import BriefHeed
from tests.evals.fake_heed import FakeHeed, serving


async def measured(mind: str, seeds: int = 1) -> tuple[dict[str, Figure], FakeHeed, list[str]]:
    """Return the figures of a pocket-like heed, that heed, and the steps of the bar."""
    steps: list[str] = []
    heed = FakeHeed(mind)
    async with serving(heed) as url, Client(url, scope="always") as client:
        found = await ClaasProbe(client, "run", steps.append).measure(scenes_of("pocket", is_real=False), seeds)
    return {row.name.removeprefix("CLaaS: "): row for row in claas_probe.figures(found)}, heed, steps


async def test_a_heed_that_learns_wins_margin_and_complies() -> None:
    """One value per seed; before the lesson it did not; the correction's reach is as the client was told."""
    rows, heed, steps = await measured("perfect", seeds=2)
    assert rows["compliance"].seeds == {BASE: [0.0, 0.0], WEIGHTS: [1.0, 1.0]}
    assert len(rows["margin won"].seeds[WEIGHTS]) == 2
    assert rows["margin won"].worst[WEIGHTS] > 2.0
    assert rows["margin won"].is_met(rows["margin won"].worst) is True
    assert rows["compliance, name"].median[WEIGHTS] == 1.0
    assert rows["entropy ratio"].median == {WEIGHTS: 1.0}
    assert len(steps) == len(heed.scopes) == 2 * claas_probe.PREFERENCES_A_SEED
    assert set(heed.scopes) == {"always"}


async def test_a_heed_that_learns_nothing_wins_none() -> None:
    """Margin and compliance stay where they were, and the bounds are missed; an answer thrice the same is told."""
    rows, *_ = await measured("deaf")
    assert rows["margin won"].median == {WEIGHTS: 0.0}
    assert rows["compliance"].median == {BASE: 0.0, WEIGHTS: 0.0}
    assert rows["compliance"].is_met(rows["compliance"].median) is False
    assert rows["self-ROUGE-L"].median == {BASE: 1.0, WEIGHTS: 1.0}
    assert rows["self-ROUGE-L"].is_met(rows["self-ROUGE-L"].median) is False


async def test_a_capability_of_nothing_has_no_ratio() -> None:
    """This heed knows none of the skills: the figure is not known, neither met nor one."""
    rows, *_ = await measured("perfect")
    assert rows["capability ratio"].median == {}
    assert rows["capability ratio"].is_met(rows["capability ratio"].median) is False


async def test_any_model_is_asked_for_claas_own_preferences() -> None:
    """Over the same calls; lessons that take longer than their call are waited for."""
    heed = BriefHeed()
    heed.queues = True
    async with TestServer(heed.application()) as server, Client(str(server.make_url("")).rstrip("/")) as client:
        found = await ClaasProbe(client, "run", lambda _: None).measure(scenes_of("brief", is_real=True), 1)
    assert [change.preference for change in found] == ["no_emoji", "concise", "identity"]
    assert [change.before.compliance for change in found] == [1.0, 1.0, 0.0]
    assert found[0].before.entropy == pytest.approx(0.6931, abs=1e-4)


def test_the_worst_seed_stands_beside_the_median() -> None:
    """Per seed the mean over the preferences; of self-ROUGE the highest is the worst."""
    calm, wild = Look(0.0, 0.5, 0.5, 1.0, 0.3), Look(3.0, 1.0, 0.25, 0.5, 0.9)
    changes = [WeightsChange(0, "a", calm, wild), WeightsChange(0, "b", calm, calm), WeightsChange(1, "a", calm, calm)]
    rows = {row.name: row for row in claas_probe.figures(changes)}
    assert rows["CLaaS: margin won"].seeds == {WEIGHTS: [1.5, 0.0]}
    assert rows["CLaaS: margin won"].worst == {WEIGHTS: 0.0}
    assert rows["CLaaS: capability ratio"].seeds == {WEIGHTS: [0.75, 1.0]}
    assert rows["CLaaS: entropy ratio"].median == {WEIGHTS: 0.875}
    assert rows["CLaaS: self-ROUGE-L"].worst == {BASE: 0.3, WEIGHTS: pytest.approx(0.6)}
