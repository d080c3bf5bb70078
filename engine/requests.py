"""The engine's requests and results: plain frozen records, no behaviour."""

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

GIVEN = "given"  # the finish reason of an answer that heed did not write (`engine.generation.external_answer`)
STOPPED = "stopped"  # the finish reason of an answer that the person ended
REPEATED = "repetition"  # of one that was ended because it said one passage over and over, in vLLM's word
NOT_TEXT = re.compile("[\x00\ud800-\udfff]")  # characters that cannot be stored as text
# {"role": "system" | "user" | "assistant" | "tool", "content": text}; an answer may have "tool_calls" in OpenAI's form,
# with arguments as JSON text, and a tool's result the "tool_call_id" of its call.
ChatMessage = dict[str, Any]
Tool = dict[str, Any]  # {"type": "function", "function": {"name", "description", "parameters"}}, as the client wrote it
ToolCallPiece = dict[str, Any]  # a call, or a piece of one by its "index", in the form of OpenAI's streams
TOOLS = "tools"  # the key of an answer's sampling record for the tools that were in its prompt


@dataclass(frozen=True)
class Sampling:
    """The sampling of an answer. `temperature` 0 is greedy; `max_tokens` None fills the context."""

    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    top_logprobs: int = 0
    top_k: int = 0  # 0: all tokens
    min_p: float = 0.0
    repetition_penalty: float = 1.0  # this and the next three hold for greedy answers, too
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    logit_bias: dict[str, float] = field(default_factory=dict)  # by token id, added before sampling
    json_schema: dict[str, Any] | None = None  # that the answer has to fit
    tool_choice: str = "auto"  # "required", or the name of the function that has to be called
    parallel_tool_calls: bool = True  # several in one answer
    structural_tag: str = ""  # a grammar of vLLM's that the answer has to fit; the engine's word
    may_repeat: bool = False  # one passage without end, as a file may; the engine's word
    keeps_special: bool = False  # in the text, for models whose marks of thoughts are special tokens; the engine's word


@dataclass(frozen=True)
class GenerateRequest:
    """A request for one answer. `messages` carry neither notes nor feedback: the engine adds the notes."""

    user_id: str
    messages: list[ChatMessage]
    sampling: Sampling = field(default_factory=Sampling)
    notes: Literal["auto", "off"] = "auto"
    adapter: Literal["active", "base"] = "active"
    priority: int = 0  # lower is sooner: 0 chat, 10 background
    tools: list[Tool] = field(default_factory=list)  # shown to the chat template
    stop: asyncio.Event | None = None  # once set, the answer ends with what was written, as STOPPED
    remark: str = ""  # what the person said of an earlier try at this answer: read beside the notes, and kept by none
    is_whole: bool = False  # too long a conversation is refused, rather than that its oldest turns are dropped


@dataclass(frozen=True)
class Delta:
    """A piece of a streamed answer. The last one carries `result`."""

    text: str
    token_ids: list[int]
    logprobs: list[float]
    top_logprobs: list[dict[int, float]] | None = None
    result: "GenerateResult | None" = None
    reasoning: str = ""  # the thoughts before the answer, no part of its text (`engine.prompts.reasoning`)
    tool_calls: list[ToolCallPiece] = field(default_factory=list)  # pieces of calls, no part of its text either


@dataclass(frozen=True)
class GenerateResult:
    """A finished answer, with everything that `storage.tables.Completion` keeps."""

    text: str
    messages: list[ChatMessage]
    notes: list[str]
    prompt_token_ids: list[int]
    completion_token_ids: list[int]
    logprobs: list[float]
    adapter_version: int
    sampling: dict[str, Any]
    finish_reason: str  # "stop" | "length" | "abort" | STOPPED | REPEATED | GIVEN
    num_cached_tokens: int
    time_to_first_token_s: float
    duration_s: float
    reasoning: str = ""
    tool_calls: list[ToolCallPiece] = field(default_factory=list)  # whole ones; `text` has them as the model wrote them
    said: str = ""  # outside of calls
    waited_s: float = 0.0  # before it was begun


