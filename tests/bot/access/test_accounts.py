"""bot.access.accounts: one question, asked for everything."""

from collections.abc import Callable
from typing import Any

import pytest

from bot.access.accounts import ALPHABET, MAX_WAITING, AccessPolicy, What
from bot.errors import InvalidField, NotFound
from bot.events import Author, Message, Place
from storage.tables import Pairing
from tests.bot.conftest import Heed, StartHeed
from tests.clock import Clock

EVE = Author("telegram", "5", "Eve")
BOSS = Author("telegram", "1", "Boss")
LOCAL = Author("http", "local")
HOME = Place("telegram", "5")
GROUP = Place("telegram", "-100", is_private=False)
WHATS: list[What] = ["message", "command", "press", "reaction", "form"]


@pytest.fixture
def clock() -> Clock:
    """Noon of some day."""
    return Clock(1_800_000_000.0)


StartAccess = Callable[..., Any]


@pytest.fixture
def start(start_heed: StartHeed, clock: Clock) -> StartAccess:
    """Starts Access with the settings given, over a database of its own or that of an earlier one."""

    async def begin(heed: Heed | None = None, **settings: Any) -> tuple[AccessPolicy, Heed]:
        running = heed or await start_heed(access={"admins": ("telegram:1",), **settings})
        return AccessPolicy(running.core.database, running.core.settings, clock), running

    return begin


def code_in(notice: str) -> str:
    """The code that a stranger is shown."""
    return notice.partition("Your code is ")[2][:8]


@pytest.mark.parametrize("what", WHATS)
async def test_a_stranger_may_do_nothing(start: StartAccess, what: What) -> None:
    """Messages, commands, presses, reactions and forms are all refused before pairing, and make nobody known."""
    access, heed = await start()
    assert not (await access.authorise(EVE, HOME, what)).is_allowed
    assert (await heed.core.gateway.known(EVE)).id == ""


async def test_a_press_by_a_stranger_says_how_to_get_access(start: StartAccess) -> None:
    """A button of someone without access answers with the next step."""
    access, _ = await start()
    decision = await access.authorise(EVE, HOME, "press")
    assert decision.notice == "You do not have access yet. Send a message to learn how to get it."


@pytest.mark.parametrize("what", WHATS)
@pytest.mark.parametrize("mode", ["open", "allow", "pair"])
async def test_a_block_beats_all(start: StartAccess, what: What, mode: str) -> None:
    """Somebody who was shut out is refused in every mode, whatever they do, and told nothing."""
    access, _ = await start(mode=mode)
    await access.allow("telegram", "5", "telegram:1")
    assert (await access.authorise(EVE, HOME, what)).is_allowed
    await access.block("telegram", "5", "telegram:1")
    decision = await access.authorise(EVE, HOME, what)
    assert (decision.is_allowed, decision.notice) == (False, "")


async def test_a_block_at_another_gateway_holds_at_once(start: StartAccess) -> None:
    """What is remembered of an account is not what decides."""
    here, heed = await start(mode="open")
    heed.core.database.is_shared = True
    there = AccessPolicy(heed.core.database, heed.core.settings)
    assert (await here.authorise(EVE, HOME, "message")).is_allowed
    await there.block("telegram", "5", "telegram:1")
    assert not (await here.authorise(EVE, HOME, "message")).is_allowed


async def test_open_takes_everybody(start: StartAccess) -> None:
    """Without a list nobody is asked who they are; nobody is an admin by that."""
    access, _ = await start(mode="open")
    decision = await access.authorise(EVE, GROUP, "message")
    assert (decision.is_allowed, decision.is_admin) == (True, False)


async def test_an_allow_list_names_the_account_to_ask_for(start: StartAccess) -> None:
    """The notice says what the operator has to allow; no code is made."""
    access, _ = await start(mode="allow")
    assert "telegram:5" in (await access.authorise(EVE, HOME, "message")).notice
    assert await access.waiting() == []
    await access.allow("telegram", "5", "telegram:1")
    assert (await access.authorise(EVE, HOME, "message")).is_allowed


async def test_a_number_on_another_platform_is_somebody_else(start: StartAccess) -> None:
    """The allowance is of one platform's account."""
    access, _ = await start(mode="allow")
    await access.allow("discord", "5", "telegram:1")
    assert not (await access.authorise(EVE, HOME, "message")).is_allowed


