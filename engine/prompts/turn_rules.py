"""The turns that a model's chat template allows, and conversations changed until they fit.

Some templates refuse a system message (Gemma 2) or leave it out, and some demand that user and assistant take turns
(Gemma, Mistral). Invariants: no message is lost: what stood in a system message stands at the head of the person's
first turn, and neighbours of one role become one turn; what a template takes as it is stays as it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from jinja2 import TemplateError

from engine.requests import ChatMessage

_WORDS = ("Qwertz", "Asdf", "Yxcv")  # in no template


@dataclass(frozen=True)
class TurnRules:
    """The rules of one chat template."""

    takes_system: bool = True
    takes_repeats: bool = True  # two turns of one role, one behind the other

    @classmethod
    def of(cls, tokenizer: Any) -> "TurnRules":
        """Try a template on conversations of two and three messages."""
        return cls(_shows(tokenizer, "system", "user"), _shows(tokenizer, "user", "user", "assistant"))

    def obeyed(self, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
        """Return the conversation as the template takes it."""
        obeyed = [dict(m) for m in messages]
        if not self.takes_system:
            obeyed = _without_system(obeyed)
        if not self.takes_repeats:
            obeyed = _merged(obeyed)
        return obeyed


def _shows(tokenizer: Any, *roles: str) -> bool:
    """Return True if the template takes messages of these roles and shows the text of each."""
    messages = [{"role": role, "content": word} for role, word in zip(roles, _WORDS, strict=False)]
    try:
        text = tokenizer.apply_chat_template(messages, tokenize=False)
    except (TemplateError, ValueError):  # ValueError: there is no template
        return False
    return all(m["content"] in text for m in messages)


def _without_system(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Put the text of each system message before that of the next user message; a last one becomes a user's."""
    kept: list[ChatMessage] = []
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "system":
            waiting.append(message["content"])
            continue
        if message["role"] == "user" and waiting:
            message, waiting = message | {"content": "\n\n".join([*waiting, message["content"]])}, []
        kept.append(message)
    return [*kept, {"role": "user", "content": "\n\n".join(waiting)}] if waiting else kept


def _merged(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Make one turn of neighbours of one role."""
    groups = (list(group) for _, group in groupby(messages, key=lambda m: m["role"]))
    return [group[0] | {"content": "\n\n".join(m["content"] for m in group)} for group in groups]
