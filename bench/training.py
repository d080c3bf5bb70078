"""A lesson's steps, heed's beside plain ones by transformers and PEFT, on the same rows, in turns.

Both compute with the model in the type that it is trained in here, over rows as a step of a real model's lesson has
them: beginnings of answers, whole answers, neutral ones. The plain step is that of a training script: padded
micro-batches of as many tokens, forward and backward through all of them, PEFT's adapter, cross-entropy of the answers.
heed's goes backward through the answers alone (ADR 46), and has the divergence to the teacher over the whole vocabulary
and the optimizer in it; what the teacher is asked before the first step is left out of both.
"""

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from torch.nn.functional import cross_entropy
from transformers import AutoModelForCausalLM

from bench.config import BenchConfig
from bench.figures import Row, row
from engine.config import EngineConfig, LearnConfig
from engine.host.vllm_settings import cpu_dtype
from engine.pocket import PACKAGED
from engine.prompts.bank import load_bank
from engine.prompts.builder import PromptBuilder
from engine.sample import Kind, Sample
from engine.training.batching import Batch, plan_batches
from engine.training.model import load_tokenizer, load_training_model
from engine.training.training_update import TrainingUpdate
from evals import configuration
from evals.real.gates import DATA, prepared
from evals.study import Advance

MOST_RATIO = 1 / 1.5  # heed's time by the plain one's
ANSWERS: tuple[Kind, ...] = ("opening",) * 5 + ("counterfactual",) * 3 + ("anchor",) * 2  # of one step
LENGTHS: dict[Kind, int] = {"opening": 8, "counterfactual": 64, "anchor": 40}  # tokens of an answer
_CONTEXT = 2048
Samples = dict[str, list[float]]


def units(config: BenchConfig) -> int:
    """Return steps of the progress bar."""
    return config.rounds


async def measure(config: BenchConfig, advance: Advance) -> Samples:
    """Seconds of each step of either kind. They take turns, behind one of each that is not counted."""
    steps = await asyncio.to_thread(Steps, config.measured_model, config.seed)
    await asyncio.to_thread(steps.both)
    samples: Samples = {"heed_s": [], "plain_s": []}
    for _ in range(config.rounds):
        heed_s, plain_s = await asyncio.to_thread(steps.both)
        samples["heed_s"].append(heed_s)
        samples["plain_s"].append(plain_s)
        advance("training")
    return samples


def rows(samples: Samples) -> list[Row]:
    """Return the rows of the table."""
    ratios = [heed / plain for heed, plain in zip(samples["heed_s"], samples["plain_s"], strict=True)]
    return [
        row("a lesson's step", "s", samples["heed_s"]),
        row("  by transformers and PEFT", "s", samples["plain_s"]),
        row("  heed's / theirs", "ratio", ratios, MOST_RATIO),
    ]


class Steps:
    """One model, loaded twice: for heed's steps and for plain ones."""

    def __init__(self, model: str, seed: int) -> None:
        """Load it in the type that heed trains it in, with the settings it learns by here. Blocking.

        Raises ArgumentError if there is no such model.
        """
        folder = PACKAGED.get(model) or prepared(model)
        dtype = getattr(torch, cpu_dtype(folder))
        self._learn = configuration.calibrated(EngineConfig(model, DATA), folder).learn
        self._rows = step_rows(folder, seed)
        self._update = TrainingUpdate(load_training_model(folder, "bench", dtype), self._endless, self._rows, None)
        while self._update.phase == "teacher":
            self._update.advance(0)
        self._plain = plain_model(folder, dtype, self._learn)

    @property
    def _endless(self) -> LearnConfig:
        return replace(self._learn, steps=1000, mini_batch_samples=len(self._rows))

    def both(self) -> tuple[float, float]:
        """Return the seconds of one step by heed and of a plain one. Blocking."""
        return _timed(self._heed_step), _timed(self._plain_step)

    def _heed_step(self) -> None:
        done = self._update.measured.steps
        while self._update.measured.steps == done:
            self._update.advance(0)

    def _plain_step(self) -> None:
        budget = self._learn.micro_batch_tokens
        for batch in plan_batches(self._rows, range(len(self._rows)), "student", budget, torch.device("cpu")):
            plain_loss(self._plain, batch).backward()
        self._plain.zero_grad()


def step_rows(folder: Path, seed: int) -> list[Sample]:
    """Return the rows of a step: prompts of the model's bank, answers of drawn tokens, whose values cost no time."""
    rng = random.Random(seed)
    tokenizer = load_tokenizer(folder)
    prompts = PromptBuilder(tokenizer, _CONTEXT)
    found: list[Sample] = []
    for kind, messages in zip(ANSWERS, load_bank(folder).sample_topics(len(ANSWERS), rng), strict=True):
        asked = prompts.prompt_token_ids(messages)
        answer = [rng.randrange(len(tokenizer)) for _ in range(LENGTHS[kind])]
        found.append(Sample(kind, asked, asked, answer))
    return found


def plain_model(folder: Path, dtype: torch.dtype, learn: LearnConfig) -> Any:
    """Return the model as a training script has it: transformers' own attention, PEFT's adapter. Blocking."""
    base = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
    config = LoraConfig(
        r=learn.lora_rank,
        lora_alpha=learn.lora_alpha,
        target_modules=list(learn.target_modules),
        task_type="CAUSAL_LM",
    )
    return get_peft_model(base, config)


def plain_loss(model: Any, batch: Batch) -> torch.Tensor:
    """Return the cross-entropy of a padded micro-batch's answers."""
    logits = model(input_ids=batch.input_ids_BL, use_cache=False).logits
    return cross_entropy(logits.flatten(0, 1)[batch.rows_N].float(), batch.token_ids_N)


def _timed(step: Callable[[], None]) -> float:
    started_s = time.perf_counter()
    step()
    return time.perf_counter() - started_s
