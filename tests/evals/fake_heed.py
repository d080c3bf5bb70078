"""A heed whose mind is known: it answers with the pocket world's own renderer and learns as it is told to.

Serves the HTTP calls the evaluation uses. How well it learns is a choice, so that a test knows every figure before it
is measured: `perfect` holds every lesson, `deaf` none, `newest` the last one only, `sloppy` loses the emoji with every
lesson, `muddled` forgets its facts, `blank` its skills, `stubborn` never takes a lesson back.
"""

import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from engine.pocket.style import DEFAULT, DIRECTIONS, PREFERENCES, Direction, Factual, Style, observe, render
from engine.pocket.subjects import DOMAINS, SUBJECTS, Subject
from engine.pocket.wishes import _HELD_OUT_FRAMES, COMMANDS, HELD_OUT_NAMES, REMARKS, apply
from evals.fresh import WORDINGS
from evals.silence import REPLIES

Json = dict[str, Any]
Lesson = tuple[Direction, str]  # a direction and the name in the wish
_FRONT = re.compile(r"^(hey,|please|so|ok,|hmm,|and) ")
_HINDSIGHT = re.compile(r"\n\n\[Feedback of this person on an earlier attempt at this answer: (.*)\]$", re.DOTALL)


def _wishes() -> dict[str, Lesson]:
    found: dict[str, Lesson] = {}
    for direction in DIRECTIONS:
        texts = [*COMMANDS[direction][1], *REMARKS[direction][1]]
        texts += [f.format(c=c) for f in _HELD_OUT_FRAMES for c in COMMANDS[direction][0] if "{" not in c]
        texts += WORDINGS[direction[0]] if direction[1] == 1 else []
        found |= {text.replace("{x}", name): (direction, name) for text in texts for name in HELD_OUT_NAMES}
    return found


def _asks(subject: Subject) -> dict[str, Factual]:
    domain = DOMAINS[subject.domain]
    named = domain.article + subject.name
    about = {text: Factual(subject, 0) for text in domain.about}
    about |= {text: Factual(subject, lead) for lead, fact in enumerate(domain.facts) for text in fact.asks}
    return {text.format(s=named).lower().rstrip("?"): content for text, content in about.items()}


UNKNOWN = "I do not know about that."
WISHES = _wishes()
ASKS = {text: content for subject in SUBJECTS for text, content in _asks(subject).items()}


@dataclass
class Learner:
    """One user: a list of lessons per version, and the standing notes."""

    versions: list[list[Lesson]] = field(default_factory=lambda: [[]])
    active: int = 0
    notes: list[tuple[str, str]] = field(default_factory=list)  # text, state
    consolidated: set[str] = field(default_factory=set)  # texts of the notes that its weights hold


