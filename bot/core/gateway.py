"""The gateway: from a message to a stored, streamed answer; knows no platform.

Invariants: a turn is in storage before the last piece of its answer is handed out (where `generate` is used instead
of `stream`, its caller stores it together with what else must happen at once); closing the stream early
aborts the generation and stores nothing; a retried answer takes the place of the one it retries in what the
model sees next; token ids are kept as they were generated.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal

from bot.config import ChatSettings, Settings
from bot.core.acquaintances import Acquaintances, Caller
from bot.core.sampling import resolved
from bot.core.stream_places import OWNER, OnMove, StreamPlaces
from bot.errors import AnswerTimeout, AnswerUnderWay, InvalidField, NotReady
from bot.events import Author, Message, Place
from bot.monitoring.metrics import Metrics
from engine.errors import EngineError
from engine.requests import NOT_TEXT, TOOLS, ChatMessage, Delta, GenerateRequest, GenerateResult, Sampling, Tool
from storage.coalescing import Coalescer
from storage.conversations import chats, completions
from storage.conversations.chats import Context
from storage.database import Database, Session
from storage.errors import StorageError
from storage.people import people
from storage.tables import Chat, Completion, User, new_id

if TYPE_CHECKING:
    from engine.engine import Engine

REQUEST = "request"  # the key of an answer's sampling record for what a call with an idempotency key brings again


@dataclass(frozen=True)
class Turn:
    """One answer wanted, and where it will be stored."""

    user_id: str
    messages: list[ChatMessage]
    sampling: Sampling
    chat_id: str | None = None
    notes: Literal["auto", "off"] = "auto"
    adapter: Literal["active", "base"] = "active"
    retry_of: str | None = None
    remark: str = ""  # what was said of an earlier try at this answer
    choice_index: int = 0
    tools: list[Tool] = field(default_factory=list)
    is_whole: bool = False  # too long a conversation is refused, not shortened
    completion_id: str = field(default_factory=lambda: f"cmpl-{new_id()}")
    on_move: OnMove | None = None  # told how many wait before it for a place
    request_sha256: str = ""  # of a call with an idempotency key
    newcomer: Author | None = None  # a person is made of this stranger once the answer has begun
    place: Place | None = None  # the same of the conversation there

    def choice_of(self, completion_id: str) -> str:
        """Return the id of this turn's answer as one of the choices of a completion."""
        return choice_id(completion_id, self.choice_index)


