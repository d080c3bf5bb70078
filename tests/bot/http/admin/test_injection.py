"""A hundred hostile strings in every stored text that the dashboards show, in a real headless Chromium.

Each page is compared with the same page over harmless strings: it has as many elements, and nothing ran or was blocked.
"""

from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page

from bot.access import admin_password
from bot.http.admin import paging
from storage.conversations import chats, completions
from storage.database import Session
from storage.learning import feedback, notes, updates, versions
from storage.people import people
from storage.reports import eval_runs
from storage.tables import Completion, Feedback, Note, UpdateRun
from tests.bot.conftest import Heed, StartHeed, heeds
from tests.bot.http.web.browsing import PATIENCE_MS, browser, start_heed

__all__ = ["browser", "start_heed"]

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

PAYLOADS = (
    "<script>window.owned=1</script>", "<img src=x onerror=window.owned=1>", "<svg onload=window.owned=1>",
    "<iframe srcdoc='<script>parent.owned=1</script>'></iframe>", "<style>*{display:none}</style>",
    "<a href=javascript:window.owned=1>x</a>", "<form action=//evil.example><input name=csrf></form>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>", "<base href=//evil.example/>", "{{ 7 * 7 }}{% raw %}",
)  # fmt: skip
WRAPPERS = (
    "{}", "\">{}", "'>{}", "</title>{}", "</p></td></table></main>{}", "</script>{}", "</svg>{}", "<!--{}-->",
    "' onmouseover=window.owned=1 autofocus onfocus=window.owned=1 x='{}", "\u202e&lt;{}&#x3c;\u2028",
)  # fmt: skip
HOSTILE = [wrapper.replace("{}", payload) for payload in PAYLOADS for wrapper in WRAPPERS]
HARMLESS = [f"harmless {number:03}" for number in range(len(HOSTILE))]
WATCH = """
window.reports = [];
addEventListener("securitypolicyviolation", (event) => window.reports.push(event.violatedDirective + event.blockedURI));
"""


def fill(s: Session, texts: list[str]) -> dict[str, str]:
    """Store everything a dashboard shows, with `texts` in every text. Return the pages to visit."""
    everything = " ".join(texts)
    for number, text in enumerate(texts):
        someone = people.resolve(s, "http", text, display_name=text, is_learning=True)
        updates.start(s, UpdateRun(user_id=someone.id, kind=text, status=text))
        if number < len(texts) - 1:
            completions.add(s, answer(someone.id, text, adapter_version=0))
    talk = chats.resolve(s, someone.id, texts[0], texts[1])
    for text in texts:
        completions.add(s, answer(someone.id, text, chat_id=talk.id))
    before = completions.add(s, answer(someone.id, everything))
    given = Feedback(user_id=someone.id, completion_id=before.id, kind="correction", text=everything, value=texts[0])
    stored, _ = feedback.add(s, given)
    run = updates.start(s, UpdateRun(user_id=someone.id, feedback_id=stored.id, notes=texts))
    version = versions.allocate(s, someone.id, 0, everything, stored.id, run.id)
    versions.accept(s, someone.id, version.number, "0" * 64, 1)
    names = dict.fromkeys(texts, 1.0)
    gate = {"checks": dict.fromkeys(texts, True), "figures": dict.fromkeys(texts, everything)}
    figures: dict[str, Any] = {"phases_ms": names, "gate": gate, "heat": [[text, 1.0] for text in texts]}
    curves = {text: [1.0, 2.0] for text in texts}
    updates.finish(s, run.id, version=1, status=texts[2], error=everything, curves=curves, **figures)
    completions.add(s, answer(someone.id, "other", retry_of=before.id, adapter_version=1))
    for text in texts:
        notes.add(s, Note(user_id=someone.id, text=text))
    drawn = [{"name": t, "unit": t, "target": t, "median": names, "worst": names} for t in texts[:3]]
    summary = {"figures": drawn, "command": texts[0], "model": texts[1], "finished_at": texts[2]}
    runs = [eval_runs.add(s, {"only": texts, **dict.fromkeys(texts, texts)}, summary) for _ in range(2)]
    return {
        "overview": "/admin",
        "conversations": "/admin/conversations",
        "conversation": f"/admin/conversations/{someone.id}/{talk.id}",
        "updates": "/admin/updates",
        "update": f"/admin/updates/{run.id}",
        "people": "/admin/people",
        "person": f"/admin/people/{someone.id}",
        "diff": f"/admin/people/{someone.id}/diff?first=0&second=1",
        "evals": "/admin/evals",
        "eval": f"/admin/evals/{runs[0].id}",
        "engine": "/admin/engine?minutes=5",
    }


