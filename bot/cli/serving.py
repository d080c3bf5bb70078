"""heed in the foreground of a terminal: what its start says, and what Ctrl-C ends."""

import asyncio
import signal
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.text import Text

from bot.cli.client import HeedClient
from bot.cli.console import console

if TYPE_CHECKING:
    from bot.app import App, Progress
    from bot.cli.terminal import TerminalChat

END_HEED = "This ends heed for everybody who talks to it, not only this chat. End it? [y/N]"
ONCE_MORE = "Press Ctrl-C once more to end heed for everybody."


async def serve(make: "Callable[[Progress], App]", *, has_terminal: bool) -> None:
    """Run heed until it is ended. Raises as App.run."""
    app = make(progress())
    interrupt = Interrupt(app)
    interrupt.install()
    await app.run(interrupt.chat if has_terminal else None)


def progress() -> "Progress":
    """Return what prints a line with the seconds since now."""
    started_s = time.monotonic()
    return lambda text: console.print(Text(f"[{time.monotonic() - started_s:5.1f} s] {text}"), soft_wrap=True)


class Interrupt:
    """The handler of Ctrl-C and SIGTERM: first ends the answer being written, then heed, then everything at once.

    Beside a terminal chat Ctrl-C ends heed only when it comes twice: heed serves others, too.
    """

    def __init__(self, app: "App") -> None:
        self._app = app
        self._chat: TerminalChat | None = None
        self._was_told = False  # that Ctrl-C once more ends heed
        self._task = asyncio.current_task()

    def install(self) -> None:
        """Take the signals."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._end)
        loop.add_signal_handler(signal.SIGINT, self._interrupt)

    async def chat(self, app: "App") -> None:
        """Run the terminal chat with the heed of this process."""
        from bot.cli.terminal import PromptLines, TerminalChat

        keys = app.settings.http.api_keys
        key = next(iter(keys.values())).get_secret_value() if keys else app.key
        async with HeedClient(app.url, "" if keys else "local", key) as client:
            self._chat = TerminalChat(client, console, PromptLines(), END_HEED)
            await self._chat.run()

    def _interrupt(self) -> None:
        if self._chat is None or self._was_told:
            self._end()
        elif not self._chat.interrupt():
            self._was_told = True
            console.print(Text(ONCE_MORE, style="dim"))

    def _end(self) -> None:
        if self._app.stopping.is_set() and self._task is not None:
            self._task.cancel()
        self._app.stop()
