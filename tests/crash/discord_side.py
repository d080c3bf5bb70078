"""People who talk to heed on Discord, half of them in private, half of them each in a channel of a server.

What counts is what Discord itself redelivers. A session outlives the socket of a heed that was killed, and what that
heed had not seen is replayed to the next one that resumes it: messages, reactions and presses, also from people heed
never met. Where Discord has dropped the session (`forgets`), messages and reactions in chats that heed can know of are
in their history; a press that heed had not stored, and the first words in a private chat that nobody has spoken in
before, are lost by Discord, as no bot can ask for either. Those count only where heed took them.
"""

import json
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from bot.platforms.discord.events import mark_of
from bot.platforms.discord.resume import KEY, Position
from tests.contract.discord_server import DiscordServer
from tests.contract.discord_world import BOT, DM, TOKEN, Channel, Interaction
from tests.crash.history import History, about
from tests.crash.side import NUM_PEOPLE, OPINION, Json, choose

THUMB = "👎"
NEWCOMERS = 0.05  # of all acts: a person heed never met says something
FORGOTTEN = 0.5  # of all lives: the session is dropped before


@dataclass
class Person:
    """A person and the channel in which they talk to heed."""

    user: Json
    channel: Channel

    def words(self, text: str) -> str:
        """A text as it reaches heed there."""
        return text if self.channel.kind == DM else f"<@{BOT['id']}> {text}"


@dataclass(frozen=True)
class Doubtful:
    """Something that Discord may have lost: its update id, and what is expected where heed took it."""

    update_id: str
    expected: list[str]
    what: str


