"""The first tokens of a guided teacher's answers (`engine.training.sdpo.guided`).

A student that is taught a guided first token goes on from it by itself. An answer of the teacher that begins otherwise
shows it nothing of what comes then, so the teacher's answers begin as the target does. Owns the base model's states
behind the prompts read last: topics come back in lesson after lesson, and without a note they are the same prompts.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from engine.sample import Sample
from engine.training import sdpo
from engine.training.model import TrainingModel
from engine.training.scoring import hidden_states

KEPT_BYTES = 32 * 1024**2  # of states and their prompts
_UNREAD = [0]  # the response behind a prompt: it is predicted, not read


class Openings:
    """Says how answers of a guided teacher begin."""

    def __init__(self, model: TrainingModel) -> None:
        """Begin with nothing read."""
        self._model = model
        self._states: OrderedDict[bytes, Tensor] = OrderedDict()  # axis [H]; by the prompt's token ids, 4 bytes each
        self.num_bytes = 0  # kept

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
        keys = [np.asarray(prompt, np.int32).tobytes() for prompt in prompts]
        self._read({key: prompt for key, prompt in zip(keys, prompts, strict=True) if key not in self._states})
        for key in keys:
            self._states.move_to_end(key)
        with torch.no_grad():
            logits: Tensor = self._model.logits(torch.stack([self._states[key] for key in keys]))
        while self.num_bytes > KEPT_BYTES:
            self.num_bytes -= _size(*self._states.popitem(last=False))
        return logits.float().log_softmax(-1)

    def _read(self, prompts: Mapping[bytes, tuple[int, ...]]) -> None:
        samples = [Sample("counterfactual", [*prompt], [*prompt], _UNREAD) for prompt in sorted(prompts.values())]
        found = hidden_states(self._model, samples, "student", range(len(samples)), None)
        by_prompt = {tuple(samples[i].prompt("student")): state[0].clone() for i, state in found.items()}
        states = {key: by_prompt[prompt] for key, prompt in prompts.items()}
        self._states |= states
        self.num_bytes += sum(_size(key, state) for key, state in states.items())


def _size(key: bytes, state: Tensor) -> int:
    return len(key) + int(state.nbytes)
