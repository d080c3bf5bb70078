"""The estimate for a model that was not calibrated: a first learning rate from its family and width, and wide gates.

The rate is a published rule for LoRA, 5e-4 (2000 / hidden)^0.78 (Thinking Machines' tinker-cookbook, which swept it
over its models), with a factor for Qwen. The gates are as wide as the figures of good lessons on very different models
(`docs/LOG.md`): they stop what has broken down, and not much more, until the model is calibrated.
"""

import json
from pathlib import Path
from typing import Any

from engine.calibration import record
from engine.calibration.record import Calibration, settings_hash
from engine.config import EngineConfig, LearnConfig

_REFERENCE_RATE, _REFERENCE_WIDTH, _EXPONENT = 5e-4, 2000, 0.78
_FAMILY_FACTORS = {"qwen2": 2.0, "qwen3": 2.0}
_READS_WELL = 1024  # width from which on a model is taken to find a fact, and to tell an example's form from its topic
_CHANGE_PER_RATE = 12.0  # of the bound; a good lesson changes a value by 3 to 4 times the rate, on models of any size
_LOWEST_RATE, _HIGHEST_RATE = 1e-5, 1e-2
_WIDE_GATE = {"max_divergence_left": 0.7, "max_unasked": 0.15, "max_unasked_worst": 0.6}
REAL_MODEL = {  # what a pretrained model needs besides its rate (docs/LOG.md)
    "lora_rank": 8,  # with alpha as it is, so that a rate does as much as at any other rank
    "steps": 18,
    "whole_first_step": False,  # the first pass for the guided teacher has measured a fresh adapter already
    "mini_batch_samples": 8,
    "parent_rate": 1.0,  # a later wish needs as much as the first: at a third it closed half and was not said
    "replacing_share": 0.15,  # what is left of the wish before outweighs a small model's new one
    "num_teacher_rollouts": 8,
    "max_teacher_rollouts": 20,
    "num_openings": 24,
    "teacher_temperature": 0.3,
    "guidance_scale": 1.5,
    "reads_hindsight": False,
    "shows_rewrites": False,  # wide models read examples: see `estimate`
    "facts_in_message": True,  # wide models find them among the notes
    "opening_weight": 6.0,
    "closing_weight": 6.0,
    "max_rollout_tokens": 64,
    "num_anchors": 8,
    "anchor_choice": 3,
    "anchor_weight": 9.0,
    "micro_batch_tokens": 1024,
}


def found_or_estimated(config: EngineConfig, folder: Path, fingerprint: str) -> Calibration:
    """Return the calibration of the model in a folder, made here or shipped, or else the estimate. Blocking."""
    return record.find(config, fingerprint) or estimate(folder, config.model, fingerprint, config.learn)


def estimate(folder: Path, model: str, fingerprint: str, learn: LearnConfig) -> Calibration:
    """Return the estimate for the model in a folder. Blocking: reads its configuration."""
    settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    rate, is_wide = first_rate(settings), _width(settings) >= _READS_WELL
    return Calibration(
        model,
        fingerprint,
        settings_hash(learn),
        is_measured=False,
        learn={"learning_rate": rate, **REAL_MODEL, "shows_rewrites": is_wide, "facts_in_message": not is_wide},
        gate=_WIDE_GATE | {"max_value_change": float(f"{_CHANGE_PER_RATE * rate:.2g}")},
    )


def first_rate(settings: dict[str, Any]) -> float:
    """Return the first learning rate to try for a Hugging Face model configuration."""
    text = settings.get("text_config", settings)
    factor = _FAMILY_FACTORS.get(str(text.get("model_type", "")), 1.0)
    rate = factor * _REFERENCE_RATE * (_REFERENCE_WIDTH / _width(settings)) ** _EXPONENT
    return float(f"{min(_HIGHEST_RATE, max(_LOWEST_RATE, rate)):.1e}")


def _width(settings: dict[str, Any]) -> int:
    return int(settings.get("text_config", settings).get("hidden_size") or _REFERENCE_WIDTH)
