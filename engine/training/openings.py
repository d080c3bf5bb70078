"""The first tokens of a guided teacher's answers (`engine.training.sdpo.guided`).

A student that is taught a guided first token goes on from it by itself. An answer of the teacher that begins otherwise
shows it nothing of what comes then, so the teacher's answers begin as the target does.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from engine.sample import Sample
from engine.training import sdpo
from engine.training.base_states import BaseStates

_UNREAD = [0]  # the response behind a prompt: it is predicted, not read


class FirstToken(NamedTuple):
    """The first token of an answer, drawn of the guided teacher and of the teacher as it is."""

    guided: int
    own: int
    surer_by: float  # nats that guidance takes from the teacher's entropy


def first_tokens(
    base: BaseStates,
    prompts: Sequence[tuple[list[int], list[int]]],
    scale: float,
    temperature: float,
    seed: int,
) -> list[FirstToken]:
    """Return the first token of an answer to each pair of prompts, the teacher's and the plain one.

    It is drawn at `temperature` (0: the likeliest) from the base model under the teacher's prompt, and from the same
    guided by `scale` away from the base model under the plain one (`engine.sample.Sample.plain_ids`).
    """
    sides = zip(*prompts, strict=True)
    teacher_NV, base_NV = (_logprobs(base, side) for side in sides)
    guided_NV = sdpo.guided(teacher_NV, base_NV, scale)
    surer_by = sdpo.surer_by(guided_NV, teacher_NV).tolist()
    drawn = (_drawn(said_NV.cpu(), temperature, seed) for said_NV in (guided_NV, teacher_NV))
    return [FirstToken(*found) for found in zip(*drawn, surer_by, strict=True)]


def _drawn(said_NV: Tensor, temperature: float, seed: int) -> list[int]:
    if not temperature:
        return said_NV.argmax(-1).tolist()  # type: ignore[no-any-return]
    generator = torch.Generator().manual_seed(seed)
    drawn_N1 = torch.multinomial((said_NV / temperature).softmax(-1), 1, generator=generator)
    return drawn_N1.squeeze(-1).tolist()  # type: ignore[no-any-return]


def _logprobs(base: BaseStates, prompts: Sequence[list[int]]) -> Tensor:
    samples = [Sample("counterfactual", prompt, prompt, _UNREAD) for prompt in prompts]
    states = base.of(samples, "student", range(len(samples)))
    with torch.no_grad():
        logits: Tensor = base.model.logits(torch.cat([states[i] for i in range(len(samples))]))
    return logits.float().log_softmax(-1)
