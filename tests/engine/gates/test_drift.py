"""engine.gates.drift: the figures of an audit and their two limits."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config import AuditConfig
from engine.gates.drift import Audit, Rewritten, Scored, audit

CONFIG = AuditConfig()
nats = st.floats(-20, 0)
scored = st.lists(st.builds(Scored, nats, nats, st.floats(0, 5), st.floats(0, 5)), max_size=8)
tokens = st.lists(st.integers(0, 9), max_size=12)
rewritten = st.lists(st.builds(Rewritten, tokens, tokens), max_size=5)


def one(now: float = -0.5, base: float = -0.5, entropies: tuple[float, float] = (0.4, 0.4), texts: Any = ()) -> Audit:
    """Return the audit of twenty answers with equal scores."""
    return audit([Scored(now, base, *entropies)] * 20, list(texts), CONFIG)


def test_a_version_that_speaks_like_its_base_is_well() -> None:
    """An adapter that answers like the base model has no drift, and its ratios are 1."""
    texts = [Rewritten([i, i + 1, i + 2], [i, i + 1, i + 2]) for i in range(0, 30, 10)]
    found = one(texts=texts)
    assert (found.level, found.reasons) == ("ok", [])
    assert (found.drift, found.entropy_ratio, found.length_ratio, found.self_rouge) == (0.0, 1.0, 1.0, 0.0)


@pytest.mark.parametrize(
    ("fields", "level", "words"),
    [
        ({"now": -1.6}, "warn", "drift 1.10, above 1"),
        ({"now": -2.6}, "critical", "drift 2.10, above 2"),
        ({"now": -0.1, "base": -2.3}, "critical", "drift 2.20, above 2"),
        ({"entropies": (0.28, 0.4)}, "warn", "entropy ratio 0.73, below 0.8"),
        ({"entropies": (0.1, 0.4)}, "critical", "entropy ratio 0.33, below 0.6"),
        ({"entropies": (0.0, 0.01)}, "ok", ""),
        ({"texts": [Rewritten([1] * 25, [1] * 9), Rewritten([2] * 25, [3] * 9)]}, "warn", "length ratio 2.60, above 2"),
        ({"texts": [Rewritten([1], [1] * 19), Rewritten([2], [3] * 19)]}, "critical", "length ratio 0.10, below 0.25"),
        ({"texts": [Rewritten([1, 2, 3, 4, 5], [6])] * 2}, "critical", "self rouge 1.00, above 0.85"),
    ],
)
def test_each_figure_has_a_line_to_warn_and_one_that_is_critical(
    fields: dict[str, Any], level: str, words: str
) -> None:
    """A figure beyond its limit raises the level; near-zero entropies raise none."""
    found = one(**fields)
    assert (found.level, words in ", ".join(found.reasons)) == (level, True)


def test_what_is_critical_is_not_buried_among_warnings() -> None:
    """A critical figure is named and a warning beside it is not."""
    found = one(now=-2.6, entropies=(0.28, 0.4))
    assert (found.level, len(found.reasons)) == ("critical", 1)


def test_nothing_measured_raises_no_alarm() -> None:
    """Without answers every figure is None and the level is ok."""
    found = audit([], [], CONFIG)
    assert (found.level, found.drift, found.entropy_ratio, found.length_ratio, found.self_rouge) == (
        "ok", None, None, None, None,
    )  # fmt: skip


@given(scored, rewritten)
def test_figures_are_finite_and_reasons_belong_to_a_level(some: list[Scored], texts: list[Rewritten]) -> None:
    """Any measured values give figures that can be stored."""
    found = audit(some, texts, CONFIG)
    values = [value for value in found.to_dict().values() if isinstance(value, float)]
    assert all(math.isfinite(value) and value >= 0 for value in values)
    assert (found.level == "ok") == (not found.reasons)
