"""Random models of every architecture that heed trains, small, each with what is peculiar to it switched on.

Windows shorter than a prompt, soft-capping that bites, attention scaled by another width than the head's, rotary
embeddings of several kinds: a forward pass that forgets one of them gives other numbers.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    Gemma3TextConfig,
    LlamaConfig,
    MistralConfig,
    Phi3Config,
    Qwen2Config,
    Qwen3Config,
)

from tests.tiny_model import STRICT_TEMPLATE, tiny_tokenizer

WINDOW = 24  # tokens; shorter than any prompt and answer together
SIZES: dict[str, Any] = {
    "hidden_size": 128,
    "intermediate_size": 192,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 1024,
    "pad_token_id": 0,
    "dtype": "float32",
}
LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
PHI_ROPE = {
    "rope_type": "longrope",
    "rope_theta": 10000.0,
    "partial_rotary_factor": 0.5,
    "short_factor": [1.0 + 0.1 * i for i in range(8)],
    "long_factor": [2.0 + 0.5 * i for i in range(8)],
    "original_max_position_embeddings": 1024,
}
GEMMA: dict[str, Any] = {"head_dim": 32, "sliding_window": WINDOW}
CONFIGS: dict[str, Callable[..., Any]] = {
    "Llama": lambda **k: LlamaConfig(**SIZES, **k, rope_parameters=LLAMA3_ROPE, tie_word_embeddings=True),
    "Mistral": lambda **k: MistralConfig(**SIZES, **k, sliding_window=WINDOW, head_dim=32),
    "Qwen2": lambda **k: Qwen2Config(**SIZES, **k, tie_word_embeddings=True),
    "Qwen3": lambda **k: Qwen3Config(**SIZES, **k, head_dim=32, tie_word_embeddings=True),
    "Phi-3": lambda **k: Phi3Config(
        **SIZES | {"max_position_embeddings": 4096},
        **k,
        sliding_window=WINDOW,
        rope_parameters=PHI_ROPE,
        original_max_position_embeddings=1024,
    ),
    "Gemma 2": lambda **k: Gemma2Config(
        **SIZES, **k, **GEMMA, query_pre_attn_scalar=48, attn_logit_softcapping=2.0, final_logit_softcapping=6.0
    ),
    "Gemma 3 (text only)": lambda **k: Gemma3TextConfig(
        **SIZES, **k, **GEMMA, query_pre_attn_scalar=2, layer_types=["sliding_attention", "full_attention"] * 2
    ),
}


def save_tiny_architecture(path: Path, name: str, *, seed: int = 0) -> Path:
    """Write model, configuration and tokenizer to `path` and return it. `name`: of `CONFIGS`."""
    tokenizer = tiny_tokenizer()
    torch.manual_seed(seed)
    config = CONFIGS[name](
        vocab_size=len(tokenizer), eos_token_id=tokenizer.eos_token_id, bos_token_id=tokenizer.bos_token_id
    )
    if name == "Gemma 2":
        tokenizer.chat_template = STRICT_TEMPLATE
    model = AutoModelForCausalLM.from_config(config)
    for parameter in model.parameters():
        if parameter.dim() == 2:
            parameter.data.mul_(8.0)
        else:
            parameter.data.add_(torch.randn_like(parameter) * 0.1)  # norms and biases, which start at 1 and 0
    if name.startswith("Gemma"):  # its embeddings, which are also its outputs, would make each token predict itself
        model.get_input_embeddings().weight.data.mul_(0.25)
        model.model.norm.weight.data.add_(4.0)
    model.float().save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


GROUP = 64  # inputs that share one scale
QUANTISED = {
    "AWQ": {"quant_method": "awq", "bits": 4, "group_size": GROUP, "zero_point": True, "version": "gemm"},
    "GPTQ": {"quant_method": "gptq", "bits": 4, "group_size": GROUP, "desc_act": False, "sym": True},
}


def save_quantised(path: Path, method: str) -> Path:
    """Write a Llama whose linear layers are random numbers of 4 bits, in the layout of `method`; return its folder."""
    save_tiny_architecture(path, "Llama")
    tensors = load_file(path / "model.safetensors")
    generator = torch.Generator().manual_seed(0)
    for name in [name for name in tensors if name.endswith("_proj.weight")]:
        outputs, inputs = tensors.pop(name).shape
        prefix, groups = name.removesuffix("weight"), inputs // GROUP
        packed = (inputs, outputs // 8) if method == "AWQ" else (inputs // 8, outputs)
        tensors[f"{prefix}qweight"] = torch.randint(-(2**31), 2**31 - 1, packed, generator=generator).int()
        tensors[f"{prefix}qzeros"] = torch.full(
            (groups, outputs // 8), -0x77777778 if method == "AWQ" else 0x77777777
        ).int()
        tensors[f"{prefix}scales"] = torch.full((groups, outputs), 0.03, dtype=torch.float16)
        if method == "GPTQ":
            tensors[f"{prefix}g_idx"] = (torch.arange(inputs) // GROUP).int()
    save_file(tensors, path / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((path / "config.json").read_text())
    config |= {"quantization_config": QUANTISED[method], "dtype": "float16"}
    (path / "config.json").write_text(json.dumps(config))
    return path
