"""Answers: which adapter and which notes a request gets, and the stream that comes of it.

Invariants: a person's notes and adapter reach that person's answers only; every answer names the adapter version it was
made with; an adapter that answers stays in vLLM until its stream has ended.
"""

import asyncio
import math
import time
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace

from engine.adapter_ref import ZERO_ADAPTER, AdapterRef
from engine.generation import external_answer
from engine.generation.external_answer import Reading
from engine.generation.stream import AnswerStream
from engine.generation.told import Told, told
from engine.host.answer_form import AnswerForm
from engine.host.tool_calls import call_format
from engine.prompts.reasoning import Reasoning
from engine.prompts.token_bytes import TokenBytes
from engine.requests import ChatMessage, Delta, GenerateRequest, GenerateResult, Likelihood, ModelSkills
from engine.samples import notes
from engine.samples.context import LearningContext
from storage.tables import Note


class Generator:
    """Answers requests, and reads answers that others have written."""

    def __init__(self, context: LearningContext) -> None:
        self._config = context.config
        self._host = context.host
        self._trainer = context.trainer
        self._prompts = context.prompts
        self._active = context.active
        self._call_format = call_format(context.host.tokenizer)
        self.skills = ModelSkills(
            shows_tools=context.prompts.shows_tools,
            writes_calls=bool(self._call_format),
            token_bytes=TokenBytes(context.host.tokenizer),
        )
        self._answered_s = -math.inf  # when the last token of any answer came, by the monotonic clock

    def is_idle_for(self, idle_s: float) -> bool:
        """Return True if no answer is being written, and the last token of one came so many seconds ago."""
        return not self._host.num_running and time.monotonic() - self._answered_s >= idle_s

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Delta, None]:
        """Stream an answer; the last delta carries the result. Raises PromptTooLongError or EngineRestarting."""
        asked_s = time.perf_counter()
        ref, live = await self._served_to(request)
        with self._active.using(ref):
            # Closed with this one: a caller who leaves ends the stream at once.
            async with aclosing(self._answer(request, ref, self._told(request, live, ref), asked_s)) as deltas:
                async for delta in deltas:
                    yield delta

    async def score(self, request: GenerateRequest, answer: str) -> Likelihood:
        """Return how likely `answer` is in reply to `request`. Raises PromptTooLongError or EngineRestarting."""
        ref, live = await self._served_to(request)
        with self._active.using(ref):
            return await external_answer.score(self._reading(ref), self._told(request, live, ref), answer)

    async def adopt(self, request: GenerateRequest, text: str) -> GenerateResult:
        """Return `text` as heed's own answer to `request`. Raises PromptTooLongError, EngineRestarting."""
        ref, live = await self._served_to(request)
        with self._active.using(ref):
            return await external_answer.adopt(self._reading(ref), request, self._told(request, live, ref), text)

    async def _answer(
        self, request: GenerateRequest, ref: AdapterRef, told: Told, asked_s: float
    ) -> AsyncGenerator[Delta, None]:
        self._answered_s = time.monotonic()
        longest = request.sampling.max_tokens
        prompt = self._prompts.prompt_token_ids(
            told.messages,
            reserve_tokens=min(longest or 64, self._host.max_model_len // 2),
            tools=request.tools,
            is_whole=request.is_whole,
        )
        form = await self._form(request)
        if form.is_bound and self._prompts.opens_thoughts(prompt):
            prompt += self._prompts.closing_token_ids  # a grammar holds from the first token on
        room = self._prompts.room_for(prompt)
        keeps_special = self._prompts.has_special_marks or form.keeps_special
        sampling = replace(
            request.sampling,
            max_tokens=min(longest or room, room),
            may_repeat=bool(request.tools),
            keeps_special=keeps_special,
            structural_tag=form.structural_tag,
        )
        reasoning = Reasoning(self._prompts.marks, is_open=self._prompts.opens_thoughts(prompt))
        answer = AnswerStream(request, told.notes, prompt, ref.number, sampling, reasoning, asked_s, form.calls)
        stream = self._host.generate(prompt, sampling, ref, f"chat-{uuid.uuid4().hex}", request.priority)
        async with aclosing(stream):
            async for chunk in stream:
                self._answered_s = time.monotonic()
                yield answer.take(chunk)
                if request.stop is not None and request.stop.is_set() and not chunk.finish_reason:
                    yield answer.stopped(chunk)
                    return

    async def _form(self, request: GenerateRequest) -> AnswerForm:
        if not request.tools and request.sampling.json_schema is None:
            return AnswerForm()
        return await asyncio.to_thread(AnswerForm.of, self._call_format, self._host.tokenizer, request)

    async def _served_to(self, request: GenerateRequest) -> tuple[AdapterRef, list[Note]]:
        """Return the adapter a request is answered with, and the notes that hold beside it."""
        if request.adapter == "base":
            return ZERO_ADAPTER, []
        ref, live = await self._active.active_with_notes(request.user_id)
        return ref, live if request.notes == "auto" else []

    def notes_in_prompt(self, live: Sequence[Note], version: int, messages: Sequence[ChatMessage] = ()) -> list[Note]:
        """Return the notes in the prompt of an answer, oldest first, out of those that stand.

        `version` is the one that answers. Without `messages`: those that stand there with any question.
        """
        standing = notes.prompt_notes(live, has_adapter=version > 0)
        wanted = notes.shown(standing, live, messages)
        return notes.fitting(wanted, self._config.note, self._host.max_model_len)

    def note_size(self, text: str) -> tuple[int, int]:
        """Return the tokens of a note in the prompt, and the most that a note may have to stand there."""
        most = notes.prompt_room(self._config.note, self._host.max_model_len)
        return notes.num_tokens(text, self._prompts.count), most

    def _told(self, request: GenerateRequest, live: Sequence[Note], ref: AdapterRef) -> Told:
        shown = self.notes_in_prompt(live, ref.number, request.messages)
        return told(request, shown, live, self._config, self._host.max_model_len)

    def _reading(self, ref: AdapterRef) -> Reading:
        return Reading(self._host, self._trainer, self._prompts, ref)
