"""bot.platforms.telegram.arrivals: raw updates on their way into the inbox."""

import asyncio

import pytest

from bot.platforms.telegram.arrivals import Arrivals
from storage.errors import NotStorable, StorageError
from storage.tables import Inbox
from tests.bot.platforms.telegram_bench import Taken
from tests.contract.telegram_server import ANA, BEN, Json, private


def update(number: object, text: str = "bees", sender: Json = ANA) -> Json:
    """A private message."""
    message = {"message_id": 1, "date": 1, "chat": private(sender), "from": sender, "text": text}
    return {"update_id": number, "message": message}


async def test_a_row_says_where_it_comes_from() -> None:
    """Platform, bot, number, sender, conversation, and the update with the bot's name at that time."""
    taken = Taken()
    await Arrivals("123", "heed_bot", taken.take).take_all([update(7)])
    (row,) = taken.rows
    assert (row.platform, row.bot_id, row.update_id, row.account, row.chat_key) == (
        "telegram",
        "123",
        "7",
        "111",
        "111",
    )
    assert row.payload == {**update(7), "heed_username": "heed_bot"}


async def test_order_is_kept_within_a_chat() -> None:
    """By number, in whatever order they came; different chats are committed at the same time."""
    taken = Taken()
    taken.gate.clear()
    batch = [update(3, "c"), update(2, "x", BEN), update(1, "a")]
    working = asyncio.create_task(Arrivals("123", "heed_bot", taken.take).take_all(batch))
    await taken.until(lambda: taken.num_calls == 2)
    await asyncio.sleep(0)
    assert taken.num_calls == 2  # one for each chat; the second of Ana's waits for her first
    taken.gate.set()
    await working
    assert [row.update_id for row in taken.rows if row.account == "111"] == ["1", "3"]


@pytest.mark.parametrize("odd", [{}, 5, None, "text", {"update_id": "7"}, update(None), {"update_id": 7, "poll": {}}])
async def test_what_cannot_be_read_is_passed_over(odd: object) -> None:
    """No number, or nothing of use: it waits in no queue."""
    taken = Taken()
    await Arrivals("123", "heed_bot", taken.take).take_all([odd, update(8)])
    assert [row.update_id for row in taken.rows] == ["8"]


async def test_what_cannot_be_stored_is_passed_over() -> None:
    """It would hold up everything behind it for ever."""
    seen: list[str] = []

    async def take(row: Inbox) -> bool:
        seen.append(row.update_id)
        if row.update_id == "1":
            raise NotStorable("a number that is none")
        return True

    await Arrivals("123", "heed_bot", take).take_all([update(1), update(2)])
    assert seen == ["1", "2"]


async def test_a_failure_is_told() -> None:
    """After the rest of the batch is done, and with nothing taken out of order."""
    taken = Taken()
    taken.problem = StorageError("disk full")
    with pytest.raises(StorageError):
        await Arrivals("123", "heed_bot", taken.take).take_all([update(1), update(2), update(3, sender=BEN)])
    assert taken.num_calls == 2
