"""Tests of bot.platforms.discord.seen."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from bot.platforms.discord.channel import DiscordChannel
from bot.platforms.discord.seen import Change, SeenUpdates, State, next_number, reaction_states, still_on
from bot.platforms.discord.shard import Shard
from storage.conversations import inbox
from storage.database import Database
from storage.tables import Inbox


@given(st.lists(st.sampled_from(["add", "remove"])), st.randoms())
def test_every_change_is_counted_once(changes: list[Change], random: object) -> None:
    """Whatever people do, what is taken alternates, has keys of its own, and leaves the state they see."""
    keys: list[tuple[str, str]] = []
    for change in changes:
        number = next_number(reaction_states(keys).get(("ab", "👍")), change)
        if number is not None:
            keys.append((f"r:{change}:42:ab:👍:{number}", "111"))
        random.shuffle(keys)  # type: ignore[attr-defined]
    assert len(set(keys)) == len(keys)
    is_on = reaction_states(keys).get(("ab", "👍"), State()).is_on
    assert is_on == (bool(changes) and changes[-1] == "add")
    assert len(keys) == sum(change != before for before, change in zip(["remove", *changes], changes, strict=False))


def test_states_are_apart_by_person_and_emoji() -> None:
    """One person's emoji says nothing about another's, nor about their other ones."""
    keys = {"r:add:1:ab:👍:1": "111", "r:add:1:cd:👍:1": "222", "r:remove:1:cd:👍:1": "222", "r:add:1:ab:987:2": "111"}
    assert reaction_states(keys.items()) == {
        ("ab", "👍"): State(1, True, "111"),
        ("cd", "👍"): State(1, False, "222"),
        ("ab", "987"): State(2, True, "111"),
    }


def test_what_is_on_can_be_taken_off_but_by_whom_nobody_knows_any_more() -> None:
    """A reaction of somebody who was forgotten is on, so that it is not taken again, and is never taken off."""
    states = {("ab", "👍"): State(1, True, "111"), ("cd", "👍"): State(1, True), ("ef", "👍"): State(1, False, "333")}
    assert next_number(states["cd", "👍"], "add") is None
    assert set(still_on(states)) == {("ab", "👍")}
    assert still_on(states, but=[("ab", "👍")]) == {}


async def test_marks_tell_how_far_each_chat_is(tmp_path: Path) -> None:
    """The newest message of each chat counts; starts count where nothing was heard; other bots do not."""
    database = Database.open(tmp_path)
    taken = SeenUpdates(database, Shard())
    assert (await taken.watermarks("1")).newest == 0
    for chat, key, bot in (
        ("s:1", "s:5", "1"),
        ("a", "m:10", "1"),
        ("a", "m:12", "1"),
        ("b", "m:11", "1"),
        ("c", "m:99", "2"),
        ("a", "r:add:7:ab:👍:1", "1"),
    ):
        row = Inbox(platform="discord", bot_id=bot, update_id=key, chat_key=chat, account="111", payload={})
        await database.write(lambda s, row=row: inbox.add(s, row))  # type: ignore[misc]
    watermarks = await taken.watermarks("1")
    assert (watermarks.by_chat, watermarks.newest, watermarks.reacted) == ({"a": 12, "b": 11}, 12, frozenset({"7"}))
    assert await taken.reactions("1", "7") == {("ab", "👍"): State(1, True, "111")}
    await database.close()


async def test_pruning_leaves_the_marks_as_they_are(tmp_path: Path) -> None:
    """How far each chat is, since when heed listens and which reactions are on is known for ever."""
    database = Database.open(tmp_path)
    taken = SeenUpdates(database, Shard())
    keys = ("s:5", "m:10", "e:10:x", "m:12", "i:13", "r:add:7:ab:👍:1")
    for key in keys:
        row = Inbox(
            platform="discord", bot_id="1", update_id=key, chat_key="a", account="111", payload={}, is_done=True
        )
        await database.write(lambda s, row=row: inbox.add(s, row))  # type: ignore[misc]
    before = await taken.watermarks("1"), await taken.reactions("1", "7")
    assert await database.write(lambda s: inbox.prune(s, "discord", 1e12, DiscordChannel.kept_keys, 100)) == 3
    assert (await taken.watermarks("1"), await taken.reactions("1", "7")) == before
    await database.close()
