"""bot.agent.state: JSON holds all of it."""

import json

from bot.agent.inside.result import ToolResult
from bot.agent.state import CallCorrection, MindAnswer, Proposal, SessionState
from bot.agent.tools import Call
from tests.bot.agent.minds import piece


def test_a_session_goes_through_json() -> None:
    """Every part comes back as it was."""
    answer = MindAnswer("cmpl-1", "I write it.", [piece("write", '{"path": "ü"}')])
    call = Call("write", {"path": "ü", "content": "\u202e", "n": 3, "all": True})
    proposal = Proposal(answer, call, ToolResult("+ü", success=False, feedback="try"), is_edited=True)
    state = SessionState.new()
    state.messages.append({"role": "assistant", "content": "", "tool_calls": answer.calls})
    assert SessionState.of(json.loads(json.dumps(state.stored()))) == state
    state.waiting = state.running = proposal
    state.failed, state.teaching, state.allowed = answer, CallCorrection("cmpl-1", "no"), ["read"]
    assert SessionState.of(json.loads(json.dumps(state.stored()))) == state


def test_a_session_begins_with_what_the_model_is_told() -> None:
    """A line more where there is one."""
    (plain,) = SessionState.new("").messages
    (more,) = SessionState.new("The folder is a git repository.").messages
    assert plain == SessionState.new().messages[0]
    assert more["content"] == f"{plain['content']}\nThe folder is a git repository."


def test_corrections_are_lessons_of_their_own() -> None:
    """The same words twice are two."""
    assert CallCorrection("cmpl-1", "no").key != CallCorrection("cmpl-1", "no").key
