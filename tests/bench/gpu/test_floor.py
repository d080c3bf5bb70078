"""The floor of an update, counted by hand."""

from dataclasses import replace

import pytest

from bench.gpu.floor import Work, update_work
from bench.gpu.peaks import Peaks
from engine.config import LearnConfig
from engine.host.model_shape import ModelShape
from engine.sample import Sample

SHAPE = ModelShape(
    num_layers=2, hidden=8, intermediate=16, num_heads=2, num_kv_heads=1, head_dim=4, vocab_size=100,
    context_tokens=64, is_tied=True,
)  # fmt: skip
LAYERS = 2 * (2 * 8 * 4 * (2 + 1) + 3 * 8 * 16)  # weights of the blocks
BYTES = 2 * (LAYERS + 8 * 100)
TAUGHT = Sample("counterfactual", [2] * 5, [2] * 9, [3] * 6, plain_ids=[2] * 7)
ANCHOR = Sample("anchor", [2] * 5, [2] * 5, [3] * 4)


def forward(tokens: int, predicted: int) -> float:
    """The operations of one pass."""
    return 2.0 * tokens * LAYERS + 2.0 * predicted * 100 * 8


def test_every_phase_is_counted() -> None:
    """A teacher reads its own prompts, a step goes both ways, the last look is one pass of the student."""
    learn = LearnConfig(steps=3, mini_batch_samples=1, micro_batch_tokens=16)
    work = update_work(SHAPE, [TAUGHT, ANCHOR], learn)
    assert work["teacher"] == Work(forward(15 + 9, 10), 24 / 16 * BYTES)
    assert work["final"] == Work(forward(11 + 9, 10), 20 / 16 * BYTES)
    assert work["steps"] == Work(3 * 2 * forward(20, 10) / 2, 3 * 2 * BYTES)


def test_a_guided_teacher_reads_more() -> None:
    """What the student sees, and the beginnings behind the plain prompt."""
    learn = LearnConfig(micro_batch_tokens=1000)
    without, guided = (
        update_work(SHAPE, [TAUGHT, ANCHOR], replace(learn, guidance_scale=scale))["teacher"] for scale in (1.0, 1.5)
    )
    assert guided.flops - without.flops == forward(11, 6) + forward(7 + 4, 4)
    assert guided.bytes == 3 * without.bytes


@pytest.mark.parametrize(("work", "seconds"), [(Work(100, 1), 10.0), (Work(1, 100), 50.0)])
def test_the_slower_of_products_and_memory_decides(work: Work, seconds: float) -> None:
    """At the device's best rates."""
    assert work.seconds(Peaks(flops_per_s=10, bytes_per_s=2)) == seconds
