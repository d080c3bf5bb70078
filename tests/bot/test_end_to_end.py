"""The whole heed with the real engine: over HTTP, in a browser, on Telegram and Discord, and through a restart."""

import asyncio
import contextlib
import json
import re
import shutil
from collections.abc import AsyncIterator
from concurrent.futures import Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import psutil
import pytest
from playwright.async_api import async_playwright, expect

from storage.files import atomic
from tests.bot.cli.test_main import heed_command
from tests.bot.end_to_end import Chat, DiscordChat, TelegramChat
from tests.bot.http.web.browsing import ARGUMENTS
from tests.live_heed import LiveHeed
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.engine]

PATIENCE_MS = 1000 * PATIENCE_S


class Person:
    """Somebody who talks to heed."""

    def __init__(self, session: aiohttp.ClientSession, name: str) -> None:
        self._session = session
        self.name = name

    async def call(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """One call; its JSON. Fails the test on an error."""
        async with self._session.request(method, path, json=body) as response:
            data: dict[str, Any] = await response.json()
            assert response.status == 200, data
            return data

    async def ask(self, text: str, **fields: Any) -> tuple[str, str]:
        """The id and text of an answer."""
        body = {"messages": [{"role": "user", "content": text}], "user": self.name, **fields}
        answer = await self.call("POST", "/v1/chat/completions", body)
        return answer["id"], answer["choices"][0]["message"]["content"]

    async def correct(self, completion_id: str, text: str) -> dict[str, Any]:
        """One correction, waited for, with the answer given again."""
        body = {"completion_id": completion_id, "user": self.name, "kind": "correction", "text": text, "retry": True}
        return await self.call("POST", "/v1/feedback", body)

    async def tokens(self, text: str) -> list[tuple[str, float]]:
        """The tokens of an answer that only the weights shape, with their log-probabilities."""
        body = {"messages": [{"role": "user", "content": text}], "user": self.name, "temperature": 0, "logprobs": True}
        answer = await self.call("POST", "/v1/chat/completions", {**body, "heed": {"notes": "off"}})
        return [(entry["token"], entry["logprob"]) for entry in answer["choices"][0]["logprobs"]["content"]]

    async def settled_tokens(self, text: str) -> list[tuple[str, float]]:
        """The same once nothing is in the batch beside it, which moves log-probabilities in the last digits."""
        answers = [await self.tokens(text) for _ in range(3)]
        async with asyncio.timeout(PATIENCE_S):
            while any(answer != answers[-1] for answer in answers[-3:]):
                answers.append(await self.tokens(text))
        return answers[-1]

    async def tokens_again(self, text: str, answer: list[tuple[str, float]]) -> list[tuple[str, float]]:
        """The answer's tokens, as often as it takes to see the same bits: what runs beside it ends some time."""
        found = await self.tokens(text)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                while found != answer and [token for token, _ in found] == [token for token, _ in answer]:
                    found = await self.tokens(text)
        return found

    async def probed_export(self) -> Any:
        """Everything heed holds about them, once no probe is under way that would move a note."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                found = await self.call("GET", f"/v1/users/{self.name}/export")
                if all(note["state"] != "learning" for note in found["notes"]):
                    return found
                await asyncio.sleep(0.2)

    async def ask_again_and_again(self, text: str) -> None:
        """Until cancelled."""
        while True:
            await self.ask(text)


@pytest.fixture
async def session(live_heed: LiveHeed) -> AsyncIterator[aiohttp.ClientSession]:
    """Connections to the running heed."""
    async with connected(live_heed) as session:
        yield session


def connected(heed: LiveHeed) -> aiohttp.ClientSession:
    """A client of it."""
    return aiohttp.ClientSession(heed.url, timeout=aiohttp.ClientTimeout(total=PATIENCE_S))


QUESTION = "Tell me about the koala."
UNSEEN = "Describe the panda."


def test_the_start_shows_progress(live_heed: LiveHeed) -> None:
    """At least one line about what is being done, and then one with the address to open."""
    is_ready = [bool(re.search(r"ready in [\d.]+ s: open http://127\.0\.0\.1:\d+$", line)) for line in live_heed.lines]
    assert is_ready.index(True) >= 1


async def test_one_correction_changes_the_next_answers(session: aiohttp.ClientSession) -> None:
    """After "too long" the same question and an unseen one are answered shorter, by weights alone, too."""
    ana = Person(session, "ana")
    completion_id, before = await ana.ask(QUESTION)
    _, unseen_before = await ana.ask(UNSEEN)
    learned = await ana.correct(completion_id, "too long, shorter please")
    assert (learned["status"], learned["adapter_version"]) == ("learned", 1), learned
    assert learned["update"]["divergence_after"] < learned["update"]["divergence_before"]
    assert any(weight < 0 for _, weight in learned["update"]["heat"])
    assert len(learned["retry"]["text"]) < len(before)
    for options in ({}, {"heed": {"notes": "off"}}):
        _, unseen = await ana.ask(UNSEEN, **options)
        assert len(unseen) < len(unseen_before), options


async def test_nobody_else_is_changed(session: aiohttp.ClientSession) -> None:
    """Bob's answers are word for word the same before and after Ana's correction, and the base model's too."""
    ana, bob = Person(session, "ana2"), Person(session, "bob2")
    _, before = await bob.ask(QUESTION)
    completion_id, _ = await ana.ask(QUESTION)
    await ana.correct(completion_id, "no emoji, please")
    assert (await bob.ask(QUESTION))[1] == before
    assert (await ana.ask(QUESTION, model="heed-base", heed={"notes": "off"}))[1] == before


async def test_undo_brings_the_old_answer_back(session: aiohttp.ClientSession) -> None:
    """Version and note go together: the answer is word for word what it was."""
    person = Person(session, "undoer")
    completion_id, before = await person.ask(QUESTION)
    await person.correct(completion_id, "too long")
    undone = await person.call("POST", "/v1/users/undoer/undo", {})
    assert undone["adapter_version"] == 0
    assert (await person.ask(QUESTION))[1] == before
    assert (await person.call("GET", "/v1/users/undoer/notes"))["data"] == []


async def test_a_note_is_followed_at_once(session: aiohttp.ClientSession) -> None:
    """/note is in the prompt of the very next answer, without any training."""
    person = Person(session, "noter")
    _, before = await person.ask(QUESTION)
    await person.call("POST", "/v1/feedback", {"kind": "note", "text": "shorter answers please", "user": "noter"})
    _, after = await person.ask(QUESTION)
    assert len(after) < len(before)
    assert (await person.call("GET", "/v1/users/noter/adapters"))["active_version"] == 0


async def test_a_stream_is_the_answer(session: aiohttp.ClientSession) -> None:
    """The pieces of a stream make up what the same call answers without streaming."""
    person = Person(session, "streamer")
    _, whole = await person.ask(QUESTION)
    body = {"messages": [{"role": "user", "content": QUESTION}], "user": "streamer", "stream": True}
    async with session.post("/v1/chat/completions", json=body) as response:
        events = [line.removeprefix("data: ") for line in (await response.text()).split("\n\n") if line]
    chunks = [json.loads(event) for event in events[:-1]]
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks) == whole