class DiscordSide:
    """See `tests.crash.side`."""

    def __init__(self, server: DiscordServer, random_: random.Random, *, forgets: bool) -> None:
        self.history = History()
        self._server = server
        self._random = random_
        self._forgets = forgets
        self._people: list[Person] = []
        self._num_questions = 0
        self._doubtful: list[Doubtful] = []

    @property
    def environment(self) -> dict[str, str]:
        """Return the settings that switch the platform on."""
        return {"DISCORD_BOT_TOKEN": TOKEN, "HEED_DISCORD_API_BASE": self._server.api_base} | {
            "HEED_DISCORD_TRAINING_PERMISSION": "a test"
        }

    @property
    def num_calls(self) -> int:
        """Requests heed has made so far."""
        return len(self._server.calls)

    def num_pending(self, kept: Json) -> int:
        """Events of the newest session that heed has not noted as committed."""
        newest = next(reversed(self._server.sockets.sessions.values()), None)
        noted = Position(**kept.get(f"{KEY}{BOT['id']}", {}))
        if newest is None or newest.id != noted.session_id:
            return 1
        return newest.sequence - noted.sequence

    async def consent(self) -> None:
        """Everybody says hello and lets heed learn."""
        await self.connected()
        for _ in range(NUM_PEOPLE):
            await self._arrive()
        for person in self._people:
            await self.until(lambda person=person: self._with_button(person, "learn:yes"))
            greeting = self._with_button(person, "learn:yes")[0]
            pressed = await self._server.press(greeting, "learn:yes", user=person.user)
            await self.until(
                lambda person=person, pressed=pressed: any("learning is on" in t for t in self._told(person, pressed))
            )

    async def act(self) -> None:
        """Do one random thing as a person."""
        person = self._random.choice(self._people[:NUM_PEOPLE])
        answers = self._with_button(person, "up")
        what = choose(self._random, has_answers=bool(answers))
        if self._random.random() < NEWCOMERS:
            await self._arrive()
        elif what == "ask":
            await self._ask(person)
        else:
            await self._feed_back(person, self._random.choice(answers[-5:]), what)

    def disturb(self) -> None:
        """Keep no session but the newest, and that one not always."""
        self.calm()
        if self._forgets and self._random.random() < FORGOTTEN:
            self._server.sockets.forget()

    def calm(self) -> None:
        """The newest session alone can be resumed; the order is kept anyway."""
        sessions = self._server.sockets.sessions
        for old in list(sessions)[:-1]:
            del sessions[old]
        for session in sessions.values():
            session.line = None  # the server may not have noticed yet that the client is gone

    async def connected(self) -> None:
        """Wait until a heed is connected."""
        await self.until(lambda: self._server.sockets.is_connected)

    async def until(self, is_true: Callable[[], object]) -> None:
        """Wait until something holds."""
        await self._server.until(is_true)

    def account_for(self, taken: set[str]) -> None:
        """In place: of what Discord may have lost expect what heed took."""
        for act in [act for act in self._doubtful if act.update_id in taken]:
            act.expected.append(act.what)
            self._doubtful.remove(act)

    def shown(self) -> list[str]:
        """Every text of heed's that is shown."""
        return [text for person in self._people for text in self._server.said(person.channel)]

    async def _arrive(self) -> None:
        number = len(self._people)
        user = {"id": str(1000 + number), "username": f"p{number}", "discriminator": "0", "avatar": None}
        channel = self._server.dm(f"5{number}") if number % 2 else self._server.text(f"6{number}")
        self._people.append(Person(user, channel))
        await self._ask(self._people[-1], is_found=channel.kind != DM)

    async def _ask(self, person: Person, *, is_found: bool = True) -> None:
        question = f"q{self._num_questions}"
        self._num_questions += 1
        can_lose = self._can_lose and not is_found
        said = await self._server.say(person.channel, person.words(question), author=person.user)
        self._expect(f"m:{said['id']}", self.history.questions, question, can_lose=can_lose)

    async def _feed_back(self, person: Person, answer: Json, what: str) -> None:
        match what:
            case "correct":
                await self._correct(person, answer)
            case "react":
                await self._react(person, answer)
            case _:
                await self._press(person, answer, what)
        if what in ("down", "react"):
            self.history.complaints.append(about(answer["content"]))

    async def _correct(self, person: Person, answer: Json) -> None:
        said = await self._server.say(person.channel, OPINION, author=person.user, reply_to=answer["id"])
        self.history.feedback_given.append(f"m:{said['id']}")
        self.history.repeats_wanted.append(about(answer["content"]))

    async def _react(self, person: Person, answer: Json) -> None:
        if not answer.get("_reactions"):
            mark = mark_of(answer["id"], person.user["id"])
            self.history.feedback_given.append(f"r:add:{answer['id']}:{mark}:{THUMB}:1")
            await self._server.react(answer, THUMB, user=person.user)

    async def _press(self, person: Person, answer: Json, action: str) -> None:
        can_lose = self._can_lose
        pressed = await self._server.press(answer, action, user=person.user)
        update_id = f"i:{pressed.payload['id']}"
        if action == "again":
            self._expect(update_id, self.history.repeats_wanted, about(answer["content"]), can_lose=can_lose)
        else:
            self._expect(update_id, self.history.feedback_given, update_id, can_lose=can_lose)

    @property
    def _can_lose(self) -> bool:
        """Return True if Discord may drop the only session that hears current events, or has none."""
        return self._forgets or not self._server.sockets.sessions

    def _expect(self, update_id: str, expected: list[str], what: str, *, can_lose: bool) -> None:
        if can_lose:
            self._doubtful.append(Doubtful(update_id, expected, what))
        else:
            expected.append(what)

    def _told(self, person: Person, pressed: Interaction) -> list[str]:
        """Return what a person reads after a press: in the chat, and shown to them alone."""
        return self._server.said(person.channel) + [str(message["content"]) for message in pressed.follow_ups]

    def _with_button(self, person: Person, action: str) -> list[Json]:
        messages = list(person.channel.messages.values())
        return [message for message in messages if f'"{action}"' in json.dumps(message["components"])]


@asynccontextmanager
async def discord(random_: random.Random, *, forgets: bool = False) -> AsyncIterator[DiscordSide]:
    """A Discord for one run."""
    server = DiscordServer()
    await server.start()
    try:
        yield DiscordSide(server, random_, forgets=forgets)
    finally:
        await server.stop()
