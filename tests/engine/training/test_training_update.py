"""engine.training.training_update: one update, its teachers, its pieces and its report."""

from dataclasses import replace
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from engine.config import LearnConfig
from engine.training import batching, training_update
from engine.training.adapter_tensors import AdapterTensors
from engine.training.batching import plan_batches
from engine.training.lean_model import LeanModel
from engine.training.model import load_base
from engine.training.scoring import score_samples
from engine.training.training_update import TrainingUpdate
from tests.engine.updates_of import correction_with_company, is_same, run_update, sample
from tests.tiny_model import save_tiny_model

LOSSES = ("forward_kl", "reverse_kl", "jsd", "sampled_token")
TEACHERS = ("base", "current", "ema", "trust_region")


@pytest.fixture(scope="module")
def model(tiny_model: Path) -> LeanModel:
    """Return the tiny model's training forward."""
    return LeanModel(load_base(tiny_model), "tiny")


def divergence_of(model: LeanModel, samples: list[Any], adapter: AdapterTensors | None) -> float:
    """Return the mean forward KL, teacher against student, of some samples."""
    scores = score_samples(model, samples, adapter)
    return sum(score["divergence"] for score in scores) / len(scores)


def test_an_update_moves_the_student_towards_the_teacher(model: LeanModel) -> None:
    """The reported divergence falls, and so does the one measured afterwards with the exported adapter."""
    samples = correction_with_company()
    run = run_update(model, samples)
    assert run.measured.steps == LearnConfig().steps
    assert run.measured.divergence_after < 0.7 * run.measured.divergence_before  # type: ignore[operator]
    assert divergence_of(model, samples[:3], run.slot.export()) < divergence_of(model, samples[:3], None)
    assert run.update_norm > 0
    assert run.value_change == pytest.approx(run.update_norm / run.slot.flat.numel() ** 0.5)


def test_a_guided_lesson_goes_further_than_the_teacher(model: LeanModel) -> None:
    """With guidance the student says what the teacher was moved to say more surely."""
    samples = correction_with_company()

    def score(adapter: AdapterTensors | None) -> torch.Tensor:
        return torch.tensor(score_samples(model, samples[:1], adapter)[0]["student_logprobs"])

    moved, before = [], []
    for scale in (1.0, 2.0):
        run = run_update(model, samples, guidance_scale=scale, steps=12)
        heat = torch.tensor([value for _, value in run.measured.heat])
        moved.append(float(((score(run.slot.export()) - score(None)) * heat.sign()).sum()))
        before.append(run.measured.divergence_before)
    assert before[1] > before[0]
    assert moved[1] > moved[0] > 0


@pytest.mark.parametrize("divergence", [kind for kind in LOSSES if kind != "sampled_token"])
@pytest.mark.parametrize("top_k", [None, 20])
@pytest.mark.parametrize("teacher", TEACHERS)
def test_every_loss_with_every_teacher_learns(
    model: LeanModel, divergence: Any, top_k: int | None, teacher: Any
) -> None:
    """The configured divergence falls."""
    run = run_update(model, correction_with_company(), divergence=divergence, top_k=top_k, teacher=teacher, steps=8)
    assert run.measured.is_finite
    assert run.measured.divergence_after < run.measured.divergence_before  # type: ignore[operator]


def test_the_sampled_token_estimator_lowers_what_the_teacher_dislikes(model: LeanModel) -> None:
    """Tokens with negative heat become less likely under the one-token estimate."""
    one = sample()
    run = run_update(model, [one], divergence="sampled_token", learning_rate=1e-3, steps=5)
    (before,), (after,) = (score_samples(model, [one], adapter) for adapter in (None, run.slot.export()))
    moved = torch.tensor(after["student_logprobs"]) - torch.tensor(before["student_logprobs"])
    heat = torch.tensor([value for _, value in run.measured.heat])
    assert float((moved * heat).sum()) > 0


