"""The answers about an agent's sessions, typed like those in `bot.http.protocol.responses`."""

from typing import Any, Literal, NotRequired

from bot.http.protocol.responses import JsonResponse

AgentStatus = Literal["idle", "working", "waiting", "failed"]


class AgentCall(JsonResponse):
    """A call that waits for the person; `preview` is a diff, or what the call is about if it changes no file.

    A decision names the call by its `mark`. `about` is its file, command or pattern, safe to show.
    """

    mark: str
    tool: str
    arguments: dict[str, Any]
    about: str
    preview: str
    is_edited: bool


class AgentResult(JsonResponse):
    """The answer of a tool; `feedback` says what to do otherwise, or what to mind after a success."""

    tool: str
    output: str
    success: bool
    feedback: str


class AgentLesson(JsonResponse):
    """The end of a correction: a line about it, and how far each token of the call moves with it, in nats.

    `version` is the one that it made, null if nothing was learned. `unsure_of` is the feedback where heed is unsure how
    far it reaches, else empty: the person is asked, and `POST /v1/feedback/{id}/scope` takes the answer.
    """

    line: str
    version: int | None
    heat: list[tuple[str, float]]
    unsure_of: str


class AgentGit(JsonResponse):
    """The git repository that a workspace is: its branch (else the commit), the number of changed files, untracked ones
    too, and the first files with unresolved conflicts.
    """

    branch: str
    changed: int
    conflicts: list[str]


class AgentSummary(JsonResponse):
    """A session with a workspace (empty: the person's own scratch folder); its id stands twice as in any session."""

    id: str
    session_id: str
    created_at: float
    profile: Literal["default"]
    workspace: str


class AgentDetails(AgentSummary):
    """The session's messages, in OpenAI's form, and the call that waits. A message with a call has its `about`, too.

    `failed` means that the last call did, and may be corrected before the agent goes on. `git` is null where the
    workspace is no work tree of git's.
    """

    messages: list[dict[str, Any]]
    status: AgentStatus
    call: AgentCall | None
    allowed: list[str]
    notes: list[str]  # told for the teacher of lessons to come
    git: AgentGit | None


class AgentStep(JsonResponse):
    """The end of a message or a decision: what ran, what was learned, and what the agent says or waits for."""

    session_id: str
    status: AgentStatus
    response: str | None
    call: AgentCall | None
    results: list[AgentResult]
    lesson: AgentLesson | None


class AgentStopped(JsonResponse):
    """True if something was broken off."""

    stopped: bool


class WorkspaceList(JsonResponse):
    """The workspaces that a session may name; the empty one is the person's own scratch folder.

    `reason` says why there is none, empty where there are some.
    """

    workspaces: list[str]
    reason: str


class WorkspaceNotesTold(JsonResponse):
    """A text for the person, and the notes about the workspace that stand now, the oldest first."""

    text: str
    notes: list[str]


class AgentEventResponse(JsonResponse):
    """One event of a session; `data` has the fields of the same thing in other answers. The first is `opened`."""

    kind: Literal["opened", "asked", "words", "call", "result", "progress", "lesson", "stopped", "ended"]
    data: NotRequired[dict[str, Any]]
