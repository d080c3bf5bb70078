"""What OpenAI's calls and `POST /v1/score` answer with: shapes as those in `bot.http.protocol.responses`."""

from typing import Literal, NotRequired

from bot.http.protocol.responses import Answer

Finish = Literal["stop", "length", "abort"]


class Model(Answer):
    """A name that the `model` of a call may have; `owned_by` is the model behind it."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class Models(Answer):
    """The names that the `model` of a call may have."""

    object: Literal["list"]
    data: list[Model]


class Cached(Answer):
    """How much of a prompt was computed before."""

    cached_tokens: int


class Usage(Answer):
    """Token counts; the prompt is counted once, however many answers it has."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: Cached


class HeedInfo(Answer):
    """What heed tells about an answer beyond OpenAI's fields."""

    adapter_version: int
    notes: list[str]
    time_to_first_token_s: float
    duration_s: float


class Token(Answer):
    """A token by its id, `token_id:7`, with its log-probability in nats."""

    token: str
    logprob: float
    bytes: None


class ScoredToken(Token):
    """A token of an answer, and the likeliest ones in its place."""

    top_logprobs: list[Token]


class ChatLogprobs(Answer):
    """Token by token."""

    content: list[ScoredToken]


class Thoughts(Answer):
    """What a model thought before it answered, where it did."""

    reasoning_content: NotRequired[str]


class Said(Thoughts):
    """An answer's words."""

    role: Literal["assistant"]
    content: str


class ChatChoice(Answer):
    """One of the answers."""

    index: int
    message: Said
    finish_reason: Finish
    logprobs: ChatLogprobs | None


class ChatCompletion(Answer):
    """Answers to a conversation. Feedback names them by this id, and by their index."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[ChatChoice]
    usage: Usage
    heed: HeedInfo


class Delta(Thoughts):
    """What has come since the last piece."""

    role: NotRequired[Literal["assistant"]]
    content: NotRequired[str]


class ChatPieceChoice(Answer):
    """A piece of one of the answers."""

    index: int
    delta: Delta
    finish_reason: Finish | None
    logprobs: ChatLogprobs | None


class ChatPiece(Answer):
    """An event of a stream; the last of an answer has `heed`, the last of all `usage` where that was asked for."""

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    choices: list[ChatPieceChoice]
    usage: NotRequired[Usage]
    heed: NotRequired[HeedInfo]


class TextLogprobs(Answer):
    """Token by token, one list for each kind of value."""

    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]]


class TextChoice(Answer):
    """One of the answers, or a piece of it."""

    index: int
    text: str
    finish_reason: Finish | None
    logprobs: TextLogprobs | None


class TextCompletion(Answer):
    """Answers in the older form, whole or an event of a stream."""

    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    choices: list[TextChoice]
    usage: NotRequired[Usage]
    heed: NotRequired[HeedInfo]


class Score(Answer):
    """How likely an answer is, token by token, in nats."""

    logprobs: list[float]
    tokens: list[str]
    prompt_tokens: int
    completion_tokens: int
    logprob_sum: float
