"""The chat page as a person sees and uses it, in a headless Chromium."""

import asyncio
import re
import zipfile
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, Route, expect

from bot.config import HttpSettings
from bot.events import Author
from bot.http.api import health
from bot.http.openai import wait_sign
from bot.http.web.markdown import TAGS
from storage.learning import better_answers
from storage.tables import BetterAnswer
from tests.bot import fake_engine
from tests.bot.conftest import Heed, StartHeed
from tests.bot.http.web.browsing import PATIENCE_MS, browser, complaints, open_page, start_heed
from tests.bot.http.web.injections import INJECTIONS
from tests.patience import PATIENCE_S, until

__all__ = ["browser", "complaints", "start_heed"]

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(loop_scope="module")
async def heed(start_heed: StartHeed) -> Heed:
    """Return a heed with default settings."""
    return await start_heed()


@pytest_asyncio.fixture(loop_scope="module")
async def page(heed: Heed, browser: Browser, complaints: list[str]) -> AsyncIterator[Page]:
    """Yield the open page; in the end the console must be without complaints."""
    page = await open_page(heed, browser, complaints)
    yield page
    assert complaints == []


async def open_loading_page(heed: Heed, browser: Browser) -> tuple[Page, asyncio.Event]:
    """Open a page whose conversation is asked for, and comes once the event is set."""
    await heed.client.start_server()
    page = await browser.new_page()
    asked, answered = asyncio.Event(), asyncio.Event()

    async def slowly(route: Route) -> None:
        asked.set()
        await answered.wait()
        await route.continue_()

    await page.route("**/history?*", slowly)
    await page.goto(str(heed.client.make_url("/")))
    await asked.wait()
    return page, answered


async def ask(page: Page, text: str) -> None:
    """Send a message and wait for the whole answer."""
    known = await page.locator(".answer").count()
    await page.fill("#say", text)
    await page.press("#say", "Enter")
    await expect(page.locator(".answer")).to_have_count(known + 1)
    await expect(page.locator(".answer").last.locator(".tools button").first).to_be_visible()


async def correct(page: Page, text: str) -> None:
    """Correct the last answer and wait for the lesson."""
    known = await page.locator(".lesson").count()
    await page.locator(".answer").last.get_by_role("button", name="Correct").click()
    await page.fill(".teach input", text)
    await page.press(".teach input", "Enter")
    await expect(page.locator(".lesson")).to_have_count(known + 1)


async def test_an_answer_is_written_while_it_comes(heed: Heed, page: Page) -> None:
    """The text grows on the page before the answer is whole."""
    heed.engine.hold_at = 4
    await page.fill("#say", "bees")
    await page.press("#say", "Enter")
    await expect(page.locator(".answer.writing .text")).to_have_text(re.compile(r"^You asked"))
    assert "know more?" not in await page.locator(".answer .text").inner_text()
    heed.engine.may_go_on.set()
    await expect(page.locator(".answer .text")).to_have_text(re.compile(r"know more\?$"))
    await expect(page.locator(".answer .version")).to_have_text("v0")


async def test_the_adapter_is_made_ready_while_a_message_is_written(heed: Heed, page: Page) -> None:
    """With its first letter, once for each message."""
    await ask(page, "bees")
    for number in (1, 2):
        await page.locator("#say").press_sequentially("wasps")
        await until(lambda: len(heed.engine.prepared) == number)  # noqa: B023
        await page.press("#say", "Enter")
        await expect(page.locator(".answer .version")).to_have_count(number + 1)
    assert len(heed.engine.prepared) == 2


