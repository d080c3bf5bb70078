"""The errors of the chat side, one leaf per remedy.

BotError
├── SettingsError (ValueError)             a setting is wrong: names the key and what to write instead
├── StartError (RuntimeError)              heed cannot start here (storage and engine have their own leaves)
│   ├── PortInUse (OSError)
│   ├── ModelNotFound (FileNotFoundError)
│   └── SandboxUnavailable                 an agent's tools cannot run here
├── CallUnreadable (ValueError)            a model wrote no call of a tool: it is told, and writes another
├── NothingWaits (LookupError)             no call of an agent waits for the person
├── SessionTooLong (ValueError)            an agent's session does not fit: begin anew
├── NoSuchTraining (LookupError)           no consolidation was asked for under this id
├── ServerError (ConnectionError)          a command could not talk to the running heed
│   ├── ServerUnreachable                  none is running there
│   └── ServerRefused                      it answered with an error
└── RequestError (ValueError)              a request is refused; nothing was changed
    ├── MalformedRequest                   400: not JSON, or not an object
    ├── BatchRefused                       400: what stands in one call does not go together
    ├── InvalidField                       400: one field is wrong
    │   ├── NotSupported                   400: heed cannot do what the field asks for
    │   └── NoteTooLong                    400: a note for an agent's lessons: write a shorter one
    ├── NotAuthorised                      401: no or an unknown API key
    ├── OriginRefused                      403: another site's page, or an unexpected Host
    ├── ModelRefused                       403: another base model than the one that runs
    ├── ScopeMissing                       403: the API key may not do this
    ├── AgentNotAllowed                    403: the operator allows the agent by `agent.allow`
    ├── NotFound (LookupError)             404
    │   └── UnknownModel                   404: name a model of `GET /v1/models`
    ├── BodyTooSlow (TimeoutError)         408: the body did not come in time
    ├── ShapeTaken                         409: an adapter that has learned something has another shape
    ├── AnswerUnderWay                     409: the first call with this key is still being answered
    ├── SessionBusy                        409: wait for what an agent's session does, or stop it
    ├── CallNotThere                       409: no call of an agent waits for the person
    ├── CallChanged                        409: another call waits than the one that was shown: look at it first
    ├── TooLarge                           413: more bytes than are taken
    ├── Overloaded                         429: too many answers at once
    ├── QuotaUsed                          429: the API key's day is spent
    ├── NotReady                           503: still starting, or the engine is down
    └── AnswerTimeout (TimeoutError)       504: the model gave nothing for too long
"""

from typing import ClassVar


class BotError(Exception):
    """Root of every error heed's chat side raises on purpose."""

    retryable: ClassVar[bool] = False


class SettingsError(BotError, ValueError):
    """A setting is wrong; the message names the key and the remedy."""


class StartError(BotError, RuntimeError):
    """heed cannot start here."""


class PortInUse(StartError, OSError):
    """Something else listens on the HTTP port."""


class ModelNotFound(StartError, FileNotFoundError):
    """The configured model does not exist."""


class SandboxUnavailable(StartError):
    """An agent's programs cannot be run in a sandbox here; the text names the remedy."""


class CallUnreadable(BotError, ValueError):
    """A call of a tool that a model wrote is none; the text says to the model what is wrong with it."""


class NothingWaits(BotError, LookupError):
    """No call of an agent waits for the person."""


class NoSuchTraining(BotError, LookupError):
    """No consolidation was asked for under this id."""


class SessionTooLong(BotError, ValueError):
    """An agent's session does not fit into what the model reads; over HTTP it is refused as CONTEXT_LENGTH_EXCEEDED."""


CONTEXT_LENGTH_EXCEEDED = "context_length_exceeded"


class ServerError(BotError, ConnectionError):
    """A command could not do its work through the running heed."""


class ServerUnreachable(ServerError):
    """No heed answers at the address."""

    retryable = True


class ServerRefused(ServerError):
    """The running heed answered with an error; `status` is the HTTP status, `code` what it tells programs."""

    def __init__(self, message: str, status: int, code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class RequestError(BotError, ValueError):
    """A request is refused. `param` is the field at fault, if one is; `code` tells programs why, as OpenAI's do."""

    status: ClassVar[int] = 400
    kind: ClassVar[str] = "invalid_request_error"
    code: ClassVar[str | None] = None

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param


class MalformedRequest(RequestError):
    """The body is not a JSON object."""


class BatchRefused(RequestError):
    """The parts of one call do not go together: send them in several calls."""


class NotAuthorised(RequestError):
    """No API key, or one that is not known."""

    status = 401
    kind = "authentication_error"
    code = "invalid_api_key"


class OriginRefused(RequestError):
    """The request comes from another site's page, or names a host heed does not answer to."""

    status = 403
    kind = "permission_error"


class ModelRefused(RequestError):
    """Another base model than the one that runs is asked for."""

    status = 403
    kind = "permission_error"


class ScopeMissing(RequestError):
    """The API key is known, and what it may do is not this."""

    status = 403
    kind = "permission_error"


class AgentNotAllowed(RequestError):
    """The operator has not allowed this person to work with the agent, or not in that folder."""

    status = 403
    kind = "permission_error"


class NotFound(RequestError, LookupError):
    """There is no such thing for this person."""

    status = 404
    kind = "not_found_error"


class UnknownModel(NotFound):
    """There is no model of this name."""

    kind = "invalid_request_error"
    code = "model_not_found"


class ShapeTaken(RequestError):
    """An adapter that has learned something already has another shape: delete it first, or leave its shape."""

    status = 409


class BodyTooSlow(RequestError, TimeoutError):
    """The body did not come in time."""

    status = 408
    kind = "timeout_error"
    retryable = True


class AnswerUnderWay(RequestError):
    """A call with the same idempotency key is being answered: send it again in a moment."""

    status = 409
    code = "idempotency_key_in_use"
    retryable = True


class SessionBusy(RequestError):
    """An agent's session does something already: wait for it, or stop it."""

    status = 409
    code = "session_busy"
    retryable = True


class CallNotThere(RequestError):
    """No call of an agent waits for what was said about one."""

    status = 409
    code = "nothing_waits"


class CallChanged(RequestError):
    """Another call of an agent waits than the one that a decision is about: look at it, and decide again."""

    status = 409
    code = "call_changed"


class TooLarge(RequestError):
    """The body has more bytes than are taken."""

    status = 413


class InvalidField(RequestError):
    """One field of the request is wrong."""

    code = "invalid_value"


class NotSupported(InvalidField):
    """A field asks for something that heed, or the model that runs, cannot do: leave it out."""

    code = "unsupported_parameter"


class NoteTooLong(InvalidField):
    """A note for the lessons of an agent's session has more characters than one may."""

    def __init__(self, most_chars: int) -> None:
        super().__init__(f"A note for lessons may have {most_chars} characters.", "text")


class Overloaded(RequestError):
    """Too many answers are being written at once."""

    status = 429
    kind = "rate_limit_error"
    code = "rate_limit_exceeded"
    retryable = True


class QuotaUsed(RequestError):
    """An API key's messages or updates of a day are used up; more come in `retry_after_s` seconds."""

    status = 429
    kind = "rate_limit_error"
    code = "rate_limit_exceeded"
    retryable = True

    def __init__(self, message: str, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class NotReady(RequestError):
    """heed is still starting, or its engine is being restarted."""

    status = 503
    kind = "not_ready_error"
    retryable = True


class AnswerTimeout(RequestError, TimeoutError):
    """The model gave no token for too long."""

    status = 504
    kind = "timeout_error"
    retryable = True
