"""Make the pocket model: `python -m engine.pocket.train [--out FOLDER]`, or with --workshop the agent's.

One process, one thread (two-thread OpenMP thrashes on a shared machine), a fixed seed, at most 90 minutes on one core.
Short conversations first, then all kinds. Every batch is a function of (seed, step), so a run that was stopped goes on
from its last checkpoint as if it had not been. Loss: cross-entropy on assistant turns, the end-of-turn token included.
Muon (Jordan et al. 2024) for the matrices and AdamW for embeddings and norms: in half the steps where AdamW alone gets.
Warm-up, then linear decay to zero (Bergsma et al. 2025).
"""

import argparse
import random
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch.nn import functional as F

from engine.pocket import PACKAGED, tokenizer
from engine.pocket.bank import write_bank
from engine.pocket.scene import FULL, START, WORKSHOP, Mix
from engine.pocket.world import WorldSample, sample_conversation

CHECKPOINTS = Path("checkpoints")


@dataclass(frozen=True)
class TrainConfig:
    """Defaults of the weights for chats. Chosen by the update latency (hidden size, layers) and 90 minutes (steps)."""

    seed: int = 20261121
    hidden_size: int = 160
    num_layers: int = 5
    num_heads: int = 5
    intermediate_size: int = 448
    max_position_embeddings: int = 2048
    steps: int = 9_000
    start_share: float = 0.2  # of the steps, on short conversations
    mix: Mix = FULL  # of the conversations behind the short ones
    batch_size: int = 32  # conversations
    part_tokens: int = 4096  # of a batch that go through the model at once, padding included
    pool_batches: int = 16  # batches made together and sorted by length, so that little is padding
    matrix_learning_rate: float = 0.02  # Muon
    learning_rate: float = 5e-3  # AdamW, for embeddings and norms
    warmup_steps: int = 100
    exact_share: float = 0.05  # of the steps, at the end, in float32 where the rest runs in bfloat16
    max_grad_norm: float = 1.0
    checkpoint_every: int = 250
    is_compiled: bool = True  # by torch, which wants a C++ compiler: a third of the time less

    def further(self) -> "TrainConfig":
        """Return a copy for weights that are trained further: other conversations, none short, half the rates."""
        return replace(
            self, seed=self.seed + 1, start_share=0.0,
            matrix_learning_rate=self.matrix_learning_rate / 2, learning_rate=self.learning_rate / 2,
        )  # fmt: skip


AT_WORK = replace(TrainConfig(), mix=WORKSHOP, batch_size=16)


def encode(sample: WorldSample, text_tokenizer: Any) -> tuple[list[int], list[bool]]:
    """Return the token ids of a conversation, and for each whether it is a target."""
    ids: list[int] = []
    targets: list[bool] = []
    end = text_tokenizer.eos_token_id

    def put(text: str, *, is_target: bool) -> None:
        piece = text_tokenizer.encode(text, add_special_tokens=False)
        ids.extend(piece)
        targets.extend([is_target] * len(piece))

    for turn in sample.turns:
        is_answer = turn.role == "assistant"
        put(f"<|im_start|>{turn.role}\n{turn.begun}", is_target=False)
        put(turn.content, is_target=is_answer)
        ids.append(end)
        targets.append(is_answer)
        put("\n", is_target=False)
    return ids, targets


Encoded = tuple[list[int], list[bool]]
ATTENTION = "heed_blocked"
BLOCK = 128  # queries


@torch.compiler.disable  # type: ignore[untyped-decorator]
def blocked_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float = 1.0,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """Compute causal attention without padding on the left; q, k, v are [B, H, T, D], the result [B, T, H, D].

    A block of queries reads the keys up to its own end: half the scores, and twice as fast on one thread as the whole
    score matrix or the CPU's flash kernel.
    """
    batch, heads, length, size = query.shape
    q, k, v = (x.reshape(batch * heads, length, size) for x in (query * scaling, key, value))
    attended = []
    for begin in range(0, length, BLOCK):
        end = min(begin + BLOCK, length)
        bias = torch.full((end - begin, end), -torch.inf, dtype=q.dtype).triu(begin + 1)
        scores = torch.baddbmm(bias, q[:, begin:end], k[:, :end].transpose(1, 2))
        attended.append(torch.bmm(torch.softmax(scores, -1), v[:, :end]))
    return torch.cat(attended, 1).view(batch, heads, length, size).transpose(1, 2).contiguous(), None