async def test_a_correction_is_learned_and_shown(page: Page) -> None:
    """A lesson shows version and time, heat map, new answer, note, and version list."""
    await ask(page, "bees")
    await correct(page, "too long, no emoji")
    await expect(page.locator(".outcome .line")).to_have_text("Learned: v1 in 1.2 s")
    await expect(page.locator(".answer.before .heat-text .down").first).to_be_visible()
    assert "fine subject" in " ".join(await page.locator(".heat-text .down").all_inner_texts()).replace("  ", " ")
    await expect(page.locator(".heat-text .up")).to_have_text("end")
    await expect(page.locator(".answer").last.locator(".text")).to_have_text(
        "You asked about bees. Would you like to know more?"
    )
    await expect(page.locator(".answer").last.locator(".version")).to_have_text("v1")
    await expect(page.locator("#notes .note-text")).to_have_text("too long, no emoji")
    await expect(page.locator("#notes .badge")).to_have_text("in the weights")
    await expect(page.locator("#saved")).to_have_text(
        "0 of 1 note in the prompt now, 0 tokens. 4 prompt tokens saved per answer."
    )
    await expect(page.locator("#versions .active b")).to_have_text("v1")
    await expect(page.locator("#spoken")).to_have_text("Learned: v1 in 1.2 s")
    await page.get_by_role("button", name="What changed").click()
    await expect(page.locator(".answer.before .text")).to_contain_text("I could go on")


async def test_undo_takes_it_back(page: Page) -> None:
    """Only the last lesson can be undone, and the version before it becomes active."""
    await ask(page, "bees")
    await correct(page, "too long")
    await correct(page, "no emoji")
    await expect(page.locator(".undo:visible")).to_have_count(1)
    await page.locator(".undo:visible").click()
    await expect(page.locator(".lesson.undone .line")).to_have_text("Undone. v1 answers again.")
    await expect(page.locator("#versions .active b")).to_have_text("v1")
    await expect(page.locator("#notes .note-text")).to_have_text("too long")
    await expect(page.locator(".undo:visible")).to_have_count(1)


async def test_a_lesson_that_made_it_worse_is_taken_back(page: Page) -> None:
    """After two bad answers the page tells that the version was undone, and versions and notes agree."""
    await ask(page, "bees")
    await correct(page, "no emoji")
    await page.locator(".answer").last.get_by_role("button", name="Bad answer").click()
    await expect(page.locator(".teach")).to_be_visible()
    await ask(page, "wasps")
    await page.locator(".answer").last.get_by_role("button", name="Bad answer").click()
    await expect(page.locator(".lesson .line").last).to_contain_text(
        "The last lesson (v1) is undone, because 2 of its first answers"
    )
    await expect(page.locator("#versions .active b")).to_have_text("v0")
    await expect(page.locator("#notes .note-text")).to_have_count(0)


async def test_a_reload_keeps_everything(page: Page) -> None:
    """After a reload the conversation, heat map, lesson and versions are shown again."""
    await ask(page, "bees")
    await correct(page, "too long")
    await ask(page, "wasps")
    before = await page.locator(".answer .text").all_inner_texts()
    await page.reload()
    await expect(page.locator(".turn")).to_have_count(2)
    await expect(page.locator(".answer .text")).to_have_text(before)
    await expect(page.locator(".outcome .line")).to_have_text("Learned: v1 in 1.2 s")
    await expect(page.locator(".heat-text .down").first).to_be_visible()
    await expect(page.locator(".undo")).to_be_visible()


async def test_what_a_teacher_wrote_stands_beside_the_answer(heed: Heed, page: Page) -> None:
    """A better answer is shown as text, with its author and if it was learned from."""
    await ask(page, "bees")
    completion_id = await page.locator(".answer").get_attribute("data-completion")
    assert completion_id
    user_id = await heed.core.gateway.person(Author("http", "local"))
    better = BetterAnswer(
        user_id=user_id,
        completion_id=completion_id,
        text="<b>Be",
        source="base model",
        notes=[],
        state="accepted",
    )
    await heed.core.database.write(lambda s: better_answers.add(s, better))
    await page.reload()
    await expect(page.locator(".better .said-why")).to_have_text(
        "A better answer, written by base model. heed has not learned from it yet."
    )
    await expect(page.locator(".better .text")).to_have_text("<b>Be")


