"""The distributions a student is compared with: those of its teachers and of its references.

Owns the teachers' targets, the average that the "ema" teacher follows, and the base model's states under the student's
own prompts, which are a fresh student's own. Teachers that do not change are asked once, those that follow the student
before every step about its samples. Invariant: nothing from here carries a gradient.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from engine.config import LearnConfig
from engine.config.learning import OPENING_TOKENS
from engine.sample import Context, Sample
from engine.training import sdpo
from engine.training.batching import Batch, plan_batches
from engine.training.forced_ends import ForcedEnds
from engine.training.lora_slot import LoraSlot
from engine.training.model import TrainingModel
from engine.training.targets import targets_of


class Teachers:
    """The teachers of one update. Its generators pause after each forward pass."""

    def __init__(
        self,
        model: TrainingModel,
        learn: LearnConfig,
        samples: Sequence[Sample],
        slot: LoraSlot,
        external: TrainingModel | None,
    ) -> None:
        """Prepare for the samples of an update. Raise ValueError if the "external" teacher is wanted and None."""
        self._model = model
        self._learn = learn
        self._samples = samples
        self._slot = slot
        self._external = external
        self._targets = targets_of(model, samples, learn)
        self._ends = ForcedEnds(samples)
        self._average = slot.flat.detach().clone()
        self._base_states: dict[int, Tensor] = {}  # by sample, axes [R, H]
        if self._taught_by("external") and external is None:
            raise ValueError('no "external" teacher is loaded: set host.teacher_model')

    def ask(self, trained: Sequence[int]) -> Iterator[None]:
        """Ask those that do not change during the update: base model, parent adapter, another model."""
        yield from self._ask("teacher", "base", None)
        yield from self._guide()
        yield from self._ask("teacher", "current", self._slot)
        yield from self._ask_external()
        yield from self._ask("reference", "trust_region", None)
        for name, weight, slot in (
            ("base", self._learn.kl_to_base_weight, None),
            ("parent", self._learn.kl_to_parent_weight, self._slot),
        ):
            for batch in self._plan(trained if weight else (), "student"):
                self._targets[name].put_hidden(batch, self._hidden(batch, slot))
                yield

    def ask_again(self, samples: set[int]) -> Iterator[None]:
        """Ask those that follow the student about the samples of its next step."""
        for batch in self._plan(samples.intersection(self._taught_by("ema")), "teacher"):
            with self._slot.holding(self._average):
                self._targets["teacher"].put_hidden(batch, self._hidden(batch, self._slot))
            yield
        for batch in self._plan(samples.intersection(self._taught_by("trust_region")), "teacher"):
            self._mix_in_student(batch)
            yield

    def follow(self) -> None:
        """Move the average after a step of the student."""
        if self._taught_by("ema"):
            self._average.lerp_(self._slot.flat.detach(), self._learn.ema_rate)

    def base_states(self, batch: Batch) -> Tensor | None:
        """Return the base model's states at a student's positions, axes [N, H], or None if it was not asked for all."""
        if not all(i in self._base_states for i in batch.samples):
            return None
        return torch.cat([self._base_states[i] for i in batch.samples])

    def rows(self, name: str, batch: Batch) -> Tensor:
        """Return what is kept of a teacher or a reference at the positions of a batch."""
        return self._targets[name].rows(batch.samples)

    def logprobs(self, name: str, rows: Tensor, batch: Batch, chunk: slice) -> Tensor:
        """Return the log-probabilities of a chunk of those rows, axes [N, V]."""
        kept = self._targets[name].logprobs(rows[chunk])
        return self._ends.put(kept, batch, chunk) if name == "teacher" else kept

    # -- one kind of teacher each ------------------------------------------------------------------------------------

    def _ask(self, targets: str, mode: str, slot: LoraSlot | None) -> Iterator[None]:
        for batch in self._plan(self._taught_by(mode), "teacher"):
            hidden = self._hidden(batch, slot)
            self._targets[targets].put_hidden(batch, hidden)
            if slot is None:
                self._keep_states(batch, hidden)
            yield

    def _guide(self) -> Iterator[None]:
        """Guide the base teacher where what is taught is decided: how it begins, and whether it ends.

        At the end it is led away from the base model without notes and feedback, at the beginning from the one with a
        note that asks for nothing: a note's frame alone makes a small model begin otherwise. With `guides_unsure` false
        beginnings are guided only if that makes the teacher surer in the mean of them (ADR 24).
        """
        is_guided = self._learn.guidance_scale != 1
        taught = [i for i in self._taught_by("base") if is_guided and self._samples[i].is_taught]
        for batch in self._plan(taught, "student"):
            hidden = self._hidden(batch, None)
            self._targets["teacher"].guide_last(batch, hidden)
            self._base_states |= _by_sample(batch, hidden)
            yield
        begun = {i: _begun(self._samples[i]) for i in taught if len(self._samples[i].response_ids) > 1}
        openings: list[tuple[Batch, Tensor]] = []
        for batch in plan_batches(begun, begun, "plain", self._learn.micro_batch_tokens, self._model.device):
            openings.append((batch, self._hidden(batch, None)))
            yield
        targets = self._targets["teacher"]
        if self._learn.guides_unsure or sum(targets.surer_by(*opening) for opening in openings) > 0:
            for opening in openings:
                targets.guide_openings(*opening)

    def _ask_external(self) -> Iterator[None]:
        """Ask another model with the same tokens for logits: its hidden states mean nothing here."""
        for batch in self._plan(self._taught_by("external"), "teacher"):
            assert self._external is not None  # the constructor has looked
            with torch.no_grad():
                logits = self._external.logits(self._external.hidden(None, batch))
            self._targets["teacher"].put_logits(batch, logits)
            yield

    def _mix_in_student(self, batch: Batch) -> None:
        reference = self._targets["reference"]
        student = self._model.logits(self._hidden(batch, self._slot))
        reference_logprobs = reference.logprobs(reference.rows(batch.samples))  # logits up to a constant per row
        mixed = sdpo.mix_logits(reference_logprobs, student, self._learn.trust_region_mix)
        self._targets["teacher"].put_logits(batch, mixed)

    def _keep_states(self, batch: Batch, hidden_NH: Tensor) -> None:
        """Keep the states of samples whose teacher reads what the student reads."""
        found = _by_sample(batch, hidden_NH)
        same = [i for i in batch.samples if self._samples[i].prompt("teacher") == self._samples[i].prompt("student")]
        self._base_states |= {i: found[i] for i in same}

    def _taught_by(self, mode: str) -> list[int]:
        return [i for i, s in enumerate(self._samples) if s.teacher_mode(self._learn) == mode]

    def _hidden(self, batch: Batch, slot: LoraSlot | None) -> Tensor:
        with torch.no_grad():
            return self._model.hidden(slot, batch)

    def _plan(self, indices: Iterable[int], context: Context) -> list[Batch]:
        return plan_batches(self._samples, indices, context, self._learn.micro_batch_tokens, self._model.device)


def _by_sample(batch: Batch, values_NH: Tensor) -> dict[int, Tensor]:
    return {i: values_NH[batch.owners_N == i] for i in batch.samples}


def _begun(sample: Sample) -> Sample:
    """Return a sample with the beginning of its answer alone, never with its last token."""
    return replace(sample, response_ids=sample.response_ids[:-1][:OPENING_TOKENS])
