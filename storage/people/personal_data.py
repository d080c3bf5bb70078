"""Everything heed holds about one person, table by table: what an export is made of.

Complete by the same rule as erasure: every table about a person has a `user_id`, directly or through what it points at.
"""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import tuple_
from sqlmodel import Session, SQLModel, col, select

from storage.leases import Lease
from storage.tables import (
    Access,
    AdapterVersion,
    AdminView,
    AgentWork,
    ApiKey,
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
    WorkspaceNote,
)

Rows = list[dict[str, Any]]

_BY_USER: dict[str, Any] = {
    "identities": Identity,
    "consents": Consent,
    "chats": Chat,
    "completions": Completion,
    "feedback": Feedback,
    "notes": Note,
    "adapter_versions": AdapterVersion,
    "updates": UpdateRun,
    "better_answers": BetterAnswer,
    "message_roles": MessageRole,
    "agent_sessions": AgentWork,
    "notes_about_workspaces": WorkspaceNote,
    "leases": Lease,
    "waiting_to_be_shown": Outbox,
    "looked_at_by_the_operator": AdminView,
}
_BY_ACCOUNT: dict[str, Any] = {"waiting_to_be_read": Inbox, "access": Access, "pairing": Pairing}


def everything(s: Session, user_id: str) -> dict[str, Rows]:
    """Every row about a person but their own, by table; the oldest first where there is an order."""
    tables = {name: _rows(s, table, col(table.user_id) == user_id) for name, table in _BY_USER.items()}
    own = select(Completion.id).where(Completion.user_id == user_id)
    tables["platform_messages"] = _rows(s, PlatformMessage, col(PlatformMessage.completion_id).in_(own))
    accounts = select(Identity.platform, Identity.account).where(Identity.user_id == user_id)
    for name, table in _BY_ACCOUNT.items():
        tables[name] = _rows(s, table, tuple_(col(table.platform), col(table.account)).in_(accounts))
    on_http = select(Identity.account).where(Identity.user_id == user_id, Identity.platform == "http")
    keys = _rows(s, ApiKey, col(ApiKey.account).in_(on_http))
    tables["api_keys"] = [{name: value for name, value in key.items() if name != "sha256"} for key in keys]
    return tables


def _rows(s: Session, table: type[SQLModel], condition: Any) -> Rows:
    found: Iterable[SQLModel] = s.exec(select(table).where(condition).order_by(*table.__table__.primary_key))  # type: ignore[attr-defined]
    return [row.model_dump() for row in found]