async def test_each_button_under_an_answer(heed: Heed, page: Page) -> None:
    """The buttons approve, regenerate, rewrite and reject an answer."""
    await ask(page, "bees")
    await page.get_by_role("button", name="Good answer").click()
    await expect(page.get_by_role("button", name="Good answer")).to_have_attribute("aria-pressed", "true")
    await expect(page.locator("#spoken")).to_have_text("Noted as a good answer.")
    await page.get_by_role("button", name="Answer again").click()
    await expect(page.locator(".answer")).to_have_count(2)
    await expect(page.locator(".answer.before")).to_have_count(1)
    await page.locator(".answer").last.get_by_role("button", name="Rewrite").click()
    await page.fill(".teach textarea", "Buzz.")
    await page.get_by_role("button", name="Teach it").click()
    await expect(page.locator(".answer").last.locator(".text")).to_have_text("Buzz.")
    await page.locator(".answer").last.get_by_role("button", name="Bad answer").click()
    await page.get_by_role("button", name="too short").click()
    await expect(page.locator(".lesson .said-why").last).to_have_text("You said: too short")
    _, export = await heed.get("/v1/users/local/export")
    kinds = [row["kind"] for row in export["feedback"]]
    assert kinds == ["approval", "ideal", "reaction", "correction"]


async def test_people_and_notes_and_settings(heed: Heed, page: Page) -> None:
    """People can be switched, notes added and deleted, versions changed, and learning turned off."""
    await ask(page, "bees")
    await correct(page, "too long")
    await page.get_by_role("button", name="Use v0").click()
    await expect(page.locator("#versions .active b")).to_have_text("v0")
    await page.fill("#note", "call me Ana")
    await page.press("#note", "Enter")
    await expect(page.locator("#notes .note-text").last).to_have_text("call me Ana")
    await page.get_by_role("button", name="Delete the note: call me Ana").click()
    await expect(page.locator("#notes .note-text")).to_have_count(1)
    await expect(page.locator("#notes .note-text")).to_have_text("too long")
    await page.get_by_role("switch").click()
    await expect(page.locator("#banner")).to_be_hidden()
    await page.fill("#who", "bob")
    await page.press("#who", "Enter")
    await expect(page.locator("#welcome")).to_be_visible()
    await expect(page.get_by_role("switch")).to_be_checked()
    assert (await heed.get("/v1/users/local"))[1]["is_learning"] is False
    await page.reload()
    await expect(page.locator("#who")).to_have_value("bob")


async def test_the_panel_says_which_notes_are_in_the_prompt(heed: Heed, page: Page) -> None:
    """Of more notes than a prompt takes, the oldest have no room now; the line above counts notes and tokens."""
    for number in range(40):
        await heed.post("/v1/feedback", {"kind": "note", "text": f"wish number {number}"})
    await page.reload()
    await expect(page.locator("#saved")).to_have_text("16 of 40 notes in the prompt now, 48 tokens.")
    await expect(page.locator("#notes .badge").nth(23)).to_have_text("no room in the prompt now")
    await expect(page.locator("#notes .badge").nth(24)).to_have_text("in the prompt")


async def test_a_new_conversation_and_forgetting(heed: Heed, page: Page) -> None:
    """A new conversation keeps lessons; forgetting asks first and erases everything."""
    await ask(page, "bees")
    await correct(page, "too long")
    await page.get_by_role("button", name="New conversation").click()
    await expect(page.locator("#welcome")).to_be_visible()
    await expect(page.locator("#notes .note-text")).to_have_text("too long")
    await page.get_by_role("button", name="Forget me").click()
    await page.get_by_role("button", name="Keep everything").click()
    await expect(page.locator("#notes .note-text")).to_have_text("too long")
    await page.get_by_role("button", name="Forget me").click()
    await page.get_by_role("button", name="Erase").click()
    await expect(page.locator("#notes li")).to_have_count(0)
    assert (await heed.get("/v1/users/local/export"))[1]["completions"] == []


