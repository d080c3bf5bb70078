"""`key=value` arguments into a frozen dataclass: its fields are the keys, its annotations the types.

Owns the sentence a person reads when an argument is wrong. Which values make sense is checked by the dataclass
itself, which raises ArgumentError.
"""

import dataclasses
import difflib
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, get_type_hints

from evals.errors import ArgumentError

T = TypeVar("T")
_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_METADATA_HELP = "help"


def described(default: Any, text: str) -> Any:
    """Return a dataclass field with its default and the line `usage` prints for it."""
    return dataclasses.field(default=default, metadata={_METADATA_HELP: text})


def parse(kind: type[T], words: Sequence[str]) -> T:
    """Return an instance of the dataclass `kind`. Raises ArgumentError naming the key."""
    hints = get_type_hints(kind)
    values: dict[str, Any] = {}
    for word in words:
        key, sign, text = word.partition("=")
        if not sign:
            raise ArgumentError(f"{word!r} is not key=value")
        if key not in hints:
            raise ArgumentError(f"there is no {key!r}{_nearest(key, list(hints))}")
        if key in values:
            raise ArgumentError(f"{key} is given twice")
        values[key] = _value(key, hints[key], text)
    return kind(**values)


def usage(kind: type[Any], program: str) -> str:
    """Return what `help` prints: every key with its default and its meaning."""
    fields = dataclasses.fields(kind)
    width = max(len(f"{f.name}={_shown(f.default)}") for f in fields)
    lines = [f"  {f'{f.name}={_shown(f.default)}':<{width}}  {f.metadata.get(_METADATA_HELP, '')}" for f in fields]
    return "\n".join([f"usage: {program} [key=value ...]", "", *lines])


def _shown(default: Any) -> str:
    if isinstance(default, tuple):
        return ",".join(map(str, default))
    return str(default).lower() if isinstance(default, bool) else str(default)


def _value(key: str, wanted: Any, text: str) -> Any:
    read, what = _READERS[str(wanted) if wanted not in (int, float, bool, str) else wanted.__name__]
    try:
        return read(text)
    except (ValueError, KeyError):
        raise ArgumentError(f"{key} wants {what}, not {text!r}") from None


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


_READERS: dict[str, tuple[Callable[[str], Any], str]] = {
    "int": (int, "a whole number"),
    "float": (float, "a number"),
    "bool": (lambda text: _BOOLEANS[text.lower()], "true or false"),
    "str": (str, "a text"),
    "tuple[str, ...]": (_words, "words with commas between"),
    "tuple[int, ...]": (lambda text: tuple(int(word) for word in _words(text)), "whole numbers with commas between"),
}


def _nearest(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f" (did you mean {near[0]}?)" if near else f"; the keys are {', '.join(known)}"
