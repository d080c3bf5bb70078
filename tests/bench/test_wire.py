"""bench.wire: the first piece of a stream, timed over a kept connection."""

import asyncio
from types import SimpleNamespace

import pytest

from bench.wire import Wire
from evals.client import chat_body
from evals.errors import HeedUnreachable
from tests.evals.fake_heed import FakeHeed, serving
from tests.evals.test_client import QUESTION
from tests.patience import until

BODY = chat_body("ana", [{"role": "user", "content": QUESTION}], "auto", "heed") | {"stream": True}


async def test_the_first_piece_comes_with_the_engines_share() -> None:
    """The first piece comes with the client's wait and the engine's share of it; one connection carries all answers."""
    fake = FakeHeed()
    fake.first_token_s = 0.25
    async with serving(fake) as url:
        wire = await Wire.open(url)
        pieces = [await wire.first_piece(BODY) for _ in range(3)]
        assert {piece.engine_s for piece in pieces} == {0.25}
        assert all(piece.seen_s > 0 for piece in pieces)
        fake.first_token_s = None
        with pytest.raises(HeedUnreachable, match="how long its engine took"):
            await wire.first_piece(BODY)
        await wire.close()


async def test_the_clock_stops_at_the_first_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not at the end of the answer: what comes behind the first piece is sent when the clock has been looked at."""
    looks: list[float] = []

    def look() -> float:
        """Return as many seconds as it has been asked before."""
        looks.append(float(len(looks)))
        return looks[-1]

    monkeypatch.setattr("bench.wire.time", SimpleNamespace(perf_counter=look))

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"}")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\ndata: 1\n\r\n")
        await until(lambda: len(looks) == 2)
        writer.write(b'26\r\ndata: {"time_to_first_token_s": 0.001}\r\n0\r\n\r\n')
        writer.close()

    async with await asyncio.start_server(slow, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        wire = await Wire.open(f"http://{host}:{port}")
        piece = await wire.first_piece(BODY)
        assert (piece.engine_s, piece.seen_s) == (0.001, 1.0)
        await wire.close()


async def test_what_is_no_stream_is_told() -> None:
    """A refusal and a missing server are errors with a message."""
    async with serving(FakeHeed()) as url:
        wire = await Wire.open(url)
        with pytest.raises(HeedUnreachable, match=r"no answer: HTTP/1\.1 [45]"):
            await wire.first_piece({"messages": 1})
    with pytest.raises(HeedUnreachable, match="no heed answers"):
        await Wire.open(url)
