"""A lesson: one piece of feedback, turned into the samples of an update.

Pure. Owns the mapping from feedback to hindsight and note, and from a lesson to the trainer's samples. Invariant:
feedback and notes reach the teacher's prompts only, never the student's.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.prompts.builder import PromptBuilder
from engine.prompts.form import form_of
from engine.prompts.hindsight import Hindsight, plain_messages, solution_note, teacher_messages
from engine.prompts.wish_forms import instruction_of
from engine.requests import ChatMessage
from engine.sample import Kind, Sample
from engine.samples import pairs
from engine.samples.pairs import Views
from engine.samples.rollouts import Rollout
from storage.kinds import FeedbackKind
from storage.tables import Completion, Feedback

_HOLLOW = 0.5  # of an answer's trigrams
_CIRCLE = 20  # trigrams
_LEAST = 6  # tokens before a circle that are worth showing, and worth an end
_LEAST_LISTED = 24  # before the end of a list: of fewer its first item is all
_SENTENCE_ENDS = (".", "!", "?", "\u3002", "\uff01", "\uff1f", "\u0964", "\u061f")  # also Chinese, Hindi, Arabic
_ITEM = re.compile(r"^\s*(?:[-*\u2022]|\d{1,2}[.)])(?:\s|$)", re.MULTILINE)
_QUOTES = "\"'\u201d\u2019\u00bb)*_ "


@dataclass(frozen=True)
class Lesson:
    """One piece of feedback that teaches, with the answer it is about."""

    feedback_id: str
    user_id: str
    completion: Completion
    hindsight: Hindsight
    note_text: str
    scope: str = ""  # the person's own choice (`storage.kinds.Scope`)
    elsewhere: Hindsight | None = None  # that the teacher reads on other prompts; None: the same

    @classmethod
    def of(cls, feedback: Feedback, completion: Completion) -> "Lesson":
        """Return the lesson of a correction or an ideal. Raise ValueError for any other kind."""
        context = tuple(map(one_line, feedback.context or ()))
        if feedback.kind == FeedbackKind.CORRECTION:
            hindsight = Hindsight(feedback=feedback.text, context=context)
        elif feedback.kind == FeedbackKind.IDEAL:
            hindsight = Hindsight(solution=feedback.text, context=context)
        else:
            raise ValueError(f"feedback of kind {feedback.kind} teaches nothing at once")
        return cls(feedback.id, feedback.user_id, completion, hindsight, note_text(feedback), feedback.scope)

    def in_wording(self, wording: str) -> "Lesson":
        """Return the lesson told to the teacher in a published wording (`engine.prompts.hindsight`)."""
        return replace(self, hindsight=replace(self.hindsight, wording=wording))

    def told_by_form(self) -> "Lesson":
        """Return the lesson for a small model: other prompts get a plain instruction, where there is one.

        It is the form of a rewritten answer, or the form that a wish asks for. Blocking (`form_of`).
        """
        solution = self.hindsight.solution
        form = form_of(solution, self.completion.text) if solution else instruction_of(self.hindsight.feedback)
        return replace(self, note_text=form, elsewhere=Hindsight(feedback=form)) if form else self

    def in_own_words(self) -> "Lesson":
        """Return the lesson as the person said it: a fact is one to keep, and no wish for a form."""
        said = self.hindsight.feedback
        return replace(self, note_text=one_line(said), elsewhere=None) if said else self

    @property
    def general(self) -> Hindsight:
        """The hindsight of other prompts, which were no part of what the context is about."""
        return self.elsewhere or replace(self.hindsight, context=())

    def as_elsewhere(self) -> "Lesson":
        """Return the lesson with its own prompt told what the others are, so that a form is weighed against itself."""
        return replace(self, hindsight=self.general, elsewhere=None)

    def without_feedback(self) -> "Lesson":
        """Return the lesson for a teacher who reads its words as a note already."""
        own, general = (replace(hindsight, feedback="") for hindsight in (self.hindsight, self.general))
        return replace(self, hindsight=own, elsewhere=general)

    @property
    def corrected(self) -> Rollout:
        """The answer the feedback is about."""
        return Rollout.of(self.completion)


def note_text(feedback: Feedback) -> str:
    """Return the standing note that feedback becomes, on one line."""
    return one_line(solution_note(feedback.text) if feedback.kind == FeedbackKind.IDEAL else feedback.text)


def one_line(text: str) -> str:
    """Return a text without line breaks and runs of blanks."""
    return " ".join(text.split())


def samples(
    lesson: Lesson, notes: Sequence[str], counterfactuals: Sequence[Rollout], prompts: PromptBuilder
) -> list[Sample]:
    """Return the corrected answer and the counterfactual ones: student without, teacher with notes and feedback."""
    first = sample("correction", lesson.corrected, notes, lesson.hindsight, prompts)
    others = [sample("counterfactual", r, notes, lesson.general, prompts) for r in counterfactuals]
    return pairs.usable([first, *others])


def anchor_samples(anchors: Sequence[Rollout]) -> list[Sample]:
    """Return neutral prompts: teacher and student see the same, the teacher is the plain base."""
    return [Sample("anchor", r.prompt_token_ids, r.prompt_token_ids, r.response_token_ids) for r in anchors]


def steady_samples(others: Sequence[Rollout], prompts: PromptBuilder) -> list[Sample]:
    """Return other prompts that stay as the version before answers them."""
    held = [pairs.pair("anchor", r, Views(r.messages, r.messages), prompts) for r in others]
    return [replace(sample, teacher="current") for sample in pairs.usable(held)]


def moves(
    lesson: Lesson, notes: Sequence[str], counterfactuals: Sequence[Rollout], prompts: PromptBuilder
) -> list[Sample]:
    """Return pairs that show how the feedback alone moves the teacher: (notes) against (notes and feedback).

    The first is the corrected prompt, the others are the counterfactual ones, without a response if they do not fit;
    there are none if the first does not.
    """
    own = _move(lesson.corrected, notes, notes, lesson.hindsight, prompts)
    if not own.response_ids:
        return []
    return [own, *(_move(r, notes, notes, lesson.general, prompts) for r in counterfactuals)]


def told(notes: Sequence[str], hindsight: Hindsight, others: Sequence[Rollout], prompts: PromptBuilder) -> list[Sample]:
    """Return pairs that show how all that was told moves the base model: nothing against (notes and feedback).

    One for each answer, without a response if it does not fit.
    """
    return [_move(r, [], notes, hindsight, prompts) for r in others]


def sample(kind: Kind, rollout: Rollout, notes: Sequence[str], hindsight: Hindsight, prompts: PromptBuilder) -> Sample:
    """Return one answer: the student sees the conversation, the teacher also the notes and the hindsight."""
    seen = teacher_messages(rollout.messages, notes, hindsight)
    views = Views(rollout.messages, seen, plain_messages(rollout.messages))
    return pairs.with_behaviour(pairs.pair(kind, rollout, views, prompts), rollout, prompts)


def teacher_sample(
    asked: Sequence[ChatMessage], seen: Sequence[ChatMessage], response_ids: list[int], prompts: PromptBuilder
) -> Sample:
    """Return an answer of the teacher, without importance weight: off-policy on purpose (GKD, arXiv 2306.13649)."""
    views = Views(asked, seen, plain_messages(asked))
    return pairs.pair("counterfactual", Rollout(list(asked), [], response_ids, []), views, prompts)


def teacher_samples(
    asked: Sequence[Sequence[ChatMessage]],
    seen: Sequence[Sequence[ChatMessage]],
    responses: Sequence[list[int]],
    prompts: PromptBuilder,
) -> list[Sample]:
    """Return the teacher's answers to several conversations, each as far as it goes before it goes round in circles.

    There it ends (`Sample.is_cut`). Empty and hollow ones are left out.
    """
    answers = zip(asked, seen, responses, strict=True)
    found = pairs.usable([_ended(teacher_sample(*answer, prompts), prompts) for answer in answers])
    return [sample for sample in found if not is_hollow(sample.response_ids, sample.prompt("teacher"))]


def _ended(said: Sample, prompts: PromptBuilder) -> Sample:
    """Return an answer that goes round in circles with an end behind its last whole line or sentence before that.

    One that has none, or is the beginning of a list, is cut off before the circle and shows no end; of one that has
    hardly begun there nothing is left.
    """
    straight = before_circles(said.response_ids)
    if len(straight) == len(said.response_ids):
        return said
    pieces = [prompts.text([token_id]) for token_id in straight]
    whole = whole_sentences(straight, pieces)
    if len(whole) < (_LEAST_LISTED if _is_list("".join(pieces)) else _LEAST):
        return replace(said, response_ids=straight if len(straight) >= _LEAST else [])
    return replace(said, response_ids=[*whole, prompts.end_token_id], is_cut=True)


def _is_list(text: str) -> bool:
    return bool(_ITEM.search(text))


def whole_sentences(response_ids: list[int], pieces: Sequence[str]) -> list[int]:
    """Return the tokens up to the end of the last line, or of the last sentence if there is but one line.

    `pieces` are the texts of the tokens. A number's point at the beginning of a line ends no sentence.
    """
    lines = [place for place, piece in enumerate(pieces[1:]) if "\n" in piece]  # the token before the break
    ends = [place for place, piece in enumerate(pieces) if piece.rstrip(_QUOTES).endswith(_SENTENCE_ENDS)]
    last = max(lines or ends, default=-1)
    while last >= 0 and not pieces[last].strip():
        last -= 1
    return response_ids[: last + 1]


def before_circles(response_ids: list[int]) -> list[int]:
    """Return an answer up to where it begins to go round in circles; all of it if it does not.

    A small model's lists and long answers often end so, and a student goes round sooner than its teacher. A circle
    begins where the most of `_CIRCLE` trigrams of tokens in a row were there before.
    """
    is_old = repeated(response_ids)
    for start in range(len(is_old) - _CIRCLE + 1):
        if sum(is_old[start : start + _CIRCLE]) >= _HOLLOW * _CIRCLE:
            return response_ids[: is_old.index(True, start)]
    return response_ids


def is_hollow(response_ids: Sequence[int], prompt_ids: Sequence[int]) -> bool:
    """Return True if an answer goes round in circles, or says again what stands in its prompt: "One sentence, please".

    Small models do either now and then, and a student who is taught it does it always. Judged by trigrams of tokens.
    """
    trigrams, said = _trigrams(response_ids), set(_trigrams(prompt_ids))
    echoed = sum(trigram in said for trigram in trigrams)
    return max(sum(repeated(response_ids)), echoed) > _HOLLOW * len(trigrams)


def repeated(response_ids: Sequence[int]) -> list[bool]:
    """Return for each trigram of an answer's tokens if it was there before."""
    trigrams = _trigrams(response_ids)
    first = {trigram: place for place, trigram in reversed(list(enumerate(trigrams)))}
    return [first[trigram] < place for place, trigram in enumerate(trigrams)]


def _trigrams(token_ids: Sequence[int]) -> list[tuple[int, ...]]:
    return list(zip(token_ids, token_ids[1:], token_ids[2:], strict=False))


def _move(
    rollout: Rollout, known: Sequence[str], notes: Sequence[str], hindsight: Hindsight, prompts: PromptBuilder
) -> Sample:
    """Return an answer behind what was `known` before, and behind notes and hindsight."""
    messages = rollout.messages
    views = Views(teacher_messages(messages, known, Hindsight()), teacher_messages(messages, notes, hindsight))
    return pairs.pair("correction", rollout, views, prompts)
