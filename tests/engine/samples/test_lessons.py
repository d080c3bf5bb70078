"""engine.samples.lessons: what an update trains on; feedback and notes reach the teacher only."""

import re
from dataclasses import replace
from typing import Any

import pytest

from engine.prompts.builder import PromptBuilder
from engine.prompts.hindsight import Hindsight, plain_messages
from engine.sample import Sample
from engine.samples import lessons
from engine.samples.lessons import Lesson
from engine.samples.rollouts import Rollout
from storage.kinds import FeedbackKind
from storage.tables import Completion, Feedback

CHAT = [
    {"role": "system", "content": "You are kind."},
    {"role": "user", "content": "what is a koala?"},
]
NOTES = ["call me Ana", "no emoji"]


@pytest.fixture(scope="module")
def prompts(pocket_tokenizer: Any) -> PromptBuilder:
    """The pocket model's prompts."""
    return PromptBuilder(pocket_tokenizer, 2048)


def answer() -> Completion:
    """A stored answer, given with a note in its prompt."""
    return Completion(
        user_id="u",
        messages=CHAT,
        notes=["call me Ana"],
        prompt_token_ids=[9, 9, 9],
        completion_token_ids=[4, 5, 2],
        logprobs=[-0.1, -0.2, -0.3],
        sampling={},
    )


def test_other_prompts_are_held_to_the_version_before(prompts: PromptBuilder) -> None:
    """A remark's steady samples: the same prompt for both, and the version that is trained as the teacher."""
    (sample,) = lessons.steady_samples([other()], prompts)
    assert (sample.kind, sample.teacher) == ("anchor", "current")
    assert sample.student_ids == sample.teacher_ids == prompts.prompt_token_ids(other().messages)


def test_a_lesson_knows_the_persons_own_choice() -> None:
    """It is empty if they made none."""
    row = Feedback(user_id="u", kind=FeedbackKind.CORRECTION, text="too long", scope="always")
    assert (Lesson.of(row, answer()).scope, lesson().scope) == ("always", "")


def test_what_was_told_with_feedback_is_for_the_teacher_of_that_answer(prompts: PromptBuilder) -> None:
    """The student never reads it, nor does the teacher of other prompts."""
    row = Feedback(user_id="u", kind=FeedbackKind.CORRECTION, text="read first", context=["It\nuses Poetry.", "Last."])
    told = Lesson.of(row, answer())
    own, elsewhere = lessons.samples(told, [], [other()], prompts)
    block = "[Known about this work: It uses Poetry. Last.]"
    assert block in prompts.text(own.teacher_ids)
    assert "Poetry" not in prompts.text([*own.student_ids, *elsewhere.teacher_ids, *elsewhere.student_ids])
    assert "read first" in prompts.text(elsewhere.teacher_ids)
    assert told.without_feedback().hindsight.block() == block


def test_a_small_model_is_told_the_form_of_a_rewritten_answer(prompts: PromptBuilder) -> None:
    """The example stays with its own prompt; other prompts and the note have its form in words."""
    shown = lesson("it sleeps a lot", FeedbackKind.IDEAL)
    told = shown.told_by_form()
    form = "Answer in one sentence, in about 4 words, in lowercase letters."
    assert (shown.general.solution, told.general, told.note_text) == ("it sleeps a lot", Hindsight(feedback=form), form)
    own, elsewhere = lessons.samples(told, [], [other()], prompts)
    assert ("it sleeps a lot" in seen(own, prompts), form in seen(own, prompts)) == (True, False)
    assert ("it sleeps a lot" in seen(elsewhere, prompts), form in seen(elsewhere, prompts)) == (False, True)


def test_a_small_model_is_told_a_wish_as_an_instruction() -> None:
    """On other prompts and as the note; the person's words stay with their own prompt, and facts stay in them."""
    said = lesson("you ramble,\n keep it short")
    told, form = said.told_by_form(), "Answer very briefly."
    assert (told.hindsight, told.general, told.note_text) == (said.hindsight, Hindsight(feedback=form), form)
    assert told.in_own_words() == said
    named = lesson("call me Ana")
    assert named.told_by_form() == named  # it has its words
    shown = lesson("it sleeps", FeedbackKind.IDEAL).told_by_form()
    assert shown.in_own_words() == shown


def test_words_that_are_read_as_a_note_are_not_read_twice() -> None:
    """Neither with the answer nor on other prompts; a rewritten answer stays where it is."""
    read = lesson("it sleeps", FeedbackKind.IDEAL).told_by_form().without_feedback()
    assert (read.hindsight, read.general) == (Hindsight(solution="it sleeps"), Hindsight())
    assert lesson().without_feedback().general == lesson().without_feedback().hindsight == Hindsight()


