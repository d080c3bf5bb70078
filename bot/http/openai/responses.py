"""The answers to OpenAI's calls and `POST /v1/score`, typed like those in `bot.http.protocol.responses`."""

from typing import Literal, NotRequired

from bot.http.protocol.responses import JsonResponse

Finish = Literal["stop", "length", "tool_calls", "abort"]


class Model(JsonResponse):
    """A name that the `model` of a call may have; `owned_by` is the model behind it."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class Models(JsonResponse):
    """The names that the `model` of a call may have."""

    object: Literal["list"]
    data: list[Model]


class Cached(JsonResponse):
    """The prompt tokens that were computed before."""

    cached_tokens: int


class Usage(JsonResponse):
    """Token counts; the prompt is counted once, however many answers it has."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: Cached


class HeedInfo(JsonResponse):
    """heed's own fields about an answer, beyond OpenAI's.

    `finish_reason` is heed's own word for why it ended: `stopped` by the person, `repetition` by heed, since it only
    said one passage over and over.
    """

    adapter_version: int
    notes: list[str]
    time_to_first_token_s: float
    duration_s: float
    waited_s: float
    finish_reason: str


class Token(JsonResponse):
    """A token's text, or its id (`token_id:7`) if that was asked for, its log-probability in nats, and its bytes."""

    token: str
    logprob: float
    bytes: list[int]


class ScoredToken(Token):
    """A token of an answer, and the likeliest ones in its place."""

    top_logprobs: list[Token]


class ChatLogprobs(JsonResponse):
    """The log-probabilities of an answer's tokens."""

    content: list[ScoredToken]


class Thoughts(JsonResponse):
    """The reasoning of a model before its answer, if there is any."""

    reasoning_content: NotRequired[str]


class FunctionCall(JsonResponse):
    """A function and its arguments as JSON text, or a piece of them."""

    name: NotRequired[str]
    arguments: str


class ToolCall(JsonResponse):
    """A call that the model makes; in a stream a piece of one, by its index."""

    index: NotRequired[int]
    id: NotRequired[str]
    type: NotRequired[Literal["function"]]
    function: FunctionCall


class AssistantMessage(Thoughts):
    """An answer's words, and the calls that the model makes; an answer may be calls alone."""

    role: Literal["assistant"]
    content: str | None
    tool_calls: NotRequired[list[ToolCall]]


class ChatChoice(JsonResponse):
    """One of the answers."""

    index: int
    message: AssistantMessage
    finish_reason: Finish
    logprobs: ChatLogprobs | None


class ChatCompletion(JsonResponse):
    """Answers to a conversation. Feedback names them by this id, and by their index."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[ChatChoice]
    usage: Usage
    heed: HeedInfo


class ChunkDelta(Thoughts):
    """The words since the last piece."""

    role: NotRequired[Literal["assistant"]]
    content: NotRequired[str]
    tool_calls: NotRequired[list[ToolCall]]


class ChatPieceChoice(JsonResponse):
    """A piece of one of the answers."""

    index: int
    delta: ChunkDelta
    finish_reason: Finish | None
    logprobs: ChatLogprobs | None


class ChatPiece(JsonResponse):
    """An event of a stream; an answer's last one has `heed`, the last of all has `usage` if it was asked for."""

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    choices: list[ChatPieceChoice]
    usage: NotRequired[Usage]
    heed: NotRequired[HeedInfo]


class TextLogprobs(JsonResponse):
    """The log-probabilities of an answer's tokens, one list for each kind of value."""

    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]]


class TextChoice(JsonResponse):
    """One of the answers, or a piece of it."""

    index: int
    text: str
    finish_reason: Finish | None
    logprobs: TextLogprobs | None


class TextCompletion(JsonResponse):
    """Answers in the older form, whole or an event of a stream."""

    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    choices: list[TextChoice]
    usage: NotRequired[Usage]
    heed: NotRequired[HeedInfo]


class ScoreResponse(JsonResponse):
    """The likelihood of an answer, token by token, in nats."""

    logprobs: list[float]
    tokens: list[str]
    prompt_tokens: int
    completion_tokens: int
    logprob_sum: float