def test_hard_labels_make_the_teachers_choice_likelier(model: LeanModel) -> None:
    """The loss of plain supervised fine-tuning falls."""
    losses = run_update(model, [sample()], divergence="hard_label", steps=6).measured.losses
    assert losses[-1] < 0.7 * losses[0]


def test_a_current_teacher_without_feedback_has_nothing_to_teach(model: LeanModel) -> None:
    """With the same context and weights the divergence and the heat are zero, and a threshold stops before any step."""
    parent = run_update(model, correction_with_company(), steps=3).slot.export()
    same = sample(teacher_ids=sample().student_ids)
    run = run_update(model, [same], parent, teacher="current", stop_below=1e-6)
    assert run.measured.divergence_before == pytest.approx(0.0, abs=1e-6)
    assert all(abs(value) < 1e-4 for _, value in run.measured.heat)
    assert run.measured.steps == 0
    assert run.update_norm == 0.0


def test_a_base_teacher_does_not_move_with_the_adapter(model: LeanModel) -> None:
    """The base teacher is scored without the adapter; with it on, this divergence would be zero."""
    parent = run_update(model, correction_with_company()).slot.export()
    same = sample(teacher_ids=sample().student_ids)
    run = TrainingUpdate(model, LearnConfig(), [same], parent)
    run.advance(1e9)
    assert run.measured.divergence_before > 0.01  # type: ignore[operator]


def test_the_learning_rate_of_the_request_is_the_one_used(model: LeanModel) -> None:
    """A ten times smaller learning rate makes the first step ten times smaller, and no state is carried over."""
    run_update(model, correction_with_company(), learning_rate=0.1, steps=3)
    small, large = (run_update(model, [sample()], learning_rate=rate, steps=1).update_norm for rate in (1e-4, 1e-3))
    assert large == pytest.approx(10 * small, rel=1e-2)


def test_a_parent_fades_as_the_first_step_is_taken(model: LeanModel) -> None:
    """The first step goes on from a share of the parent's B by the smaller rate, and A does not fade."""
    parent = run_update(model, correction_with_company(), steps=3).slot.export()
    run = run_update(model, [sample()], parent, steps=1, learning_rate=1e-3, parent_rate=0.1, parent_share=0.5)
    for name, values in run.slot.parameters.items():
        share = 0.5 if ".lora_B." in name else 1.0
        assert float((values - share * parent.tensors[name]).abs().max()) == pytest.approx(1e-4, rel=0.05)


def test_what_is_reported_of_before_is_the_whole_parents(model: LeanModel) -> None:
    """A lesson without anything new moves nothing, and the parent does not fade."""
    parent = run_update(model, correction_with_company(), steps=3).slot.export()
    runs = [run_update(model, correction_with_company(), parent, steps=1, parent_share=share) for share in (0.0, 1.0)]
    assert runs[0].measured.divergence_before == runs[1].measured.divergence_before


@pytest.mark.parametrize("has_parent", [False, True])
@pytest.mark.parametrize("guidance_scale", [1.0, 1.5])
def test_the_version_before_is_measured_alike_in_the_first_step_and_ahead_of_it(
    model: LeanModel, has_parent: bool, guidance_scale: float
) -> None:
    """Divergence, importance weights, heat and the gates' figures do not depend on where they were measured."""
    samples = [*correction_with_company(), sample("earlier", seed=9)]
    behaviour = [-1.0] * len(samples[0].response_ids)
    samples[0] = replace(samples[0], behaviour_logprobs=behaviour)
    parent = run_update(model, correction_with_company(), steps=3).slot.export() if has_parent else None
    found = []
    for whole in (True, False):
        learn = LearnConfig(steps=1, mini_batch_samples=2, guidance_scale=guidance_scale, whole_first_step=whole)
        run = TrainingUpdate(model, learn, samples, parent)
        run.advance(1e9)
        found.append(run.measured)
    whole, ahead = found
    assert ahead.divergence_before == pytest.approx(whole.divergence_before, rel=1e-5)
    assert ahead.importance == pytest.approx(whole.importance, rel=1e-4)
    assert ahead.importance["mean"] != 1
    assert torch.allclose(torch.tensor(ahead.heat), torch.tensor(whole.heat), atol=1e-5)
    assert ahead.figures["margin_before"] == pytest.approx(whole.figures["margin_before"], rel=1e-4)
    assert ahead.losses != pytest.approx(whole.losses, rel=1e-3)