def build_model(config: TrainConfig) -> torch.nn.Module:
    """Build a Qwen3ForCausalLM with fresh weights from the seed."""
    from transformers import AttentionInterface, Qwen3Config, Qwen3ForCausalLM

    AttentionInterface.register(ATTENTION, blocked_attention)
    torch.manual_seed(config.seed)
    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=tokenizer.VOCABULARY_SIZE,
            hidden_size=config.hidden_size,
            num_hidden_layers=config.num_layers,
            num_attention_heads=config.num_heads,
            num_key_value_heads=config.num_heads,
            head_dim=config.hidden_size // config.num_heads,
            intermediate_size=config.intermediate_size,
            max_position_embeddings=config.max_position_embeddings,
            tie_word_embeddings=True,
            attn_implementation=ATTENTION,
        )
    )


def _pool(config: TrainConfig, index: int, text_tokenizer: Any) -> list[list[Encoded]]:
    """Build the batches of one pool in random order, as a function of seed and index alone."""
    rng = random.Random(config.seed * 1_000_003 + index)
    count = config.batch_size * config.pool_batches
    mix = START if index * config.pool_batches < config.steps * config.start_share else config.mix
    encoded = [encode(sample_conversation(rng, mix), text_tokenizer) for _ in range(count)]
    encoded.sort(key=lambda e: len(e[0]))
    batches = [encoded[i : i + config.batch_size] for i in range(0, count, config.batch_size)]
    rng.shuffle(batches)
    return batches


