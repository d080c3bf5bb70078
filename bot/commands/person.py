"""Slash commands of people, one handler each, shared by every platform.

A handler takes the command and its place, and returns what to say; how that looks is the platform's
business. `COMMANDS` is the one table of names.
"""

import re
import statistics
from collections.abc import Iterable
from dataclasses import replace

from bot.access import export
from bot.access.accounts import GUARDED
from bot.access.consent import Notice
from bot.channel import Button, CommandMenu, Rows
from bot.commands import admin, texts
from bot.commands.spec import CommandContext, CommandReply, CommandSpec
from bot.core import feedback as mapping
from bot.core import scope_choice, version_text
from bot.core.core import Core
from bot.core.gateway import check_text, question
from bot.core.standing_notes import StandingNotes, standing_notes
from bot.core.version_text import version_name
from bot.errors import InvalidField, NotFound
from bot.events import Author, Command, Place
from storage.conversations import chats, completions
from storage.errors import PersonNotFound, VersionNotFound, VersionStateError
from storage.kinds import ConsentChoice, FeedbackStatus, Scope
from storage.learning import better_answers, feedback, notes, updates, versions
from storage.people import consent, people
from storage.tables import BetterAnswer, Completion

VERSION = re.compile(r"v?[0-9]{1,9}")
NAME = re.compile(r"\w{1,32}")  # what may be repeated to the person who said it
RECENT = 500  # rows behind /metrics
WHISPERING = frozenset({"discord"})  # platforms that show the answer to a command to the asker alone
FORGET: Rows = ((Button(texts.ERASE_EVERYTHING, "forget:yes"), Button(texts.KEEP_IT, "forget:no")),)


def parse(text: str) -> Command | None:
    """Return the command in "/name argument", or None if the text is something else."""
    if not text.startswith("/") or text.startswith("//"):
        return None
    name, _, argument = text[1:].partition(" ")
    return Command(name.strip().lower(), argument.strip())


def menu() -> list[CommandMenu]:
    """Every command as a platform's menu shows it, the admins' last."""
    everybody = [_menu_line(name, spec, is_admin=False) for name, spec in COMMANDS.items()]
    return everybody + [_menu_line(name, spec, is_admin=True) for name, spec in admin.COMMANDS.items()]


async def run(
    core: Core,
    user_id: str,
    place: Place,
    command: Command,
    author: Author | None = None,
    *,
    is_interaction: bool = False,
) -> CommandReply:
    """Do what a command asks; without an `author` no one is an admin and nothing is counted.

    `is_interaction`: it was chosen from the platform's menu, not written where others read it, and so is its answer.
    Raises InvalidField if there is no such command (for this person) or its words are wrong.
    """
    spec = check(core, command, author)
    who, is_admin = author or Author(place.platform, ""), author is not None and core.access.is_admin(author)
    is_whispered = is_interaction and place.platform in WHISPERING
    if spec.is_secret and not (place.is_private or is_whispered):
        return CommandReply(texts.for_you_alone(command.name), is_private=True)
    is_stranger = author is not None and (await core.gateway.caller(author)).is_stranger
    chat = None if is_stranger else await core.gateway.chat(user_id, place)
    context = CommandContext(core, user_id, who, place, chat, command, is_admin, is_stranger)
    try:
        said = await spec.handler(context)
    except PersonNotFound as error:
        raise NotFound(texts.NOTHING_YET, "text") from error
    return replace(said, is_private=spec.is_private, is_table=spec.is_table)


def check(core: Core, command: Command, author: Author | None) -> CommandSpec:
    """Return a command's line of the table. Raise InvalidField if there is none for this person, or too many words."""
    is_admin = author is not None and core.access.is_admin(author)
    spec = COMMANDS.get(command.name) or (admin.COMMANDS.get(command.name) if is_admin else None)
    if spec is None:
        name = command.name if NAME.fullmatch(command.name) else ""
        raise InvalidField(texts.no_such_command(name), "text")
    check_text(command.argument, core.gateway.settings.text_limit_chars, "text")
    return spec


def _menu_line(name: str, spec: CommandSpec, *, is_admin: bool) -> CommandMenu:
    hint = spec.usage.partition(" ")[2]
    return CommandMenu(name, spec.summary, hint, is_admin, spec.is_private, spec.choices)


