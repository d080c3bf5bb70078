"""Hashed character n-grams and words of a text: what a probe sees beside a model's hidden states.

Small models know few languages; the letters of a text tell much of what it is. Invariant: the same text has the same
vector in every version of heed that reads a stored probe (CRC-32 of the n-gram's UTF-8).
"""

import re
import zlib
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float32]
WIDTH = 16384
SAME_WORDING = 0.4  # Jaccard index of character trigrams from which two texts count as one wording
_LONGEST = 5


def vectors(texts: Sequence[str]) -> Matrix:
    """Return a vector of length 1 for each text, axes [N, WIDTH]."""
    return np.stack([_vector(text) for text in texts])


def wordings(texts: Sequence[str]) -> list[int]:
    """Return a number for each text, the same for texts of nearly the same wording."""
    sets = [_trigrams(text) for text in texts]
    parent = list(range(len(texts)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for i, own in enumerate(sets):
        for j in range(i):
            if len(own & sets[j]) >= SAME_WORDING * len(own | sets[j]):
                parent[root(i)] = root(j)
    return [root(i) for i in range(len(texts))]


def _trigrams(text: str) -> frozenset[str]:
    plain = _plain(text)
    return frozenset(plain[i : i + 3] for i in range(len(plain) - 2))


def _vector(text: str) -> Matrix:
    counts = np.zeros(WIDTH, np.float32)
    for part in _parts(_plain(text)):
        number = zlib.crc32(part.encode())
        counts[number % WIDTH] += 1 if number >> 31 else -1
    damped = np.sign(counts) * np.log1p(np.abs(counts))
    return np.asarray(damped / max(float(np.linalg.norm(damped)), 1e-6), np.float32)


def _plain(text: str) -> str:
    """Return the text in lower case between blanks, every digit a zero."""
    return re.sub(r"\d+", "0", f" {' '.join(text.casefold().split())} ")


def _parts(plain: str) -> Iterator[str]:
    """Yield character n-grams of one to five letters, words and pairs of words."""
    for size in range(1, _LONGEST + 1):
        yield from (plain[i : i + size] for i in range(len(plain) - size + 1))
    words = re.findall(r"\w+|[^\w\s]", plain)
    yield from (f"w:{word}" for word in words)
    yield from (f"b:{first} {second}" for first, second in zip(["<", *words], [*words, ">"], strict=True))
