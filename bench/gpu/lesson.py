"""A lesson's update on a device, phase by phase, beside its floor. Needs torch, transformers and PEFT, not vLLM.

The rows are those of a real model's lesson: the corrected answer, whole answers of the teacher, beginnings, anchors.
What they say is drawn at random, which costs the same time.
"""

import random
import statistics
from typing import Any

import torch

from bench.figures import Row, row
from bench.gpu.config import GpuBenchConfig
from bench.gpu.floor import update_work
from bench.gpu.peaks import measure_peaks, timed_s
from bench.gpu.shape import base_model, config_of
from engine.calibration.prior import REAL_MODEL
from engine.config import LearnConfig
from engine.host.model_shape import ModelShape
from engine.sample import Kind, Sample
from engine.training.model import gpu_training_model
from engine.training.training_update import TrainingUpdate
from evals.study import Advance

MOST_RATIO = 2.0  # of the floor: half of what the device could do
PROMPT, NOTE = 40, 20  # tokens of a question in its template, and of a note with what stands around it
ANSWERS: tuple[tuple[Kind, int, int], ...] = (  # how many of each, and their tokens
    ("correction", 1, 120), ("counterfactual", 20, 64), ("opening", 24, 8), ("anchor", 8, 40),
)  # fmt: skip
PHASES = ("teacher", "steps", "final")
Samples = dict[str, Any]


def measure(config: GpuBenchConfig, advance: Advance) -> Samples:
    """Seconds of every phase of each lesson, the floor's, the device's peaks and the most memory used. Blocking."""
    device = torch.device(config.device)
    settings = config_of(config.model)
    shape = ModelShape.of(settings.to_dict())
    peaks = measure_peaks(device)
    samples: Samples = {"peaks": vars(peaks), "lesson_s": [], **{phase: [] for phase in PHASES}}
    model = gpu_training_model(base_model(config.model, device), "bench")
    learn = LearnConfig(learning_rate=1e-4).merged(REAL_MODEL)
    rows = lesson_rows(shape.vocab_size, config.seed)
    for number in range(config.lessons + 1):
        update = TrainingUpdate(model, learn, rows, None)
        seconds = timed_s(lambda update=update: update.advance(float("inf")), device)  # type: ignore[misc]
        if number:
            samples["lesson_s"].append(seconds)
            for phase in PHASES:
                samples[phase].append(update.measured.phases_ms.get(phase, 0.0) / 1e3)
        advance("lesson")
    work = update_work(shape, rows, learn)
    samples["floor_s"] = {phase: work[phase].seconds(peaks) for phase in PHASES}
    samples["memory_bytes"] = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else 0
    return samples


def lesson_rows(vocab_size: int, seed: int) -> list[Sample]:
    """Return the rows of a lesson; a teacher's prompts have a note, those it is guided away from a shorter one."""
    rng = random.Random(seed)

    def drawn(count: int) -> list[int]:
        return [rng.randrange(2, vocab_size) for _ in range(count)]

    found: list[Sample] = []
    for kind, count, length in ANSWERS:
        for _ in range(count):
            asked = drawn(PROMPT)
            seen = asked if kind == "anchor" else [*asked, *drawn(NOTE)]
            plain = None if kind == "anchor" else [*asked, *drawn(NOTE // 2)]
            found.append(Sample(kind, asked, seen, drawn(length), plain_ids=plain))
    return found


def rows(samples: Samples) -> list[Row]:
    """Return the rows of the table."""
    floor = samples["floor_s"]
    lesson, least = statistics.median(samples["lesson_s"]), sum(floor.values())
    parts = [row(f"  {phase}: {floor[phase]:.3f} s at best", "s", samples[phase]) for phase in PHASES]
    used = [Row("memory with model and lesson", "GB", samples["memory_bytes"] / 1e9)] if samples["memory_bytes"] else []
    return [
        row(f"a lesson's update: {least:.2f} s at best", "s", samples["lesson_s"]),
        *parts,
        Row("  measured / at best", "ratio", lesson / least, target=MOST_RATIO),
        *used,
    ]
