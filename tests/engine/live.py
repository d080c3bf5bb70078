"""The running engine as tests use it: people, questions, feedback."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from engine.engine import Engine
from engine.host.vllm_host import VllmHost
from engine.parts import Parts
from engine.requests import ChatMessage, Delta, GenerateRequest, GenerateResult, LearnOutcome, Sampling, Tool
from evals.rules import OPEN_GATES
from storage.conversations import completions
from storage.database import Database
from storage.kinds import FeedbackStatus
from storage.learning import feedback, notes, updates, versions
from storage.people import people
from storage.tables import AdapterVersion, Completion, Feedback, Note, UpdateRun, User
from tests.engine import twins
from tests.engine.twins import Twin
from tests.patience import PATIENCE_S

GREEDY = Sampling()


@dataclass
class Live:
    """One engine with the pocket model for all tests; each test brings people of its own."""

    engine: Engine
    database: Database
    data_dir: Path
    _originals: dict[str, tuple[str, LearnOutcome]] = field(default_factory=dict)  # by what they were taught

    @property
    def host(self) -> VllmHost:
        """vLLM and the trainer, for what the engine does not offer."""
        return self.engine._host

    async def pruned(self) -> None:
        """Return when no pruned version is being removed any more."""
        await asyncio.gather(*self.parts.context.active._retiring)

    @property
    def parts(self) -> Parts:
        """What the engine is made of, for tests of single parts."""
        assert self.engine._parts is not None
        return self.engine._parts

    async def person(self, *, is_learning: bool = True) -> str:
        """A new person's id."""
        account = uuid.uuid4().hex
        return (await self.database.write(lambda s: people.resolve(s, "http", account, is_learning=is_learning))).id

    async def result(
        self,
        user_id: str,
        text: str,
        *,
        notes: Literal["auto", "off"] = "auto",
        adapter: Literal["active", "base"] = "active",
        sampling: Sampling = GREEDY,
        prior: tuple[ChatMessage, ...] = (),
        tools: tuple[Tool, ...] = (),
    ) -> GenerateResult:
        """A finished answer."""
        messages = [*prior, {"role": "user", "content": text}]
        request = GenerateRequest(user_id, messages, sampling, notes=notes, adapter=adapter, tools=list(tools))
        async for delta in self.engine.generate(request):
            if delta.result is not None:
                return delta.result
        raise AssertionError("a stream ended without a result")

    @asynccontextmanager
    async def midway(self, user_id: str, text: str) -> AsyncIterator[AsyncIterator[Delta]]:
        """A stream with more to come; asked for again where its first piece is the whole answer, on a busy machine."""
        request = GenerateRequest(user_id, [{"role": "user", "content": text}])
        for _ in range(50):
            async with aclosing(self.engine.generate(request)) as stream:
                if (await anext(stream)).result is None:
                    yield stream
                    return
        raise AssertionError("every answer came in one piece")

    async def ask(self, user_id: str, text: str, **options: Any) -> Completion:
        """A finished answer, stored as the chat side stores it."""
        result = await self.result(user_id, text, **options)
        row = Completion(
            user_id=user_id,
            messages=result.messages,
            notes=result.notes,
            prompt_token_ids=result.prompt_token_ids,
            completion_token_ids=result.completion_token_ids,
            logprobs=result.logprobs,
            text=result.text,
            adapter_version=result.adapter_version,
            sampling=result.sampling,
            finish_reason=result.finish_reason,
        )
        return await self.database.write(lambda s: completions.add(s, row))

    async def say(
        self,
        answer: Completion,
        text: str,
        *,
        kind: str = "correction",
        training: dict[str, Any] | None = None,
        scope: str = "",
    ) -> Feedback:
        """Committed feedback on an answer, not learned yet."""
        row = Feedback(
            user_id=answer.user_id, completion_id=answer.id, kind=kind, text=text, training=training, scope=scope
        )
        stored, _ = await self.database.write(lambda s: feedback.add(s, row))
        return stored

    async def teach(self, answer: Completion, text: str, **options: Any) -> LearnOutcome:
        """Feedback on an answer, learned."""
        return await self.engine.learn((await self.say(answer, text, **options)).id)

    async def pupil(self, text: str = "no emoji please") -> tuple[str, LearnOutcome]:
        """A new person who has taught one lesson: the twin of one who has."""
        if text not in self._originals:
            self._originals[text] = await self.lesson(text)
            await self.engine.settled()
        user_id, outcome = self._originals[text]
        twin = await self.twin(user_id)
        return twin.user_id, twin.outcome(outcome)

    async def twin(self, user_id: str) -> Twin:
        """A new person whose life was the same so far."""
        return await twins.born(self.database, self.data_dir, user_id)

    async def lesson(self, text: str = "no emoji please") -> tuple[str, LearnOutcome]:
        """A new person who teaches one lesson now, of which it is not asked whether the gates would let it through."""
        user_id = await self.person()
        with self.open_gates():
            outcome = await self.teach(await self.ask(user_id, "Tell me about the koala"), text)
        assert outcome.status == "learned", outcome
        return user_id, outcome

    @contextmanager
    def open_gates(self) -> Iterator[None]:
        """Every update passes: one good lesson in some hundred is refused at its first try."""
        with pytest.MonkeyPatch.context() as patch:
            for name, bound in OPEN_GATES.items():
                patch.setitem(vars(self.engine.config.gate), name, bound)
            yield

    async def user(self, user_id: str) -> User:
        """The person's row."""
        return await self.database.read(lambda s: people.get(s, user_id))

    async def notes(self, user_id: str) -> list[Note]:
        """The person's live notes."""
        return await self.database.read(lambda s: notes.live(s, user_id))

    async def updates(self, user_id: str, limit: int) -> list[UpdateRun]:
        """The person's updates, newest first."""
        return await self.database.read(lambda s: updates.recent(s, user_id, limit))

    async def version(self, user_id: str, number: int) -> AdapterVersion:
        """A version's row."""
        return await self.database.read(lambda s: versions.get(s, user_id, number))

    async def stored(self, answer: Completion) -> Completion:
        """An answer as it stands."""
        return await self.database.read(lambda s: completions.get(s, answer.user_id, answer.id))

    async def feedback(self, feedback_id: str) -> Feedback:
        """A piece of feedback as it stands."""
        return await self.database.read(lambda s: feedback.get(s, feedback_id))

    async def has_begun(self, feedback_id: str) -> None:
        """Returns once an update works on a piece of feedback."""
        while (await self.feedback(feedback_id)).status == FeedbackStatus.PENDING:  # noqa: ASYNC110 - a row tells nobody
            await asyncio.sleep(0.01)

    def folder(self, user_id: str, number: int | None = None) -> Path:
        """Where a person's adapters lie, or one version."""
        person = self.data_dir / "adapters" / user_id
        return person if number is None else person / str(number)

    async def alone(self) -> None:
        """Returns when nothing runs any more and no prompt is cached."""
        await asyncio.wait_for(self.engine.settled(), PATIENCE_S)
        await self.host.reset_prefix_cache()
