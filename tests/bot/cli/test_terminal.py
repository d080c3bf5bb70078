"""bot.cli.terminal: the chat in a terminal, over HTTP."""

import asyncio
import io
import os
import re
import select
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pytest
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from rich.console import Console

from bot.cli import client as clients
from bot.cli import terminal
from bot.cli.client import HeedClient
from bot.cli.terminal import PipedLines, PromptLines, TerminalChat, heat_map, lesson_line
from bot.config import HttpSettings
from bot.http.openai import wait_sign
from tests.bot.conftest import Heed
from tests.patience import PATIENCE_S, until

ROOT = Path(__file__).resolve().parents[3]
ENDLESS_S = 2 * PATIENCE_S  # a lesson that ends when the test says so


@pytest.fixture
async def client(heed: Heed) -> AsyncIterator[HeedClient]:
    """Ana's client of a running heed."""
    await heed.client.start_server()
    async with HeedClient(str(heed.client.make_url("/")), "ana") as client:
        yield client


def screen(*, has_colour: bool = False) -> Console:
    """A console that remembers what was printed."""
    return Console(file=io.StringIO(), width=200, force_terminal=has_colour, color_system="256" if has_colour else None)


def shown(console: Console) -> str:
    """What was printed so far."""
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


async def talk(client: HeedClient, *lines: str, console: Console | None = None) -> str:
    """A whole session of lines; what was printed."""
    console = console or screen()
    given = iter([*(f"{line}\n" for line in lines), ""])
    await TerminalChat(client, console, PipedLines(lambda: next(given))).run()
    return shown(console)


async def test_an_answer_is_shown(client: HeedClient) -> None:
    """A line in, heed's words out."""
    assert "heed  You asked about bees." in await talk(client, "bees")


async def test_a_file_is_named_with_the_way_to_save_it(client: HeedClient) -> None:
    """The terminal cannot save an export; it says where that works."""
    assert "To save heed-export.zip, give the same command on the web page." in await talk(client, "bees", "/export")


async def test_a_correction_is_shown_whole(client: HeedClient) -> None:
    """What changed, the version with its time and the way back, and the answer given again."""
    printed = await talk(client, "bees", "/feedback too long")
    assert "Learned: v1 in 1.2 s." in printed
    assert printed.count("heed  You asked about bees.") == 2


async def test_the_heat_map_has_colours(client: HeedClient) -> None:
    """Pushed down is orange, pushed up is green."""
    printed = await talk(client, "bees", "/feedback too long", console=screen(has_colour=True))
    assert "38;5;202m It" in printed
    assert "38;5;41m (end)" in printed


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lesson says soon how far it is."""
    monkeypatch.setattr(terminal, "PATIENCE_S", 0.02)
    monkeypatch.setattr(clients, "LOOK_EVERY_S", 0.02)


@pytest.mark.usefixtures("hurried")
async def test_a_long_lesson_says_how_far_it_is(client: HeedClient, heed: Heed) -> None:
    """One line for each phase, then the lesson and its new answer, learned once. A script's next line waits for it."""
    heed.engine.learn_delay_s, heed.engine.lesson_share = ENDLESS_S, 0.2
    console = screen()
    talking = asyncio.create_task(talk(client, "bees", "/feedback too long", "ants", console=console))
    await until(lambda: "writing examples, " in shown(console))
    heed.engine.lesson_share = 0.6
    await until(lambda: "training, " in shown(console))
    heed.engine.finish_lessons()
    printed = await asyncio.wait_for(talking, PATIENCE_S)
    lines = ("writing examples, ", "training, ", "Learned: v1 in 1.2 s.", "You asked about ants.")
    places = [printed.index(line) for line in lines]
    assert places == sorted(places)
    assert printed.count("Learning: training, ") == 1
    assert (printed.count("heed  You asked about bees."), heed.engine.num_learned) == (2, 1)


class TypedLines:
    """Lines that a person types one after the other."""

    is_typed = True

    def __init__(self) -> None:
        self.typed: asyncio.Queue[str] = asyncio.Queue()

    async def read(self) -> str:
        """Return the next line; an empty one is Ctrl-D."""
        line = await self.typed.get()
        if not line:
            raise EOFError
        return line


