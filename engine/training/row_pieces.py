"""Attention over a packed row by plain matrix products: what sequences begin with in common is attended to once.

A row is cut into pieces of queries (`RowPiece`). Those of the common beginning see what stands before them; those of a
sequence see the beginning and what stands before them in their sequence, as if the sequences stood by themselves
(`engine.training.packing`). Positions that answer a prompt see it, too, in the row of what is read, whose keys and
values are constants. A piece's weights fit into a core's cache, and nothing is padded; short sequences share a piece,
for each of its operations costs more time than the weights among them that are masked. In the backward pass a key of
the beginning gets the sum of what all sequences send back to it. Invariant: equal to attention over the padded
sequences to rounding.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor

from engine.training.lean_ops import HeadLayout
from engine.training.packing import Family, Packed, TokenRow

_LONGEST_PIECE = 128  # queries, of one sequence or of several
_KEPT_WEIGHTS = 1 << 22  # of a layer, for the backward pass; more are computed again there, as memory would be short


@dataclass(frozen=True)
class RowPiece:
    """N queries that are computed in one go, and the spans of the keys that any of them sees."""

    queries: slice
    keys: tuple[slice, ...]
    bias_NM: Tensor  # added to the scores of the last M keys: minus infinity where a query may not look
    read: tuple[slice, ...] = ()  # spans of another row, of prompts, that stand before these keys

    @property
    def num_read(self) -> int:
        """The number of keys in the row of the prompts."""
        return sum(map(_length, self.read))

    @property
    def num_weights(self) -> int:
        """The number of weights for one head."""
        return _length(self.queries) * (self.num_read + sum(map(_length, self.keys)))

    def seen(self, sides_KPD: Tensor, read_KPD: Tensor) -> Tensor:
        """Return the keys and values that are seen, of those of both rows: axes [2 K, M, D]."""
        parts = [*(read_KPD[:, part] for part in self.read), *(sides_KPD[:, part] for part in self.keys)]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)

    def send_back(self, grad_KPD: Tensor, part_KMD: Tensor) -> None:
        """Add the gradient of the row's own keys and values that were seen. In place: `grad_KPD`."""
        start = 0
        for part in self.keys:
            stop = start + _length(part)
            grad_KPD[:, part].add_(part_KMD[:, start:stop])
            start = stop


def row_pieces(row: TokenRow) -> list[RowPiece]:
    """Return the pieces of a row: of each family the common beginning, then the tokens of each sequence behind it."""
    return [piece for family in row.families for piece in _family_pieces(family)]


def _family_pieces(family: Family) -> list[RowPiece]:
    shared, beginning = family.shared, _beginning(family)
    found = [RowPiece(cut, (slice(shared.start, cut.stop),), _bias([cut])) for cut in _cut(shared)]
    for joint in _joined(family.own_B, family.own_B):
        for cuts in [joint] if len(joint) > 1 else ([cut] for cut in _cut(joint[0])):
            queries = slice(cuts[0].start, cuts[-1].stop)
            found.append(RowPiece(queries, (*beginning, slice(joint[0].start, queries.stop)), _bias(cuts)))
    return found


def answer_pieces(packed: Packed) -> list[RowPiece]:
    """Return the pieces of the positions that answer prompts: each sees its prompt, and its answer up to itself."""
    asked_B = iter(packed.asked.own_B)
    pairs = [(family, list(islice(asked_B, len(family.own_B)))) for family in packed.read.families]
    return [piece for family, answers in pairs for piece in _answer_pieces(family, answers)]


def _answer_pieces(family: Family, answers_B: Sequence[slice]) -> list[RowPiece]:
    found, first = [], 0
    for joint in _joined(answers_B, family.own_B):
        prompts = family.own_B[first : first + len(joint)]
        first += len(joint)
        prompt = slice(prompts[0].start, prompts[-1].stop)
        own_prompts = [_prompt_bias(joint, prompts)] if len(joint) > 1 else []  # one alone sees the whole of it
        for cuts in [joint] if len(joint) > 1 else ([cut] for cut in _cut(joint[0])):
            queries = slice(cuts[0].start, cuts[-1].stop)
            keys = (slice(joint[0].start, queries.stop),)
            bias = torch.cat([*own_prompts, _bias(cuts)], dim=1)
            found.append(RowPiece(queries, keys, bias, (*_beginning(family), prompt)))
    return found


def _beginning(family: Family) -> tuple[slice, ...]:
    return (family.shared,) if family.shared.stop > family.shared.start else ()


def _prompt_bias(answers: Sequence[slice], prompts: Sequence[slice]) -> Tensor:
    """Return zero where a prompt's token stands in a query's own sequence, else minus infinity."""
    pairs = zip(answers, prompts, strict=True)
    return torch.block_diag(*(torch.ones(_length(answer), _length(prompt)) for answer, prompt in pairs)).log()


def _joined(queries_B: Sequence[slice], keys_B: Sequence[slice]) -> list[list[slice]]:
    """Return the sequences that share a piece, by their queries; those without one are in none.

    Of the keys of another sequence all weights are masked, so that a piece has few of them, too.
    """
    groups: list[list[slice]] = []
    first = slice(0, 0)  # keys of the group's first sequence
    for queries, keys in zip(queries_B, keys_B, strict=True):
        if queries.stop == queries.start:
            continue
        if groups and max(queries.stop - groups[-1][0].start, keys.stop - first.start) <= _LONGEST_PIECE:
            groups[-1].append(queries)
        else:
            groups.append([queries])
            first = keys
    return groups


