"""One update inside the worker: teacher pass, optimizer steps, final measurement, in pieces of one micro-batch.

Owns the samples, the teacher's targets, the optimizer and the LoRA slot of one update. `advance` works piece by piece
until its time is used up, so that the caller decides how long decoding waits. Invariants: the optimizer is fresh
unless a state is given, and takes the learning rate of the request; the teacher never carries a gradient; a value
that is not a number ends the update and marks it not finite. What is measured before the first step is measured on
the whole parent; the first step then goes on from a share of it (shrink and perturb, Ash and Adams, arXiv
1910.08475), because the damage that many updates do in passing would never be repaired.

Loss of a step, over its samples i with response positions t and coefficients c_i (`engine.training.minibatches`):

    L = sum_i c_i mean_t [ w_it D(p_it, q_it) ] / sum_i c_i

with D the divergence of `engine.training.sdpo` and w the truncated importance weight of the stored tokens. Where set,
KL of the student to its parent and to the base on the student's own prompts is added, weighted alike, without anchors.
"""

import copy
import math
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Literal

import torch
from torch import Tensor

from engine.config import LearnConfig
from engine.sample import Context, Sample
from engine.training import sdpo
from engine.training.adapter_tensors import AdapterTensors
from engine.training.batching import Batch, check_samples, plan_batches, row_chunks
from engine.training.lora_slot import LoraSlot
from engine.training.measuring import Measured, PositionMetrics
from engine.training.minibatches import MiniBatches, StudentBatch
from engine.training.model import TrainingModel, open_slot
from engine.training.teachers import Teachers

OptimizerState = dict[str, Any]
Phase = Literal["teacher", "steps", "final", "finished"]


