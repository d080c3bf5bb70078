"""bot.commands.admin: what only an admin may ask for."""

import struct

import pytest

from bot.commands import admin, person
from bot.commands.person import CommandReply
from bot.errors import InvalidField, NotFound
from bot.events import Author, Command, Message, Place
from storage.learning import drift_audits, notes, signals, updates
from storage.tables import UpdateRun
from tests.bot.conftest import Heed, StartHeed

BOSS = Author("telegram", "1", "Boss")
EVE = Author("telegram", "5", "Eve")
WORDS = "a canary in the words of Eve"


def home(author: Author) -> Place:
    """The private chat of an account."""
    return Place(author.platform, author.account)


async def do(heed: Heed, text: str, author: Author = BOSS) -> CommandReply:
    """Have a command done in private."""
    given = person.parse(text)
    assert given is not None
    user_id = await heed.core.gateway.person(author, is_learning=False)
    return await person.run(heed.core, user_id, home(author), given, author)


async def teach(heed: Heed, text: str = "too long", author: Author = EVE) -> str:
    """Somebody asks and corrects; what became of it."""
    gateway, core = heed.core.gateway, heed.core
    user_id = await gateway.person(author, is_learning=False)
    await core.consent.choose(user_id, "yes", home(author))
    await gateway.answer(await gateway.turn(Message(author, home(author), WORDS)))
    command = Command("feedback", text)
    lesson = (await person.run(core, user_id, home(author), command, author)).lesson
    assert lesson is not None
    return lesson.outcome.status


@pytest.fixture
async def heed(start_heed: StartHeed) -> Heed:
    """A heed with one admin, open to everybody."""
    return await start_heed(access={"admins": ("telegram:1",), "mode": "open"})


@pytest.mark.parametrize("name", admin.COMMANDS)
async def test_for_anybody_else_there_is_no_such_command(heed: Heed, name: str) -> None:
    """The answer is the one to any unknown command, word for word; the menu of help does not list it."""
    with pytest.raises(InvalidField) as refused:
        await do(heed, f"/{name}", EVE)
    assert str(refused.value) == f"There is no command /{name}. /help lists them."
    assert f"/{name} " not in (await do(heed, "/help", EVE)).text
    assert f"/{name}" in (await do(heed, "/help")).text


async def test_without_an_author_nobody_is_an_admin(heed: Heed) -> None:
    """A caller that does not say who is asking gets nothing."""
    user_id = await heed.core.gateway.person(BOSS)
    with pytest.raises(InvalidField, match="no command"):
        await person.run(heed.core, user_id, home(BOSS), Command("users"))


async def test_stats_have_figures_and_a_picture(heed: Heed) -> None:
    """Counts in three spans, and a PNG; nobody's words."""
    await teach(heed)
    said = await do(heed, "/stats")
    assert "messages: 1 / 1 / 1" in said.text
    assert "correction on telegram: 1 / 1 / 1" in said.text
    ((name, picture),) = said.files
    assert name.endswith(".png")
    assert struct.unpack(">II", picture[16:24]) == (800, 450)
    assert said.is_private
    assert WORDS not in said.text


async def test_pairing_by_command(start_heed: StartHeed) -> None:
    """/pair lists who waits without the codes, and lets in who was shown this one."""
    heed = await start_heed(access={"admins": ("telegram:1",)})
    access = heed.core.access
    notice = (await access.authorise(EVE, home(EVE), "message")).notice
    code = notice.partition("Your code is ")[2][:8]
    listed = (await do(heed, "/pair")).text
    assert "Eve, telegram:5" in listed
    assert code not in listed
    with pytest.raises(NotFound):
        await do(heed, "/pair ABCDEFGH")
    assert (await do(heed, f"/pair {code}")).text == "Eve (telegram:5) is let in."
    assert (await access.authorise(EVE, home(EVE), "message")).is_allowed
    assert (await do(heed, "/pair")).text == "No one is waiting."
    assert "telegram:5, allowed by telegram:1" in (await do(heed, "/users")).text


async def test_allowing_and_blocking(heed: Heed) -> None:
    """By number on the same platform, or with the other platform's name; a block is lifted by /allow."""
    access = heed.core.access
    await do(heed, "/block 5")
    assert not (await access.authorise(EVE, home(EVE), "message")).is_allowed
    assert (await do(heed, "/allow telegram:5")).text == "telegram:5 is let in."
    assert (await access.authorise(EVE, home(EVE), "message")).is_allowed
    assert "discord:5 is blocked" in (await do(heed, "/block discord:5")).text


@pytest.mark.parametrize(
    "text", ["/block", "/allow Eve", "/block telegram:", "/allow -5", "/allow 5 6", "/allow \uff15"]
)
async def test_an_account_is_a_number(heed: Heed, text: str) -> None:
    """Names can be changed, so they are refused."""
    with pytest.raises(InvalidField, match="by its number"):
        await do(heed, text)


async def test_users_are_listed(heed: Heed) -> None:
    """Names, accounts, answers and learning; not a word of what was said."""
    await teach(heed)
    text = (await do(heed, "/users")).text
    assert "Eve (telegram:5): 2 answers" in text
    assert "learning, v1" in text
    assert WORDS not in text


async def test_pause_keeps_corrections_and_resume_learns_them(heed: Heed) -> None:
    """While learning is paused, answers and notes go on and corrections wait."""
    await do(heed, "/pause")
    assert await teach(heed) == "queued"
    await do(heed, "/note call me Eve", EVE)
    eve = await heed.core.gateway.person(EVE)
    assert len(await heed.core.database.read(lambda s: notes.live(s, eve))) == 1
    assert "Learning is paused; 1 lesson waiting" in (await do(heed, "/updates")).text
    assert "Learning is paused" in (await do(heed, "/stats")).text
    assert "1 correction waited." in (await do(heed, "/resume")).text
    assert (await heed.core.gateway.user(eve)).active_version == 1
    assert "Learning is running; 0 lessons waiting" in (await do(heed, "/updates")).text


