"""Everything one consolidation knows of a person, read at one moment in one transaction.

Owns the reading and nothing else: `engine.consolidation.material` chooses, and the consolidator trains and records.
Invariant: only this person's own rows.
"""

from dataclasses import dataclass

from engine.config import EngineConfig
from engine.consolidation import approved_answers, better_answers, material
from engine.consolidation.better_answers import Graded
from engine.consolidation.material import Material
from engine.samples import regression
from engine.samples.regression import Watched
from storage.conversations import completions
from storage.database import Session
from storage.learning import notes, versions
from storage.people import people
from storage.tables import AdapterVersion, Completion, Note, User

OWN_PROMPTS = 32  # newest answers looked at for a person's own prompts


@dataclass(frozen=True)
class Snapshot:
    """One person at the moment a consolidation begins."""

    user: User
    version: AdapterVersion | None  # the active one; None: the base model answers
    notes: list[Note]  # that stand, oldest first
    facts: set[str]  # ids of those that were surely read as facts
    material: Material  # what is new, and what is rehearsed beside it
    regression: list[Watched]  # answers that must not get worse
    approved: list[Completion]  # approved answers short enough to be written again
    recent: list[Completion]  # newest first
    newest_better_s: float | None  # when the newest better answer was written, UTC seconds
    graded: Graded  # answers that a teacher may write better


def take(s: Session, user_id: str, config: EngineConfig) -> Snapshot:
    """Read everything at once. Raises PersonNotFound."""
    user = people.get(s, user_id)
    return Snapshot(
        user,
        versions.get(s, user_id, user.active_version) if user.active_version else None,
        notes.live(s, user_id),
        notes.facts(s, user_id),
        _material(s, user, config),
        regression.find(s, user_id, config.gate),
        approved_answers.approved(s, user_id, config.sleep.num_gold, config.gate),
        completions.recent(s, user_id, OWN_PROMPTS),
        better_answers.newest_s(s, user_id),
        better_answers.look_at(s, user_id, config),
    )


def _material(s: Session, user: User, config: EngineConfig) -> Material:
    found = material.gather(s, user.id, config.sleep)
    if not user.is_learning:  # then the adapter can only be made again, from what was learned while they let heed learn
        return found.lessons_only
    found = better_answers.with_better_answers(s, user.id, found, config)
    return material.with_follow_ups(s, user.id, found, config.sleep)