async def test_the_same_seed_gives_the_same_choices(session: aiohttp.ClientSession) -> None:
    """n, seed and temperature do what OpenAI's do; log-probabilities come with every token."""
    body = {
        "messages": [{"role": "user", "content": QUESTION}], "user": "sampler",
        "n": 2, "seed": 7, "temperature": 1.0, "max_tokens": 12, "logprobs": True, "top_logprobs": 2,
    }  # fmt: skip
    person = Person(session, "sampler")
    first, second = [await person.call("POST", "/v1/chat/completions", body) for _ in range(2)]
    texts = [[choice["message"]["content"] for choice in answer["choices"]] for answer in (first, second)]
    assert texts[0] == texts[1]
    entries = first["choices"][0]["logprobs"]["content"]
    assert all(entry["logprob"] <= 0 and len(entry["top_logprobs"]) == 2 for entry in entries)


@pytest.mark.browser
async def test_the_page_learns(live_heed: LiveHeed, chromium_path: str) -> None:
    """Ask, correct, learned, heat map, new answer, reload, undo: in a browser, with the real model."""
    complaints: list[str] = []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium_path, args=ARGUMENTS)
        page = await browser.new_page()
        page.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        await page.goto(live_heed.url)
        await page.fill("#say", QUESTION)
        await page.press("#say", "Enter")
        await page.get_by_role("button", name="Correct").click()
        await page.get_by_role("button", name="too long").click()
        await expect(page.locator(".outcome .line")).to_have_text(re.compile(r"^Learned: v1 in \d+\.\d s$"))
        await expect(page.locator(".heat-text .down").first).to_be_visible()
        await expect(page.locator(".answer")).to_have_count(2)
        long, short = [await text.text_content() or "" for text in await page.locator(".answer .text").all()]
        assert len(short) < len(long)
        await page.reload()
        await expect(page.locator(".heat-text .down").first).to_be_visible()
        await page.locator(".undo").click()
        await expect(page.locator(".outcome .line")).to_have_text("Undone. v0 answers again.")
        await browser.close()
    assert complaints == []


EMOJI = re.compile("[\U0001f300-\U0001faff]")


