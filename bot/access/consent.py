"""Consent to learning: the greeting that asks, the record of what a person said, and the way back.

Invariants: on Telegram and Discord learning is off until a person's own yes; every step is kept with the version of
the wording that was shown, the place and the time; on Discord nothing is learned unless the operator has said where
Discord's permission to train is written; withdrawing removes what was learned, examples and adapter.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bot.channel import Button, Rows
from bot.config import Settings
from bot.events import Place
from storage.database import Database
from storage.kinds import ConsentChoice
from storage.people import consent as steps
from storage.tables import Consent as Step

if TYPE_CHECKING:
    from engine.engine import Engine

WORDING = "1"  # of the greeting below: a new number asks everybody again
WORDING_NO_TRAINING = "1-no-training"  # where heed may not learn on that platform: asked again once it may
KNOWN_PEOPLE = 10_000  # whose greeting is remembered without asking storage

GREETING = """Hello, I am heed. I answer, and I learn from being corrected: reply to an answer and say what was wrong, \
or use the buttons below it. /help lists what else I do.

What I keep: your messages to me, my answers, your feedback and your notes, on the machine I run on. \
"""
NOTHING_SENT = "Nothing is sent anywhere else.\n"
SENT = """If you say yes to learning, a conversation whose answer was not good may be sent to {host} with your notes, \
where another model writes a better answer for me to learn from. Nothing else is sent anywhere.
"""
QUESTION = """
What I learn, if you say yes: what you say about my answers trains an adapter that is yours alone. Nobody else's \
answers change, and nobody else's words train it. /learning off takes it back and removes what was learned; /privacy \
says more, /export gives you all of it, /forget erases it.

