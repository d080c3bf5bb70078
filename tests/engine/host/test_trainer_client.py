"""engine.host.trainer_client: typed calls into the worker, over a host that answers from a script."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.adapter_ref import ZERO_ADAPTER
from engine.config import LearnConfig
from engine.errors import EngineRestarting, LearningImpossible, TrainerError
from engine.host.architectures import Trainability
from engine.host.trainer_client import LONGEST_POLL_S, POLL_S, Trained, TrainerClient, finite_or_none
from engine.sample import Passage, Sample

SAMPLE = Sample("counterfactual", [1], [1, 2], [3])
SCORE = {
    "student_logprobs": [-2.0], "teacher_logprobs": [-0.5], "student_entropy": 1.0, "teacher_entropy": 2.0,
    "divergence": 0.3, "preferred_logprobs": [-1.0], "is_preferred": [True],
}  # fmt: skip
MEASURED = {
    "steps": 2, "divergence_before": 1.0, "divergence_after": 0.5, "anchor_divergence_after": None, "finite": True,
    "heat": [], "figures": {"unasked": 0.5, "drift": 0.1}, "losses": [1.0, math.nan, 0.5], "agreement": [0.9],
}  # fmt: skip


class Host:
    """A host whose worker gives the next scripted record for each call."""

    num_running = 0
    trainability = Trainability("Qwen3")

    def __init__(self, *records: dict[str, Any]) -> None:
        self.records = list(records)
        self.calls: list[tuple[str, tuple[Any, ...]]] = []

    async def rpc(self, method: str, *args: Any) -> dict[str, Any]:
        if method == "heed_compute":
            method, args = args[0], tuple(args[1])
        self.calls.append((method, args))
        return {"ok": True, "error": ""} | self.records.pop(0)


def client(host: Host) -> TrainerClient:
    """Return a client of a scripted host."""
    return TrainerClient(host)  # type: ignore[arg-type]


async def test_a_failure_of_the_worker_is_raised_with_its_message() -> None:
    """The worker never raises: its record becomes a TrainerError here."""
    with pytest.raises(TrainerError, match="no room"):
        await client(Host({"ok": False, "error": "no room"})).score([SAMPLE], ZERO_ADAPTER)


async def test_work_that_a_new_worker_does_not_know_is_tried_again() -> None:
    """The worker died between two looks at its work: the lesson is repeated, not given up."""
    with pytest.raises(EngineRestarting, match="no work"):
        await client(Host({"ok": False, "is_lost": True, "error": "no work 7"})).score([SAMPLE], ZERO_ADAPTER)


async def test_an_update_is_advanced_until_it_is_done() -> None:
    """Samples cross as plain dictionaries, each call has the budget of its moment, the last record is the result."""
    host = Host({}, {"done": False, "steps": 1}, {"done": True, **MEASURED})
    budgets = iter([25.0, 250.0])
    trained = await client(host).train("u", ZERO_ADAPTER, [SAMPLE], LearnConfig(), lambda: next(budgets))
    assert [(method, args[1:]) for method, args in host.calls] == [
        ("heed_open_update", ()), ("heed_advance", (25.0,)), ("heed_advance", (250.0,)),
    ]  # fmt: skip
    assert host.calls[0][1][0]["samples"] == [SAMPLE.to_dict()]
    assert (trained.steps, trained.curves) == (2, {"loss": [1.0], "divergence": [0.9]})


async def test_a_long_computation_is_asked_after_ever_more_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look takes the worker and its engine a little time; the longest pause is a tenth of a second."""
    pauses: list[float] = []

    async def noted(pause_s: float) -> None:
        pauses.append(pause_s)

    monkeypatch.setattr("engine.host.trainer_client.asyncio.sleep", noted)
    host = Host(*[{"job": 1}] * 12, {"scores": [SCORE]})
    assert len(await client(host).score([SAMPLE], ZERO_ADAPTER)) == 1
    assert pauses[:2] == [POLL_S, 1.5 * POLL_S]
    assert pauses[-1] == LONGEST_POLL_S
    assert pauses == sorted(pauses)
    assert len(pauses) == 12


@pytest.mark.parametrize(("num_running", "sizes"), [(0, [3]), (1, [1, 1, 1])])
async def test_samples_are_scored_one_by_one_while_a_stream_is_read(num_running: int, sizes: list[int]) -> None:
    """Otherwise they go in one call."""
    host = Host(*({"scores": [SCORE] * size} for size in sizes))
    host.num_running = num_running
    scores = await client(host).score_in_turn([SAMPLE] * 3, ZERO_ADAPTER)
    assert [len(args[0]) for _, args in host.calls] == sizes
    assert [score.gain for score in scores] == [1.5] * 3


