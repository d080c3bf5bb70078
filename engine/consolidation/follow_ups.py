"""Ordinary next messages as hindsight: the message after an answer, shown to the teacher of that answer.

Owns the choice (after arXiv 2603.12273, which trains on every next message; here it takes more). Invariants: only of
people who allow it (`storage.people.consent`), only in consolidations, only on answers that no one said anything about;
a next message that moves the teacher less than `follow_up_gap` trains nothing and is looked at once.
"""

from dataclasses import replace

from engine.config import ConsolidationConfig
from engine.consolidation.material import Material, Signal
from engine.gates.texts import can_tell_names, entities
from engine.prompts.hindsight import Hindsight
from engine.samples.spacing import spread
from storage.database import Session
from storage.learning import signals
from storage.people import consent
from storage.tables import Completion


def with_follow_ups(s: Session, user_id: str, material: Material, config: ConsolidationConfig) -> Material:
    """Return the material with next messages, if the person allows it.

    Messages that find no place stay new; those about something else are taken in and not taught.
    """
    if not consent.allows_follow_ups(s, user_id):
        return material
    taught = {signal.completion.id for signal in (*material.new, *material.earlier, *material.weak)}
    found = [(answer, text) for answer, text in signals.followed(s, user_id) if answer.id not in taught]
    about = [pair for pair in found if is_about(*pair)]
    chosen = spread(about, config.max_follow_ups)
    placed = {answer.id for answer, _ in chosen}
    seen = [answer.id for answer, text in found if answer.id in placed or not is_about(answer, text)]
    weak = [
        Signal(None, a, Hindsight(text), most=config.follow_up_weight, least=config.follow_up_gap) for a, text in chosen
    ]
    return replace(material, weak=[*material.weak, *weak], completion_ids=[*material.completion_ids, *seen])


def is_about(answer: Completion, text: str) -> bool:
    """Return True if a next message can be about the answer. One with names or numbers of its own is a new question."""
    has_names = can_tell_names(answer.text) and can_tell_names(text)
    return entities(text, has_names=has_names) <= entities(answer.text, has_names=has_names)
