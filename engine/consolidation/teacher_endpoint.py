"""A teacher elsewhere: any endpoint with OpenAI's chat calls, asked for one better answer at a time.

Owns the call and its limits. Invariants: a call ends within `timeout_s` and reads no more than `max_reply_bytes`; no
redirect is followed, so that key and conversation reach only the configured host; a reply that is no answer raises
TeacherAnswerInvalid, and a missing reply TeacherUnreachable.
"""

import json
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlsplit

import aiohttp

from engine.config import BetterAnswersConfig
from engine.errors import TeacherAnswerInvalid, TeacherUnreachable
from engine.prompts.reasoning import without_thoughts
from engine.requests import NOT_TEXT, ChatMessage

_TRIAL: list[ChatMessage] = [{"role": "user", "content": "Say yes."}]


@dataclass(frozen=True)
class Draft:
    """A better answer as it was written, before the checks."""

    text: str
    is_ended: bool  # False if it ran into a limit


class Teacher(Protocol):
    """A writer of better answers."""

    @property
    def source(self) -> str:
        """The teacher's name, as it is stored and shown."""

    async def write(self, messages: list[ChatMessage]) -> Draft:
        """Return an answer to a conversation. Raises TeacherError."""


class Endpoint:
    """The endpoint of `curriculum.url`."""

    def __init__(self, config: BetterAnswersConfig) -> None:
        """Keep the settings. Nothing is asked yet."""
        self._config = config

    @property
    def source(self) -> str:
        """The model and the host name of its endpoint."""
        return f"{self._config.model} at {urlsplit(self._config.url).hostname}"

    async def check(self) -> None:
        """Ask for one word. Raises TeacherUnreachable, TeacherAnswerInvalid."""
        await self.write(_TRIAL)

    async def write(self, messages: list[ChatMessage]) -> Draft:
        """See Teacher."""
        config = self._config
        body = {"model": config.model, "messages": messages, "temperature": 0, "max_tokens": config.max_tokens}
        status, content = await self._post(body)
        if status != 200:
            raise TeacherUnreachable(f"the teacher {self.source} answered with status {status}: {_remedy(status)}")
        try:
            return draft(json.loads(content))
        except (ValueError, RecursionError) as error:
            raise TeacherAnswerInvalid(f"the teacher {self.source} sent no answer: {error}") from error

    async def _post(self, body: dict[str, Any]) -> tuple[int, bytes]:
        config = self._config
        headers = {"Authorization": f"Bearer {config.api_key}"} if config.api_key else {}
        url = f"{config.url.rstrip('/')}/chat/completions"
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(config.timeout_s)) as session,
                session.post(url, json=body, headers=headers, allow_redirects=False) as response,
            ):
                return response.status, await self._read(response)
        except TimeoutError as error:
            reason = f"it gave no answer within {config.timeout_s:g} s (HEED_CURRICULUM_TIMEOUT_S)"
            raise TeacherUnreachable(f"the teacher {self.source} is too slow: {reason}") from error
        except (aiohttp.ClientError, OSError) as error:
            reason = str(error) or type(error).__name__
            raise TeacherUnreachable(f"the teacher {self.source} cannot be reached: {reason}") from error

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        limit, content = self._config.max_reply_bytes, bytearray()
        async for part in response.content.iter_any():
            content += part
            if len(content) > limit:
                raise TeacherAnswerInvalid(f"the teacher {self.source} sent more than {limit} bytes")
        return bytes(content)


def draft(reply: Any) -> Draft:
    """Return the answer in a reply of OpenAI's form. Raises ValueError saying what is wrong with it."""
    try:
        choice = reply["choices"][0]
        text, reason = choice["message"]["content"], choice.get("finish_reason")
    except (AttributeError, IndexError, KeyError, TypeError):
        raise ValueError("the reply has no choices[0].message.content") from None
    if not isinstance(text, str) or not (text := without_thoughts(text).strip()):
        raise ValueError("its text is empty")
    if NOT_TEXT.search(text):
        raise ValueError("its text has characters that are not valid text")
    return Draft(text, is_ended=reason in ("stop", None))


def _remedy(status: int) -> str:
    if status in (401, 403):
        return "check HEED_CURRICULUM_API_KEY"
    if 300 <= status < 400:
        return "HEED_CURRICULUM_URL leads elsewhere; name the endpoint itself"
    if 400 <= status < 429:
        return "check HEED_CURRICULUM_URL (up to /v1) and HEED_CURRICULUM_MODEL"
    return "try again later"
