"""bot.platforms.telegram.poller: heed's own loop of getUpdates."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bot.platforms.telegram import poller as telegram_poller
from bot.platforms.telegram.arrivals import Arrivals
from bot.platforms.telegram.client import PollClient
from bot.platforms.telegram.poller import Poller
from bot.platforms.telegram.reader import ALLOWED_UPDATES
from storage.errors import StorageError
from tests.bot.platforms.telegram_bench import Taken, settings
from tests.clock import Clock
from tests.contract.telegram_server import ANA, BEN, Fault, TelegramServer, private
from tests.patience import PATIENCE_S, until

pytestmark = pytest.mark.filterwarnings("ignore:Deprecated since version v22.2")  # PTB's own use of retry_after


@pytest.fixture
async def server() -> AsyncIterator[TelegramServer]:
    """A Bot API server."""
    async with TelegramServer() as server:
        yield server


class Pauses:
    """Sleeps for no time, and remembers for how long it was asked to."""

    def __init__(self) -> None:
        self.asked: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.asked.append(seconds)
        await asyncio.sleep(0)


@asynccontextmanager
async def polling(server: TelegramServer, taken: Taken, **options: Any) -> AsyncIterator[Poller]:
    """A poller at work."""
    arrivals = Arrivals("123456789", "heed_bot", taken.take)
    options.setdefault("sleep", Pauses().sleep)
    timeout_s = options.pop("timeout_s", 5)
    poller = Poller(lambda: PollClient(settings(server), timeout_s=timeout_s), arrivals.take_all, **options)
    task = asyncio.create_task(poller.run())
    try:
        yield poller
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def offsets(server: TelegramServer) -> list[int | None]:
    """What each poll confirmed."""
    return [call.params.get("offset") for call in server.called("getUpdates")]


async def test_an_update_is_taken_while_the_poll_blocks(server: TelegramServer) -> None:
    """One long poll, no asking again and again."""
    taken = Taken()
    async with polling(server, taken):
        await server.polled.wait()
        server.say("bees?")
        await taken.first(1)
        assert taken.texts == ["bees?"]
    assert len(server.called("getUpdates")) <= 2


async def test_reactions_are_asked_for(server: TelegramServer) -> None:
    """They are not among what Telegram sends by default."""
    taken = Taken()
    async with polling(server, taken):
        await server.polled.wait()
        server.react(private(ANA), 1, ["👍"])
        await taken.first(1)
    assert tuple(server.called("getUpdates")[0].params["allowed_updates"]) == ALLOWED_UPDATES


async def test_nothing_is_confirmed_before_it_is_committed(server: TelegramServer) -> None:
    """While the commit is on its way, the update still waits at Telegram."""
    taken = Taken()
    taken.gate.clear()
    server.say("bees?")
    async with polling(server, taken):
        await taken.until(lambda: taken.num_calls)
        assert server.num_pending == 1
        assert offsets(server) == [None]
        taken.gate.set()
        await server.until(lambda: server.num_pending == 0)
    assert offsets(server)[:2] == [None, int(taken.rows[0].update_id) + 1]


async def test_what_was_not_committed_comes_again(server: TelegramServer) -> None:
    """A full disk is a pause, not a loss."""
    taken, pauses = Taken(), Pauses()
    taken.problem = StorageError("disk full")
    server.say("bees?")
    async with polling(server, taken, sleep=pauses.sleep) as poller:
        await taken.until(lambda: taken.num_calls >= 3)
        assert "cannot be kept (StorageError)" in poller.problem
        assert server.num_pending == 1
        taken.problem = None
        await server.until(lambda: server.num_pending == 0)
        assert taken.texts == ["bees?"]
    assert pauses.asked


async def test_redelivered_and_reordered_updates_are_taken_once(server: TelegramServer) -> None:
    """Each message once, in the order in which its chat said it."""
    taken = Taken()
    server.shuffle(7)
    async with polling(server, taken, timeout_s=1):
        for number in range(20):
            server.say(f"a{number}")
            server.say(f"b{number}", sender=BEN)
        await taken.first(40)
        await server.until(lambda: server.num_pending == 0)
        assert server.redeliver() == 40
        await server.until(lambda: server.num_pending == 0)
    assert [text for text in taken.texts if text[0] == "a"] == [f"a{number}" for number in range(20)]
    assert [text for text in taken.texts if text[0] == "b"] == [f"b{number}" for number in range(20)]
    assert len(taken.rows) == 40


async def test_ids_may_begin_anew(server: TelegramServer) -> None:
    """After a week without updates Telegram numbers from anywhere, also from below the last offset."""
    taken = Taken()
    async with polling(server, taken, timeout_s=1):
        server.say("before")
        await taken.first(1)
        await server.until(lambda: offsets(server)[-1] is not None)
        await server.until(lambda: offsets(server)[-1] is None)
        server.restart_ids(5)
        server.say("after")
        await taken.first(2)
        await server.until(lambda: server.num_pending == 0)
        server.say("later")
        await taken.first(3)
    assert taken.texts == ["before", "after", "later"]


async def test_a_wait_is_kept(server: TelegramServer) -> None:
    """For as long as Telegram asks."""
    taken, pauses = Taken(), Pauses()
    server.fail("getUpdates", Fault(retry_after=17))
    server.say("bees?")
    async with polling(server, taken, sleep=pauses.sleep):
        await taken.first(1)
    assert pauses.asked == [17.0]


FAULTS = {
    "502 with a page": Fault(status=502, body=b"<html>Bad Gateway</html>"),
    "500": Fault(status=500, description="Internal Server Error"),
    "cut off": Fault(cuts=True),
    "cut off after": Fault(cuts=True, is_done=True),
    "half an answer": Fault(body=b'{"ok": true, "result": [{"upda'),
    "no list": Fault(body=b'{"ok": true, "result": 5}'),
    "no result": Fault(body=b'{"ok": true}'),
    "no object": Fault(body=b"[]"),
    "404 of a proxy": Fault(status=404, body=b"not here"),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
async def test_no_fault_ends_the_loop(server: TelegramServer, fault: Fault) -> None:
    """Whatever comes instead of an answer, the next poll works, and nothing is lost."""
    taken = Taken()
    server.fail("getUpdates", fault, fault, fault)
    server.say("bees?")
    async with polling(server, taken) as poller:
        await taken.first(1)
        await server.until(lambda: server.num_pending == 0)
        assert poller.problem == ""


async def test_waits_grow(server: TelegramServer) -> None:
    """Full jitter: up to twice as long each time, a minute at most."""
    taken, pauses = Taken(), Pauses()
    server.fail("getUpdates", *[Fault(status=500, description="no")] * 12)
    server.say("bees?")
    async with polling(server, taken, sleep=pauses.sleep):
        await taken.first(1)
    assert len(pauses.asked) == 12
    assert all(wait <= 0.1 + min(60, 2.0**number) for number, wait in enumerate(pauses.asked))


async def test_a_malformed_update_holds_up_nothing(server: TelegramServer) -> None:
    """Neither itself nor those behind it."""
    taken = Taken()
    server.emit_raw({"update_id": 1, "message": {"chat": 5}})
    server.emit_raw({"update_id": 2, "message": {"chat": {"id": 111}, "from": "x" * 100}})
    server.say("bees?")
    async with polling(server, taken):
        await taken.until(lambda: any("bees?" in str(row.payload) for row in taken.rows))
        await server.until(lambda: server.num_pending == 0)


async def test_a_poll_that_hangs_is_thrown_away(server: TelegramServer) -> None:
    """With its connection; the next one gets an answer."""
    taken = Taken()
    server.fail("getUpdates", Fault(hangs=True))
    server.say("bees?")
    async with polling(server, taken, watchdog_s=0.2) as poller:
        await taken.first(1)
        assert poller.num_renewed >= 1


async def test_a_connection_that_only_fails_is_thrown_away(
    server: TelegramServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even though every poll comes back quickly."""
    taken = Taken()
    clock = Clock()
    monkeypatch.setattr(telegram_poller, "time", clock)
    server.fail("getUpdates", *[Fault(cuts=True)] * 5)
    server.say("bees?")

    async def sleep(_: float) -> None:
        clock.now_s += 50.0

    async with polling(server, taken, sleep=sleep) as poller:
        await taken.first(1)
        assert poller.num_renewed == 1


