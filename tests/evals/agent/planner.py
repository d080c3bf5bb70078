"""A client whose heed does every task as planned, in the ways that its people have asked for."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from engine.pocket.workshop.tasks import Task
from engine.pocket.workshop.ways import DEFAULT, WISHES, Ways
from engine.pocket.workshop.work import FolderWork, called

_CALL = re.compile(r'\A<tool_call>\n\{"name": "(\w+)", "arguments": (.*)\}\n</tool_call>\Z', re.DOTALL)


class PlanningClient:
    """Knows the tasks it was told of; learns each wish at once, or nothing."""

    def __init__(self, *, is_learning: bool = True) -> None:
        self.tasks: dict[str, Task] = {}
        self.ways: dict[str, Ways] = defaultdict(lambda: DEFAULT)
        self.corrections: list[tuple[str, str, Sequence[str]]] = []
        self.asked: list[str] = []
        self._is_learning = is_learning
        self.is_unsure = False  # how far a correction reaches

    def knows(self, task: Task) -> Task:
        """Take note of a task."""
        self.tasks[task.text] = task
        return task

    async def notes(self, _user: str) -> list[dict[str, str]]:
        """Return no note that is being learned."""
        return []

    async def step(self, user: str, messages: Sequence[Any], tools: Sequence[Any], *, notes: str = "auto") -> Any:
        """Return the next step of the newest task."""
        assert tools
        self.asked.append(notes)
        place = max(n for n, m in enumerate(messages) if m["role"] == "user" and m["content"] in self.tasks)
        work = FolderWork(self.tasks[messages[place]["content"]].folder, self.ways[user])
        self.tasks[messages[place]["content"]].do(work)
        done = Counter(_said(m) for m in messages[place:] if m["role"] == "assistant")
        for step in work.steps:
            said = step.said
            if not done[said]:
                break
            done[said] -= 1
        call = _CALL.fullmatch(said)
        message: dict[str, Any] = {"content": said}
        if call:
            function = {"name": call[1], "arguments": call[2]}
            message = {"content": None, "tool_calls": [{"id": "call-1", "type": "function", "function": function}]}
        return {"id": f"cmpl-{len(self.asked)}", "choices": [{"message": message}]}

    async def correct(
        self, user: str, completion_id: str, text: str, training: Any = None, context: Sequence[str] = ()
    ) -> Any:
        """Learn a held-out wish, or lines without blanks from other arguments."""
        self.corrections.append((user, text, context))
        if not self.is_unsure:
            return self._learned(user, text)
        self.unsure = (user, text)
        return {"status": "learned", "adapter_version": 1, "is_unsure": True, "feedback_id": "fb-1"}

    async def choose_always(self, user: str, feedback_id: str) -> Any:
        """Learn the newest wish, of which it was unsure."""
        assert (user, feedback_id) == (self.unsure[0], "fb-1")
        return self._learned(*self.unsure)

    def _learned(self, user: str, text: str) -> dict[str, Any]:
        direction = next((d for d, (_, held_out) in WISHES.items() if text in held_out), ("is_tight", True))
        if self._is_learning:
            self.ways[user] = self.ways[user].with_side(direction)
        return {"status": "learned" if self._is_learning else "rejected", "adapter_version": 1}


def _said(message: dict[str, Any]) -> str:
    for call in message.get("tool_calls", ()):
        return called(call["function"]["name"], json.loads(call["function"]["arguments"]))
    return str(message["content"])
