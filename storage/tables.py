"""The tables of heed, as SQLModel classes.

Owns the shape of what is stored; repositories (one module per noun beside this one) own every query.
Invariants: ids are our own random hex strings, never a platform's; times are UTC seconds as floats, used
for display only (order always comes from `seq` columns); nothing here is re-tokenised from text: token ids
are stored as they were generated. Every table about a person has a `user_id`, directly or through the
completion it points at, so that erasure can find it. A change here needs a migration (a test compares them).
"""

import json
import time
import uuid
from typing import Any, TypeVar

from sqlalchemy import JSON, Column, Index, UniqueConstraint
from sqlalchemy.orm.attributes import manager_of_class
from sqlmodel import Field, SQLModel

from storage.errors import NotStorable
from storage.kinds import FeedbackStatus, NoteState, OutboxState, VersionState

# Named constraints, so that a later migration can alter them on every database.
SQLModel.metadata.naming_convention = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}
# Without it SQLite gives the highest number again once its row is deleted; PostgreSQL never does.
_NEVER_REUSED = {"sqlite_autoincrement": True}

ADAPTERS_FOLDER = "adapters"  # below the data directory: adapters/<user id>/<version number>

Row = TypeVar("Row", bound=SQLModel)


def copy_of(row: Row) -> Row:
    """Return a new row with the same values, known to no session.

    Repositories store such a copy and leave the row they are given alone: after a write that failed at its commit
    SQLAlchemy takes that row for stored, and adding it again would store nothing.
    """
    copy: Row = manager_of_class(type(row)).new_instance()  # without the checks that `row` has been through
    vars(copy).update({name: value for name, value in vars(row).items() if name in type(row).model_fields})
    return copy


def to_json(value: Any) -> str:
    """Strict JSON for the JSON columns. Raises NotStorable for NaN and infinities, which PostgreSQL does not take."""
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError as error:
        raise NotStorable(str(error)) from error


def new_id() -> str:
    """Return a fresh random identifier, 32 hex digits."""
    return uuid.uuid4().hex


def now_s() -> float:
    """Seconds since the epoch, for display."""
    return time.time()


def _json(*, nullable: bool = False) -> Any:
    # none_as_null: None is SQL's NULL, so that a forgotten required value is refused and not kept as JSON's null
    return Field(default=None if nullable else ..., sa_column=Column(JSON(none_as_null=True), nullable=nullable))


class User(SQLModel, table=True):
    """A person. `active_version` 0 means the zero adapter (the base model)."""

    id: str = Field(default_factory=new_id, primary_key=True)
    created_at: float = Field(default_factory=now_s)
    display_name: str = ""
    is_learning: bool = False
    active_version: int = 0
    last_version: int = 0  # the highest version number ever given out: numbers are never reused
    persona: str | None = None
    lora_shape: dict[str, Any] | None = _json(nullable=True)  # LearnConfig's, of adapters made from zero; None: as set


class Identity(SQLModel, table=True):
    """An account on a platform that is this person: ("http", "ana"), ("telegram", "12345")."""

    platform: str = Field(primary_key=True)
    account: str = Field(primary_key=True)
    user_id: str = Field(foreign_key="user.id", index=True)


class Chat(SQLModel, table=True):
    """One conversation of one person on one platform."""

    __table_args__ = (UniqueConstraint("platform", "external_id", "user_id"),)
    id: str = Field(default_factory=new_id, primary_key=True)
    user_id: str = Field(foreign_key="user.id", index=True)
    platform: str
    external_id: str
    created_at: float = Field(default_factory=now_s)
    reset_seq: int = 0  # turns with seq <= reset_seq are not context any more (/reset)
    title: str = ""  # the person's own; empty: the first question stands for it