async def test_a_connection_that_cannot_be_closed_ends_nothing(server: TelegramServer) -> None:
    """It is thrown away all the same."""
    taken = Taken()

    class Stuck(PollClient):
        async def close(self) -> None:
            await super().close()
            raise RuntimeError("broken")

    server.fail("getUpdates", Fault(hangs=True))
    server.say("bees?")
    arrivals = Arrivals("123456789", "heed_bot", taken.take)
    poller = Poller(lambda: Stuck(settings(server), 5), arrivals.take_all, watchdog_s=0.2, sleep=Pauses().sleep)
    task = asyncio.create_task(poller.run())
    await taken.first(1)
    assert not task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_the_age_of_the_last_poll(server: TelegramServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted from the last answer; that nobody wrote is an answer, too."""
    clock = Clock()
    monkeypatch.setattr(telegram_poller, "time", clock)
    taken = Taken()
    async with polling(server, taken) as poller:
        server.say("bees?")
        await server.until(lambda: len(server.called("getUpdates")) >= 2)
        clock.now_s += 70.0
        assert poller.age_s == 70.0


async def test_another_poller_is_waited_for(server: TelegramServer) -> None:
    """Longer than its poll takes, and it is named."""
    taken, pauses = Taken(), Pauses()
    server.fail("getUpdates", Fault(status=409, description="Conflict: terminated by other getUpdates request"))
    server.say("bees?")
    async with polling(server, taken, sleep=pauses.sleep):
        await taken.first(1)
    assert pauses.asked[0] >= 30


async def test_a_webhook_set_meanwhile_is_named(server: TelegramServer) -> None:
    """The remedy is another one than for a second poller."""
    pauses = Pauses()
    server.webhook = {"url": "https://elsewhere.example"}
    async with polling(server, Taken(), sleep=pauses.sleep) as poller:
        await server.until(lambda: len(server.called("getUpdates")) >= 2)
        assert "HEED_TELEGRAM_WEBHOOK_URL" in poller.problem


async def test_a_revoked_token_ends_it(server: TelegramServer) -> None:
    """There is no point in asking again."""
    server.fail("getUpdates", Fault(status=401, description="Unauthorized"))
    poller = Poller(lambda: PollClient(settings(server)), Arrivals("1", "heed_bot", Taken().take).take_all)
    await asyncio.wait_for(poller.run(), PATIENCE_S)
    assert "@BotFather" in poller.problem


async def test_a_restarted_heed_ends_the_poll_of_the_old_one(server: TelegramServer) -> None:
    """The old one gets the 409; nothing that waits is lost."""
    old, new = Taken(), Taken()
    never = asyncio.Event()

    async def sleep(_: float) -> None:
        await never.wait()

    async with polling(server, old, sleep=sleep) as first:
        await server.polled.wait()
        async with polling(server, new):
            await server.until(lambda: len(server.called("getUpdates")) == 2)
            await until(lambda: first.problem)
            server.say("bees?")
            await new.first(1)
    assert old.rows == []
