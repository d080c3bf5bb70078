"""`GET /admin/people` and one person: the tree of versions, the feedback that taught each, and the way back."""

import difflib
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from bot.core.gateway import question
from bot.errors import InvalidField
from bot.http.admin import access_log, paging, render
from bot.http.protocol import messages
from bot.http.protocol.app_keys import CORE
from storage.database import Session
from storage.learning import notes, versions
from storage.people import people
from storage.reports import admin_views, dashboards
from storage.tables import AdapterVersion, AdminView, Feedback, Note, UpdateRun, User

LIST_HEAD = ("person", "name", "accounts", "is_learning", "answers", "updates", "active_version", "last_version")
CSV_HEAD = ("version", "parent", "state", "created_at", "size_bytes", "kind", "taught_by", "update", "steps", "sha256")
MAX_VIEWS = 20
MAX_PAIRS = 20
SEEN = re.compile(r"([0-9]{1,18})-([0-9a-f]{0,32})")  # a place in the list
MAX_SEARCH_CHARS = 100


@dataclass(frozen=True)
class Branch:
    """A version in the tree; `depth` counts its ancestors plus one."""

    version: AdapterVersion
    taught: Feedback | None
    run: UpdateRun | None
    depth: int


async def page(request: web.Request) -> web.StreamResponse:
    """List people, the last seen first (`GET /admin/people?search=ana&after=`)."""
    if paging.wants_csv(request):
        return await paging.as_csv(request, "people", LIST_HEAD, _list_rows(request))
    after, words = request.query.get("after", ""), request.query.get("search", "").strip()[:MAX_SEARCH_CHARS]
    place = SEEN.fullmatch(after)
    if after and place is None:
        raise InvalidField(messages.NO_PLACE, "after")
    below = dashboards.Seen(int(place[1]), place[2]) if place else None
    found, following = await request.app[CORE].database.read(
        lambda s: dashboards.people_by_last_seen(s, paging.ROWS, words, below)
    )
    return render.page(
        request, "people.html", "People", found=found, following=following, is_first=not after, search=words
    )


async def one(request: web.Request) -> web.StreamResponse:
    """Show one person's versions, notes and recorded views (`GET /admin/people/{person}`)."""
    user_id = request.match_info["person"]
    user, lineage, live, views = await request.app[CORE].database.read(lambda s: _story(s, user_id))
    if user.is_learning:
        await access_log.record_view(request, user.id, "people", user.id)
    branches = tree(lineage)
    if paging.wants_csv(request):
        return await paging.as_csv(request, "versions", CSV_HEAD, _version_rows(user, branches))
    return render.page(
        request, "person.html", user.display_name or "A person", user=user, branches=branches, notes=live, views=views
    )


async def compare(request: web.Request) -> web.StreamResponse:
    """Show the same questions answered by two versions (`GET /admin/people/{person}/diff?first=1&second=2`)."""
    user_id = request.match_info["person"]
    first, second = _version(request.query.get("first", "")), _version(request.query.get("second", ""))
    user, found = await request.app[CORE].database.read(
        lambda s: (people.get(s, user_id), dashboards.pairs(s, user_id, first, second, MAX_PAIRS))
    )
    await access_log.record_view(request, user.id, "diff", f"v{first} v{second}")
    shown = [(question(before), changes(before.text, after.text), before, after) for before, after in found]
    return render.page(
        request, "diff.html", f"v{first} and v{second}", user=user, pairs=shown, first=first, second=second
    )


async def roll_back(request: web.Request) -> web.StreamResponse:
    """Make the form's `version` answer again (`POST /admin/people/{person}/rollback`)."""
    user_id = request.match_info["person"]
    version = _version(str((await request.post()).get("version", "")))
    await request.app[CORE].database.read(lambda s: people.get(s, user_id))
    await request.app[CORE].engine.rollback(user_id, version)
    return render.see_other(f"/admin/people/{user_id}")


async def export(request: web.Request) -> web.StreamResponse:
    """Send one version as a zip file (`GET /admin/people/{person}/adapters/{version}`)."""
    user_id, version = request.match_info["person"], _version(request.match_info["version"])
    await access_log.record_view(request, (await _person(request, user_id)).id, "export", f"v{version}")
    content = await request.app[CORE].engine.export_adapter(user_id, version)
    headers = {"Content-Disposition": f'attachment; filename="heed-adapter-v{version}.zip"', **render.HEADERS}
    return web.Response(body=content, content_type="application/zip", headers=headers)


def tree(lineage: versions.Lineage) -> list[Branch]:
    """Return the versions with their depths, newest first; an ancestor may have been deleted."""
    depths: dict[int, int] = {0: 0}
    branches = []
    for version, taught, run in reversed(lineage):
        depths[version.number] = depths.get(version.parent, 0) + 1
        branches.append(Branch(version, taught, run, depths[version.number]))
    return branches[::-1]


def changes(before: str, after: str) -> list[tuple[str, str]]:
    """Return a word-by-word diff of two texts: ("same" | "gone" | "new", words)."""
    old, new = re.findall(r"\s+|\S+", before), re.findall(r"\s+|\S+", after)
    found: list[tuple[str, str]] = []
    for kind, a, b, c, d in difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
        if kind == "equal":
            found.append(("same", "".join(old[a:b])))
            continue
        found += [(name, "".join(words)) for name, words in (("gone", old[a:b]), ("new", new[c:d])) if words]
    return found


def _version(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise InvalidField(messages.NO_VERSION_NUMBER, "version")
    return int(text)


def _story(s: Session, user_id: str) -> tuple[User, versions.Lineage, list[Note], list[AdminView]]:
    user = people.get(s, user_id)
    live = notes.live(s, user_id) if user.is_learning else []
    return user, versions.lineage(s, user_id), live, admin_views.recent(s, user_id, MAX_VIEWS)


async def _person(request: web.Request, user_id: str) -> User:
    return await request.app[CORE].database.read(lambda s: people.get(s, user_id))


async def _list_rows(request: web.Request) -> AsyncIterator[Sequence[Sequence[Any]]]:
    after: str | None = ""
    while after is not None:
        behind = after
        found, after = await request.app[CORE].database.read(
            lambda s: dashboards.people(s, paging.CSV_ROWS, behind)  # noqa: B023  it is awaited here
        )
        yield [
            (p.user.id, p.user.display_name, " ".join(p.accounts), p.user.is_learning, p.num_answers, p.num_updates,
             p.user.active_version, p.user.last_version)
            for p in found
        ]  # fmt: skip


async def _version_rows(user: User, branches: list[Branch]) -> AsyncIterator[Sequence[Sequence[Any]]]:
    yield [
        (b.version.number, b.version.parent, b.version.state, b.version.created_at, b.version.size_bytes,
         b.taught.kind if b.taught else "", b.taught.text if b.taught and user.is_learning else "",
         b.run.id if b.run else "", b.run.steps if b.run else "", b.version.sha256)
        for b in branches
    ]  # fmt: skip