async def _start(context: CommandContext) -> CommandReply:
    model_line = context.core.settings.model_line
    if context.place.platform not in GUARDED:
        return CommandReply(f"{texts.START}\n\n{model_line}")
    await context.core.consent.record(context.user_id, ConsentChoice.ASKED, context.place)
    greeting = _shown(context.core.consent.greeting(context.place.platform))
    return replace(greeting, text=f"{greeting.text}\n\n{model_line}")


async def _help(context: CommandContext) -> CommandReply:
    listed = [*COMMANDS.values(), *((admin.ROLLBACK, *admin.COMMANDS.values()) if context.is_admin else ())]
    return CommandReply(texts.help_text((spec.usage, spec.summary) for spec in listed))


async def _feedback(context: CommandContext) -> CommandReply:
    if not context.argument:
        raise InvalidField(texts.FEEDBACK_NEEDS_WORDS, "text")
    if notice := await context.core.access.spend(context.author, "updates"):
        return CommandReply(notice)
    target = context.command.completion_id or (await _last_answer(context)).id
    record = mapping.record(replace(context.command, completion_id=target))
    lesson = await context.core.lessons.teach(context.user_id, record, retry=True)
    return CommandReply(texts.learned(lesson.outcome, lesson.ask), lesson, lesson.retry)


async def _note(context: CommandContext) -> CommandReply:
    record = mapping.record(context.command)
    await context.core.lessons.check(record)
    lesson = await context.core.lessons.teach(await context.person(), record)
    return CommandReply(texts.noted(lesson.outcome, context.argument), lesson)


async def _notes(context: CommandContext) -> CommandReply:
    core = context.core
    found = await standing_notes(core.engine, core.database, await context.user())
    if context.argument.startswith("delete"):
        return await _delete_note(context, found)
    if not found.live:
        return CommandReply(texts.NO_NOTES)
    lines = [
        texts.note_line(place, note.text, texts.STATES[found.state(note)]) for place, note in enumerate(found.live, 1)
    ]
    return CommandReply("\n".join([*lines, texts.notes_footer(found.tokens_saved)]))


async def _delete_note(context: CommandContext, found: StandingNotes) -> CommandReply:
    note, known = found.numbered(context.argument), context.command.note_id
    if known:
        note = await context.core.database.read(lambda s: notes.get(s, context.user_id, known))
    if note is None:
        raise InvalidField(texts.no_such_note(len(found.live)), "text")
    await context.core.engine.delete_note(context.user_id, note.id)
    now = await context.core.database.read(lambda s: notes.live(s, context.user_id))
    before = {one.id for one in found.live}
    return CommandReply(texts.deleted(note.text, [one.text for one in now if one.id not in before]))


async def _retry(context: CommandContext) -> CommandReply:
    gateway = context.core.gateway
    last = await _last_answer(context)
    if notice := await context.core.access.spend(context.author, "messages"):
        return CommandReply(notice)
    answer = await gateway.answer(gateway.again(last, gateway.varied(last)))
    return CommandReply("", answer=answer)


async def _undo(context: CommandContext) -> CommandReply:
    return CommandReply(texts.undone(await context.core.engine.undo(context.user_id)))


async def _cancel(context: CommandContext) -> CommandReply:
    outcome = await context.core.lessons.cancel_newest(context.user_id)
    return CommandReply(texts.learned(outcome) if outcome else texts.NOTHING_TO_CANCEL)


async def _just_this(context: CommandContext) -> CommandReply:
    return await _reach(context, Scope.ANSWER)


async def _from_now_on(context: CommandContext) -> CommandReply:
    return await _reach(context, Scope.ALWAYS)


async def _reach(context: CommandContext, scope: Scope) -> CommandReply:
    row = await scope_choice.newest(context.core, context.user_id)
    key = f"scope:{row.id}:{scope}"
    record = await scope_choice.choose(context.core, context.user_id, row.id, scope, key)
    if record is None:
        return CommandReply(texts.SCOPE_KEPT)
    lesson = await context.core.lessons.teach(context.user_id, record, idempotency_key=key, retry=True)
    return CommandReply(texts.learned(lesson.outcome), lesson, lesson.retry)


async def _history(context: CommandContext) -> CommandReply:
    wanted = context.argument or "10"
    if not wanted.isascii() or not wanted.isdigit():
        raise InvalidField(texts.HISTORY_NEEDS_NUMBER, "text")
    turns = (await context.core.gateway.turns(context.chat_id))[-max(1, int(wanted[:6])) :]
    if not turns:
        return CommandReply(texts.NOTHING_SAID)
    ids = [turn.id for turn in turns]
    better = await context.core.database.read(lambda s: better_answers.about(s, context.user_id, ids))
    return CommandReply("\n\n".join(_exchange(turn, better.get(turn.id)) for turn in turns))