class Typist:
    """A person at a terminal: types lines and reads the screen."""

    def __init__(self, client: HeedClient) -> None:
        self.console = screen()
        self._lines = TypedLines()
        self._chat = TerminalChat(client, self.console, self._lines)
        self._running = asyncio.create_task(self._chat.run())

    async def type(self, line: str, words: str) -> None:
        """Type a line and wait until the words are there."""
        self._lines.typed.put_nowait(line)
        await until(lambda: words in shown(self.console))

    async def until_free(self) -> None:
        """Wait until the chat works on no line, so that an answer is whole."""
        await until(self._chat._is_free.is_set)

    async def end(self) -> str:
        """Press Ctrl-D; the whole screen."""
        self._lines.typed.put_nowait("")
        await asyncio.wait_for(self._running, PATIENCE_S)
        return shown(self.console)


@pytest.mark.usefixtures("hurried")
async def test_a_person_goes_on_while_a_long_lesson_runs(client: HeedClient, heed: Heed) -> None:
    """The next message is answered at once; the lesson's end is a line of its own, and no old answer is given again."""
    heed.engine.learn_delay_s = ENDLESS_S
    typist = Typist(client)
    await typist.type("bees", "You asked about bees.")
    await typist.type("/feedback too long", "(/cancel stops it)")
    await typist.type("ants", "You asked about ants.")
    await typist.until_free()
    assert "Learned" not in shown(typist.console)
    heed.engine.finish_lessons()
    await until(lambda: "Learned: v1 in 1.2 s." in shown(typist.console))
    printed = await typist.end()
    assert printed.count("heed  You asked about bees.") == 1
    assert printed.count("(/cancel stops it)") == 1


@pytest.mark.usefixtures("hurried")
async def test_a_lesson_answers_again_if_nothing_else_was_asked(client: HeedClient, heed: Heed) -> None:
    """The next correction is then about that answer."""
    heed.engine.learn_delay_s = ENDLESS_S
    typist = Typist(client)
    await typist.type("bees", "You asked about bees.")
    await typist.type("/feedback too long", "(/cancel stops it)")
    heed.engine.finish_lessons()
    await until(lambda: "Learned: v1" in shown(typist.console))
    await until(lambda: shown(typist.console).count("heed  You asked about bees.") == 2)
    heed.engine.learn_delay_s = 0.0
    await typist.type("/feedback no emoji", "Learned: v2")
    await typist.end()
    _, history = await heed.get("/v1/users/ana/history?chat=terminal")
    assert len(history["data"][0]) == 3


@pytest.mark.usefixtures("hurried")
async def test_an_answer_is_not_broken_by_a_lessons_lines(client: HeedClient, heed: Heed) -> None:
    """They wait until it is written."""
    heed.engine.learn_delay_s = ENDLESS_S
    typist = Typist(client)
    await typist.type("bees", "You asked about bees.")
    await typist.type("/feedback too long", "(/cancel stops it)")
    heed.engine.token_delay_s = 0.05
    await typist.type("ants", "about ants.")
    heed.engine.finish_lessons()
    await until(lambda: "Learned: v1" in shown(typist.console))
    printed = await typist.end()
    (answer,) = [line for line in printed.splitlines() if "ants" in line]
    assert answer.endswith("know more?")


@pytest.mark.usefixtures("hurried")
async def test_a_lesson_beside_the_chat_can_be_cancelled(client: HeedClient, heed: Heed) -> None:
    """The command says so once."""
    heed.engine.learn_delay_s = ENDLESS_S
    typist = Typist(client)
    await typist.type("bees", "You asked about bees.")
    await typist.type("/feedback too long", "(/cancel stops it)")
    await typist.type("/cancel", "Cancelled.")
    await typist.type("ants", "You asked about ants.")
    assert (await typist.end()).count("Cancelled.") == 1
    assert heed.engine.num_learned == 0


@pytest.mark.usefixtures("hurried")
async def test_leaving_the_chat_leaves_the_lesson(client: HeedClient, heed: Heed) -> None:
    """Ctrl-D ends the chat at once, and heed goes on learning."""
    heed.engine.learn_delay_s = ENDLESS_S
    typist = Typist(client)
    await typist.type("bees", "You asked about bees.")
    await typist.type("/feedback too long", "(/cancel stops it)")
    assert "Learned" not in await typist.end()
    heed.engine.finish_lessons()
    await until(lambda: heed.engine.num_learned == 1)


