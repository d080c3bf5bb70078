"""engine.training.packing: several sequences as one row."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.sample import Sample
from engine.training.batching import plan_batches
from engine.training.packing import pack

CPU = torch.device("cpu")
IDS = st.lists(st.integers(1, 3), min_size=1, max_size=6)


def test_a_common_beginning_stands_there_once() -> None:
    """Two prompts that begin alike share their beginning; each goes on at its own positions."""
    samples = [Sample("correction", ids, ids, answer) for ids, answer in (([5, 6, 7], [8, 9]), ([5, 6], [1, 2, 3]))]
    (batch,) = plan_batches(samples, [0, 1], "student", 100, CPU)
    packed = pack(batch)
    assert packed.input_ids_1P.tolist() == [[5, 6, 7, 8, 1, 2]]  # no answer's last token: nothing follows it
    assert packed.position_ids_1P.tolist() == [[0, 1, 2, 3, 2, 3]]
    assert packed.rows_N.tolist() == [2, 3, 1, 4, 5]
    assert packed.may_see_11PP[0, 0].int().tolist() == [
        [1, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0],
        [1, 1, 1, 1, 0, 0],
        [1, 1, 0, 0, 1, 0],
        [1, 1, 0, 0, 1, 1],
    ]


@given(st.lists(st.tuples(IDS, IDS), min_size=2, max_size=5))
def test_each_asked_position_sees_its_own_sequence_and_nothing_else(texts: list[tuple[list[int], list[int]]]) -> None:
    """Whatever sequences share, a position that is asked for sees all tokens up to itself, in their order."""
    samples = [Sample("correction", prompt, prompt, answer) for prompt, answer in texts]
    (batch,) = plan_batches(samples, range(len(samples)), "student", 1000, CPU)
    packed = pack(batch)
    asked = [(i, t) for i in batch.samples for t in range(len(texts[i][1]))]
    for row, (i, t) in zip(packed.rows_N.tolist(), asked, strict=True):
        seen = packed.may_see_11PP[0, 0, row].nonzero().flatten()
        in_order = seen[packed.position_ids_1P[0, seen].argsort()]
        prompt, answer = texts[i]
        assert packed.input_ids_1P[0, in_order].tolist() == [*prompt, *answer[:t]]


@given(st.lists(st.tuples(IDS, IDS), min_size=2, max_size=5))
def test_sequences_are_found_again_in_the_row(texts: list[tuple[list[int], list[int]]]) -> None:
    """Unpacked, each is itself up to the last position that is asked for, and every token of the row has its place."""
    samples = [Sample("correction", prompt, prompt, answer) for prompt, answer in texts]
    (batch,) = plan_batches(samples, range(len(samples)), "student", 1000, CPU)
    packed = pack(batch)
    rows = packed.unpacked.rows_BW
    ids, positions = packed.input_ids_1P[0], packed.position_ids_1P[0]
    for row, i in zip(rows, batch.samples, strict=True):
        prompt, answer = texts[i]
        asked = [*prompt, *answer[:-1]]
        assert ids[row[: len(asked)]].tolist() == asked
        assert positions[row[: len(asked)]].tolist() == list(range(len(asked)))
    assert rows.flatten()[packed.unpacked.places_P].tolist() == list(range(len(ids)))