def test_a_form_is_weighed_against_itself() -> None:
    """What it moves elsewhere is compared with what it moves on its own prompt, not with what the example moves."""
    told = lesson("it sleeps", FeedbackKind.IDEAL).told_by_form().as_elsewhere()
    assert told.hindsight == told.general == Hindsight(feedback=told.note_text)
    correction = lesson()
    assert correction.as_elsewhere() == correction


def seen(sample: Sample, prompts: PromptBuilder) -> str:
    """Return what the teacher of a sample reads."""
    return prompts.text(sample.teacher_ids)


def lesson(text: str = "too long", kind: FeedbackKind = FeedbackKind.CORRECTION) -> Lesson:
    """Feedback on that answer."""
    return Lesson.of(Feedback(user_id="u", kind=kind, text=text), answer())


def other() -> Rollout:
    """A counterfactual answer."""
    return Rollout([{"role": "user", "content": "what is judo?"}], [1, 2], [6, 7], [-0.5, -0.6])


def test_a_correction_is_hindsight_and_note() -> None:
    """The feedback's words are what the teacher sees and what becomes the note."""
    assert lesson().hindsight == Hindsight(feedback="too long")
    assert lesson().note_text == "too long"


def test_a_rewritten_answer_is_a_solution() -> None:
    """The teacher sees it as the better answer, and the note quotes it."""
    ideal = lesson("A koala is a bear.", FeedbackKind.IDEAL)
    assert ideal.hindsight == Hindsight(solution="A koala is a bear.")
    assert "A koala is a bear." in ideal.note_text


@pytest.mark.parametrize("kind", [FeedbackKind.APPROVAL, FeedbackKind.REACTION, FeedbackKind.NOTE])
def test_nothing_else_is_a_lesson(kind: FeedbackKind) -> None:
    """Approvals, reactions and notes teach nothing at once."""
    with pytest.raises(ValueError, match="teaches nothing at once"):
        lesson(kind=kind)


def test_feedback_and_notes_reach_the_teacher_only(prompts: PromptBuilder, pocket_tokenizer: Any) -> None:
    """In every sample the teacher's prompt carries all of them and the student's none."""
    for sample in lessons.samples(lesson(), NOTES, [other()], prompts):
        teacher, student = (pocket_tokenizer.decode(getattr(sample, side)) for side in ("teacher_ids", "student_ids"))
        assert all(text in teacher for text in (*NOTES, "too long"))
        assert not any(text in student for text in (*NOTES, "too long", "Notes about"))


def test_the_student_sees_the_conversation_as_it_was(prompts: PromptBuilder) -> None:
    """System prompt and question stay, whatever notes stood in the answer's own prompt."""
    first = lessons.samples(lesson(), NOTES, [], prompts)[0]
    assert first.student_ids == prompts.prompt_token_ids(CHAT)


def test_the_corrected_answer_comes_first_with_what_was_stored(prompts: PromptBuilder) -> None:
    """Response ids, behaviour log-probabilities and the prompt they belong to are the stored ones, token for token."""
    first, second = lessons.samples(lesson(), NOTES, [other()], prompts)
    assert (first.kind, second.kind) == ("correction", "counterfactual")
    assert first.response_ids == [4, 5, 2]
    assert first.behaviour_logprobs == [-0.1, -0.2, -0.3]
    assert first.behaviour_ids == [9, 9, 9]
    assert second.response_ids == [6, 7]


def test_samples_are_what_the_trainer_takes(prompts: PromptBuilder) -> None:
    """Each record is a sample of the worker's."""
    records = [
        *lessons.samples(lesson(), NOTES, [other()], prompts),
        *lessons.anchor_samples([other()]),
        *lessons.moves(lesson(), NOTES, [other()], prompts),
    ]
    assert [Sample.from_dict(r.to_dict()).kind for r in records] == [
        "correction", "counterfactual", "anchor", "correction", "correction",
    ]  # fmt: skip


def test_an_anchor_shows_both_the_same() -> None:
    """Teacher and student of a neutral prompt see the prompt it was answered with, and no behaviour is compared."""
    (anchor,) = lessons.anchor_samples([other()])
    assert anchor.student_ids == anchor.teacher_ids == [1, 2]
    assert anchor.behaviour_logprobs is None