@pytest.mark.usefixtures("hurried")
async def test_a_heed_that_is_gone_ends_the_watch(client: HeedClient, heed: Heed) -> None:
    """A line says so; the prompt stays."""
    heed.engine.learn_delay_s = ENDLESS_S
    typist = Typist(client)
    await typist.type("bees", "You asked about bees.")
    await typist.type("/feedback too long", "(/cancel stops it)")
    await heed.client.close()
    await until(lambda: "No heed answers" in shown(typist.console))
    await typist.end()


@pytest.mark.usefixtures("hurried")
async def test_ctrl_c_cancels_a_long_lesson(client: HeedClient, heed: Heed) -> None:
    """Nothing is learned, and the chat goes on."""
    heed.engine.learn_delay_s = ENDLESS_S
    console = screen(has_colour=True)
    lines = PipedLines(iter(["bees\n", "/feedback too long\n", "ants\n", ""]).__next__)
    chat = TerminalChat(client, console, lines)
    running = asyncio.create_task(chat.run())
    await until(lambda: "(Ctrl-C cancels)" in shown(console))
    assert chat.interrupt()
    await asyncio.wait_for(running, PATIENCE_S)
    assert "Cancelled. Nothing was learned from it." in shown(console)
    assert "You asked about ants." in shown(console)
    assert heed.engine.num_learned == 0


async def test_a_second_correction_is_about_the_retried_answer(client: HeedClient, heed: Heed) -> None:
    """The answer given again is the one that the next words are about."""
    await talk(client, "bees", "/feedback too long", "/feedback no emoji")
    _, history = await heed.get("/v1/users/ana/history?chat=terminal")
    assert len(history["data"][0]) == 3


async def test_say_it_like_this_is_a_rewrite(client: HeedClient) -> None:
    """No command is needed for it."""
    assert "heed  Buzz." in await talk(client, "bees", "say it like this: Buzz.")


async def test_before_an_answer_it_is_a_message(client: HeedClient) -> None:
    """With nothing to rewrite, the words are asked."""
    assert "You asked about say it like this" in await talk(client, "say it like this: Buzz.")


async def test_commands_are_done(client: HeedClient) -> None:
    """/note, /notes, /undo, /metrics, /history and /retry show what they did."""
    printed = await talk(
        client, "bees", "/note call me Ana", "/notes", "/retry", "/history", "/metrics", "/feedback too long", "/undo"
    )
    for words in ("Noted", "1. call me Ana", "you   bees", "first token", "Undone"):
        assert words in printed


async def test_a_refusal_does_not_end_the_chat(client: HeedClient) -> None:
    """Its message is shown and the next line is taken."""
    printed = await talk(client, "/dance", "bees")
    assert "/help lists them" in printed
    assert "You asked about bees" in printed


async def test_feedback_before_an_answer_is_explained(client: HeedClient) -> None:
    """There is nothing to correct yet."""
    assert "no answer in this conversation yet" in await talk(client, "/feedback too long")


async def test_quit_ends_it(client: HeedClient) -> None:
    """Nothing after it is read."""
    assert "bees" not in await talk(client, "/quit", "bees")


async def test_ctrl_c_ends_the_answer_only(client: HeedClient, heed: Heed) -> None:
    """An interrupt while an answer is written ends it in the engine, and it is stored so far; the chat goes on."""
    heed.engine.token_delay_s = 0.05
    console = screen()
    chat = TerminalChat(client, console, PipedLines(iter(["bees\n", ""]).__next__))
    running = asyncio.create_task(chat.run())
    await until(lambda: "You" in shown(console))
    assert chat.interrupt()
    await asyncio.wait_for(running, PATIENCE_S)
    assert shown(console).endswith("\nstopped\n")
    assert not chat.interrupt()
    _, history = await heed.get("/v1/users/ana/history?chat=terminal")
    assert [(row["finish_reason"], row["text"][:3]) for row in history["data"][0]] == [("stopped", "You")]


