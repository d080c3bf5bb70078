"""The sampling of answers of which nothing else was asked: the operator's settings before the model's own wishes."""

from dataclasses import replace
from typing import Any

from bot.config import ChatSettings
from engine.requests import Sampling


def resolved(chat: ChatSettings, own: Sampling) -> Sampling:
    """Return the sampling in force: what the settings say, and for the rest what the model's own files say."""
    chosen: dict[str, Any] = {"temperature": chat.temperature, "top_p": chat.top_p, "max_tokens": chat.max_tokens}
    return replace(own, **{name: value for name, value in chosen.items() if value is not None})


def in_words(sampling: Sampling) -> str:
    """Return a sampling as a line: "temperature 0.6, top_p 0.95, top_k 20"."""
    words = [f"temperature {sampling.temperature:g}" if sampling.temperature else "the likeliest word each time"]
    plain = Sampling()
    for name in ("top_p", "top_k", "min_p") if sampling.temperature else ():
        value = getattr(sampling, name)
        words += [f"{name} {value:g}"] if value != getattr(plain, name) else []
    if sampling.repetition_penalty != plain.repetition_penalty:
        words.append(f"repetition_penalty {sampling.repetition_penalty:g}")
    return ", ".join(words)