def chat_names(page: Page) -> Locator:
    """The titles in the list of conversations."""
    return page.locator(".chat-name")


async def test_conversations_stay_and_are_found_again(page: Page) -> None:
    """A new one keeps the old one; both are listed by their first question, searched, renamed, opened and deleted."""
    await ask(page, "bees")
    await page.get_by_role("button", name="New conversation").click()
    await expect(page.locator("#welcome")).to_be_visible()
    await ask(page, "wasps")
    await expect(chat_names(page)).to_have_text(["wasps", "bees"])
    await chat_names(page).last.click()
    await expect(page.locator(".said")).to_have_text("bees")
    await page.reload()
    await expect(page.locator(".said")).to_have_text("bees")
    await page.fill("#search", "about wasps")
    await expect(chat_names(page)).to_have_text(["wasps"])
    await page.fill("#search", "ants")
    await expect(page.locator("#no-chats")).to_have_text("No conversation has these words.")
    await page.fill("#search", "")
    await page.get_by_role("button", name="Rename: bees").click()
    await page.get_by_label("The title of this conversation").fill("All about bees")
    await page.keyboard.press("Enter")
    await expect(chat_names(page)).to_have_text(["wasps", "All about bees"])
    await page.get_by_role("button", name="Delete: All about bees").click()
    await page.get_by_role("button", name="Delete", exact=True).click()
    await expect(chat_names(page)).to_have_text(["wasps"])
    await expect(page.locator(".said")).to_have_text("wasps")


async def test_two_tabs_show_the_same_and_follow_each_other(heed: Heed, page: Page) -> None:
    """A second tab shows the same person and conversation, and what is said in the first; a name is one tab's own."""
    await page.fill("#who", "ana")
    await page.press("#who", "Enter")
    await ask(page, "bees")
    second = await page.context.new_page()
    await second.goto(str(heed.client.make_url("/")))
    await expect(second.locator("#who")).to_have_value("ana")
    await expect(second.locator(".said")).to_have_text("bees")
    await ask(page, "wasps")
    await expect(second.locator(".said")).to_have_text(["bees", "wasps"])
    await second.fill("#who", "bob")
    await second.press("#who", "Enter")
    await expect(second.locator("#welcome")).to_be_visible()
    await page.reload()
    await expect(page.locator("#who")).to_have_value("ana")
    await expect(page.locator(".said")).to_have_text(["bees", "wasps"])


async def test_commands_work_in_the_message_box(page: Page) -> None:
    """Commands in the message box show their text or their lesson."""
    await page.fill("#say", "/help")
    await page.press("#say", "Enter")
    await expect(page.locator(".command")).to_contain_text("/undo")
    await ask(page, "bees")
    await page.fill("#say", "/feedback too long")
    await page.press("#say", "Enter")
    await expect(page.locator(".outcome .line")).to_have_text("Learned: v1 in 1.2 s")


async def test_an_export_can_be_saved(page: Page) -> None:
    """/export shows a link that saves the zip file."""
    await ask(page, "Tell me about bees.")
    await page.fill("#say", "/export")
    await page.press("#say", "Enter")
    async with page.expect_download() as saving:
        await page.get_by_role("link", name="heed-export.zip").click()
    saved = await (await saving.value).path()
    assert zipfile.is_zipfile(saved)


