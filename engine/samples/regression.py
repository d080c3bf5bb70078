"""Regression answers: a person's earlier corrections and approved answers, measured before and after an update.

Owns the choice. Invariants: only this person's own answers; never more of them, nor longer ones, than the gate's
configuration allows, so that measuring costs an update a few milliseconds; undone lessons are not measured.
"""

from collections.abc import Sequence

from engine.config import GateConfig
from engine.prompts.builder import PromptBuilder
from engine.prompts.hindsight import Hindsight, teacher_messages
from engine.sample import Kind, Sample
from engine.samples.pairs import Views, pair, usable
from engine.samples.rollouts import Rollout
from engine.samples.spacing import spread
from storage.conversations import completions
from storage.database import Session
from storage.kinds import TAUGHT_AT_ONCE, FeedbackStatus
from storage.learning import feedback
from storage.learning import notes as note_rows
from storage.tables import Completion

_FEEDBACK = 100  # pieces looked through for corrections that hold
_ANSWERS = 32  # answers looked through for approved ones
_WISHES = 6

Watched = tuple[Kind, Completion]


def find(s: Session, user_id: str, config: GateConfig, *, without: str = "") -> list[Watched]:
    """Return answers whose correction was learned, spread over the person's history, and the newest approved ones.

    `without` is the id of the answer that the update is about. A half of the places is for approved answers.
    """
    gold = [
        c for c in completions.recent(s, user_id, _ANSWERS) if c.is_gold and _is_short(c, config) and c.id != without
    ]
    gold = gold[: config.num_watched // 2]
    ids = [i for i in _corrected(s, user_id) if i != without]
    earlier = [completions.get(s, user_id, i) for i in spread(ids, config.num_watched - len(gold))]
    return [*(("earlier", c) for c in earlier if _is_short(c, config)), *(("gold", c) for c in gold)]


def wished(s: Session, user_id: str, *, without: str) -> list[Completion]:
    """Return the answers about which the person's live notes were said, the newest few, but for one piece of feedback.

    They are for going through again, not for measuring.
    """
    said = [note.feedback_id for note in reversed(note_rows.live(s, user_id)) if note.feedback_id != without]
    ids = [feedback.get(s, feedback_id).completion_id for feedback_id in said if feedback_id is not None]
    answers = [completions.get(s, user_id, answer_id) for answer_id in dict.fromkeys(ids) if answer_id]
    return answers[:_WISHES]


def regression_samples(
    watched: Sequence[Watched], notes: Sequence[str], hindsight: Hindsight, prompts: PromptBuilder
) -> list[Sample]:
    """Return the answers as samples: the student without notes, the teacher with the notes and the new feedback."""
    rollouts = [(kind, Rollout.of(c)) for kind, c in watched]
    found = [(kind, r, Views(r.messages, teacher_messages(r.messages, notes, hindsight))) for kind, r in rollouts]
    return usable([pair(kind, rollout, seen, prompts) for kind, rollout, seen in found])


def _corrected(s: Session, user_id: str) -> list[str]:
    """Return the ids of the answers whose corrections hold, newest first, each once."""
    rows = feedback.history(s, user_id, _FEEDBACK)
    held = (r for r in rows if r.kind in TAUGHT_AT_ONCE and r.status == FeedbackStatus.LEARNED)
    return list(dict.fromkeys(r.completion_id for r in held if r.completion_id is not None))


def _is_short(completion: Completion, config: GateConfig) -> bool:
    num_tokens = len(completion.prompt_token_ids) + len(completion.completion_token_ids)
    return len(completion.completion_token_ids) > 0 and num_tokens <= config.max_watched_tokens
