"""engine.training.packing: prompts in one row, the positions that answer them in another."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.sample import Sample
from engine.training.batching import WORTH_SHARING, Batch, plan_batches
from engine.training.packing import Family, Packed, pack, unpadded, whole

CPU = torch.device("cpu")
IDS = st.lists(st.integers(1, 3), min_size=1, max_size=6)
STARTS = st.sampled_from([[], [], [1] * WORTH_SHARING, [2] * WORTH_SHARING])
PROMPTS = st.builds(lambda start, ids: [*start, *ids], STARTS, IDS)
TEXTS = st.lists(st.tuples(PROMPTS, IDS), min_size=1, max_size=6)
Texts = list[tuple[list[int], list[int]]]


def batch_of(texts: Texts) -> tuple[Texts, Batch]:
    """Return the texts in the order of their batch, and that."""
    samples = [Sample("correction", prompt, prompt, answer) for prompt, answer in texts]
    (batch,) = plan_batches(samples, range(len(samples)), "student", 1000, CPU)
    return [texts[i] for i in batch.samples], batch


def packed_of(texts: Texts) -> tuple[Texts, Packed]:
    """Return the texts in the order of the batch, and their rows."""
    order, batch = batch_of(texts)
    return order, pack(batch)


def test_a_common_beginning_is_read_once() -> None:
    """Two prompts that begin alike share their beginning; what predicts a response is in the other row."""
    _, packed = packed_of([([5, 6, 7], [8, 9]), ([5, 6, 4, 3], [1, 2, 3])])
    assert packed.read.ids_P.tolist() == [5, 6, 4]
    assert packed.read.positions_P.tolist() == [0, 1, 2]
    assert packed.read.families == [Family(slice(0, 2), [slice(2, 2), slice(2, 3)])]
    assert packed.asked.ids_P.tolist() == [7, 8, 3, 1, 2]  # no answer's last token: nothing follows it
    assert packed.asked.positions_P.tolist() == [2, 3, 3, 4, 5]
    assert packed.asked.own_B == [slice(0, 2), slice(2, 5)]
    assert packed.read.may_see_11PP[0, 0].int().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert packed.may_see_11NM[0, 0].int().tolist() == [
        [1, 1, 0, 1, 0, 0, 0, 0],
        [1, 1, 0, 1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0, 1, 0, 0],
        [1, 1, 1, 0, 0, 1, 1, 0],
        [1, 1, 1, 0, 0, 1, 1, 1],
    ]


def test_prompts_that_begin_alike_are_families_of_one_row() -> None:
    """Each has its beginning once; what begins like no other stands before them."""
    start, other = [1] * WORTH_SHARING, [2] * WORTH_SHARING
    _, packed = packed_of(
        [([*start, 5, 6], [7]), ([8, 9], [7]), ([*other, 5, 5], [7]), ([*other, 6, 6], [7]), ([*start, 6, 6], [7])]
    )
    alone, first, second = packed.read.families
    assert packed.read.ids_P[alone.shared].tolist() == [8]  # of one prompt all is common
    assert packed.read.ids_P[first.shared].tolist() == start
    assert [packed.read.ids_P[own].tolist() for own in first.own_B] == [[5], [6]]
    assert packed.read.ids_P[second.shared].tolist() == other
    assert len(packed.read.ids_P) == 1 + 2 * (WORTH_SHARING + 2)


def test_answers_to_the_same_prompt_are_apart() -> None:
    """However much two sequences share, each response position is asked by itself."""
    _, packed = packed_of([([5, 6], [7, 8]), ([5, 6], [7, 9])])
    assert (packed.read.ids_P.tolist(), packed.read.families[0].shared) == ([5], slice(0, 1))
    assert packed.asked.ids_P.tolist() == [6, 7, 6, 7]


@given(TEXTS)
def test_each_asked_position_sees_its_own_sequence_and_nothing_else(texts: Texts) -> None:
    """Whatever sequences share, a position that is asked for sees all tokens up to itself, in their order."""
    order, packed = packed_of(texts)
    ids, positions = (
        torch.cat(sides)
        for sides in ((packed.read.ids_P, packed.asked.ids_P), (packed.read.positions_P, packed.asked.positions_P))
    )
    asked = [(prompt, answer[:t]) for prompt, answer in order for t in range(len(answer))]
    for may_see, (prompt, before) in zip(packed.may_see_11NM[0, 0], asked, strict=True):
        seen = may_see.nonzero().flatten()
        assert ids[seen[positions[seen].argsort()]].tolist() == [*prompt, *before]


@given(TEXTS)
def test_prompts_are_found_again_in_the_row(texts: Texts) -> None:
    """Unpacked, each is itself up to the token before its last one, and every token of the row has its place."""
    order, packed = packed_of(texts)
    row = packed.read
    if not len(row.ids_P):
        return
    rows = row.unpacked.rows_BW
    for places, (prompt, _) in zip(rows, order, strict=True):
        read = prompt[:-1]
        assert row.ids_P[places[: len(read)]].tolist() == read
        assert row.positions_P[places[: len(read)]].tolist() == list(range(len(read)))
    assert rows.flatten()[row.unpacked.places_P].tolist() == list(range(len(row.ids_P)))


@given(TEXTS)
def test_in_one_row_each_response_position_sees_its_own_sequence(texts: Texts) -> None:
    """Where nothing is learned prompts and responses stand in one row, the common beginning once."""
    order, batch = batch_of(texts)
    row, places = whole(batch)
    asked = [(prompt, answer[:t]) for prompt, answer in order for t in range(len(answer))]
    may_see = row.may_see_11PP[0, 0][places]
    for seen, (prompt, before) in zip(may_see, asked, strict=True):
        assert row.ids_P[seen].tolist() == [*prompt, *before]
    assert row.positions_P[places].tolist() == [len(prompt) + len(before) - 1 for prompt, before in asked]


def test_sequences_of_one_length_stand_one_behind_the_other() -> None:
    """As they are, each from its own first position on."""
    row = unpadded(torch.tensor([[5, 6, 7], [5, 6, 8]]))
    assert row.ids_P.tolist() == [5, 6, 7, 5, 6, 8]
    assert row.positions_P.tolist() == [0, 1, 2, 0, 1, 2]
    assert row.families == [Family(slice(0, 0), [slice(0, 3), slice(3, 6)])]
