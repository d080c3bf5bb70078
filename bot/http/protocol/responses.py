"""The answers of heed's HTTP calls: the shapes that handlers fill and that `/openapi.json` describes.

Invariant: an answer has no field that is not declared here; the contract tests check every answer against its shape.
"""

from typing import Any, Literal, NotRequired

from pydantic import ConfigDict
from typing_extensions import TypedDict  # pydantic reads typing's own only from Python 3.12 on

LessonStatus = Literal["learned", "queued", "kept", "rejected", "cancelled"]
StoredRow = dict[str, Any]  # a row of a table


class JsonResponse(TypedDict):
    """A JSON object with the named fields and no others."""


# Set outside of the class, because mypy would take it for a field; subclasses inherit it.
JsonResponse.__pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[attr-defined]


class Fault(JsonResponse):
    """An error: its kind, a sentence, the wrong field if one is at fault, and OpenAI's code for it if there is one."""

    type: str
    message: str
    param: str | None
    code: str | None


class Refusal(JsonResponse):
    """Every answer with a status of 400 or more."""

    error: Fault


# -- health ----------------------------------------------------------------------------------------------------------


class Alive(JsonResponse):
    """heed's event loop runs."""

    status: Literal["ok"]


class LearningState(JsonResponse):
    """A model's learning: `reason` says why a quantised one is only served; uncalibrated rates are estimated."""

    is_on: bool
    reason: str
    is_calibrated: bool


class Readiness(JsonResponse):
    """heed's readiness, the state of each part, if it learns, and the number of people at each level of drift."""

    status: Literal["ready", "degraded", "not ready"]
    model: str
    parts: dict[str, str]
    drift: dict[str, int]
    learning: LearningState


class Worker(JsonResponse):
    """The model behind the calls; `error` names its problem."""

    status: Literal["healthy", "unhealthy"]
    error: str | None


class Health(JsonResponse):
    """heed's readiness in CLaaS's form."""

    status: Literal["healthy", "degraded"]
    worker: Worker


# -- learning --------------------------------------------------------------------------------------------------------


class UpdateResponse(JsonResponse):
    """The result of one update. `heat` has the answer's tokens, each with log p_teacher - log p_student in nats."""

    id: str | None
    steps: int
    divergence_before: float | None
    divergence_after: float | None
    duration_ms: float
    phases_ms: dict[str, float]
    gate: dict[str, Any]
    heat: list[tuple[str, float]]


class RetryResponse(JsonResponse):
    """A new answer to the same question."""

    completion_id: str
    text: str
    retry_of: str | None
    adapter_version: int


class LessonResponse(JsonResponse):
    """The result of a piece of feedback. `ask` is a question for the person, after a thumb down without a reason.

    `replaced` are the notes whose place this one has taken.
    `reading` is what heed took it for: wish, remark, fact, thanks or nothing; with `is_unsure` the person is asked.
    `uncalibrated`: the model's rates and gates are only estimated (`heed calibrate`).
    `url` says, while the lesson is queued, where to ask what became of it.
    """

    feedback_id: str
    status: LessonStatus
    adapter_version: int
    note: NotRequired[str]
    note_id: NotRequired[str]
    replaced: NotRequired[list[str]]
    reason: NotRequired[str]
    ask: NotRequired[str]
    taken_back: NotRequired[bool]
    reading: NotRequired[str]
    is_unsure: NotRequired[bool]
    uncalibrated: NotRequired[bool]
    url: NotRequired[str]
    update: NotRequired[UpdateResponse]
    retry: NotRequired[RetryResponse]


class StoredFeedback(JsonResponse):
    """A stored piece of feedback with its result."""

    feedback_id: str
    completion_id: str | None
    kind: str
    text: str
    value: str
    created_at: float
    state: str
    status: LessonStatus
    adapter_version: int
    reason: str
    scope: str
    reading: str
    is_unsure: bool
    uncalibrated: bool
    update: UpdateResponse | None


class ProgressResponse(JsonResponse):
    """How far a lesson is: its phase, its share of the whole from 0 to 1, the lessons before it, and that in words."""

    status: Literal["queued", "running"]
    phase: str
    share: float
    duration_s: float
    place: int
    text: str


class FeedbackState(StoredFeedback):
    """A stored piece of feedback with its result, or with its progress while its lesson waits or runs."""

    progress: ProgressResponse | None


class Cancelled(JsonResponse):
    """How a piece of feedback ended: `cancelled`, or otherwise if its lesson had ended before."""

    feedback_id: str
    status: LessonStatus
    adapter_version: int
    text: str


