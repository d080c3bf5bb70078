"""The answers to continualcode's web calls, typed like those in `bot.http.protocol.responses`."""

from typing import Literal

from pydantic import ConfigDict
from typing_extensions import TypedDict

from bot.http.agent.responses import AgentSummary
from bot.http.protocol.responses import JsonResponse, LessonResponse

# The figures of a lesson; empty if there was none. The functional form, because the names are no Python identifiers.
LessonMetrics = TypedDict(
    "LessonMetrics",
    {
        "sdpo_step": int,
        "sdpo_tokens": int,
        "sdpo_kl": float | None,
        "sdpo_kl_after": float | None,
        "loss": float | None,
        "optim/steps": int,
        "time/train_s": float,
        "credit/adv_mean": float,
        "credit/adv_abs_mean": float,
        "credit/adv_std": float,
        "credit/adv_abs_p50": float,
        "credit/adv_abs_p90": float,
        "credit/adv_abs_max": float,
        "credit/adv_sparsity": float,
        "credit/kl_positive_frac": float,
    },
    total=False,
)
LessonMetrics.__pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[attr-defined]


class Profiles(JsonResponse):
    """The names of the profiles."""

    profiles: list[Literal["default"]]


class SessionSummary(JsonResponse):
    """A conversation; its id stands twice because continualcode's page reads either field."""

    id: str
    session_id: str
    created_at: float
    profile: Literal["default"]


class SessionList(JsonResponse):
    """A person's conversations, newest first."""

    sessions: list[SessionSummary | AgentSummary]


class SessionMessage(JsonResponse):
    """One message."""

    role: Literal["user", "assistant"]
    content: str


class Cleared(SessionSummary):
    """A conversation that starts anew."""

    messages: list[SessionMessage]


class SessionDetails(SessionSummary):
    """A conversation's messages, and the metrics of the person's last lesson."""

    messages: list[SessionMessage]
    metrics: LessonMetrics


class SessionDeleted(JsonResponse):
    """The conversation is gone."""

    deleted: Literal[True]


class Prompted(JsonResponse):
    """The answer to the next turn."""

    response: str
    completion_id: str
    session_id: str


class Revised(JsonResponse):
    """The current answer, the lesson's metrics, and its result."""

    response: str
    completion_id: str
    metrics: LessonMetrics
    feedback: LessonResponse
