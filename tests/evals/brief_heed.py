"""A heed for the parts of `heed eval real`: it can be told to be brief or long, and told facts."""

from collections.abc import AsyncIterator
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from evals.client import Client

PLAIN, SHORT = "This is a plain answer of exactly nine whole words.", "Only few words."
LONG = "This answer is much longer than any other answer, since it says everything twice: " * 2
LESSONS = {"brief": SHORT, "fewer": SHORT, "more": LONG, "deeper": LONG}


def taught_by(text: str) -> str | None:
    """Return the answer of one who does what a text asks for; None if it asks for nothing."""
    return next((answer for word, answer in LESSONS.items() if word in text), None)


class BriefHeed:
    """`learns` says if a correction reaches its weights, `leaks` if a remark moves other answers."""

    def __init__(self, *, learns: bool = True, leaks: bool = False) -> None:
        self.learns, self.leaks = learns, leaks
        self.versions: dict[str, list[str]] = {}  # the answer of each version
        self.active: dict[str, int] = {}
        self.noted: dict[str, list[str]] = {}
        self.slept: set[str] = set()
        self.forgotten: list[str] = []
        self.asked: list[tuple[str, str]] = []
        self.corrected: list[tuple[str, str]] = []
        self.logprob = -0.5
        self.tops = [{"token": word, "logprob": -1.0} for word in ("one", "two")]  # at every place of an answer
        self.queues = False  # a lesson takes longer than its call waits
        self.is_unsure = False  # it asks how far a correction reaches, and teaches nothing until then
        self.chosen: list[str] = []  # pieces of feedback that reach further than it thought

    def text(self, body: dict[str, Any]) -> str:
        """Return the answer: a fact that was noted or consolidated, else in the length that was taught."""
        user, question = body["user"], body["messages"][-1]["content"]
        notes = self.noted.get(user, [])
        if body["model"] == "heed-base":
            return PLAIN
        if question.startswith(("What is my dog", "Where does my sister")):
            return " ".join(notes) or "I do not know."
        if body["heed"]["notes"] == "auto" and notes and user not in self.slept:
            return next((found for note in reversed(notes) if (found := taught_by(note))), PLAIN)
        return self.versions.get(user, [PLAIN])[self.active.get(user, 0)]

    async def chat(self, request: web.Request) -> web.Response:
        """Answer one question."""
        body = await request.json()
        user = body["user"]
        self.asked.append((user, body["messages"][-1]["content"]))
        text = self.text(body)
        tops = [{"token": word, "logprob": -1.0, "top_logprobs": self.tops} for word in text.split()]
        return web.json_response({
            "id": "c-1", "choices": [{"message": {"content": text}, "logprobs": {"content": tops}}],
            "usage": {"completion_tokens": 3},
            "heed": {"adapter_version": self.active.get(user, 0), "notes": []},
        })  # fmt: skip

    async def feedback(self, request: web.Request) -> web.Response:
        """Keep a note; learn a correction or an ideal, or do not."""
        body = await request.json()
        user, text = body["user"], body["text"]
        if body["kind"] == "note":
            self.noted.setdefault(user, []).append(text)
            return web.json_response({"status": "kept", "adapter_version": 0})
        self.corrected.append((user, text))
        if self.is_unsure:
            return web.json_response(
                self._outcome(user, is_learned=False) | {"feedback_id": f"fb-{user}", "is_unsure": True}
            )
        learned = text if body["kind"] == "ideal" else taught_by(text) or (SHORT if self.leaks else None)
        if learned and self.learns:
            self.versions.setdefault(user, [PLAIN]).append(learned)
            self.active[user] = len(self.versions[user]) - 1
        outcome = self._outcome(user, bool(learned and self.learns))
        queued = {"status": "queued", "url": f"/v1/feedback/{user}"}
        return web.json_response(outcome | (queued if self.queues else {}))

    async def became(self, request: web.Request) -> web.Response:
        """What became of a lesson that was queued."""
        return web.json_response(self._outcome(request.query["user"], is_learned=self.learns))

    async def choose(self, request: web.Request) -> web.Response:
        """A correction is from now on, and is taught again."""
        body = await request.json()
        self.chosen.append(f"{request.match_info['id']} {body['scope']}")
        user = request.query["user"]
        self.versions[user], self.active[user] = [PLAIN, SHORT], 1
        return web.json_response(self._outcome(user, is_learned=True))

    def _outcome(self, user: str, is_learned: bool) -> dict[str, Any]:
        status = "learned" if is_learned else "kept"
        return {"status": status, "adapter_version": self.active.get(user, 0), "reading": "wish", "reason": ""}

    async def score(self, request: web.Request) -> web.Response:
        """Two tokens; the weights think otherwise."""
        logprob = -0.5 if (await request.json())["model"] == "heed-base" else self.logprob
        return web.json_response({"logprobs": [logprob, logprob]})

    async def notes(self, request: web.Request) -> web.Response:
        """Nothing is being learned; a consolidated note has left the prompt."""
        user = request.match_info["user"]
        state = "in_weights" if user in self.slept else "in_prompt"
        data = [{"text": text, "state": state, "probe": 1.0} for text in self.noted.get(user, [])]
        return web.json_response({"data": data})

    async def consolidate(self, request: web.Request) -> web.Response:
        """Every note leaves the prompt."""
        self.slept.add(request.match_info["user"])
        return web.json_response({"status": "learned", "reason": ""})

    async def rollback(self, request: web.Request) -> web.Response:
        """Another version answers."""
        user = request.match_info["user"]
        self.active[user] = (await request.json())["version"]
        self.versions[user] = self.versions.get(user, [PLAIN])
        return web.json_response({"adapter_version": self.active[user]})

    async def forget(self, request: web.Request) -> web.Response:
        """The person is gone."""
        user = request.match_info["user"]
        self.forgotten.append(user)
        for kept in (self.versions, self.active, self.noted):
            kept.pop(user, None)  # type: ignore[attr-defined]
        return web.json_response({})

    def application(self) -> web.Application:
        """The calls that the evaluation makes."""
        app = web.Application()
        app.add_routes([
            web.get("/readyz", self.ready), web.post("/v1/chat/completions", self.chat),
            web.post("/v1/feedback", self.feedback), web.get("/v1/feedback/{id}", self.became),
            web.post("/v1/feedback/{id}/scope", self.choose),
            web.post("/v1/score", self.score), web.get("/v1/users/{user}/notes", self.notes),
            web.post("/v1/users/{user}/consolidate", self.consolidate),
            web.post("/v1/users/{user}/rollback", self.rollback), web.delete("/v1/users/{user}", self.forget),
        ])  # fmt: skip
        return app

    async def ready(self, _: web.Request) -> web.Response:
        """Always."""
        return web.json_response({"model": "brief"})


async def served(heed: BriefHeed) -> AsyncIterator[Client]:
    """A client of it."""
    async with TestServer(heed.application()) as server, Client(str(server.make_url("")).rstrip("/")) as client:
        yield client
