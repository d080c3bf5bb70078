"""Waits for a heed that is still starting, and says what it waits for and which part is down.

Invariant: a heed that can answer is never waited for, also where a part beside the model is down ("degraded").
"""

import asyncio
import time

from rich.console import Console
from rich.text import Text

from bot.cli.client import HeedClient

LOOK_AGAIN_S = 1.0
ANSWERING = ("ready", "degraded")


async def until_it_answers(client: HeedClient, console: Console) -> None:
    """Return once heed can answer. Print each new step of its start with the seconds since the first look."""
    started_s, shown = time.monotonic(), ""
    while (state := await client.ready())["status"] not in ANSWERING:
        if shown != (shown := troubles(state["parts"])):
            console.print(Text(f"[{time.monotonic() - started_s:5.1f} s] heed is starting. {shown}", style="dim"))
        await asyncio.sleep(LOOK_AGAIN_S)
    if state["status"] == "degraded":
        console.print(Text(f"heed answers, but a part of it does not work. {troubles(state['parts'])}", style="yellow"))


def troubles(parts: dict[str, str]) -> str:
    """Return a line about every part that does not work: "telegram: down (no answer)."."""
    wrong = [f"{name}: {_in_words(state)}." for name, state in parts.items() if state != "ok"]
    return " ".join(wrong)


def _in_words(state: str) -> str:
    kind, _, reason = state.partition(": ")
    return f"{kind} ({reason.rstrip('.')})" if reason else kind