async def test_a_pause_survives_a_restart(heed: Heed, start_heed: StartHeed) -> None:
    """What waits is not taken up by the next heed before /resume."""
    await do(heed, "/pause")
    await teach(heed)
    later = await start_heed(access={"admins": ("telegram:1",), "mode": "open"})
    assert await later.core.lessons.start() == 0
    assert later.core.lessons.is_paused
    await do(later, "/resume")
    assert (await later.core.gateway.user(await later.core.gateway.person(EVE))).active_version == 1
    last = await start_heed()
    await last.core.lessons.start()
    assert not last.core.lessons.is_paused


async def test_resuming_twice_learns_once(heed: Heed) -> None:
    """What is learned already is not learned again."""
    await do(heed, "/pause")
    await teach(heed)
    await do(heed, "/resume")
    await do(heed, "/pause")
    assert "0 corrections waited." in (await do(heed, "/resume")).text
    assert heed.engine.num_learned == 1


async def test_rollback_is_of_one_person(heed: Heed) -> None:
    """An earlier version answers them; unknown accounts and versions are named."""
    await teach(heed)
    assert (await do(heed, "/rollback telegram:5 v0")).text == "The untrained model answers telegram:5 from now on."
    eve = await heed.core.gateway.person(EVE)
    assert (await heed.core.gateway.user(eve)).active_version == 0
    assert (await do(heed, "/rollback 5 1")).text == "Version 1 answers telegram:5 from now on."
    with pytest.raises(NotFound):
        await do(heed, "/rollback telegram:6 1")
    with pytest.raises(NotFound, match="o adapter version 9"):
        await do(heed, "/rollback telegram:5 9")
    for wrong in ("/rollback Eve", "/rollback 5 x", "/rollback Eve 1"):
        with pytest.raises(InvalidField):
            await do(heed, wrong)


async def test_an_admins_own_adapter_needs_no_account(heed: Heed) -> None:
    """One word is a version of their own; nobody else's account can be named by others."""
    await teach(heed)
    await teach(heed, author=BOSS)
    assert "The untrained model answers now" in (await do(heed, "/rollback 0")).text
    eve = await heed.core.gateway.person(EVE)
    assert (await heed.core.gateway.user(eve)).active_version == 1
    with pytest.raises(InvalidField, match="Write a version"):
        await do(heed, "/rollback telegram:1 1", EVE)
    assert "/rollback <account> <version>" in (await do(heed, "/help")).text
    assert "<account>" not in (await do(heed, "/help", EVE)).text


async def test_adapters_and_updates_are_listed(heed: Heed) -> None:
    """Versions and bytes of each person; each update with its outcome and time."""
    assert (await do(heed, "/adapters")).text == "0 adapters, 0 versions, 0 B"
    await teach(heed)
    assert (await do(heed, "/adapters")).text.splitlines() == [
        "1 adapter, 1 version, 1.2 kB",
        "Eve (telegram:5): v1, 1 version, 1.2 kB",
    ]
    assert "Eve: correction accepted in 1.2 s, 10 steps, v1" in (await do(heed, "/updates")).text


async def test_in_a_group_an_admins_command_shows_nothing(heed: Heed) -> None:
    """On Telegram others would read it; Discord shows it to the asker alone."""
    user_id = await heed.core.gateway.person(BOSS)
    group = Place("telegram", "-100", is_private=False)
    said = await person.run(heed.core, user_id, group, Command("users"), BOSS)
    assert "in private" in said.text
    assert "people:" not in said.text


async def test_a_consolidation_is_of_the_person_named_or_of_the_admin(heed: Heed) -> None:
    """Somebody else's by account, one's own without; unknown accounts are named."""
    await teach(heed)
    assert (await do(heed, "/consolidate")).text.startswith("Nothing changed")
    assert "from 1 new signal" in (await do(heed, "/consolidate telegram:5")).text
    with pytest.raises(NotFound):
        await do(heed, "/consolidate telegram:6")


async def test_a_rebuild_is_of_the_person_named_or_of_the_admin(heed: Heed) -> None:
    """As a consolidation is."""
    await teach(heed)
    assert (await do(heed, "/rebuild")).text.startswith("Nothing changed")
    assert (await do(heed, "/rebuild telegram:5")).text.startswith("Made again from zero: v2")
    with pytest.raises(NotFound):
        await do(heed, "/rebuild telegram:6")


async def test_a_parked_consolidation_is_seen_by_an_admin(heed: Heed) -> None:
    """Among the updates, by its person and its end."""
    eve = await heed.core.gateway.person(EVE)
    row = UpdateRun(user_id=eve, kind=signals.CONSOLIDATION, status="parked", error="gone")
    await heed.core.database.write(lambda s: updates.start(s, row))
    assert "Eve: consolidation parked" in (await do(heed, "/updates")).text


async def test_an_audit_is_seen_with_what_it_found(heed: Heed) -> None:
    """Among the updates with its words; in /stats by how many people; it counts as no update."""
    eve = await heed.core.gateway.person(EVE)
    row = UpdateRun(user_id=eve, kind=drift_audits.KIND, status="critical", error="drift 2.30, above 2")
    await heed.core.database.write(lambda s: updates.start(s, row))
    assert "Eve: audit critical (drift 2.30, above 2)" in (await do(heed, "/updates")).text
    said = (await do(heed, "/stats")).text
    assert "drift: 1 person audited, 1 critical" in said
    assert "updates: 0 / 0 / 0" in said
