"""Rows as the other packages make them, with the fields a test does not care about filled in."""

from typing import Any

from storage.kinds import BetterState
from storage.tables import AgentWork, BetterAnswer, Completion, Feedback, Inbox, Note, Outbox


def completion(user_id: str, text: str = "a llama", **fields: Any) -> Completion:
    """An answer to "What is it?"."""
    values: dict[str, Any] = {
        "messages": [{"role": "user", "content": "What is it?"}],
        "notes": [],
        "prompt_token_ids": [1, 2, 3],
        "completion_token_ids": [4, 5],
        "logprobs": [-0.25, -1.5],
        "sampling": {"temperature": 0.0},
        "finish_reason": "stop",
    }
    return Completion(user_id=user_id, text=text, **(values | fields))


def feedback(user_id: str, **fields: Any) -> Feedback:
    """A correction."""
    values: dict[str, Any] = {"kind": "correction", "text": "too long"}
    return Feedback(user_id=user_id, **(values | fields))


def note(user_id: str, text: str = "no emoji", **fields: Any) -> Note:
    """A standing note."""
    return Note(user_id=user_id, text=text, **fields)


def better_answer(user_id: str, completion_id: str, text: str = "a fine llama") -> BetterAnswer:
    """A better answer that waits for a consolidation."""
    fields = {"source": "base model", "notes": [text], "state": BetterState.ACCEPTED}
    return BetterAnswer(user_id=user_id, completion_id=completion_id, text=text, **fields)


def agent_work(user_id: str, text: str = "rename it", **fields: Any) -> AgentWork:
    """A session of an agent in the person's scratch folder."""
    values: dict[str, Any] = {"workspace": "", "state": {"messages": [{"role": "user", "content": text}]}}
    return AgentWork(user_id=user_id, **(values | fields))


def inbox(update_id: str, chat_key: str = "c1", **fields: Any) -> Inbox:
    """A platform update."""
    values: dict[str, Any] = {"platform": "telegram", "bot_id": "7", "account": "ana", "payload": {"n": update_id}}
    return Inbox(update_id=update_id, chat_key=chat_key, **(values | fields))


def outbox(item_id: str, chat_key: str = "c1", **fields: Any) -> Outbox:
    """Something to show."""
    values: dict[str, Any] = {"platform": "telegram", "payload": {"text": item_id}}
    return Outbox(id=item_id, chat_key=chat_key, **(values | fields))
