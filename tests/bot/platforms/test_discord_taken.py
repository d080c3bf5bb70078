"""Tests of bot.platforms.discord_taken."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from bot.platforms.discord_taken import Change, Taken, next_number, reaction_states
from storage import inbox
from storage.database import Database
from storage.tables import Inbox


@given(st.lists(st.sampled_from(["add", "remove"])), st.randoms())
def test_every_change_is_counted_once(changes: list[Change], random: object) -> None:
    """Whatever people do, what is taken alternates, has keys of its own, and leaves the state they see."""
    keys: list[str] = []
    for change in changes:
        number = next_number(reaction_states(keys).get(("111", "👍")), change)
        if number is not None:
            keys.append(f"r:{change}:42:111:👍:{number}")
        random.shuffle(keys)  # type: ignore[attr-defined]
    assert len(set(keys)) == len(keys)
    _, is_on = reaction_states(keys).get(("111", "👍"), (0, False))
    assert is_on == (bool(changes) and changes[-1] == "add")
    assert len(keys) == sum(change != before for before, change in zip(["remove", *changes], changes, strict=False))


def test_states_are_apart_by_person_and_emoji() -> None:
    """One person's emoji says nothing about another's, nor about their other ones."""
    states = reaction_states(["r:add:1:111:👍:1", "r:add:1:222:👍:1", "r:remove:1:222:👍:1", "r:add:1:111:987:2"])
    assert states == {("111", "👍"): (1, True), ("222", "👍"): (1, False), ("111", "987"): (2, True)}


async def test_marks_tell_how_far_each_chat_is(tmp_path: Path) -> None:
    """The newest message of each chat counts; starts count where nothing was heard; other bots do not."""
    database = Database.open(tmp_path)
    taken = Taken(database)
    assert (await taken.marks("1")).newest == 0
    for chat, key, bot in (
        ("s:1", "s:5", "1"),
        ("a", "m:10", "1"),
        ("a", "m:12", "1"),
        ("b", "m:11", "1"),
        ("c", "m:99", "2"),
        ("a", "r:add:7:111:👍:1", "1"),
    ):
        row = Inbox(platform="discord", bot_id=bot, update_id=key, chat_key=chat, payload={})
        await database.write(lambda s, row=row: inbox.add(s, row))  # type: ignore[misc]
    marks = await taken.marks("1")
    assert (marks.by_chat, marks.newest, marks.reacted) == ({"a": 12, "b": 11}, 12, frozenset({"7"}))
    assert await taken.reactions("1", "7") == {("111", "👍"): (1, True)}
    await database.close()
