"""A person who works with an agent in heed, goes on with the heed that follows a killed one, and remembers all of it.

Invariant: about one call they say the same however often they are asked, so that a word that was lost is said again.
"""

import asyncio
import json
import random
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from bot.agent.session import difference
from bot.agent.tools import Call
from tests.crash.agent.commands import ENDLESS, FAILS, edited, is_edited, number_of, task
from tests.patience import PATIENCE_S

Json = dict[str, Any]
Decision = Literal["yes", "no", "wrong", "edit"]
DECISIONS: tuple[Decision, ...] = ("yes", "yes", "yes", "wrong", "edit", "no")
TASKS = 2  # of one session
CALLS = (2, 4)  # of one task
THINKS_S = 0.02  # at most
POLL_S = 0.01


@dataclass
class ShownCall:
    """A call that a person was shown, and what they say about it."""

    command: str
    answer_id: str
    decision: Decision

    @property
    def number(self) -> str:
        """The command's."""
        return number_of(self.command)


@dataclass
class Memory:
    """What a person remembers: all that heed has to answer for."""

    shown: dict[str, ShownCall] = field(default_factory=dict)  # by number
    lessons: set[tuple[str, str]] = field(default_factory=set)  # (id of the answer, what was wrong with it)
    prompts: set[str] = field(default_factory=set)  # those that heed has answered
    ended: set[str] = field(default_factory=set)  # numbers of calls whose end heed has told
    waits: str = ""  # the number of a call that the person has said nothing about yet
    faults: list[str] = field(default_factory=list)  # seen while it went on


class HeedError(Exception):
    """heed has answered with an error."""


class AgentPerson:
    """One person. `said` counts what they have begun to say: moments for a kill."""

    def __init__(self, account: str, socket: Path, random_: random.Random) -> None:
        self.account = account
        self.memory = Memory()
        self.said: Counter[str] = Counter()
        self._socket = socket
        self._random = random_

    async def live(self, *, may_hang: bool = False, is_last: bool = False) -> None:
        """Work until heed goes away; in the `is_last` one until nothing is left to do."""
        with suppress(ConnectionError):
            reader, writer = await self._connected()
            try:
                await self._work(Seat(self.account, reader, writer), may_hang=may_hang, is_last=is_last)
            finally:
                writer.close()

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                with suppress(FileNotFoundError, ConnectionRefusedError):
                    return await asyncio.open_unix_connection(self._socket)
                await asyncio.sleep(POLL_S)

    async def _work(self, seat: "Seat", *, may_hang: bool, is_last: bool) -> None:
        view = await seat.do("look")
        self._compare(view)
        while True:
            if view.get("waiting"):
                view = await self._decide(seat, self._look_at(view["waiting"], may_hang=may_hang))
            elif view.get("failed"):
                view = await self._judge(seat, view["failed"])
            elif view["id"] and view["prompts"] and not view["has_said"]:
                view = await seat.do("go_on")
            elif is_last:
                return
            else:
                view = await self._ask(seat, view)

    def _compare(self, view: Json) -> None:
        """Compare what a new heed shows with what the one before has shown."""
        waiting = view.get("waiting")
        if self.memory.waits and (waiting is None or number_of(waiting["command"]) != self.memory.waits):
            self.memory.faults.append(f"{self.memory.waits} waited and is gone")

    def _look_at(self, waiting: Json, *, may_hang: bool) -> ShownCall:
        number, memory = number_of(waiting["command"]), self.memory
        if number in memory.ended:
            memory.faults.append(f"{number} has ended and waits again")
        if number not in memory.shown:
            decision = self._random.choice(DECISIONS)
            is_plain = not is_edited(number) and not waiting["command"].endswith(ENDLESS)
            memory.waits = number
            memory.shown[number] = ShownCall(waiting["command"], waiting["answer_id"], decision if is_plain else "yes")
        call = memory.shown[number]
        if call.command.endswith(ENDLESS):
            call.decision = "yes" if may_hang else "no"
        return call

    async def _decide(self, seat: "Seat", call: ShownCall) -> Json:
        await asyncio.sleep(self._random.uniform(0, THINKS_S))
        self.memory.waits = ""
        if call.decision == "yes":
            self.said["approval"] += 1
            view = await seat.do("approve")
        elif call.decision == "no":
            view = await seat.do("deny")
        else:
            self.said["lesson"] += 1
            view = await (self._deny if call.decision == "wrong" else self._edit)(seat, call)
        self.memory.ended.add(call.number)
        return view

    async def _deny(self, seat: "Seat", call: ShownCall) -> Json:
        text = f"Number {call.number} is wrong."
        self.memory.lessons.add((call.answer_id, text))
        return await seat.do("deny", text)

    async def _edit(self, seat: "Seat", call: ShownCall) -> Json:
        instead = edited(call.command)
        text = difference(Call("bash", {"command": call.command}), Call("bash", {"command": instead}))
        self.memory.lessons.add((call.answer_id, text))
        return await seat.do("edit", instead)

    async def _judge(self, seat: "Seat", answer_id: str) -> Json:
        """Say something about a call that failed, or let the agent see it."""
        call = next(call for call in self.memory.shown.values() if call.answer_id == answer_id)
        if not call.command.endswith(FAILS) or int(call.number) % 2:
            return await seat.do("go_on")
        text = f"Number {call.number} must not fail."
        self.memory.lessons.add((answer_id, text))
        self.said["lesson"] += 1
        return await seat.do("go_on", text)

    async def _ask(self, seat: "Seat", view: Json) -> Json:
        if not view["id"] or len(view["prompts"]) == TASKS:
            view = await seat.do("begin")
        prompts = set(view["prompts"])
        text = task(f"{view['id']}, task {len(prompts) + 1}", self._random.randint(*CALLS))
        view = await seat.do("ask", text)
        self.memory.prompts.add(text)
        return view


class Seat:
    """The end of the socket at which a person sits."""

    def __init__(self, account: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._account = account
        self._reader = reader
        self._writer = writer

    async def do(self, act: str, text: str = "") -> Json:
        """Do something, and return how the session stands then. Raises ConnectionError once heed is gone."""
        self._writer.write(json.dumps({"account": self._account, "act": act, "text": text}).encode() + b"\n")
        await self._writer.drain()
        async with asyncio.timeout(PATIENCE_S):
            line = await self._reader.readline()
        if not line.endswith(b"\n"):
            raise ConnectionResetError
        told: Json = json.loads(line)
        if "error" in told:
            raise HeedError(told["error"])
        return told
