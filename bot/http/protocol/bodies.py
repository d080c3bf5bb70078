"""The shapes of request bodies, and how they are read.

Owns the limits of all input: everything is checked before anything is changed or tokenised.
"""

import json
from typing import Annotated, Any, Literal, TypeVar

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from bot.errors import InvalidField, MalformedRequest, TooLarge
from bot.http.protocol import messages
from engine.requests import ChatMessage

Name = Annotated[str, StringConstraints(max_length=64)]
Told = Annotated[str, StringConstraints(min_length=1, max_length=500)]
MAX_TOLD = 17  # what a session remembers, and the call itself
OWN_MODELS = ("heed", "heed-base")
ModelName = Annotated[str, StringConstraints(max_length=128)]
FunctionName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
TokenId = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,9}$")]
MAX_CHOICES = 8
MAX_TURNS = 200  # of a conversation, in one response


class Body(BaseModel):
    """A JSON object; unknown fields are ignored, as OpenAI's clients expect, and `null` means "not given"."""

    model_config = ConfigDict(strict=True, extra="ignore", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _given(cls, data: Any) -> Any:
        return {name: value for name, value in data.items() if value is not None} if isinstance(data, dict) else data


class Query(BaseModel):
    """The query of a call, whose values are texts; unknown fields are ignored."""

    model_config = ConfigDict(strict=True, extra="ignore", allow_inf_nan=False)


class TextPart(Body):
    """One part of a message written as a list; heed reads text only."""

    type: Literal["text"]
    text: str

    @model_validator(mode="before")
    @classmethod
    def _is_text(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get("type"), str) and data["type"] != "text":
            raise PydanticCustomError("words_only", "no text", {"kind": data["type"][:32]})
        return data


class CalledFunction(Body):
    """A function that the model called, with its arguments as the JSON text that the model wrote."""

    name: FunctionName
    arguments: str


class CalledTool(Body):
    """A call that the model made in an earlier answer."""

    id: Annotated[str, StringConstraints(max_length=128)]
    type: Literal["function"]
    function: CalledFunction


class MessageBody(Body):
    """One message of a conversation; an answer may consist of calls alone, and `tool` is for a tool's result."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[TextPart] | None = None
    tool_calls: Annotated[list[CalledTool], Field(min_length=1, max_length=128)] | None = None
    tool_call_id: Annotated[str, StringConstraints(max_length=128)] | None = None

    @model_validator(mode="after")
    def _says_something(self) -> "MessageBody":
        if self.content is None and not (self.role == "assistant" and self.tool_calls):
            raise PydanticCustomError("no_content", "no content")
        return self

    def plain(self) -> ChatMessage:
        """Return the message as the engine takes it."""
        given = self.content or ""
        text = given if isinstance(given, str) else "".join(part.text for part in given)
        calls = [call.model_dump() for call in self.tool_calls or ()] if self.role == "assistant" else []
        return {
            "role": "system" if self.role == "developer" else self.role,
            "content": text,
            **({"tool_calls": calls} if calls else {}),
            **({"tool_call_id": self.tool_call_id} if self.tool_call_id and self.role == "tool" else {}),
        }


class StreamOptions(Body):
    """OpenAI's options of a stream."""

    include_usage: bool = False
    include_obfuscation: Literal[False] = False


class HeedOptions(Body):
    """heed's own options of a chat call."""

    notes: Literal["auto", "off"] = "auto"
    truncation: Literal["auto", "disabled"] = "auto"  # where too long: the oldest turns go, or it is refused
    chat: Name | None = None  # heed stores this conversation: send only the new message
    regenerate: str | None = None  # answer this completion's conversation once more, differently


class ModelBody(Body):
    """The common fields of every call to a model: the model, the person, and heed's own options."""

    model: ModelName = "heed"  # one of OWN_MODELS, or an adapter's name (`bot.http.openai.models`)
    user: Name = ""
    heed: HeedOptions = HeedOptions()

    @field_validator("model")
    @classmethod
    def _named(cls, model: str) -> str:
        return model or "heed"

    @property
    def adapter(self) -> Literal["active", "base"]:
        """The adapter that the model's name stands for."""
        return "base" if self.model == "heed-base" else "active"


class AnswerBody(ModelBody):
    """The common fields of OpenAI's chat call and its older call."""

    n: Annotated[int, Field(ge=1, le=MAX_CHOICES)] = 1
    stream: bool = False
    stream_options: StreamOptions | None = None
    stop: (
        Annotated[list[Annotated[str, StringConstraints(min_length=1, max_length=200)]], Field(max_length=8)]
        | Annotated[str, StringConstraints(min_length=1, max_length=200)]
        | None
    ) = None
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=-1, le=1_000_000)] | None = None  # this and the next two as in vLLM's own server
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    repetition_penalty: Annotated[float, Field(gt=0, le=2)] | None = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    logit_bias: Annotated[dict[TokenId, Annotated[float, Field(ge=-100, le=100)]], Field(max_length=1024)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None


class FunctionBody(Body):
    """A function that the model may call; all its fields are shown to the model."""

    model_config = ConfigDict(extra="allow")

    name: FunctionName
    description: str = ""
    parameters: dict[str, Any] = {}


class ToolBody(Body):
    """A tool in OpenAI's form."""

    type: Literal["function"]
    function: FunctionBody


class ForcedFunction(Body):
    """The name of a function that the model has to call."""

    name: FunctionName


class ForcedTool(Body):
    """A tool that the model has to call."""

    type: Literal["function"]
    function: ForcedFunction


class SchemaBody(Body):
    """The JSON schema that an answer has to fit; it is always kept to (`strict`)."""

    name: FunctionName
    description: str = ""
    json_schema: dict[str, Any] = Field({}, alias="schema")
    strict: bool = True


class ResponseFormatBody(Body):
    """The form of an answer: text, any JSON object, or JSON by a schema."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: SchemaBody | None = None


class ChatBody(AnswerBody):
    """`POST /v1/chat/completions`; `bot.http.openai.parameters` names what is refused.

    Some fields say only what is so anyway: `store`, `modalities`, `service_tier`, `verbosity` and the prompt cache's.
    """

    messages: Annotated[list[MessageBody], Field(max_length=512)] = []
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    return_tokens_as_token_ids: bool = False  # as in vLLM's own server
    tools: Annotated[list[ToolBody], Field(max_length=128)] | None = None
    tool_choice: Literal["auto", "none", "required"] | ForcedTool | None = None
    parallel_tool_calls: bool = True
    response_format: ResponseFormatBody | None = None
    store: Literal[True] | None = None
    modalities: list[Literal["text"]] | None = None
    service_tier: Literal["auto", "default"] | None = None
    verbosity: Literal["medium"] | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: Literal["in_memory"] | None = None


class TextBody(AnswerBody):
    """`POST /v1/completions`."""

    prompt: str | list[str]
    logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    echo: Literal[False] = False
    suffix: Literal[""] | None = None
    best_of: Annotated[int, Field(ge=1)] | None = None


class ScoreBody(ModelBody):
    """`POST /v1/score`."""

    messages: Annotated[list[MessageBody], Field(max_length=512)] = []
    completion: str


class FeedbackBody(Body):
    """`POST /v1/feedback`."""

    completion_id: Annotated[str, StringConstraints(max_length=128)] | None = None
    user: Name = ""
    kind: Literal["correction", "ideal", "approval", "reaction", "note"]
    index: Annotated[int, Field(ge=0, lt=MAX_CHOICES)] = 0
    text: str = ""
    value: str | int = ""
    wait: bool | Annotated[float, Field(ge=0, le=3600)] = True  # for the result; a number: this many seconds at most
    retry: bool = False
    scope: Literal["", "answer", "always"] = ""  # how far a correction reaches, if the person said
    context: Annotated[list[Told], Field(max_length=MAX_TOLD)] = []  # the teacher alone reads it, at this answer
    training: dict[str, Any] | None = None


class ScopeBody(Body):
    """`POST /v1/feedback/{id}/scope`."""

    scope: Literal["answer", "always"]
    wait: bool | Annotated[float, Field(ge=0, le=3600)] = True
    retry: bool = False


class RollbackBody(Body):
    """`POST /v1/users/{user}/rollback`."""

    version: Annotated[int, Field(ge=0, lt=2**31)]


class CommandBody(Body):
    """`POST /v1/users/{user}/commands`."""

    text: Annotated[str, StringConstraints(min_length=1)]
    chat: Name = "web"
    completion_id: Annotated[str, StringConstraints(max_length=128)] | None = None


class UserQuery(Query):
    """The query of the calls below `/api/sessions` and about a piece of feedback: the person's name."""

    user: Name = ""


class HistoryQuery(Query):
    """The query of `GET /v1/users/{user}/history`."""

    chat: Name = "web"
    limit: Annotated[int, Field(ge=1, le=MAX_TURNS)] = 50


BodyT = TypeVar("BodyT", bound=Body)
QueryT = TypeVar("QueryT", bound=Query)


async def read_bytes(request: web.Request, limit_bytes: int) -> bytes:
    """Return the request's body. Raises MalformedRequest, or TooLarge before more than `limit_bytes` are read."""
    parts, size_bytes = [], 0
    try:
        async for part in request.content.iter_any():
            size_bytes += len(part)
            if size_bytes > limit_bytes:
                raise TooLarge(messages.FILE_TOO_LARGE.format(limit_bytes=limit_bytes))
            parts.append(part)
    except web.RequestPayloadError:
        raise MalformedRequest(messages.UNREADABLE) from None
    return b"".join(parts)


async def read(request: web.Request, kind: type[BodyT]) -> BodyT:
    """Return the request's body as `kind`. Raises MalformedRequest (not a JSON object) or InvalidField."""
    return checked(kind, await read_object(request))


async def read_object(request: web.Request) -> dict[str, Any]:
    """Return the request's body unchecked; it can be read again. Raises MalformedRequest."""
    try:
        data = json.loads(await request.read())
    except web.RequestPayloadError:
        raise MalformedRequest(messages.UNREADABLE) from None
    except (ValueError, RecursionError):
        raise MalformedRequest(messages.NOT_JSON) from None
    if not isinstance(data, dict):
        raise MalformedRequest(messages.NOT_AN_OBJECT)
    return data


def checked(kind: type[BodyT], data: dict[str, Any]) -> BodyT:
    """Return `data` as `kind`. Raises InvalidField."""
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        raise _refusal(error, data) from None


def query(request: web.Request, kind: type[QueryT]) -> QueryT:
    """Return the request's query as `kind`. Raises InvalidField."""
    data = dict(request.query)
    try:
        return kind.model_validate_strings(data)
    except ValidationError as error:
        raise _refusal(error, data) from None


def _refusal(error: ValidationError, data: Any) -> InvalidField:
    """Return the first wrong field; of the reasons why none of a field's forms fits, the one that lies deepest."""
    found = [(_path(wrong, data), wrong) for wrong in error.errors()]
    first = found[0][0]
    path, wrong = max((one for one in found if one[0][: len(first)] == first), key=lambda one: len(one[0]))
    param = ".".join(path)
    return InvalidField(messages.wrong_field(param, wrong), param)


def _path(wrong: ErrorDetails, data: Any) -> list[str]:
    """Return where in the data a wrong field is: Pydantic's place of it, without the names of forms."""
    path, here = [], data
    for part in wrong["loc"]:
        if isinstance(here, list) and isinstance(part, int):
            here = here[part]
        elif isinstance(here, dict) and (part in here or part == wrong["loc"][-1]):
            here = here.get(part)
        else:
            continue
        path.append(str(part))
    return path