def test_a_move_differs_by_the_feedback_alone(prompts: PromptBuilder, pocket_tokenizer: Any) -> None:
    """Both sides carry the notes; only the teacher's carries the feedback."""
    for pair in lessons.moves(lesson(), NOTES, [other()], prompts):
        without, with_feedback = (
            pocket_tokenizer.decode(getattr(pair, side)) for side in ("student_ids", "teacher_ids")
        )
        assert all(text in without and text in with_feedback for text in NOTES)
        assert "too long" in with_feedback
        assert "too long" not in without


def test_what_was_told_stands_on_one_side_alone(prompts: PromptBuilder, pocket_tokenizer: Any) -> None:
    """The notes and the feedback, for each answer; one that does not fit keeps its place."""
    too_long = replace(other(), messages=[{"role": "system", "content": "be kind " * 200}, CHAT[1]])
    found = lessons.told(NOTES, lesson().general, [too_long, other()], prompts.limited(200))
    assert [len(pair.response_ids) > 0 for pair in found] == [False, True]
    without, told = (pocket_tokenizer.decode(getattr(found[1], side)) for side in ("student_ids", "teacher_ids"))
    assert all(text in told and text not in without for text in [*NOTES, "too long"])


def test_the_corrected_prompt_comes_first_among_the_moves(prompts: PromptBuilder) -> None:
    """The first pair is the corrected answer's, then one per counterfactual answer."""
    pairs = lessons.moves(lesson(), NOTES, [other(), other()], prompts)
    assert [pair.response_ids for pair in pairs] == [[4, 5, 2], [6, 7], [6, 7]]


def test_a_teachers_own_answer_is_off_policy_on_purpose(prompts: PromptBuilder, pocket_tokenizer: Any) -> None:
    """Student and teacher see their own prompts, the response is the teacher's, and no behaviour is compared."""
    seen = [*CHAT[:1], {"role": "user", "content": "what is a koala? [too long]"}]
    sample = lessons.teacher_sample(CHAT, seen, [7, 2], prompts)
    assert sample.student_ids == prompts.prompt_token_ids(CHAT)
    assert "too long" in pocket_tokenizer.decode(sample.teacher_ids)
    assert sample.plain_ids == prompts.prompt_token_ids(plain_messages(CHAT))
    assert sample.response_ids == [7, 2]
    assert sample.behaviour_logprobs is None


@pytest.mark.parametrize(
    ("response", "is_hollow"),
    [
        ([1, 2, 3, 4, 5, 6, 7, 8], False),
        ([1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3], True),
        ([50, 51, 52, 53, 8], True),
        ([50, 51, 52, 6, 7, 8, 9], False),
        ([7], False),
    ],
    ids=["an answer", "a circle", "the note again", "some of the question again", "a word"],
)
def test_an_answer_that_goes_in_circles_or_repeats_its_prompt_is_hollow(response: list[int], is_hollow: bool) -> None:
    """More than half of its trigrams were there before."""
    assert lessons.is_hollow(response, [49, 50, 51, 52, 53, 54]) is is_hollow


@pytest.mark.parametrize(
    ("response", "kept"),
    [
        ([*range(40)], 40),
        ([*range(8)] * 2, 16),
        ([*range(30), *[7, 8, 9, 10] * 8], 30),
        ([*range(12), *[n for item in range(90, 99) for n in (50, item, 51, 52, 53, 54)]], 20),
        ([1, 2, 3], 3),
        ([], 0),
    ],
    ids=["an answer", "said twice", "a circle at its end", "a list that counts on", "a few words", "nothing"],
)
def test_an_answer_is_kept_up_to_where_it_goes_round_in_circles(response: list[int], kept: int) -> None:
    """Half of twenty trigrams in a row were there before; a short answer has no room for a circle."""
    assert lessons.before_circles(response) == response[:kept]


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("* One thing.\n* Another\n* and", "* One thing.\n* Another"),
        ("1. One thing\n2. Another\n\n3.", "1. One thing\n2. Another"),
        ("It is warm. It is", "It is warm."),
        ("Is it? Yes! And", "Is it? Yes!"),
        ("no end at all", ""),
        ("", ""),
    ],
)
def test_an_answer_is_whole_up_to_its_last_line_or_sentence(text: str, whole: str) -> None:
    """Sentences count in an answer of one line only; a numbered line's point ends nothing."""
    pieces = re.findall(r"\s*\w+|\n|[^\w\n]", text)
    assert "".join(pieces) == text
    kept = lessons.whole_sentences([*range(len(pieces))], pieces)
    assert "".join(pieces[place] for place in kept).rstrip() == whole


