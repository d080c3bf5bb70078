"""What a reply, an edit, a reaction, a button or a command says about an answer.

One pure mapping (DESIGN section 3), shared by every platform; it never touches storage or the engine.

    reply, /feedback text            correction          trains at once
    "say it like this: ...", edit    ideal               trains at once
    thumb down with a reason         correction          trains at once
    thumb down alone                 reaction "-1"       kept, and the person is asked for a reason
    thumb up, approve                approval            kept: gold for replay, gates and evaluation
    another emoji                    reaction            kept, means nothing by itself
    /note text                       note                a standing note, in the prompt at once
"""

import re
from dataclasses import dataclass

from bot.errors import InvalidField
from bot.events import Command, Edit, FeedbackEvent, Press, Reaction, Reply
from storage.tables import FeedbackKind

REASONS = ("too long", "too short", "no emoji, please", "not what I asked", "it is wrong", "friendlier, please")
ASK_REASON = "What should be different?"

POSITIVE = frozenset(
    ["👍", "❤", "💯", "🎉", "👏", "🔥", "😍", "🥰", "🙏", "👌", "✅", "⭐", "🤩", "😊", "🙌", "🏆"]
) | {"+1", "1"}
NEGATIVE = frozenset(["👎", "😡", "😠", "🤬", "💩", "🤮", "🙄", "❌", "😞", "😕", "🤦", "😒"]) | {"-1"}

_IDEAL = re.compile(
    r"\s*(?:(?:no|nope|please|better)\b[,:.]?\s*)?(?:say|write|put|phrase|answer|word)\s+(?:it|that|this)\s+"
    r"(?:more\s+)?(?:like\s+(?:this|so)|this\s+way)\s*:\s*(?P<text>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_SKIN_AND_VARIANT = re.compile("[\U0001f3fb-\U0001f3ff\ufe0e\ufe0f]")


@dataclass(frozen=True)
class FeedbackRecord:
    """One piece of feedback as storage and the engine know it. `text` is in the person's own words."""

    kind: FeedbackKind
    completion_id: str | None
    text: str = ""
    value: str = ""  # a reaction's emoji, or "+1" / "-1"

    @property
    def is_lesson(self) -> bool:
        """True where the engine must act on it now (correction, ideal, note)."""
        return self.kind in (FeedbackKind.CORRECTION, FeedbackKind.IDEAL, FeedbackKind.NOTE)

    @property
    def is_approval(self) -> bool:
        """True where the answer becomes gold."""
        return self.kind == FeedbackKind.APPROVAL

    @property
    def wants_reason(self) -> bool:
        """True for a bare thumb down: the person is asked what should be different."""
        return self.kind == FeedbackKind.REACTION and self.value in NEGATIVE


def ideal_text(text: str) -> str | None:
    """The rewritten answer in "say it like this: ...", or None where the text is something else."""
    match = _IDEAL.fullmatch(text)
    return match["text"].strip() if match else None


def record(event: FeedbackEvent) -> FeedbackRecord:
    """Map an event to the feedback it is. Raises InvalidField where it says nothing."""
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
    raise InvalidField(f"{type(event).__name__} is not feedback on an answer", "kind")


def plain_emoji(emoji: str) -> str:
    """An emoji without skin tone and variant, as `POSITIVE` and `NEGATIVE` list it."""
    return _SKIN_AND_VARIANT.sub("", emoji.strip())


def _words(text: str) -> str:
    if not text.strip():
        raise InvalidField("the text is empty: say in a few words what should be different", "text")
    return text.strip()


def _from_words(completion_id: str, text: str) -> FeedbackRecord:
    rewritten = ideal_text(text)
    if rewritten:
        return FeedbackRecord(FeedbackKind.IDEAL, completion_id, rewritten)
    return FeedbackRecord(FeedbackKind.CORRECTION, completion_id, _words(text))


def _from_reaction(completion_id: str, emoji: str, reason: str) -> FeedbackRecord:
    value = plain_emoji(emoji)
    if not value:
        raise InvalidField("a reaction needs `value`: an emoji, +1 or -1", "value")
    if value in POSITIVE:
        return FeedbackRecord(FeedbackKind.APPROVAL, completion_id, reason.strip(), value)
    if reason.strip():
        words = _from_words(completion_id, reason)
        return FeedbackRecord(words.kind, completion_id, words.text, value)
    return FeedbackRecord(FeedbackKind.REACTION, completion_id, "", value)
