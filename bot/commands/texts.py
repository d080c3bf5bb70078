"""Everything that slash commands say, in one place: sentences, labels and the few words that depend on a number."""

from collections.abc import Iterable, Sequence

from bot.core import held_wishes, standing_notes
from engine.requests import ConsolidationOutcome, LearnOutcome, LessonProgress, UndoResult
from storage.kinds import NoteState

STATES: dict[str, str] = {
    NoteState.IN_PROMPT: "in the prompt",
    NoteState.WHEN_ASKED: "in the prompt when asked about",
    NoteState.LEARNING: "learning",
    NoteState.IN_WEIGHTS: "in the weights",
    standing_notes.WAITING: "the prompt has no room for it now",
}
START = """Ask something, then say what was wrong with the answer: /feedback too long. /help lists more."""
PRIVACY = """heed keeps your messages, its answers, your feedback, your notes and your adapter in its own data \
directory, on the machine it runs on. {where}\
What you say about answers trains your adapter only; no one else's answers change.
/learning off stops training (your notes still work). /export gives you everything heed holds about you. \
/forget erases it."""
PRIVACY_WITH_CONSENT = """
Nothing is learned before your own yes, which is kept with its wording and time. /learning off takes it back and \
removes what was learned. What others write beside you is never learned. If the operator blocked your account, its \
number stays on the block list after /forget, without your name."""
ERASE_EVERYTHING, KEEP_IT = "Erase everything", "Keep it"

FEEDBACK_NEEDS_WORDS = "Write what was wrong after /feedback, for example: /feedback too long"
NO_ANSWER_YET = "There is no answer in this conversation yet."
NOTHING_YET = "There is nothing of yours here yet. Ask something first."
NO_NOTES = "You have no notes yet. Correct an answer, or write /note and what heed should always do."
NOTHING_SAID = "Nothing has been said in this conversation yet."
HISTORY_NEEDS_NUMBER = "Write a number of turns after /history, for example: /history 5"
NEW_CONVERSATION = "A new conversation has begun. What heed learned stays."
NO_PERSONA = "You have set no persona. Write /persona and a description to set one."
PERSONA_SET, PERSONA_REMOVED = "Your persona is set.", "Your persona is removed."
LEARNING_CHOICES = "Write on or off after /learning, or follow-ups on, or follow-ups off."
LEARNING_OFF = "Learning is off. Your notes still work."
LEARNING_ON = "Learning is on: your corrections train your adapter. "
FOLLOW_UPS_ON = "Your ordinary next messages count a little, too."
FOLLOW_UPS_OFF = "Your ordinary next messages do not count; /learning follow-ups on changes that."
FORGET_ASKS = "This erases all your messages, notes and versions. Write /forget everything to confirm."
FORGOTTEN = "Everything about you is erased."
ROLLBACK_NEEDS_ACCOUNT = "Write an account and a version: /rollback telegram:123 2. Version 0 is the untrained model."
ROLLBACK_NEEDS_VERSION = "Write a version after /rollback, for example: /rollback 2. Version 0 is the untrained model."
WORK_ELSEWHERE = (
    "The page has work in a folder beside its conversations, with a button to stop; `heed agent` is for a terminal."
)
NOTED = "Noted."
QUEUED = "Noted. heed will learn it as soon as it can."
CANCELLED = "Cancelled. Nothing was learned from it."
DID_WORSE = "The new version did worse and was dropped."
NOTHING_TO_CANCEL = "No lesson of yours waits or runs. /undo takes back the last one that ended."
CANCEL = "Cancel"
JUST_THIS, FROM_NOW_ON = "Just this answer", "From now on"
HOW_FAR = "Only this answer, or from now on?"
SAYS_SO = "/justthis or /fromnowon says so."
SCOPE_KEPT = "Noted. That is how it was learned."
PHASES = {  # of a lesson, as `engine.requests.LessonProgress` names them
    "reading": "reading what you mean",
    "rollouts": "answering other questions",
    "teacher rollouts": "writing examples",
    "facts": "going over what you told",
    "train": "training",
    "publish": "checking the new version",
    "activate": "checking the new version",
}


def no_such_command(name: str) -> str:
    """Say that a command does not exist; `name` is empty if it cannot be repeated."""
    return f"There is no command {'/' + name if name else 'of that name'}. /help lists them."


def for_you_alone(name: str) -> str:
    """Say that a command answers in private only."""
    return f"What /{name} shows is for you alone. Write it to me in private."


def help_text(lines: Iterable[tuple[str, str]]) -> str:
    """List commands: usage and summary of each."""
    return "\n".join(f"{usage:<22} {summary}" for usage, summary in lines)


