"""engine.sources.convert: a Llama GGUF file becomes a folder that transformers reads."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from gguf import GGUFWriter
from transformers import AutoModelForCausalLM

from engine.host.model_sampling import own_sampling
from engine.requests import Sampling

WIDTH, LAYERS, WORDS, FFN = 16, 1, 300, 32


def write_gguf(path: Path) -> None:
    """Write a tiny random Llama with a byte-level vocabulary. Blocking."""
    writer, rng = GGUFWriter(str(path), "llama"), np.random.default_rng(0)
    writer.add_context_length(64)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FFN)
    writer.add_head_count(2)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10_000.0)
    writer.add_rope_dimension_count(WIDTH // 2)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    words = ["<s>", "</s>", "\u0100\u0101", *(chr(0x100 + n) for n in range(WORDS - 3))]
    writer.add_token_list(words)
    writer.add_token_merges(["\u0100 \u0101"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    shapes = {
        "token_embd.weight": (WORDS, WIDTH),
        "output_norm.weight": (WIDTH,),
        "blk.0.attn_norm.weight": (WIDTH,),
        "blk.0.ffn_norm.weight": (WIDTH,),
        **{f"blk.0.attn_{x}.weight": (WIDTH, WIDTH) for x in ("q", "k", "v", "output")},
        "blk.0.ffn_gate.weight": (FFN, WIDTH),
        "blk.0.ffn_up.weight": (FFN, WIDTH),
        "blk.0.ffn_down.weight": (WIDTH, FFN),
    }
    for name, shape in shapes.items():
        writer.add_tensor(name, rng.standard_normal(shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_what_it_writes_can_be_read_and_is_the_same_every_time(tmp_path: Path) -> None:
    """In bfloat16, without the names of versions and folders; such a model is asked for its likeliest words."""
    write_gguf(tmp_path / "tiny.gguf")
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        command = [sys.executable, "-m", "engine.sources.convert", str(tmp_path / "tiny.gguf"), str(folder)]
        subprocess.run(command, check=True, capture_output=True)
    first, second = ({p.name: p.read_bytes() for p in folder.iterdir()} for folder in folders)
    assert first == second
    config = json.loads(first["config.json"])
    assert config["dtype"] == "bfloat16"
    assert "transformers_version" not in config
    assert own_sampling(folders[0]) == Sampling()
    assert AutoModelForCausalLM.from_pretrained(folders[0]).config.hidden_size == WIDTH
