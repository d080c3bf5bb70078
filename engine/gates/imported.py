"""The gate for an adapter that comes from elsewhere: no update measured it, so its answers to neutral prompts are read.

    strangeness  S = mean_i mean_t -log q(y_it), in nats per token

q is the base model, y_i the adapter's greedy answers to prompts that no lesson is about. A person's style costs a few
nats; tokens drawn at random from a vocabulary of V cost ln V and more. Pure: it only reads numbers.
"""

import math
from collections.abc import Sequence
from statistics import fmean

MAX_SHARE_OF_RANDOM = 0.7  # pocket model (ln V = 7.6): garbage of +-5, +-1 and +-0.3 has 7.5 to 15, its own answers 0.0


def strangeness(answers: Sequence[Sequence[float]]) -> float:
    """Return S in nats per token. `answers`: the base model's log-probability of each token, one list an answer.

    Infinite if no answer has a token, or a figure is no number.
    """
    means = [-fmean(logprobs) for logprobs in answers if logprobs]
    found = fmean(means) if means else math.inf
    return found if math.isfinite(found) else math.inf


def refusal(answers: Sequence[Sequence[float]], vocab_size: int) -> str:
    """Return the sentence in which an adapter is refused, empty if S < MAX_SHARE_OF_RANDOM ln V."""
    found, limit = strangeness(answers), MAX_SHARE_OF_RANDOM * math.log(vocab_size)
    if found < limit:
        return ""
    said = f"{found:.1f} nats per token, {limit:.1f} are allowed" if math.isfinite(found) else "it says nothing"
    return f"the adapter's answers to neutral prompts make no sense to the model ({said})"