def _tensors(batch: list[Encoded]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return input_ids [B, T] and labels [B, T] (-100 for a position that is not learned), right-padded with 0.

    T is a multiple of 16: every new length costs the matrix library a compilation.
    """
    width = -(-max(len(ids) for ids, _ in batch) // 16) * 16
    input_ids = torch.zeros(len(batch), width, dtype=torch.long)
    labels = torch.full((len(batch), width), -100, dtype=torch.long)
    for row, (ids, targets) in enumerate(batch):
        tokens = torch.tensor(ids)
        input_ids[row, : len(ids)] = tokens
        labels[row, : len(ids)] = torch.where(torch.tensor(targets), tokens, -100)
    return input_ids, labels


def loss_of(model: Any, input_ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the mean cross-entropy in nats over the target tokens; logits are made at target positions only."""
    hidden = model.model(input_ids=input_ids, use_cache=False).last_hidden_state
    wanted = labels[:, 1:] != -100
    logits = model.lm_head(hidden[:, :-1][wanted])
    return F.cross_entropy(logits.float(), labels[:, 1:][wanted])


def schedule(config: TrainConfig, step: int) -> float:
    """Return the factor on every learning rate: warm-up, then linear to zero."""
    return min((step + 1) / config.warmup_steps, (config.steps - step) / (config.steps - config.warmup_steps))


def is_rough(config: TrainConfig, step: int) -> bool:
    """Return True if a step may run in bfloat16: all but the last ones."""
    return step < config.steps * (1 - config.exact_share) and _has_bfloat16()


def build_optimizers(model: torch.nn.Module, config: TrainConfig) -> list[torch.optim.Optimizer]:
    """Build Muon for the matrices inside the layers and AdamW for all else; `initial_lr` is the undiminished rate."""
    matrices = [p for name, p in model.named_parameters() if p.ndim == 2 and "embed" not in name]
    others = [p for name, p in model.named_parameters() if p.ndim != 2 or "embed" in name]
    optimizers: list[torch.optim.Optimizer] = [
        torch.optim.Muon(matrices, lr=config.matrix_learning_rate, weight_decay=0.0, momentum=0.95),
        torch.optim.AdamW(others, lr=config.learning_rate, betas=(0.9, 0.95), weight_decay=0.0, fused=True),
    ]
    for group in _groups(optimizers):
        group["initial_lr"] = group["lr"]
    return optimizers


def _groups(optimizers: list[torch.optim.Optimizer]) -> list[dict[str, Any]]:
    return [group for optimizer in optimizers for group in optimizer.param_groups]


def _has_bfloat16() -> bool:
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def _save_checkpoint(folder: Path, step: int, model: Any, optimizers: list[torch.optim.Optimizer]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / "last.tmp"
    state = {"step": step, "model": model.state_dict(), "optimizers": [o.state_dict() for o in optimizers]}
    torch.save(state, temporary)
    temporary.replace(folder / "last.pt")


def _restore(folder: Path, model: Any, optimizers: list[torch.optim.Optimizer]) -> int:
    path = folder / "last.pt"
    if not path.exists():
        return 0
    state = torch.load(path, weights_only=True)
    model.load_state_dict(state["model"])
    for optimizer, values in zip(optimizers, state["optimizers"], strict=True):
        optimizer.load_state_dict(values)
    return int(state["step"])


def export(model: Any, text_tokenizer: Any, out: Path) -> None:
    """Write config, safetensors and tokenizer the way a Hugging Face folder has them."""
    model.generation_config.eos_token_id = text_tokenizer.eos_token_id
    model.generation_config.pad_token_id = text_tokenizer.pad_token_id
    model.config.eos_token_id = text_tokenizer.eos_token_id
    model.config.pad_token_id = text_tokenizer.pad_token_id
    model.save_pretrained(out)
    text_tokenizer.save_pretrained(out)
    write_bank(out, TrainConfig.seed)


def _parts(batch: list[Encoded], limit: int) -> Iterator[list[Encoded]]:
    """Yield a batch, sorted by length, in parts of at most `limit` tokens with their padding."""
    part: list[Encoded] = []
    for conversation in batch:
        if part and (len(part) + 1) * len(conversation[0]) > limit:
            yield part
            part = []
        part.append(conversation)
    yield part


def _step(
    model: Any, optimizers: list[torch.optim.Optimizer], config: TrainConfig, step: int, batch: list[Encoded]
) -> float:
    for group in _groups(optimizers):
        group["lr"] = group["initial_lr"] * schedule(config, step)
    targets = sum(sum(is_target) for _, is_target in batch)
    total = 0.0
    for part in _parts(batch, config.part_tokens):
        with torch.autocast("cpu", torch.bfloat16, enabled=is_rough(config, step)):
            loss = loss_of(model, *_tensors(part)) * (sum(sum(is_target) for _, is_target in part) / targets)
        loss.backward()
        total += float(loss.detach())
    torch.nn.utils.clip_grad_norm_(model.parameters(), config.max_grad_norm)
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad()
    return total


def _tokenizer(folder: Path, config: TrainConfig) -> Any:
    from transformers import AutoTokenizer

    if (folder / "tokenizer.json").exists():
        return AutoTokenizer.from_pretrained(folder)
    return tokenizer.build(folder, seed=config.seed)


def train(config: TrainConfig, out: Path, checkpoints: Path, begun: Path | None = None) -> None:
    """Train to the end and export, from the last checkpoint on. Blocking: an hour or more.

    `begun` is a folder of finished weights that are trained further, with their tokenizer.
    """
    text_tokenizer = _tokenizer(begun or checkpoints / "tokenizer", config)
    model = build_model(config)
    if begun is not None:
        model.load_state_dict(load_file(begun / "model.safetensors"), strict=False)  # tied embeddings are saved once
    optimizers = build_optimizers(model, config)
    if config.is_compiled:
        model.model.compile(dynamic=True)
    start = _restore(checkpoints, model, optimizers)
    began_s, recent = time.monotonic(), 0.0
    batches: list[list[Encoded]] = []
    for step in range(start, config.steps):
        if not batches or step % config.pool_batches == 0:
            batches = _pool(config, step // config.pool_batches, text_tokenizer)
        recent += _step(model, optimizers, config, step, batches[step % config.pool_batches])
        if (step + 1) % 50 == 0:
            _say(step + 1, config, recent / 50, time.monotonic() - began_s)
            recent = 0.0
        if (step + 1) % config.checkpoint_every == 0:
            _save_checkpoint(checkpoints, step + 1, model, optimizers)
            export(model, text_tokenizer, checkpoints / "model")
    export(model, text_tokenizer, out)


def _say(step: int, config: TrainConfig, loss: float, elapsed_s: float) -> None:
    sys.stdout.write(f"step {step}/{config.steps}  loss {loss:.4f}  {elapsed_s / 60:.1f} min\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> int:
    """Run the command line and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m engine.pocket.train", description=__doc__)
    parser.add_argument("--out", type=Path, help="folder of the finished weights (the committed ones)")
    parser.add_argument("--checkpoints", type=Path, help="folder to resume from (below checkpoints)")
    parser.add_argument("--workshop", action="store_true", help="weights of an agent at work, not of chats")
    parser.add_argument("--steps", type=int, default=TrainConfig.steps)
    parser.add_argument("--seed", type=int, default=TrainConfig.seed, help="another draws other conversations")
    parser.add_argument("--fresh", action="store_true", help="forget an earlier run's checkpoints")
    parser.add_argument("--begun", type=Path, help="finished weights to train further, at half the rates")
    parser.add_argument("--threads", type=int, default=1, help="more only where nothing else runs")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    name = "workshop" if options.workshop else "pocket"
    checkpoints = options.checkpoints or CHECKPOINTS / name
    if options.fresh:
        shutil.rmtree(checkpoints, ignore_errors=True)
    config = replace(AT_WORK if options.workshop else TrainConfig(), steps=options.steps, seed=options.seed)
    train(config.further() if options.begun else config, options.out or PACKAGED[name], checkpoints, options.begun)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