def _exchange(turn: Completion, better: BetterAnswer | None) -> str:
    said = f"you   {question(turn)}\nheed  {turn.text}"
    return f"{said}\nbetter, by {better.source}: {better.text}" if better else said


async def _metrics(context: CommandContext) -> CommandReply:
    read = context.core.database.read
    answers = await read(lambda s: completions.recent(s, context.user_id, RECENT))
    given = await read(lambda s: feedback.history(s, context.user_id, RECENT))
    runs = await read(lambda s: updates.recent(s, context.user_id, RECENT))
    user = await context.user()
    standing = await standing_notes(context.core.engine, context.core.database, user)
    learned = [row for row in given if row.status == FeedbackStatus.LEARNED]
    lines = [
        f"answers            {len(answers)}",
        f"first token        {_median(row.time_to_first_token_s * 1000 for row in answers):.0f} ms (median)",
        f"feedback           {len(given)}, {len(learned)} of it learned",
        f"version            {version_name(user.active_version)} ({texts.count(user.last_version, 'version')} made)",
        f"update             {_median(run.duration_ms for run in runs if run.steps):.0f} ms (median)",
        f"notes              {len(standing.live)}",
        f"tokens saved       {standing.tokens_saved} per answer",
    ]
    return CommandReply("\n".join(lines))


async def _reset(context: CommandContext) -> CommandReply:
    if context.chat is not None:
        await context.core.database.write(lambda s: chats.reset(s, context.chat_id))
    return CommandReply(texts.NEW_CONVERSATION)


async def _persona(context: CommandContext) -> CommandReply:
    if not context.argument:
        return CommandReply((await context.user()).persona or texts.NO_PERSONA)
    persona = None if context.argument.lower() in ("none", "off", "clear") else context.argument
    user_id = await context.person()
    await context.core.database.write(lambda s: people.set_persona(s, user_id, persona))
    return CommandReply(texts.PERSONA_SET if persona else texts.PERSONA_REMOVED)


async def _learning(context: CommandContext) -> CommandReply:
    wanted = " ".join(context.argument.lower().split())
    if wanted in ("follow-ups on", "follow-ups off"):
        is_allowed = wanted.endswith("on")
        return _shown(
            await context.core.consent.choose_follow_ups(await context.person(), context.place, is_allowed=is_allowed)
        )
    if wanted not in ("", "on", "off", "off yes"):
        raise InvalidField(texts.LEARNING_CHOICES, "text")
    if wanted and context.place.platform in GUARDED:
        return await _consent(context, wanted)
    if wanted:
        user_id = await context.person()
        await context.core.database.write(lambda s: people.set_learning(s, user_id, wanted == "on"))
    user = await context.user()
    if not user.is_learning:
        return CommandReply(texts.LEARNING_OFF)
    has_more = await context.core.database.read(lambda s: consent.allows_follow_ups(s, context.user_id))
    return CommandReply(texts.LEARNING_ON + (texts.FOLLOW_UPS_ON if has_more else texts.FOLLOW_UPS_OFF))


async def _consent(context: CommandContext, wanted: str) -> CommandReply:
    word = {"on": "yes", "off": "no", "off yes": "withdraw"}[wanted]
    return _shown(await context.core.consent.choose(context.user_id, word, context.place))


async def _export(context: CommandContext) -> CommandReply:
    user = await context.user()
    archive = await export.archive(context.core.database, context.core.settings.data_dir, user)
    return CommandReply(archive.summary, files=((export.FILE_NAME, archive.content),))


async def _forget(context: CommandContext) -> CommandReply:
    if context.argument.lower() not in ("everything", "yes"):
        return CommandReply(texts.FORGET_ASKS, buttons=FORGET)
    core = context.core
    accounts = await core.database.read(lambda s: people.identities(s, context.user_id))
    await core.gateway.forget(context.user_id)
    for known in accounts:
        core.access.drop(known.platform, known.account)
    return CommandReply(texts.FORGOTTEN)


async def _privacy(context: CommandContext) -> CommandReply:
    text = texts.PRIVACY.format(where=context.core.consent.where)
    return CommandReply(text + texts.PRIVACY_WITH_CONSENT if context.place.platform in GUARDED else text)


