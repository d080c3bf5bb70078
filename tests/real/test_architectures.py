"""Every architecture that heed trains, in the real vLLM: it answers, takes a lesson, serves it and takes it back.

The models are small and random (`tests.tiny_architectures`), so that each one starts, learns and ends in a quarter of
a minute; one engine runs at a time.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from engine.adapter_ref import ZERO_ADAPTER, AdapterRef
from engine.config import EngineConfig, HostConfig, LearnConfig
from engine.engine import Engine
from engine.errors import LearningImpossible, ModelUnsuitable
from engine.host.architectures import NAMES
from engine.requests import GenerateRequest, Sampling
from engine.sample import Sample
from storage.database import Database
from storage.tables import Completion
from tests.engine.live import Live
from tests.tiny_architectures import CONFIGS, QUANTISED, save_quantised, save_tiny_architecture

pytestmark = [pytest.mark.real, pytest.mark.engine]

MAX_GAP = 1e-4  # nats per token, vLLM against the trainer, both in float32 (measured: 3e-6)
MAX_GAP_BFLOAT16 = 0.05  # the same, a prompt read at once against token by token
QUESTION = "What is the capital of France?"
SYSTEM = ({"role": "system", "content": "Answer like a teacher."},)  # which Gemma 2's chat template refuses
GREEDY = Sampling(max_tokens=48)
HOST = HostConfig(max_num_seqs=2, kv_cache_bytes=32 << 20, max_lora_rank=16)
SHORT = LearnConfig(steps=6, num_teacher_rollouts=2, num_anchors=1, max_rollout_tokens=32)


@asynccontextmanager
async def started(model: Path, data_dir: Path) -> AsyncIterator[Live]:
    """Run an engine with a model folder."""
    database = Database.open(data_dir)
    engine = Engine(EngineConfig(str(model), data_dir, host=HOST, learn=SHORT), database)
    try:
        await engine.start()
        yield Live(engine, database, data_dir)
    finally:
        await engine.stop()
        await database.close()


async def gap(live: Live, answer: Completion, ref: AdapterRef) -> float:
    """Return the mean |log p_vLLM - log p_trainer| of an answer's tokens, in nats."""
    sample = Sample("gold", answer.prompt_token_ids, answer.prompt_token_ids, answer.completion_token_ids)
    (score,) = await live.parts.context.trainer.score([sample], ref)
    pairs = zip(answer.logprobs, score.student_logprobs, strict=True)
    return sum(abs(theirs - ours) for theirs, ours in pairs) / len(answer.logprobs)


@pytest.mark.parametrize("name", CONFIGS)
async def test_an_architecture_answers_learns_serves_and_takes_back(name: str, tmp_path: Path) -> None:
    """vLLM and the trainer compute the same, with and without an adapter; a lesson lowers the divergence."""
    async with started(save_tiny_architecture(tmp_path / "model", name), tmp_path / "data") as live:
        assert live.host.trainability.architecture == name
        user_id = await live.person()
        first = await live.ask(user_id, QUESTION, prior=SYSTEM, sampling=GREEDY)
        gaps = [await gap(live, first, ZERO_ADAPTER)]
        with live.open_gates():
            outcome = await live.teach(first, "Please answer in fewer words.")
        assert outcome.status == "learned", outcome
        assert outcome.divergence_after < outcome.divergence_before
        taught = await live.ask(user_id, QUESTION, prior=SYSTEM, sampling=GREEDY, notes="off")
        assert taught.adapter_version == outcome.adapter_version == 1
        gaps += [await gap(live, taught, await live.parts.context.active.active(user_id))]
        assert max(gaps) < MAX_GAP
        assert (await live.engine.undo(user_id)).version == 0
        again = await live.ask(user_id, QUESTION, prior=SYSTEM, sampling=GREEDY)
        assert (again.adapter_version, again.completion_token_ids) == (0, first.completion_token_ids)
        assert taught.logprobs != first.logprobs


HAS_AVX512 = "avx512f" in Path("/proc/cpuinfo").read_text(encoding="ascii")


@pytest.mark.parametrize("method", QUANTISED)
async def test_a_quantised_model_answers_and_keeps_what_it_is_told_as_notes(method: str, tmp_path: Path) -> None:
    """Nothing is trained, the reason says why, the note is in the next prompt, and an undo takes it out again.

    On a processor without the kernels for 4 bits it is refused by name.
    """
    if not HAS_AVX512:
        with pytest.raises(ModelUnsuitable, match="AVX-512"):
            async with started(save_quantised(tmp_path / "model", method), tmp_path / "data"):
                pass
        return
    async with started(save_quantised(tmp_path / "model", method), tmp_path / "data") as live:
        user_id = await live.person()
        first = await live.ask(user_id, QUESTION, sampling=GREEDY)
        assert first.text
        outcome = await live.teach(first, "Please answer in fewer words.")
        assert (outcome.status, outcome.note, outcome.adapter_version) == ("kept", "Please answer in fewer words.", 0)
        assert f"quantised ({method})" in outcome.reason
        assert outcome.reason.endswith("The note is in the prompt.")
        told = await live.ask(user_id, QUESTION, sampling=GREEDY)
        assert (told.notes, told.adapter_version) == (["Please answer in fewer words."], 0)
        assert "quantised" in (await live.engine.consolidate(user_id)).reason
        given = await live.engine.adopt(GenerateRequest(user_id, first.messages, notes="off"), "Paris")
        assert len(given.logprobs) == len(given.completion_token_ids)
        read = await live.host.logprobs(first.prompt_token_ids, first.completion_token_ids, "read")
        assert sum(abs(a - b) for a, b in zip(read, first.logprobs, strict=True)) / len(read) < MAX_GAP_BFLOAT16
        with pytest.raises(LearningImpossible, match=method):
            await live.parts.context.trainer.score([Sample("gold", [1], [1], [2])], ZERO_ADAPTER)
        assert (await live.engine.undo(user_id)).note == "Please answer in fewer words."
        again = await live.ask(user_id, QUESTION, sampling=GREEDY)
        assert (again.notes, again.completion_token_ids) == ([], first.completion_token_ids)
        await live.engine.settled()
        await live.engine.forget(user_id)


def test_every_name_that_is_let_in_is_started_here() -> None:
    """No architecture is called known that this module does not start."""
    assert set(NAMES.values()) == set(CONFIGS)
