"""Tests of bot.platforms.discord.chat_queues."""

import asyncio

from bot.platforms.discord.chat_queues import ChatQueues, Work


def chat_queues(limit: int = 10) -> ChatQueues:
    """Lanes that tell nobody when they are idle."""
    return ChatQueues(limit, lambda: None)


async def test_a_chat_keeps_its_order_and_another_one_goes_on() -> None:
    """The second of a chat waits for the first, while another chat is worked on."""
    made, done, gate = chat_queues(), list[str](), asyncio.Event()

    def work(name: str, waits_for: asyncio.Event | None = None) -> Work:
        async def run() -> None:
            if waits_for is not None:
                await waits_for.wait()
            done.append(name)

        return run

    first, second = made.submit("a", work("a1", gate)), made.submit("a", work("a2"))
    other = made.submit("b", work("b1"))
    assert first is not None
    assert second is not None
    assert other is not None
    await other
    assert done == ["b1"]
    gate.set()
    await second
    assert done == ["b1", "a1", "a2"]


async def test_a_failure_does_not_stop_the_chat() -> None:
    """What fails is over; what comes after it is worked on."""
    made, done = chat_queues(), list[int]()

    async def fail() -> None:
        raise ValueError

    async def work() -> None:
        done.append(1)

    made.submit("a", fail)
    last = made.submit("a", work)
    assert last is not None
    await last
    assert done == [1]


async def test_too_much_is_not_taken() -> None:
    """Beyond the limit nothing waits; when all is done the owner hears of it and there is room again."""
    idle = asyncio.Event()
    made, gate = ChatQueues(2, idle.set), asyncio.Event()

    async def work() -> None:
        await gate.wait()

    assert made.submit("a", work) is not None
    assert made.submit("b", work) is not None
    assert made.submit("c", work) is None
    gate.set()
    await idle.wait()
    assert made.is_idle
    assert made.submit("c", work) is not None
    await made.drain(1.0)


async def test_draining_gives_up_what_takes_too_long() -> None:
    """At the end No one is waiting for what never ends."""
    made = chat_queues()
    forever = made.submit("a", asyncio.Event().wait)  # type: ignore[arg-type]
    behind = made.submit("a", asyncio.Event().wait)  # type: ignore[arg-type]
    await made.drain(0.01)
    assert made.is_idle
    assert forever is not None
    assert behind is not None
    assert behind.cancelled()
