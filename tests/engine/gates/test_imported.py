"""engine.gates.imported: garbage is told from a person's style."""

import math

import pytest

from engine.gates.imported import refusal, strangeness

VOCAB_SIZE = 2048  # ln V = 7.6


def test_strangeness_is_the_mean_over_answers() -> None:
    """Each answer counts the same, long or short; one without tokens does not count."""
    assert strangeness([[-1.0, -3.0], [-4.0], []]) == pytest.approx(3.0)


@pytest.mark.parametrize("answers", [[], [[]], [[math.nan]], [[-math.inf]]])
def test_nothing_and_no_numbers_are_as_strange_as_can_be(answers: list[list[float]]) -> None:
    """An adapter that says nothing to any prompt is no adapter."""
    assert strangeness(answers) == math.inf
    assert "it says nothing" in refusal(answers, VOCAB_SIZE)


@pytest.mark.parametrize(("nats", "is_refused"), [(0.1, False), (3.0, False), (6.0, True), (12.0, True)])
def test_a_style_is_taken_and_garbage_refused(nats: float, is_refused: bool) -> None:
    """The limit lies well below what tokens drawn at random have."""
    reason = refusal([[-nats] * 20] * 4, VOCAB_SIZE)
    assert bool(reason) is is_refused
    assert not is_refused or f"{nats:.1f} nats per token" in reason
