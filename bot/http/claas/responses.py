"""The answers to CLaaS's calls, typed like those in `bot.http.protocol.responses`."""

from typing import Any, Literal

from bot.http.protocol.responses import JsonResponse, LessonResponse


class Lora(JsonResponse):
    """The canonical name of an adapter."""

    lora_id: str


class Loras(JsonResponse):
    """The names of the caller's adapters."""

    loras: list[str]


class LoraDeleted(JsonResponse):
    """`deleted` is false if there was no such adapter."""

    deleted: bool


class ItemLesson(LessonResponse):
    """The result of one item of a call."""

    completion_id: str | None


class BatchMetrics(JsonResponse):
    """Measured figures, losses in nats per token; null if heed does not measure it or nothing was trained."""

    total_loss: float | None
    distill_loss: float | None
    kl_reg: None
    mean_is_ratio: None
    clip_fraction: None
    grad_norm: None
    teacher_scored_texts: None
    tokens_processed: int
    batch_size: int
    steps_per_batch_applied: int
    adapter_version: int


class Metadata(BatchMetrics):
    """The figures, the training settings used, the ignored ones with reasons, and each item's lesson."""

    training: dict[str, Any]
    ignored: dict[str, str]
    items: list[ItemLesson]


class DistillResult(JsonResponse):
    """The result in the form of CLaaS's worker."""

    lora_id: str
    metadata: Metadata


class EngineSleep(JsonResponse):
    """The engine's sleep during training: heed's stays awake."""

    slept: Literal[False]
    woke: Literal[False]


class Timing(JsonResponse):
    """Whole milliseconds; `logprobs` is the time to score the answers."""

    sleep: Literal[0]
    distill: int
    save: int
    wake: Literal[0]
    logprobs: int
    total: int


BatchStatus = Literal["ok", "partly", "rejected", "queued"]


class BatchTaught(JsonResponse):
    """The results of a call's items: `queued` if any still waits, else if all, some or none of them were taken in.

    `feedback_log_path` is the path of the first item's record in heed's API.
    """

    status: BatchStatus
    request_id: str
    lora_id: str
    distill_result: DistillResult
    vllm: EngineSleep
    feedback_log_path: str
    timing_ms: Timing
    batch_size: int
