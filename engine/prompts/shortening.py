"""Conversations shortened to the tokens there is room for, in several views of one conversation alike.

Pure. Invariants: the oldest turns go first, each with the answers to it; system message, newest user message and what
stands behind it stay; only if that alone is too long is the newest message cut, from its front. What is taken from one
view is taken from all, so that student and teacher never differ by a turn that only one of them sees.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence

from engine.requests import ChatMessage

ConversationViews = Sequence[Sequence[ChatMessage]]


def shortened(
    views: ConversationViews, excess: Callable[[ConversationViews], int], num_chars: Callable[[str, int], int]
) -> ConversationViews | None:
    """Return the views without what does not fit; None if nothing of the newest message would remain.

    `excess` counts the tokens that are too many in the longest view, `num_chars` the characters of a text's first ones.
    """
    if excess(views) <= 0:
        return views
    views = newest_turns(views, excess)
    while (over := excess(views)) > 0:
        newest = [_newest(view) for view in views]
        count = num_chars(newest[0], over)
        if count >= min(map(len, newest)):
            return None
        views = [_cut(view, count) for view in views]
    return views


def newest_turns(views: ConversationViews, excess: Callable[[ConversationViews], int]) -> ConversationViews:
    """Return the views without as many of the oldest turns as have to go; the newest user message stays in any case."""
    num_turns = len(_users(views[0]))
    fits = bisect_left(range(num_turns), True, key=lambda n: excess(_without_turns(views, n)) <= 0)
    return _without_turns(views, min(fits, num_turns - 1)) if num_turns else views


def without_turns(messages: Sequence[ChatMessage], num_turns: int) -> list[ChatMessage]:
    """Drop the `num_turns` oldest user messages and the answers to them; fewer than all user messages."""
    users = _users(messages)
    return [*messages[: users[0]], *messages[users[num_turns] :]] if num_turns else list(messages)


def _without_turns(views: ConversationViews, num_turns: int) -> ConversationViews:
    return [without_turns(view, num_turns) for view in views]


def _users(messages: Sequence[ChatMessage]) -> list[int]:
    return [i for i, m in enumerate(messages) if m["role"] == "user"]


def _newest(messages: Sequence[ChatMessage]) -> str:
    return messages[_users(messages)[-1]]["content"] if _users(messages) else ""


def _cut(messages: Sequence[ChatMessage], num_chars: int) -> list[ChatMessage]:
    """Cut characters from the front of the newest user message."""
    place, kept = _users(messages)[-1], [dict(m) for m in messages]
    kept[place]["content"] = kept[place]["content"][num_chars:]
    return kept