def answer(user_id: str, text: str, **fields: Any) -> Completion:
    """Return an answer with a text in each of its fields."""
    said: dict[str, Any] = {"messages": [{"role": "user", "content": text}], "notes": [text], "finish_reason": text}
    empty: dict[str, Any] = {"prompt_token_ids": [], "completion_token_ids": [], "logprobs": [], "sampling": {}}
    return Completion(user_id=user_id, text=text, **said, **empty, **fields)


async def signed_in(heed: Heed, browser: Browser) -> Page:
    """Return a signed-in page that records what it reports."""
    await heed.client.start_server()
    password = await admin_password.another(heed.core.database)
    page = await browser.new_page()
    page.set_default_timeout(PATIENCE_MS)
    await page.add_init_script(WATCH)
    await page.goto(str(heed.client.make_url("/admin")))
    await page.fill("#password", password)
    await page.press("#password", "Enter")
    await page.wait_for_url("**/admin")
    return page


async def looked_at(page: Page, heed: Heed, path: str) -> tuple[int, str]:
    """Return the number of a page's elements, and its text; nothing may have run or been blocked."""
    await page.goto(str(heed.client.make_url("/")).rstrip("/") + path)
    found = await page.evaluate(
        "[document.querySelectorAll('*').length, document.documentElement.textContent, window.owned, window.reports]"
    )
    assert (found[2], found[3]) == (None, []), path
    return found[0], found[1]


async def test_whatever_is_stored_stays_text(
    start_heed: StartHeed, browser: Browser, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Hostile strings add no element and run no script, and each of them is shown as text."""
    monkeypatch.setattr(paging, "ROWS", 500)
    async with heeds(tmp_path / "other") as start_other:
        seen: list[dict[str, tuple[int, str]]] = []
        for start, texts in ((start_other, HARMLESS), (start_heed, HOSTILE)):
            heed = await start()
            pages = await heed.core.database.write(lambda s, texts=texts: fill(s, texts))  # type: ignore[misc]
            page = await signed_in(heed, browser)
            seen.append({name: await looked_at(page, heed, path) for name, path in pages.items()})
        harmless, hostile = seen
        assert {name: found[0] for name, found in hostile.items()} == {
            name: found[0] for name, found in harmless.items()
        }
        for name in ("conversations", "conversation", "updates", "update", "people", "person", "diff", "eval"):
            assert [text for text in HOSTILE if text not in hostile[name][1]] == [], name
        await let_loose(page)


async def let_loose(page: Page) -> None:
    """Put the same strings in as markup: the control, which shows that the check would see them."""
    before = await page.evaluate("document.querySelectorAll('*').length")
    await page.evaluate("(texts) => { document.getElementById('main').innerHTML = texts.join(''); }", HOSTILE[:30])
    assert await page.evaluate("document.querySelectorAll('*').length") != before
    await page.wait_for_function("window.reports.length > 0")


async def test_a_page_works_in_a_browser(start_heed: StartHeed, browser: Browser) -> None:
    """Signing in, a form, live refresh and signing out work under the policy without complaints."""
    heed = await start_heed()
    page = await signed_in(heed, browser)
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    await page.wait_for_selector("text=0 today")
    given = await heed.ask("bees", user="ana")
    await page.wait_for_selector("text=1 today")
    await heed.correct(given["id"], "too long", user="ana")
    await page.click("text=People")
    await page.click("text=ana")
    await page.click("text=Make v0 active")
    await page.wait_for_selector("text=Make v1 active")
    ana = await heed.core.database.read(lambda s: people.find(s, "http", "ana"))
    assert ana is not None
    assert ana.active_version == 0
    await page.click("text=Sign out")
    await page.wait_for_url("**/admin/login")
    assert complaints == []
