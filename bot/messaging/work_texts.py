"""The words, cards and buttons of an agent's work in a chat."""

from bot.agent.inside.result import ToolResult
from bot.agent.live_session import about
from bot.agent.repository import GitState, placed
from bot.agent.session import CallLesson
from bot.agent.state import Proposal
from bot.agent.tools import Call
from bot.channel import Button, File, Rows
from bot.commands.texts import SAYS_SO
from bot.messaging.markdown import literal, table

SCRATCH, OFF = "scratch", "off"  # behind /work: the person's own folder, the end
TELL, HERE = "tell", "here"  # behind /work: a note for lessons, a note for the folder
NOWHERE = "/"  # no folder can be called that
BEGUN = "Say what is to be done in {}. Nothing runs before you have said yes. /work off ends it, /stop breaks it off."
LEFT = "This is an ordinary conversation again. What was written and learned stays."
NOT_BEGUN = "You are not working in a folder. Start with /work scratch (your own folder){}."
NO_WORK = "You are not working in a folder. /work says how to begin."
TELL_WHAT = "Say what lessons are to know: /work tell this project uses Poetry"
TOLD = "Lessons in this work know that now. The agent is not told."
IN_PRIVATE = "Work in a folder is for you alone: write to me in private."
STOPPED, NOTHING_TO_STOP = "Stopped.", "Nothing of yours is being done."
NOT_WAITING = "That question is no longer open. /work shows what is waiting now."
BROKEN_OFF = "I was ended while that was done: some of it may be done. Say how to go on."
TOO_OLD = "I asked that more than a day ago, so nothing was run. Say it again if it is still wanted."
WHAT_WAS_WRONG = 'What was wrong? Say it in a few words, or send other arguments: {"path": ...}'
FAILED = "It failed. What was wrong?"
REASONS = {
    "0": ("wrong file", "That is the wrong file."),
    "1": ("read first", "Read the file before you change it."),
    "2": ("use edit_lines", "Use edit_lines to change a part of a file."),
}
SEES, CANNOT, WORDS = "sees", "cannot", "words"
LESSONS = frozenset({*REASONS, CANNOT})  # buttons that teach
CANNOT_WORK = "That call of the tool cannot work."
MOST_CARD_CHARS = 2500  # of a diff in a message; a longer one comes as a file
MOST_RESULT_CHARS = 600
FAILED_ROWS: Rows = (
    (Button("let it see that", f"work:{SEES}"), Button("it cannot work", f"work:{CANNOT}")),
    (Button("other …", f"work:{WORDS}"),),
)


def begun(workspace: str, git: GitState | None = None) -> str:
    """Say where the work is, how its repository stands if it is one, and how it goes."""
    return BEGUN.format(placed(workspace or "your scratch folder", git))


def not_begun(folders: list[str]) -> str:
    """Say how to begin."""
    others = f", or /work and a name: {', '.join(folders)}" if folders else ""
    return NOT_BEGUN.format(others)


def lesson(found: CallLesson) -> str:
    """Say what became of a correction, and which commands say how far it reaches where heed asks."""
    return literal(f"{found.line} {SAYS_SO}" if found.unsure_of else found.line)


def card(proposal: Proposal) -> tuple[str, tuple[File, ...], Rows]:
    """Return a question about a call: its Markdown, a file if what it shows is long, and the buttons."""
    tool, shown = proposal.call.tool, proposal.preview.output
    head = literal(f"May I use {tool}?{' (with your changes)' if proposal.is_edited else ''}")
    is_long = len(shown) > MOST_CARD_CHARS
    files = (File("call.diff", shown.encode()),) if is_long else ()
    body = table(f"{shown[:MOST_CARD_CHARS]}\n..." if is_long else shown)
    yes = (Button("Yes", "work:yes"), Button(f"Yes, {tool} from now on", "work:always"), Button("No", "work:no"))
    why = tuple(Button(label, f"work:{name}") for name, (label, _) in REASONS.items())
    return f"{head}\n{body}", files, (yes, (*why, Button("other …", f"work:{WORDS}")))


def result(call: Call, found: ToolResult) -> str:
    """Return a call that ran, with what came of it, as Markdown."""
    head = literal(f"{'✓' if found.success else '✗'} {call.tool} {about(call.arguments)}".rstrip())
    said = found.output[:MOST_RESULT_CHARS] + ("\n..." if len(found.output) > MOST_RESULT_CHARS else "")
    return f"{head}\n{table(said)}" if said else head