class Completion(SQLModel, table=True):
    """One generated answer with everything a later update needs."""

    # The index has what a list of conversations needs: counting them in the table itself reads every answer.
    __table_args__ = (Index(None, "chat_id", "user_id"), _NEVER_REUSED)
    seq: int | None = Field(default=None, primary_key=True)  # order of creation
    id: str = Field(default_factory=lambda: f"cmpl-{new_id()}", unique=True, index=True)
    user_id: str = Field(foreign_key="user.id", index=True)
    chat_id: str | None = Field(default=None, foreign_key="chat.id", index=True)
    retry_of: str | None = Field(default=None, index=True)  # completion id this one answers again
    created_at: float = Field(default_factory=now_s, index=True)
    messages: list[dict[str, Any]] = _json()  # the conversation as the student sees it: no notes, no feedback
    notes: list[str] = _json()  # standing notes that were in the prompt, oldest first
    choice_index: int = 0
    prompt_token_ids: list[int] = _json()
    completion_token_ids: list[int] = _json()  # EOS included when finish_reason is "stop" or "given"
    logprobs: list[float] = _json()  # behaviour log-probabilities, one per completion token
    text: str = ""
    adapter_version: int = 0
    sampling: dict[str, Any] = _json()
    finish_reason: str = ""
    num_cached_tokens: int = 0
    time_to_first_token_s: float = 0.0
    duration_s: float = 0.0
    is_gold: bool = False  # approved by the person
    consolidated_by: str | None = None  # the update that this answer, dropped for another one, was a signal of


class PlatformMessage(SQLModel, table=True):
    """The completion that a message on a platform shows."""

    __tablename__ = "platform_message"
    platform: str = Field(primary_key=True)
    chat_external_id: str = Field(primary_key=True)
    message_id: str = Field(primary_key=True)
    completion_id: str = Field(foreign_key="completion.id", index=True)


class MessageRole(SQLModel, table=True):
    """The role of a message on a platform that is not an answer itself (see message_roles)."""

    __tablename__ = "message_role"
    platform: str = Field(primary_key=True)
    chat_external_id: str = Field(primary_key=True)
    message_id: str = Field(primary_key=True)
    user_id: str = Field(foreign_key="user.id", index=True)
    role: str
    about: str = ""  # the id of the completion, feedback or version it is about


class Feedback(SQLModel, table=True):
    """One piece of feedback; unique on the update of that person that brought it."""

    __table_args__ = (UniqueConstraint("user_id", "idempotency_key"), _NEVER_REUSED)
    seq: int | None = Field(default=None, primary_key=True)
    id: str = Field(default_factory=lambda: f"fb-{new_id()}", unique=True, index=True)
    idempotency_key: str = Field(default_factory=new_id)
    user_id: str = Field(foreign_key="user.id", index=True)
    completion_id: str | None = Field(default=None, index=True)
    kind: str
    text: str = ""
    value: str = ""  # a reaction's emoji, or "+1" / "-1"
    created_at: float = Field(default_factory=now_s, index=True)
    status: str = Field(default=FeedbackStatus.PENDING, index=True)
    attempts: int = 0
    reason: str = ""  # why it was kept, rejected or failed, in the person's words
    training: dict[str, Any] | None = _json(nullable=True)  # request-level overrides of LearnConfig
    consolidated_by: str | None = None  # the consolidation that took it in: new no more, and never trained twice
    took_back: int | None = None  # the version that this complaint took back
    scope: str = ""  # the person's own choice: storage.kinds.Scope; empty if they made none
    reading: str = ""  # what heed took it for: storage.kinds.Meaning; empty if it was not read
    reading_margin: float | None = None  # how sure the probe was, 0..1; None if there is no probe for the model
    is_unsure: bool = False  # it was read, and heed was not sure
    context: list[str] | None = _json(nullable=True)  # told with it; the teacher alone reads it, at this answer


class Note(SQLModel, table=True):
    """A standing note; the newest wins where two disagree (order: seq)."""

    __table_args__ = (_NEVER_REUSED,)
    seq: int | None = Field(default=None, primary_key=True)
    id: str = Field(default_factory=lambda: f"note-{new_id()}", unique=True, index=True)
    user_id: str = Field(foreign_key="user.id", index=True)
    feedback_id: str | None = Field(default=None, index=True)
    text: str
    state: str = Field(default=NoteState.IN_PROMPT, index=True)
    created_at: float = Field(default_factory=now_s)
    learned_version: int | None = None
    probe: float | None = None  # last probe result: share of the note's effect held by the weights, 0..1
    num_tokens: int = 0  # what it costs in the prompt
    questions: list[str] | None = _json(nullable=True)  # what it answers; empty: it shows unasked; None: not looked at


