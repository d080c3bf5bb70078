"""bot.access.api_keys: who a key stands for, how its day is spent, and when one is needed."""

import pytest

from bot.access.api_keys import ANY_EVERY_S, OF_SETTINGS, OPERATOR, Holder, Keys
from bot.config import HttpSettings
from bot.errors import QuotaUsed, StartError
from storage.database import Database
from storage.people import api_keys
from storage.tables import ApiKey
from tests.clock import Clock

NOON_S = 1_795_348_800.0  # 2026-11-22 12:00 UTC


async def add(database: Database, **fields: object) -> tuple[str, ApiKey]:
    """A stored key of ana."""
    token = api_keys.new_token()
    row = ApiKey(**{"account": "ana", "sha256": api_keys.digest(token), "scopes": ["chat"], **fields})
    return token, await database.write(lambda s: api_keys.add(s, row))


async def test_a_key_counts_from_the_next_call_on(database: Database) -> None:
    """Made or revoked by another process meanwhile, it holds at once."""
    known = Keys(database, HttpSettings())
    token, row = await add(database, scopes=["chat", "admin"])
    assert await known.holder(token) == Holder("ana", frozenset({"chat", "admin"}), is_admin=True, key_id=row.id)
    await database.write(lambda s: api_keys.revoke(s, row.id))
    assert await known.holder(token) is None


async def test_the_first_key_closes_heed_and_the_last_one_opens_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within a second: meanwhile storage is not asked again."""
    clock = Clock(NOON_S)
    monkeypatch.setattr("bot.access.api_keys.time.monotonic", clock)
    known = Keys(database, HttpSettings())
    assert not await known.is_needed()
    _, row = await add(database)
    assert not await known.is_needed()
    clock.now_s += ANY_EVERY_S
    assert await known.is_needed()
    await database.write(lambda s: api_keys.revoke(s, row.id))
    clock.now_s += ANY_EVERY_S
    assert not await known.is_needed()


@pytest.mark.parametrize("has_keys", [False, True])
async def test_while_storage_is_away_what_it_said_last_holds(database: Database, has_keys: bool) -> None:
    """Nobody comes in for whom there was a key before; who needed none sees what is wrong. At first it is closed."""
    known, unasked = Keys(database, HttpSettings()), Keys(database, HttpSettings())
    if has_keys:
        await add(database)
    await known.require_some()
    await database.close()
    assert await known.is_needed() is has_keys
    assert await unasked.is_needed()


@pytest.mark.parametrize("token", ["", "heed_", "heed_" + "a" * 43, "é", "\udcff"])
async def test_what_is_no_key_stands_for_nobody(database: Database, token: str) -> None:
    """Whatever is sent."""
    await add(database)
    assert await Keys(database, HttpSettings()).holder(token) is None


async def test_keys_of_the_settings_and_of_the_process(database: Database) -> None:
    """Both keep working beside stored ones; whether a key of the settings is an admin's, the settings say."""
    known = Keys(database, HttpSettings(api_keys={"ben": "b" * 20}))  # type: ignore[dict-item]
    assert await known.holder("b" * 20) == Holder("ben", OF_SETTINGS)
    assert await known.holder(known.own) is OPERATOR
    assert known.own != Keys(database, HttpSettings()).own


async def test_the_last_use_is_stored_at_most_once_a_minute(database: Database) -> None:
    """A key that is used all the time costs one write a minute."""
    clock = Clock(NOON_S)
    known = Keys(database, HttpSettings(), clock)
    token, _ = await add(database)
    before = database.num_commits
    for _ in range(21):
        await known.holder(token)
        clock.now_s += 3.1
    assert database.num_commits - before == 2
    assert (await database.read(api_keys.everything))[0].last_used_at == pytest.approx(NOON_S + 62, abs=3.1)


async def test_a_spent_day_says_when_there_is_more(database: Database) -> None:
    """429 until midnight UTC; then the next day is new."""
    clock = Clock(NOON_S)
    known = Keys(database, HttpSettings(), clock)
    token, _ = await add(database, messages_per_day=1)
    who = await known.holder(token)
    assert who is not None
    await known.spend(who, "messages")
    await known.spend(who, "updates")
    with pytest.raises(QuotaUsed, match="messages of the day are used up; there are more in 12 hours") as refused:
        await known.spend(who, "messages")
    assert refused.value.retry_after_s == 12 * 3600
    clock.now_s += 12 * 3600
    await known.spend(who, "messages")


async def test_beyond_loopback_a_key_is_always_needed(database: Database) -> None:
    """Without any heed does not start there; once the last one is revoked nobody is let in."""
    exposed = HttpSettings(host="0.0.0.0")  # noqa: S104
    known = Keys(database, exposed)
    with pytest.raises(StartError, match=r"there is no API key\. Make one with `heed keys add you`"):
        await known.require_some()
    _, row = await add(database)
    await known.require_some()
    await database.write(lambda s: api_keys.revoke(s, row.id))
    assert await known.is_needed()
    await Keys(database, HttpSettings()).require_some()
