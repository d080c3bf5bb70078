"""The kinds and states that rows can have, as their columns store them."""

from enum import StrEnum


class FeedbackKind(StrEnum):
    """The kind of a piece of feedback; what each becomes is in `bot.core.feedback`."""

    CORRECTION = "correction"
    IDEAL = "ideal"
    APPROVAL = "approval"
    REACTION = "reaction"
    NOTE = "note"
    IMPORT = "import"  # an adapter that came as a file: its place among the lessons


class Meaning(StrEnum):
    """The meaning of a reaction to an answer, as heed reads it (`engine.reading`)."""

    WISH = "wish"  # holds for every answer
    REMARK = "remark"  # is about this one answer
    FACT = "fact"  # tells something about the person
    THANKS = "thanks"  # approves
    NOTHING = "nothing"  # asks for no change: small talk, a new question


class Scope(StrEnum):
    """The person's own word on how far a correction reaches; it overrides what heed read."""

    ANSWER = "answer"  # "Just this answer"
    ALWAYS = "always"  # "From now on"


class FeedbackStatus(StrEnum):
    """How far a piece of feedback has come."""

    PENDING = "pending"  # committed, waiting for its update
    TRAINING = "training"  # an update works on it; back to pending after a crash
    LEARNED = "learned"  # an adapter version carries it
    KEPT = "kept"  # stored without a gradient (approval, weak negative, learning off, local)
    REJECTED = "rejected"  # a gate refused the candidate
    FAILED = "failed"  # parked after repeated errors
    UNDONE = "undone"  # taken back by the person
    CANCELLED = "cancelled"  # its lesson was stopped by the person before it ended


class NoteState(StrEnum):
    """The place where a standing note lives."""

    IN_PROMPT = "in_prompt"
    WHEN_ASKED = "when_asked"  # a fact: in the prompt beside questions that share a word with it
    LEARNING = "learning"  # in the prompt while its update runs
    IN_WEIGHTS = "in_weights"
    SUPERSEDED = "superseded"  # a newer note contradicts it
    DELETED = "deleted"


class VersionState(StrEnum):
    """The life of an adapter version. The one that answers is the accepted one that User.active_version names."""

    CANDIDATE = "candidate"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    DAMAGED = "damaged"  # failed its SHA-256 or finite check when loaded
    PRUNED = "pruned"  # was accepted; its files made room for newer ones, its row says what taught it


class ConsentChoice(StrEnum):
    """A person's answer to the question if heed may learn from them."""

    ASKED = "asked"  # the question was shown; no answer yet
    YES = "yes"
    NO = "no"
    WITHDRAWN = "withdrawn"  # no after yes: what was learned is gone
    FOLLOW_UPS = "follow_ups"  # their ordinary next messages may be learned from, too
    NO_FOLLOW_UPS = "no_follow_ups"


class BetterState(StrEnum):
    """The result of a teacher's try at a better answer."""

    ACCEPTED = "accepted"  # passed every check: the next consolidation teaches it
    REJECTED = "rejected"  # did not: this answer is not tried again
    FAILED = "failed"  # what the teacher sent was no answer


class AccessState(StrEnum):
    """The operator's decision about an account."""

    ALLOWED = "allowed"
    BLOCKED = "blocked"


class OutboxState(StrEnum):
    """How far something to show has come."""

    DRAFT = "draft"  # an answer that is being written; its placeholder is known
    WAITING = "waiting"
    DONE = "done"
    DEAD = "dead"  # given up


TAUGHT_AT_ONCE = (FeedbackKind.CORRECTION, FeedbackKind.IDEAL)  # feedback that trains as soon as it is given
