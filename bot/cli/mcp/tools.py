"""The tools that heed offers by MCP: chat, feedback, train and history, each one of its own HTTP calls.

Owns the consolidations that were asked for and have an id here. Calls are made as the person of the client, with their
key: what the key may not do is refused by heed, and the refusal is the tool's answer.
"""

import asyncio
import uuid
from collections import OrderedDict
from typing import Annotated, Literal
from urllib.parse import urlencode

from pydantic import BaseModel, Field

from bot.cli.client import HeedClient, Json
from bot.cli.terminal import lesson_line
from bot.errors import NoSuchTraining

NO_SUCH_TRAINING = "There is no training {} here: ids hold while this server runs."
RUNS_LONGER = (
    "It takes longer than one call waits and goes on in heed; this id does not learn how it ends. If it makes a "
    "version, later answers have a higher adapter_version, in chat and history; `heed adapters` lists all versions."
)
KEPT_TRAININGS = 100


class GivenAnswer(BaseModel):
    """An answer, and the id that feedback names it by."""

    text: str
    completion_id: str
    adapter_version: int


class LessonReport(BaseModel):
    """The end of feedback; `again` is the answer given again, if that was wanted."""

    status: str
    text: str
    feedback_id: str
    again: GivenAnswer | None = None


class Training(BaseModel):
    """A consolidation that was asked for: `running`, or how it ended. `text` says so in words."""

    request_id: str
    status: str
    text: str = ""


class PastTurn(BaseModel):
    """A question, its answer, and what was said about it."""

    question: str
    answer: GivenAnswer
    feedback: list[str]


class HeedTools:
    """The tools, as the person of a client."""

    def __init__(self, client: HeedClient) -> None:
        self._client = client
        self._trainings: OrderedDict[str, asyncio.Task[Json]] = OrderedDict()

    async def chat(
        self,
        message: Annotated[str, Field(min_length=1, description="What the person says.")],
        conversation: Annotated[str, Field(description="The conversation it belongs to; it is kept.")] = "mcp",
    ) -> GivenAnswer:
        """Say something to heed and get its answer. Earlier turns of the conversation are known to it."""
        text = ""
        newest: Json = {}
        async for chunk in self._client.ask(message, conversation):
            if "waiting" in chunk:
                continue
            newest = chunk
            text += "".join(choice["delta"].get("content", "") for choice in chunk["choices"])
        return GivenAnswer(text=text, completion_id=newest["id"], adapter_version=newest["heed"]["adapter_version"])

    async def feedback(
        self,
        completion_id: Annotated[str, Field(description="The answer it is about.")],
        text: Annotated[
            str, Field(description="What was wrong, or the answer as it should be; empty to approve.")
        ] = "",
        kind: Annotated[
            Literal["correction", "ideal", "approval"],
            Field(description="What was wrong; the answer as it should be; or that it was good."),
        ] = "correction",
        again: Annotated[bool, Field(description="Give the answer again afterwards.")] = False,
    ) -> LessonReport:
        """Tell heed about an answer. It learns from that at once, for this person alone, and can take it back."""
        given = await self._client.feedback(
            {"completion_id": completion_id, "kind": kind, "text": text, "retry": again, "wait": True}
        )
        retry = given.get("retry")
        return LessonReport(
            status=given["status"],
            text=lesson_line(given),
            feedback_id=given["feedback_id"],
            again=_answer(retry) if retry else None,
        )

    async def train(self) -> Training:
        """Have heed take in all feedback since the last time, with earlier lessons rehearsed. Takes its time."""
        request_id = f"tr-{uuid.uuid4().hex[:12]}"
        work = self._client.post("/consolidate", {})
        self._trainings[request_id] = asyncio.create_task(work, name=f"training {request_id}")
        while len(self._trainings) > KEPT_TRAININGS:
            self._trainings.popitem(last=False)
        return Training(request_id=request_id, status="training_requested")

    async def training(self, request_id: Annotated[str, Field(description="The id that train gave.")]) -> Training:
        """Say how a training ended, or that it runs.

        One that takes minutes stays `running` here also once it has ended; its text says how to find the end.
        """
        task = self._trainings.get(request_id)
        if task is None:
            raise NoSuchTraining(NO_SUCH_TRAINING.format(request_id))
        if not task.done():
            return Training(request_id=request_id, status="running")
        done = task.result()
        if done["status"] == "queued":
            return Training(request_id=request_id, status="running", text=RUNS_LONGER)
        return Training(request_id=request_id, status=done["status"], text=done["text"])

    async def history(
        self,
        conversation: Annotated[str, Field(description="Which conversation.")] = "mcp",
        limit: Annotated[int, Field(ge=1, le=100, description="Turns at most, the newest.")] = 20,
    ) -> list[PastTurn]:
        """Return the newest turns of a conversation, the oldest first, with what was said about each answer."""
        found = await self._client.get(f"/history?{urlencode({'chat': conversation, 'limit': limit})}")
        return [_turn(answers[-1]) for answers in found["data"]]


def _answer(given: Json) -> GivenAnswer:
    return GivenAnswer(
        text=given["text"], completion_id=given["completion_id"], adapter_version=given["adapter_version"]
    )


def _turn(given: Json) -> PastTurn:
    said = [entry["text"] or entry["value"] or entry["kind"] for entry in given["feedback"]]
    return PastTurn(question=given["question"], answer=_answer(given), feedback=said)
