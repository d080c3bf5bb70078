"""People, and others, who do everything at once on a chat platform's contract server.

A crowd asks questions that are asked once each, corrects, edits, reacts, presses buttons of its own and of others,
gives commands, and sends what no platform sends. One person has everything erased now and then; that person's
questions are in no book.
"""

import copy
import itertools
import random
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol

from bot.commands.person import COMMANDS
from bot.platforms.discord.interactions import ELSEWHERE
from tests.contract.discord_server import DiscordServer
from tests.contract.discord_world import BOT, Channel, Interaction
from tests.contract.telegram_server import GROUP, Fault, TelegramServer, private
from tests.crash.history import about

Json = dict[str, Any]

IDEAL = "Bees."  # every answer of who was taught this is it, whatever they ask
_IS_IDEAL = re.compile(rf"(?:\w+[,:] )?{re.escape(IDEAL)}")  # asked for once more, it has an opening
WISHES = ("too long", "no emoji, please", "shorter", f"say it like this: {IDEAL}", "it was better before", "thanks!")
WORDS = (
    "",
    "1",
    "v2",
    "0",
    "on",
    "off",
    "none",
    "too long",
    "delete 1",
    "²",
    "9" * 40,
    "\u202eseeb",
    "a\x00b",
    "`*_[<&",
)
ACTIONS = (
    "up",
    "down",
    "fix",
    "again",
    "undo",
    "why:0",
    "why:9",
    "cancel",
    "learn:yes",
    "forget:no",
    "scope:x:y",
    "no",
)
ERASE = "forget:yes"
EMOJI = ("👎", "👍", "🤔", "❤")
JUNK: tuple[Any, ...] = (None, "x", [], {}, 1.5)
EMPTY_POLL = Fault(200, body=b'{"ok":true,"result":[]}')
SEEN = 20  # of heed's messages in a chat, the newest: what people correct, press and react to
KEPT = 200  # of what was delivered, the newest: more is not delivered again
ACTS = {
    "ask": 30, "ask in a group": 15, "correct": 8, "press": 12, "press anything": 5, "react": 8, "edit": 5,
    "command": 10, "malformed": 5, "repeat": 2,
}  # fmt: skip


class Crowd(Protocol):
    """The people of one platform. `asked` are the questions that must be answered, one time each."""

    asked: list[str]

    async def enter(self) -> None:
        """Say hello as every person, and let heed learn."""

    async def act(self, what: str) -> None:
        """Do one thing."""

    def shown(self) -> Counter[str]:
        """Return how often each question is answered on the platform."""

    async def command(self, name: str) -> list[Callable[[], int]]:
        """Give a command as every person. Return what counts the answers to each."""

    @property
    def num_unheard(self) -> int:
        """Events that heed has not taken yet."""


def broken(content: Any, draw: random.Random) -> Any:
    """Return a copy of some JSON in which one value, anywhere, is missing or of another kind."""
    made = copy.deepcopy(content)
    inside = made
    while True:
        key = draw.choice(list(inside))
        if isinstance(inside[key], dict) and inside[key] and draw.random() < 0.7:
            inside = inside[key]
        elif draw.random() < 0.3:
            del inside[key]
            return made
        else:
            inside[key] = draw.choice(JUNK)
            return made


def answers(texts: Iterable[str]) -> Counter[str]:
    """Return how often each question is answered in these texts, or any by IDEAL; a history answers none."""
    shown = [text for text in texts if not text.startswith("you ")]
    return Counter(filter(None, map(about, shown))) + Counter(IDEAL for text in shown if _IS_IDEAL.fullmatch(text))


def newest(messages: dict[Any, Json], is_heeds: Callable[[Json], bool]) -> list[Json]:
    """Return heed's newest messages of a chat, the newest last, without a look at all the others."""
    return [*itertools.islice(filter(is_heeds, reversed(messages.values())), SEEN)][::-1]


