"""engine.reading.ngrams: texts as hashed n-grams, and texts of one wording."""

import numpy as np
import pytest

from engine.reading.ngrams import WIDTH, vectors, wordings


def test_a_text_is_a_vector_of_length_one() -> None:
    """Also one of a single letter, of emoji, or in another script."""
    found = vectors(["too long", "k", "👍", "太长了"])
    assert found.shape == (4, WIDTH)
    assert np.linalg.norm(found, axis=1) == pytest.approx(1.0, abs=1e-5)


def test_case_blanks_and_which_number_it_is_mean_nothing() -> None:
    """So that a probe sees the same in what people mean alike."""
    one, other = vectors(["It was  1912", "it was 47"])
    assert np.array_equal(one, other)
    assert not np.array_equal(one, vectors(["it is 47"])[0])


def test_the_hash_never_changes() -> None:
    """A stored probe depends on the places that n-grams have."""
    assert np.flatnonzero(vectors(["k"])[0]).tolist() == [91, 366, 2931, 3414, 3725, 3909, 5693, 5981]


def test_texts_of_nearly_the_same_wording_are_one_group() -> None:
    """Whatever order they come in; different texts have groups of their own."""
    groups = wordings(["no emojis please", "that is wrong", "no emoji please", "No emojis, please!"])
    assert groups[0] == groups[2] == groups[3]
    assert groups[1] != groups[0]
