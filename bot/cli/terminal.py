"""The terminal chat: streams answers, takes commands, shows what was learned and where.

Talks to a running heed over HTTP only, in `heed run` as in `heed chat`. Never prints model output as markup. A lesson
that takes its time is watched beside the prompt: its lines stand above it, and never within an answer.
"""

import asyncio
import re
import uuid
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing, suppress
from typing import Any, Protocol

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.formatted_text import HTML
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.patch_stdout import patch_stdout
from rich.console import Console
from rich.text import Text

from bot.cli.client import HeedClient, Json
from bot.cli.wrapping import WordWrap
from bot.commands.person import COMMANDS
from bot.commands.texts import (
    CANCELLED,
    DID_WORSE,
    HOW_FAR,
    NOTED,
    QUEUED,
    SAYS_SO,
    UNCALIBRATED,
    learned_line,
    sentence,
    takes_the_place_of,
)
from bot.core.rewrites import ideal_text
from bot.errors import ServerError, ServerRefused

HINT = "Ask something, then say what was wrong with the answer: /feedback too long. /help lists more, Ctrl-D ends."
AGAIN = "Press Ctrl-C once more, or Ctrl-D, to end."
STOPPED = "stopped"
REPEATED = "ended by heed: it only repeated itself"
NAME = ("heed  ", "bold magenta")
UP, DOWN = "spring_green3", "orange_red1"
STRONG, WEAK = 1.0, 0.15  # nats from which a token is shown bold, or at all
LEARNING = "learning …"
PATIENCE_S = 3.0  # how long a lesson may take before it goes on beside the chat
SPECIAL = re.compile(r"<\|.*\|>|</?\w+>")  # the mark that ends an answer


class LineSource(Protocol):
    """A source of the person's lines: a prompt_toolkit session, or a pipe."""

    is_typed: bool  # a person waits for the prompt

    async def read(self) -> str:
        """Return the next line. Raises EOFError at the end, KeyboardInterrupt on Ctrl-C on an empty line."""


class PromptLines:
    """Lines typed at a terminal, with history and completion of commands."""

    is_typed = True

    def __init__(self, **options: Any) -> None:
        words = [f"/{name}" for name in COMMANDS]
        completer = WordCompleter(words, sentence=True)
        self._session: PromptSession[str] = PromptSession(
            history=InMemoryHistory(),
            completer=completer,
            complete_while_typing=False,
            reserve_space_for_menu=4,
            key_bindings=_keys(),
            **options,
        )

    async def read(self) -> str:
        """Return the next line."""
        with patch_stdout(raw=True):
            return await self._session.prompt_async(HTML("<b><ansicyan>you</ansicyan></b>   "), handle_sigint=False)


def _keys() -> KeyBindings:
    """Return what keys do here and not elsewhere: Ctrl-C clears a line, and ends only an empty one."""
    keys = KeyBindings()

    @keys.add("c-c")
    def _clear_or_interrupt(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt, style="class:aborting")

    return keys


class PipedLines:
    """Lines of a pipe or a file, so that `heed chat` works in scripts: each waits for the one before it."""

    is_typed = False

    def __init__(self, readline: Callable[[], str]) -> None:
        self._readline = readline

    async def read(self) -> str:
        """Return the next line."""
        line = await asyncio.to_thread(self._readline)
        if not line:
            raise EOFError
        return line.rstrip("\n")


