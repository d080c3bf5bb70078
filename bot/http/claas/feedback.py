"""`POST /v1/feedback` in CLaaS's form: several answers of one adapter, each with its feedback.

Each item is a lesson of its own, in the order given. Invariants: an answer is found by its id or its exact text; an
answer heed has not given is scored first and stored as a turn; nothing is stored before all items are checked and all
answers are there. heed's own form of the call goes to `bot.http.api.feedback`.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from bot.core import feedback as mapping
from bot.core.core import Core
from bot.core.gateway import Turn, check_text, completion_row
from bot.core.lessons import LessonResult
from bot.errors import BatchRefused, InvalidField
from bot.events import Reply
from bot.http.api import feedback
from bot.http.claas import responses
from bot.http.claas.adapters import canonical, person
from bot.http.claas.bodies import BatchBody, ItemBody
from bot.http.protocol import bodies, messages, views
from bot.http.protocol import responses as protocol
from bot.http.protocol.app_keys import CORE
from bot.http.protocol.auth import spend
from bot.http.protocol.openapi import gives
from bot.http.protocol.request_ids import request_id
from engine.requests import GenerateRequest
from storage.conversations import completions
from storage.tables import Completion

Json = dict[str, Any]


@gives(
    protocol.LessonResponse | responses.BatchTaught,
    takes=bodies.FeedbackBody | BatchBody | ItemBody,
    headers={feedback.KEY_HEADER: feedback.KEY},
    refuses=(404, 504),
)
async def give(request: web.Request) -> web.Response:
    """Learn from feedback about one answer in heed's form, or about several in CLaaS's (`POST /v1/feedback`)."""
    data = await bodies.read_object(request)
    if not is_claas(data):
        return await feedback.give(request)
    batch = bodies.checked(BatchBody, data if "requests" in data else {"requests": [data]})
    return web.json_response(await _Batch(request, batch.requests).taught())


def is_claas(data: Mapping[str, Any]) -> bool:
    """Return True if a body is in CLaaS's form: with `requests`, or its older one with a single `lora_id`."""
    return "requests" in data or ("lora_id" in data and "kind" not in data)


@dataclass(frozen=True)
class _Batch:
    """One call while it is worked on."""

    request: web.Request
    items: Sequence[ItemBody]

    @property
    def core(self) -> Core:
        return self.request.app[CORE]

    async def taught(self) -> responses.BatchTaught:
        """Teach every item. Return CLaaS's answer."""
        started_s = time.perf_counter()
        training = self._checked()
        self.core.gateway.require_ready()
        user_id = (await person(self.request, self.items[0].lora_id)).id
        await spend(self.request, "updates", len(self.items))
        answers = await self._answers(user_id)
        read_s = time.perf_counter() - started_s
        lessons = [await self._taught(place, user_id, answer, training) for place, answer in enumerate(answers)]
        total_s = time.perf_counter() - started_s
        return self._answer(lessons, answers, training, _timing(lessons, read_s, total_s))

    def _checked(self) -> Json | None:
        """Return heed's training settings for the call. Raises BatchRefused, InvalidField."""
        first = self.items[0]
        if len({canonical(item.lora_id) for item in self.items}) > 1:
            raise BatchRefused(messages.SEVERAL_LORA_IDS, "requests")
        if any(item.training.given() != first.training.given() for item in self.items):
            raise BatchRefused(messages.SEVERAL_TRAININGS, "requests")
        for place, item in enumerate(self.items):
            self._check(item, f"requests.{place}")
        return feedback.training_of(self.core, first.training.settings(self.core.engine.config.learn) or None)

    def _check(self, item: ItemBody, at: str) -> None:
        for name in () if item.completion_id else ("prompt", "response"):
            if not getattr(item, name).strip():
                raise InvalidField(messages.NO_ANSWER_NAMED.format(field=name), f"{at}.{name}")
        for name in ("prompt", "response", "feedback", "completion_id"):
            check_text(getattr(item, name) or "", self.core.gateway.settings.text_limit_chars, f"{at}.{name}")
        mapping.record(Reply("", item.feedback))

    async def _answers(self, user_id: str) -> list[Completion]:
        """Return each item's answer, all stored. Raises CompletionNotFound, PromptTooLongError."""
        found: dict[tuple[str | None, str, str], Completion] = {}
        new: list[Completion] = []
        for item in self.items:
            key = (item.completion_id, item.prompt, item.response)
            if key not in found:
                found[key], is_new = await self._found(user_id, item)
                new += [found[key]] * is_new
        if new:
            await self.core.database.write(lambda s: [completions.add(s, row) for row in new])
        return [found[(item.completion_id, item.prompt, item.response)] for item in self.items]

    async def _found(self, user_id: str, item: ItemBody) -> tuple[Completion, bool]:
        """Return an item's answer, and True if it is new to heed."""
        if item.completion_id:
            return await self.core.gateway.completion(user_id, item.completion_id), False
        known = await self.core.database.read(lambda s: completions.by_text(s, user_id, item.prompt, item.response))
        return (known, False) if known else (await self._read(user_id, item), True)

    async def _read(self, user_id: str, item: ItemBody) -> Completion:
        """Return an answer that heed has not given as a completion."""
        sampling = self.core.gateway.sampling()
        turn = Turn(user_id, [{"role": "user", "content": item.prompt}], sampling)
        asked = GenerateRequest(user_id, turn.messages, sampling)
        return completion_row(turn, await self.core.engine.adopt(asked, item.response))

    async def _taught(self, place: int, user_id: str, answer: Completion, training: Json | None) -> LessonResult:
        key = feedback.key_of(self.request)
        record = mapping.record(Reply(answer.id, self.items[place].feedback))
        settings = training or {}  # given in any case: a program that says something twice wants it taught twice
        return await self.core.lessons.teach(
            user_id, record, idempotency_key=f"{key}#{place}" if key else None, training=settings
        )

    def _answer(
        self,
        lessons: Sequence[LessonResult],
        answers: Sequence[Completion],
        training: Json | None,
        timing_ms: responses.Timing,
    ) -> responses.BatchTaught:
        lora_id = canonical(self.items[0].lora_id)
        metadata: responses.Metadata = {
            **figures(lessons, answers),
            "training": training or {},
            "ignored": self.items[0].training.ignored(),
            "items": [{**views.lesson(lesson), "completion_id": lesson.feedback.completion_id} for lesson in lessons],
        }
        return {
            "status": status_of(lessons),
            "request_id": request_id(self.request),
            "lora_id": lora_id,
            "distill_result": {"lora_id": lora_id, "metadata": metadata},
            "vllm": {"slept": False, "woke": False},
            "feedback_log_path": f"/v1/feedback/{lessons[0].feedback.id}",
            "timing_ms": timing_ms,
            "batch_size": len(lessons),
        }