class FakeHeed:
    """The application; `asked` lists every (user, text) in order, `bodies` the calls."""

    def __init__(
        self,
        mind: str = "perfect",
        skills: Mapping[str, str] | None = None,
        settles: bool = True,
        facts: Mapping[str, tuple[str, str]] | None = None,
    ) -> None:
        """`skills`: question -> answer; `facts`: question -> the note that answers it, and the answer."""
        self.mind = mind
        self.skills = dict(skills or {})
        self.facts = dict(facts or {})
        self.settles = settles
        self.status = "learned"  # what is said of every correction
        self.users: dict[str, Learner] = {}
        self.asked: list[tuple[str, str]] = []
        self.bodies: list[Json] = []
        self.training: list[Json | None] = []
        self.scopes: list[str] = []  # of the corrections
        self.breaks_after: int | None = None  # corrections: the next one is learned, and no client is told
        self.is_ready = True
        self.logprob = -0.1  # of every token
        self.finish_reason = "stop"  # of every answer
        self.first_token_s: float | None = 0.001  # what it says that its engine took; None: nothing

    def application(self) -> web.Application:
        """The HTTP side."""
        app = web.Application()
        app.add_routes(
            [
                web.get("/readyz", self._readyz),
                web.post("/v1/chat/completions", self._chat),
                web.post("/v1/score", self._score),
                web.post("/v1/feedback", self._feedback),
                web.get("/v1/users/{user}/notes", self._notes),
                web.post("/v1/users/{user}/rollback", self._rollback),
                web.post("/v1/users/{user}/consolidate", self._consolidate),
                web.post("/v1/users/{user}/adapters", self._import),
                web.get("/v1/users/{user}/adapters/{version}/export", self._export),
                web.delete("/v1/users/{user}", self._forget),
            ]
        )
        return app

    def user(self, name: str) -> Learner:
        """One user, made on first sight."""
        return self.users.setdefault(name, Learner())

    def answer(self, body: Json) -> str:
        """Return this mind's answer."""
        last = body["messages"][-1]["content"]
        told = [] if body["model"] == "heed-base" else self._told(body)
        if last in self.skills and not (self.mind == "blank" and told):
            return self.skills[last]
        if body["model"] == "heed-base":
            return self._in_context(body["messages"])
        if last in self.facts:
            return self._recalled(body, *self.facts[last])
        content = content_of(last)
        if content is None:
            return UNKNOWN
        if self.mind == "muddled" and told:
            content = replace(content, subject=_other(content))
        return render(content, _style(told))

    def _recalled(self, body: Json, note: str, answer: str) -> str:
        user = self.user(body["user"])
        is_said = body["heed"]["notes"] == "auto" and note in dict(user.notes)
        return answer if is_said or note in user.consolidated else UNKNOWN

    def _told(self, body: Json) -> list[Lesson]:
        user = self.user(body["user"])
        told = [*self._held(user)]
        if body["heed"]["notes"] == "auto":
            told += [WISHES[text] for text, state in user.notes if state != "in_weights" and text in WISHES]
        return told

    def _held(self, user: Learner) -> list[Lesson]:
        lessons = user.versions[user.active]
        match self.mind:
            case "deaf":
                return []
            case "newest":
                return lessons[-1:]
            case "sloppy":
                return [*lessons, (("emoji", 1), "")] if lessons else []
            case "stubborn":
                return [lesson for lesson in lessons if lesson[0][1] == 1]
        return lessons

    def _in_context(self, messages: Sequence[Json]) -> str:
        last = messages[-1]["content"]
        if (block := _HINDSIGHT.search(last)) is not None:
            wished = [] if self.mind == "deaf" else [WISHES[block[1]]]
            return _render(last[: block.start()], _style(wished))
        if last not in WISHES or self.mind == "deaf":
            return _render(messages[-3 if last in WISHES else -1]["content"], DEFAULT)
        seen = observe(messages[-2]["content"], WISHES[last][1])
        before = Style(**{p: value if value is not None else getattr(DEFAULT, p) for p, value in seen.items()})
        return _render(messages[-3]["content"], _style([WISHES[last]], before))

    async def _readyz(self, _: web.Request) -> web.Response:
        return web.json_response({"model": "fake"}, status=200 if self.is_ready else 503)

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.asked.append((body["user"], body["messages"][-1]["content"]))
        self.bodies.append(body)
        text = self.answer(body)
        if body.get("stream"):
            return await self._stream(request, text)
        return web.json_response(
            {
                "id": f"cmpl-{len(self.asked)}",
                "choices": [
                    {
                        "message": {"role": "assistant", "content": text},
                        "logprobs": self._logprobs(body, text),
                        "finish_reason": self.finish_reason,
                    }
                ],
                "usage": {"completion_tokens": len(text.split())},
                "heed": {"adapter_version": self.user(body["user"]).active, "notes": []},
            }
        )

    def _logprobs(self, body: Json, text: str) -> Json | None:
        tops = [{"token": word, "logprob": -1.0} for word in ("one", "two")][: body.get("top_logprobs", 0)]
        words = ["token_id:7"] if body.get("return_tokens_as_token_ids") else text.split()
        entries = [{"token": word, "logprob": self.logprob, "top_logprobs": tops} for word in words]
        return {"content": entries} if body.get("logprobs") else None

    async def _stream(self, request: web.Request, text: str) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for word in text.split():
            await response.write(f'data: {{"choices": [{{"delta": {{"content": "{word} "}}}}]}}\n\n'.encode())
        if self.first_token_s is not None:
            told = {"choices": [{"delta": {}}], "heed": {"time_to_first_token_s": self.first_token_s}}
            await response.write(f"data: {json.dumps(told)}\n\n".encode())
        await response.write(b"data: [DONE]\n\n")
        return response

    async def _score(self, request: web.Request) -> web.Response:
        """Every word is likelier where the whole text is what this mind would say itself."""
        body = await request.json()
        is_own = self.answer(body) == body["completion"]
        return web.json_response({"logprobs": [-0.1 if is_own else -1.0] * len(body["completion"].split())})

    async def _feedback(self, request: web.Request) -> web.Response:
        body = await request.json()
        if body["text"] in REPLIES and self.mind != "sloppy":
            return web.json_response({"status": "kept", "adapter_version": self.user(body["user"]).active})
        if body["text"] not in {*WISHES, *REPLIES, *(note for note, _ in self.facts.values())}:
            return web.json_response({"error": {"type": "invalid", "message": "not a wish"}}, status=400)
        user = self.user(body["user"])
        if body["kind"] == "note":
            user.notes.append((body["text"], "in_prompt"))
            return web.json_response({"status": "kept", "adapter_version": user.active})
        self.training.append(body.get("training"))
        self.scopes.append(body.get("scope", ""))
        user.versions.append([*user.versions[user.active], WISHES.get(body["text"], (("emoji", 1), ""))])
        user.active = len(user.versions) - 1
        user.notes.append((body["text"], "in_weights" if self.settles else "learning"))
        if self.breaks_after is not None and len(self.training) > self.breaks_after:
            return web.json_response({"error": {"type": "broken", "message": "it broke"}}, status=500)
        update = {"steps": 10, "phases_ms": {"train": 5.0}, "heat": [["a", 1.0]]}
        return web.json_response({"status": self.status, "adapter_version": user.active, "update": update})

    async def _consolidate(self, request: web.Request) -> web.Response:
        user = self.user(request.match_info["user"])
        if self.mind != "deaf":
            user.consolidated |= {text for text, _ in user.notes}
        if self.settles:
            user.notes = [(text, "in_weights") for text, _ in user.notes]
        return web.json_response({"status": "learned", "reason": ""})

    async def _notes(self, request: web.Request) -> web.Response:
        kept = self.user(request.match_info["user"]).notes
        in_prompt = sum(state != "in_weights" for _, state in kept)
        tokens = {"tokens_saved": 9 * (len(kept) - in_prompt), "tokens_in_prompt": 9 * in_prompt}
        return web.json_response({**tokens, "data": [{"text": text, "state": state} for text, state in kept]})

    async def _rollback(self, request: web.Request) -> web.Response:
        user = self.user(request.match_info["user"])
        user.active = (await request.json())["version"]
        user.notes = user.notes[: user.active]
        return web.json_response({"adapter_version": user.active})

    async def _export(self, request: web.Request) -> web.Response:
        held = self.user(request.match_info["user"]).versions[int(request.match_info["version"])]
        return web.Response(body=json.dumps(held).encode())

    async def _import(self, request: web.Request) -> web.Response:
        user = self.user(request.match_info["user"])
        held = json.loads(await request.read())
        user.versions.append([((preference, side), name) for (preference, side), name in held])
        user.active = len(user.versions) - 1
        return web.json_response({"adapter_version": user.active})

    async def _forget(self, request: web.Request) -> web.Response:
        if self.users.pop(request.match_info["user"], None) is None:
            return web.json_response({"error": {"type": "not_found", "message": "nobody"}}, status=404)
        return web.json_response({"forgotten": True})


def content_of(question: str) -> Factual | None:
    """Return the content a question asks for, None if it is about nothing of the world."""
    return ASKS.get(_FRONT.sub("", question.lower()).rstrip("?"))


def _render(question: str, style: Style) -> str:
    content = content_of(question)
    return UNKNOWN if content is None else render(content, style)


def _other(content: Factual) -> Subject:
    """A subject of the same domain about which everything asked is different."""
    known = content.subject
    others = (s for s in SUBJECTS if s.domain == known.domain and s.measure != known.measure)
    return next(s for s in others if content.lead == 3 or s.values[content.lead] != known.values[content.lead])


def _style(lessons: Sequence[Lesson], style: Style = DEFAULT) -> Style:
    for direction, name in lessons:
        style = apply(style, [direction], name)
    return style


@asynccontextmanager
async def serving(fake: FakeHeed) -> AsyncIterator[str]:
    """The fake on a port of its own; yields its address."""
    server = TestServer(fake.application())
    await server.start_server()
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        await server.close()


assert set(PREFERENCES) == {direction[0] for direction, _ in WISHES.values()}
