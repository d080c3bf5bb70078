"""What CLaaS's calls are answered with: shapes as those in `bot.http.protocol.responses`."""

from typing import Any, Literal

from bot.http.protocol.responses import JsonResponse, LessonResponse


class Lora(JsonResponse):
    """The one name of an adapter."""

    lora_id: str


class Loras(JsonResponse):
    """The caller's adapters by name."""

    loras: list[str]


class LoraDeleted(JsonResponse):
    """Whether there was such an adapter; it is gone either way."""

    deleted: bool


class ItemLesson(LessonResponse):
    """What became of one item of a call."""

    completion_id: str | None


class BatchMetrics(JsonResponse):
    """What was measured, losses in nats per token; null: heed does not measure it, or nothing was trained."""

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
    """The figures, heed's training settings as asked for, what had no use with the reason, and each item's lesson."""

    training: dict[str, Any]
    ignored: dict[str, str]
    items: list[ItemLesson]


class DistillResult(JsonResponse):
    """What CLaaS's worker tells."""

    lora_id: str
    metadata: Metadata


class Nap(JsonResponse):
    """What became of the engine meanwhile: heed's stays awake."""

    slept: Literal[False]
    woke: Literal[False]


class Timing(JsonResponse):
    """Whole milliseconds; `logprobs` is what reading the answers took."""

    sleep: Literal[0]
    distill: int
    save: int
    wake: Literal[0]
    logprobs: int
    total: int


class BatchTaught(JsonResponse):
    """What became of one call's items; `queued` where any of them still waits."""

    status: Literal["ok", "queued"]
    request_id: str
    lora_id: str
    distill_result: DistillResult
    vllm: Nap
    feedback_log_path: None
    timing_ms: Timing
    batch_size: int