class TelegramCrowd:
    """See `Crowd`."""

    def __init__(self, server: TelegramServer, draw: random.Random, num_people: int) -> None:
        self.asked: list[str] = []
        self._server = server
        self._draw = draw
        self._people: list[Json] = [{"id": 1000 + n, "is_bot": False, "first_name": f"P{n}"} for n in range(num_people)]
        self._forgetful: Json = {"id": 2000, "is_bot": False, "first_name": "F"}
        self._said: deque[Json] = deque(maxlen=50)

    @property
    def num_unheard(self) -> int:
        """Events that heed has not taken yet."""
        return self._server.num_pending

    async def enter(self) -> None:
        """Say hello as every person, and let heed learn."""
        await self._server.polled.wait()
        for person in self._people:
            self._server.say("hello", sender=person)
        for person in self._people:
            chat = private(person)
            await self._server.until(lambda chat=chat: any(_actions(m) for m in self._server.shown(chat)))
            greeting = next(m for m in self._server.shown(chat) if "learn:yes" in _actions(m))
            self._server.press(chat, greeting["message_id"], "learn:yes", person)

    async def act(self, what: str) -> None:  # noqa: C901  one line for each act
        """Do one thing."""
        person, chat = self._draw.choice(self._people), self._draw.choice([GROUP, *map(private, self._people)])
        shown = newest(self._server.messages[self._server.meet(chat)["id"]], lambda m: m["from"] == self._server.me)
        match what:
            case "ask":
                self._said.append(self._server.say(self._question(), sender=person))
            case "ask in a group":
                self._server.say(f"@heed_bot {self._question()}", sender=person, chat=GROUP)
            case "correct" if shown:
                answer = self._draw.choice(shown)["message_id"]
                words = self._draw.choice(WISHES)
                self._said.append(self._server.say(words, sender=person, chat=chat, reply_to=answer))
            case "press" | "press anything" if shown:
                message = self._draw.choice(shown)
                actions = _harmless(_actions(message)) if what == "press" else ACTIONS
                if actions:
                    self._server.press(chat, message["message_id"], self._draw.choice(actions), person)
            case "react" if shown:
                self._server.react(chat, self._draw.choice(shown)["message_id"], [self._draw.choice(EMOJI)], (), person)
            case "edit" if self._said:
                self._server.edit(self._draw.choice(self._said), self._draw.choice(WISHES))
            case "command":
                self._give_command(person)
            case "malformed":
                self._send_broken(person)
            case "repeat":
                self._repeat()
        del self._server.calls[:]

    def shown(self) -> Counter[str]:
        """Return how often each question is answered on the platform."""
        chats = [GROUP, *map(private, self._people)]
        return answers(text for chat in chats for text in self._server.texts(chat))

    async def command(self, name: str) -> list[Callable[[], int]]:
        """Give a command as every person. Return what counts the answers to each."""
        counters = []
        for person in self._people:
            before = len(self._server.shown(private(person)))
            counters.append(partial(self._num_shown, private(person), before))
            self._server.say(f"/{name}", sender=person)
        return counters

    def _num_shown(self, chat: Json, before: int) -> int:
        return len(self._server.shown(chat)) - before

    def _question(self) -> str:
        self.asked.append(f"q{len(self.asked)}")
        return self.asked[-1]

    def _give_command(self, person: Json) -> None:
        if self._draw.random() < 0.1:
            words = self._draw.choice(["hello", "/forget", "/forget everything", "/notes", "/export"])
            self._server.say(words, sender=self._forgetful)
        else:
            name = self._draw.choice([*COMMANDS, "nonsense", "stats", "block 1000"])
            words = "" if name == "forget" else self._draw.choice(WORDS)
            self._server.say(f"/{name} {words}".strip(), sender=person)

    def _send_broken(self, person: Json) -> None:
        whole = self._server.say("junk", sender=person) if self._draw.random() < 0.1 else {}
        message = whole or {"message_id": 1, "date": 1, "chat": private(person), "from": person, "text": "/junk"}
        kind = self._draw.choice(["message", "edited_message", "callback_query", "message_reaction", "odd"])
        content = message if "message" in kind and kind != "message_reaction" else {"from": person, "message": message}
        self._server.emit(kind, broken(content, self._draw))

    def _repeat(self) -> None:
        """Deliver what was confirmed again, in another order, as if its confirmation was lost."""
        del self._server._confirmed[:-KEPT]
        self._server.shuffle(self._draw.randrange(2**31))
        self._server.fail("getUpdates", EMPTY_POLL)
        self._server.redeliver()


