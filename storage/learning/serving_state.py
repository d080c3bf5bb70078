"""Serving states: active adapter version and standing notes, for many people at once."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlmodel import Session, and_, col, select

from storage.learning.notes import LIVE
from storage.tables import AdapterVersion, Note, User


@dataclass(frozen=True)
class ServingState:
    """One person's; no version: the base model answers."""

    version: AdapterVersion | None
    notes: list[Note] = field(default_factory=list)  # oldest first


def serving_states(s: Session, user_ids: Sequence[str]) -> list[ServingState | None]:
    """For each of these people, in their order; None where there is no such person. Two queries, however many."""
    chosen = and_(col(AdapterVersion.user_id) == User.id, col(AdapterVersion.number) == User.active_version)
    people = select(User.id, AdapterVersion).join(AdapterVersion, chosen, isouter=True)
    found = {user_id: ServingState(version) for user_id, version in s.exec(people.where(col(User.id).in_(user_ids)))}
    live = select(Note).where(col(Note.user_id).in_(user_ids), col(Note.state).in_(LIVE))
    for note in s.exec(live.order_by(col(Note.seq))):
        found[note.user_id].notes.append(note)
    return [found.get(user_id) for user_id in user_ids]