class TerminalChat:
    """One person's chat in a terminal."""

    def __init__(self, client: HeedClient, console: Console, lines: LineSource, parting_question: str = "") -> None:
        """`parting_question` is asked before the chat ends; empty: it ends without one."""
        self._parting_question = parting_question
        self._client = client
        self._console = console
        self._lines = lines
        self._last_id: str | None = None
        self._written_id = ""  # of the answer being written, once its first piece is there
        self._stopping: asyncio.Task[bool] | None = None  # telling heed to end it
        self._working: asyncio.Task[None] | None = None
        self._is_free = asyncio.Event()  # no line is being worked on
        self._is_free.set()
        self._watches: set[asyncio.Task[None]] = set()  # one for each lesson that goes on beside the chat

    def interrupt(self) -> bool:
        """End the answer being written with what there is, or other work (Ctrl-C); False where none is."""
        if self._working is None:
            return False
        if self._written_id and self._stopping is None:
            self._stopping = asyncio.create_task(self._stop(self._written_id), name="terminal stop")
            return True
        return self._working.cancel()

    async def _stop(self, completion_id: str) -> bool:
        """Tell heed to end an answer; break it off here if heed cannot be told."""
        try:
            return await self._client.stop(completion_id)
        except ServerError:
            return self._working is not None and self._working.cancel()

    async def run(self) -> None:
        """Talk until the person ends it."""
        self._console.print(Text(HINT, style="dim"))
        try:
            await self._lines_until_end()
        finally:
            for watch in self._watches:  # the lessons themselves go on
                watch.cancel()
            await asyncio.gather(*self._watches, return_exceptions=True)

    async def _lines_until_end(self) -> None:
        was_interrupted = False
        while True:
            try:
                line = (await self._lines.read()).strip()
            except KeyboardInterrupt:
                line = "/quit" if was_interrupted else ""
                was_interrupted = not was_interrupted
                if was_interrupted:
                    self._say(AGAIN, "dim")
                    continue
            except EOFError:
                line = "/quit"
            else:
                was_interrupted = False
            if line in ("/quit", "/exit"):
                if await self._may_end():
                    return
            elif line:
                await self._guarded(self._line(line))

    async def _may_end(self) -> bool:
        """Return True if there is no question before the end, or its answer is yes; Ctrl-D is yes, too."""
        if not self._parting_question:
            return True
        self._say(self._parting_question, "yellow")
        try:
            return (await self._lines.read()).strip().lower() in ("y", "yes")
        except EOFError:
            return True
        except KeyboardInterrupt:
            return False

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        self._working = asyncio.create_task(work, name="terminal line")
        self._is_free.clear()
        done, _ = await asyncio.wait([self._working])
        self._working = None
        self._is_free.set()
        task = done.pop()
        if task.cancelled():
            self._say(f"\n{STOPPED}", "dim")
            return
        error = task.exception()
        if isinstance(error, ServerRefused):
            self._say(str(error), "red")
        elif error is not None:
            raise error

    async def _line(self, line: str) -> None:
        rewritten = ideal_text(line) if self._last_id else None
        if rewritten:
            await self._teach({"kind": "ideal", "text": rewritten})
        elif line.startswith("/feedback ") and self._last_id:
            await self._teach({"kind": "correction", "text": line.removeprefix("/feedback ")})
        elif line == "/retry" and self._last_id:
            await self._show_answer(self._client.regenerate(self._last_id))
        elif line.startswith("/"):
            await self._command(line)
        else:
            await self._show_answer(self._client.ask(line))

    async def _show_answer(self, chunks: AsyncGenerator[Json, None]) -> None:
        self._name()
        is_repeating = False
        wrap = WordWrap(self._console.width, len(NAME[0])) if self._console.is_terminal else None
        try:
            async with aclosing(chunks):
                async for chunk in chunks:
                    if "waiting" in chunk:
                        self._say(chunk["waiting"], "dim")
                        self._name()
                        continue
                    self._written_id = chunk["id"]
                    for choice in chunk["choices"]:
                        piece = choice["delta"].get("content", "")
                        self._raw(wrap.feed(piece) if wrap else piece)
                    if "heed" in chunk:  # the last piece: from here on it is stored
                        self._last_id = chunk["id"]
                        is_repeating = chunk["heed"].get("finish_reason") == "repetition"
            self._raw((wrap.rest() if wrap else "") + "\n")
            if self._stopping is not None or is_repeating:
                self._say(REPEATED if is_repeating else STOPPED, "dim")
        finally:
            self._written_id, self._stopping = "", None

    async def _teach(self, body: Json) -> None:
        whole, key = {"completion_id": self._last_id, "retry": True, **body}, uuid.uuid4().hex
        with self._console.status(LEARNING):
            given = await self._client.feedback({**whole, "wait": PATIENCE_S}, key)
        if given["status"] != "queued":
            self._show_lesson(given, body["text"])
        elif self._lines.is_typed:
            watch = asyncio.create_task(self._watch(given, whole, key), name="terminal lesson")
            self._watches.add(watch)
            watch.add_done_callback(self._watches.discard)
        else:
            await self._waited_for(given, whole, key)

    async def _waited_for(self, given: Json, whole: Json, key: str) -> None:
        """Watch a lesson before the next line is taken; Ctrl-C cancels it."""
        try:
            await self._watch(given, whole, key)
        except asyncio.CancelledError:
            self._say((await self._client.cancel_lesson(given["feedback_id"]))["text"], "yellow")
            raise

    async def _watch(self, given: Json, whole: Json, key: str) -> None:
        """Show each phase of a lesson that goes on, and its end; answer again unless the chat went on meanwhile."""
        remark = " (/cancel stops it)" if self._lines.is_typed else " (Ctrl-C cancels)"
        try:
            async for progress in self._client.phases(given["feedback_id"]):
                await self._quiet()
                self._say(progress + remark, "dim")
                remark = ""
            is_newest = self._last_id == whole["completion_id"]
            given = await self._client.feedback({**whole, "wait": PATIENCE_S, "retry": is_newest}, key)
            await self._quiet()
        except ServerError as error:
            await self._quiet()
            self._say(str(error), "red")
            return
        if given["status"] == "cancelled":  # by the same person, who was told so
            return
        newest = self._last_id
        self._show_lesson(given, whole["text"])
        if newest != whole["completion_id"]:  # said while heed answered again
            self._last_id = newest

    async def _quiet(self) -> None:
        """Return once no other line is being worked on: an answer that is written is not broken by a lesson's line."""
        while asyncio.current_task() is not self._working and not self._is_free.is_set():
            await self._is_free.wait()

    async def _command(self, line: str) -> None:
        with self._console.status("…"):
            said = await self._client.command(line, self._last_id if line.startswith("/feedback") else None)
        if said["feedback"]:
            self._show_lesson(said["feedback"], line.partition(" ")[2])
        else:
            self._say(said["text"])
        for file in said["files"]:
            self._say(f"To save {file['name']}, give the same command on the web page.", "dim")
        if said["command"] in ("reset", "forget"):
            self._last_id = None
        if said["answer"] and not said["feedback"]:
            self._show_retry(said["answer"])

    def _show_lesson(self, given: Json, said: str) -> None:
        update = given.get("update") or {}
        if update.get("heat"):
            self._console.print(heat_map(update["heat"]))
        self._say(lesson_line(given), "bold green" if given["status"] == "learned" else "yellow")
        if given.get("note") not in (None, said):
            self._say(f"Kept in mind: {given['note']}", "dim")
        if given.get("retry"):
            self._show_retry(given["retry"])

    def _show_retry(self, answer: Json) -> None:
        self._last_id = answer["completion_id"]
        self._console.print(Text.assemble(NAME, answer["text"]), soft_wrap=not self._console.is_terminal)

    def _name(self) -> None:
        self._console.print(Text(*NAME), end="")

    def _raw(self, text: str) -> None:
        self._console.print(Text(text), end="", soft_wrap=True)
        with suppress(ValueError):
            self._console.file.flush()

    def _say(self, text: str, style: str = "") -> None:
        self._console.print(Text(text, style=style))


