"""A request's conversation as the model reads it: with the notes, and with the facts that its question calls up.

Invariant: a note is recorded with an answer once, however often its prompt says it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.config import EngineConfig
from engine.prompts.hindsight import with_facts, with_notes
from engine.requests import ChatMessage, GenerateRequest
from engine.samples import notes
from storage.kinds import NoteState
from storage.tables import Note


@dataclass(frozen=True)
class Told:
    """The messages of a prompt, and the notes in them as they are recorded with the answer."""

    messages: list[ChatMessage]
    notes: list[str]


def told(
    request: GenerateRequest, shown: Sequence[Note], live: Sequence[Note], config: EngineConfig, max_model_len: int
) -> Told:
    """Return the conversation of a request with the notes that are `shown` in it, oldest first. `live`: all that stand.

    A wide model finds a fact among the notes. A small one tells it where it stands right before the question, in the
    same message (ADR 47).
    """
    remark = [request.remark] if request.remark else []
    if not config.learn.facts_in_message:
        standing = [*notes.emphasised(shown, config.note, max_model_len), *remark]
        return Told(with_notes(request.messages, standing), list(dict.fromkeys(standing)))
    standing = [*(note.text for note in shown if note.state != NoteState.WHEN_ASKED), *remark]
    waiting = [note for note in shown if note.state == NoteState.WHEN_ASKED]
    facts = [note.text for note in notes.best_last(waiting, live, request.messages)]
    return Told(with_facts(request.messages, facts, standing), [*standing, *facts])
