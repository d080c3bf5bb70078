"""The turns that a model's chat template allows, and conversations changed until they fit.

Some templates refuse a system message (Gemma 2) or leave it out, and some demand that user and assistant take turns
and that the person begins (Gemma, Mistral). Notes stand behind the newest question, but for a model whose tokenizer
says that it was trained with them in the system message (the pocket model): small models follow what they read last,
and a template that begins with a system message of its own (SmolLM2, Qwen2) keeps it. Invariants: no message is lost:
what stood in a system message stands at the head of the person's first turn, neighbours of one role become one turn,
and an answer that nothing came before gets an empty turn of the person's; what a template takes as it is stays as it
is.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from jinja2 import TemplateError

from engine.errors import ModelUnsuitable
from engine.prompts.hindsight import instructions, without_notes
from engine.requests import ChatMessage

NOTES_IN_SYSTEM = "notes_in_system"  # a tokenizer's setting
# What the code of a template may raise; ValueError also where there is no template.
TEMPLATE_ERRORS = (TemplateError, ValueError, TypeError, LookupError, AttributeError)
_WORDS = ("Qwertz", "Asdf", "Yxcv")  # in no template


@dataclass(frozen=True)
class TurnRules:
    """The rules of one chat template."""

    takes_system: bool = True
    takes_repeats: bool = True  # two turns of one role, one behind the other
    takes_answer_first: bool = True  # a conversation that begins with the assistant
    has_notes_in_system: bool = False

    @classmethod
    def of(cls, tokenizer: Any) -> "TurnRules":
        """Try a template on conversations of two and three messages."""
        return cls(
            _shows(tokenizer, "system", "user"),
            _shows(tokenizer, "user", "user", "assistant"),
            _shows(tokenizer, "assistant", "user"),
            bool(tokenizer.init_kwargs.get(NOTES_IN_SYSTEM)),
        )

    def obeyed(self, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
        """Return the conversation as the template takes it."""
        obeyed = [dict(m) for m in messages]
        if not self.has_notes_in_system:
            obeyed = _noted_last(obeyed)
        if not self.takes_answer_first:
            obeyed = _begun_by_person(obeyed)
        if not self.takes_system:
            obeyed = _without_system(obeyed)
        if not self.takes_repeats:
            obeyed = _merged(obeyed)
        return obeyed


def require_template(tokenizer: Any, folder: Path) -> None:
    """Raise ModelUnsuitable if the chat template of the model in `folder` cannot even write one question."""
    try:
        tokenizer.apply_chat_template([{"role": "user", "content": _WORDS[0]}], tokenize=False)
    except TEMPLATE_ERRORS as error:
        raise ModelUnsuitable(
            f"The chat template of the model in {folder} cannot be used ({error}). Fetch the model again, put a "
            "working chat_template.jinja into the folder, or set HEED_MODEL to another."
        ) from error


def _shows(tokenizer: Any, *roles: str) -> bool:
    """Return True if the template takes messages of these roles and shows the text of each."""
    messages = [{"role": role, "content": word} for role, word in zip(roles, _WORDS, strict=False)]
    try:
        text = tokenizer.apply_chat_template(messages, tokenize=False)
    except TEMPLATE_ERRORS:
        return False
    return all(m["content"] in text for m in messages)


def _noted_last(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Move the notes from the system message, which goes if nothing else is in it, behind the newest question."""
    own, notes = without_notes(messages[0]["content"]) if messages and messages[0]["role"] == "system" else ("", "")
    newest = max((place for place, message in enumerate(messages) if message["role"] == "user"), default=None)
    if not notes or newest is None:
        return messages
    question = messages[newest]["content"]
    lines = [line.removeprefix("- ") for line in notes.splitlines()]
    noted = messages[newest] | {"content": f"{question}\n\n{instructions(lines)}"}
    system = [{"role": "system", "content": own}] if own else []
    return [*system, *messages[1:newest], noted, *messages[newest + 1 :]]


def _begun_by_person(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Put an empty turn of the person's before an answer that no turn came before."""
    first = next((place for place, message in enumerate(messages) if message["role"] != "system"), None)
    if first is None or messages[first]["role"] == "user":
        return messages
    return [*messages[:first], {"role": "user", "content": ""}, *messages[first:]]


def _without_system(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Put the text of each system message before that of the next user message; a last one becomes a user's."""
    kept: list[ChatMessage] = []
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "system":
            waiting.append(message["content"])
            continue
        if message["role"] == "user" and waiting:
            message, waiting = message | {"content": _joined([*waiting, message["content"]])}, []
        kept.append(message)
    return [*kept, {"role": "user", "content": _joined(waiting)}] if waiting else kept


def _merged(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Make one turn of neighbours of one role."""
    groups = (list(group) for _, group in groupby(messages, key=lambda m: m["role"]))
    return [group[0] | {"content": _joined(m["content"] for m in group)} for group in groups]


def _joined(texts: Iterable[str]) -> str:
    """Return texts as paragraphs of one turn, without those that are empty."""
    return "\n\n".join(text for text in texts if text)