class AdapterVersion(SQLModel, table=True):
    """One immutable adapter version. `lora_int_id` is unique over all people and never reused."""

    __tablename__ = "adapter_version"
    __table_args__ = (UniqueConstraint("user_id", "number"), _NEVER_REUSED)
    lora_int_id: int | None = Field(default=None, primary_key=True)
    user_id: str = Field(foreign_key="user.id", index=True)
    number: int
    parent: int = 0  # 0: the zero adapter
    path: str  # relative to the data directory
    sha256: str = ""
    size_bytes: int = 0
    base_model: str = ""
    state: str = VersionState.CANDIDATE
    feedback_id: str | None = None  # what taught it
    update_id: str | None = None
    created_at: float = Field(default_factory=now_s)


class BetterAnswer(SQLModel, table=True):
    """One try of a teacher at an answer that was not good; the accepted ones are taught."""

    __tablename__ = "better_answer"
    __table_args__ = (_NEVER_REUSED,)
    seq: int | None = Field(default=None, primary_key=True)
    id: str = Field(default_factory=lambda: f"better-{new_id()}", unique=True, index=True)
    user_id: str = Field(foreign_key="user.id", index=True)
    completion_id: str = Field(index=True)  # the answer it is better than
    text: str = ""
    source: str  # who wrote it
    notes: list[str] = _json()  # the standing notes it was written and checked with
    preserved: float | None = None  # EPR: share of the answer's entities that it keeps
    state: str
    reason: str = ""  # why it was not accepted
    created_at: float = Field(default_factory=now_s)
    consolidated_by: str | None = None  # the consolidation that took it in


class UpdateRun(SQLModel, table=True):
    """One update: what ran, how long, what it measured, what the gate said."""

    __tablename__ = "update_run"
    __table_args__ = (_NEVER_REUSED,)
    seq: int | None = Field(default=None, primary_key=True)
    id: str = Field(default_factory=lambda: f"upd-{new_id()}", unique=True, index=True)
    user_id: str = Field(foreign_key="user.id", index=True)
    feedback_id: str | None = Field(default=None, index=True)
    kind: str = "correction"
    status: str = "running"  # running | accepted | rejected | skipped | failed | postponed | parked
    started_at: float = Field(default_factory=now_s, index=True)
    duration_ms: float = 0.0
    phases_ms: dict[str, float] | None = _json(nullable=True)
    steps: int = 0
    divergence_before: float | None = None  # nats per token
    divergence_after: float | None = None
    gate: dict[str, Any] | None = _json(nullable=True)
    heat: list[Any] | None = _json(nullable=True)  # [[token text, log p_teacher - log p_student], ...]
    curves: dict[str, list[float]] | None = _json(nullable=True)  # per step: "loss", "divergence" (nats per token)
    notes: list[str] | None = _json(nullable=True)  # the standing notes in the teacher's view, oldest first
    parent_version: int = 0
    version: int | None = None
    error: str = ""


class Consent(SQLModel, table=True):
    """One step of a person's consent to learning: asked, yes, no, withdrawn. The newest counts (order: seq)."""

    __table_args__ = (_NEVER_REUSED,)
    seq: int | None = Field(default=None, primary_key=True)
    user_id: str = Field(foreign_key="user.id", index=True)
    choice: str
    wording: str  # the version of the text that was shown
    platform: str
    place: str  # where it was shown, by the platform's own id
    created_at: float = Field(default_factory=now_s)


class Access(SQLModel, table=True):
    """The operator's decision about an account, also if heed does not know the person behind it."""

    platform: str = Field(primary_key=True)
    account: str = Field(primary_key=True)
    state: str
    decided_by: str  # an admin's account, or "operator"
    created_at: float = Field(default_factory=now_s)


class Pairing(SQLModel, table=True):
    """A code that was shown to an account no one has let in yet."""

    __table_args__ = (UniqueConstraint("platform", "account"),)
    code: str = Field(primary_key=True)
    platform: str
    account: str
    display_name: str = ""
    place: str  # where to tell them that they are in
    created_at: float = Field(default_factory=now_s)
    expires_at: float