def lesson_line(given: Json) -> str:
    """Return one line about what became of feedback, with the commands that change it."""
    said = _outcome_line(given)
    if given.get("is_unsure"):
        return f"{said} {HOW_FAR} {SAYS_SO}"
    if given["status"] == "learned":
        return f"{said} /undo takes it back; /justthis or /fromnowon says how far it reaches."
    return said


def _outcome_line(given: Json) -> str:
    if given["status"] == "learned":
        seconds = (given.get("update") or {}).get("duration_ms", 0.0) / 1000
        model = UNCALIBRATED if given.get("uncalibrated") else ""
        return learned_line(given["adapter_version"], seconds, model, given.get("replaced", []))
    if given["status"] == "rejected":
        return f"Not learned. {sentence(given.get('reason', '')) or DID_WORSE}"
    words = {"queued": QUEUED, "kept": NOTED, "cancelled": CANCELLED}
    said = given.get("ask") or given.get("reason") or words[given["status"]]
    return f"{said} {takes_the_place_of(given.get('replaced', []))}".rstrip()


def heat_map(heat: list[list[Any]]) -> Text:
    """Return the corrected answer, coloured: green where the correction wants more of it, orange where less."""
    shown = Text("      ")
    for token, weight in heat:
        style = "dim"
        if abs(weight) >= WEAK:
            style = f"{'bold ' if abs(weight) >= STRONG else ''}{UP if weight > 0 else DOWN}"
        shown.append(" (end)" if SPECIAL.fullmatch(token) else token, style=style)
    return shown