async def is_corrected(chat: Chat) -> None:
    """In one conversation: consent, an answer, a correction by reply, its notice, what changed, undo, and the old."""
    greeting = await chat.sees("May I learn", "learn:yes", after=await chat.say("hello"))
    await chat.press(greeting, "learn:yes")
    await chat.sees("learning is on", after=greeting.id)
    before = await chat.ask(QUESTION)
    notice, again = await chat.correct(before, "no emoji please")
    assert re.fullmatch(r"Learned: v1 in \d+\.\d s\.", notice.text)
    assert EMOJI.sub("", before.text).split() == again.text.split() != before.text.split()
    assert not EMOJI.search((await chat.go_on(UNSEEN)).text)
    await chat.press(notice, "undo")
    await chat.sees("Undone. The untrained model answers again.", after=notice.id)
    assert (await chat.go_on(QUESTION)).text == before.text
    assert EMOJI.search((await chat.go_on(UNSEEN)).text)


@pytest.fixture(scope="module")
def stories(one_heed: LiveHeed) -> dict[str, Future[None]]:
    """The same on every platform, at the same time: platforms pace what heed says.

    Both have ended before any other test goes on: one of them puts heed back to a backup, which knows nothing of what
    was said after it.
    """
    one_heed.start()
    chats = {"telegram": TelegramChat(one_heed.telegram), "discord": DiscordChat(one_heed.discord)}
    told = {platform: one_heed.begin(is_corrected(chat)) for platform, chat in chats.items()}
    wait(told.values())
    return told


@pytest.mark.parametrize("platform", ["telegram", "discord"])
def test_a_platform_learns(stories: dict[str, Future[None]], platform: str) -> None:
    """Corrected by a reply, taken back by a button: with the real library, the real engine and the pocket model."""
    stories[platform].result()


@pytest.fixture
async def returner(session: aiohttp.ClientSession, request: pytest.FixtureRequest) -> Person:
    """Somebody who has taught one lesson; another one for each test."""
    person = Person(session, request.node.name)
    completion_id, _ = await person.ask(QUESTION)
    assert (await person.correct(completion_id, "no emoji, please"))["adapter_version"] == 1
    return person


@dataclass(frozen=True)
class Held:
    """All that heed holds about somebody, an answer of theirs, and one that nothing was said of yet."""

    rows: Any
    answer: list[tuple[str, float]]
    later_id: str

    @classmethod
    async def of(cls, person: Person) -> "Held":
        """What is there now."""
        later_id, _ = await person.ask(UNSEEN)
        return cls(await person.probed_export(), await person.settled_tokens(UNSEEN), later_id)

    async def is_there(self, heed: LiveHeed, name: str) -> None:
        """The same rows, the same answer bit for bit, and what was said before teaches on."""
        async with connected(heed) as session:
            person = Person(session, name)
            found = await person.call("GET", f"/v1/users/{name}/export")
            for table in ("completions", "feedback", "notes", "adapter_versions"):
                assert [row for row in self.rows[table] if row not in found[table]] == [], table
            assert await person.tokens_again(UNSEEN, self.answer) == self.answer
            assert (await person.correct(self.later_id, "too long"))["adapter_version"] == 2


async def test_a_restart_keeps_everything(live_heed: LiveHeed, returner: Person) -> None:
    """After a clean end, also of a cluster."""
    held = await Held.of(returner)
    await ends_cleanly(live_heed)
    await asyncio.to_thread(live_heed.start)
    await held.is_there(live_heed, returner.name)


async def test_a_restart_from_a_backup_keeps_everything(live_heed: LiveHeed, returner: Person, tmp_path: Path) -> None:
    """Written while heed answers; after a clean end restored into an empty place, where heed starts."""
    if live_heed.server.program != ("bot", "run"):
        pytest.skip("a cluster's database is backed up by the tools of its server")
    data_dir, moved_away = live_heed.server.folder / "data", tmp_path / "before"
    held = await Held.of(returner)
    asking = asyncio.create_task(returner.ask_again_and_again(QUESTION))
    written = await heed_command("backup", "backup.zip", cwd=tmp_path, HEED_DATA_DIR=str(data_dir))
    asking.cancel()
    await ends_cleanly(live_heed)
    await asyncio.to_thread(shutil.move, data_dir, moved_away)
    restored = await heed_command("restore", "backup.zip", cwd=tmp_path, HEED_DATA_DIR=str(data_dir))
    assert (written.returncode, restored.returncode) == (0, 0), written.stderr + restored.stderr
    for row in held.rows["adapter_versions"]:
        assert atomic.read_directory(data_dir / row["path"]) == atomic.read_directory(moved_away / row["path"])
    await asyncio.to_thread(live_heed.start)
    await held.is_there(live_heed, returner.name)


async def ends_cleanly(heed: LiveHeed) -> None:
    """SIGTERM ends heed and its children."""
    family = heed.family()
    assert await asyncio.to_thread(heed.end) == 0
    _, alive = await asyncio.to_thread(psutil.wait_procs, family, 10)
    assert alive == []
