"""On-policy rollouts: answers of the adapter that is about to learn, made before they are needed.

Owns the rollouts that are ready for the next update: for each person some of their recent prompts and prompts of the
bank, answered by their active version without notes in the prompt; and the base model's answers to the anchors.
Invariants: a rollout is used only with the version that made it; one person's prompts are never used for another, so
rollouts of the base model, which all share, come from the bank alone; making rollouts never delays a chat.
"""

import asyncio
import hashlib
import json
import math
import random
import uuid
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.adapter_ref import AdapterRef
from engine.config import LearnConfig
from engine.host.trainer_client import TrainerClient
from engine.host.vllm_host import VllmHost
from engine.host.vllm_types import HostChunk
from engine.prompts.bank import Bank
from engine.prompts.builder import PromptBuilder
from engine.prompts.hindsight import plain_messages
from engine.prompts.tool_messages import carried, carrying
from engine.requests import GIVEN, TOOLS, ChatMessage, Sampling
from storage.tables import Completion

RECENT_ANSWERS = 16  # looked at for a person's own prompts
_BACKGROUND = 10
_IN_AN_UPDATE = 1  # the person waits for it, yet chats go first
_KEPT_PEOPLE = 512
# Samplings whose log-probabilities are the model's own; greedy ones are reported as at temperature 1.
_PLAIN: dict[str, tuple[Any, ...]] = {
    "temperature": (0.0, 1.0),
    "top_p": (1.0,),
    "top_k": (0,),
    "min_p": (0.0,),
    "repetition_penalty": (1.0,),
    "frequency_penalty": (0.0,),
    "presence_penalty": (0.0,),
    "logit_bias": ({},),
    "json_schema": (None,),
    "structural_tag": ("",),
}
_NUM_ANCHORS_READY = 64
_ANCHORS_AT_ONCE = 16


@dataclass(frozen=True)
class Rollout:
    """One answer with everything a sample needs."""

    messages: list[ChatMessage]  # that carry the tools in its prompt
    prompt_token_ids: list[int]
    response_token_ids: list[int]
    logprobs: list[float]
    is_plain: bool = True  # False: `logprobs` are of a distribution that sampling had changed

    @property
    def asked(self) -> str:
        """The message that it answers."""
        return str(self.messages[-1]["content"])

    @classmethod
    def of(cls, answer: Completion) -> "Rollout":
        """Return a stored answer as a rollout."""
        is_plain = all(answer.sampling.get(name, plain[0]) in plain for name, plain in _PLAIN.items())
        ids = answer.prompt_token_ids, answer.completion_token_ids
        return cls(conversation(answer), *ids, answer.logprobs, is_plain)


def conversation(answer: Completion) -> list[ChatMessage]:
    """Return the conversation of a stored answer; it carries the tools that were in the prompt."""
    return carrying(answer.messages, answer.sampling.get(TOOLS, []))


