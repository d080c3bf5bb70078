"""An agent's work on the chat page, as a person sees and uses it, in a headless Chromium."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, Route, expect

from bot.http.agent.sessions import WATCHERS
from tests.bot.agent.minds import piece
from tests.bot.agent.repositories import make_conflict, make_repository
from tests.bot.agent.workspaces import USER, can_run, folder, names, put
from tests.bot.conftest import Heed, StartHeed
from tests.bot.http.web.browsing import browser, complaints, open_page, start_heed
from tests.patience import until

__all__ = ["browser", "can_run", "complaints", "folder", "start_heed"]

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(loop_scope="module")
async def working(start_heed: StartHeed, folder: Path, can_run: None) -> Heed:
    """A heed whose operator allows a workspace."""
    return await start_heed(agent={"folders": (folder,), "account": USER, "scratch": folder.parent / "scratch"})


def will_call(heed: Heed, tool: str, **arguments: Any) -> None:
    """From now on every answer calls this."""
    heed.engine.calls = [piece(tool, json.dumps(arguments))]


async def begun(heed: Heed, browser: Browser, complaints: list[str], width: int = 1280) -> Page:
    """A page that shows a new work in the workspace."""
    page = await open_page(heed, browser, complaints, width)
    await page.select_option("#workspace", "work")
    await page.locator("#work-form button").click()
    await expect(page.locator("#work-list .active")).to_contain_text("work")
    return page


async def say(page: Page, text: str) -> None:
    """Say something to the agent, and wait for its question."""
    await page.fill("#say", text)
    await page.press("#say", "Enter")
    await expect(page.locator(".decision")).to_be_visible()


async def test_a_call_is_shown_and_runs_after_a_yes(
    working: Heed, browser: Browser, complaints: list[str], folder: Path
) -> None:
    """Its diff in colour; nothing is written before; a reload shows the same; then what the agent says."""
    put(folder, "a.txt", "one\n")
    page = await begun(working, browser, complaints)
    will_call(working, "write", path="a.txt", content="two\n")
    await say(page, "Write two.")
    card = page.locator(".decision")
    await expect(card.locator(".about")).to_have_text("a.txt")
    await expect(card.locator(".diff .minus").filter(has_text="one")).to_be_visible()
    await expect(card.locator(".diff .plus").filter(has_text="two")).to_be_visible()
    assert (folder / "a.txt").read_text() == "one\n"
    await page.reload()
    await expect(card.get_by_role("button", name="Yes", exact=True)).to_be_visible()
    working.engine.calls = []
    await card.get_by_role("button", name="Yes", exact=True).click()
    await expect(page.locator(".card.done")).to_be_visible()
    await expect(page.locator(".log .answer")).to_have_count(1)
    await expect(card).to_have_count(0)
    assert (folder / "a.txt").read_text() == "two\n"
    assert complaints == []


async def test_a_no_is_learned_and_asked_again(
    working: Heed, browser: Browser, complaints: list[str], folder: Path
) -> None:
    """With its line and its heat map; a second tab sees it, too."""
    page = await begun(working, browser, complaints)
    other = await page.context.new_page()
    await other.goto(page.url)
    await expect(other.locator("#work-list .active")).to_be_visible()
    will_call(working, "bash", command="rm -r .")
    await say(page, "Clean up.")
    await expect(other.locator(".decision .about")).to_have_text("rm -r .")
    await page.locator(".decision").get_by_role("button", name="No", exact=True).click()
    await page.get_by_role("button", name="Read the file before you change it.").click()
    for tab in (page, other):
        await expect(tab.locator(".lesson .line")).to_contain_text("Learned: v1")
        await expect(tab.locator(".decision")).to_be_visible()
    await page.locator(".lesson summary").click()
    await expect(page.locator(".lesson .heat-text span").first).to_be_visible()
    await page.locator(".lesson .undo").click()
    await expect(page.locator(".lesson.undone .line")).to_contain_text("Undone.")
    await expect(page.locator(".lesson .undo")).to_have_count(0)
    await page.locator(".decision").get_by_role("button", name="No", exact=True).click()
    await page.get_by_role("button", name="Only no").click()
    await expect(page.locator(".card.not-done")).to_be_visible()
    await expect(other.locator(".decision")).to_have_count(0)
    assert (working.engine.num_learned, names(folder), complaints) == (1, set(), [])


@pytest.mark.parametrize(("choice", "line"), [("From now on", "Learned: v1"), ("Just this answer", "Noted.")])
async def test_where_heed_is_unsure_how_far_a_lesson_reaches_it_asks(
    working: Heed, browser: Browser, complaints: list[str], choice: str, line: str
) -> None:
    """With two buttons, which go with the choice; what reaches further is learned."""
    page = await begun(working, browser, complaints)
    will_call(working, "bash", command="rm -r .")
    await say(page, "Clean up.")
    await page.locator(".decision").get_by_role("button", name="No", exact=True).click()
    await page.locator(".decision input").fill("unsure, read it first")
    await page.locator(".decision input").press("Enter")
    await expect(page.locator(".lesson .line")).to_contain_text("Only this answer, or from now on?")
    await page.locator(".lesson").get_by_role("button", name=choice).click()
    await expect(page.locator(".lesson .line")).to_contain_text(line)
    await expect(page.locator(".lesson .scope")).to_have_count(0)
    await expect(page.locator(".lesson .undo")).to_have_count(1 if choice == "From now on" else 0)
    assert (working.engine.num_learned, complaints) == (int(choice == "From now on"), [])


async def test_lessons_are_told_of_the_work(working: Heed, browser: Browser, complaints: list[str]) -> None:
    """The page shows what they know, and says how it is told."""
    page = await begun(working, browser, complaints)
    await page.fill("#say", "/tell It uses Poetry.")
    await page.press("#say", "Enter")
    await expect(page.locator("#log")).to_contain_text("Lessons know: It uses Poetry.")
    await page.fill("#say", "/tell")
    await page.press("#say", "Enter")
    await expect(page.get_by_text("/tell this project uses Poetry")).to_be_visible()
    await page.fill("#say", "/here Two spaces.")
    await page.press("#say", "Enter")
    await expect(page.locator("#log .command")).to_contain_text("Noted. It holds in every session in this workspace")
    await page.fill("#say", "/here")
    await page.press("#say", "Enter")
    await expect(page.locator("#log .command")).to_have_text("1. Two spaces.")
    assert complaints == []


async def test_other_arguments_wait_for_a_yes(
    working: Heed, browser: Browser, complaints: list[str], folder: Path
) -> None:
    """What is no JSON changes nothing; Escape closes the box."""
    page = await begun(working, browser, complaints)
    will_call(working, "write", path="a.txt", content="one\n")
    await say(page, "Write one.")
    card = page.locator(".decision")
    await card.get_by_role("button", name="Change it").click()
    await page.keyboard.press("Escape")
    await expect(card.locator("textarea")).to_have_count(0)
    await card.get_by_role("button", name="Change it").click()
    await card.locator("textarea").fill("{")
    await card.get_by_role("button", name="Use these").click()
    await expect(page.locator("#banner")).to_contain_text("no JSON")
    await card.locator("textarea").fill('{"path": "b.txt", "content": "one\\n"}')
    await card.get_by_role("button", name="Use these").click()
    await expect(card.locator(".badge")).to_have_text("with your changes")
    working.engine.calls = []
    await card.get_by_role("button", name="Yes", exact=True).click()
    await expect(page.locator(".card.done")).to_be_visible()
    assert names(folder) == {"b.txt"}


async def test_what_somebody_writes_stays_when_news_come_late(
    working: Heed, browser: Browser, complaints: list[str], folder: Path
) -> None:
    """A box that was opened while the page was being told of the work is not drawn over."""
    page = await begun(working, browser, complaints)
    will_call(working, "write", path="a.txt", content="one\n")
    await say(page, "Write one.")
    card, may_arrive, arrived = page.locator(".decision"), asyncio.Event(), asyncio.Event()

    async def late(route: Route) -> None:
        answer = await route.fetch()
        await may_arrive.wait()
        await route.fulfill(response=answer)
        arrived.set()

    await card.get_by_role("button", name="Change it").click()
    await page.route("**/api/sessions/*", late)
    await page.keyboard.press("Escape")
    await card.get_by_role("button", name="Change it").click()
    await card.locator("textarea").fill("{}")
    may_arrive.set()
    await arrived.wait()
    await page.unroute("**/api/sessions/*")
    await page.evaluate("new Promise((resolve) => { setTimeout(resolve, 100); })")
    assert await card.locator("textarea").count() == 1
    await expect(card.locator("textarea")).to_have_value("{}")
    assert (names(folder), complaints) == (set(), [])


async def test_a_failure_and_a_running_tool(working: Heed, browser: Browser, complaints: list[str]) -> None:
    """The one can be taught, the other stopped; work can be deleted."""
    page = await begun(working, browser, complaints)
    will_call(working, "read", path="none")
    await say(page, "Read it.")
    await page.get_by_role("button", name="Yes", exact=True).click()
    await expect(page.locator(".decision .tool-name")).to_have_text("The call failed.")
    will_call(working, "bash", command="sleep 4727")
    await page.get_by_role("button", name="Let the agent see that").click()
    await page.get_by_role("button", name="Yes, and bash from now on").click()
    await page.get_by_role("button", name="Stop", exact=True).click()
    await expect(page.locator(".learning")).to_have_count(0)
    await page.locator("#work-list").get_by_role("button", name="Delete").click()
    await page.locator("#ask-delete").get_by_role("button", name="Delete").click()
    await expect(page.locator("#work-list li")).to_have_count(0)
    await expect(page.locator("#welcome")).to_be_visible()
    assert complaints == []


async def test_what_a_file_hides_is_seen(working: Heed, browser: Browser, complaints: list[str], folder: Path) -> None:
    """Markup is text, marks of direction have their numbers; it is wide enough for a phone."""
    put(folder, "a.txt", "<img src=x onerror=alert(1)>\u202e\n")
    page = await begun_on_a_phone(working, browser, complaints)
    will_call(working, "write", path="a.txt", content="</pre><script>alert(1)</script>\u200b\n" + "x" * 300)
    await say(page, "Write it.")
    shown = await page.locator(".decision .diff").inner_text()
    assert "<img src=x onerror=alert(1)><U+202E>" in shown
    assert "</pre><script>alert(1)</script><U+200B>" in shown
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert complaints == []


async def test_a_direction_mark_is_seen_above(working: Heed, browser: Browser, complaints: list[str]) -> None:
    """In the line that says what a call is about, before it runs and afterwards."""
    page = await begun(working, browser, complaints)
    will_call(working, "bash", command="echo \u202e")
    await say(page, "Say it.")
    await expect(page.locator(".decision .about")).to_have_text("echo <U+202E>")
    working.engine.calls = []
    await page.locator(".decision").get_by_role("button", name="Yes", exact=True).click()
    await expect(page.locator(".card.done .about")).to_have_text("echo <U+202E>")
    assert complaints == []


async def test_a_yes_is_for_the_call_that_is_shown(
    working: Heed, browser: Browser, complaints: list[str], folder: Path
) -> None:
    """On a page that has not heard of a newer one it is refused; then the newer one is shown."""
    page = await begun(working, browser, complaints)
    await page.route("**/events?*", lambda route: route.abort())
    await page.reload()
    will_call(working, "bash", command="touch seen")
    await say(page, "Touch it.")
    work = await shown(working)
    will_call(working, "bash", command="touch unseen")
    denied = {"mark": work["call"]["mark"], "text": "Not that."}
    assert (await working.post(f"/api/sessions/{work['id']}/deny", denied))[0] == 200
    await expect(page.locator(".decision .about")).to_have_text("touch seen")
    await page.locator(".decision").get_by_role("button", name="Yes", exact=True).click()
    await expect(page.locator("#banner")).to_have_text("Another call waits by now. Look at it first.")
    await expect(page.locator(".decision .about")).to_have_text("touch unseen")
    assert names(folder) == set()
    working.engine.calls = []
    await page.locator(".decision").get_by_role("button", name="Yes", exact=True).click()
    await expect(page.locator(".card.done")).to_be_visible()
    assert names(folder) == {"unseen"}


async def shown(heed: Heed) -> dict[str, Any]:
    """The newest work, as heed knows it."""
    newest = (await heed.get("/api/sessions"))[1]["sessions"][0]["id"]
    return (await heed.get(f"/api/sessions/{newest}"))[1]


async def test_the_page_shows_the_work_that_it_speaks_to(
    working: Heed, browser: Browser, complaints: list[str]
) -> None:
    """A box that is open in another work keeps nothing of that on the page."""
    page = await begun(working, browser, complaints)
    first = page.url
    will_call(working, "glob", pattern="first")
    await say(page, "Look.")
    await page.locator("#work-form button").click()
    await expect(page.locator("#work-list li")).to_have_count(2)
    await expect(page.locator(".decision")).to_have_count(0)
    second = page.url
    await page.evaluate("hash => { location.hash = hash; }", first.partition("#")[2])
    await page.locator(".decision").get_by_role("button", name="No", exact=True).click()
    await expect(page.locator(".decision .teach")).to_be_visible()
    await page.evaluate("hash => { location.hash = hash; }", second.partition("#")[2])
    await expect(page.locator("#log")).to_contain_text("Say what is to be done in work.")
    await expect(page.locator(".decision")).to_have_count(0)
    assert complaints == []


async def test_a_work_that_comes_late_takes_no_ones_place(
    working: Heed, browser: Browser, complaints: list[str]
) -> None:
    """The person has opened a conversation meanwhile: that stays, and nothing is complained about."""
    page = await begun(working, browser, complaints)
    held: list[Route] = []

    async def hold(route: Route) -> None:
        held.append(route)

    work, url = (await shown(working))["id"], page.url
    await page.goto("about:blank")  # what the page still asks for now is not held, and never answered
    await page.route(f"**/api/sessions/{work}?*", hold)
    async with page.expect_request(f"**/api/sessions/{work}?*"):
        await page.goto(url)
    await page.locator("#new-chat").click()
    await expect(page.locator("#welcome")).to_be_visible()
    await until(lambda: bool(held))
    async with page.expect_response(f"**/api/sessions/{work}?*"):
        await held[0].continue_()
    await page.evaluate("new Promise((resolve) => { setTimeout(resolve, 100); })")
    await expect(page.locator("#banner")).to_be_hidden()
    await expect(page.locator("#welcome")).to_be_visible()
    assert complaints == []


async def test_a_stream_that_ends_is_opened_again(working: Heed, browser: Browser, complaints: list[str]) -> None:
    """And what happened meanwhile is shown."""
    page = await begun(working, browser, complaints)
    streams = working.client.server.app[WATCHERS]  # type: ignore[union-attr]
    await until(lambda: len(streams) == 1)
    streams.end()
    will_call(working, "glob", pattern="*")
    asked = await working.post(f"/api/sessions/{(await shown(working))['id']}/prompt", {"text": "Look."})
    assert asked[0] == 200
    await expect(page.locator(".decision .about")).to_have_text("*")
    working.engine.calls = []
    denied = {"mark": asked[1]["call"]["mark"]}
    assert (await working.post(f"/api/sessions/{asked[1]['session_id']}/deny", denied))[0] == 200
    await expect(page.locator(".decision")).to_have_count(0)
    await expect(page.locator("#banner")).to_be_hidden()
    assert complaints == []


async def test_a_message_while_the_agent_works_comes_back(
    working: Heed, browser: Browser, complaints: list[str]
) -> None:
    """Into the message box, and the person is told why; so does a note for lessons."""
    page = await begun(working, browser, complaints)
    will_call(working, "bash", command="sleep 4728")
    await say(page, "Wait.")
    await page.locator(".decision").get_by_role("button", name="Yes", exact=True).click()
    await expect(page.get_by_role("button", name="Stop", exact=True)).to_be_visible()
    for text in ("And then this.", "/tell It uses Poetry."):
        await page.fill("#say", text)
        await page.press("#say", "Enter")
        await expect(page.locator("#banner")).to_contain_text("The agent is at work")
        await expect(page.locator("#say")).to_have_value(text)
    await page.get_by_role("button", name="Stop", exact=True).click()
    await expect(page.locator(".learning")).to_have_count(0)


async def begun_on_a_phone(heed: Heed, browser: Browser, complaints: list[str]) -> Page:
    """A page 320 pixels wide that shows a new work."""
    page = await open_page(heed, browser, complaints, 320)
    await page.locator("#chats-open").click()
    await page.select_option("#workspace", "work")
    await page.locator("#work-form button").click()
    await expect(page.locator("#say")).to_be_focused()
    return page


async def test_the_repository_is_shown_above(
    working: Heed, browser: Browser, complaints: list[str], folder: Path
) -> None:
    """As it stands; a change of a file with a conflict says so before its diff."""
    page = await begun(working, browser, complaints)
    await expect(page.locator(".place")).to_have_count(0)
    make_repository(folder)
    make_conflict(folder)
    await page.reload()
    await expect(page.locator(".place")).to_have_text("work · main, 1 changed file, 1 conflict")
    await expect(page.locator(".place")).to_have_attribute("title", "a.txt")
    will_call(working, "write", path="a.txt", content="both\n")
    await say(page, "Write it.")
    await expect(page.locator(".decision .diff")).to_contain_text("a.txt has 1 unresolved conflict of git")
    working.engine.calls = []
    await page.locator(".decision").get_by_role("button", name="Yes", exact=True).click()
    await expect(page.locator(".card.done .small")).to_contain_text("none left")
    assert complaints == []


async def test_where_the_operator_allows_none_there_is_no_list(
    start_heed: StartHeed, browser: Browser, complaints: list[str]
) -> None:
    """The page is as it was."""
    heed = await start_heed(agent={"allow": ()})
    page = await open_page(heed, browser, complaints)
    await expect(page.locator("#works")).to_be_hidden()
    assert complaints == []