async def test_an_admin_is_let_in_and_known_by_number(start: StartAccess) -> None:
    """The settings name admins; a name says nothing."""
    access, _ = await start()
    decision = await access.authorise(BOSS, GROUP, "command")
    assert (decision.is_allowed, decision.is_admin) == (True, True)
    assert not access.is_admin(Author("telegram", "6", "Boss"))
    assert not access.is_admin(Author("discord", "1"))


async def test_an_admin_cannot_be_blocked(start: StartAccess) -> None:
    """Nobody locks the operator out by a command."""
    access, _ = await start()
    with pytest.raises(InvalidField, match="HEED_ACCESS_ADMINS"):
        await access.block("telegram", "1", "telegram:1")


async def test_local_people_are_never_asked(start: StartAccess) -> None:
    """The web page and the terminal are the operator's own, without limits."""
    access, _ = await start(messages_per_hour=1, updates_per_hour=1)
    for _ in range(3):
        decision = await access.authorise(LOCAL, Place("http", "web"), "message")
        assert (decision.is_allowed, decision.is_admin, decision.notice) == (True, True, "")
        assert await access.spend(LOCAL, "updates") == ""


async def test_with_api_keys_a_web_user_is_no_admin(start_heed: StartHeed) -> None:
    """Where others can reach the page, only those the settings name are admins."""
    keys = {"ana": "a long random text", "ben": "another random text"}
    heed = await start_heed(http={"api_keys": keys}, access={"admins": ("http:ana",)})
    access = heed.core.access
    assert access.is_admin(Author("http", "ana"))
    assert not access.is_admin(Author("http", "ben"))
    assert not access.is_admin(Author("http", "ana/local"))


async def test_pairing_lets_a_stranger_in(start: StartAccess) -> None:
    """A code is shown once, an admin approves it in any writing, and then messages are taken."""
    access, _ = await start()
    told: list[Pairing] = []

    async def tell(pairing: Pairing) -> None:
        told.append(pairing)

    access.when_paired.append(tell)
    code = code_in((await access.authorise(EVE, HOME, "message")).notice)
    assert len(code) == 8
    assert set(code) <= set(ALPHABET)
    assert not set("0O1I") & set(ALPHABET)
    paired = await access.pair(f" {code[:4].lower()}-{code[4:].lower()} ", "telegram:1")
    assert (paired.account, paired.display_name, paired.place) == ("5", "Eve", "5")
    assert told == [paired]
    assert (await access.authorise(EVE, GROUP, "message")).is_allowed
    assert [(row.account, row.decided_by) for row in await access.decided()] == [("5", "telegram:1")]


async def test_pairing_survives_a_restart(start: StartAccess) -> None:
    """The code that was shown still holds, and who was let in stays in."""
    access, heed = await start()
    code = code_in((await access.authorise(EVE, HOME, "message")).notice)
    later, _ = await start(heed)
    await later.pair(code, "operator")
    last, _ = await start(heed)
    assert (await last.authorise(EVE, HOME, "message")).is_allowed


@pytest.mark.parametrize("code", ["", "AAAAAAAA", "A" * 5000, "' OR 1=1 --", "\u202e12345678"])
async def test_a_wrong_code_lets_nobody_in(start: StartAccess, code: str) -> None:
    """It is refused with a sentence."""
    access, _ = await start()
    await access.authorise(EVE, HOME, "message")
    with pytest.raises(NotFound, match="No one is waiting"):
        await access.pair(code, "telegram:1")
    assert not (await access.authorise(EVE, HOME, "message")).is_allowed


async def test_a_code_holds_for_an_hour(start: StartAccess, clock: Clock) -> None:
    """After that it is worth nothing, and writing again brings a new one."""
    access, _ = await start()
    old = code_in((await access.authorise(EVE, HOME, "message")).notice)
    clock.now_s += 3600
    with pytest.raises(NotFound):
        await access.pair(old, "telegram:1")
    assert code_in((await access.authorise(EVE, HOME, "message")).notice) not in ("", old)


async def test_only_three_wait(start: StartAccess) -> None:
    """The fourth stranger is asked to come back."""
    access, _ = await start()
    for number in range(MAX_WAITING):
        assert code_in((await access.authorise(Author("telegram", f"9{number}"), HOME, "message")).notice)
    notice = (await access.authorise(EVE, HOME, "message")).notice
    assert "Too many people wait" in notice
    assert len(await access.waiting()) == MAX_WAITING


