"""engine.training.measuring: the metrics of an update, on numbers that can be checked by hand."""

import math

import pytest
import torch
from torch import Tensor

from engine.gates.candidate import MARGIN_LIMIT
from engine.sample import Sample
from engine.training import sdpo
from engine.training.measuring import PositionMetrics

A, B, C, END = range(4)


def sample(kind: str, response_ids: list[int]) -> Sample:
    """Return a sample of which only kind and response matter here."""
    return Sample(kind, [A], [A], response_ids)  # type: ignore[arg-type]


def says(*tokens: int, sure: float = 0.97) -> Tensor:
    """Return log-probabilities over four tokens, one row per token: `sure` for it, the rest shared equally."""
    rows = [[sure if v == token else (1 - sure) / 3 for v in range(4)] for token in tokens]
    return torch.tensor(rows).log()


def figures(samples: list[Sample], before: Tensor, teacher: Tensor, after: Tensor) -> dict[str, float | None]:
    """Return the figures of samples that were measured in one piece."""
    readings = PositionMetrics(samples)
    owners = torch.tensor([i for i, s in enumerate(samples) for _ in s.response_ids])
    tokens = torch.tensor([t for s in samples for t in s.response_ids])
    readings.before(owners, tokens, before, teacher, sdpo.forward_kl(before, teacher))
    readings.after(tokens, after, teacher, sdpo.forward_kl(after, teacher))
    return readings.figures()


def test_the_margin_is_of_the_teachers_tokens_against_the_old_ones() -> None:
    """The margin of the one corrected token (B for A) goes from log(.01/.97) to log(.97/.01)."""
    found = figures([sample("correction", [A, A])], says(A, A), says(A, B), says(A, B))
    assert found["margin_before"] == pytest.approx(math.log(0.01 / 0.97), abs=1e-4)
    assert found["margin_after"] == pytest.approx(math.log(0.97 / 0.01), abs=1e-4)


def test_a_correction_that_changes_no_favourite_has_no_margin() -> None:
    """If the teacher would say the same tokens there is no margin."""
    found = figures([sample("correction", [A])], says(A), says(A, sure=0.8), says(A, sure=0.8))
    assert found["margin_before"] is None
    assert found["margin_after"] is None


def test_a_step_towards_the_teacher_is_never_unasked() -> None:
    """A step towards the teacher costs nothing, be it half the way, the whole or none."""
    for after in (says(A), says(B, sure=0.6), says(B)):
        found = figures([sample("correction", [A])], says(A), says(B), after)
        assert found["unasked"] == pytest.approx(0.0, abs=1e-6)


def test_a_step_away_from_the_teacher_is_unasked_and_found_in_its_answer() -> None:
    """The rise of KL(q || p) is averaged over all positions, and over those of the worst answer."""
    samples = [sample("counterfactual", [A, A]), sample("anchor", [A])]
    found = figures(samples, says(A, A, A), says(A, A, A), says(A, C, A))
    rise = 0.97 * math.log(0.97 / 0.01) + 0.01 * math.log(0.01 / 0.97)
    assert found["unasked"] == pytest.approx(rise / 3, rel=1e-3)
    assert found["unasked_worst"] == pytest.approx(rise / 2, rel=1e-3)


def test_an_answer_that_is_only_begun_has_no_mean_of_its_own() -> None:
    """A few first tokens swing more than any whole answer: they are taught, and count for nothing that is asked."""
    samples = [sample("counterfactual", [A, A]), sample("opening", [A])]
    found = figures(samples, says(A, A, A), says(A, A, A), says(A, A, C))
    assert (found["unasked"], found["unasked_worst"]) == (pytest.approx(0.0, abs=1e-6), pytest.approx(0.0, abs=1e-6))


def test_an_earlier_correction_that_is_lost_drops() -> None:
    """A candidate that undoes an earlier correction loses the whole range of the cut margin."""
    samples = [sample("correction", [C]), sample("earlier", [A]), sample("earlier", [A])]
    found = figures(samples, says(C, B, B), says(C, B, B), says(C, A, B))
    assert found["earlier_drop"] == pytest.approx(2 * MARGIN_LIMIT)


def test_being_less_sure_of_an_earlier_correction_is_no_drop() -> None:
    """Being less sure beyond 20 to 1 costs nothing, because the margin is cut there."""
    samples = [sample("correction", [C]), sample("earlier", [A])]
    found = figures(samples, says(C, B, sure=0.999), says(C, B), says(C, B, sure=0.98))
    assert found["earlier_drop"] == pytest.approx(0.0, abs=1e-6)