async def test_an_answer_that_repeats_itself_says_why_it_ends(client: HeedClient, heed: Heed) -> None:
    """Behind its text; another answer says nothing of it."""
    heed.engine.ends_as = "repetition"
    assert "know more?\nended by heed: it only repeated itself\n" in await talk(client, "bees")
    heed.engine.ends_as = ""
    assert "repeated itself" not in await talk(client, "ants")


async def test_answers_are_not_markup(client: HeedClient, heed: Heed) -> None:
    """What looks like rich's markup or a link is shown as it is."""
    assert "[red]bees[/red] [link=x]" in await talk(client, "[red]bees[/red] [link=x]")


async def test_lines_come_from_a_prompt() -> None:
    """The prompt_toolkit session hands on what was typed, and ends with Ctrl-D."""
    with create_pipe_input() as keys:
        keys.send_text("bees\n")
        lines = PromptLines(input=keys, output=DummyOutput())
        assert await lines.read() == "bees"
        keys.send_text("\x04")
        with pytest.raises(EOFError):
            await lines.read()


class KeyedLines:
    """Lines with keys between them: an exception is raised instead of a line."""

    is_typed = True

    def __init__(self, *given: str | type[BaseException]) -> None:
        self._given = iter(given)

    async def read(self) -> str:
        """Return the next line, or raise the next key's exception; StopAsyncIteration if one too many is read."""
        line = next(self._given)
        if isinstance(line, str):
            return line
        raise line


@pytest.mark.parametrize(
    "given",
    [
        (KeyboardInterrupt, "bees", KeyboardInterrupt, KeyboardInterrupt),
        (KeyboardInterrupt, KeyboardInterrupt),
        (KeyboardInterrupt, EOFError),
        ("/quit",),
    ],
)
async def test_ctrl_c_ends_an_empty_line_only_twice(
    client: HeedClient, given: tuple[str | type[BaseException], ...]
) -> None:
    """The first one says so; a line between begins anew; Ctrl-D ends at once. Every line given is read."""
    console = screen()
    lines = KeyedLines(*given)
    await TerminalChat(client, console, lines).run()
    assert shown(console).count(terminal.AGAIN) == (given[:1] == (KeyboardInterrupt,)) + given[1:].count("bees")
    with pytest.raises(RuntimeError):
        await lines.read()


@pytest.mark.parametrize("answer", ["no", "", KeyboardInterrupt])
async def test_a_parting_question_is_asked_before_the_end(
    client: HeedClient, answer: str | type[BaseException]
) -> None:
    """Anything but yes goes on; Ctrl-D in answer is yes."""
    console = screen()
    lines = KeyedLines(EOFError, answer, "bees", "/quit", "y")
    await TerminalChat(client, console, lines, "End it for everybody?").run()
    assert shown(console).count("End it for everybody?") == 2
    assert "You asked about bees." in shown(console)
    await TerminalChat(client, console, KeyedLines(EOFError, EOFError), "End it for everybody?").run()


async def test_ctrl_c_clears_a_line_that_is_half_typed() -> None:
    """What was typed before it is gone, and what comes after it is the line; on an empty line it interrupts."""
    with create_pipe_input() as keys:
        lines = PromptLines(input=keys, output=DummyOutput())
        keys.send_text("bee\x03wasps\n")
        assert await lines.read() == "wasps"
        keys.send_text("\x03")
        with pytest.raises(KeyboardInterrupt):
            await lines.read()


async def test_words_are_not_broken_while_they_come(client: HeedClient) -> None:
    """On a narrow terminal a line ends between two words, in the answer as it comes and as it is given again."""
    console = Console(file=io.StringIO(), width=20, force_terminal=True, color_system=None)
    printed = await talk(client, "bees", "/retry", console=console)
    lines = [line.strip() for line in printed.splitlines() if line]
    answer = "heed  You asked about bees. It is a fine subject with many sides, and I could"
    assert answer in " ".join(lines)
    assert all(len(line) <= 20 for line in lines if "/feedback" not in line and "lists" not in line)