def test_a_first_step_on_a_mini_batch_learns(model: LeanModel) -> None:
    """The divergence falls without a step over all samples."""
    run = run_update(model, correction_with_company(), whole_first_step=False, mini_batch_samples=2, steps=12)
    assert run.measured.steps == 12
    assert run.measured.divergence_after < 0.7 * run.measured.divergence_before  # type: ignore[operator]


def test_a_first_adam_step_has_the_size_of_the_learning_rate(model: LeanModel) -> None:
    """The first step of a fresh optimizer moves every value of B by about the learning rate."""
    run = run_update(model, [sample()], learning_rate=1e-3, steps=1)
    b = torch.cat([t.flatten() for name, t in run.slot.parameters.items() if ".lora_B." in name])
    assert float(b.abs().median()) == pytest.approx(1e-3, rel=0.05)


def test_an_update_can_go_on_with_the_optimizer_of_its_parent(model: LeanModel) -> None:
    """The moments of a given optimizer state change the first step."""
    first = run_update(model, correction_with_company(), steps=4)
    parent, state = first.slot.export(), first.optimizer_state
    learn = LearnConfig(steps=1, parent_share=1.0)
    ends = []
    for given in (None, None, state):
        run = TrainingUpdate(model, learn, correction_with_company(), parent, given)
        run.advance(1e9)
        ends.append(run.slot.flat.detach().clone())
    assert torch.equal(ends[0], ends[1])
    assert not torch.allclose(ends[0], ends[2])


def test_a_kept_optimizer_state_stays_as_it_is(model: LeanModel) -> None:
    """A second update that goes on with it begins where the first one did."""
    first = run_update(model, correction_with_company(), steps=4)
    parent, state = first.slot.export(), first.optimizer_state
    ends = []
    for _ in range(2):
        run = TrainingUpdate(model, LearnConfig(steps=2, parent_share=1.0), correction_with_company(), parent, state)
        run.advance(1e9)
        ends.append(run.slot.flat.detach().clone())
    assert torch.equal(*ends)


def test_the_end_of_sequence_token_gets_a_gradient(model: LeanModel) -> None:
    """A response of EOS alone is trained towards the teacher's opinion of ending."""
    only_eos = sample(response_ids=[2])
    run = run_update(model, [only_eos])
    assert run.measured.heat[0][0] == 2.0
    assert divergence_of(model, [only_eos], run.slot.export()) < divergence_of(model, [only_eos], None)


def test_a_sample_without_weight_changes_nothing(model: LeanModel) -> None:
    """Samples of weight zero add nothing to the loss."""
    alone = run_update(model, [sample()], steps=3)
    values = alone.slot.flat.detach().clone()
    with_masked = run_update(model, [sample(), sample("counterfactual", seed=5, weight=0.0)], steps=3)
    assert with_masked.measured.losses == pytest.approx(alone.measured.losses, rel=1e-4)
    assert is_same(with_masked, values)


def test_the_result_does_not_depend_on_how_it_was_cut(model: LeanModel) -> None:
    """Micro-batches, chunks of the vocabulary and pauses change the numbers only by rounding."""
    losses = []
    for tokens, elements in ((16, 1 << 25), (4096, 1 << 25), (4096, 5 * 413)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(batching, "CHUNK_ELEMENTS", elements)
            losses.append(run_update(model, correction_with_company(), micro_batch_tokens=tokens).measured.losses)
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)
    assert losses[2] == pytest.approx(losses[1], rel=1e-3)


def test_it_stops_when_teacher_and_student_agree(model: LeanModel) -> None:
    """An update ends before the first step whose divergence is below the threshold."""
    free = run_update(model, correction_with_company(), steps=20)
    early = run_update(model, correction_with_company(), steps=20, stop_below=0.5 * free.measured.agreement[0])
    assert 0 < early.measured.steps < 20
    assert early.measured.divergence_after <= 0.5 * early.measured.divergence_before  # type: ignore[operator]


