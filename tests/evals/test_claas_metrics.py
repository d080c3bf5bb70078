"""CLaaS's own metrics: known values."""

import math

import pytest

from evals import claas_metrics as metrics


def test_the_margin_is_the_mean_of_the_pairs_sums() -> None:
    """(-1 - 2) - (-4) = 1 and (-0.5) - (-3 - 0.5) = 3."""
    assert metrics.margin([([-1.0, -2.0], [-4.0]), ([-0.5], [-3.0, -0.5])]) == pytest.approx(2.0)


def test_the_entropy_is_that_of_the_renormalised_tokens() -> None:
    """Two equally likely ones have log 2 however small their share; one alone has none; the positions' mean is told."""
    even = [math.log(0.1), math.log(0.1)]
    assert metrics.entropy([even]) == pytest.approx(math.log(2))
    assert metrics.entropy([[math.log(0.9)]]) == pytest.approx(0.0)
    assert metrics.entropy([even, [-1.0]]) == pytest.approx(math.log(2) / 2)
    uneven = [math.log(0.75), math.log(0.25)]
    assert metrics.entropy([uneven]) == pytest.approx(-(0.75 * math.log(0.75) + 0.25 * math.log(0.25)))
    assert metrics.entropy([]) == 0.0


def test_a_ratio_to_nothing_is_not_known() -> None:
    """Neither infinite nor one."""
    assert metrics.ratio(0.5, 0.25) == 2.0
    assert metrics.ratio(0.5, 0.0) is None


def test_self_rouge_is_one_for_the_same_answer_thrice() -> None:
    """And 2 LCS / (m + n) between words: "a b c d" and "a c" share "a c", 2 * 2 / 6."""
    assert metrics.self_rouge(["One two three"] * 3) == 1.0
    assert metrics.self_rouge(["a b c d", "A c"]) == pytest.approx(2 / 3)
    assert metrics.self_rouge(["a b", "c d", "a d"]) == pytest.approx((0.0 + 0.5 + 0.5) / 3)


@pytest.mark.parametrize(
    ("text", "score"), [("Plain text, with (c) signs: 5 < 6.", 1.0), ("Fine 🙂", 0.0), ("Sun ☀", 0.0), ("© me", 0.0)]
)
def test_no_emoji(text: str, score: float) -> None:
    """A pictograph or any other symbol of category So costs everything, as at CLaaS."""
    assert metrics.no_emoji(text) == score


@pytest.mark.parametrize(("sentences", "score"), [(2, 1.0), (3, 1.0), (4, 5 / 6), (6, 0.5), (9, 0.0), (12, 0.0)])
def test_concise(sentences: int, score: float) -> None:
    """Up to three sentences all of it, nine or more nothing, and a straight line between."""
    assert metrics.concise(" ".join(["A short sentence of seven words here."] * sentences)) == pytest.approx(score)


def test_a_lone_full_stop_is_not_concise() -> None:
    """At least ten words are asked for."""
    assert metrics.concise(".") == 0.0
    assert metrics.concise("nine words are one too few for this score") == 0.0
    assert metrics.concise("these ten words without an end are just about enough") == 1.0


def test_identity_and_the_three_forms() -> None:
    """The name in any letters; three sentences, five numbers, a word that is not to be there."""
    assert (metrics.identity("I am KURO."), metrics.identity("I am an AI.")) == (1.0, 0.0)
    assert (metrics.has_three_sentences("One. Two! Three?"), metrics.has_three_sentences("One. Two.")) == (1.0, 0.0)
    items = "\n".join(f"{n}. fruit" for n in range(1, 6))
    assert (metrics.has_five_items(items), metrics.has_five_items(items[:-9])) == (1.0, 0.0)
    assert metrics.avoids_the_word("It adds up numbers.") == 1.0
    assert [metrics.avoids_the_word(text) for text in ("Its Functions are many.", " ")] == [0.0, 0.0]
