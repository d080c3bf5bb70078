"""Every failure of a call as a status and `{error: {type, message, param, code}}`, never a stack trace."""

import logging
import math
import time

from aiohttp import web
from aiohttp.typedefs import Handler

from bot.errors import CONTEXT_LENGTH_EXCEEDED, BotError, QuotaUsed, RequestError, SandboxUnavailable, SessionTooLong
from bot.http.protocol import messages, responses
from bot.http.protocol.app_keys import CORE
from bot.http.protocol.request_ids import request_id
from bot.monitoring import logs
from engine.errors import (
    AdapterRefused,
    BatchNotKept,
    EngineDown,
    EngineError,
    EngineRestarting,
    LearningImpossible,
    NothingToUndo,
    PromptTooLongError,
    RequestRefused,
)
from storage.errors import (
    IdempotencyConflict,
    NotStorable,
    RowNotFound,
    StorageError,
    VersionStateError,
    without_folders,
)

logger = logging.getLogger(__name__)

RETRY_AFTER_S = "5"
_KNOWN: tuple[tuple[type[Exception], int, str, str | None, str | None], ...] = (  # status, type, code, param
    (RowNotFound, 404, "not_found_error", None, None),
    (IdempotencyConflict, 422, "invalid_request_error", "idempotency_key_reused", "Idempotency-Key"),
    (NotStorable, 400, "invalid_request_error", "invalid_value", None),
    (VersionStateError, 400, "invalid_request_error", None, None),
    (PromptTooLongError, 400, "invalid_request_error", CONTEXT_LENGTH_EXCEEDED, "messages"),
    (AdapterRefused, 400, "invalid_request_error", None, None),
    (BatchNotKept, 404, "not_found_error", None, None),
    (NothingToUndo, 409, "invalid_request_error", None, None),
    (LearningImpossible, 409, "invalid_request_error", None, None),
    (SandboxUnavailable, 409, "invalid_request_error", "sandbox_unavailable", None),
    (SessionTooLong, 400, "invalid_request_error", CONTEXT_LENGTH_EXCEEDED, "text"),
    (EngineRestarting, 503, "not_ready_error", None, None),
    (EngineDown, 503, "not_ready_error", None, None),
)


@web.middleware
async def as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn every exception of a handler into an error body; count and log the call."""
    started_s = time.perf_counter()
    with logs.call(request_id(request)):
        try:
            response = await handler(request)
        except web.HTTPException as error:
            response = _of_http(request, error)
        except ConnectionResetError:
            raise  # the client left
        except Exception as error:  # noqa: BLE001  the HTTP edge
            status, body = body_of(request, error)
            response = web.json_response(body, status=status, headers=_headers(status, error))
        _note(request, response.status, time.perf_counter() - started_s)
    return response


def body_of(request: web.Request, error: Exception) -> tuple[int, responses.Refusal]:
    """Return the status and the body for `error`. An unexpected one is logged and counted."""
    if isinstance(error, RequestError):
        return error.status, _body(error.kind, error.message, error.param, error.code)
    if isinstance(error, RequestRefused):
        return 400, _body("invalid_request_error", str(error), error.param, "invalid_value")
    for kind, status, name, code, param in _KNOWN:
        if isinstance(error, kind):
            return status, _body(name, without_folders(str(error)), param, code)
    if isinstance(error, BotError | EngineError | StorageError):
        logger.error("%s %s (%s): %s", request.method, request.path, request_id(request), error)
        status = 503 if error.retryable else 500
        return status, _body("server_error", without_folders(str(error)))
    logger.error("%s %s (%s) failed", request.method, request.path, request_id(request), exc_info=error)
    request.app[CORE].metrics.errors.labels("http").inc()
    return 500, _body("server_error", messages.UNEXPECTED)


def _body(kind: str, message: str, param: str | None = None, code: str | None = None) -> responses.Refusal:
    return responses.Refusal(error={"type": kind, "message": message, "param": param, "code": code})


def _of_http(request: web.Request, error: web.HTTPException) -> web.Response:
    if error.status < 400:
        raise error
    path, limit_bytes = request.path[:200], request.app[CORE].settings.http.body_limit_bytes
    sentences = {
        404: messages.NOTHING_AT_PATH.format(path=path),
        405: messages.NO_SUCH_METHOD.format(method=request.method, path=path),
        413: messages.REQUEST_TOO_LARGE.format(limit_bytes=limit_bytes),
    }
    body = _body("not_found_error" if error.status == 404 else "invalid_request_error", "")
    body["error"]["message"] = sentences.get(error.status, f"{error.reason}.")
    headers = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else None
    return web.json_response(body, status=error.status, headers=headers)


def _headers(status: int, error: Exception) -> dict[str, str]:
    if status == 401:
        return {"WWW-Authenticate": "Bearer"}
    if isinstance(error, QuotaUsed):
        return {"Retry-After": str(math.ceil(error.retry_after_s))}
    return {"Retry-After": RETRY_AFTER_S} if status in (429, 503) else {}


def _note(request: web.Request, status: int, took_s: float) -> None:
    """Count a call and log it by its route: a path may name people."""
    resource = request.match_info.route.resource
    route = resource.canonical if resource is not None else "none"
    request.app[CORE].metrics.requests.labels(route, str(status)).inc()
    logger.info("%s %s: %d in %.0f ms", request.method, route, status, took_s * 1e3)
