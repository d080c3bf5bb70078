"""The first tokens of a guided teacher's answers (`engine.training.sdpo.guided`).

A student that is taught a guided first token goes on from it by itself. An answer of the teacher that begins otherwise
shows it nothing of what comes then, so the teacher's answers begin as the target does. Owns the base model's states
behind the prompts read last: topics come back in lesson after lesson, and without a note they are the same prompts.
"""

from collections import OrderedDict
from collections.abc import Sequence

import torch
from torch import Tensor

from engine.sample import Sample
from engine.training import sdpo
from engine.training.model import TrainingModel
from engine.training.scoring import hidden_states

KEPT = 4096  # states, the size of one token's each
_UNREAD = [0]  # the response behind a prompt: it is predicted, not read


class Openings:
    """Says how answers of a guided teacher begin."""

    def __init__(self, model: TrainingModel) -> None:
        """Begin with nothing read."""
        self._model = model
        self._states: OrderedDict[tuple[int, ...], Tensor] = OrderedDict()  # axis [H]

    def first_tokens(
        self, prompts: Sequence[tuple[list[int], list[int]]], scale: float, temperature: float, seed: int
    ) -> list[int]:
        """Return the first token of an answer to each pair of prompts, the teacher's and the plain one.

        It is drawn at `temperature` (0: the likeliest) from the base model under the teacher's prompt, guided by
        `scale` away from the base model under the plain one (`engine.sample.Sample.plain_ids`).
        """
        sides = zip(*prompts, strict=True)
        teacher_NV, base_NV = (self._logprobs([tuple(prompt) for prompt in side]) for side in sides)
        guided_NV = sdpo.guided(teacher_NV, base_NV, scale).cpu()
        if not temperature:
            return guided_NV.argmax(-1).tolist()  # type: ignore[no-any-return]
        generator = torch.Generator().manual_seed(seed)
        drawn_N1 = torch.multinomial((guided_NV / temperature).softmax(-1), 1, generator=generator)
        return drawn_N1.squeeze(-1).tolist()  # type: ignore[no-any-return]

    def _logprobs(self, prompts: Sequence[tuple[int, ...]]) -> Tensor:
        self._read([*{prompt for prompt in prompts if prompt not in self._states}])
        for prompt in prompts:
            self._states.move_to_end(prompt)
        with torch.no_grad():
            logits: Tensor = self._model.logits(torch.stack([self._states[prompt] for prompt in prompts]))
        while len(self._states) > KEPT:
            self._states.popitem(last=False)
        return logits.float().log_softmax(-1)

    def _read(self, prompts: Sequence[tuple[int, ...]]) -> None:
        samples = [Sample("counterfactual", [*prompt], [*prompt], _UNREAD) for prompt in sorted(prompts)]
        states = hidden_states(self._model, samples, "student", range(len(samples)), None)
        self._states |= {tuple(samples[i].prompt("student")): state[0].clone() for i, state in states.items()}