def test_a_reversal_is_no_loss_of_the_earlier_correction() -> None:
    """A position whose old token the teacher likes again is not counted."""
    samples = [sample("correction", [C]), sample("earlier", [A])]
    assert figures(samples, says(C, B), says(C, A), says(C, A))["earlier_drop"] is None


def test_gold_counts_where_the_teacher_would_still_say_it() -> None:
    """Only tokens that the teacher would keep must keep their likelihood."""
    samples = [sample("correction", [C]), sample("gold", [A, A])]
    found = figures(samples, says(C, A, A), says(C, A, B), says(C, A, B))
    assert found["gold_drop"] == pytest.approx(0.0, abs=1e-6)
    spoiled = figures(samples, says(C, A, A), says(C, A, B), says(C, B, B))
    assert spoiled["gold_drop"] == pytest.approx(math.log(0.97 / 0.01), abs=1e-4)


def test_the_entropy_is_compared_with_the_teachers() -> None:
    """The ratio is 1 for the same distribution and far below for one that is sure of everything."""
    samples = [sample("correction", [A, A])]
    assert figures(samples, says(A, A), says(B, B), says(B, B))["entropy_ratio"] == pytest.approx(1.0)
    collapsed = figures(samples, says(A, A), says(B, B, sure=0.6), says(B, B, sure=0.9999))
    assert collapsed["entropy_ratio"] is not None
    assert collapsed["entropy_ratio"] < 0.1


def test_a_sure_teacher_leaves_no_variety_to_lose() -> None:
    """Being twice as sure as a nearly certain teacher is no collapse."""
    samples = [sample("correction", [A, A])]
    sharper = figures(samples, says(A, A), says(B, B, sure=0.9996), says(B, B, sure=0.9998))
    assert sharper["entropy_ratio"] is not None
    assert sharper["entropy_ratio"] > 0.8


def test_the_same_answer_to_every_neutral_prompt_is_seen() -> None:
    """Equal answers have a self-ROUGE of 1, different ones share only their end."""
    samples = [sample("correction", [C]), sample("anchor", [A, END]), sample("anchor", [B, END])]
    teacher = says(C, A, END, B, END)
    assert figures(samples, teacher, teacher, teacher)["self_rouge"] == pytest.approx(0.5)
    assert figures(samples, teacher, teacher, says(C, A, A, A, A))["self_rouge"] == 1.0


def test_the_drift_is_on_neutral_prompts_alone() -> None:
    """Drift counts neutral prompts only, so a corrected answer may move far."""
    samples = [sample("correction", [C]), sample("anchor", [A])]
    assert figures(samples, says(C, A), says(B, A), says(B, A))["drift"] == pytest.approx(0.0, abs=1e-6)
    drifted = figures(samples, says(C, A), says(B, A), says(B, B))
    assert drifted["drift"] == pytest.approx(math.log(0.97 / 0.01), abs=1e-4)


def test_what_was_not_looked_at_has_no_figures() -> None:
    """An update that broke off has no figures of its candidate."""
    readings = PositionMetrics([sample("correction", [A])])
    readings.before(torch.tensor([0]), torch.tensor([A]), says(A), says(B), torch.tensor([1.0]))
    assert readings.figures() == {}


def test_pieces_make_no_difference() -> None:
    """Figures do not depend on the chunks in which positions are measured."""
    samples = [sample("correction", [A, A]), sample("anchor", [B])]
    before, teacher, after = says(A, A, B), says(B, A, B), says(B, C, B)
    owners, tokens = torch.tensor([0, 0, 1]), torch.tensor([A, A, B])
    readings = PositionMetrics(samples)
    places = [slice(i, i + 1) for i in range(3)]
    kl_before, kl_after = (sdpo.forward_kl(student, teacher) for student in (before, after))
    for at in places:
        readings.before(owners[at], tokens[at], before[at], teacher[at], kl_before[at])
    for at in places:
        readings.after(tokens[at], after[at], teacher[at], kl_after[at])
    assert readings.figures() == pytest.approx(figures(samples, before, teacher, after), nan_ok=True)


def test_another_candidate_is_measured_against_the_same_version_before() -> None:
    """What was measured of a first candidate is forgotten, what was measured before it is not."""
    readings, samples = PositionMetrics([sample("correction", [A, A])]), torch.tensor([0, 0])
    tokens, before, teacher = torch.tensor([A, A]), says(A, A), says(A, B)
    readings.before(samples, tokens, before, teacher, sdpo.forward_kl(before, teacher))
    for candidate in (says(C, C), teacher):
        readings.forget_after()
        readings.after(tokens, candidate, teacher, sdpo.forward_kl(candidate, teacher))
    found = readings.figures()
    assert found["margin_after"] == pytest.approx(math.log(0.97 / 0.01), abs=1e-4)
    assert found["unasked"] == 0
