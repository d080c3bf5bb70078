"""Pooled hidden states of texts: what the frozen base model makes of them, at several depths.

For each text the mean over the tokens of a span and the state of the last token, behind each layer that is asked for.
Invariants: no adapter is active and no gradient is kept; padding is on the right, where a causal model cannot see it.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.sample import Passage
from engine.training.model import TrainingModel

BUDGET_TOKENS = 512  # of one forward pass, padding included; one passage always fits


def pooled_states(model: TrainingModel, passages: Sequence[Passage], depths: Sequence[float]) -> Tensor:
    """Return the passages' states, float32 on the CPU, axes [N, depths, 2 H]: mean over the span, then last token.

    `depths`: shares of the model's layers, 0 to 1.
    """
    layers = [max(1, round(model.num_layers * depth)) for depth in depths]
    found: dict[int, Tensor] = {}
    for group in _groups(passages):
        width = max(len(passages[i].token_ids) for i in group)
        ids = [passages[i].token_ids + [0] * (width - len(passages[i].token_ids)) for i in group]
        with torch.no_grad():
            states = model.layer_states(torch.tensor(ids, device=model.device), layers)
        for row, i in enumerate(group):
            found[i] = torch.stack([_pooled(state[row], passages[i]) for state in states]).float().cpu()
    return torch.stack([found[i] for i in range(len(passages))])


def _pooled(states_LH: Tensor, passage: Passage) -> Tensor:
    span = states_LH[passage.first : passage.end]
    return torch.cat([span.mean(0), states_LH[len(passage.token_ids) - 1]])


def _groups(passages: Sequence[Passage]) -> list[list[int]]:
    """Return the numbers of passages of similar length, grouped within BUDGET_TOKENS."""
    groups: list[list[int]] = []
    for i in sorted(range(len(passages)), key=lambda i: len(passages[i].token_ids)):
        if groups and (len(groups[-1]) + 1) * len(passages[i].token_ids) <= BUDGET_TOKENS:
            groups[-1].append(i)
        else:
            groups.append([i])
    return groups