class Gateway:
    """The platform-neutral core: people, conversations and answers."""

    def __init__(self, engine: "Engine", database: Database, settings: Settings, metrics: Metrics) -> None:
        self.when_forgotten: Callable[[str], Awaitable[None]] = _nothing  # told the id of a person who was erased
        self._engine = engine
        self._database = database
        self._chat = settings.chat
        self._metrics = metrics
        self._acquaintances = Acquaintances(database, settings.http.new_people_per_hour)
        self._contexts: Coalescer[tuple[str, Place], Context | None] = Coalescer(self._read_contexts, "contexts")
        self._stops: dict[tuple[str, str], asyncio.Event] = {}  # of the answers being written
        self._places = StreamPlaces(settings.http, self._count_places)
        self._under_way: set[str] = set()  # the completion ids of calls with an idempotency key

    @property
    def settings(self) -> ChatSettings:
        """The settings of chats: defaults for what a request leaves out."""
        return self._chat

    @property
    def num_streams(self) -> int:
        """Answers being written now."""
        return self._places.num_held

    async def person(self, author: Author, *, is_learning: bool = True) -> str:
        """Return the id of the person behind an account, made on first sight (`is_learning` is its first value).

        Raises QuotaUsed if the address of a call has made too many people.
        """
        return await self._acquaintances.person(author, is_learning=is_learning)

    async def caller(self, author: Author) -> Caller:
        """Return the person behind an account; a stranger is not made before heed does what they ask (`person`)."""
        return await self._acquaintances.caller(author)

    async def known(self, author: Author) -> User:
        """Return the person behind an account without making one: a stranger is an unstored row with an empty id."""
        return await self._acquaintances.known(author)

    async def user(self, user_id: str) -> User:
        """Return the person's row as it is now."""
        return await self._database.read(lambda s: people.get(s, user_id))

    async def forget(self, user_id: str) -> None:
        """Erase the person: rows, adapters and what the engine holds."""
        await self._engine.forget(user_id)
        self._acquaintances.drop(user_id)
        await self.when_forgotten(user_id)

    async def chat(self, user_id: str, place: Place) -> Chat:
        """Return the conversation at that place, made on first sight."""
        found = await self._database.read(lambda s: chats.find(s, user_id, place.platform, place.external_id))
        if found is not None:
            return found
        return await self._database.write(lambda s: chats.resolve(s, user_id, place.platform, place.external_id))

    async def history(self, chat_id: str, limit: int | None = None) -> list[list[Completion]]:
        """Return a conversation's turns, oldest first; each with all its answers, the one that counts last."""
        wanted = self._chat.history_turns if limit is None else limit
        rows = await self._database.read(lambda s: chats.turns(s, chat_id, wanted))
        turns = [await self.answers(row) for row in rows]
        return sorted(turns, key=lambda answers: answers[0].seq or 0)

    async def answers(self, newest: Completion) -> list[Completion]:
        """All answers of a turn up to `newest`, the first one first."""
        answers = [newest]
        while (earlier := answers[0].retry_of) is not None:
            answers.insert(0, await self.completion(newest.user_id, earlier))
        return answers

    async def turns(self, chat_id: str) -> list[Completion]:
        """Return what the model would see of a conversation: the answer that counts of every turn, oldest first."""
        return [answers[-1] for answers in await self.history(chat_id)]

    async def turn(self, message: Message, sampling: Sampling | None = None, **wishes: Any) -> Turn:
        """Return the next turn of the conversation the message belongs to; `wishes` are further fields of Turn."""
        user_id = await self.person(message.author)
        context = await self._context(user_id, message.place)
        messages = conversation(context, message.text)
        return Turn(user_id, messages, sampling or self.sampling(), context.chat_id, **wishes)

    async def turn_of_call(self, message: Message, sampling: Sampling, **wishes: Any) -> Turn:
        """Return the next turn of a conversation as `turn` does, and leave no row behind if it is refused."""
        caller = await self.caller(message.author)
        known = None if caller.is_stranger else await self._contexts.ask((caller.user_id, message.place))
        if known is not None:
            return Turn(caller.user_id, conversation(known, message.text), sampling, known.chat_id, **wishes)
        persona = None if caller.is_stranger else (await self.user(caller.user_id)).persona
        messages = conversation(Context("", persona, []), message.text)
        return await self.turn_outside(message.author, messages, sampling, **{**wishes, "place": message.place})

    async def turn_outside(
        self, author: Author, messages: list[ChatMessage], sampling: Sampling, **wishes: Any
    ) -> Turn:
        """Return a turn of no stored conversation; if it is refused, no row is left of a stranger."""
        caller = await self.caller(author)
        if caller.is_stranger:
            wishes |= {"newcomer": author, "adapter": "base"}  # there is nothing of theirs to answer with
        return Turn(caller.user_id, messages, sampling, **wishes)

    async def _taken_in(self, turn: Turn) -> Turn:
        """Return a turn whose answer has begun, with the person and the conversation that were missing."""
        if turn.newcomer is not None:
            turn = replace(turn, user_id=await self.person(turn.newcomer), newcomer=None)
        if turn.place is not None:
            turn = replace(turn, chat_id=(await self.chat(turn.user_id, turn.place)).id, place=None)
        return turn

    async def _context(self, user_id: str, place: Place) -> Context:
        """Return what the conversation at a place begins its next turn with; made on first sight."""
        known = await self._contexts.ask((user_id, place))
        if known is not None:
            return known
        chat = await self.chat(user_id, place)
        return Context(chat.id, (await self.user(user_id)).persona, [])

    async def _read_contexts(self, wanted: list[tuple[str, Place]]) -> list[Context | None]:
        limit = self._chat.history_turns

        def read(s: Session) -> list[Context | None]:
            return [chats.context(s, user_id, at.platform, at.external_id, limit) for user_id, at in wanted]

        return await self._database.read(read)

    def again(self, completion: Completion, sampling: Sampling) -> Turn:
        """Return a turn that answers the same conversation once more, sampled as said, in place of `completion`."""
        tools = completion.sampling.get(TOOLS, [])
        return Turn(
            completion.user_id, completion.messages, sampling, completion.chat_id, retry_of=completion.id, tools=tools
        )

    def sampling(self) -> Sampling:
        """Return the sampling of requests that ask for nothing else."""
        return resolved(self._chat, self._engine.sampling)

    def varied(self, completion: Completion) -> Sampling:
        """Return the sampling of `completion`, warm enough to come out differently."""
        known = sampling_of(completion)
        temperature = max(known.temperature, self._chat.retry_temperature)
        return replace(known, temperature=temperature, seed=random.SystemRandom().randrange(2**31))

    async def stream(self, turn: Turn) -> AsyncGenerator[Delta, None]:
        """Answer a turn piece by piece; the piece with `result` comes after the turn is stored."""
        async with aclosing(self.generate(turn)) as deltas:
            async for delta in deltas:
                turn = await self._taken_in(turn)
                if delta.result is not None:
                    await self._store(turn, delta.result)
                yield delta

    async def generate(self, turn: Turn) -> AsyncGenerator[Delta, None]:
        """Answer a turn piece by piece and store nothing: the caller stores `completion_row` and says
        `count`.
        """
        self._admit(turn)
        key = (turn.user_id, turn.completion_id)
        self._stops[key] = asyncio.Event()
        if turn.request_sha256:
            self._under_way.add(turn.completion_id)
        owner = OWNER.get() or turn.user_id
        try:
            place = self._places.place(owner, self._chat.stream_timeout_s, turn.on_move)
            async with self._prepared(turn, owner), place as waited_s, aclosing(self._deltas(turn)) as deltas:
                async for delta in deltas:
                    result = delta.result and replace(delta.result, waited_s=waited_s)
                    yield replace(delta, result=result) if result else delta
        finally:
            self._under_way.discard(turn.completion_id)
            self._stops.pop(key, None)

    async def prepare(self, user_id: str) -> None:
        """Have a person's adapter ready before they ask; harmless where there is none, or it cannot be now."""
        with suppress(EngineError, StorageError):
            if self._engine.is_ready:
                await self._engine.prepare(user_id)

    @asynccontextmanager
    async def _prepared(self, turn: Turn, owner: str) -> AsyncIterator[None]:
        """Have the adapter made ready while the turn waits for its place."""
        if turn.adapter == "base" or self._places.has_room(owner):
            yield
            return
        preparing = asyncio.create_task(self.prepare(turn.user_id), name="an adapter made ready")
        try:
            yield
        finally:
            preparing.cancel()
            await asyncio.gather(preparing, return_exceptions=True)

    def stop(self, user_id: str, completion_id: str) -> bool:
        """End an answer of this person that is being written, with what there is. False if it is not."""
        stop = self._stops.get((user_id, completion_id))
        if stop is not None:
            stop.set()
        return stop is not None

    def _count_places(self, num_held: int, num_waiting: int) -> None:
        self._metrics.streams.set(num_held)
        self._metrics.waiting.set(num_waiting)

    async def answer(self, turn: Turn) -> Completion:
        """Answer a turn and return it as stored."""
        async with aclosing(self.stream(turn)) as deltas:
            async for _ in deltas:
                pass
        return await self.completion(turn.user_id, turn.completion_id)

    async def completion(self, user_id: str, completion_id: str, index: int = 0) -> Completion:
        """One stored answer of this person. Raises storage's CompletionNotFound."""
        wanted = choice_id(completion_id, index)
        return await self._database.read(lambda s: completions.get(s, user_id, wanted))

    def require_ready(self) -> None:
        """Raise NotReady with the reason if no answer can be given now."""
        if not self._engine.is_ready:
            parts = ", ".join(f"{part}: {state}" for part, state in self._engine.health().items() if state != "ok")
            raise NotReady(f"heed is not ready ({parts or 'starting'}). Try again in a few seconds.")

    def _admit(self, turn: Turn) -> None:
        self.require_ready()
        if turn.completion_id in self._under_way:
            raise AnswerUnderWay("A call with this idempotency key is still being answered. Send it again in a moment.")
        for message in turn.messages:
            check_text(message["content"], self._chat.text_limit_chars, "messages")

    async def _deltas(self, turn: Turn) -> AsyncGenerator[Delta, None]:
        request = GenerateRequest(
            turn.user_id,
            turn.messages,
            turn.sampling,
            turn.notes,
            turn.adapter,
            tools=turn.tools,
            stop=self._stops.get((turn.user_id, turn.completion_id)),
            remark=turn.remark,
            is_whole=turn.is_whole,
        )
        answer = self._engine.generate(request)
        async with aclosing(answer) as deltas:
            while True:
                try:
                    async with asyncio.timeout(self._chat.stream_timeout_s) as patience:
                        delta = await anext(deltas, None)
                except TimeoutError as error:
                    if not patience.expired():
                        raise  # some other wait inside the engine
                    seconds = self._chat.stream_timeout_s
                    raise AnswerTimeout(f"The model wrote nothing for {seconds:.0f} s.") from error
                if delta is None:
                    return
                yield delta

    async def _store(self, turn: Turn, result: GenerateResult) -> None:
        row = completion_row(turn, result)
        await self._database.write(lambda s: completions.add(s, row))
        self.count(result)

    def count(self, result: GenerateResult) -> None:
        """Count an answer that is stored."""
        self._metrics.answers.labels(result.finish_reason).inc()
        self._metrics.tokens.labels("prompt").inc(len(result.prompt_token_ids))
        self._metrics.tokens.labels("cached").inc(result.num_cached_tokens)
        self._metrics.tokens.labels("completion").inc(len(result.completion_token_ids))
        self._metrics.first_token_s.observe(result.time_to_first_token_s)
        self._metrics.answer_s.observe(result.duration_s)


