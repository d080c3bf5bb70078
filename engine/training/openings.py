"""The first tokens of a guided teacher's answers (`engine.training.sdpo.guided`).

A student that is taught a guided first token goes on from it by itself. An answer of the teacher that begins otherwise
shows it nothing of what comes then, so the teacher's answers begin as the target does.
"""

from collections.abc import Sequence

import torch

from engine.sample import Sample
from engine.training import sdpo
from engine.training.model import TrainingModel
from engine.training.scoring import hidden_states

_UNREAD = [0]  # the response of a pair of prompts: it is predicted, not read


def first_tokens(
    model: TrainingModel, prompts: Sequence[tuple[list[int], list[int]]], scale: float, temperature: float, seed: int
) -> list[int]:
    """Return the first token of an answer to each pair of prompts, the teacher's and the student's.

    It is drawn at `temperature` (0: the likeliest) from the base model under the teacher's prompt, guided by `scale`
    away from the base model under the student's.
    """
    samples = [Sample("counterfactual", asked, seen, _UNREAD) for seen, asked in prompts]
    places = range(len(samples))
    sides = [hidden_states(model, samples, context, places, None) for context in ("teacher", "student")]
    with torch.no_grad():
        teacher_NV, base_NV = (
            model.logits(torch.cat([side[i] for i in places])).float().log_softmax(-1) for side in sides
        )
    guided_NV = sdpo.guided(teacher_NV, base_NV, scale).cpu()
    if not temperature:
        return guided_NV.argmax(-1).tolist()  # type: ignore[no-any-return]
    generator = torch.Generator().manual_seed(seed)
    drawn_N1 = torch.multinomial((guided_NV / temperature).softmax(-1), 1, generator=generator)
    return drawn_N1.squeeze(-1).tolist()  # type: ignore[no-any-return]