def count(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun, singular or plural: "1 adapter", "2 adapters"."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def noted(outcome: LearnOutcome, text: str) -> str:
    """Confirm a note, which is `text` unless heed says it otherwise, and where it stands, or say that it is none."""
    if outcome.reason.startswith(held_wishes.ALREADY):
        return outcome.reason
    said = f"Noted: {outcome.note or text}", takes_the_place_of(outcome.replaced), outcome.reason
    return "\n".join(filter(None, said))


def note_line(place: int, text: str, state: str) -> str:
    """Return one note of the list."""
    return f"{place}. {text}  ({state})"


def notes_footer(num_tokens: int) -> str:
    """Say what learned notes save, and how to delete one."""
    return f"{count(num_tokens, 'prompt token')} saved per answer. /notes delete 1 deletes the first."


def no_such_note(number: int) -> str:
    """Say which notes can be deleted."""
    numbers = f"a number from 1 to {number}" if number > 1 else "1" if number else "nothing: you have no notes"
    return f"/notes delete takes {numbers}. /notes lists your notes."


def deleted(text: str, holding: Sequence[str]) -> str:
    """Confirm that a note is gone, and name those that hold again without it."""
    again = f"In force again: {_named(holding)}." if holding else ""
    return "\n".join(filter(None, (f"Deleted: {text}", again)))


def versions_to_choose(listing: str) -> str:
    """Offer the versions that /rollback can return to."""
    return f"Write one of these versions after /rollback:\n{listing}"


def no_such_version(error: Exception, listing: str) -> str:
    """Say why a version cannot be returned to, and list those that can."""
    return f"{sentence(str(error))}\n{listing}"


def sentence(text: str) -> str:
    """Return a clause as a sentence: a capital at its beginning, a full stop at its end."""
    text = text.strip()
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '!', '?', '…')) else '.'}" if text else ""


UNCALIBRATED = " (uncalibrated model)"


def learned(outcome: LearnOutcome, ask: str = "") -> str:
    """Say what became of a piece of feedback; `ask` is a question for the person. If heed is unsure it asks, too."""
    said = _learned(outcome, ask)
    return f"{said} {HOW_FAR}" if outcome.is_unsure else said


def _learned(outcome: LearnOutcome, ask: str) -> str:
    match outcome.status:
        case "learned":
            model = "" if outcome.is_calibrated else UNCALIBRATED
            return learned_line(outcome.adapter_version, outcome.duration_ms / 1000, model, outcome.replaced)
        case "queued":
            return sentence(outcome.reason) or QUEUED
        case "rejected":
            return f"Not learned. {sentence(outcome.reason) or DID_WORSE}"
        case "cancelled":
            return CANCELLED
    return ask or sentence(outcome.reason) or NOTED


def learned_line(version: int, seconds: float, model: str, replaced: Sequence[str]) -> str:
    """Say that a lesson made a version; `model` is a word about it, `replaced` the notes whose place it has taken."""
    return f"Learned: v{version} in {seconds:.1f} s{model}. {takes_the_place_of(replaced)}".rstrip()


def takes_the_place_of(wishes: Sequence[str]) -> str:
    """Name the notes that a newer one has replaced; empty for none."""
    return f"It takes the place of {_named(wishes)}." if wishes else ""


def _named(wishes: Sequence[str]) -> str:
    return " and ".join(f'"{wish.rstrip(".")}"' for wish in wishes)


def learning(progress: LessonProgress) -> str:
    """Say how far a lesson is: "Learning: writing examples, 40 %"."""
    if progress.status == "queued":
        return f"Waiting: {count(progress.place, 'other lesson')} first."
    return f"Learning: {PHASES.get(progress.phase, progress.phase)}, {progress.share * 100:.0f} %"


def undone(result: UndoResult) -> str:
    """Say what an undo took back."""
    note = f' The note "{result.note}" is deleted.' if result.note else ""
    return f"Undone. {answers_again(result.version)}{note}"


def answers_again(version: int) -> str:
    """Say which version answers from now on."""
    return f"Version {version} answers again." if version else "The untrained model answers again."


def consolidated(outcome: ConsolidationOutcome | None) -> str:
    """Say what became of a consolidation or rebuild; None: it still waits or runs."""
    if outcome is None:
        return "Queued. It begins as soon as every lesson is learned."
    done = "Made again from zero" if outcome.is_rebuild else "Consolidated"
    if outcome.status == "learned":
        used = [count(outcome.num_new, "new signal")]
        used += [count(outcome.num_rehearsed, "earlier lesson")] if outcome.num_rehearsed else []
        used += [count(outcome.num_better, "better answer")] if outcome.num_better else []
        seconds = f"{outcome.duration_ms / 1000:.1f} s"
        return f"{done}: v{outcome.adapter_version} from {' and '.join(used)} in {seconds}."
    if outcome.status == "rejected":
        return f"Not {'rebuilt' if outcome.is_rebuild else 'consolidated'}. {sentence(outcome.reason)}"
    return f"Nothing changed. {sentence(outcome.reason)}"
