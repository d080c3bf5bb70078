"""A person's engine among those that live, by weighted rendezvous hashing.

Each engine has a score for each person; the highest is the person's. So only those move whose engine came or went
(Thaler and Ravishankar 1998), and an engine has people in proportion to its weight (Schindelhauer and Schomaker 2005).
"""

import math
from collections.abc import Mapping
from hashlib import blake2b

_SIZE = 8  # bytes of a hash


def ranked(user_id: str, weights: Mapping[str, float]) -> list[str]:
    """Return the engines in the order in which a person is theirs; `weights` by name, those of 0 never."""
    scores = {name: _score(name, user_id, weight) for name, weight in weights.items() if weight > 0}
    return sorted(scores, key=lambda name: (-scores[name], name))


def _score(name: str, user_id: str, weight: float) -> float:
    """Return -weight / ln(u), with u in (0, 1) from the pair's hash."""
    digest = blake2b(f"{name}\0{user_id}".encode(), digest_size=_SIZE).digest()
    return -weight / math.log((int.from_bytes(digest) + 0.5) / 2 ** (8 * _SIZE))
