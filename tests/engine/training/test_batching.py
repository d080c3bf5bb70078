"""engine.training.batching: micro-batches and their padding."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.config import LearnConfig
from engine.sample import Sample
from engine.training import batching
from engine.training.batching import check_samples, plan_batches, row_chunks
from tests.engine.updates_of import sample

CPU = torch.device("cpu")


def test_the_row_before_a_response_token_predicts_it() -> None:
    """The last prompt position predicts the first response token; the last response token predicts nothing."""
    one = Sample("correction", [10, 11], [20, 21, 22], [30, 31])
    (batch,) = plan_batches([one], [0], "student", 100, CPU)
    assert batch.input_ids_BL.tolist() == [[10, 11, 30, 31, 0, 0, 0, 0]]
    assert batch.rows_N.tolist() == [1, 2]
    assert batch.token_ids_N.tolist() == [30, 31]
    (batch,) = plan_batches([one], [0], "teacher", 100, CPU)
    assert batch.rows_N.tolist() == [2, 3]


def test_the_end_of_sequence_token_is_a_response_position_like_any_other() -> None:
    """The position of EOS is in the batch with its own row, so it is trained."""
    eos = 2
    (batch,) = plan_batches([Sample("correction", [10], [11], [30, eos])], [0], "student", 100, CPU)
    assert batch.token_ids_N.tolist()[-1] == eos
    assert len(batch.rows_N) == 2


def test_every_sample_has_one_last_position() -> None:
    """Where its answer ends or goes on."""
    samples = [sample(length=length) for length in (1, 3, 7)]
    (batch,) = plan_batches(samples, range(3), "student", 10_000, CPU)
    assert sorted(batch.lengths) == [1, 3, 7]
    last = [batch.is_last_N[batch.owners_N == i].tolist() for i in range(3)]
    assert last == [[True], [False] * 2 + [True], [False] * 6 + [True]]


def beginning_alike(count: int, own: int = 8) -> list[Sample]:
    """Return samples that begin with the same WORTH_SHARING + 1 tokens and differ in `own` behind them."""
    start = list(range(10, 10 + batching.WORTH_SHARING + 1))
    return [Sample("anchor", prompt := [*start, *[1000 + i] * (own - 1)], prompt, [5]) for i in range(count)]


def test_samples_that_begin_alike_stand_together_and_their_beginning_does_not_count() -> None:
    """Others, however close in length, are grouped apart from them; nobody else's prompt is in the way of sharing."""
    alike, other = beginning_alike(4), sample(length=70)
    batches = plan_batches([alike[0], other, *alike[1:]], range(5), "student", 128, CPU)
    assert [sorted(batch.samples) for batch in batches] == [[1], [0, 2, 3, 4]]
    batches = plan_batches(beginning_alike(8, own=24), range(8), "student", 128, CPU)
    assert [len(batch.samples) for batch in batches] == [4, 4]


def test_others_stand_before_those_that_begin_alike_where_there_is_room() -> None:
    """A short prompt that shares nothing needs no micro-batch of its own."""
    alike, other = beginning_alike(3), sample(length=9)
    batches = plan_batches([alike[0], other, *alike[1:]], range(4), "student", 128, CPU)
    assert [batch.samples for batch in batches] == [[1, 0, 2, 3]]


def test_shared_beginnings_do_not_make_padded_rows_without_bound() -> None:
    """Some models compute each row as a whole: four budgets of padded tokens are the most."""
    batches = plan_batches(beginning_alike(40, own=2), range(40), "student", 128, CPU)
    assert max(batch.input_ids_BL.numel() for batch in batches) <= 4 * 128


def test_padding_is_on_the_right_and_never_a_response_row() -> None:
    """Padding on the right changes nothing, because a causal model cannot see it."""
    short, long = Sample("anchor", [1], [1], [5]), Sample("anchor", [1, 2], [1, 2], [5, 6])
    (batch,) = plan_batches([short, long], [0, 1], "student", 100, CPU)
    assert batch.input_ids_BL.tolist() == [[1, 5, *[0] * 6], [1, 2, 5, 6, *[0] * 4]]
    assert batch.rows_N.tolist() == [0, 8 + 1, 8 + 2]
    assert batch.owners_N.tolist() == [0, 1, 1]


@given(
    lengths=st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=12),
    budget=st.integers(16, 200),
)
def test_every_sample_is_in_exactly_one_batch_within_the_budget(lengths: list[tuple[int, int]], budget: int) -> None:
    """Padded size stays within the budget unless one sample alone is larger; rows name the owner's own tokens."""
    samples = [Sample("anchor", [i] * p, [i] * p, [i] * r) for i, (p, r) in enumerate(lengths, start=1)]
    batches = plan_batches(samples, range(len(samples)), "student", budget, CPU)
    assert sorted(i for batch in batches for i in batch.samples) == list(range(len(samples)))
    for batch in batches:
        assert batch.input_ids_BL.numel() <= budget or len(batch.samples) == 1
        predicted = batch.input_ids_BL.flatten()[batch.rows_N + 1]
        assert predicted.tolist() == batch.token_ids_N.tolist() == (batch.owners_N + 1).tolist()


def test_an_update_of_anchors_alone_is_refused() -> None:
    """Such samples would train nothing and cost a version."""
    with pytest.raises(ValueError, match="correction or counterfactual"):
        check_samples([sample("anchor")], LearnConfig())
    with pytest.raises(ValueError, match="correction or counterfactual"):
        check_samples([sample("correction", weight=0.0)], LearnConfig())


def test_a_sample_beyond_the_limit_is_refused_rather_than_cut() -> None:
    """A longer sample is refused and not cut, because its end would be lost."""
    with pytest.raises(ValueError, match="max_sequence_tokens"):
        check_samples([sample(length=50)], LearnConfig(max_sequence_tokens=40))


def test_held_out_answers_alone_are_no_update() -> None:
    """Held-out samples alone leave nothing to train on, and are refused."""
    with pytest.raises(ValueError, match="needs a correction"):
        check_samples([sample("gold"), sample("earlier")], LearnConfig())


@given(st.integers(0, 40), st.integers(1, 30), st.integers(1, 2))
def test_every_row_is_in_one_chunk_whose_logits_fit(num_rows: int, vocab_size: int, num_sides: int) -> None:
    """Chunks follow one another; each holds as many rows as fit, at least one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batching, "CHUNK_ELEMENTS", 50)
        rows = [list(range(num_rows))[chunk] for chunk in row_chunks(num_rows, vocab_size, num_sides)]
    assert [row for chunk in rows for row in chunk] == list(range(num_rows))
    assert len(rows) == max(1, -(-num_rows // max(1, 50 // (num_sides * vocab_size))))
    assert all(len(chunk) <= 1 or len(chunk) * num_sides * vocab_size <= 50 for chunk in rows)


def test_an_empty_prompt_predicts_nothing() -> None:
    """It is refused: no position stands before the answer."""
    with pytest.raises(ValueError, match="this one is empty"):
        plan_batches([Sample("correction", [], [1], [2])], [0], "student", 100, CPU)
