"""What a person can ask heed to do with a slash, one handler each, shared by every platform.

A handler takes where the command was said and returns what to say; how that looks is the platform's
business. `COMMANDS` is the one table of names.
"""

import statistics
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bot import feedback as mapping
from bot.errors import InvalidField, NotFound
from bot.events import Command, Place
from bot.gateway import Gateway, check_text, question
from bot.lessons import Lesson, Lessons
from storage import chats, completions, feedback, notes, people, updates, versions
from storage.database import Database
from storage.tables import Chat, Completion, FeedbackStatus, Note, NoteState

if TYPE_CHECKING:
    from engine.engine import Engine

RECENT = 500  # rows behind /metrics
STATES = {
    NoteState.IN_PROMPT: "in the prompt",
    NoteState.LEARNING: "learning",
    NoteState.IN_WEIGHTS: "in the weights",
}
PRIVACY = """heed keeps your messages, its answers, your feedback, your notes and your adapter in its own data \
directory, on the machine it runs on. Nothing is sent anywhere else.
What you say about answers trains your adapter only; nobody else's answers change.
/learning off stops training (your notes still work). `heed export` writes everything heed holds about you. \
/forget erases it."""


@dataclass(frozen=True)
class Core:
    """The parts a command works with."""

    gateway: Gateway
    lessons: Lessons
    engine: "Engine"
    database: Database


@dataclass(frozen=True)
class Context:
    """Who said a command, and where."""

    core: Core
    user_id: str
    chat: Chat
    command: Command

    @property
    def argument(self) -> str:
        """What was written after the command's name."""
        return self.command.argument.strip()


@dataclass(frozen=True)
class Said:
    """What heed answers to a command."""

    text: str
    lesson: Lesson | None = None
    answer: Completion | None = None


@dataclass(frozen=True)
class CommandSpec:
    """One line of the table of commands."""

    usage: str
    summary: str
    handler: Callable[[Context], Awaitable[Said]]


def parse(text: str) -> Command | None:
    """The command in "/name argument", or None where the text is something else."""
    if not text.startswith("/") or text.startswith("//"):
        return None
    name, _, argument = text[1:].partition(" ")
    return Command(name.strip().lower(), argument.strip())


async def run(core: Core, user_id: str, place: Place, command: Command) -> Said:
    """Do what a command asks. Raises InvalidField where there is no such command or its words are wrong."""
    spec = COMMANDS.get(command.name)
    if spec is None:
        raise InvalidField(f"there is no command /{command.name[:32]}; /help lists them", "text")
    check_text(command.argument, core.gateway.settings.text_limit_chars, "text")
    chat = await core.gateway.chat(user_id, place)
    return await spec.handler(Context(core, user_id, chat, command))


async def _help(_: Context) -> Said:
    lines = [f"{spec.usage:<22} {spec.summary}" for spec in COMMANDS.values()]
    return Said("\n".join(lines))


async def _feedback(context: Context) -> Said:
    target = context.command.completion_id or (await _last_answer(context)).id
    record = mapping.record(replace(context.command, completion_id=target))
    lesson = await context.core.lessons.teach(context.user_id, record, retry=True)
    return Said(learned_line(lesson), lesson, lesson.retry)


async def _note(context: Context) -> Said:
    lesson = await context.core.lessons.teach(context.user_id, mapping.record(context.command))
    return Said(f"noted: {lesson.outcome.note or context.argument}", lesson)


async def _notes(context: Context) -> Said:
    live = await context.core.database.read(lambda s: notes.live(s, context.user_id))
    if context.argument.startswith("delete"):
        return await _delete_note(context, live)
    if not live:
        return Said("no notes yet: correct an answer, or write /note and what heed should always do")
    lines = [f"{place}. {note.text}  ({note_state(note)})" for place, note in enumerate(live, 1)]
    saved = sum(note.num_tokens for note in live if note.state == NoteState.IN_WEIGHTS)
    return Said("\n".join([*lines, f"{saved} prompt tokens saved per answer. /notes delete 1 takes one back."]))


async def _delete_note(context: Context, live: list[Note]) -> Said:
    number = context.argument.removeprefix("delete").strip()
    if not number.isascii() or not number.isdigit() or not 1 <= int(number) <= len(live):
        raise InvalidField(f"/notes delete takes a number from 1 to {len(live)}, as /notes lists them", "text")
    note = live[int(number) - 1]
    await context.core.engine.delete_note(context.user_id, note.id)
    return Said(f"deleted: {note.text}")


async def _retry(context: Context) -> Said:
    gateway = context.core.gateway
    last = await _last_answer(context)
    answer = await gateway.answer(gateway.again(last, gateway.varied(last)))
    return Said("", answer=answer)


async def _undo(context: Context) -> Said:
    undone = await context.core.engine.undo(context.user_id)
    note = f', and the note "{undone.note}" is gone' if undone.note else ""
    return Said(f"taken back: {version_name(undone.version)} answers again{note}")


async def _history(context: Context) -> Said:
    wanted = context.argument or "10"
    if not wanted.isascii() or not wanted.isdigit():
        raise InvalidField("/history takes a number of turns, such as /history 5", "text")
    turns = (await context.core.gateway.turns(context.chat.id))[-max(1, int(wanted[:6])) :]
    if not turns:
        return Said("nothing was said here yet")
    return Said("\n\n".join(f"you   {question(turn)}\nheed  {turn.text}" for turn in turns))


