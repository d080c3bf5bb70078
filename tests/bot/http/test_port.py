"""bot.http.port: the port, what strangers can write into the log, and the number of open files."""

import asyncio
import itertools
import logging
import resource
import socket
import subprocess
import sys
from contextlib import AsyncExitStack

import pytest

from bot.errors import StartError
from bot.http import port
from bot.http.port import ACCEPT_FAILED, LoopErrors
from tests.bot.conftest import StartHeed
from tests.bot.http.served import GET, served
from tests.patience import PATIENCE_S, until

FOLDED = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n Authorization: Bearer sk-secret-key\r\n\r\n"
MALFORMED = (FOLDED, b"GET / HTTP/9\r\n\r\n", b"GET /" + b"a" * 9000, b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n")


async def test_malformed_requests_are_one_line_without_their_bytes(
    start_heed: StartHeed, caplog: pytest.LogCaptureFixture
) -> None:
    """No trace, nothing of what came, and many of them are one line a minute."""
    async with served(start_heed) as heed:
        for data in MALFORMED * 3:
            assert await (await heed.connect(data)).ended()
    (record,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert record.getMessage().startswith("a malformed request was refused: ")
    assert record.exc_info is None
    assert "sk-secret-key" not in caplog.text


async def test_bytes_that_are_no_http_are_not_logged(start_heed: StartHeed, caplog: pytest.LogCaptureFixture) -> None:
    """A port that the network can reach gets such bytes all the time."""
    async with served(start_heed) as heed:
        for data in (b"\x16\x03\x01\x02\x00\x01\x00\x01", b"\x00" * 100):
            assert await (await heed.connect(data)).ended()
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_an_error_of_a_response_keeps_its_trace(caplog: pytest.LogCaptureFixture) -> None:
    """Only malformed requests are short."""
    port.RequestLog().exception("Unhandled exception", exc_info=ValueError("broken"))
    assert "broken" in caplog.text


async def test_connections_that_cannot_be_accepted_are_a_line_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    """asyncio reports hundreds a second where descriptors are used up; other errors of the loop are as before."""
    loop, errors = asyncio.get_running_loop(), LoopErrors()
    for _ in range(500):
        errors(loop, {"message": ACCEPT_FAILED, "exception": OSError(24, "Too many open files")})
    errors(loop, {"message": "something else"})
    first, other = caplog.records
    assert first.getMessage() == "a connection could not be accepted: [Errno 24] Too many open files"
    assert other.getMessage() == "something else"


async def test_used_up_descriptors_stop_nothing_for_good(
    start_heed: StartHeed, caplog: pytest.LogCaptureFixture
) -> None:
    """While there are none, one line is written; afterwards heed answers again."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with served(start_heed) as heed:
        with socket.socket() as client:
            client.setblocking(False)
            resource.setrlimit(resource.RLIMIT_NOFILE, (client.fileno() + 1, limits[1]))
            try:
                await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", heed.number))
                await until(lambda: "could not be accepted" in caplog.text)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            client.setblocking(True)
        assert await (await heed.connect(GET)).whole_answer() == 200
    assert caplog.text.count("could not be accepted") == 1


async def test_a_crowd_at_the_door_holds_up_nobody(start_heed: StartHeed) -> None:
    """All who connect in one moment are let in, a few in each turn of the event loop."""
    async with served(start_heed) as heed, AsyncExitStack() as stack:
        for _ in range(100):
            stack.enter_context(socket.create_connection(("127.0.0.1", heed.number)))
        numbers = [0]
        async with asyncio.timeout(PATIENCE_S):
            while numbers[-1] < 100:
                await asyncio.sleep(0)
                numbers.append(heed.connections._all.number)
    assert max(later - earlier for earlier, later in itertools.pairwise(numbers)) <= port.ACCEPTED_AT_ONCE


def test_as_many_files_as_wanted_can_be_open() -> None:
    """A start raises the soft limit to what is wanted, as far as the hard one allows."""
    code = (
        "import resource\nfrom bot.http.port import raise_file_limit\n"
        "hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (300, hard))\n"
        "assert raise_file_limit() == resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 300\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (400, 400))\n"
        "assert raise_file_limit() == 400\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("host", "number", "words"), [("no.such.host.invalid", 0, "HEED_HTTP_HOST"), ("192.0.2.1", 0, "HEED_HTTP_HOST")]
)
def test_a_host_that_is_not_here_is_named(host: str, number: int, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that resolves to nothing, and an address of another machine."""

    def resolve(name: str, *args: object, **kwargs: object) -> list[tuple[object, ...]]:
        if name[0].isdigit():
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (name, 0))]
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(StartError, match=words):
        port.listen(host, number)


def test_the_address_can_be_opened() -> None:
    """An IPv6 host is put in brackets."""
    with port.listen("127.0.0.1", 0) as listener:
        number = listener.getsockname()[1]
        assert port.address(listener, "::1") == f"http://[::1]:{number}"


def test_a_forked_child_does_not_keep_the_port() -> None:
    """A child that outlives a killed heed must not block the next one's port."""
    code = (
        "import os, time\nfrom bot.http.port import listen\n"
        "first = listen('127.0.0.1', 0); port = first.getsockname()[1]\n"
        "told, tell = os.pipe(); child = os.fork()\n"
        "if child == 0: os.write(tell, b'!'); time.sleep(30); os._exit(0)\n"
        "os.read(told, 1); first.close(); listen('127.0.0.1', port).close(); os.kill(child, 9); print('free')\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.stdout == "free\n", done.stderr
