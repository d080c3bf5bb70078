"""engine.training.row_pieces: how a row is cut. What is computed of it: test_row_attention, test_llama_ops."""

import torch

from engine.training.packing import Packed, TokenRow
from engine.training.row_pieces import answer_pieces, row_pieces
from tests.engine.training.test_row_attention import own_spans, token_row


def row(num_shared: int, lengths: list[int]) -> TokenRow:
    """Return a row of sequences with so many tokens each behind their common beginning."""
    return token_row(num_shared, own_spans(num_shared, lengths))


def test_a_row_is_cut_into_pieces_of_like_length() -> None:
    """Every token is in one piece; a piece sees the beginning, and its own sequence up to its last token."""
    pieces = row_pieces(row(100, [300, 90]))
    assert [piece.queries for piece in pieces] == [
        slice(0, 100),
        slice(100, 200),
        slice(200, 300),
        slice(300, 400),
        slice(400, 490),
    ]
    assert pieces[2].keys == (slice(0, 100), slice(100, 300))
    assert pieces[4].keys == (slice(0, 100), slice(400, 490))


def test_short_sequences_share_a_piece_and_see_nothing_of_one_another() -> None:
    """Tokens of one piece look at their own sequence alone; a sequence without own tokens is in no piece."""
    (piece,) = row_pieces(row(0, [2, 0, 1]))
    assert piece.queries == slice(0, 3)
    assert (piece.bias_NM == 0).int().tolist() == [[1, 0, 0], [1, 1, 0], [0, 0, 1]]


def test_answers_see_their_own_prompt_before_themselves() -> None:
    """The beginning, of which nothing is masked, then the prompts of the piece, then its answers."""
    (piece,) = answer_pieces(Packed(row(4, [1, 2]), row(0, [2, 1])))
    assert (piece.read, piece.keys) == ((slice(0, 4), slice(4, 7)), (slice(0, 3),))
    assert piece.num_read == 7
    assert (piece.bias_NM == 0).int().tolist() == [[1, 0, 0, 1, 0, 0], [1, 0, 0, 1, 1, 0], [0, 1, 1, 0, 0, 1]]


def test_answers_to_long_prompts_share_no_piece() -> None:
    """They are computed together only where few of their keys are another's."""
    pieces = answer_pieces(Packed(row(10, [100, 100, 20]), row(0, [5, 5, 5])))
    assert [piece.queries for piece in pieces] == [slice(0, 5), slice(5, 15)]


def test_what_is_read_gets_no_gradient() -> None:
    """The gradient of seen keys and values is added to the row's own alone."""
    (piece,) = answer_pieces(Packed(row(3, [2]), row(0, [4])))
    grad = torch.zeros(2, 4, 1)
    piece.send_back(grad, torch.ones(2, 4, 1))
    assert (grad == 1).all()
