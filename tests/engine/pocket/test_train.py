"""engine.pocket.train: the targets, and training that goes on from a checkpoint as if it had not been stopped."""

import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from engine.pocket import tokenizer, train
from engine.pocket.train import TrainConfig
from engine.pocket.world import WorldSample, WorldTurn, sample_conversation

TINY = TrainConfig(
    hidden_size=32,
    num_layers=1,
    num_heads=2,
    intermediate_size=48,
    steps=6,
    batch_size=3,
    pool_batches=3,
    warmup_steps=2,
    checkpoint_every=4,
    is_compiled=False,
)


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory, pocket: Path) -> Path:
    """A folder to resume from that has a tokenizer and no checkpoint yet."""
    folder = tmp_path_factory.mktemp("checkpoints")
    (folder / "tokenizer").mkdir()
    for file in pocket.glob("*token*"):
        shutil.copy(file, folder / "tokenizer")
    shutil.copy(pocket / "chat_template.jinja", folder / "tokenizer")
    return folder


@pytest.fixture(scope="module")
def whole_run(checkpoints: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The weights of a training from step 0 to 6; its checkpoint of step 4 stays behind."""
    out = tmp_path_factory.mktemp("whole")
    train.train(TINY, out, checkpoints)
    return out


def weights(folder: Path) -> dict[str, torch.Tensor]:
    """The exported tensors."""
    tensors: dict[str, torch.Tensor] = load_file(folder / "model.safetensors")
    return tensors


def encoded_texts(sample: WorldSample, tokenizer: Any) -> tuple[str, str]:
    """(what is read, what is learned) of a conversation, both as text."""
    ids, targets = train.encode(sample, tokenizer)
    read = tokenizer.decode([i for i, is_target in zip(ids, targets, strict=True) if not is_target])
    return read, tokenizer.decode([i for i, is_target in zip(ids, targets, strict=True) if is_target])


def test_answers_and_their_end_are_learned_and_nothing_else(pocket_tokenizer: Any) -> None:
    """Targets are every assistant turn and its end-of-turn token; system, user and marks are read only."""
    said = [("system", "S."), ("user", "hi"), ("assistant", "Hello."), ("user", "bye"), ("assistant", "Bye.")]
    sample = WorldSample([WorldTurn(role, text) for role, text in said])
    read, learned = encoded_texts(sample, pocket_tokenizer)
    assert learned == "Hello.<|im_end|>Bye.<|im_end|>"
    assert read.count("<|im_end|>") == 3


def test_what_another_style_began_is_read_and_not_learned(pocket_tokenizer: Any) -> None:
    """The begun part of an answer is context; learning starts where the wanted style goes on."""
    sample = WorldSample([WorldTurn("user", "hi"), WorldTurn("assistant", " weighs 10 kg.", begun="Sure, the koala")])
    read, learned = encoded_texts(sample, pocket_tokenizer)
    assert learned == " weighs 10 kg.<|im_end|>"
    assert read.endswith("assistant\nSure, the koala\n")


def test_training_text_is_the_chat_templates_text(pocket_tokenizer: Any) -> None:
    """The token ids of a whole answer are those that the chat template gives at serving time."""
    rng = random.Random(3)
    whole = [s for s in (sample_conversation(rng) for _ in range(60)) if not any(t.begun for t in s.turns)]
    for sample in whole:
        messages = [{"role": t.role, "content": t.content} for t in sample.turns]
        text = pocket_tokenizer.apply_chat_template(messages, tokenize=False)
        assert train.encode(sample, pocket_tokenizer)[0] == pocket_tokenizer.encode(text, add_special_tokens=False)


def test_the_loss_looks_at_targets_only(pocket_tokenizer: Any) -> None:
    """Changing the label of a position that is no target changes nothing; changing a target changes the loss."""
    model = train.build_model(TINY)
    input_ids = torch.tensor([[5, 6, 7, 8]])
    labels = torch.tensor([[-100, -100, 7, 8]])
    with torch.no_grad():
        loss = train.loss_of(model, input_ids, labels)
        shifted = model(input_ids=input_ids).logits[0, 1:3].float()
        by_hand = torch.nn.functional.cross_entropy(shifted, torch.tensor([7, 8]))
    assert torch.allclose(loss, by_hand, atol=1e-6)


@pytest.mark.parametrize("length", [7, train.BLOCK, 2 * train.BLOCK + 1])
def test_attention_in_blocks_is_causal_attention(length: int) -> None:
    """The result is that of PyTorch's own causal attention, over one block and over several."""
    q, k, v = torch.randn(3, 2, 4, length, 8, generator=torch.Generator().manual_seed(1)).unbind()
    attended, _ = train.blocked_attention(torch.nn.Identity(), q, k, v, None, scaling=8**-0.5)
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)
    assert torch.allclose(attended, expected, atol=1e-5)


