"""Feedback: what a reply, an edit, a reaction, a button or a command says about an answer, as one record.

One pure mapping, shared by every platform; it never touches storage or the engine.

    reply, /feedback text            correction          trains at once
    "say it like this: ...", edit    ideal               trains at once
    thumb down with a reason         correction          trains at once
    thumb down alone                 reaction "-1"       kept, and the person is asked for a reason
    "it was better before"           reaction "worse"    the same (bot.core.probation): it names no wish to learn
    thumb up, approve                approval            kept for rehearsal, gates and evaluation
    another emoji                    reaction            kept, means nothing by itself
    /note text                       note                a standing note, in the prompt at once
"""

import re
from dataclasses import dataclass

from bot.core.rewrites import ideal_text
from bot.errors import InvalidField
from bot.events import Command, Edit, FeedbackEvent, Press, Reaction, Reply
from storage.kinds import TAUGHT_AT_ONCE, FeedbackKind, Scope
from storage.learning.signals import NEGATIVE as NEGATIVE  # what consolidations count is what people are asked about

REASONS = ("too long", "too short", "no emoji, please", "not what I asked", "it is wrong", "friendlier, please")
ASK_REASON = "What should be different?"
MAX_WORSE_CHARS = 80
ASK_WORSE = f"{ASK_REASON} /undo takes back what I learned last."
WORSE = "worse"  # the value of a reaction that says in words that it was better before

POSITIVE = frozenset(
    ["👍", "❤", "💯", "🎉", "👏", "🔥", "😍", "🥰", "🙏", "👌", "✅", "⭐", "🤩", "😊", "🙌", "🏆"]
) | {"+1", "1"}

_MUCH = r"(?:(?:so |very )?much |way |even |far |a lot |a bit |definitely )?"
_WORSE = re.compile(
    rf"(?:(?:no|nope|sorry|please|hm+|ok(?:ay)?|well)[ ,.]+)?(?:"
    rf"(?:(?:that|this|it|the answer)(?: is|'s| was| got| has got(?:ten)?| became)? |you (?:are|were|got) |you're )?"
    rf"{_MUCH}worse(?: now| than (?:before|it was(?: before)?|the last (?:one|time)|the (?:old|previous) one))?"
    rf"|(?:(?:it|this|that|you|they|(?:the |your )?answers?) (?:was|were) )?{_MUCH}better (?:before|earlier|previously)"
    rf"|(?:i )?(?:liked|preferred) (?:it|that|you|them) (?:{_MUCH}better |more )?before"
    rf"|(?:(?:can|could) you )?(?:please )?(?:go|change(?: it)?|switch(?: it)?) back"
    rf"(?: to (?:before|how (?:it|you) (?:was|were)(?: before)?|the (?:old|previous) (?:one|way|version)))?"
    rf")(?:[ ,]+please)?",
    re.IGNORECASE,
)
_SKIN_AND_VARIANT = re.compile("[\U0001f3fb-\U0001f3ff\ufe0e\ufe0f]")


@dataclass(frozen=True)
class FeedbackRecord:
    """One piece of feedback as storage and the engine know it. `text` is in the person's own words."""

    kind: FeedbackKind
    completion_id: str | None
    text: str = ""
    value: str = ""  # a reaction's emoji, "+1" / "-1", or WORSE
    scope: Scope | None = None  # the person's own word on how far it reaches, if they said
    context: tuple[str, ...] = ()  # told with it, for the teacher of this answer alone

    @property
    def is_lesson(self) -> bool:
        """True if the engine must act on it now (correction, ideal, note)."""
        return self.kind in (*TAUGHT_AT_ONCE, FeedbackKind.NOTE)

    @property
    def is_approval(self) -> bool:
        """True if the answer becomes approved."""
        return self.kind == FeedbackKind.APPROVAL

    @property
    def wants_reason(self) -> bool:
        """True for a bare thumb down or its like: the person is asked what should be different."""
        return self.kind == FeedbackKind.REACTION and self.value in NEGATIVE | {WORSE}

    @property
    def question(self) -> str:
        """The question for the person, if there is one."""
        return (ASK_WORSE if self.value == WORSE else ASK_REASON) if self.wants_reason else ""


def is_regression(text: str) -> bool:
    """Return True if the words say that it was better before, and nothing else."""
    plain = " ".join(text.replace("\u2019", "'").split()).rstrip(" .!?:()")
    return len(plain) <= MAX_WORSE_CHARS and _WORSE.fullmatch(plain) is not None


def record(event: FeedbackEvent) -> FeedbackRecord:
    """Map an event to the feedback it is. Raises InvalidField if it says nothing."""
    match event:
        case Reply(completion_id, text):
            return _from_words(completion_id, text)
        case Edit(completion_id, text):
            return FeedbackRecord(FeedbackKind.IDEAL, completion_id, _words(text))
        case Reaction(completion_id, emoji, reason):
            return _from_reaction(completion_id, emoji, reason)
        case Press(completion_id, "approve"):
            return FeedbackRecord(FeedbackKind.APPROVAL, completion_id)
        case Command("feedback", text, str(completion_id)):
            return _from_words(completion_id, text)
        case Command("note", text):
            return FeedbackRecord(FeedbackKind.NOTE, event.completion_id, _words(text))
    raise InvalidField(f"{type(event).__name__} is no feedback about an answer.", "kind")


def plain_emoji(emoji: str) -> str:
    """Return an emoji without skin tone and variant, as `POSITIVE` and `NEGATIVE` list it."""
    return _SKIN_AND_VARIANT.sub("", emoji.strip())


def _words(text: str) -> str:
    if not text.strip():
        raise InvalidField("The text is empty. Say in a few words what should be different.", "text")
    return text.strip()


def _from_words(completion_id: str, text: str) -> FeedbackRecord:
    rewritten = ideal_text(text)
    if rewritten:
        return FeedbackRecord(FeedbackKind.IDEAL, completion_id, rewritten)
    if is_regression(text):
        return FeedbackRecord(FeedbackKind.REACTION, completion_id, _words(text), WORSE)
    return FeedbackRecord(FeedbackKind.CORRECTION, completion_id, _words(text))


def _from_reaction(completion_id: str, emoji: str, reason: str) -> FeedbackRecord:
    value = plain_emoji(emoji)
    if not value:
        raise InvalidField("A reaction needs a value: an emoji, +1 or -1.", "value")
    if value in POSITIVE:
        return FeedbackRecord(FeedbackKind.APPROVAL, completion_id, reason.strip(), value)
    if reason.strip():
        words = _from_words(completion_id, reason)
        return words if words.value else FeedbackRecord(words.kind, completion_id, words.text, value)
    return FeedbackRecord(FeedbackKind.REACTION, completion_id, "", value)
