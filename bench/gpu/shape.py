"""The model that is measured: one of a folder, or one of a published shape with random weights.

Speed does not hang on what the weights know. Random ones are drawn with the family's own spread, so that no value
overflows; their tokenizer knows words for all rows of the vocabulary.
"""

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast, Qwen3Config

from engine.training.model import attention_of, load_base

CHAT_TEMPLATE = (
    "{% for m in messages %}start {{ m['role'] }} {{ m['content'] }} stop {% endfor %}"
    "{% if add_generation_prompt %}start assistant {% endif %}"
)


UNKNOWN, STOP = "<unk>", "stop"


def qwen3_8b() -> Any:
    """Return the shape of Qwen3-8B, as published in its config.json."""
    return Qwen3Config(
        vocab_size=151_936, hidden_size=4096, intermediate_size=12_288, num_hidden_layers=36, num_attention_heads=32,
        num_key_value_heads=8, head_dim=128, max_position_embeddings=40_960, tie_word_embeddings=False,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6}, bos_token_id=0, eos_token_id=1, pad_token_id=1,
    )  # fmt: skip


def config_of(folder: str) -> Any:
    """Return the configuration of the model in a folder, or of the published shape if none is named. Blocking."""
    return AutoConfig.from_pretrained(folder) if folder else qwen3_8b()


def base_model(folder: str, device: torch.device) -> nn.Module:
    """Return the frozen base model on a device, in bfloat16. Blocking."""
    if folder:
        return load_base(Path(folder), torch.bfloat16).to(device)
    return random_model(qwen3_8b(), device)


def random_model(config: Any, device: torch.device) -> nn.Module:
    """Return a frozen model of random weights in bfloat16, drawn on the device. Blocking."""
    with device:
        model: nn.Module = AutoModelForCausalLM.from_config(
            config, dtype=torch.bfloat16, attn_implementation=attention_of(config)
        )
    return model.requires_grad_(requires_grad=False).eval()


def save_random(config: Any, folder: Path, device: torch.device) -> Path:
    """Write a random model, with a tokenizer that fits, to a folder and return it. Blocking."""
    random_model(config, device).save_pretrained(folder)
    words = [UNKNOWN, STOP, "start", "user", "assistant", "system"]
    words += [f"w{number}" for number in range(config.vocab_size - len(words))]
    raw = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, UNKNOWN))
    raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, unk_token=UNKNOWN, eos_token=STOP, pad_token=STOP)
    tokenizer.chat_template = CHAT_TEMPLATE
    tokenizer.save_pretrained(folder)
    return folder
