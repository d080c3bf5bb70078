"""`python -m engine.sources.convert GGUF FOLDER`: a Llama model from a GGUF file as a Hugging Face folder in bfloat16.

A process of its own, so that heed does not keep what the conversion needs. Invariant: the files are the same bytes
wherever they are made with the same libraries.
"""

import json
import sys
from pathlib import Path
from typing import Any

_VOLATILE = ("transformers_version", "_name_or_path", "_from_model_config")


def convert(gguf: Path, folder: Path) -> None:
    """Write the model, its tokenizer and its configuration into a folder. Blocking: about 10 s, with 2 GB of memory."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    read: Any = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name)
    values = read.config.to_dict()
    values.pop("quantization_config", None)  # a model that still says "quantised" is not saved
    model: Any = LlamaForCausalLM(LlamaConfig(**values))
    model.load_state_dict(read.state_dict())
    model.tie_weights()
    model.to(torch.bfloat16).save_pretrained(folder)
    AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(folder)
    for name in ("config.json", "generation_config.json"):
        _without_volatile(folder / name)


def _without_volatile(path: Path) -> None:
    values = json.loads(path.read_text(encoding="utf-8"))
    kept = {name: value for name, value in values.items() if name not in _VOLATILE}
    path.write_text(json.dumps(kept, indent=2, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
