"""The architectures that heed serves and trains, told by a folder's config.json before anything is loaded.

Pure: reads small JSON files, imports neither torch nor vLLM. Invariant: a folder passes only if vLLM and the trainer
compute the same with it (`tests/real/test_architectures.py` starts each one); a quantised one is served and not
trained.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import ArchitectureNotSupported, ModelNotFoundError

CONFIG_FILE = "config.json"
NAMES = {
    "LlamaForCausalLM": "Llama",
    "MistralForCausalLM": "Mistral",
    "Qwen2ForCausalLM": "Qwen2",
    "Qwen3ForCausalLM": "Qwen3",
    "Phi3ForCausalLM": "Phi-3",
    "Gemma2ForCausalLM": "Gemma 2",
    "Gemma3ForCausalLM": "Gemma 3 (text only)",
}
_INSTEAD = {  # by architecture; the others get the list alone
    "Qwen2MoeForCausalLM": "It is a mixture of experts: choose a dense model of the same family.",
    "Qwen3MoeForCausalLM": "It is a mixture of experts: choose a dense model of the same family.",
    "MixtralForCausalLM": "It is a mixture of experts: choose a dense model of the same family.",
    "Gemma3ForConditionalGeneration": "It also reads images: choose a text-only Gemma 3, such as the one with 1B.",
    "Mistral3ForConditionalGeneration": "It also reads images: choose a text-only Mistral.",
    "Qwen2VLForConditionalGeneration": "It also reads images: choose a text-only Qwen.",
    "Qwen2_5_VLForConditionalGeneration": "It also reads images: choose a text-only Qwen.",
}
_DYNAMIC = (
    "The model {folder} stretches its context by dynamic NTK (rope_type dynamic), and vLLM and the trainer do not "
    "compute that alike. Set HEED_MODEL to a model without it, or take the entry out of its config.json: up "
    "to max_position_embeddings the model is the same without."
)
_METHODS = {
    "awq": "AWQ",
    "gptq": "GPTQ",
    "fp8": "FP8",
    "fbgemm_fp8": "FP8",
    "bitsandbytes": "bitsandbytes",
    "compressed-tensors": "compressed-tensors",
    "gguf": "GGUF",
    "mxfp4": "MXFP4",
    "modelopt": "ModelOpt",
}
_OLDER_FILES = {  # where quantisers wrote their settings before config.json had a place for them
    "quantize_config.json": "GPTQ",
    "quant_config.json": "AWQ",
    "hf_quant_config.json": "ModelOpt",
}


@dataclass(frozen=True)
class Trainability:
    """The architecture of a model folder, and if its models learn here."""

    architecture: str  # as the field calls it: "Qwen3"
    quantisation: str = ""  # as the field calls it: "AWQ"; empty for none
    packed: str = ""  # the same where the weights are packed to 4 bits
    missing_bytes: int = 0  # of the GPU's memory, for learning beside the model
    longest_context: int | None = None  # tokens up to which vLLM and the trainer agree; None: the model's own limit

    @property
    def can_learn(self) -> bool:
        """Return True if people's adapters can be trained on it."""
        return not self.quantisation and not self.missing_bytes

    @property
    def reason(self) -> str:
        """The sentence for a person whose feedback is not trained; empty if it is."""
        if self.can_learn:
            return ""
        if self.missing_bytes:
            missing = self.missing_bytes >> 20
            return f"The GPU has no room to train this model: {missing} MB are missing. So heed only answers."
        return f"This model is quantised ({self.quantisation}), so heed does not train it."

    @property
    def remedy(self) -> str:
        """The sentence for the operator whose model does not learn; empty if it does."""
        if self.can_learn:
            return ""
        if self.missing_bytes:
            return "Set HEED_MODEL to a smaller model, or HEED_LEARN_MAX_SEQUENCE_TOKENS lower, and heed learns."
        return "Set HEED_MODEL to the same model as it was before it was quantised, and heed learns."


def check(folder: Path) -> Trainability:
    """Read what a model folder holds. Blocking: a small file or two.

    Raises ArchitectureNotSupported by name, and ModelNotFoundError if config.json cannot be read.
    """
    config = _config(folder)
    found = [name for name in config.get("architectures") or [] if isinstance(name, str)]
    architecture = next((name for name in found if name in NAMES), None)
    if architecture is None:
        raise ArchitectureNotSupported(_refusal(folder, found))
    method = _quantisation(folder, config)
    packed = method if _is_packed(method, config) else ""
    found_here = Trainability(NAMES[architecture], method, packed, longest_context=_longest_context(config))
    if found_here.can_learn and "dynamic" in _rotations(config):
        raise ArchitectureNotSupported(_DYNAMIC.format(folder=folder))
    return found_here


def _config(folder: Path) -> dict[str, Any]:
    try:
        config = json.loads((folder / CONFIG_FILE).read_bytes())
    except (OSError, ValueError) as error:
        raise ModelNotFoundError(f"The {CONFIG_FILE} of {folder} cannot be read: {error}.") from error
    if not isinstance(config, dict):
        raise ModelNotFoundError(f"The {CONFIG_FILE} of {folder} is no JSON object.")
    return config


def _refusal(folder: Path, found: list[str]) -> str:
    named = f"is a {', '.join(found)}" if found else f"names no architecture in its {CONFIG_FILE}"
    instead = next((_INSTEAD[name] + " " for name in found if name in _INSTEAD), "")
    *first, last = NAMES.values()
    return (
        f"The model {folder} {named}, which heed does not know how to train. {instead}"
        f"Set HEED_MODEL to a model of one of these architectures: {', '.join(first)} or {last}."
    )


def _quantisation(folder: Path, config: dict[str, Any]) -> str:
    """Return the method by which the weights were quantised, or an empty text."""
    settings = config.get("quantization_config") or config.get("compression_config")
    if isinstance(settings, dict):
        method = str(settings.get("quant_method") or "by an unnamed method")
        return _METHODS.get(method.lower(), method)
    return next((method for name, method in _OLDER_FILES.items() if (folder / name).is_file()), "")


def _is_packed(method: str, config: dict[str, Any]) -> bool:
    settings = config.get("quantization_config") or config.get("compression_config")
    form = settings.get("format") if isinstance(settings, dict) else ""
    return method in ("AWQ", "GPTQ") or (method == "compressed-tensors" and form == "pack-quantized")


def _rotations(config: dict[str, Any]) -> set[str]:
    """Return the kinds of rotary embeddings: one for all layers, or one for each kind of layer."""
    rope = _rope(config)
    parts = [rope, *(part for part in rope.values() if isinstance(part, dict))]
    return {str(part.get("rope_type", part.get("type", "default"))) for part in parts}


def _rope(config: dict[str, Any]) -> dict[str, Any]:
    return config.get("rope_parameters") or config.get("rope_scaling") or {}


def _longest_context(config: dict[str, Any]) -> int | None:
    """Return the tokens up to which LongRoPE (Phi-3 with 128k) has one set of frequencies, None for any other rotation.

    Beyond them vLLM takes the long frequencies for every prompt, Hugging Face for the long ones only.
    """
    if not _rotations(config) & {"longrope", "su"}:
        return None
    rope = _rope(config)
    found = rope.get("original_max_position_embeddings") or config.get("original_max_position_embeddings")
    return found if isinstance(found, int) else None