async def test_an_answer_that_waits_says_how_many_are_before_it(
    heed: Heed, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words stand where its buttons will be, and go with the first piece."""
    monkeypatch.setattr(wait_sign, "SHOWN_AFTER_S", 0.0)
    monkeypatch.setattr(heed.core.gateway._places, "_settings", HttpSettings(max_streams=1))
    async with heed.core.gateway._places.place("someone", 1.0):
        await page.fill("#say", "bees")
        await page.press("#say", "Enter")
        await expect(page.locator(".answer.writing .tools")).to_have_text("Waiting, 0 before you")
    await expect(page.locator(".answer .text")).to_have_text(re.compile(r"know more\?$"))
    await expect(page.locator(".answer .tools")).not_to_contain_text("Waiting")


async def test_stop_ends_the_answer(heed: Heed, page: Page) -> None:
    """The send button ends an answer, also in the engine; it stays as stopped, with what was written."""
    heed.engine.hold_at = 4
    await page.fill("#say", "bees")
    await page.press("#say", "Enter")
    await expect(page.locator(".answer .text")).to_have_text(re.compile("^You"))
    await page.get_by_role("button", name="Stop").click()
    await expect(page.locator(".answer .stopped")).to_have_text("Stopped here")
    await expect(page.get_by_role("button", name="Send")).to_be_visible()
    _, history = await heed.get("/v1/users/local/history?chat=web")
    written = history["data"][0][0]["text"].strip()
    assert written.startswith("You")
    assert "know more?" not in written
    await expect(page.locator(".answer .text")).to_have_text(written)
    await page.reload()
    await expect(page.locator(".answer .stopped")).to_have_text("Stopped here")
    await expect(page.locator(".answer .text")).to_have_text(written)
    await expect(page.get_by_role("button", name="Correct")).to_be_visible()


async def test_an_answer_that_repeats_itself_says_why_it_ends(heed: Heed, page: Page) -> None:
    """Under its text, also when the page is opened anew."""
    heed.engine.ends_as = "repetition"
    await page.fill("#say", "bees")
    await page.press("#say", "Enter")
    await expect(page.locator(".answer .stopped")).to_have_text("Ended by heed: it only repeated itself")
    await page.reload()
    await expect(page.locator(".answer .stopped")).to_have_text("Ended by heed: it only repeated itself")


async def test_everything_works_by_keyboard_on_a_phone(heed: Heed, browser: Browser, complaints: list[str]) -> None:
    """At 390 pixels nothing is cut off, and the panel opens and closes by keyboard."""
    page = await open_page(heed, browser, complaints, width=390)
    await ask(page, "bees " + "b" * 200)
    assert await page.evaluate("document.documentElement.scrollWidth") == 390
    await expect(page.locator("#panel")).to_be_hidden()
    await page.focus("#panel-open")
    await page.keyboard.press("Enter")
    await expect(page.locator("#panel")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.locator("#panel")).to_be_hidden()
    await expect(page.locator("#panel-open")).to_be_focused()
    await page.get_by_role("button", name="Correct").focus()
    await page.keyboard.press("Enter")
    await expect(page.locator(".teach input")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(page.locator(".teach")).to_have_count(0)
    assert complaints == []


async def test_what_people_write_stays_text(page: Page) -> None:
    """Markup in questions, answers, corrections and notes adds no element and runs nothing."""
    nasty = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    await ask(page, nasty)
    await correct(page, f"too long {nasty}")
    await page.fill("#note", nasty)
    await page.press("#note", "Enter")
    await expect(page.locator("#notes .note-text").last).to_have_text(nasty)
    assert await page.locator(".log img, .log script, .panel img, .panel script").count() == 0
    assert await page.title() == "heed"


MARKDOWN = """# Bees

They *buzz*, as [this page](https://bees.example/x) and https://bees.example/y say:

| kind | legs |
|:-----|-----:|
| bee  | 6    |

1. one
   - nested

> quoted, with $a_1 * b_1$

```python
def buzz(): return 1
```
Done."""


async def test_markdown_is_formatted_while_it_comes(heed: Heed, page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    """A heading is one before the answer is whole; in the end all is there, as after a reload."""
    monkeypatch.setattr(fake_engine, "compose", lambda *_: MARKDOWN)
    heed.engine.hold_at = -1
    await page.fill("#say", "bees")
    await page.press("#say", "Enter")
    await expect(page.locator(".answer.writing .text h3")).to_have_text("Bees")
    await expect(page.locator(".answer.writing .text")).not_to_contain_text("Done.")
    heed.engine.may_go_on.set()
    for _ in ("as it came", "reloaded"):
        await expect(page.locator(".answer .text > p").last).to_have_text("Done.")
        await expect(page.locator(".answer .text a")).to_have_count(2)
        await expect(page.locator(".answer .text td.right")).to_have_text("6")
        await expect(page.locator(".answer .text ol ul li")).to_have_text("nested")
        await expect(page.locator(".answer .text blockquote .math")).to_have_text("$a_1 * b_1$")
        await expect(page.locator(".answer .text pre .k").first).to_have_text("def")
        await expect(page.locator(".answer .text h3")).to_have_count(1)
        await page.reload()


async def test_code_is_copied(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    """The button of a code block copies the code and nothing else, and says so."""
    monkeypatch.setattr(fake_engine, "compose", lambda *_: MARKDOWN)
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await ask(page, "bees")
    await page.get_by_role("button", name="Copy the code").click()
    await expect(page.locator("#spoken")).to_have_text("Copied.")
    assert await page.evaluate("navigator.clipboard.readText()") == "def buzz(): return 1\n"


async def test_no_injected_text_runs_or_leaves_its_place(page: Page) -> None:
    """A hundred hostile texts, shown as answers are: no script, no request, no element but of the list."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: asked.append(dialog.message))
    found = await page.evaluate(
        """async (texts) => {
          const { GrowingText } = await import("/static/text.js");
          const shown = texts.map((text) => {
            const node = document.createElement("div");
            node.className = "text";
            document.getElementById("log").append(node);
            const growing = new GrowingText(node);
            growing.set(text.slice(0, text.length / 2));
            growing.set(text);
            return growing;
          });
          for (const growing of shown) await growing.finish();
          const all = shown.flatMap(({ node }) => [...node.querySelectorAll("*")]);
          return {
            tags: [...new Set(all.map((node) => node.localName))],
            attributes: [...new Set(all.flatMap((node) => node.getAttributeNames()))],
            addresses: all.filter((node) => node.href).map((node) => String(node.href)),
            numShown: shown.filter(({ node }) => node.childNodes.length).length,
          };
        }""",
        list(INJECTIONS),
    )
    drawn_here = {"button", "svg", "use"}  # the copy buttons
    assert set(found["tags"]) <= TAGS | drawn_here
    page_made = {"type", "aria-label", "aria-hidden", "tabindex"}
    assert set(found["attributes"]) <= {"class", "href", "title", "target", "rel", "start"} | page_made
    assert [url for url in found["addresses"] if not re.match(r"https?://|mailto:|\[object", url)] == []
    assert found["numShown"] >= len(INJECTIONS) - 1
    assert [url for url in asked if not re.match(rf"{page.url}(v1/|api/|readyz|static/text.js)", url)] == []
    assert await page.title() == "heed"


async def test_troubles_are_told_kindly(
    heed: Heed, browser: Browser, complaints: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refusal shows its message; without a heed the page says so and recovers by itself."""
    page = await open_page(heed, browser, complaints)
    await page.fill("#say", "x" * 16_001)
    await page.press("#say", "Enter")
    await expect(page.locator("#banner")).to_contain_text("16001 characters")
    await expect(page.locator("#say")).to_have_value("x" * 16_001)
    await expect(page.locator(".turn")).to_have_count(0)

    async def gone(route: Route) -> None:
        await route.abort()

    await page.route("**/v1/**", gone)
    await page.route("**/readyz", gone)
    await page.fill("#say", "bees")
    await page.press("#say", "Enter")
    await expect(page.locator("#banner")).to_have_text("heed does not answer. Is it still running?")
    await expect(page.locator("#state")).to_have_text("Waiting for heed")
    await page.unroute_all()
    await expect(page.locator("#banner")).to_be_hidden()
    await expect(page.locator("#state")).to_have_text("pocket")


async def test_what_leaves_the_machine_is_named(start_heed: StartHeed, browser: Browser, complaints: list[str]) -> None:
    """With an endpoint for better answers the page does not say that everything stays."""
    heed = await start_heed(curriculum={"url": "https://teacher.example/v1", "model": "m"})
    page = await open_page(heed, browser, complaints)
    await expect(page.locator("#outside")).to_contain_text("go to teacher.example")
    assert complaints == []


async def test_while_the_model_loads_the_page_waits(heed: Heed, browser: Browser, complaints: list[str]) -> None:
    """The page shows that the model loads, and starts by itself when heed is ready."""
    await heed.client.start_server()
    heed.engine.is_ready = False
    page = await browser.new_page()
    await page.goto(str(heed.client.make_url("/")))
    await expect(page.locator("#state")).to_have_text("Loading the model")
    heed.engine.is_ready = True
    await expect(page.locator("#state")).to_have_text("pocket")
    await expect(page.locator("#welcome")).to_be_visible()


async def test_a_part_that_is_down_locks_no_one_out(
    heed: Heed, browser: Browser, complaints: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the disk nearly full the page answers, and names the part and what is wrong with it."""
    monkeypatch.setattr(health, "disk_state", lambda _: "low: 300 MiB free")
    page = await open_page(heed, browser, complaints)
    await expect(page.locator("#parts")).to_have_text(
        "heed answers, but a part of it does not work. disk: low (300 MiB free)."
    )
    await ask(page, "bees")
    await expect(page.locator(".answer .text")).to_contain_text("You asked about bees")
    assert complaints == []


async def test_what_is_sent_before_the_page_is_loaded_stays(
    heed: Heed, browser: Browser, complaints: list[str]
) -> None:
    """A message sent before the conversation is loaded is sent after it."""
    page, answered = await open_loading_page(heed, browser)
    await page.fill("#say", "bees")
    await page.press("#say", "Enter")
    await expect(page.locator("#say")).to_have_value("bees")
    answered.set()
    await expect(page.locator(".answer .text")).to_contain_text("You asked about bees")
    await expect(page.locator(".answer")).to_have_count(1)
    assert complaints == []


async def test_loading_takes_the_focus_from_no_field(heed: Heed, browser: Browser) -> None:
    """The message box has the focus from the beginning; whoever has gone to another field stays there."""
    page, answered = await open_loading_page(heed, browser)
    await expect(page.locator("#say")).to_be_focused()
    await page.fill("#who", "an")
    answered.set()
    await expect(page.locator("#versions li")).not_to_have_count(0)
    await page.wait_for_load_state("networkidle")
    await page.keyboard.type("a")
    await expect(page.locator("#who")).to_have_value("ana")


async def test_a_shared_heed_asks_for_the_key(start_heed: StartHeed, browser: Browser) -> None:
    """The page asks for a key, says so if it is wrong, and shows whose it is, also before it erases."""
    heed = await start_heed(http={"api_keys": {"ana": "a" * 20}})
    await heed.client.start_server()
    page = await browser.new_page()
    await page.goto(str(heed.client.make_url("/")))
    await expect(page.locator("#key-words")).to_contain_text("Several people share this heed.")
    await page.fill("#key", "b" * 20)
    await page.get_by_role("button", name="Continue").click()
    await expect(page.locator("#key-words")).to_have_text("heed does not know this key. Check it, and paste it again.")
    await page.fill("#key", "a" * 20)
    await page.get_by_role("button", name="Continue").click()
    await expect(page.locator("#welcome")).to_be_visible()
    await expect(page.locator("#who")).to_have_value("ana")
    await page.get_by_role("button", name="Forget me").click()
    await expect(page.locator("#forget-name")).to_have_text("ana")
    await page.get_by_role("button", name="Keep everything").click()
    await ask(page, "bees")
    await expect(page.locator(".answer .text")).to_contain_text("You asked about bees")


async def begin_lesson(heed: Heed, page: Page) -> None:
    """Correct the last answer; the lesson goes on until the test ends it."""
    heed.engine.learn_delay_s = 2 * PATIENCE_S
    await ask(page, "bees")
    await page.locator(".answer").last.get_by_role("button", name="Correct").click()
    await page.fill(".teach input", "too long")
    await page.press(".teach input", "Enter")


async def test_a_long_lesson_shows_how_far_it_is(heed: Heed, page: Page) -> None:
    """After three seconds there is a bar with the phase, which grows; then the lesson and the new answer, once each."""
    is_seen = asyncio.Event()

    async def answered_late(route: Route) -> None:
        response = await route.fetch(timeout=PATIENCE_MS)
        await is_seen.wait()
        await route.fulfill(response=response)

    await page.route("**/v1/feedback", answered_late, times=1)
    await begin_lesson(heed, page)
    await expect(page.locator(".learning .what")).to_have_text("Learning: too long")
    await expect(page.locator(".learning progress")).to_have_count(0)
    is_seen.set()
    heed.engine.lesson_share = 0.2
    await expect(page.locator(".learning .what")).to_have_text(re.compile(r", 20 %$"))
    heed.engine.lesson_share = 0.75
    await expect(page.locator(".learning .what")).to_have_text("Learning: training, 75 %")
    assert await page.locator(".learning progress").evaluate("bar => bar.value") == 0.75
    heed.engine.finish_lessons()
    await expect(page.locator(".outcome .line")).to_have_text("Learned: v1 in 1.2 s")
    await expect(page.locator(".learning")).to_have_count(0)
    await expect(page.locator(".answer")).to_have_count(2)
    assert heed.engine.num_learned == 1


async def test_a_long_lesson_is_cancelled_and_keeps_nobody_waiting(heed: Heed, page: Page) -> None:
    """Another question is answered while the lesson runs; Cancel ends it, and nothing is learned."""
    await begin_lesson(heed, page)
    await expect(page.get_by_role("progressbar", name="How far the lesson is")).to_be_visible()
    await ask(page, "ants")
    await page.get_by_role("button", name="Cancel").click()
    await expect(page.locator(".lesson.cancelled .line")).to_have_text("Cancelled. Nothing was learned from it.")
    await expect(page.locator(".answer")).to_have_count(2)
    await expect(page.locator("#notes .note-text")).to_have_count(0)
    assert heed.engine.num_learned == 0


async def test_how_far_a_lesson_reaches_is_chosen_on_the_page(heed: Heed, page: Page) -> None:
    """The other choice takes the lesson back, teaches it again and answers again."""
    await ask(page, "bees")
    await correct(page, "too long")
    await page.get_by_role("button", name="From now on").click()
    await expect(page.locator("#spoken")).to_have_text("Noted. That is how it was learned.")
    await page.reload()
    await expect(page.get_by_role("button", name="From now on")).to_have_attribute("aria-pressed", "true")
    await page.get_by_role("button", name="Just this answer").click()
    await expect(page.locator(".lesson")).to_have_count(2)
    await expect(page.locator(".outcome .line").last).to_have_text("Learned: v2 in 1.2 s")
    await expect(page.locator(".answer")).to_have_count(3)
    await expect(page.locator(".lesson.undone")).to_have_count(1)
    assert heed.engine.num_learned == 2


async def test_the_page_asks_where_heed_is_unsure(heed: Heed, page: Page) -> None:
    """Nothing is taught until the person has chosen; what they have chosen is not asked again after a reload."""
    await ask(page, "bees")
    await correct(page, "unsure, too long")
    await expect(page.locator(".outcome .line")).to_have_text("Noted. Only this answer, or from now on?")
    assert heed.engine.num_learned == 0
    await page.get_by_role("button", name="From now on").click()
    await expect(page.locator(".outcome .line").last).to_have_text("Learned: v1 in 1.2 s")
    await page.reload()
    await expect(page.locator(".outcome .line")).to_have_text(["Noted.", "Learned: v1 in 1.2 s"])
    await expect(page.get_by_role("button", name="From now on")).to_have_count(1)