def _bias(spans: Sequence[slice]) -> Tensor:
    """Return zero where a token stands in the same span as another and not before it, else minus infinity."""
    return torch.block_diag(*(torch.ones(_length(span), _length(span)) for span in spans)).tril().log()


def _length(span: slice) -> int:
    length: int = span.stop - span.start
    return length


def _cut(span: slice) -> Iterator[slice]:
    """Cut a span into as few pieces as may be, of the same length but for one token."""
    length = _length(span)
    count = -(-length // _LONGEST_PIECE)
    for i in range(count):
        yield slice(span.start + i * length // count, span.start + (i + 1) * length // count)


def attended(
    q_PHD: Tensor, sides_KPD: Tensor, read_KPD: Tensor, pieces: Sequence[RowPiece], heads: HeadLayout
) -> tuple[Tensor, list[Tensor]]:
    """Return what each query sees, axes [P, H, D], and the weights of each piece, of none if they are many.

    Queries come scaled.
    """
    out, weights = q_PHD.new_zeros(q_PHD.shape), []
    is_kept = heads.num_heads * sum(piece.num_weights for piece in pieces) <= _KEPT_WEIGHTS
    for piece in pieces:
        keys, values = piece.seen(sides_KPD, read_KPD).chunk(2)
        found = _weights(q_PHD, keys, piece, heads)
        _write(out, piece, torch.bmm(found, values), heads)
        weights += [found] if is_kept else []
    return out, weights


def reading(q_PHD: Tensor, sides_KPD: Tensor, pieces: Sequence[RowPiece], heads: HeadLayout) -> Tensor:
    """Return what each query of a row by itself sees, axes [P, H, D]. Nothing is kept."""
    out = q_PHD.new_zeros(q_PHD.shape)
    for piece in pieces:
        keys, values = piece.seen(sides_KPD, sides_KPD[:, :0]).chunk(2)
        _write(out, piece, torch.bmm(_weights(q_PHD, keys, piece, heads), values), heads)
    return out


def send_back(
    grad_PHD: Tensor,
    out_PHD: Tensor,
    sides: tuple[Tensor, Tensor, Tensor],
    grads: tuple[Tensor, Tensor],
    seen: Iterable[tuple[RowPiece, Tensor | None]],
    heads: HeadLayout,
) -> None:
    """Add the gradients of queries and of the row's own keys and values. In place: `grads`, which begin as zero.

    `sides`: queries, keys with values, and those that are constants; `seen`: pieces with the weights that were kept.
    """
    (q, own, read), (grad_q, grad_own) = sides, grads
    dots = (grad_PHD * out_PHD).sum(-1, keepdim=True)
    for piece, kept in seen:
        keys, values = piece.seen(own, read).chunk(2)
        found = _weights(q, keys, piece, heads) if kept is None else kept
        grad = _grouped(grad_PHD, piece, heads)
        grad_scores = torch.bmm(grad, values.transpose(1, 2))
        grad_scores.sub_(_grouped(dots, piece, heads)).mul_(found)
        _write(grad_q, piece, torch.bmm(grad_scores, keys), heads)
        own_scores, own_weights = (side[..., piece.num_read :].transpose(1, 2) for side in (grad_scores, found))
        grad_keys = torch.bmm(own_scores, _grouped(q, piece, heads))
        piece.send_back(grad_own, torch.cat([grad_keys, torch.bmm(own_weights, grad)]))


def _weights(q_PHD: Tensor, keys_KMD: Tensor, piece: RowPiece, heads: HeadLayout) -> Tensor:
    """Return the weights of a piece's queries, axes [K, H / K N, M]."""
    scores = torch.bmm(_grouped(q_PHD, piece, heads), keys_KMD.transpose(1, 2))
    return _masked(scores, piece.bias_NM, heads).softmax(-1)


def _grouped(side_PHD: Tensor, piece: RowPiece, heads: HeadLayout) -> Tensor:
    """Return a piece's queries by the key head that they share, axes [K, H / K N, D]."""
    part = side_PHD[piece.queries]
    if heads.repeats == 1:
        return part.transpose(0, 1)
    return part.unflatten(1, (heads.num_kv, heads.repeats)).permute(1, 2, 0, 3).flatten(1, 2)


def _write(side_PHD: Tensor, piece: RowPiece, grouped: Tensor, heads: HeadLayout) -> None:
    """Write a piece's values where its queries stand; the reverse of `_grouped`. In place: `side_PHD`."""
    by_head = grouped.view(heads.num_heads, -1, heads.size)
    side_PHD[piece.queries] = by_head.transpose(0, 1)


def _masked(scores: Tensor, bias_NM: Tensor, heads: HeadLayout) -> Tensor:
    """Add the bias to the scores of the last keys, axes [K, H / K N, M]. In place."""
    by_query = scores.view(heads.num_heads, -1, scores.shape[-1])
    by_query[..., -bias_NM.shape[1] :].add_(bias_NM)
    return scores
