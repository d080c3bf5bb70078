"""The language of a text, by its English name.

py3langid tells languages apart, pycountry names them. Invariant: no name is better than a wrong one, so short and
mixed texts and code have none.
"""

import re
from functools import cache

import pycountry
from py3langid.langid import MODEL_FILE, LanguageIdentifier

_LEAST_SURE = 0.5  # share of the probability that one of 139 languages has; most sentences of six words have it


def language_of(text: str) -> str:
    """Return the English name of a text's language, or "" if that is not sure.

    Blocking: the first call takes a second.
    """
    code, share = _identifier().classify(text)
    return _name(code) if share >= _LEAST_SURE else ""


def _name(code: str) -> str:
    """Return the name of a two-letter code without what stands in brackets behind it; "" for other codes."""
    found = pycountry.languages.get(alpha_2=code)
    return re.sub(r" \(.*\)$", "", found.name) if found else ""


@cache
def _identifier() -> LanguageIdentifier:
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
