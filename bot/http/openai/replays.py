"""Chat calls with an `Idempotency-Key`: the same call sent again brings the same answer, whole, and writes no other.

Invariants: the ids of an answer follow from its person and its key, so that no two are stored; a stored one is given
again from storage, one choice at a time, also after a restart; the same key with another body is refused; while the
first call is still being answered, the second is told to come back (`bot.core.gateway`).
"""

import hashlib
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import Any

from aiohttp import web

from bot.core.core import Core
from bot.core.gateway import REQUEST, Turn
from bot.errors import NotSupported
from bot.http.api.feedback import KEY_HEADER, key_of
from bot.http.protocol import messages
from bot.http.protocol.bodies import ChatBody
from engine.requests import Delta, GenerateResult
from storage.conversations import completions
from storage.database import Session
from storage.errors import CompletionNotFound, IdempotencyConflict
from storage.tables import Completion

Stored = dict[int, Completion]  # by the index of the choice


def keyed(request: web.Request, body: ChatBody, turns: Sequence[Turn]) -> list[Turn]:
    """Return the turns of a call, which a call with the same key has again. Raises InvalidField, NotSupported."""
    key = key_of(request)
    if key is None:
        return list(turns)
    if body.logprobs and body.top_logprobs:
        raise NotSupported(messages.TOPS_NOT_KEPT.format(header=KEY_HEADER), "top_logprobs")
    first = f"cmpl-{_digest(turns[0].user_id, key)[:32]}"
    digest = _digest(request.path, body.model_dump_json(exclude={"stream", "stream_options"}))
    return [replace(turn, completion_id=turn.choice_of(first), request_sha256=digest) for turn in turns]


async def stored(core: Core, turns: Sequence[Turn]) -> Stored:
    """Return the answers to a call that came before, as far as they are stored. Raises IdempotencyConflict."""
    wanted = [turn for turn in turns if turn.request_sha256]
    if not wanted:
        return {}
    found = await core.database.read(lambda s: {turn.choice_index: _row(s, turn) for turn in wanted})
    rows = {index: row for index, row in found.items() if row is not None}
    if any(row.sampling.get(REQUEST, {}).get("sha256") != wanted[0].request_sha256 for row in rows.values()):
        raise IdempotencyConflict(messages.KEY_REUSED.format(header=KEY_HEADER))
    return rows


def _row(s: Session, turn: Turn) -> Completion | None:
    try:
        return completions.get(s, turn.user_id, turn.completion_id)
    except CompletionNotFound:
        return None


async def replayed(row: Completion) -> AsyncGenerator[Delta, None]:
    """Yield a stored answer in one piece."""
    kept: dict[str, Any] = row.sampling[REQUEST]
    result = GenerateResult(
        text=row.text,
        messages=row.messages,
        notes=row.notes,
        prompt_token_ids=row.prompt_token_ids,
        completion_token_ids=row.completion_token_ids,
        logprobs=row.logprobs,
        adapter_version=row.adapter_version,
        sampling=row.sampling,
        finish_reason=row.finish_reason,
        num_cached_tokens=row.num_cached_tokens,
        time_to_first_token_s=row.time_to_first_token_s,
        duration_s=row.duration_s,
        reasoning=kept["reasoning"],
        tool_calls=kept["tool_calls"],
        said=kept["said"],
        waited_s=kept["waited_s"],
    )
    calls = [{"index": place, **call} for place, call in enumerate(result.tool_calls)]
    said = result.said if calls else result.text
    yield Delta(said, result.completion_token_ids, result.logprobs, None, result, result.reasoning, calls)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()