@dataclass(frozen=True)
class ModelSkills:
    """The ways of the model that runs: with tools, and with the bytes of a token by its id."""

    shows_tools: bool  # its chat template puts tools into the prompt
    writes_calls: bool  # in a form that is read
    token_bytes: Callable[[int], bytes]


@dataclass(frozen=True)
class Likelihood:
    """The likelihood of an answer, token by token, in nats."""

    num_prompt_tokens: int
    tokens: list[str]
    logprobs: list[float]


@dataclass(frozen=True)
class LearnOutcome:
    """The outcome of one piece of feedback."""

    feedback_id: str
    status: Literal["learned", "queued", "kept", "rejected", "cancelled"]
    adapter_version: int  # the active version afterwards
    note: str | None = None  # the standing note it made, if any
    note_id: str | None = None
    reason: str = ""  # a sentence if nothing was learned
    steps: int = 0
    divergence_before: float | None = None  # nats per token, teacher against student
    divergence_after: float | None = None
    duration_ms: float = 0.0
    phases_ms: dict[str, float] = field(default_factory=dict)
    gate: dict[str, Any] = field(default_factory=dict)
    heat: list[tuple[str, float]] = field(default_factory=list)  # (token text, log p_teacher - log p_student)
    update_id: str | None = None
    curves: dict[str, list[float]] = field(default_factory=dict)  # one value per step: "loss", "divergence"
    is_calibrated: bool = True  # False: the model's rates and gates are only estimated
    reading: str = ""  # what it was taken for (`storage.kinds.Meaning`); empty if it was not read
    is_unsure: bool = False  # so the person is asked: "Just this answer" or "From now on"
    replaced: list[str] = field(default_factory=list)  # the notes whose place the one it made has taken


@dataclass(frozen=True)
class LessonProgress:
    """How far a lesson is that has not ended."""

    status: Literal["queued", "running"]
    phase: str = ""  # as in `LearnOutcome.phases_ms`; empty while it waits
    share: float = 0.0  # of the whole lesson, from 0 to 1
    duration_s: float = 0.0  # since the feedback was handed in
    place: int = 0  # lessons that come before it


@dataclass(frozen=True)
class ModelLearning:
    """How the model learns: the rates and bounds in use, where they come from, or why it is not trained."""

    refusal: str = ""  # why nothing is trained, as a sentence; empty if it is
    remedy: str = ""  # what the operator can do about it
    architecture: str = ""
    is_measured: bool = False  # False: rate, steps and bounds are only estimated
    learning_rate: float = 0.0
    steps: int = 0
    bounds: dict[str, float] = field(default_factory=dict)  # of the gates, by the names of their settings
    figures: dict[str, Any] = field(default_factory=dict)  # of the calibration, as `heed calibrate` keeps them
    progress: str = ""  # of a calibration in idle time, as a sentence; empty if there is none


@dataclass(frozen=True)
class EngineLoad:
    """The work of an engine, now and since it started."""

    num_people: int = 0  # whom it has, in a cluster
    num_streams: int = 0  # answers and rollouts that are being written
    num_lessons: int = 0  # that wait or run
    num_adapters: int = 0  # versions that can answer without being read again
    num_taken_over: int = 0  # people who were nobody's or another engine's before
    num_read: int = 0  # versions read and checked before their first answer here
    num_fetched: int = 0  # of these, from the object store


@dataclass(frozen=True)
class ConsolidationOutcome:
    """The outcome of one consolidation of a person."""

    status: Literal["learned", "kept", "rejected"]
    adapter_version: int  # the active version afterwards
    reason: str = ""  # a sentence if nothing was learned
    num_new: int = 0  # signals that were new
    num_rehearsed: int = 0  # earlier corrections taught once more
    num_weak: int = 0  # weak signals and better answers that trained something
    num_better: int = 0  # better answers that a teacher had written (`engine.consolidation.better_answers`)
    steps: int = 0
    duration_ms: float = 0.0
    gate: dict[str, Any] = field(default_factory=dict)
    update_id: str | None = None
    is_rebuild: bool = False  # made again from zero


@dataclass(frozen=True)
class UndoResult:
    """The active version after an undo, and the note that went with the lesson."""

    version: int
    note: str | None = None
    must_rebuild: bool = False  # the notes that are left have to be learned again