async def _nothing(_user_id: str) -> None:
    """Tell no one."""


def conversation(context: Context, text: str) -> list[ChatMessage]:
    """Return the messages of the next turn: persona, what was said so far, and the new text."""
    messages: list[ChatMessage] = [{"role": "system", "content": context.persona}] if context.persona else []
    for asked, answered in context.exchanges:
        messages.append({"role": "user", "content": asked})
        messages.append({"role": "assistant", "content": answered})
    return [*messages, {"role": "user", "content": text}]


def question(completion: Completion) -> str:
    """Return what the person had said when this answer was given."""
    asked = [message["content"] for message in completion.messages if message["role"] == "user"]
    return asked[-1] if asked else ""


def choice_id(completion_id: str, index: int) -> str:
    """Return the id one choice of a completion is stored under: choices share the id of the first."""
    return f"{completion_id}.{index}" if index else completion_id


def sampling_of(completion: Completion) -> Sampling:
    """How a stored answer was sampled."""
    names = {entry.name for entry in fields(Sampling)}
    known = {name: value for name, value in completion.sampling.items() if name in names}
    return Sampling(**(known | {"stop": tuple(known.get("stop", ())), "top_logprobs": 0}))


def completion_row(turn: Turn, result: GenerateResult) -> Completion:
    """Return the stored form of a finished answer."""
    return Completion(
        id=turn.completion_id,
        user_id=turn.user_id,
        chat_id=turn.chat_id,
        retry_of=turn.retry_of,
        messages=result.messages,
        notes=result.notes,
        choice_index=turn.choice_index,
        prompt_token_ids=result.prompt_token_ids,
        completion_token_ids=result.completion_token_ids,
        logprobs=result.logprobs,
        text=result.text,
        adapter_version=result.adapter_version,
        sampling=result.sampling | (_kept(turn, result) if turn.request_sha256 else {}),
        finish_reason=result.finish_reason,
        num_cached_tokens=result.num_cached_tokens,
        time_to_first_token_s=result.time_to_first_token_s,
        duration_s=result.duration_s,
    )


def _kept(turn: Turn, result: GenerateResult) -> dict[str, Any]:
    """Return what a call with an idempotency key brings again beside the columns of a completion."""
    names = ("reasoning", "tool_calls", "said", "waited_s")
    kept = {name: getattr(result, name) for name in names}
    return {REQUEST: {"sha256": turn.request_sha256, **kept}}


def check_text(text: str, limit_chars: int, param: str) -> str:
    """Return the text itself. Raises InvalidField if it is too long or cannot be stored as Unicode text."""
    if len(text) > limit_chars:
        raise InvalidField(f"The text has {len(text)} characters; the limit is {limit_chars}.", param)
    if NOT_TEXT.search(text):
        raise InvalidField("The text has characters that are not valid text (NUL or half a surrogate pair).", param)
    return text
