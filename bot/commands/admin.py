"""Slash commands of admins: figures, people, access, and everyone's updates.

Reached through `bot.commands.person.run` only, which tells anyone else that there is no such command. Names and
numbers of accounts are shown, never a word that a person wrote.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from bot.access.accounts import GUARDED
from bot.commands import consolidate, texts
from bot.commands.spec import CommandContext, CommandReply, CommandSpec
from bot.errors import InvalidField, NotFound
from bot.housekeeping.pause_file import PAUSE_FILE
from bot.monitoring import stats
from storage.errors import VersionNotFound, VersionStateError
from storage.learning import drift_audits
from storage.people import people
from storage.reports import statistics
from storage.reports.statistics import PersonStatistics
from storage.tables import UpdateRun, User

ACCOUNT = re.compile(r"(?:(telegram|discord):)?([0-9]{1,20})")
MAX_LINES = 30
CHART_NAME = "heed-stats.png"


async def _stats(context: CommandContext) -> CommandReply:
    now_s = time.time()
    figures = await stats.collect(context.core.database, now_s)
    picture = await _chart(context, now_s)
    paused = "\nLearning is paused; /resume goes on." if context.core.lessons.is_paused else ""
    return CommandReply(stats.words(figures) + paused, files=((CHART_NAME, picture),))


async def _chart(context: CommandContext, now_s: float) -> bytes:
    starts_s = [stats.day_start_s(now_s, offset) for offset in range(1 - stats.DAYS_IN_CHART, 2)]
    counts = await context.core.database.read(lambda s: statistics.per_day(s, starts_s))
    return await asyncio.to_thread(_draw, starts_s, counts)


def _draw(starts_s: list[float], counts: list[tuple[int, int]]) -> bytes:
    """Blocking: the first time it brings matplotlib along, which nothing else needs."""
    from bot.monitoring import chart

    dates = [datetime.fromtimestamp(start_s, UTC).date() for start_s in starts_s]
    return chart.draw([chart.Day(on, *pair) for on, pair in zip(dates, counts, strict=False)])


async def _users(context: CommandContext) -> CommandReply:
    access = context.core.access
    known = await context.core.database.read(lambda s: statistics.everybody(s, MAX_LINES))
    decided = [f"{row.platform}:{row.account}, {row.state} by {row.decided_by}" for row in await access.decided()]
    parts = {
        "people": [_person(person) for person in known],
        "waiting with a code (/pair)": await _waiting(context),
        "let in and shut out": decided[:MAX_LINES],
    }
    return CommandReply(
        "\n\n".join("\n".join([f"{name}:", *rows]) for name, rows in parts.items() if rows) or "No one yet."
    )


async def _allow(context: CommandContext) -> CommandReply:
    platform, account = _account(context, "/allow")
    await context.core.access.allow(platform, account, _name(context))
    return CommandReply(f"{platform}:{account} is let in.")


async def _block(context: CommandContext) -> CommandReply:
    platform, account = _account(context, "/block")
    await context.core.access.block(platform, account, _name(context))
    return CommandReply(f"{platform}:{account} is blocked. /allow {platform}:{account} lets it in again.")


async def _pair(context: CommandContext) -> CommandReply:
    if not context.argument:
        waiting = await _waiting(context)
        return CommandReply("\n".join(["Waiting with a code:", *waiting]) if waiting else "No one is waiting.")
    paired = await context.core.access.pair(context.argument, _name(context))
    return CommandReply(f"{paired.display_name or 'The account'} ({paired.platform}:{paired.account}) is let in.")


async def _pause(context: CommandContext) -> CommandReply:
    await context.core.lessons.pause()
    return CommandReply("Learning is paused. Answers go on; corrections are kept and wait for /resume.")


async def _consolidate(context: CommandContext) -> CommandReply:
    return CommandReply(
        texts.consolidated(await consolidate.consolidate(context.core, await _whose(context, "/consolidate")))
    )


async def _rebuild(context: CommandContext) -> CommandReply:
    return CommandReply(texts.consolidated(await consolidate.rebuild(context.core, await _whose(context, "/rebuild"))))


async def _whose(context: CommandContext, command: str) -> str:
    """Return the id of the person whose account a command names, or of anyone who says it."""
    return (await _known(context, command, context.argument)).id if context.argument else context.user_id


async def _resume(context: CommandContext) -> CommandReply:
    if context.core.lessons.is_paused_by_file:
        raise InvalidField(f"The file {PAUSE_FILE} in heed's data directory keeps learning paused. Remove it.", "text")
    number = await context.core.lessons.resume()
    return CommandReply(f"Learning goes on; {texts.count(number, 'correction')} waited.")


async def rollback(context: CommandContext) -> CommandReply:
    """/rollback with an account, which `person` hands on where an admin says it: of that person's adapter."""
    words = context.argument.split()
    if not re.fullmatch(r"v?[0-9]{1,9}", words[1]):
        raise InvalidField(texts.ROLLBACK_NEEDS_ACCOUNT, "text")
    user = await _known(context, "/rollback", words[0])
    try:
        version = await context.core.engine.rollback(user.id, int(words[1].removeprefix("v")))
    except (VersionNotFound, VersionStateError) as error:
        raise NotFound(f"{texts.sentence(str(error))} /adapters lists everyone's versions.", "text") from error
    whom = ":".join(_account(context, "/rollback", words[0]))
    model = f"Version {version}" if version else "The untrained model"
    return CommandReply(f"{model} answers {whom} from now on.")