class DiscordCrowd:
    """See `Crowd`."""

    def __init__(
        self, server: DiscordServer, draw: random.Random, num_people: int, num_unheard: Callable[[], int]
    ) -> None:
        """`num_unheard` counts what was sent and is not in heed's inbox yet."""
        self.asked: list[str] = []
        self._num_unheard = num_unheard
        self._server = server
        self._draw = draw
        self._people = [(_user(3000 + n), server.dm(f"{5000 + n}")) for n in range(num_people)]
        self._forgetful = (_user(4000), server.dm("590"))
        self._said: deque[Json] = deque(maxlen=50)
        self._sent: deque[tuple[str, Json]] = deque(maxlen=KEPT)
        self._group = server.text()

    @property
    def num_unheard(self) -> int:
        """Events that heed has not taken yet."""
        return self._num_unheard()

    async def enter(self) -> None:
        """Say hello as every person, and let heed learn."""
        for user, channel in self._people:
            await self._server.say(channel, "hello", author=user)
        for user, channel in self._people:
            await self._server.until(lambda channel=channel: any("learn:yes" in _presses(m) for m in _mine(channel)))
            greeting = next(m for m in _mine(channel) if "learn:yes" in _presses(m))
            await self._server.press(greeting, "learn:yes", user=user)

    async def act(self, what: str) -> None:  # noqa: C901  one line for each act
        """Do one thing."""
        user, home = self._draw.choice(self._people)
        channel = self._draw.choice([self._group, *(channel for _, channel in self._people)])
        shown = newest(channel.messages, _is_mine)
        match what:
            case "ask":
                await self._ask(home, user, self._question())
            case "ask in a group":
                await self._ask(self._group, user, f"<@{BOT['id']}> {self._question()}")
            case "correct" if shown:
                words, answer = self._draw.choice(WISHES), self._draw.choice(shown)["id"]
                self._said.append(await self._server.say(channel, words, author=user, reply_to=answer))
            case "press" | "press anything" if shown:
                message = self._draw.choice(shown)
                actions = _presses(message) if what == "press" else ACTIONS
                if actions:
                    await self._server.press(message, self._draw.choice(actions), user=user)
            case "react" if shown:
                message, on = self._draw.choice(shown), self._draw.random() < 0.7
                await self._server.react(message, self._draw.choice(EMOJI), user=user, on=on)
            case "edit" if self._said:
                await self._server.edit(self._draw.choice(self._said), self._draw.choice(WISHES))
            case "command":
                await self._give_command(user, home)
            case "malformed":
                await self._send_broken(user, home)
            case "repeat" if self._sent:
                await self._server.sockets.send(*self._draw.choice(self._sent))
        del self._server.calls[:]

    def shown(self) -> Counter[str]:
        """Return how often each question is answered on the platform."""
        channels = [self._group, *(channel for _, channel in self._people)]
        return answers(m["content"] for channel in channels for m in _mine(channel))

    async def command(self, name: str) -> list[Callable[[], int]]:
        """Give a command as every person. Return what counts the answers to each."""
        given = [await self._server.command(channel, name, user=user) for user, channel in self._people]
        return [partial(self._num_answers, it) for it in given]

    def _num_answers(self, given: Interaction) -> int:
        first = self._server.world.channels[given.payload["channel_id"]].messages.get(given.original, {})
        return bool(first and not given.deleted and first["content"] != ELSEWHERE) + len(given.follow_ups)

    def _question(self) -> str:
        self.asked.append(f"q{len(self.asked)}")
        return self.asked[-1]

    async def _ask(self, channel: Channel, user: Json, text: str) -> None:
        message = await self._server.say(channel, text, author=user)  # never edited: heed may read it after the edit
        self._sent.append(("MESSAGE_CREATE", self._server._event(channel, message)))

    async def _give_command(self, user: Json, home: Channel) -> None:
        if self._draw.random() < 0.1:
            user, home = self._forgetful
            name, words = self._draw.choice([("forget", ""), ("forget", "everything"), ("notes", ""), ("export", "")])
        else:
            name = self._draw.choice([*COMMANDS, "nonsense", "stats"])
            words = "" if name == "forget" else self._draw.choice(WORDS)
        await self._server.command(home, name, words, user=user)

    async def _send_broken(self, user: Json, home: Channel) -> None:
        message = {"id": self._server.world.new_id(), "channel_id": home.id, "author": user, "content": "", "type": 0}
        event = self._draw.choice(["MESSAGE_CREATE", "MESSAGE_UPDATE", "MESSAGE_REACTION_ADD", "ODD"])
        await self._server.sockets.send(event, broken(message, self._draw))


def _user(number: int) -> Json:
    return {"id": str(number), "username": f"p{number}", "discriminator": "0", "global_name": f"P{number}"}


def _actions(message: Json) -> list[str]:
    rows = (message.get("reply_markup") or {}).get("inline_keyboard", [])
    return [button["callback_data"] for row in rows for button in row]


def _presses(message: Json) -> list[str]:
    return [button["custom_id"] for row in message["components"] for button in row["components"]]


def _harmless(actions: list[str]) -> list[str]:
    """Return what may be pressed at random: who erases themselves takes the answers that are counted with them."""
    return [action for action in actions if not action.endswith(ERASE)]


def _mine(channel: Channel) -> list[Json]:
    return [*filter(_is_mine, channel.messages.values())]


def _is_mine(message: Json) -> bool:
    return bool(message["author"]["id"] == BOT["id"])