class RolloutStore:
    """Rollouts ready for the next update of each person."""

    def __init__(
        self, host: VllmHost, trainer: TrainerClient, prompts: PromptBuilder, bank: Bank, config: LearnConfig
    ) -> None:
        """`config` says how many counterfactual rollouts and anchors an update uses, and how they are sampled."""
        self._host = host
        self._trainer = trainer
        self._prompts = prompts
        self._bank = bank
        self._config = config
        self._ready: OrderedDict[tuple[str, str], list[Rollout]] = OrderedDict()  # by adapter name and workplace
        self._rng = random.Random(config.seed)
        self._anchors: list[Rollout] = []
        self._unanswered = bank.sample_anchors(_NUM_ANCHORS_READY, self._rng)
        self._answers_anchors = asyncio.Lock()

    async def prepare_anchors(self, base: AdapterRef) -> None:
        """Answer all anchors that are kept ready, some at a time: a lesson meanwhile waits for those it needs alone."""
        while self._unanswered:
            await self._answer_anchors(base, len(self._anchors) + 1)

    async def anchors(self, base: AdapterRef, count: int) -> list[Rollout]:
        """Return `count` anchors answered by the base model, fewer if the bank is smaller."""
        if len(self._anchors) < count:
            await self._answer_anchors(base, count)
        return self._rng.sample(self._anchors, min(count, len(self._anchors)))

    async def _answer_anchors(self, base: AdapterRef, count: int) -> None:
        """Answer some more until at least `count` are there, or all; none is answered twice."""
        async with self._answers_anchors:
            while self._unanswered and len(self._anchors) < count:
                self._anchors += await self._answer(base, self._unanswered[:_ANCHORS_AT_ONCE], temperature=0.0)
                del self._unanswered[:_ANCHORS_AT_ONCE]

    async def take(
        self, ref: AdapterRef, recent: Sequence[Completion], count: int, without: Sequence[ChatMessage] = ()
    ) -> list[Rollout]:
        """Return `count` rollouts of this version: ready ones first, the person's own prompts before the bank's.

        None of them answers what `without` ends with, and all are of its kind: chats, or an agent's work.
        """
        left_out = {message["content"] for message in without[-1:]}
        alike = of_kind(recent, without)
        own = [r for r in own_rollouts(alike, ref.number) if r.asked not in left_out][: count // 2]
        left_out |= {r.asked for r in own}
        known = self._ready.get((ref.name, workplace(without)), [])
        if len(known) <= count and len([r for r in known if r.asked not in left_out]) < count - len(own):
            known = await self.prepare(ref, recent, count + 1, without)
        return [*own, *(r for r in known if r.asked not in left_out)][:count]

    async def prepare(
        self, ref: AdapterRef, recent: Sequence[Completion], count: int = 0, like: Sequence[ChatMessage] = ()
    ) -> list[Rollout]:
        """Make and keep at least `count` rollouts of this version, all of the kind of a conversation.

        `recent` are answers to its person.
        """
        count, alike = max(count, self._config.num_counterfactuals), of_kind(recent, like)
        own = self._own_prompts(alike, count) if ref.number else []
        conversations = [*own, *self._topics(count - max(0, len(own) - count // 2), like)]
        temperature, longest = self._config.rollout_temperature, self.length_for(alike)
        key = ref.name, workplace(like)
        self._ready[key] = await self._answer(ref, conversations, temperature, longest)
        self._ready.move_to_end(key)
        while len(self._ready) > _KEPT_PEOPLE:
            self._ready.popitem(last=False)
        return self._ready[key]

    def lacks_tasks(self, ref: AdapterRef, like: Sequence[ChatMessage]) -> bool:
        """Return True if the bank has tasks for the tools of an agent's work, and this version has answered none."""
        if (ref.name, workplace(like)) in self._ready:
            return False
        tools = [tool["function"]["name"] for tool in carried(like)]
        return bool(self._bank.sample_tasks(1, tools, random.Random()))

    def drop(self, name: str) -> None:
        """Forget the rollouts of a version that is out of use."""
        for key in [key for key in self._ready if key[0] == name]:
            del self._ready[key]

    def with_topics(
        self,
        conversations: Sequence[list[ChatMessage]],
        count: int,
        recent: Sequence[Completion] = (),
        like: Sequence[ChatMessage] = (),
    ) -> list[list[ChatMessage]]:
        """Return `count` conversations: the given ones, filled up with topics of the kind of `like`, or cut.

        To a person of another language than the bank's their own `recent` prompts are topics, too.
        """
        given = list(conversations)
        if self._is_foreign(own := _distinct_prompts(of_kind(recent, like))):
            given += [messages for messages in own if messages not in given]
        return [*given, *self._topics(max(0, count - len(given)), like)][:count]

    def _topics(self, count: int, like: Sequence[ChatMessage]) -> list[list[ChatMessage]]:
        """Return questions of the bank, or its tasks with the system message and the tools of an agent's work."""
        tools = carried(like)
        tasks = self._bank.sample_tasks(count, [tool["function"]["name"] for tool in tools], self._rng)
        begun = [message for message in like[:1] if message["role"] == "system"]
        return [carrying([*begun, *task], tools) for task in tasks] or self._bank.sample_topics(count, self._rng)

    def _own_prompts(self, recent: Sequence[Completion], count: int) -> list[list[ChatMessage]]:
        """Return a person's own prompts: half of `count`, or all of it where the bank is in another language."""
        own = _distinct_prompts(recent)
        return own[: count if self._is_foreign(own) else count // 2]

    def _is_foreign(self, conversations: Sequence[list[ChatMessage]]) -> bool:
        """Return True for chats in another language than the bank's; what an agent reads is no language."""
        if any(map(carried, conversations)):
            return False
        return self._bank.is_foreign_to([messages[-1]["content"] for messages in conversations])

    async def by_teacher(
        self,
        ref: AdapterRef,
        conversations: Sequence[list[ChatMessage]],
        longest: int | None = None,
        begun: Sequence[list[int]] = (),
    ) -> list[list[int]]:
        """Return response token ids of the teacher, one for each of the conversations as the teacher sees them.

        Each has at most `longest` tokens (`length_for`; None: `max_rollout_tokens`), and goes on from what is `begun`.
        """
        temperature = self._config.teacher_temperature
        asked = zip(conversations, begun or [[] for _ in conversations], strict=True)
        found = await asyncio.gather(
            *(self._one(ref, c, temperature, _IN_AN_UPDATE, longest, first) for c, first in asked)
        )
        return [r.response_token_ids for r in found]

    async def as_taught(
        self,
        ref: AdapterRef,
        asked: Sequence[list[ChatMessage]],
        seen: Sequence[list[ChatMessage]],
        learn: LearnConfig,
        longest: int | None = None,
    ) -> list[list[int]]:
        """Return response token ids of the teacher as the student is meant to answer.

        Where the teacher is guided they begin as the guided one does (`engine.training.openings`); what follows is as
        the model says it. `asked`: the conversations as the student sees them; else as `by_teacher`.
        """
        begun: Sequence[list[int]] = ()
        if learn.guidance_scale != 1 and learn.teacher == "base":
            begun = await self._begun(asked, seen, learn, longest or learn.max_rollout_tokens)
        return await self.by_teacher(ref, seen, longest, begun)

    async def greedy_answers(
        self, ref: AdapterRef, conversations: Sequence[list[ChatMessage]], longest: int
    ) -> list[list[int]]:
        """Return a version's greedy answers to the conversations, each of at most `longest` tokens."""
        found = await asyncio.gather(*(self._one(ref, c, 0.0, _BACKGROUND, longest) for c in conversations))
        return [r.response_token_ids for r in found]

    async def answers_to(self, ref: AdapterRef, questions: Sequence[str]) -> list[Rollout]:
        """Return a version's answers to questions of one message each, sampled as every other rollout."""
        conversations = [[{"role": "user", "content": text}] for text in questions]
        return await self._answer(ref, conversations, self._config.rollout_temperature)

    def length_for(self, recent: Sequence[Completion]) -> int:
        """Return the tokens that a rollout for a person may have: as many as most of their own answers have."""
        return rollout_tokens([self._said(Rollout.of(c)) for c in recent if c.completion_token_ids], self._config)

    def _said(self, answer: Rollout) -> int:
        """Count the tokens of an answer without its thoughts."""
        is_open = self._prompts.opens_thoughts(answer.prompt_token_ids)
        whole = answer.response_token_ids
        return len(whole) - self._prompts.num_thought_tokens(whole, is_open=is_open)

    async def _answer(
        self,
        ref: AdapterRef,
        conversations: Sequence[list[ChatMessage]],
        temperature: float,
        longest: int | None = None,
    ) -> list[Rollout]:
        found = await asyncio.gather(*(self._one(ref, c, temperature, _BACKGROUND, longest) for c in conversations))
        return [r for r in found if r.response_token_ids]

    async def _one(
        self,
        ref: AdapterRef,
        messages: list[ChatMessage],
        temperature: float,
        priority: int,
        longest: int | None = None,
        begun: Sequence[int] = (),
    ) -> Rollout:
        longest = min(longest or self._config.max_rollout_tokens, self._prompts.max_training_tokens // 2)
        prompts = self._prompts.training_prompts([messages], longest)
        if not prompts:
            return Rollout(messages, [], [], [])
        (prompt,) = prompts
        sampling = Sampling(temperature=temperature, max_tokens=max(1, longest - len(begun)))
        rest = await self._host.complete([*prompt, *begun], sampling, ref, f"rollout-{uuid.uuid4().hex}", priority)
        unread = [0.0] * len(begun)  # what an answer goes on from was not sampled
        whole = replace(rest, token_ids=[*begun, *rest.token_ids], logprobs=[*unread, *rest.logprobs])
        if whole.finish_reason == "length" and self._is_all_thoughts(prompt, whole.token_ids):
            whole = await self._closed(prompt, whole, sampling, ref, priority)
        is_plain = temperature in (0.0, 1.0)  # vLLM reports the log-probabilities of other temperatures as sampled
        return Rollout(messages, prompt, whole.token_ids, whole.logprobs, is_plain=is_plain)

    async def _begun(
        self, asked: Sequence[list[ChatMessage]], seen: Sequence[list[ChatMessage]], learn: LearnConfig, longest: int
    ) -> list[list[int]]:
        """Return the tokens that each answer of the guided teacher begins with.

        Where that would be the answer's end, or a conversation is too long to be read, there are none.
        """
        shown = zip(seen, map(plain_messages, asked), strict=True)
        views = [self._prompts.training_prompts([*pair], longest) for pair in shown]
        fitting = {place: (view[0], view[1]) for place, view in enumerate(views) if view}
        tokens = await self._trainer.first_tokens([*fitting.values()], learn)
        first = dict(zip(fitting, tokens, strict=True))
        end = self._prompts.end_token_id
        return [[first[place]] if first.get(place, end) != end else [] for place in range(len(views))]

    def _is_all_thoughts(self, prompt: list[int], token_ids: list[int]) -> bool:
        is_open = self._prompts.opens_thoughts(prompt)
        return len(token_ids) == self._prompts.num_thought_tokens(token_ids, is_open=is_open)

    async def _closed(
        self, prompt: list[int], whole: HostChunk, sampling: Sampling, ref: AdapterRef, priority: int
    ) -> HostChunk:
        """Return an answer whose thoughts went on for too long: they are ended, and what is said then is the answer."""
        thoughts = [*whole.token_ids, *self._prompts.closing_token_ids]
        read = [*prompt, *thoughts]
        room = min(sampling.max_tokens or 0, self._prompts.room_for(read))
        if room < 1:
            return whole
        sampling = replace(sampling, max_tokens=room)
        said = await self._host.complete(read, sampling, ref, f"rollout-{uuid.uuid4().hex}", priority)
        unread = [0.0] * (len(thoughts) - len(whole.logprobs))  # of the mark: thoughts are compared with nothing
        return replace(
            said, token_ids=[*thoughts, *said.token_ids], logprobs=[*whole.logprobs, *unread, *said.logprobs]
        )


def workplace(messages: Sequence[ChatMessage]) -> str:
    """Return a name for the system message and the tools of an agent's work, empty for a chat."""
    tools = carried(messages)
    if not tools:
        return ""
    return hashlib.sha256(json.dumps([messages[0]["content"], tools]).encode()).hexdigest()


def of_kind(recent: Sequence[Completion], like: Sequence[ChatMessage]) -> list[Completion]:
    """Return the answers in chats, or those of an agent at work, as the conversation `like` is one."""
    is_work = bool(carried(like))
    return [answer for answer in recent if bool(answer.sampling.get(TOOLS)) == is_work]


def rollout_tokens(lengths: Sequence[int], config: LearnConfig) -> int:
    """Return max(floor, min(quantile of the lengths of a person's answers, longest, each rollout's share of a lesson)).

    A rollout that is cut teaches no ending; one that is needlessly long costs time.
    """
    if not lengths:
        return config.max_rollout_tokens
    wanted = sorted(lengths)[max(0, math.ceil(config.rollout_quantile * len(lengths)) - 1)]
    share = config.lesson_rollout_tokens // max(1, config.num_counterfactuals + config.num_teacher_rollouts)
    return max(config.max_rollout_tokens, min(wanted, config.longest_rollout_tokens, share))


def own_rollouts(recent: Sequence[Completion], version: int) -> list[Rollout]:
    """Return stored answers that this very version gave without notes: on-policy as they are, newest first."""
    found: dict[str, Rollout] = {}
    for c in recent:
        asked = c.messages[-1]["content"] if c.messages else ""
        is_own = c.adapter_version == version and not c.notes and c.finish_reason != GIVEN
        if is_own and c.completion_token_ids and asked not in found:
            found[asked] = Rollout.of(c)
    return list(found.values())


def _distinct_prompts(recent: Sequence[Completion]) -> list[list[ChatMessage]]:
    found = {c.messages[-1]["content"]: conversation(c) for c in recent if c.messages}
    return list(found.values())