async def _adapters(context: CommandContext) -> CommandReply:
    known = await context.core.database.read(lambda s: statistics.everybody(s, MAX_LINES))
    total = await context.core.database.read(statistics.adapters)
    lines = [_adapter(person) for person in known if person.num_versions]
    head = ", ".join(
        [
            texts.count(total.num_people, "adapter"),
            texts.count(total.num_versions, "version"),
            stats.size(total.size_bytes),
        ]
    )
    return CommandReply("\n".join([head, *lines]))


async def _updates(context: CommandContext) -> CommandReply:
    queue = await context.core.database.read(statistics.queue)
    recent = await context.core.database.read(lambda s: statistics.recent_updates(s, MAX_LINES))
    state = "paused" if context.core.lessons.is_paused else "running"
    return CommandReply(
        "\n".join(
            [
                f"Learning is {state}; {texts.count(queue.length, 'lesson')} waiting.",
                *(_update(*pair) for pair in recent),
            ]
        )
    )


async def _waiting(context: CommandContext) -> list[str]:
    waiting = await context.core.access.waiting()
    return [f"{row.display_name or '?'}, {row.platform}:{row.account}" for row in waiting]


def _person(person: PersonStatistics) -> str:
    user = person.user
    last = _when(person.last_at_s) if person.last_at_s else "never"
    learning = f"learning, v{user.active_version}" if user.is_learning else "not learning"
    return f"{_who(person)}: {texts.count(person.num_answers, 'answer')}, last {last}; {learning}"


def _adapter(person: PersonStatistics) -> str:
    size = stats.size(person.size_bytes)
    return f"{_who(person)}: v{person.user.active_version}, {texts.count(person.num_versions, 'version')}, {size}"


def _who(person: PersonStatistics) -> str:
    return f"{person.user.display_name or '?'} ({', '.join(person.accounts)})"


def _update(run: UpdateRun, user: User) -> str:
    made = f", v{run.version}" if run.version is not None else ""
    trained = f", {run.steps} steps" if run.steps else ""
    took = "" if run.status == "running" else f" in {stats.seconds(run.duration_ms / 1000)}"
    why = f" ({run.error})" if run.kind == drift_audits.KIND and run.error else ""
    return f"{_when(run.started_at)} {user.display_name or '?'}: {run.kind} {run.status}{why}{took}{trained}{made}"


def _when(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%d %b %H:%M UTC")


async def _known(context: CommandContext, command: str, text: str) -> User:
    """Return the person behind an account that a command names."""
    platform, account = _account(context, command, text)
    user = await context.core.database.read(lambda s: people.find(s, platform, account))
    if user is None:
        raise NotFound(f"heed does not know {platform}:{account}. /users lists everyone.", "text")
    return user


def _account(context: CommandContext, command: str, text: str | None = None) -> tuple[str, str]:
    """Return the platform and number in "telegram:123", or in "123" if the command was said on a platform."""
    match = ACCOUNT.fullmatch(context.argument if text is None else text)
    own = context.place.platform if context.place.platform in GUARDED else None
    platform = (match[1] or own) if match else None
    if match is None or platform is None:
        raise InvalidField(f"Write an account by its number: {command} telegram:123", "text")
    return platform, match[2]


def _name(context: CommandContext) -> str:
    """Return who decided, as it is kept."""
    is_local = context.author.platform not in GUARDED
    return "operator" if is_local else f"{context.author.platform}:{context.author.account}"


def _spec(usage: str, summary: str, handler: Callable[[CommandContext], Awaitable[CommandReply]]) -> CommandSpec:
    return CommandSpec(usage, summary, handler, is_private=True, is_secret=True)


# No command of its own: /rollback is everyone's, and an admin may name an account.
ROLLBACK = _spec("/rollback <account> <version>", "let an earlier version of that person's adapter answer", rollback)
COMMANDS: dict[str, CommandSpec] = {
    "stats": _spec("/stats", "figures about everyone, with a chart", _stats),
    "users": _spec("/users", "who talks to heed, who waits, who was let in", _users),
    "allow": _spec("/allow <account>", "let an account in", _allow),
    "block": _spec("/block <account>", "block an account", _block),
    "pair": _spec("/pair <code>", "let in the person who was shown this code", _pair),
    "pause": _spec("/pause", "learn nothing for now; corrections wait", _pause),
    "resume": _spec("/resume", "learn again, what waited first", _resume),
    "consolidate": _spec("/consolidate [account]", "take in now what a person has said, or you", _consolidate),
    "rebuild": _spec("/rebuild [account]", "make a person's adapter again from zero, or yours", _rebuild),
    "adapters": _spec("/adapters", "everyone's adapters, with versions and sizes", _adapters),
    "updates": _spec("/updates", "what was learned lately, and what waits", _updates),
}