class ApiKey(SQLModel, table=True):
    """An API key of a person, by its digest. A quota is None if there is none."""

    __tablename__ = "api_key"
    id: str = Field(default_factory=lambda: f"key-{new_id()[:12]}", primary_key=True)
    sha256: str = Field(unique=True, index=True)
    account: str = Field(index=True)  # whose it is: the person's account on the platform "http"
    scopes: list[str] = _json()
    messages_per_day: int | None = None
    updates_per_day: int | None = None
    created_at: float = Field(default_factory=now_s)
    last_used_at: float | None = None  # to the minute
    revoked_at: float | None = None
    counted_on: str = ""  # the UTC day of the two counts
    num_messages: int = 0
    num_updates: int = 0


class AdminView(SQLModel, table=True):
    """One look of the operator at what a person wrote."""

    __tablename__ = "admin_view"
    __table_args__ = (_NEVER_REUSED,)
    seq: int | None = Field(default=None, primary_key=True)
    user_id: str = Field(foreign_key="user.id", index=True)
    page: str
    about: str = ""  # the id of the conversation, update or version that was shown
    created_at: float = Field(default_factory=now_s)


class EvalRun(SQLModel, table=True):
    """One run of the evaluation harness."""

    __tablename__ = "eval_run"
    id: str = Field(default_factory=new_id, primary_key=True)
    created_at: float = Field(default_factory=now_s)
    config: dict[str, Any] = _json()
    summary: dict[str, Any] | None = _json(nullable=True)


class AgentWork(SQLModel, table=True):
    """A session of an agent: what was said and done in one workspace, and what waits there for its person."""

    __tablename__ = "agent_work"
    __table_args__ = (_NEVER_REUSED,)
    seq: int | None = Field(default=None, primary_key=True)
    id: str = Field(default_factory=lambda: f"agent-{new_id()}", unique=True, index=True)
    user_id: str = Field(foreign_key="user.id", index=True)
    workspace: str  # the name of a folder that the operator allows; empty: the person's own scratch folder
    place: str = Field(default="", index=True)  # the chat it is worked on in, "telegram/11"; empty: none
    state: dict[str, Any] = _json()
    created_at: float = Field(default_factory=now_s)


class WorkspaceNote(SQLModel, table=True):
    """A note about a workspace: an agent is told it in each session that the person has there, and nowhere else."""

    __tablename__ = "workspace_note"
    __table_args__ = (_NEVER_REUSED,)
    seq: int | None = Field(default=None, primary_key=True)
    user_id: str = Field(foreign_key="user.id", index=True)
    workspace: str  # as in AgentWork; the way of a folder for an agent in a terminal
    text: str
    created_at: float = Field(default_factory=now_s)


class Inbox(SQLModel, table=True):
    """A platform update, committed before it is acknowledged. Once done it keeps its key and no content."""

    __table_args__ = (UniqueConstraint("platform", "bot_id", "update_id"), _NEVER_REUSED)
    seq: int | None = Field(default=None, primary_key=True)
    platform: str
    bot_id: str
    update_id: str
    account: str = Field(default="", index=True)  # who sent it, as Identity.account: erasure needs it
    chat_key: str = Field(index=True)
    server: str = Field(default="", sa_column_kwargs={"server_default": ""})  # of Discord's, where it happened on one
    payload: dict[str, Any] = _json()
    received_at: float = Field(default_factory=now_s)
    is_done: bool = Field(default=False, index=True)
    attempts: int = 0


class Outbox(SQLModel, table=True):
    """Something to show on a platform. Once shown or given up it keeps its id and no content."""

    __table_args__ = (_NEVER_REUSED,)
    seq: int | None = Field(default=None, primary_key=True)
    id: str = Field(default_factory=new_id, unique=True)
    platform: str
    user_id: str | None = Field(default=None, foreign_key="user.id", index=True)  # None: not told to one person
    chat_key: str = Field(index=True)
    payload: dict[str, Any] = _json()
    state: str = Field(default=OutboxState.WAITING, index=True)
    external_message_id: str = ""
    created_at: float = Field(default_factory=now_s)


class Setting(SQLModel, table=True):
    """One operator or system setting that must survive."""

    key: str = Field(primary_key=True)
    value: Any = _json(nullable=True)