class Consolidation(JsonResponse):
    """The result of a consolidation or rebuild; `queued`, without figures, if it still waits or runs."""

    status: LessonStatus
    text: str
    adapter_version: NotRequired[int]
    reason: NotRequired[str]
    num_new: NotRequired[int]
    num_rehearsed: NotRequired[int]
    num_weak: NotRequired[int]
    num_better: NotRequired[int]
    steps: NotRequired[int]
    duration_ms: NotRequired[float]
    gate: NotRequired[dict[str, Any]]
    update_id: NotRequired[str | None]
    is_rebuild: NotRequired[bool]


# -- adapters and notes ----------------------------------------------------------------------------------------------


class TaughtBy(JsonResponse):
    """The feedback that a version was made from."""

    feedback_id: str
    kind: str
    text: str


class UpdateCost(JsonResponse):
    """The steps and the time it took to make a version."""

    steps: int
    duration_ms: float


class VersionResponse(JsonResponse):
    """One version of a person's adapter. Version 0, the base model, always exists and is not listed."""

    version: int
    parent: int
    state: str
    created_at: float
    size_bytes: int
    sha256: str
    base_model: str
    taught_by: TaughtBy | None
    update: UpdateCost | None


class Versions(JsonResponse):
    """The versions of a person's adapter, newest first."""

    object: Literal["list"]
    active_version: int
    data: list[VersionResponse]


class Serving(JsonResponse):
    """The version that answers from now on."""

    adapter_version: int


class Prepared(JsonResponse):
    """The answer to a person's adapter having been made ready."""

    adapter_version: int


class Undone(JsonResponse):
    """The version that answers from now on, and the note that was removed with the lesson."""

    adapter_version: int
    note: str | None


class NoteResponse(JsonResponse):
    """A standing note: its state, how much of it the weights hold by the last probe, and its prompt tokens.

    `in_prompt`: the next answer gets it, with any question. The state `waiting`: the prompt has no room for it.
    """

    id: str
    text: str
    state: str
    in_prompt: bool
    probe: float | None
    num_tokens: int
    learned_version: int | None
    created_at: float


class Notes(JsonResponse):
    """A person's standing notes, oldest first, with the tokens of those in the prompt and in the weights."""

    object: Literal["list"]
    tokens_saved: int
    tokens_in_prompt: int
    data: list[NoteResponse]


class Deleted(JsonResponse):
    """The note that was deleted."""

    deleted: str


# -- people ----------------------------------------------------------------------------------------------------------


class BetterAnswerResponse(JsonResponse):
    """A better answer that a teacher wrote in place of a poor one."""

    completion_id: str
    text: str
    source: str
    state: str
    preserved: float | None
    reason: str
    created_at: float


class PersonResponse(JsonResponse):
    """A person's settings and the state of their adapter.

    `account`: whom a call speaks for, its key's holder first. `outside`: what leaves heed's machine; empty: nothing.
    """

    user: str
    account: str
    has_key: bool
    outside: list[str]
    is_learning: bool
    learns_from_follow_ups: bool
    active_version: int
    persona: str | None
    model: str
    reasons: list[str]
    better_answers: list[BetterAnswerResponse]


class TurnResponse(JsonResponse):
    """A stored answer with its question, its feedback, and the better answer that a teacher wrote."""

    completion_id: str
    question: str
    text: str
    retry_of: str | None
    adapter_version: int
    created_at: float
    finish_reason: str
    is_gold: bool
    notes: list[str]
    feedback: list[StoredFeedback]
    better: BetterAnswerResponse | None


class History(JsonResponse):
    """A conversation, oldest turn first; each turn with all its answers, the current one last."""

    object: Literal["list"]
    data: list[list[TurnResponse]]


class Stopped(JsonResponse):
    """The answer that ends now; False if it was not being written any more."""

    stopped: bool


class FileResponse(JsonResponse):
    """A file that a command returned."""

    name: str
    base64: str


class CommandResponse(JsonResponse):
    """A command's text and its results."""

    command: str
    text: str
    feedback: LessonResponse | None
    answer: RetryResponse | None
    files: list[FileResponse]


class PersonalData(TypedDict):
    """Everything heed stores about a person, table by table: these, and more."""

    exported_at: float
    user: StoredRow
    completions: list[StoredRow]
    feedback: list[StoredRow]
    notes: list[StoredRow]
    adapter_versions: list[StoredRow]
    updates: list[StoredRow]


class Forgotten(JsonResponse):
    """The person is erased."""

    forgotten: Literal[True]
