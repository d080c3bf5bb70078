"""People and the accounts they have on platforms.

One person may have several accounts; an account belongs to one person. Forgetting a person removes their rows from
every table in one transaction: storage.people.erasure does that together with what SQLite leaves behind.
"""

from typing import Any

from sqlalchemy import or_
from sqlmodel import Session, col, delete, select, update

from storage.errors import PersonNotFound
from storage.kinds import AccessState, FeedbackKind, NoteState
from storage.leases import Lease
from storage.tables import (
    Access,
    AdapterVersion,
    AdminView,
    AgentWork,
    BetterAnswer,
    Chat,
    Completion,
    Consent,
    Feedback,
    Identity,
    Inbox,
    MessageRole,
    Note,
    Outbox,
    Pairing,
    PlatformMessage,
    UpdateRun,
    User,
    WorkspaceNote,
    new_id,
)

_HOLDING = (
    NoteState.IN_PROMPT,
    NoteState.WHEN_ASKED,
    NoteState.LEARNING,
    NoteState.IN_WEIGHTS,
    NoteState.SUPERSEDED,
)
# In the order in which the references between them allow.
_TABLES_BY_USER = (
    AdminView,
    AgentWork,
    WorkspaceNote,
    Lease,
    Outbox,
    MessageRole,
    Consent,
    Feedback,
    Note,
    AdapterVersion,
    UpdateRun,
    BetterAnswer,
    Completion,
    Chat,
    Identity,
)


def resolve(
    s: Session, platform: str, account: str, *, display_name: str = "", is_learning: bool = False, user_id: str = ""
) -> User:
    """Return the person behind an account, made on the first meeting; `is_learning` and `user_id` count only then."""
    user = find(s, platform, account)
    if user is None:
        user = User(id=user_id or new_id(), display_name=display_name, is_learning=is_learning)
        s.add(user)
        s.flush()
        s.add(Identity(platform=platform, account=account, user_id=user.id))
    elif display_name:
        user.display_name = display_name
    return user


def find(s: Session, platform: str, account: str) -> User | None:
    """Return the person behind an account, None if no one has it."""
    identity = s.get(Identity, (platform, account))
    return s.get(User, identity.user_id) if identity else None


def get(s: Session, user_id: str) -> User:
    """Return a person. Raises PersonNotFound."""
    user = s.get(User, user_id)
    if user is None:
        raise PersonNotFound(f"no person {user_id!r}")
    return user


def identities(s: Session, user_id: str) -> list[Identity]:
    """Return the accounts of a person, by platform and account."""
    query = select(Identity).where(Identity.user_id == user_id)
    return list(s.exec(query.order_by(col(Identity.platform), col(Identity.account))))


def accounts(s: Session, platform: str) -> list[str]:
    """Everybody's accounts on a platform, by name: for what the operator may see, never for one person's request."""
    return list(s.exec(select(Identity.account).where(Identity.platform == platform).order_by(col(Identity.account))))


def set_learning(s: Session, user_id: str, is_learning: bool) -> User:
    """Turn learning on or off for a person. Raises PersonNotFound."""
    user = get(s, user_id)
    user.is_learning = is_learning
    return user


def set_persona(s: Session, user_id: str, persona: str | None) -> User:
    """Set the system prompt a person wants, None for the default. Raises PersonNotFound."""
    user = get(s, user_id)
    user.persona = persona
    return user


def set_lora_shape(s: Session, user_id: str, shape: dict[str, Any] | None) -> User:
    """Set the shape of a person's adapters made from zero, None for the setting's. Raises PersonNotFound."""
    user = get(s, user_id)
    user.lora_shape = shape
    return user


def forget(s: Session, user_id: str) -> bool:
    """Remove every row of a person; False if there is no such person.

    Platform updates keep their keys, without content: a late redelivery must not bring anything back. That an account
    was blocked stays: it is the operator's decision, and says nothing about the person but a number. So do API keys.
    """
    user = s.get(User, user_id)
    if user is None:
        return False
    _blank_inbox(s, user_id)
    _forget_access(s, user_id)
    own_completions = select(Completion.id).where(Completion.user_id == user_id)
    s.exec(delete(PlatformMessage).where(col(PlatformMessage.completion_id).in_(own_completions)))
    for table in _TABLES_BY_USER:
        s.exec(delete(table).where(col(table.user_id) == user_id))
    s.delete(user)
    return True


def unlearn(s: Session, user_id: str) -> None:
    """Remove what was learned from a person: feedback, the notes that came from it, versions, updates, better answers.

    Notes they wrote themselves stay, all in the prompt, and so do their conversations. Raises PersonNotFound.
    """
    user = get(s, user_id)
    user.active_version = 0
    of_user = (col(Feedback.user_id) == user_id, col(Feedback.kind) != FeedbackKind.NOTE)
    lessons = select(Feedback.id).where(*of_user)
    is_taught = or_(col(Note.feedback_id).in_(lessons), col(Note.feedback_id).is_(None))
    s.exec(delete(Note).where(col(Note.user_id) == user_id, is_taught))
    s.exec(delete(Feedback).where(*of_user))
    for table in (AdapterVersion, UpdateRun, BetterAnswer):
        s.exec(delete(table).where(col(table.user_id) == user_id))
    kept = (col(Note.user_id) == user_id, col(Note.state).in_(_HOLDING))
    s.exec(update(Note).where(*kept).values(state=NoteState.IN_PROMPT, learned_version=None, probe=None))
    s.exec(update(Completion).where(col(Completion.user_id) == user_id).values(is_gold=False, consolidated_by=None))


def _forget_access(s: Session, user_id: str) -> None:
    for identity in identities(s, user_id):
        own = (col(Access.platform) == identity.platform, col(Access.account) == identity.account)
        s.exec(delete(Access).where(*own, col(Access.state) != AccessState.BLOCKED))
        waits = (col(Pairing.platform) == identity.platform, col(Pairing.account) == identity.account)
        s.exec(delete(Pairing).where(*waits))


def _blank_inbox(s: Session, user_id: str) -> None:
    for identity in identities(s, user_id):
        sent_by_them = (col(Inbox.platform) == identity.platform, col(Inbox.account) == identity.account)
        s.exec(update(Inbox).where(*sent_by_them).values(payload={}, account="", chat_key="", is_done=True))
