"""People who talk to heed on Telegram; the server redelivers what was confirmed, and reorders what it delivers."""

import json
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from tests.contract.telegram_server import TelegramServer, private
from tests.crash.history import History, about
from tests.crash.side import NUM_PEOPLE, OPINION, Json, choose

REDELIVERED = 60  # of what was confirmed, the newest: Telegram forgets, too


class TelegramSide:
    """See `tests.crash.side`."""

    def __init__(self, server: TelegramServer, random_: random.Random) -> None:
        self.history = History()
        self._server = server
        self._random = random_
        self._people: list[Json] = [
            {"id": 1000 + number, "is_bot": False, "first_name": f"P{number}"} for number in range(NUM_PEOPLE)
        ]

    @property
    def environment(self) -> dict[str, str]:
        """Return the settings that switch the platform on."""
        return {"TELEGRAM_BOT_TOKEN": self._server.token, "HEED_TELEGRAM_API_BASE": self._server.url}

    @property
    def num_calls(self) -> int:
        """Requests heed has made so far."""
        return len(self._server.calls)

    def num_pending(self, kept: Json) -> int:
        """Updates that heed has not confirmed."""
        return self._server.num_pending

    async def consent(self) -> None:
        """Everybody says hello and lets heed learn."""
        for person in self._people:
            self._ask(person)
        for person in self._people:
            chat = private(person)
            await self._server.until(lambda chat=chat: self._with_button(chat, "learn:yes"))
            self._server.press(chat, self._with_button(chat, "learn:yes")[0]["message_id"], "learn:yes", person)
            await self._server.until(lambda chat=chat: any("learning is on" in t for t in self._server.texts(chat)))

    async def act(self) -> None:
        """Do one random thing as a person."""
        person = self._random.choice(self._people)
        answers = self._with_button(private(person), "up")
        what = choose(self._random, has_answers=bool(answers))
        if what == "ask":
            self._ask(person)
        else:
            self._feed_back(person, self._random.choice(answers[-5:]), what)

    def disturb(self) -> None:
        """Deliver the newest of what was confirmed again, in a random order."""
        self._server._confirmed = self._server._confirmed[-REDELIVERED:]
        self._server.redeliver()
        self._server.shuffle(self._random.randrange(2**31))
        self._server.polled.clear()

    def calm(self) -> None:
        """Deliver in order."""
        self._server.shuffle(None)
        self._server.polled.clear()

    async def connected(self) -> None:
        """Wait until heed asks for updates."""
        await self._server.polled.wait()

    async def until(self, is_true: Callable[[], object]) -> None:
        """Wait until something holds."""
        await self._server.until(is_true)

    def account_for(self, taken: set[str]) -> None:
        """Telegram loses nothing."""

    def shown(self) -> list[str]:
        """Every text of heed's that is shown."""
        return [text for person in self._people for text in self._server.texts(private(person))]

    def _ask(self, person: Json) -> None:
        question = f"q{len(self.history.questions)}"
        self.history.questions.append(question)
        self._server.say(question, sender=person)

    def _feed_back(self, person: Json, answer: Json, what: str) -> None:
        chat, message_id, question = private(person), answer["message_id"], about(answer["text"])
        match what:
            case "correct":
                self._server.say(OPINION, sender=person, reply_to=message_id)
            case "react":
                self._server.react(chat, message_id, ["👎"], sender=person)
            case _:
                self._server.press(chat, message_id, what, person)
        if what in ("correct", "again"):
            self.history.repeats_wanted.append(question)
        if what in ("down", "react"):
            self.history.complaints.append(question)
        if what != "again":
            self.history.feedback_given.append(str(self._server._next_update))

    def _with_button(self, chat: Json, action: str) -> list[Json]:
        return [message for message in self._server.shown(chat) if action in json.dumps(message.get("reply_markup"))]


@asynccontextmanager
async def telegram(random_: random.Random) -> AsyncIterator[TelegramSide]:
    """A Telegram for one run."""
    async with TelegramServer() as server:
        yield TelegramSide(server, random_)