def test_an_answer_that_goes_round_in_circles_ends_before_it_does(
    prompts: PromptBuilder, pocket_tokenizer: Any
) -> None:
    """The last token is the end of an answer; the first item of a list, or what is never whole, shows none."""
    line = "* a koala is a small animal of the trees that eats leaves at night and has a round nose and two thumbs\n"
    circle = "* it sleeps all day\n" * 8

    def taught(text: str) -> list[Sample]:
        said = pocket_tokenizer.encode(text, add_special_tokens=False)
        return lessons.teacher_samples([CHAT], [CHAT], [said], prompts)

    (cut,) = taught(line + circle)
    assert cut.is_cut
    assert cut.response_ids[-1] == prompts.end_token_id
    assert prompts.text(cut.response_ids).startswith(line.strip())
    assert prompts.text(cut.response_ids).count("sleeps") <= 1
    (straight,) = taught(line)
    assert not straight.is_cut
    (short,) = taught("* a koala is a small animal\n" + circle)
    assert not short.is_cut
    assert prompts.text(short.response_ids).count("sleeps") <= 1
    (sentence,) = taught("a koala is a small animal.\n\n" + "it sleeps all day.\n\n" * 8)
    assert sentence.is_cut
    assert sentence.response_ids[-1] == prompts.end_token_id
    assert taught("so it " * 30) == []


def test_what_was_said_before_is_marked() -> None:
    """Trigram by trigram, from its second time on."""
    assert lessons.repeated([1, 2, 3, 4, 1, 2, 3, 4]) == [False] * 4 + [True] * 2
    assert lessons.repeated([9]) == []


def test_hollow_answers_of_the_teacher_teach_nothing(prompts: PromptBuilder, pocket_tokenizer: Any) -> None:
    """What the teacher says beside them stays."""
    seen = [*CHAT[:1], {"role": "user", "content": "what is a koala? [keep it short, please, and say no more]"}]
    echo = pocket_tokenizer.encode(" keep it short, please, and say no more", add_special_tokens=False)
    answer = pocket_tokenizer.encode("a koala is a mammal that sleeps all day", add_special_tokens=False)
    kept = lessons.teacher_samples([CHAT, CHAT], [seen, seen], [echo, answer], prompts)
    assert [sample.response_ids for sample in kept] == [answer]


def long_talk(turns: int) -> list[dict[str, str]]:
    """A conversation of many turns with a system message."""
    told = [[("user", f"question {i}"), ("assistant", f"answer {i}")] for i in range(turns)]
    return [CHAT[0], *({"role": role, "content": text} for turn in told for role, text in turn), CHAT[1]]


def test_a_conversation_longer_than_training_reads_is_still_a_lesson(prompts: PromptBuilder) -> None:
    """The corrected one and a person's other ones alike; every sample fits, in every context."""
    row = answer()
    row.messages, row.prompt_token_ids = long_talk(40), [9] * 900
    long_one = Lesson.of(Feedback(user_id="u", kind=FeedbackKind.CORRECTION, text="too long"), row)
    short = prompts.limited(200)
    others = [replace(other(), messages=long_talk(60))]
    made = lessons.samples(long_one, NOTES, others, short)
    assert [sample.kind for sample in made] == ["correction", "counterfactual"]
    for sample in [*made, *lessons.moves(long_one, NOTES, others, short), *lessons.steady_samples(others, short)]:
        assert sample.num_tokens <= 200
        sample.check()


def test_nothing_is_compared_if_the_corrected_prompt_does_not_fit(prompts: PromptBuilder) -> None:
    """The first move is the corrected one's; another must not take its place."""
    row = answer()
    row.messages = [{"role": "system", "content": "be kind " * 100}, CHAT[1]]
    endless = Lesson.of(Feedback(user_id="u", kind=FeedbackKind.CORRECTION, text="too long"), row)
    short = prompts.limited(100)
    assert lessons.moves(endless, [], [other()], short) == []
    too_long = replace(other(), messages=row.messages)
    fitting = [len(pair.response_ids) > 0 for pair in lessons.moves(lesson(), [], [too_long, other()], short)]
    assert fitting == [True, False, True], "another one that does not fit keeps its place"
    assert [sample.kind for sample in lessons.samples(endless, [], [other()], short)] == ["counterfactual"]


def test_a_lesson_is_told_in_a_published_wording() -> None:
    """The words around the feedback are those of the rule that is compared; the note stays the person's own."""
    told = lesson().in_wording("claas")
    assert "## Hindsight context" in told.hindsight.block()
    assert (told.hindsight.feedback, told.note_text) == (lesson().hindsight.feedback, lesson().note_text)
