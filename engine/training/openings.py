"""The first tokens of a guided teacher's answers (`engine.training.sdpo.guided`).

A student that is taught a guided first token goes on from it by itself. An answer of the teacher that begins otherwise
shows it nothing of what comes then, so the teacher's answers begin as the target does.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.sample import Sample
from engine.training import sdpo
from engine.training.base_states import BaseStates

_UNREAD = [0]  # the response behind a prompt: it is predicted, not read


def first_tokens(
    base: BaseStates,
    prompts: Sequence[tuple[list[int], list[int]]],
    scale: float,
    temperature: float,
    seed: int,
    *,
    guides_unsure: bool,
) -> list[int]:
    """Return the first token of an answer to each pair of prompts, the teacher's and the plain one.

    It is drawn at `temperature` (0: the likeliest) from the base model under the teacher's prompt, guided by `scale`
    away from the base model under the plain one (`engine.sample.Sample.plain_ids`), with `guides_unsure`
    false only where that makes it surer.
    """
    sides = zip(*prompts, strict=True)
    teacher_NV, base_NV = (_logprobs(base, side) for side in sides)
    said_NV = sdpo.guided(teacher_NV, base_NV, scale)
    if not guides_unsure:
        said_NV = torch.where(sdpo.is_surer(said_NV, teacher_NV).unsqueeze(-1), said_NV, teacher_NV)
    said_NV = said_NV.cpu()
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