async def test_codes_are_shown_in_private_only(start: StartAccess) -> None:
    """In a group a stranger is sent to the private chat, and no code is made."""
    access, _ = await start()
    assert "in private" in (await access.authorise(EVE, GROUP, "message")).notice
    assert await access.waiting() == []


async def test_a_stranger_is_not_told_again_at_once(start: StartAccess, clock: Clock) -> None:
    """A flood of messages brings one notice a minute; the code stays the same."""
    access, _ = await start()
    first = (await access.authorise(EVE, HOME, "message")).notice
    assert (await access.authorise(EVE, HOME, "message")).notice == ""
    clock.now_s += 61
    assert code_in((await access.authorise(EVE, HOME, "message")).notice) == code_in(first)


async def test_messages_are_limited_by_the_hour(start: StartAccess, clock: Clock) -> None:
    """The notice says when the next one is free, and then it is."""
    access, _ = await start(mode="open", messages_per_hour=2)
    assert (await access.authorise(EVE, HOME, "message")).is_allowed
    clock.now_s += 600
    assert (await access.authorise(EVE, HOME, "message")).is_allowed
    decision = await access.authorise(EVE, HOME, "message")
    assert not decision.is_allowed
    assert decision.notice == (
        "That was 2 answers in an hour, which is the limit here. The next one is free in 50 minutes (09:00 UTC)."
    )
    assert (await access.authorise(EVE, HOME, "message")).notice == "", "once a minute is enough"
    clock.now_s += 3000
    assert (await access.authorise(EVE, HOME, "message")).is_allowed
    assert not (await access.authorise(EVE, HOME, "message")).is_allowed


@pytest.mark.parametrize("what", ["command", "press", "reaction", "form"])
async def test_only_messages_use_up_messages(start: StartAccess, what: What) -> None:
    """Somebody at their limit can still say /forget, press undo and react."""
    access, _ = await start(mode="open", messages_per_hour=1)
    await access.authorise(EVE, HOME, "message")
    assert (await access.authorise(EVE, HOME, what)).is_allowed


async def test_one_persons_limit_is_nobody_elses(start: StartAccess) -> None:
    """Counts are per account; admins have none."""
    access, _ = await start(mode="open", messages_per_hour=1)
    for author in (EVE, Author("telegram", "6"), Author("discord", "5"), BOSS, BOSS):
        assert (await access.authorise(author, HOME, "message")).is_allowed


async def test_updates_have_a_limit_of_their_own(start: StartAccess, clock: Clock) -> None:
    """The notice comes each time, since each correction deserves an answer."""
    access, _ = await start(mode="open", updates_per_hour=1)
    assert await access.spend(EVE, "updates") == ""
    assert "1 lesson in an hour" in await access.spend(EVE, "updates")
    assert "in 60 minutes" in await access.spend(EVE, "updates")
    clock.now_s += 3600
    assert await access.spend(EVE, "updates") == ""


async def test_limits_survive_a_restart(start_heed: StartHeed) -> None:
    """What was answered in the last hour counts although the process is new."""
    heed = await start_heed(access={"mode": "open", "messages_per_hour": 1})
    gateway = heed.core.gateway
    await gateway.answer(await gateway.turn(Message(EVE, HOME, "bees")))
    later = await start_heed(access={"mode": "open", "messages_per_hour": 1})
    assert not (await later.core.access.authorise(EVE, HOME, "message")).is_allowed


async def test_a_clock_set_back_locks_nobody_out(start: StartAccess, clock: Clock) -> None:
    """Times of the future are not held against anybody."""
    access, _ = await start(mode="open", messages_per_hour=1)
    await access.authorise(EVE, HOME, "message")
    clock.now_s -= 86_400
    assert (await access.authorise(EVE, HOME, "message")).is_allowed


async def test_a_decision_during_a_look_up_is_not_missed(start: StartAccess, monkeypatch: pytest.MonkeyPatch) -> None:
    """What storage said before a block is not remembered after it."""
    access, heed = await start(mode="open")
    read, blocked = heed.core.database.read, []

    async def read_slowly(work: Callable[..., Any]) -> Any:
        found = await read(work)
        if not blocked:
            blocked.append(True)
            await access.block("telegram", "5", "operator")
        return found

    monkeypatch.setattr(heed.core.database, "read", read_slowly)
    assert not (await access.authorise(EVE, HOME, "message")).is_allowed