class TrainingUpdate:
    """The state of one update between two calls into the worker."""

    def __init__(
        self,
        model: TrainingModel,
        learn: LearnConfig,
        samples: list[Sample],
        parent: AdapterTensors | None,
        optimizer_state: OptimizerState | None = None,
        teacher: TrainingModel | None = None,
    ) -> None:
        """Start an update. `parent` None means a fresh adapter; `optimizer_state` is the state that made the parent.

        `teacher` is the "external" one. Raises ValueError on unusable samples, or if it is wanted and None.
        """
        check_samples(samples, learn)
        self.model = model
        self.learn = learn
        self.samples = samples
        self.measured = Measured()
        self.phase: Phase = "teacher"  # of the last piece
        self.slot = open_slot(model, learn, parent)
        self._has_parent = parent is not None
        self._parent_flat = self.slot.flat.detach().clone()
        self._optimizer = _optimizer(self.slot, learn, optimizer_state)
        self._teachers = Teachers(model, learn, samples, self.slot, teacher)
        self._own_behaviour: dict[int, Tensor] = {}  # trainer's log-probabilities if the stored prompt differs
        self._student = MiniBatches(samples, learn, model.device)
        self._held_out = self._plan((i for i, s in enumerate(samples) if s.is_held_out), "student")
        self._metrics = PositionMetrics(samples)
        self._divergence_S = torch.zeros(len(samples), device=model.device)  # summed over positions
        self._divergences: list[Tensor] = []  # of one step: each position that is not an anchor's
        self._is_agreed = False
        self._pieces = self._work()

    @property
    def is_done(self) -> bool:
        """Return True if the update has ended."""
        return self.phase == "finished"

    @property
    def update_norm(self) -> float:
        """Frobenius norm of the change of all LoRA values."""
        return float((self.slot.flat.detach() - self._parent_flat).norm())

    @property
    def value_change(self) -> float:
        """Root mean square of the change of the LoRA values."""
        return self.update_norm / math.sqrt(self.slot.flat.numel())

    @property
    def optimizer_state(self) -> OptimizerState:
        """The optimizer's state, for an update that goes on with it (`learn.keeps_optimizer`)."""
        return copy.deepcopy(self._optimizer.state_dict())

    def advance(self, budget_s: float) -> None:
        """Work until one more piece would probably go past `budget_s`; do at least one."""
        started, longest_s = time.perf_counter(), 0.0
        while not self.is_done:
            longest_s = max(longest_s, self._one_piece())
            if time.perf_counter() - started + longest_s > budget_s:
                return

    def _one_piece(self) -> float:
        started = time.perf_counter()
        self.phase = next(self._pieces, "finished")
        elapsed_s = time.perf_counter() - started
        if not self.is_done:
            self.measured.phases_ms[self.phase] = self.measured.phases_ms.get(self.phase, 0.0) + elapsed_s * 1e3
        return elapsed_s

    # -- the pieces, in order ----------------------------------------------------------------------------------------

    def _work(self) -> Iterator[Phase]:
        yield from self._asked(self._teachers.ask(self._student.indices))
        yield from self._behaviour_pass()
        yield from self._measure_held_out()
        if not self.learn.whole_first_step:
            yield from self._measure_before()
        for batches in islice(self._student.steps(), self.learn.steps):
            yield from self._asked(self._teachers.ask_again({i for student in batches for i in student.batch.samples}))
            yield from self._step(batches)
            if self._is_over():
                break
        yield from self._final_pass()

    def _asked(self, forward_passes: Iterator[None]) -> Iterator[Phase]:
        for _ in forward_passes:
            yield "teacher"

    def _behaviour_pass(self) -> Iterator[Phase]:
        wanted = (i for i, s in enumerate(self.samples) if s.has_own_behaviour_prompt)
        for batch in self._plan(wanted, "behaviour"):
            hidden = self._hidden(batch, self.slot)
            chunks = row_chunks(len(hidden), self.model.vocab_size)
            chosen = torch.cat([self._sampled_logprobs(batch, hidden, chunk) for chunk in chunks])
            self._own_behaviour |= {i: chosen[batch.owners_N == i] for i in batch.samples}
            yield "teacher"

    def _sampled_logprobs(self, batch: Batch, hidden: Tensor, chunk: slice) -> Tensor:
        """Return the log-probabilities of a chunk's tokens at the temperature that each was sampled at."""
        temperature_S = torch.tensor([s.temperature for s in self.samples], device=self.model.device)
        with torch.no_grad():
            logprobs = self.model.logits(hidden[chunk]).log_softmax(-1)
            tempered = sdpo.at_temperature(logprobs, temperature_S[batch.owners_N[chunk]])
            return sdpo.token_logprobs(tempered, batch.token_ids_N[chunk])

    def _measure_held_out(self) -> Iterator[Phase]:
        """Measure the version before on samples that are not trained."""
        for batch in self._held_out:
            for tokens, logprobs, teacher, chunk in self._pairs(batch):
                self._metrics.before(
                    batch.owners_N[chunk], tokens, logprobs, teacher, sdpo.forward_kl(logprobs, teacher)
                )
            yield "teacher"

    def _measure_before(self) -> Iterator[Phase]:
        """Measure the version before on what is trained; a fresh adapter's states are the base model's."""
        for student in self._student.all:
            known = None if self._has_parent else self._teachers.base_states(student.batch)
            for _, logprobs, teacher, chunk in self._pairs(student.batch, known):
                divergence = self._divergence(logprobs, teacher)
                self._divergence_S.index_add_(0, student.batch.owners_N[chunk], divergence)
                kl = self._forward_kl(logprobs, teacher, divergence)
                self._measure_first(student, chunk, logprobs, teacher, kl)
            yield "teacher"
        self._note_before()

    def _step(self, batches: list[StudentBatch]) -> Iterator[Phase]:
        self.slot.grad.zero_()
        self._divergence_S.zero_()
        self._divergences.clear()
        loss = 0.0
        for student in batches:
            loss += float(self._forward_backward(student))
            yield "steps"
        self._note(loss)
        if not self._is_over():
            self._apply_gradient()
        yield "steps"

    def _final_pass(self) -> Iterator[Phase]:
        if not self.measured.is_finite or not self.measured.steps:
            self.measured.divergence_after = self.measured.divergence_before
            return
        self._divergence_S.zero_()
        for batch in (*self._held_out, *(student.batch for student in self._student.all)):
            self._measure(batch)
            yield "final"
        self.measured.divergence_after = self._mean_divergence(self._taught())
        anchors = [i for i, s in enumerate(self.samples) if s.is_anchor]
        self.measured.anchor_divergence_after = self._mean_divergence(anchors) if anchors else None
        self.measured.figures = self._metrics.figures()

    # -- one step ----------------------------------------------------------------------------------------------------

    def _forward_backward(self, student: StudentBatch) -> Tensor:
        """Add this micro-batch's gradient. Return its part of the loss, detached.

        The vocabulary is projected in chunks, each with its own backward into the hidden states, so that logits of
        a large vocabulary never exist all at once.
        """
        with torch.enable_grad():
            hidden = self.model.hidden(self.slot, student.batch)
            leaf = hidden.detach().requires_grad_()
            loss = torch.zeros((), device=leaf.device)
            for chunk in row_chunks(len(leaf), self.model.vocab_size):
                part = self._chunk_loss(student, leaf[chunk], chunk)
                part.backward()
                loss += part.detach()
            hidden.backward(leaf.grad)
        return loss

    def _chunk_loss(self, student: StudentBatch, hidden: Tensor, chunk: slice) -> Tensor:
        logprobs = self.model.logits(hidden).log_softmax(-1)
        teacher = self._kept("teacher", student, chunk)
        tokens = student.batch.token_ids_N[chunk]
        divergence = self._divergence(logprobs, teacher)
        self._divergence_S.index_add_(0, student.batch.owners_N[chunk], divergence.detach())
        self._divergences.append(divergence.detach()[student.kl_weights_N[chunk] > 0])
        if self.measured.divergence_before is None:
            kl = self._forward_kl(logprobs, teacher, divergence)
            self._measure_first(student, chunk, logprobs.detach(), teacher, kl.detach())
        per_token = self._per_token(divergence, logprobs, teacher, tokens)
        loss = (per_token * student.importance_N[chunk] * student.weights_N[chunk]).sum()
        return loss + self._kl_penalty(student, logprobs, chunk)

    def _per_token(self, divergence: Tensor, logprobs: Tensor, teacher: Tensor, tokens: Tensor) -> Tensor:
        """Return the value to differentiate: the divergence itself, or an estimator of it."""
        if self.learn.divergence == "sampled_token":
            return sdpo.sampled_token(sdpo.token_logprobs(logprobs, tokens), sdpo.token_logprobs(teacher, tokens))
        if self.learn.divergence == "hard_label":
            return sdpo.hard_label(logprobs, teacher)
        return divergence

    def _kl_penalty(self, student: StudentBatch, logprobs: Tensor, chunk: slice) -> Tensor | float:
        penalty: Tensor | float = 0.0
        for name, weight in (("parent", self.learn.kl_to_parent_weight), ("base", self.learn.kl_to_base_weight)):
            if weight:
                kl = sdpo.reverse_kl(logprobs, self._kept(name, student, chunk))
                penalty = penalty + weight * (kl * student.kl_weights_N[chunk]).sum()
        return penalty

    def _measure_first(
        self, student: StudentBatch, chunk: slice, logprobs: Tensor, teacher: Tensor, kl: Tensor
    ) -> None:
        """Compute the importance weights of these positions and the correction's heat, before anything is trained."""
        tokens = student.batch.token_ids_N[chunk]
        self._metrics.before(student.batch.owners_N[chunk], tokens, logprobs, teacher, kl)
        chosen = sdpo.token_logprobs(logprobs, tokens)
        at_sampling = sdpo.token_logprobs(sdpo.at_temperature(logprobs, student.temperature_N[chunk]), tokens)
        self._student.weigh(student, chunk, at_sampling, self._own_behaviour)
        heat = sdpo.token_logprobs(teacher, tokens) - chosen
        is_corrected = student.batch.owners_N[chunk] == self._corrected
        pairs = zip(tokens[is_corrected].tolist(), heat[is_corrected].tolist(), strict=True)
        self.measured.heat.extend([float(token), value] for token, value in pairs)

    def _note(self, loss: float) -> None:
        self.measured.losses.append(loss)
        if self.measured.divergence_before is None:
            self._note_before()
        worst = float(torch.cat(self._divergences).quantile(self.learn.stop_quantile))
        self.measured.agreement.append(worst)
        self._is_agreed = worst < self.learn.stop_below
        self.measured.is_finite = math.isfinite(loss)

    def _note_before(self) -> None:
        self.measured.divergence_before = self._mean_divergence(self._taught())
        self.measured.importance = self._student.importance_summary()

    def _apply_gradient(self) -> None:
        """Clip, step and move the average. A gradient or weight that is not a number ends the update."""
        grad = self.slot.grad
        norm = float(grad.norm())
        if not math.isfinite(norm):
            self.measured.is_finite = False
            return
        grad.mul_(min(1.0, self.learn.max_grad_norm / (norm + 1e-6)))
        if self._has_parent and self.measured.steps == 0:
            self.slot.fade(self.learn.parent_share)
        for group in self._optimizer.param_groups:
            group["lr"] = self.learn.learning_rate_at(self.measured.steps, has_parent=self._has_parent)
        self._optimizer.step()
        self.measured.steps += 1
        self.measured.is_finite = bool(torch.isfinite(self.slot.flat).all())
        self._teachers.follow()

    def _measure(self, batch: Batch) -> None:
        for tokens, logprobs, teacher, chunk in self._pairs(batch):
            divergence = self._divergence(logprobs, teacher)
            self._divergence_S.index_add_(0, batch.owners_N[chunk], divergence)
            self._metrics.after(tokens, logprobs, teacher, self._forward_kl(logprobs, teacher, divergence))

    def _pairs(self, batch: Batch, known_NH: Tensor | None = None) -> Iterator[tuple[Tensor, Tensor, Tensor, slice]]:
        """Yield tokens, student's and teacher's log-probabilities of a batch, chunk by chunk, without gradients.

        `known_NH`: the student's states, where they need not be computed.
        """
        hidden = self._hidden(batch, self.slot) if known_NH is None else known_NH
        rows = self._teachers.rows("teacher", batch)
        for chunk in row_chunks(len(hidden), self.model.vocab_size):
            with torch.no_grad():
                logprobs = self.model.logits(hidden[chunk]).log_softmax(-1)
                teacher = self._teachers.logprobs("teacher", rows, batch, chunk)
            yield batch.token_ids_N[chunk], logprobs, teacher, chunk

    # -- small parts -------------------------------------------------------------------------------------------------

    def _hidden(self, batch: Batch, slot: LoraSlot | None) -> Tensor:
        with torch.no_grad():
            return self.model.hidden(slot, batch)

    def _plan(self, indices: Iterable[int], context: Context) -> list[Batch]:
        return plan_batches(self.samples, indices, context, self.learn.micro_batch_tokens, self.model.device)

    def _taught(self) -> list[int]:
        return [i for i, s in enumerate(self.samples) if s.is_taught]

    def _kept(self, name: str, student: StudentBatch, chunk: slice) -> Tensor:
        if name not in student.rows:
            student.rows[name] = self._teachers.rows(name, student.batch)
        return self._teachers.logprobs(name, student.rows[name], student.batch, chunk)

    def _divergence(self, logprobs: Tensor, teacher: Tensor) -> Tensor:
        learn = self.learn
        return sdpo.divergence(
            logprobs,
            teacher,
            learn.divergence,
            jsd_alpha=learn.jsd_alpha,
            top_k=learn.top_k,
            has_tail=learn.has_tail,
        )

    def _forward_kl(self, logprobs: Tensor, teacher: Tensor, divergence: Tensor) -> Tensor:
        """Return KL(q || p), which the configured divergence may already be."""
        is_it = self.learn.divergence in ("forward_kl", "hard_label") and self.learn.top_k is None
        return divergence if is_it else sdpo.forward_kl(logprobs, teacher)

    @property
    def _corrected(self) -> int:
        """The number of the sample whose heat is shown: the first correction, -1 without one."""
        return next((i for i, s in enumerate(self.samples) if s.kind == "correction"), -1)

    def _is_over(self) -> bool:
        return not self.measured.is_finite or self._is_agreed

    def _mean_divergence(self, samples: list[int]) -> float:
        """Return the mean divergence over these samples, in nats per response token."""
        return float(self._divergence_S[samples].sum()) / sum(len(self.samples[i].response_ids) for i in samples)


def _optimizer(slot: LoraSlot, learn: LearnConfig, state: OptimizerState | None) -> torch.optim.AdamW:
    """Return the optimizer of a slot's values, fresh unless a state is given."""
    made = torch.optim.AdamW(
        [slot.flat],
        lr=learn.learning_rate,
        betas=learn.adam_betas,
        weight_decay=learn.weight_decay,
        foreach=False,  # the fused and foreach kernels change values without telling the slot's revision
    )
    if state is not None:
        made.load_state_dict(copy.deepcopy(state))  # torch would go on in the very tensors that are kept
    return made