async def test_how_far_views_are_apart_is_told_by_number() -> None:
    """A sample that did not fit, and so has no response, is not scored and keeps its number."""
    host = Host({"scores": [SCORE] * 2})
    found = await client(host).divergences([SAMPLE, replace(SAMPLE, response_ids=[]), SAMPLE], ZERO_ADAPTER)
    assert [*found] == [0, 2]
    assert [len(args[0]) for _, args in host.calls] == [2]
    assert len({*found.values()}) == 1


def test_a_figure_can_be_left_out() -> None:
    """A figure that does not suit a kind of update counts as not measured; the original keeps it."""
    trained = Trained(figures={"unasked": 0.5, "drift": 0.1})
    assert trained.without(["unasked", "other"]).figures == {"drift": 0.1}
    assert trained.figures["unasked"] == 0.5


def test_no_number_is_stored_as_none() -> None:
    """JSON has no word for NaN and infinity."""
    assert [finite_or_none(value) for value in (0.5, math.nan, math.inf)] == [0.5, None, None]


async def test_a_quantised_model_has_no_trainer_to_call() -> None:
    """The reason is raised, and nothing is sent to the worker."""
    host = Host({})
    host.trainability = Trainability("Llama", "AWQ")
    with pytest.raises(LearningImpossible, match="AWQ"):
        await client(host).score([SAMPLE], ZERO_ADAPTER)
    assert host.calls == []


async def test_states_come_in_calls_of_a_few_passages() -> None:
    """In the order of the passages; between two calls vLLM decodes."""
    parts = [np.arange(4, dtype=np.float32), np.arange(4, 6, dtype=np.float32)]
    host = Host(*({"states": part.tobytes(), "axes": [len(part) // 2, 1, 2]} for part in parts))
    found = await client(host).states([Passage([1, 2], 0, 1)] * 3, [0.5], at_once=2)
    assert found.tolist() == [[[0.0, 1.0]], [[2.0, 3.0]], [[4.0, 5.0]]]
    assert [len(args[0]) for _, args in host.calls] == [2, 1]
    assert host.calls[0][1] == ([{"token_ids": [1, 2], "first": 0, "end": 1}] * 2, [0.5])


async def test_first_tokens_come_in_calls_of_a_few_prompts() -> None:
    """In the order of the prompts; every call draws anew."""
    host = Host({"tokens": [[5, 1, 0.5], [6, 2, -0.1]]}, {"tokens": [[7, 3, -0.5]]})
    pair, learn = ([1, 2], [2]), LearnConfig(guidance_scale=1.5, teacher_temperature=0.3, seed=4)
    assert await client(host).first_tokens([pair] * 3, learn, at_once=2) == [5, 6, 7]
    assert [args for _, args in host.calls] == [([pair] * 2, 1.5, 0.3, 4), ([pair], 1.5, 0.3, 6)]


@pytest.mark.parametrize(("last", "tokens"), [(-0.5, [1, 2, 3]), (-0.3, [5, 6, 7])])
async def test_a_teacher_that_guidance_makes_less_sure_begins_as_it_would(last: float, tokens: list[int]) -> None:
    """If that is asked for, by the sum over all prompts, in however many calls."""
    host = Host({"tokens": [[5, 1, 0.5], [6, 2, -0.1]]}, {"tokens": [[7, 3, last]]})
    learn = LearnConfig(guidance_scale=1.5).replacing()
    assert await client(host).first_tokens([([1, 2], [2])] * 3, learn, at_once=2) == tokens


@pytest.mark.parametrize("num_running", [0, 1])
async def test_what_is_computed_beside_decoding_is_asked_after_until_it_has_ended(num_running: int) -> None:
    """The worker hears each time if a stream is being read, to leave it the cores."""
    host = Host({"job": 3}, {"job": 3}, {"scores": [SCORE]})
    host.num_running = num_running
    (score,) = await client(host).score([SAMPLE], ZERO_ADAPTER)
    assert score.gain == 1.5
    assert [method for method, _ in host.calls] == ["heed_score", "heed_result", "heed_result"]
    assert host.calls[1:] == [("heed_result", (3, num_running > 0))] * 2


async def test_a_failure_beside_decoding_is_raised_with_its_message() -> None:
    """As one of a call that is answered at once."""
    with pytest.raises(TrainerError, match="no room"):
        await client(Host({"job": 1}, {"ok": False, "error": "no room"})).score([SAMPLE], ZERO_ADAPTER)
