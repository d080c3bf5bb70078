"""bot.core.newcomers: new people by address and hour."""

import pytest

from bot.core import newcomers
from bot.core.newcomers import HOUR_S, Newcomers
from bot.errors import QuotaUsed
from tests.bot.conftest import StartHeed


def test_an_hour_has_a_number_of_new_people() -> None:
    """Each address has its own; the next hour begins anew, and the refusal says when."""
    now = [0.0]
    people = Newcomers(2, lambda: now[0])
    for now[0] in (0.0, 600.0):
        people.admit("a")
    with pytest.raises(QuotaUsed, match="50 min") as refused:
        people.admit("a")
    assert refused.value.retry_after_s == HOUR_S - 600
    people.admit("b")
    now[0] = HOUR_S
    people.admit("a")


def test_a_bounded_number_of_addresses_is_known() -> None:
    """The one from which nobody new came for longest is forgotten first."""
    people = Newcomers(1)
    for number in range(newcomers.KNOWN_ADDRESSES + 5):
        people.admit(str(number))
    assert len(people._hours) == newcomers.KNOWN_ADDRESSES


async def test_an_address_cannot_make_people_without_end(start_heed: StartHeed) -> None:
    """Who is known goes on; people behind another forwarded address are counted apart."""
    heed = await start_heed(http={"new_people_per_hour": 2})
    for name in ("ana", "ben", "ana"):
        await heed.ask("bees", user=name)
    body = {"messages": [{"role": "user", "content": "bees"}], "user": "cem"}
    response = await heed.client.post("/v1/chat/completions", json=body)
    assert (response.status, int(response.headers["Retry-After"])) == (429, 3600)
    assert (await heed.post("/v1/feedback", {"user": "cem", "kind": "note", "text": "be brief"}))[0] == 429
    await heed.ask("bees", user="ben")
    elsewhere = {"X-Forwarded-For": "203.0.113.7"}
    assert (await heed.post("/v1/chat/completions", body, headers=elsewhere))[0] == 200