May I learn from your corrections?"""
NO_TRAINING = """
I do not learn here: on Discord that needs Discord's permission, and this heed's operator has set none. Your notes \
(/note) work all the same. /privacy says more, /export gives you all of it, /forget erases it."""
ASK: Rows = ((Button("Learn from me", "learn:yes"), Button("Just chat", "learn:no")),)
CONFIRM: Rows = ((Button("Turn off and remove", "learn:withdraw"), Button("Keep learning", "learn:keep")),)

LEARNING = "Thank you: learning is on. Correct me whenever an answer is not right; /undo takes back the last lesson."
NOT_LEARNING = "Learning is off; I only chat. Your notes (/note) work all the same. /learning on changes that."
REALLY = """This turns learning off and removes what you taught me: your feedback, the notes that came from it, and \
your adapter. Notes you wrote with /note stay. Do you want that?"""
WITHDRAWN = "Learning is off, and what you taught me is removed. Notes you wrote with /note stay; /forget erases all."
FOLLOW_UPS = "What you write next after an answer may be learned from, too, where it says something about the answer."
NO_FOLLOW_UPS = "Only what you say about answers is learned from; your ordinary next messages are not."
NOT_PERMITTED = "Nothing is learned on Discord: this heed's operator has no permission of Discord's to train."


@dataclass(frozen=True)
class Notice:
    """Something to show: a text and perhaps buttons."""

    text: str
    rows: Rows = ()


class ConsentFlow:
    """Asks, keeps what was said, and takes learning back."""

    def __init__(self, database: Database, engine: "Engine", settings: Settings) -> None:
        self._database = database
        self._engine = engine
        self._discord = settings.discord
        self._teacher_host = urlsplit(settings.curriculum.url).hostname or ""
        self._greeted: dict[str, None] = {}

    async def start(self) -> None:
        """Apply the operator's permission and finish withdrawals: after the engine started, before any message."""
        is_permitted = self.is_permitted("discord")
        await self._database.write(lambda s: steps.enforce(s, "discord", is_permitted=is_permitted))
        for user_id in await self._database.read(steps.unfinished_withdrawals):
            await self._engine.unlearn(user_id)

    def is_permitted(self, platform: str) -> bool:
        """Return True if heed may learn on a platform at all."""
        return platform != "discord" or bool(self._discord.training_permission.strip())

    async def needs_greeting(self, user_id: str) -> bool:
        """Return true for a person who was never asked, or not in today's words."""
        if user_id in self._greeted:
            return False
        last = await self._database.read(lambda s: steps.newest(s, user_id))
        if last is None or not self._is_todays(last):
            return True
        self._remember(user_id)
        return False

    def _is_todays(self, step: Step) -> bool:
        """Return True if what was shown says all that today's words say."""
        if self._teacher_host and not step.wording.endswith(steps.SENT_OUT):
            return False
        todays = self._wording(step.platform).removesuffix(steps.SENT_OUT)
        return step.wording.removesuffix(steps.SENT_OUT) in (WORDING, todays)

    @property
    def where(self) -> str:
        """One sentence that says what leaves this machine."""
        return SENT.format(host=self._teacher_host) if self._teacher_host else NOTHING_SENT

    def greeting(self, platform: str) -> Notice:
        """Return what to say at the first contact; `record` that it was shown with ConsentChoice.ASKED."""
        if not self.is_permitted(platform):
            return Notice(GREETING + self.where + NO_TRAINING)
        return Notice(GREETING + self.where + QUESTION, ASK)

    async def record(self, user_id: str, choice: ConsentChoice, place: Place) -> Step:
        """Keep one step and turn learning on or off with it. Asking a person again changes nothing for them."""
        is_permitted = self.is_permitted(place.platform)
        step = Step(
            user_id=user_id,
            choice=choice,
            wording=self._wording(place.platform),
            platform=place.platform,
            place=place.external_id,
        )
        row = await self._database.write(lambda s: steps.record(s, step, is_permitted=is_permitted))
        self._remember(user_id)
        return row

    async def choose(self, user_id: str, word: str, place: Place) -> Notice:
        """Do what a button "learn:<word>" means, and return what to say. `word`: yes, no, withdraw, keep."""
        if word == "yes" and not self.is_permitted(place.platform):
            return Notice(NOT_PERMITTED)
        if word == "yes":
            await self.record(user_id, ConsentChoice.YES, place)
            return Notice(LEARNING)
        if word == "withdraw":
            return await self.withdraw(user_id, place)
        return await self._declined(user_id, word, place)

    async def withdraw(self, user_id: str, place: Place) -> Notice:
        """Turn learning off and remove what was learned; cut short, it is finished at the next start."""
        await self.record(user_id, ConsentChoice.WITHDRAWN, place)
        await self._engine.unlearn(user_id)
        return Notice(WITHDRAWN)

    async def choose_follow_ups(self, user_id: str, place: Place, *, is_allowed: bool) -> Notice:
        """Record if ordinary next messages may be learned from, and return the confirmation to show."""
        choice = ConsentChoice.FOLLOW_UPS if is_allowed else ConsentChoice.NO_FOLLOW_UPS
        wording = self._wording(place.platform)
        step = Step(user_id=user_id, choice=choice, wording=wording, platform=place.platform, place=place.external_id)
        await self._database.write(lambda s: steps.set_follow_ups(s, step))
        return Notice(FOLLOW_UPS if is_allowed else NO_FOLLOW_UPS)

    async def _declined(self, user_id: str, word: str, place: Place) -> Notice:
        is_given = await self._database.read(lambda s: steps.is_given(s, user_id))
        if is_given and word == "no":
            return Notice(REALLY, CONFIRM)
        if is_given:
            return Notice(LEARNING)
        if word == "no":
            await self.record(user_id, ConsentChoice.NO, place)
        return Notice(NOT_LEARNING)

    def _wording(self, platform: str) -> str:
        wording = WORDING if self.is_permitted(platform) else WORDING_NO_TRAINING
        return wording + steps.SENT_OUT if self._teacher_host else wording

    def _remember(self, user_id: str) -> None:
        self._greeted[user_id] = None
        while len(self._greeted) > KNOWN_PEOPLE:
            del self._greeted[next(iter(self._greeted))]
