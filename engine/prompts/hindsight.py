"""The teacher's context: standing notes in the system prompt, hindsight in the last user message.

Pure text. The student sees the conversation alone; the teacher sees the same conversation with the person's
standing notes and with the feedback that came later (SDPO, arXiv 2601.20802, section 3; the wording for chats
follows arXiv 2603.12273). Several wordings exist so that published learning rules can be compared as they were
published; `heed` is the default.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.requests import ChatMessage

_NOTHING_ASKED = "Answer the question."
_NOTES_HEADER = "Notes about this person (the newest is last and wins):"

_FEEDBACK_WORDINGS = {
    "heed": "[Feedback of this person on an earlier attempt at this answer: {feedback}]",
    "sdpo": (
        "The following is feedback from your unsuccessful earlier attempt:\n{feedback}\n"
        "Correctly solve the original question."
    ),
    "claas": ("## Hindsight context\nThe following is a future user message. Use it to guide your answer:\n{feedback}"),
    "user_interactions": (
        "This is the reaction of the user to a previous, insufficient attempt. Use it to guide your answer: {feedback}"
    ),
}
_SOLUTION_WORDINGS = {
    "heed": "[This person wrote an earlier answer like this:\n{solution}]",
    "sdpo": "Correct solution:\n{solution}\nCorrectly solve the original question.",
}
_CONTEXT = "[Known about this work: {}]"
WORDINGS = tuple(_FEEDBACK_WORDINGS)


@dataclass(frozen=True)
class Hindsight:
    """The feedback that came after an answer: its words, a better answer if there is one, and what else was told."""

    feedback: str = ""
    solution: str = ""
    wording: str = "heed"
    context: tuple[str, ...] = ()  # of this answer alone, oldest first

    def block(self) -> str:
        """Return the text to add to the last user message; empty without feedback."""
        parts = [_CONTEXT.format(" ".join(self.context))] if self.context else []
        if self.solution:
            template = _SOLUTION_WORDINGS.get(self.wording, _SOLUTION_WORDINGS["heed"])
            parts.append(template.format(solution=self.solution))
        if self.feedback:
            parts.append(_FEEDBACK_WORDINGS[self.wording].format(feedback=self.feedback))
        return "\n".join(parts)


def solution_note(solution: str) -> str:
    """Return the standing note of a rewritten answer."""
    return f"Write like this: {solution}"


def notes_block(notes: Sequence[str]) -> str:
    """Return standing notes as text, oldest first; empty for none."""
    if not notes:
        return ""
    return "\n".join([_NOTES_HEADER, *(f"- {' '.join(note.split())}" for note in notes)])


def with_notes(messages: Sequence[ChatMessage], notes: Sequence[str]) -> list[ChatMessage]:
    """Return the conversation with the notes at the end of its system message, which is made if there is none."""
    block = notes_block(notes)
    if not block:
        return [dict(m) for m in messages]
    if messages and messages[0]["role"] == "system":
        system = {"role": "system", "content": f"{messages[0]['content']}\n\n{block}"}
        return [system, *(dict(m) for m in messages[1:])]
    return [{"role": "system", "content": block}, *(dict(m) for m in messages)]


def instructions(notes: Sequence[str]) -> str:
    """Return notes as instructions, a line each, without the marks of a list: a small model goes on with the list."""
    lines = [" ".join(note.split()) for note in notes]
    return f"Instruction: {lines[0]}" if len(lines) == 1 else "\n".join(["Instructions:", *lines])


def with_facts(messages: Sequence[ChatMessage], facts: Sequence[str], notes: Sequence[str] = ()) -> list[ChatMessage]:
    """Return the conversation with facts before the words of its last user message, and other notes before those.

    Each kind is a paragraph. Without facts or a user message, the notes stand where they usually do.
    """
    last = max((i for i, m in enumerate(messages) if m["role"] == "user"), default=None)
    if not facts or last is None:
        return with_notes(messages, notes)
    told = [dict(m) for m in messages]
    known = "\n".join(" ".join(fact.split()) for fact in facts)
    paragraphs = [*([instructions(notes)] if notes else []), known, told[last]["content"]]
    told[last]["content"] = "\n\n".join(paragraphs)
    return told


def without_notes(system: str) -> tuple[str, str]:
    """Return a system message's own words, and the notes behind them, a line each."""
    own, header, notes = system.rpartition(_NOTES_HEADER)
    return (own.rstrip(), notes.strip()) if header else (system, "")


def with_hindsight(messages: Sequence[ChatMessage], hindsight: Hindsight) -> list[ChatMessage]:
    """Return the conversation with the hindsight block at the end of its last user message.

    Raises:
        ValueError: the conversation has no user message.
    """
    block = hindsight.block()
    if not block:
        return [dict(m) for m in messages]
    last = max((i for i, m in enumerate(messages) if m["role"] == "user"), default=None)
    if last is None:
        raise ValueError("a conversation without a user message cannot carry hindsight")
    marked = [dict(m) for m in messages]
    marked[last]["content"] = f"{marked[last]['content']}\n\n{block}"
    return marked


def teacher_messages(messages: Sequence[ChatMessage], notes: Sequence[str], hindsight: Hindsight) -> list[ChatMessage]:
    """Return the teacher's conversation: the student's with the standing notes and the hindsight."""
    return with_notes(with_hindsight(messages, hindsight), notes)


def plain_messages(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return the conversation with a note that asks for nothing."""
    return with_notes(messages, [_NOTHING_ASKED])