def test_anchors_hold_the_student(model: LeanModel) -> None:
    """Anchors of a large weight keep their divergence from the base far smaller than without them."""
    samples = correction_with_company()
    free = run_update(model, samples[:3])
    drifted = divergence_of(model, samples[3:], free.slot.export())  # before the slot is used again
    held = run_update(model, samples, anchor_weight=10.0)
    assert divergence_of(model, samples[3:], held.slot.export()) < 0.3 * drifted
    assert held.measured.anchor_divergence_after is not None
    assert free.measured.anchor_divergence_after is None


def test_an_external_teacher_is_what_the_student_comes_to_say(
    model: LeanModel, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """An external teacher's distribution is the target, and anchors are still held to the base model."""
    folder = save_tiny_model(tmp_path_factory.mktemp("external"), num_layers=2, seed=1)
    other = LeanModel(load_base(folder), "other")
    samples = correction_with_company()
    base = run_update(model, samples)
    run = TrainingUpdate(model, LearnConfig(teacher="external"), samples, None, teacher=other)
    while not run.is_done:
        run.advance(0.01)
    assert run.measured.divergence_before != pytest.approx(base.measured.divergence_before, rel=0.01)
    assert run.measured.divergence_after < 0.9 * run.measured.divergence_before  # type: ignore[operator]
    with torch.no_grad():
        (batch,) = plan_batches(samples, [0], "teacher", 1024, model.device)
        wanted = other.logits(other.hidden(None, batch)).log_softmax(-1)
    kept = run._teachers.logprobs("teacher", run._teachers.rows("teacher", batch), batch, slice(None))
    assert torch.allclose(kept, wanted, atol=1e-5)
    assert base.measured.anchor_divergence_after is not None
    assert run.measured.anchor_divergence_after is not None


def test_the_same_model_as_external_teacher_teaches_the_same(model: LeanModel, tiny_model: Path) -> None:
    """A second copy of the base model as external teacher gives the same update as the base."""
    samples = correction_with_company()
    copy = LeanModel(load_base(tiny_model), "copy")
    run = TrainingUpdate(model, LearnConfig(teacher="external"), samples, None, teacher=copy)
    while not run.is_done:
        run.advance(0.01)
    external = run.slot.flat.detach().clone()
    assert is_same(run_update(model, samples), external)


def test_an_external_teacher_that_is_not_loaded_is_named(model: LeanModel) -> None:
    """The error names the missing setting."""
    with pytest.raises(ValueError, match=r"host\.teacher_model"):
        TrainingUpdate(model, LearnConfig(teacher="external"), correction_with_company(), None)


@pytest.mark.parametrize("name", ["kl_to_parent_weight", "kl_to_base_weight"])
def test_a_kl_term_holds_the_student_back(model: LeanModel, name: str) -> None:
    """A large KL weight keeps the student closer to its parent or to the base."""
    free, held = (run_update(model, correction_with_company(), **{name: weight}) for weight in (0.0, 5.0))
    assert held.measured.divergence_after > 1.2 * free.measured.divergence_after  # type: ignore[operator]


def test_the_importance_weight_compares_with_the_stored_log_probabilities(model: LeanModel) -> None:
    """A weight is 1 for the same weights, capped for ten nats less, and not reported without stored values."""
    one = sample()
    own = score_samples(model, [one], None)[0]["student_logprobs"]
    lower = [value - 10 for value in own]
    for stored, mean in ((own, 1.0), (lower, 2.0)):
        run = run_update(model, [sample(behaviour_logprobs=stored)], steps=1)
        assert run.measured.importance["mean"] == pytest.approx(mean, abs=1e-3)
    assert run_update(model, [one], steps=1).measured.importance == {}


def test_the_importance_weight_uses_the_stored_prompt_and_temperature(model: LeanModel) -> None:
    """Notes in the stored prompt alone do not change the importance weight."""
    stored_prompt = sample(seed=3).student_ids
    as_sampled = sample(student_ids=stored_prompt)
    cold = score_samples(model, [as_sampled], None)[0]["student_logprobs"]
    run = run_update(model, [sample(behaviour_logprobs=cold, behaviour_ids=stored_prompt)], steps=1)
    assert run.measured.importance["mean_abs_log"] == pytest.approx(0.0, abs=1e-4)
    other = run_update(model, [sample(behaviour_logprobs=cold, behaviour_ids=stored_prompt, temperature=0.5)], steps=1)
    assert other.measured.importance["mean_abs_log"] > 0.1


def test_the_heat_is_the_teachers_view_of_the_correction(model: LeanModel) -> None:
    """Heat has one pair per response token of the correction: its id and log p_teacher - log p_student."""
    samples = correction_with_company()
    run = run_update(model, samples, steps=1)
    score = score_samples(model, samples[:1], None)[0]
    assert [token for token, _ in run.measured.heat] == samples[0].response_ids
    expected = torch.tensor(score["teacher_logprobs"]) - torch.tensor(score["student_logprobs"])
    assert torch.allclose(torch.tensor([value for _, value in run.measured.heat]), expected, atol=1e-4)


@pytest.mark.parametrize(("width", "error"), [(0, 1e-3), (2, 0.03)])
def test_large_vocabularies_keep_less_and_learn_the_same(
    model: LeanModel, monkeypatch: pytest.MonkeyPatch, width: int, error: float
) -> None:
    """Log-probabilities that do not fit are kept at half precision, or projected again from hidden states."""
    samples = correction_with_company()
    kept = run_update(model, correction_with_company()).measured.losses
    positions = sum(len(sample.response_ids) for sample in samples)
    monkeypatch.setattr("engine.training.targets.KEPT_BYTES", width * positions * model.vocab_size)
    assert run_update(model, correction_with_company()).measured.losses == pytest.approx(kept, rel=error)


def test_an_update_goes_on_from_its_parent(model: LeanModel) -> None:
    """A second update starts from the first one's values and leaves them as they are."""
    first = run_update(model, correction_with_company()).slot.export()
    kept = {name: tensor.clone() for name, tensor in first.tensors.items()}
    second = run_update(model, correction_with_company(), first, steps=1)
    assert second.measured.divergence_before < 1.0
    assert second.measured.losses[0] < 0.7 * run_update(model, correction_with_company(), steps=1).measured.losses[0]
    assert all(torch.equal(tensor, kept[name]) for name, tensor in first.tensors.items())


@pytest.mark.parametrize("where", ["loss", "gradient", "weights"])
def test_a_value_that_is_not_a_number_ends_the_update(
    model: LeanModel, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """A value that is no number in loss, gradient or weights ends the update and marks it."""
    run = TrainingUpdate(model, LearnConfig(), [sample()], None)
    if where == "loss":
        monkeypatch.setattr(run, "_kl_penalty", lambda *_: torch.tensor(float("nan")))
    if where == "gradient":
        monkeypatch.setattr(run, "_note", lambda _loss: run.slot.grad.fill_(float("inf")))
    if where == "weights":
        monkeypatch.setattr(run._optimizer, "step", lambda: run.slot.flat.data.fill_(float("nan")))
    run.advance(1e9)
    assert run.is_done
    assert not run.measured.is_finite
    assert run.measured.steps <= 1


def test_it_works_in_pieces_no_longer_than_asked(model: LeanModel) -> None:
    """Each call without a budget does one micro-batch, and the phases come in order."""
    run = TrainingUpdate(model, LearnConfig(micro_batch_tokens=32, steps=2), correction_with_company(), None)
    phases, calls = [run.phase], 0
    while not run.is_done:
        run.advance(0.0)
        calls += 1
        if run.phase != phases[-1]:
            phases.append(run.phase)
    assert phases == ["teacher", "steps", "final", "finished"]
    assert calls > 15
    assert set(run.measured.phases_ms) == {"teacher", "steps", "final"}


def test_a_budget_is_kept_to_about_one_piece(model: LeanModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call takes hardly longer than its budget: each look at this clock takes a tick, and each piece has two."""
    tick_s, now_s = 0.01, [0.0]

    def read() -> float:
        """Return the time, a tick later each time."""
        now_s[0] += tick_s
        return now_s[0]

    run = TrainingUpdate(model, LearnConfig(steps=1000, micro_batch_tokens=64), correction_with_company(), None)
    monkeypatch.setattr(training_update, "time", SimpleNamespace(perf_counter=read))
    for budget_s in (0.05, 0.5):
        started_s = now_s[0]
        run.advance(budget_s)
        assert budget_s / 2 < now_s[0] - started_s <= budget_s + 3 * tick_s


def test_scoring_does_not_disturb_an_open_update(model: LeanModel) -> None:
    """Scoring during an update changes nothing, because it has a slot of its own."""
    plain = run_update(model, correction_with_company()).measured.losses
    run = TrainingUpdate(model, LearnConfig(), correction_with_company(), None)
    adapter = run.slot.export()
    while not run.is_done:
        run.advance(0.0)
        score_samples(model, [sample()], adapter)
    assert run.measured.losses == pytest.approx(plain, rel=1e-5)


def test_held_out_samples_change_nothing_that_is_trained(model: LeanModel) -> None:
    """Held-out samples are measured before and after, and losses and weights stay the same."""
    samples = correction_with_company()
    alone = run_update(model, samples, steps=3)
    values = alone.slot.flat.detach().clone()
    watched = [*samples, sample("earlier", seed=7, length=9), sample("gold", seed=8, length=14)]
    beside = run_update(model, watched, steps=3)
    assert beside.measured.losses == pytest.approx(alone.measured.losses, rel=1e-4)
    assert beside.measured.divergence_after == pytest.approx(alone.measured.divergence_after, rel=1e-3)
    assert is_same(beside, values)
    assert alone.measured.figures["earlier_drop"] is None
    assert alone.measured.figures["gold_drop"] is None
    assert isinstance(beside.measured.figures["earlier_drop"], float)


def test_the_figures_are_those_of_separate_scores(model: LeanModel) -> None:
    """The reported figures are those of the exported adapter."""
    samples = correction_with_company()
    run = run_update(model, samples)
    anchors = samples[3:]
    base, now = (score_samples(model, anchors, adapter) for adapter in (None, run.slot.export()))
    before, after = (torch.cat([torch.tensor(r["student_logprobs"]) for r in scores]) for scores in (base, now))
    assert run.measured.figures["drift"] == pytest.approx(abs(float((after - before).mean())), abs=1e-4)
    assert run.measured.figures["margin_after"] > run.measured.figures["margin_before"]  # type: ignore[operator]


@pytest.mark.parametrize(("divergence", "top_k"), [("forward_kl", None), ("forward_kl", 5), ("jsd", None)])
def test_the_gates_measure_the_forward_kl_whatever_is_trained(
    model: LeanModel, divergence: Any, top_k: int | None
) -> None:
    """Before and after are those of separate scores, also where the loss is another divergence."""
    samples = correction_with_company()
    run = run_update(model, samples, divergence=divergence, top_k=top_k, steps=3)
    sizes = [len(s.response_ids) for s in samples]
    for adapter, seen in ((None, run._metrics._before), (run.slot.export(), run._metrics._after)):
        expected = fmean([score["divergence"] for score in score_samples(model, samples, adapter)], sizes)
        assert float(torch.cat(seen.divergence).mean()) == pytest.approx(expected, rel=1e-3)


def test_an_update_that_breaks_off_has_no_figures(model: LeanModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """A candidate whose values are no numbers has no figures."""
    run = TrainingUpdate(model, LearnConfig(), [sample()], None)
    monkeypatch.setattr(run._optimizer, "step", lambda: run.slot.flat.data.fill_(float("nan")))
    run.advance(1e9)
    assert run.measured.figures == {}
