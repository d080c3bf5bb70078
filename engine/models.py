"""The models that can be named: what each is, what it needs here, and how well heed knows it. Light to import.

Part of the engine's facade for `bot/`, which shows these lines in `heed models`, in `heed doctor`, at a start, on the
page and in /start.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.calibration import prior, record
from engine.calibration.overview import overview
from engine.config import BetterAnswersConfig, EngineConfig
from engine.consolidation.teacher_endpoint import Endpoint
from engine.host import allocator, architectures
from engine.host.memory import memory_need
from engine.host.model_files import fingerprint
from engine.host.model_sampling import own_sampling as own_sampling  # for `heed doctor`
from engine.host.model_shape import ModelShape
from engine.host.vllm_settings import cpu_dtype_of
from engine.host.vllm_settings import has_gpu as has_gpu  # for `heed doctor`
from engine.pocket import PACKAGED
from engine.requests import ModelLearning
from engine.sources import smollm2

find_tcmalloc = allocator.find  # for `heed doctor`
TCMALLOC_PACKAGE = allocator.PACKAGE

POCKET = "pocket"
MODELS_FOLDER = "models"  # below the data directory
_TITLES = {POCKET: "The pocket model", "workshop": "The pocket model's workshop"}
_POCKET_LICENCE = "Apache-2.0"  # made by this project
_SMOLLM2_BYTES = 273_000_000  # of disk, once it is there
_SMOLLM2_SETTINGS = {  # of its config.json, before it is here
    "num_hidden_layers": 30, "hidden_size": 576, "intermediate_size": 1536, "num_attention_heads": 9,
    "num_key_value_heads": 3, "vocab_size": 49_152, "max_position_embeddings": 8192, "tie_word_embeddings": True,
    "dtype": "bfloat16",
}  # fmt: skip


@dataclass(frozen=True)
class NamedModel:
    """One line of `heed models`. Sizes in bytes; None where they are not known before the model is here."""

    name: str  # for HEED_MODEL
    title: str
    size: int | None
    memory: int | None
    is_here: bool
    licence: str
    is_calibrated: bool


def title_of(model: str) -> str:
    """Return a model's name for people: of a folder only the last part."""
    named = next((name for name, folder in PACKAGED.items() if model in (name, str(folder))), "")
    if named:
        return _TITLES[named]
    if model == smollm2.NAME:
        return smollm2.TITLE
    return Path(model).name if model.startswith(("/", ".", "~")) else model


def named_models(config: EngineConfig) -> list[NamedModel]:
    """Return what can be named on this machine, folders below `models` in the data directory last. Blocking."""
    packaged = smollm2.folder_in(config.data_dir)
    found = sorted(path.parent for path in (config.data_dir / MODELS_FOLDER).glob("*/config.json"))
    others = [path for path in found if path != packaged and not path.name.startswith(".")]
    own = [_in_folder(name, folder, _POCKET_LICENCE, config) for name, folder in PACKAGED.items()]
    return [*own, _smollm2(packaged, config)] + [_in_folder(str(path), path, "", config) for path in others]


def is_calibrated(folder: Path, config: EngineConfig) -> bool:
    """Return True if learning was measured on the model in a folder, with these settings. Blocking."""
    found = record.find(config, fingerprint(folder))
    return found is not None and found.is_measured


def learning(folder: Path, config: EngineConfig) -> ModelLearning:
    """Return how the model in a folder would learn. Blocking: small files. Raises ArchitectureNotSupported by name."""
    trainability = architectures.check(folder)
    found = prior.found_or_estimated(config, folder, fingerprint(folder))
    return overview(found, found.applied(config), trainability)


async def check_teacher(config: BetterAnswersConfig) -> str:
    """Ask the endpoint that writes better answers for one word. Return its name. Raises TeacherError."""
    teacher = Endpoint(config)
    await teacher.check()
    return teacher.source


def _smollm2(folder: Path, config: EngineConfig) -> NamedModel:
    if (folder / "config.json").is_file():
        return _in_folder(smollm2.NAME, folder, smollm2.LICENCE, config)
    found = record.find(config, smollm2.FINGERPRINT)
    memory = _memory(_SMOLLM2_SETTINGS, found.applied(config) if found is not None else config)
    is_known = found is not None and found.is_measured
    return NamedModel(smollm2.NAME, smollm2.TITLE, _SMOLLM2_BYTES, memory, False, smollm2.LICENCE, is_known)


def _in_folder(name: str, folder: Path, licence: str, config: EngineConfig) -> NamedModel:
    size = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    is_known = is_calibrated(folder, config)
    try:
        settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        memory = _memory(settings, prior.found_or_estimated(config, folder, fingerprint(folder)).applied(config))
    except (OSError, KeyError, ValueError, TypeError):
        memory = None
    return NamedModel(name, title_of(name), size, memory, True, licence, is_known)


def _memory(settings: Mapping[str, Any], config: EngineConfig) -> int:
    """Return the bytes a model needs on this machine. Raises KeyError, ValueError or TypeError without its shape."""
    is_cpu, dtype = not has_gpu(), config.host.dtype
    dtype = cpu_dtype_of(settings) if is_cpu and dtype == "auto" else dtype
    value_bytes = 4 if dtype in ("float", "float32") else 2
    num_slots = config.host.num_slots(is_cpu=is_cpu)
    return memory_need(ModelShape.of(settings), config, value_bytes, num_slots, is_cpu=is_cpu).total