def status_of(lessons: Sequence[LessonResult]) -> responses.BatchStatus:
    """Return the status of a whole call: `ok` only if every item was taken in."""
    statuses = {lesson.outcome.status for lesson in lessons}
    if "queued" in statuses:
        return "queued"
    if statuses <= {"learned", "kept"}:
        return "ok"
    return "partly" if statuses & {"learned", "kept"} else "rejected"


@gives(None, also={302: None})
async def dashboard(_: web.Request) -> web.Response:
    """Lead to heed's dashboard of updates (`GET /v1/dashboard`)."""
    raise web.HTTPFound("/admin/updates")


@gives(None, also={302: None})
async def evals(_: web.Request) -> web.Response:
    """Lead to heed's dashboard of measurements (`GET /v1/eval`)."""
    raise web.HTTPFound("/admin/evals")


def figures(lessons: Sequence[LessonResult], answers: Sequence[Completion]) -> responses.BatchMetrics:
    """Return the measured figures under CLaaS's names; null for those heed does not measure.

    The loss is the mean divergence between teacher and student before the steps, in nats per token, as CLaaS's is.
    """
    before = [d for lesson in lessons if (d := lesson.outcome.divergence_before) is not None]
    loss = sum(before) / len(before) if before else None
    return {
        "total_loss": loss,
        "distill_loss": loss,
        "kl_reg": None,
        "mean_is_ratio": None,
        "clip_fraction": None,
        "grad_norm": None,
        "teacher_scored_texts": None,
        "tokens_processed": sum(len(answer.completion_token_ids) for answer in answers),
        "batch_size": len(lessons),
        "steps_per_batch_applied": sum(lesson.outcome.steps for lesson in lessons),
        "adapter_version": lessons[-1].outcome.adapter_version,
    }


def _timing(lessons: Sequence[LessonResult], read_s: float, total_s: float) -> responses.Timing:
    """Return whole milliseconds, as CLaaS counts them; heed neither sleeps nor wakes."""
    save_ms = sum(lesson.outcome.phases_ms.get("publish", 0.0) for lesson in lessons)
    distill_ms = sum(lesson.outcome.duration_ms for lesson in lessons) - save_ms
    return {
        "sleep": 0,
        "distill": round(distill_ms),
        "save": round(save_ms),
        "wake": 0,
        "logprobs": round(read_s * 1000),
        "total": round(total_s * 1000),
    }