async def _metrics(context: Context) -> Said:
    read = context.core.database.read
    answers = await read(lambda s: completions.recent(s, context.user_id, RECENT))
    given = await read(lambda s: feedback.history(s, context.user_id, RECENT))
    runs = await read(lambda s: updates.recent(s, context.user_id, RECENT))
    live = await read(lambda s: notes.live(s, context.user_id))
    user = await context.core.gateway.user(context.user_id)
    learned = [row for row in given if row.status == FeedbackStatus.LEARNED]
    lines = [
        f"answers            {len(answers)}",
        f"first token        {_median(row.time_to_first_token_s * 1000 for row in answers):.0f} ms (median)",
        f"feedback           {len(given)}, {len(learned)} of it learned",
        f"version            {version_name(user.active_version)} of {user.last_version}",
        f"update             {_median(run.duration_ms for run in runs if run.steps):.0f} ms (median)",
        f"notes              {len(live)}",
        f"tokens saved       {sum(note.num_tokens for note in live if note.state == NoteState.IN_WEIGHTS)} per answer",
    ]
    return Said("\n".join(lines))


async def _reset(context: Context) -> Said:
    await context.core.database.write(lambda s: chats.reset(s, context.chat.id))
    return Said("a new conversation; what heed learned stays")


async def _persona(context: Context) -> Said:
    user = await context.core.gateway.user(context.user_id)
    if not context.argument:
        return Said(user.persona or "no persona; /persona and a description sets one, /persona none removes it")
    persona = None if context.argument.lower() in ("none", "off", "clear") else context.argument
    await context.core.database.write(lambda s: people.set_persona(s, context.user_id, persona))
    return Said("the persona is set" if persona else "the persona is gone")


async def _learning(context: Context) -> Said:
    wanted = context.argument.lower()
    if wanted not in ("", "on", "off"):
        raise InvalidField("/learning takes on or off", "text")
    if wanted:
        await context.core.database.write(lambda s: people.set_learning(s, context.user_id, wanted == "on"))
    user = await context.core.gateway.user(context.user_id)
    return Said("learning is on: corrections train your adapter" if user.is_learning else "learning is off: notes only")


async def _forget(context: Context) -> Said:
    if context.argument.lower() != "everything":
        return Said("this erases every message, note and version of yours. /forget everything does it.")
    await context.core.gateway.forget(context.user_id)
    return Said("everything about you is erased")


async def _privacy(_: Context) -> Said:
    return Said(PRIVACY)


async def _last_answer(context: Context) -> Completion:
    turns = await context.core.gateway.turns(context.chat.id)
    if not turns:
        raise NotFound("there is no answer here yet to say something about", "completion_id")
    return turns[-1]


async def _versions(context: Context) -> Said:
    rows = await context.core.database.read(lambda s: versions.history(s, context.user_id))
    user = await context.core.gateway.user(context.user_id)
    mark = {user.active_version: "  <- answers now"}
    lines = [f"{version_name(row.number):<9} {row.state}{mark.get(row.number, '')}" for row in rows]
    return Said("\n".join([f"{version_name(0):<9} as it came{mark.get(0, '')}", *lines]))


COMMANDS: dict[str, CommandSpec] = {
    "help": CommandSpec("/help", "this list", _help),
    "feedback": CommandSpec("/feedback <text>", "say what was wrong with the last answer", _feedback),
    "note": CommandSpec("/note <text>", "something heed should always do or know", _note),
    "notes": CommandSpec("/notes", "what heed keeps in mind about you", _notes),
    "retry": CommandSpec("/retry", "answer the last message again", _retry),
    "undo": CommandSpec("/undo", "take back the last thing learned", _undo),
    "versions": CommandSpec("/versions", "the versions of your adapter", _versions),
    "history": CommandSpec("/history [n]", "the last turns of this conversation", _history),
    "metrics": CommandSpec("/metrics", "figures about you and heed", _metrics),
    "reset": CommandSpec("/reset", "start a new conversation", _reset),
    "persona": CommandSpec("/persona [text|none]", "who heed should be for you", _persona),
    "learning": CommandSpec("/learning [on|off]", "whether corrections train your adapter", _learning),
    "forget": CommandSpec("/forget everything", "erase everything about you", _forget),
    "privacy": CommandSpec("/privacy", "what heed keeps, and where", _privacy),
}


def note_state(note: Note) -> str:
    """Where a note lives, in words."""
    return STATES.get(NoteState(note.state), note.state)


def version_name(number: int) -> str:
    """A version as people read it: v3, and v0 as what it is."""
    return f"v{number}" if number else "untrained"


def learned_line(lesson: Lesson) -> str:
    """One line about what became of a piece of feedback."""
    outcome = lesson.outcome
    match outcome.status:
        case "learned":
            return f"learned: v{outcome.adapter_version} in {outcome.duration_ms / 1000:.1f} s"
        case "queued":
            return outcome.reason or "noted; heed will learn it as soon as it can"
        case "rejected":
            return f"not learned: {outcome.reason or 'the new version did worse and was dropped'}"
    return lesson.ask or outcome.reason or "noted"


def _median(values: Iterable[float]) -> float:
    known = list(values)
    return statistics.median(known) if known else 0.0