def _shown(notice: Notice) -> CommandReply:
    return CommandReply(notice.text, buttons=notice.rows)


async def _last_answer(context: CommandContext) -> Completion:
    turns = await context.core.gateway.turns(context.chat_id)
    if not turns:
        raise NotFound(texts.NO_ANSWER_YET, "completion_id")
    return turns[-1]


async def _in_chats_alone(_: CommandContext) -> CommandReply:
    return CommandReply(texts.WORK_ELSEWHERE)


async def _versions(context: CommandContext) -> CommandReply:
    known = await context.core.database.read(lambda s: versions.lineage(s, context.user_id))
    active = (await context.user()).active_version
    return CommandReply(version_text.listing(known, active))


async def _rollback(context: CommandContext) -> CommandReply:
    words = context.argument.split()
    if context.is_admin and len(words) == 2:
        return await admin.rollback(context)
    if not words:
        return CommandReply(texts.versions_to_choose((await _versions(context)).text))
    if len(words) != 1 or not VERSION.fullmatch(words[0]):
        raise InvalidField(texts.ROLLBACK_NEEDS_VERSION, "text")
    number = int(words[0].removeprefix("v"))
    before = (await context.user()).active_version
    try:
        await context.core.engine.rollback(context.user_id, number)
    except (VersionNotFound, VersionStateError) as error:
        raise NotFound(texts.no_such_version(error, (await _versions(context)).text), "text") from error
    known = await context.core.database.read(lambda s: versions.lineage(s, context.user_id))
    return CommandReply(version_text.returned(known, before, number))


COMMANDS: dict[str, CommandSpec] = {
    "start": CommandSpec("/start", "who heed is, and whether it may learn from you", _start, is_private=True),
    "help": CommandSpec("/help", "this list", _help, is_private=True, is_table=True),
    "feedback": CommandSpec("/feedback <text>", "say what was wrong with the last answer", _feedback),
    "note": CommandSpec("/note <text>", "something heed should always do or know", _note),
    "notes": CommandSpec(
        "/notes [delete n]", "what heed keeps in mind about you", _notes, is_private=True, is_secret=True
    ),
    "retry": CommandSpec("/retry", "answer the last message again", _retry),
    "undo": CommandSpec("/undo", "take back the last thing learned", _undo),
    "justthis": CommandSpec("/justthis", "what you said last was about one answer only", _just_this),
    "fromnowon": CommandSpec("/fromnowon", "what you said last holds for every answer", _from_now_on),
    "work": CommandSpec(
        "/work [folder|scratch|off]",
        "have things done in a folder, each after your yes",
        _in_chats_alone,
        is_private=True,
    ),
    "stop": CommandSpec("/stop", "break off what is being done in a folder", _in_chats_alone, is_private=True),
    "cancel": CommandSpec("/cancel", "stop the lesson that is being learned", _cancel),
    "versions": CommandSpec(
        "/versions",
        "the versions of your adapter, and what taught them",
        _versions,
        is_private=True,
        is_secret=True,
        is_table=True,
    ),
    "rollback": CommandSpec(
        "/rollback <version>",
        "let an earlier version of your adapter answer",
        _rollback,
        is_private=True,
        is_secret=True,
    ),
    "history": CommandSpec(
        "/history [n]", "the last turns of this conversation", _history, ("5", "10", "20"), True, True
    ),
    "reset": CommandSpec("/reset", "start a new conversation", _reset),
    "persona": CommandSpec("/persona [text|none]", "who heed should be for you", _persona, ("none",), True, True),
    "learning": CommandSpec(
        "/learning [on|off|follow-ups on|follow-ups off]",
        "whether corrections train your adapter",
        _learning,
        ("on", "off"),
        is_private=True,
    ),
    "metrics": CommandSpec(
        "/metrics", "figures about you and heed", _metrics, is_private=True, is_secret=True, is_table=True
    ),
    "privacy": CommandSpec("/privacy", "what heed keeps, and where", _privacy, is_private=True),
    "export": CommandSpec(
        "/export", "everything heed holds about you, as a file", _export, is_private=True, is_secret=True
    ),
    "forget": CommandSpec(
        "/forget everything", "erase everything heed holds about you", _forget, ("everything",), True
    ),
}


def _median(values: Iterable[float]) -> float:
    known = list(values)
    return statistics.median(known) if known else 0.0