async def test_a_wait_is_told_before_the_answer(
    client: HeedClient, heed: Heed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While others are before it a line says how many; the answer begins on a line of its own."""
    monkeypatch.setattr(wait_sign, "SHOWN_AFTER_S", 0.0)
    monkeypatch.setattr(heed.core.gateway._places, "_settings", HttpSettings(max_streams=1))
    console = screen()
    async with heed.core.gateway._places.place("someone", 1.0):
        talking = asyncio.create_task(talk(client, "bees", console=console))
        await until(lambda: "heed  waiting, 0 before you\nheed  " in shown(console))
    assert "before you\nheed  You asked about bees." in await talking


async def test_it_runs_in_a_real_terminal(client: HeedClient) -> None:
    """`heed chat` on a pseudo-terminal: prompt, answer, correction in colour, Ctrl-D."""
    seen = await typed_in_a_terminal(
        client, (("", "Ctrl-D ends"), ("bees\r", "know more?"), ("/feedback too long\r", "Learned: v1"))
    )
    assert "\x1b[1;38;5;202m" in seen


async def test_earlier_output_stays(client: HeedClient, heed: Heed) -> None:
    """What a real terminal has shown is not drawn over: by an answer, by a lesson's lines, or by the prompt."""
    heed.engine.token_delay_s = 0.02
    heed.engine.learn_delay_s = ENDLESS_S
    steps = (
        ("", "Ctrl-D ends"),
        ("bees\r", "know more?"),
        ("/feedback no emoji\r", "/cancel stops it"),
        ("wasps\r", "know more?"),
        ("", "Learned: v1"),
        ("ants\r", "know more?"),
    )
    seen, at = await typed_in_a_terminal(client, steps, {"know more?": heed.engine.finish_lessons}), 0
    shown, stands = Screen(), list[str]()
    for _, words in steps:
        end = seen.index(words, at) + len(words)
        shown.take(seen[at:end])
        at, stands = end, lasting(shown.lines)
        left = iter(Screen().take(seen).lines)
        assert all(any(now.startswith(line) for now in left) for line in stands), stands
    for words in ("about bees", "/cancel stops it", "Learned: v1"):
        assert [line for line in stands if words in line], stands


def lasting(lines: Sequence[str]) -> list[str]:
    """Return the lines of a screen that are for good: neither the prompt that waits nor the sign of work."""
    return [
        line for line in lines if line.strip() and not line.startswith(("you", "⠋")) and terminal.LEARNING not in line
    ]


class Screen:
    """What a terminal shows, its scrolled lines included, as far as rich and prompt_toolkit make use of one."""

    _PART = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|\x1b[^\[]|(.)", re.DOTALL)

    def __init__(self) -> None:
        self.lines = [""]
        self._row = self._column = 0

    def take(self, output: str) -> "Screen":
        """Draw output. Return the screen."""
        for part in self._PART.finditer(output):
            number, kind, char = part[1] or "", part[2], part[3]
            if kind:
                self._obey(kind, int(number) if number.isdigit() else 0)
            elif char:
                self._draw(char)
        return self

    def _obey(self, kind: str, number: int) -> None:
        match kind:
            case "A":
                self._row = max(self._row - max(number, 1), 0)
            case "B":
                self._down(max(number, 1))
            case "C":
                self._column += max(number, 1)
            case "D":
                self._column = max(self._column - max(number, 1), 0)
            case "K":
                self.lines[self._row] = self.lines[self._row][: 0 if number == 2 else self._column]
            case "H":
                self._row = self._column = 0
            case "J" if number == 2:
                self.lines = [""] * len(self.lines)
            case "J":
                self.lines[self._row] = self.lines[self._row][: self._column]
                del self.lines[self._row + 1 :]

    def _draw(self, char: str) -> None:
        if char == "\n":
            self._down(1)
        elif char == "\r":
            self._column = 0
        elif char == "\b":
            self._column = max(self._column - 1, 0)
        elif char.isprintable():
            line = self.lines[self._row].ljust(self._column)
            self.lines[self._row] = line[: self._column] + char + line[self._column + 1 :]
            self._column += 1

    def _down(self, number: int) -> None:
        self._row += number
        self.lines += [""] * (self._row + 1 - len(self.lines))


async def test_a_long_lesson_leaves_a_real_prompt(client: HeedClient, heed: Heed) -> None:
    """Its lines stand above the prompt, where the next message is typed and answered before the lesson ends."""
    heed.engine.learn_delay_s = ENDLESS_S
    seen = await typed_in_a_terminal(
        client,
        (
            ("", "Ctrl-D ends"),
            ("bees\r", "know more?"),
            ("/feedback too long\r", "/cancel stops it"),
            ("ants\r", "about ants."),
            ("", "Learned: v1"),
        ),
        {"about ants.": heed.engine.finish_lessons},
    )
    assert seen.index("about ants.") < seen.index("Learned: v1")


async def typed_in_a_terminal(
    client: HeedClient, typed: Sequence[tuple[str, str]], then: Mapping[str, Callable[[], None]] = MappingProxyType({})
) -> str:
    """Type in a pseudo-terminal, each time until words are on the screen, then Ctrl-D; everything that was shown.

    `then`: what is done once its words are there.
    """
    master, slave = os.openpty()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color"}
    command = ["-m", "bot", "chat", "--user", "ana", "--url", client.url]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, stdin=slave, stdout=slave, stderr=slave, env=environment
    )
    os.close(slave)
    screen = Terminal(master)
    try:
        for keys, words in typed:
            await asyncio.to_thread(screen.type_until, keys, words)
            then.get(words, lambda: None)()
        for _ in range(100):  # what is typed before the prompt is back is lost, as on any terminal
            if process.returncode is not None:
                break
            await asyncio.to_thread(screen.type_until, "\x04", "")
            await asyncio.sleep(0.2)
        assert process.returncode == 0
    finally:
        if process.returncode is None:
            process.kill()
        os.close(master)
    return screen.seen


class Terminal:
    """The other side of a pseudo-terminal."""

    def __init__(self, master: int) -> None:
        self.seen = ""
        self._master = master

    def type_until(self, keys: str, words: str) -> None:
        """Type, then read until the words are on the screen; answers the question where the cursor is."""
        os.write(self._master, keys.encode())
        start, deadline = len(self.seen), time.monotonic() + PATIENCE_S
        while words not in self.seen[start:] and time.monotonic() < deadline:
            if select.select([self._master], [], [], 0.1)[0]:
                new = os.read(self._master, 65536).decode("utf-8", "replace")
                self.seen += new
                if "\x1b[6n" in new:
                    os.write(self._master, b"\x1b[1;1R")
        assert words in self.seen[start:], self.seen[start:]


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (
            {"status": "learned", "adapter_version": 3, "update": {"duration_ms": 1240.0}},
            "Learned: v3 in 1.2 s. /undo takes it back; /justthis or /fromnowon says how far it reaches.",
        ),
        (
            {"status": "learned", "adapter_version": 3, "uncalibrated": True, "is_unsure": True},
            "Learned: v3 in 0.0 s (uncalibrated model). "
            "Only this answer, or from now on? /justthis or /fromnowon says so.",
        ),
        (
            {"status": "learned", "adapter_version": 3, "replaced": ["Answer in Spanish."], "is_unsure": True},
            'Learned: v3 in 0.0 s. It takes the place of "Answer in Spanish". '
            "Only this answer, or from now on? /justthis or /fromnowon says so.",
        ),
        ({"status": "rejected", "reason": "it got worse"}, "Not learned. It got worse."),
        ({"status": "rejected"}, "Not learned. The new version did worse and was dropped."),
        ({"status": "kept", "ask": "Why?"}, "Why?"),
        (
            {"status": "kept", "is_unsure": True},
            "Noted. Only this answer, or from now on? /justthis or /fromnowon says so.",
        ),
        ({"status": "kept", "replaced": ["use miles"]}, 'Noted. It takes the place of "use miles".'),
        ({"status": "cancelled"}, "Cancelled. Nothing was learned from it."),
        ({"status": "queued"}, "Noted. heed will learn it as soon as it can."),
    ],
)
def test_one_line_says_what_became_of_it(given: dict[str, object], line: str) -> None:
    """Learned, refused, kept or queued, and the commands that say how far it reaches."""
    assert lesson_line(given) == line


def test_weak_tokens_stay_plain() -> None:
    """Only what the correction moved is coloured."""
    styles = [str(span.style) for span in heat_map([["a", 0.01], ["b", -0.5], ["c", 2.0]]).spans]
    assert styles == ["dim", "orange_red1", "bold spring_green3"]
