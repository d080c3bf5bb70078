"""bot.core.sampling: the operator's settings before the model's own wishes, and the line that shows them."""

import pytest

from bot.config import ChatSettings
from bot.core.sampling import in_words, resolved
from engine.requests import Sampling

OWN = Sampling(0.6, 0.95, top_k=20, repetition_penalty=1.05)


@pytest.mark.parametrize(
    ("chat", "own", "expected"),
    [
        (ChatSettings(), Sampling(), Sampling(0.0, 1.0, 1024)),
        (ChatSettings(), OWN, Sampling(0.6, 0.95, 1024, top_k=20, repetition_penalty=1.05)),
        (ChatSettings(temperature=0), OWN, Sampling(0.0, 0.95, 1024, top_k=20, repetition_penalty=1.05)),
        (ChatSettings(top_p=0.5), OWN, Sampling(0.6, 0.5, 1024, top_k=20, repetition_penalty=1.05)),
        (ChatSettings(top_p=0.5, max_tokens=9), Sampling(), Sampling(0.0, 0.5, 9)),
    ],
)
def test_a_setting_wins_over_the_model(chat: ChatSettings, own: Sampling, expected: Sampling) -> None:
    """Each value by itself; the length is always the setting's."""
    assert resolved(chat, own) == expected


@pytest.mark.parametrize(
    ("sampling", "line"),
    [
        (Sampling(), "the likeliest word each time"),
        (Sampling(0.0, 0.9, repetition_penalty=1.1), "the likeliest word each time, repetition_penalty 1.1"),
        (OWN, "temperature 0.6, top_p 0.95, top_k 20, repetition_penalty 1.05"),
        (Sampling(1.0, min_p=0.05), "temperature 1, min_p 0.05"),
    ],
)
def test_a_sampling_is_shown_as_a_line(sampling: Sampling, line: str) -> None:
    """Only what differs from plain sampling is named, and nothing that has no effect."""
    assert in_words(sampling) == line
