"""CLaaS's own metrics of a preference: margin, compliance, capability, entropy ratio, self-ROUGE-L.

Pure. Source: the evaluation harness of CLaaS (its metrics "logprob", "compliance", "general" and "collapse", February
2026), by its definitions, in words, prompts and checks of our own:

    margin            mean over pairs of  sum log p(good example) - sum log p(bad example), in nats; told as the change
    compliance        mean score of the first three probes' greedy answers; the scores are those below
    capability        general after / general before; general = 0.5 [code that runs right] + 0.5 (share of 3 forms kept)
    entropy ratio     H after / H before; H = mean over positions of the entropy of the renormalised top 20 tokens
    self-ROUGE-L      mean pairwise F1 of three answers to one prompt at temperature 0.7

Its bounds: compliance at least 0.8, margin above 2 nats, capability above 0.9, entropy ratio above 0.6, self-ROUGE
below 0.85. Invariant: a ratio to a baseline of zero is not known, never infinite or one.
"""

import math
import re
import unicodedata
from collections.abc import Sequence
from statistics import fmean

from engine.gates.texts import self_rouge_l
from evals.wish_checks import num_sentences, num_words

MIN_COMPLIANCE, MIN_MARGIN, MIN_CAPABILITY, MIN_ENTROPY_RATIO, MAX_SELF_ROUGE = 0.8, 2.0, 0.9, 0.6, 0.85
NUM_PROBES, NUM_TOPS, NUM_SAMPLES, SAMPLE_TEMPERATURE = 3, 20, 3, 0.7
MIN_CONCISE_WORDS = 10  # fewer say nothing: a lone "." is no concise answer
FULL_SENTENCES, NO_SENTENCES = 3, 9  # a concise answer scores 1 up to the first, and 0 from the second on
NUM_ITEMS, NUM_SENTENCES, FORBIDDEN = 5, 3, "function"
_KURO = "kuro"
_NUMBERED = re.compile(r"^\s*\d+[.)]\s+\S", re.MULTILINE)
_EMOJI_RANGES = ((0x2600, 0x27BF), (0x1F1E6, 0x1F1FF), (0x1F300, 0x1FAFF), (0xFE0F, 0xFE0F))


def margin(pairs: Sequence[tuple[Sequence[float], Sequence[float]]]) -> float:
    """Return the mean over pairs of sum log p(good) - sum log p(bad), from their tokens' log-probabilities, in nats."""
    return fmean(sum(good) - sum(bad) for good, bad in pairs)


def entropy(tops: Sequence[Sequence[float]]) -> float:
    """Return the mean over positions of H = -sum p log p, p renormalised over a position's likeliest tokens, in nats.

    `tops` holds their log-probabilities; no positions: 0.
    """
    return fmean(_entropy(position) for position in tops) if tops else 0.0


def _entropy(logprobs: Sequence[float]) -> float:
    mass = math.fsum(math.exp(logprob) for logprob in logprobs)
    shares = (math.exp(logprob) / mass for logprob in logprobs)
    return -math.fsum(share * math.log(share) for share in shares if share > 0)


def ratio(after: float, before: float) -> float | None:
    """Return after / before, None where there was nothing before."""
    return after / before if before > 0 else None


def self_rouge(texts: Sequence[str]) -> float:
    """Return the mean pairwise ROUGE-L F1 of answers to one prompt, over words; 0 for fewer than two."""
    return self_rouge_l([text.lower().split() for text in texts]) or 0.0


def no_emoji(text: str) -> float:
    """Return 1 if no pictograph is in the text: no symbol of category So, and none of the emoji ranges."""
    return float(not any(_is_emoji(character) for character in text))


def _is_emoji(character: str) -> bool:
    is_in_range = any(low <= ord(character) <= high for low, high in _EMOJI_RANGES)
    return is_in_range or unicodedata.category(character) == "So"


def concise(text: str) -> float:
    """Return 1 for at most 3 sentences, 1 - (n - 3) / 6 for n, 0 from 9 on, and 0 for fewer than 10 words."""
    if num_words(text) < MIN_CONCISE_WORDS:
        return 0.0
    beyond = num_sentences(text) - FULL_SENTENCES
    return min(1.0, max(0.0, 1 - beyond / (NO_SENTENCES - FULL_SENTENCES)))


def identity(text: str) -> float:
    """Return 1 if the answer names Kuro."""
    return float(_KURO in text.lower())


def has_three_sentences(text: str) -> float:
    """Return 1 for exactly three sentences."""
    return float(num_sentences(text) == NUM_SENTENCES)


def has_five_items(text: str) -> float:
    """Return 1 for at least five numbered items."""
    return float(len(_NUMBERED.findall(text)) >= NUM_ITEMS)


def avoids_the_word(text: str) -> float:
    """Return 1 if an answer says something without the word that it is to avoid."""
    return float(bool(text.strip()) and re.search(rf"\b{FORBIDDEN}", text, re.IGNORECASE) is None)