def test_a_batch_in_parts_teaches_what_it_teaches_whole(pocket_tokenizer: Any) -> None:
    """No part is longer than asked for, no conversation is lost, and the gradient is the same."""
    rng = random.Random(5)
    drawn = [train.encode(sample_conversation(rng), pocket_tokenizer) for _ in range(6)]
    batch = sorted(drawn, key=lambda e: len(e[0]))
    longest, exact = len(batch[-1][0]), replace(TINY, exact_share=1.0)
    assert [len(part) for part in train._parts(batch, longest)] != [6]
    assert [one for part in train._parts(batch, longest) for one in part] == batch
    assert all(len(part) * len(part[-1][0]) <= longest for part in train._parts(batch, longest))
    whole, parted = train.build_model(TINY), train.build_model(TINY)
    losses = [
        train._step(model, [], config, 0, batch)
        for model, config in ((whole, exact), (parted, replace(exact, part_tokens=longest)))
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    for one, other in zip(whole.parameters(), parted.parameters(), strict=True):
        assert one.grad is not None
        assert other.grad is not None
        assert torch.allclose(one.grad, other.grad, atol=1e-5)


def test_weights_of_an_agent_see_sessions_most() -> None:
    """They share the shape and the rates of a chat's weights."""
    assert train.AT_WORK.mix.workshop_share > 0.5 > TINY.mix.workshop_share
    assert train.AT_WORK.hidden_size == TrainConfig.hidden_size


def test_the_learning_rate_warms_up_and_falls_to_zero() -> None:
    """The rate rises linearly to its full value, then falls linearly to zero."""
    config = replace(TINY, steps=1000, warmup_steps=100)
    assert train.schedule(config, 0) == pytest.approx(0.01)
    assert train.schedule(config, 99) == train.schedule(config, 100) == 1.0
    assert train.schedule(config, 550) == pytest.approx(0.5)
    assert train.schedule(config, 1000) == 0.0


def test_only_the_last_steps_are_exact() -> None:
    """Steps may run in bfloat16 until the last twentieth, if the processor has it."""
    config = replace(TINY, steps=1000)
    assert not train.is_rough(config, 950)
    assert train.is_rough(config, 949) is train._has_bfloat16()


def test_fresh_weights_are_a_function_of_the_seed() -> None:
    """Two models from the same configuration are equal, from another seed they are not."""
    first, second, other = (train.build_model(replace(TINY, seed=seed)) for seed in (1, 1, 2))
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(first.parameters(), other.parameters(), strict=True))


def test_a_stopped_training_goes_on_to_the_same_weights(whole_run: Path, checkpoints: Path, tmp_path: Path) -> None:
    """Resuming from the checkpoint of step 4, in the middle of a pool, ends bit for bit where the whole run ended."""
    assert torch.load(checkpoints / "last.pt", weights_only=True)["step"] == 4
    train.train(TINY, tmp_path, checkpoints)
    resumed, whole = weights(tmp_path), weights(whole_run)
    assert resumed.keys() == whole.keys()
    assert all(torch.equal(resumed[name], whole[name]) for name in whole)


def test_resuming_starts_from_the_checkpoint(whole_run: Path, checkpoints: Path, tmp_path: Path) -> None:
    """A checkpoint whose weights were changed leads elsewhere: nothing is trained again from the beginning."""
    changed = tmp_path / "checkpoints"
    shutil.copytree(checkpoints, changed)
    state = torch.load(changed / "last.pt", weights_only=True)
    state["model"]["model.norm.weight"].fill_(0.5)
    torch.save(state, changed / "last.pt")
    train.train(TINY, tmp_path / "out", changed)
    assert not torch.equal(weights(tmp_path / "out")["model.norm.weight"], weights(whole_run)["model.norm.weight"])


def test_the_export_is_a_hugging_face_folder(whole_run: Path) -> None:
    """transformers loads model and tokenizer from it, and generation ends at the end of a turn."""
    model = AutoModelForCausalLM.from_pretrained(whole_run)
    tokenizer = AutoTokenizer.from_pretrained(whole_run)
    assert model.config.model_type == "qwen3"
    assert model.config.vocab_size == len(tokenizer)
    assert model.generation_config.eos_token_id == tokenizer.eos_token_id == model.config.eos_token_id


def test_the_committed_model_is_small_enough(pocket: Path) -> None:
    """The model has one to three million parameters, in at most ten megabytes of files."""
    model = AutoModelForCausalLM.from_pretrained(pocket)
    assert 1_000_000 <= sum(p.numel() for p in model.parameters()) <= 3_000_000
    assert sum(f.stat().st_size for f in pocket.iterdir()) <= 10_000_000


def test_finished_weights_can_be_trained_further(whole_run: Path, tmp_path: Path) -> None:
    """With their tokenizer, at half the rates and on other conversations."""
    further = TINY.further()
    assert (further.matrix_learning_rate, further.start_share) == (TINY.matrix_learning_rate / 2, 0.0)
    assert further.seed != TINY.seed
    train.train(further, tmp_path / "second", tmp_path / "more", begun=whole_run)
    first, second = whole_run, tmp_path / "second"
    assert (first / "tokenizer.json").read_bytes() == (second / "tokenizer.json").read_bytes()
    assert (first / "model.safetensors").read_bytes() != (second / "model.safetensors").read_bytes()


def test_a_training_from_nothing_makes_its_tokenizer(
    tmp_path: Path, pocket_tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its seed, beside its checkpoints, so that one that goes on has the same; `tokenizer.build` takes minutes."""
    built: list[tuple[Path, int]] = []

    def build(folder: Path, *, seed: int) -> Any:
        built.append((folder, seed))
        return pocket_tokenizer

    monkeypatch.setattr(tokenizer, "build", build)
    train.train(TINY, tmp_path / "out", tmp_path / "checkpoints")
    assert built == [(tmp_path / "checkpoints" / "tokenizer", TINY.seed)]
    assert AutoTokenizer.from_pretrained(tmp_path / "out").get_vocab() == pocket_tokenizer.get_vocab()
