"""engine.host.trainer_client: typed calls into the trainer in vLLM's worker."""

from typing import Any, cast

import pytest

from engine.adapter_ref import ZERO_ADAPTER, AdapterRef
from engine.config import LearnConfig
from engine.errors import TrainerError
from engine.host.trainer_client import SampleScore, TrainerClient
from engine.host.vllm_host import VllmHost
from engine.sample import Sample

REF = AdapterRef("ana", 3, 33, "/adapters/ana/3")
SAMPLE = Sample("correction", [1], [1, 2], [3], weight=0.5)
SCORE = SampleScore([-2.0, -1.0], [-0.5, -0.5], 0.1, 0.2, 0.3, [-1.0, -1.0], [False, True])


class Worker:
    """A host whose worker answers every call with the same record and remembers the calls."""

    def __init__(self, **record: Any) -> None:
        """`record`: the fields of the answer beside `ok` and `error`."""
        self.record = {"ok": True, "error": ""} | record
        self.calls: list[tuple[Any, ...]] = []

    async def rpc(self, *call: Any) -> dict[str, Any]:
        """Remember the call."""
        self.calls.append(call)
        return self.record


def client(worker: Worker) -> TrainerClient:
    """A client of that worker."""
    return TrainerClient(cast(VllmHost, worker))


async def test_a_failed_call_is_an_error() -> None:
    """The trainer never raises: its record becomes a TrainerError with its message."""
    with pytest.raises(TrainerError, match="no room"):
        await client(Worker(ok=False, error="no room")).drop(REF)


async def test_an_update_is_opened_with_plain_records() -> None:
    """Samples and settings cross the process border as dictionaries, the base model as None."""
    worker = Worker()
    await client(worker).open_update("u", ZERO_ADAPTER, [SAMPLE], LearnConfig(steps=7))
    ((method, spec),) = worker.calls
    assert method == "heed_open_update"
    assert (spec["update_id"], spec["parent"], spec["samples"]) == ("u", None, [SAMPLE.to_dict()])
    assert LearnConfig.from_dict(spec["learn"]) == LearnConfig(steps=7)


async def test_progress_is_typed() -> None:
    """The trainer's names become fields; what is measured at the end only is empty before."""
    measured = {"divergence_before": 0.5, "divergence_after": None, "anchor_divergence_after": None}
    fields = {"done": False, "phase": "steps", "steps": 2, "phases_ms": {"steps": 1.0}, "finite": True}
    so_far = await client(Worker(**fields, **measured)).advance("u", 25.0)
    assert (so_far.is_done, so_far.is_finite, so_far.steps, so_far.heat) == (False, True, 2, [])
    done = await client(Worker(**fields | {"done": True}, **measured, is_weights={"mean": 1.0})).advance("u", 25.0)
    assert (done.is_done, done.importance) == (True, {"mean": 1.0})


async def test_a_candidate_is_published_under_its_own_id() -> None:
    """And comes back as the two files of a PEFT adapter."""
    worker = Worker(finite=True, update_norm=1.5, tensors=b"t", config="{}")
    published = await client(worker).publish("u", REF)
    assert worker.calls == [("heed_publish", "u", 33, "ana@3")]
    assert (published.is_finite, published.update_norm, published.tensors, published.config) == (True, 1.5, b"t", "{}")


@pytest.mark.parametrize(("at_once", "sizes"), [(1, [1, 1, 1]), (2, [2, 1]), (3, [3])])
async def test_scores_are_asked_for_in_pieces(at_once: int, sizes: list[int]) -> None:
    """Decoding goes on between two calls; all scores come back in order."""

    class Scorer(Worker):
        async def rpc(self, *call: Any) -> dict[str, Any]:
            """Score every sample alike."""
            await super().rpc(*call)
            return self.record | {"scores": [vars(SCORE)] * len(call[1])}

    worker = Scorer()
    assert await client(worker).score([SAMPLE] * 3, REF, at_once) == [SCORE] * 3
    assert [len(samples) for _, samples, _ in worker.calls] == sizes
    assert all(adapter == {"lora_int_id": 33, "path": "/adapters/ana/3"} for *_, adapter in worker.calls)


async def test_the_gain_is_the_log_likelihood_ratio_of_the_whole_answer() -> None:
    """log p(y | teacher's prompt) - log p(y | student's prompt)."""
    assert SCORE.gain == 2.0


async def test_an_adapter_from_elsewhere_comes_back_as_heed_writes_it() -> None:
    """The configuration is sent as JSON text and returned as an object."""
    worker = Worker(config={"r": 4})
    assert await client(worker).fits(b"t", {"r": 4, "x": 1}) == {"r": 4}
    assert worker.calls == [("heed_fits", b"t", '{"r": 4, "x": 1}')]


async def test_an_update_is_closed_and_a_version_dropped_by_its_id() -> None:
    """Both name what they forget."""
    worker = Worker()
    await client(worker).close_update("u")
    await client(worker).drop(REF)
    assert worker.calls == [("heed_close_update", "u"), ("heed_drop", 33)]
