"""The parts of `heed eval real`, on a heed whose mind is known."""

from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from evals.client import Client
from evals.journal import Journal
from evals.real import RealConfig
from evals.real_person import PART_WORK, RealStudy
from evals.real_score import summarise

PLAIN, SHORT = "This is a plain answer of exactly nine whole words.", "Only three words."


class BriefHeed:
    """A heed that can be told to be brief; `learns` says if a correction reaches its weights."""

    def __init__(self, learns: bool) -> None:
        self.learns = learns
        self.version: dict[str, int] = {}
        self.noted: set[str] = set()

    async def chat(self, request: web.Request) -> web.Response:
        """Answer briefly where a note or the weights say so."""
        body = await request.json()
        user, is_base = body["user"], body["model"] == "heed-base"
        is_told = user in self.noted and body["heed"]["notes"] == "auto"
        text = SHORT if not is_base and (is_told or self.version.get(user)) else PLAIN
        return web.json_response({
            "id": "c-1", "choices": [{"message": {"content": text}}], "usage": {"completion_tokens": 3},
            "heed": {"adapter_version": self.version.get(user, 0), "notes": []},
        })  # fmt: skip

    async def feedback(self, request: web.Request) -> web.Response:
        """Keep a note; learn a correction or an ideal, or do not."""
        body = await request.json()
        if body["kind"] == "note":
            self.noted.add(body["user"])
            return web.json_response({"status": "kept"})
        self.version[body["user"]] = int(self.learns)
        return web.json_response({"status": "learned" if self.learns else "refused"})

    async def score(self, _: web.Request) -> web.Response:
        """The same for everybody."""
        return web.json_response({"logprobs": [-0.5, -0.5]})

    async def notes(self, _: web.Request) -> web.Response:
        """Nothing is being learned."""
        return web.json_response({"data": []})


async def served(heed: BriefHeed) -> AsyncIterator[Client]:
    """A client of it."""
    app = web.Application()
    app.add_routes([
        web.post("/v1/chat/completions", heed.chat), web.post("/v1/feedback", heed.feedback),
        web.post("/v1/score", heed.score), web.get("/v1/users/{user}/notes", heed.notes),
    ])  # fmt: skip
    async with TestServer(app) as server, Client(str(server.make_url(""))) as client:
        yield client


@pytest.mark.parametrize("part", ["adoption", "rewritten"])
@pytest.mark.parametrize("learns", [True, False])
async def test_what_is_learned_is_adopted_and_nothing_else(part: str, learns: bool) -> None:
    """All of it or nothing: the ratio says which, and so does the share of accepted lessons."""
    journal, config = Journal(), RealConfig(wishes=("shorter",), prompts=4)
    async for client in served(BriefHeed(learns)):
        await PART_WORK[part](RealStudy(config, client, journal, lambda _: None), 0)
    found = summarise(journal.records)
    assert found["wishes"][0]["ratio"] == float(learns)
    assert found["accepted"]["all"] == float(learns)
    assert found["wishes"][0]["answers"] == 4


async def test_a_unit_that_is_done_is_not_done_again() -> None:
    """An interrupted run goes on."""
    journal = Journal("abc", (), {"adoption/shorter/0": 1})
    async for client in served(BriefHeed(True)):
        study = RealStudy(RealConfig(wishes=("shorter",)), client, journal, lambda _: None)
        await PART_WORK["adoption"](study, 0)
    assert journal.records == []
