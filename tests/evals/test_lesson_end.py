"""The wait for the end of a lesson."""

from aiohttp.test_utils import TestServer

from evals.client import Client
from evals.lesson_end import ended, settled
from tests.evals.brief_heed import BriefHeed


async def test_a_queued_lesson_is_asked_for_until_it_ended() -> None:
    """What came later is told, and the notes once none is being learned; a lesson that is over is told as it is."""
    heed = BriefHeed()
    async with TestServer(heed.application()) as server, Client(str(server.make_url("")).rstrip("/")) as client:
        queued = {"status": "queued", "url": "/v1/feedback/ana"}
        assert (await ended(client, "ana", queued, 30.0))["status"] == "learned"
        assert await ended(client, "ana", queued, 0.0) == queued
        assert await ended(client, "ana", {"status": "kept"}, 30.0) == {"status": "kept"}
        await client.note("ana", "be brief")
        assert [note["text"] for note in await settled(client, "ana", 30.0)] == ["be brief"]
