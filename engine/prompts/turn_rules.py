"""The turns that a model's chat template allows, and conversations changed until they fit.

Some templates refuse a system message (Gemma 2) or leave it out, some demand that user and assistant take turns
(Gemma, Mistral), and some say who the model is where a conversation has no system message (Qwen2, SmolLM2).
Invariants: no message is lost: what stood in a system message stands at the head of the person's first turn, and
neighbours of one role become one turn; notes stand behind the template's own words and never in their place, so that
they change nothing but what they say; what a template takes as it is stays as it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from jinja2 import TemplateError

from engine.prompts.hindsight import is_notes_alone
from engine.requests import ChatMessage

_WORDS = ("Qwertz", "Asdf", "Yxcv")  # in no template


@dataclass(frozen=True)
class TurnRules:
    """The rules of one chat template."""

    takes_system: bool = True
    takes_repeats: bool = True  # two turns of one role, one behind the other
    own_system: str = ""  # the system message that the template itself begins with where there is none

    @classmethod
    def of(cls, tokenizer: Any) -> "TurnRules":
        """Try a template on conversations of two and three messages."""
        takes_system = _shows(tokenizer, "system", "user")
        own_system = _own_system(tokenizer) if takes_system else ""
        return cls(takes_system, _shows(tokenizer, "user", "user", "assistant"), own_system)

    def obeyed(self, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
        """Return the conversation as the template takes it."""
        obeyed = [dict(m) for m in messages]
        if self.own_system and obeyed and is_notes_alone(obeyed[0]):
            obeyed[0]["content"] = f"{self.own_system}\n\n{obeyed[0]['content']}"
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


def _own_system(tokenizer: Any) -> str:
    """Return what the template writes where a system message would stand; empty if it writes nothing there."""
    system, user, _ = _WORDS
    asked = [{"role": "user", "content": user}]
    alone = tokenizer.apply_chat_template(asked, tokenize=False)
    led = tokenizer.apply_chat_template([{"role": "system", "content": system}, *asked], tokenize=False)
    before, _, after = led.partition(system)
    is_there = alone.startswith(before) and alone.endswith(after) and len(alone) > len(before) + len(after)
    return str(alone[len(before) : len(alone) - len(after)]) if is_there else ""


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
