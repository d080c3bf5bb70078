"""engine.learning.intent: what a correction is taken for, and how far it reaches then."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from bot.agent.tools import definitions
from engine.adapter_ref import ZERO_ADAPTER, AdapterRef
from engine.gates.candidate import Verdict
from engine.learning.bystanders import CHECK, NUM_BYSTANDERS, REASON, Bystanders
from engine.learning.intent import (
    NUM_COMPARED,
    NUM_STEPS,
    NUM_TASKS,
    NUM_WIDE,
    Intent,
    chosen,
    is_standing,
    is_standing_at_work,
    of_words,
    steps_before,
)
from engine.reading.probe import ReactionReading
from engine.reading.reader import ReactionReader
from engine.requests import ChatMessage
from engine.sample import Sample
from engine.samples.demonstrations import Demonstrations
from engine.samples.lessons import Lesson
from engine.samples.rollouts import Rollout, conversation
from storage.kinds import FeedbackKind, FeedbackStatus, Meaning, NoteState, Scope
from storage.tables import Completion, Feedback
from tests.engine.live import Live

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUESTION = "Tell me about the koala"
NO_PLACEBO = [0.0] * 5


def reading(label: Meaning, margin: float, *, is_sure: bool, second: Meaning = Meaning.REMARK) -> ReactionReading:
    """Return a reading whose two likeliest meanings are told."""
    rest = dict.fromkeys(Meaning, 0.0)
    return ReactionReading(label, margin, rest | {second: (1 - margin) / 2, label: (1 + margin) / 2}, is_sure)


@pytest.mark.parametrize(
    ("moved", "placebo", "expected"),
    [
        ([1.0, 0.5, 0.4, 0.5, 0.4], NO_PLACEBO, True),
        ([1.0, 0.0, 0.01, 0.0, 0.01], NO_PLACEBO, False),  # on its own prompt only
        ([0.01, 0.001, 0.001, 0.001, 0.001], NO_PLACEBO, False),  # hardly anything anywhere
        ([0.0, 0.5, 0.5, 0.5, 0.5], NO_PLACEBO, True),
        ([1.0, 0.3, 0.3, 0.3, 0.3], [0.3, 0.2, 0.2, 0.2, 0.2], False),  # any words move this model so far
        ([1.0, 0.3, 0.3, 0.3, 0.3], [0.3, 0.1, 0.1, 0.1, 0.1], True),
        ([1.0], [0.0], True),
        ([0.001], [0.0], False),
    ],
)
async def test_standing_feedback_moves_other_prompts_more_than_a_placebo(
    moved: list[float], placebo: list[float], expected: bool
) -> None:
    """A tenth of its effect on the corrected prompt, twice that of a placebo, and above the floor."""
    assert is_standing(moved, placebo, 0.1, 0.005) is expected


@pytest.mark.parametrize(
    ("moved", "placebo", "expected"),
    [
        ((0.1, 0.17), (0.0, 0.0), True),
        ((0.3, 0.1), (0.0, 0.0), True),
        ((0.3, 0.05), (0.0, 0.0), False),  # mostly on its own
        ((0.001, 0.2), (0.0, 0.0), False),  # not on the call that was denied
        ((0.3, 0.2), (0.0, 0.11), False),  # any words move it so far
        ((0.3, 0.2), (0.16, 0.0), False),
    ],
)
async def test_a_wish_about_work_shows_on_some_other_task(
    moved: tuple[float, float], placebo: tuple[float, float], expected: bool
) -> None:
    """A quarter of its effect on the denied call, on both twice a placebo's, and above the floor."""
    assert is_standing_at_work(moved, placebo, 0.005) is expected


async def test_a_wish_or_a_fact_need_no_telling_apart() -> None:
    """Both are kept in mind from now on; where a remark is likely enough it is unsure which."""
    either = reading(Meaning.WISH, 0.1, is_sure=False, second=Meaning.FACT)
    assert of_words(either) == Intent(Meaning.WISH, 0.1, is_unsure=False)
    other = reading(Meaning.FACT, 0.1, is_sure=False, second=Meaning.WISH)
    assert of_words(other) == Intent(Meaning.FACT, 0.1, is_unsure=False)
    shares = dict.fromkeys(Meaning, 0.0) | {Meaning.WISH: 0.5, Meaning.FACT: 0.35, Meaning.REMARK: 0.15}
    assert of_words(ReactionReading(Meaning.WISH, 0.15, shares, is_sure=False)).is_unsure


async def test_thanks_or_small_talk_need_no_telling_apart() -> None:
    """Neither asks for a change; a wish that could be a remark is unsure."""
    either = reading(Meaning.THANKS, 0.1, is_sure=False, second=Meaning.NOTHING)
    assert of_words(either) == Intent(Meaning.THANKS, 0.1, is_unsure=False)
    assert of_words(reading(Meaning.THANKS, 0.1, is_sure=False)).is_unsure
    assert of_words(reading(Meaning.WISH, 0.1, is_sure=False)).is_unsure
    assert not of_words(reading(Meaning.WISH, 0.9, is_sure=True)).is_unsure


@pytest.mark.parametrize("meaning", list(Meaning))
async def test_the_persons_own_choice_overrides_every_reading(meaning: Meaning) -> None:
    """Just this answer is a remark, from now on is a wish, and neither is unsure."""
    read = Intent(meaning, 0.2, is_unsure=True)
    assert chosen(read, "") == read
    answer, always = chosen(read, Scope.ANSWER), chosen(read, Scope.ALWAYS)
    assert (answer.meaning, answer.reaches_others, answer.is_unsure) == (Meaning.REMARK, False, False)
    assert (always.meaning, always.reaches_others, always.is_unsure) == (Meaning.WISH, True, False)


async def test_a_guess_without_a_reading_spares_no_other_prompt() -> None:
    """It is a remark only because the words move other prompts little, which every weak wish does."""
    assert not Intent(Meaning.REMARK, is_unsure=True).spares_others
    assert Intent(Meaning.REMARK, 0.1, is_unsure=True).spares_others
    assert Intent(Meaning.REMARK, 0.9).spares_others
    assert chosen(Intent(Meaning.REMARK, is_unsure=True), Scope.ANSWER).spares_others
    assert not Intent(Meaning.WISH, 0.9).spares_others


class Told(ReactionReader):
    """A reader that says what it is told to."""

    def __init__(self, found: ReactionReading) -> None:
        self._found = found

    async def read(self, text: str) -> ReactionReading | None:
        return self._found if text else None


def told(live: Live, monkeypatch: pytest.MonkeyPatch, found: ReactionReading) -> None:
    """Let the engine read every reaction so."""
    monkeypatch.setattr(live.parts.learner._intents, "_reader", Told(found))


@pytest.mark.engine
async def test_thanks_approve_the_answer_and_train_nothing(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is gold, no version and no note is made, and the reading is stored."""
    told(live, monkeypatch, reading(Meaning.THANKS, 0.9, is_sure=True))
    user_id = await live.person()
    answer = await live.ask(user_id, QUESTION)
    outcome = await live.teach(answer, "you are a star")
    assert (outcome.status, outcome.adapter_version, outcome.note, outcome.steps) == ("kept", 0, None, 0)
    assert (outcome.reading, outcome.is_unsure, outcome.reason[:9]) == ("thanks", False, "Thank you")
    row = await live.feedback(outcome.feedback_id)
    assert (row.status, row.reading, row.is_unsure) == (FeedbackStatus.KEPT, "thanks", False)
    assert row.reading_margin == pytest.approx(0.9)
    assert (await live.stored(answer)).is_gold


@pytest.mark.engine
async def test_about_an_agents_work_other_tasks_decide(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """The probe knows reactions in chats: what it takes for thanks is tried on other tasks, and never approves."""
    told(live, monkeypatch, reading(Meaning.THANKS, 0.9, is_sure=True))
    user_id = await live.person()
    answer = await live.ask(user_id, "Change host from low to high in app.cfg.", tools=tuple(definitions()))
    outcome = await live.teach(answer, "no blanks around the sign")
    assert outcome.reading in ("wish", "remark")
    assert not (await live.stored(answer)).is_gold


@pytest.mark.engine
@pytest.mark.parametrize(("moved", "meaning"), [(0.2, Meaning.WISH), (0.0, Meaning.REMARK)])
async def test_a_wish_about_work_is_found_on_one_task_of_many(
    live: Live, monkeypatch: pytest.MonkeyPatch, moved: float, meaning: Meaning
) -> None:
    """It moves the denied call and a single other one; a placebo is tried on those that are moved most only.

    The teacher shows the wish on that one, beside the call and the one prompt that every lesson has besides.
    """
    told(live, monkeypatch, reading(Meaning.REMARK, 0.1, is_sure=False))
    tried: list[int] = []

    async def moves(_lesson: Lesson, _notes: Sequence[str], others: Sequence[Rollout]) -> dict[int, float]:
        tried.append(len(others))
        found = [0.2, *[0.0] * (NUM_TASKS - 1), moved] if len(tried) == 1 else [0.0] * (1 + len(others))
        return dict(enumerate(found))

    shown: list[int] = []
    whole = Demonstrations.whole

    async def showing(teacher: Demonstrations, given: Sequence[list[ChatMessage]]) -> list[Sample]:
        shown.append(len(given))
        return await whole(teacher, given)

    monkeypatch.setattr(Demonstrations, "whole", showing)
    monkeypatch.setattr(live.parts.learner._intents, "_moves", moves)
    user_id = await live.person()
    answer = await live.ask(user_id, "Change host from low to high in app.cfg.", tools=tuple(definitions()))
    outcome = await live.teach(answer, "no blanks around the sign")
    assert (outcome.reading, outcome.is_unsure) == (meaning, meaning == Meaning.REMARK)
    assert tried == [NUM_TASKS, NUM_COMPARED]
    await live.engine.settled()  # the whole lesson follows a first version, and looks for more tasks
    assert shown == ([3] if meaning == Meaning.WISH else [])


@pytest.mark.engine
async def test_what_does_not_fit_is_not_compared(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others keep their numbers; if it is the corrected prompt, nothing is."""
    intents = live.parts.learner._intents
    answer = await live.ask(await live.person(), QUESTION)
    lesson, other = Lesson.of(await live.say(answer, "too long"), answer), Rollout.of(answer)
    endless = replace(other, messages=[{"role": "system", "content": "be kind " * 300}, *other.messages])
    monkeypatch.setattr(intents, "_prompts", intents._prompts.limited(200))
    assert list(await intents._moves(lesson, [], [endless, other])) == [0, 2]
    row = answer.model_copy(update={"messages": endless.messages})
    assert await intents._moves(replace(lesson, completion=row), [], [other]) == {}


@pytest.mark.engine
async def test_a_task_that_any_words_move_hides_no_other(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """The task moved most is moved by a placebo as far: the next one tells that it is a wish, and it alone is shown."""
    told(live, monkeypatch, reading(Meaning.REMARK, 0.1, is_sure=False))
    tried: list[Sequence[Rollout]] = []

    async def moves(_lesson: Lesson, _notes: Sequence[str], others: Sequence[Rollout]) -> dict[int, float]:
        tried.append(others)
        found = [0.2, 0.9, 0.1, *[0.0] * (NUM_TASKS - 2)] if len(tried) == 1 else [0.0, 0.8, 0.0, 0.0]
        return dict(enumerate(found))

    monkeypatch.setattr(live.parts.learner._intents, "_moves", moves)
    user_id = await live.person()
    answer = await live.ask(user_id, "Change host from low to high in app.cfg.", tools=tuple(definitions()))
    lesson = Lesson.of(await live.say(answer, "no blanks around the sign"), answer)
    intent = await live.parts.learner._intents.read(lesson, ZERO_ADAPTER, [], [])
    assert (intent.meaning, intent.shown) == (Meaning.WISH, (tried[0][1].messages,))
    assert [one.messages for one in tried[1][:2]] == [one.messages for one in tried[0][:2]]


@pytest.mark.engine
async def test_a_wish_about_work_may_show_at_the_step_that_led_to_the_denied_call(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the denied call moves nothing any more: the step stands for it, and is shown beside the other task."""
    told(live, monkeypatch, reading(Meaning.REMARK, 0.1, is_sure=False))
    places: list[list[ChatMessage]] = []

    async def moves(_lesson: Lesson, _notes: Sequence[str], others: Sequence[Rollout]) -> dict[int, float]:
        if places:
            return dict.fromkeys(range(len(others) + 1), 0.0)
        places.extend(other.messages for other in others)
        return dict(enumerate([0.0, 0.2, *[0.0] * (NUM_TASKS - 1), 0.2]))

    shown: list[Sequence[list[ChatMessage]]] = []
    whole = Demonstrations.whole

    async def showing(teacher: Demonstrations, given: Sequence[list[ChatMessage]]) -> list[Sample]:
        shown.append(given)
        return await whole(teacher, given)

    monkeypatch.setattr(Demonstrations, "whole", showing)
    monkeypatch.setattr(live.parts.learner._intents, "_moves", moves)
    user_id, tools = await live.person(), tuple(definitions())
    first = await live.ask(user_id, "Set gain to 5 everywhere.", tools=tools)
    said: ChatMessage = {"role": "assistant", "content": "I look first."}
    denied = await live.ask(user_id, "go on", prior=(*first.messages, said), tools=tools)
    outcome = await live.teach(denied, "leave the tests alone")
    assert outcome.reading == Meaning.WISH
    await live.engine.settled()
    assert len(places) == 1 + NUM_TASKS
    assert places[0] == conversation(first)
    assert [places[0], places[-1]] == [given for given in shown[-1] if given in (places[0], places[-1])]


@pytest.mark.engine
async def test_the_whole_of_a_lesson_looks_for_more_tasks_on_which_it_shows(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind those that the reading has found, each once; one that any words move as far is none."""
    told(live, monkeypatch, reading(Meaning.REMARK, 0.1, is_sure=False))
    tried: list[Sequence[Rollout]] = []

    async def moves(_lesson: Lesson, _notes: Sequence[str], others: Sequence[Rollout]) -> dict[int, float]:
        tried.append(others)
        if len(tried) % 2:  # the words: the first, second and last of the tasks are moved
            return dict(enumerate([0.2, 0.9, 0.3, *[0.0] * (len(others) - 3), 0.1]))
        return dict(enumerate([0.0, 0.8, *[0.0] * (len(others) - 1)]))

    intents = live.parts.learner._intents
    monkeypatch.setattr(intents, "_moves", moves)
    answer = await live.ask(await live.person(), "Change host from low to high.", tools=tuple(definitions()))
    lesson = Lesson.of(await live.say(answer, "no blanks around the sign"), answer)
    intent = await intents.read(lesson, ZERO_ADAPTER, [], [])
    read = tried[0]
    assert intent.shown == (read[1].messages, read[-1].messages)
    wide = await intents.widened(intent, lesson, [], [])
    assert len(tried[2]) == NUM_WIDE
    found = [tried[2][n].messages for n in (1, -1)]
    assert wide.shown == (*intent.shown, *(task for task in found if task not in intent.shown))
    assert len(wide.shown) > len(intent.shown)


async def test_the_steps_before_a_call_are_those_of_its_own_session() -> None:
    """The newest ones; another session's, and what came later, are none."""
    asked: list[ChatMessage] = [{"role": "user", "content": "Set gain to 5."}]
    steps = [[*asked, *[{"role": "assistant", "content": str(n)} for n in range(count)]] for count in range(7)]
    other: list[ChatMessage] = [{"role": "user", "content": "Set host to low."}]
    rows = [answered(messages) for messages in (*reversed(steps), other)]
    lesson = Lesson.of(Feedback(user_id="ana", kind=FeedbackKind.CORRECTION, text="no"), rows[1])
    assert [len(step.messages) for step in steps_before(lesson, rows)] == [5, 4, 3, 2][:NUM_STEPS]


def answered(messages: list[ChatMessage]) -> Completion:
    """Return a stored answer to a conversation."""
    return Completion(
        user_id="ana",
        messages=messages,
        sampling={},
        prompt_token_ids=[1],
        completion_token_ids=[2],
        logprobs=[0.0],
        text="x",
        adapter_version=0,
    )


@pytest.mark.engine
async def test_a_fact_becomes_a_note_that_waits_to_be_asked_about(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in no other prompt; the weights take it in with the next consolidation."""
    told(live, monkeypatch, reading(Meaning.FACT, 0.9, is_sure=True))
    user_id = await live.person()
    outcome = await live.teach(await live.ask(user_id, QUESTION), "my dog is called Bo")
    assert (outcome.status, outcome.note, outcome.reading) == ("kept", "my dog is called Bo", "fact")
    assert [(n.text, n.state) for n in await live.notes(user_id)] == [("my dog is called Bo", NoteState.WHEN_ASKED)]
    shown = [(await live.stored(await live.ask(user_id, asked))).notes for asked in (QUESTION, "how old is my dog?")]
    assert shown == [[], ["my dog is called Bo"]]


@pytest.mark.engine
async def test_a_remark_is_taught_on_its_own_prompt_only(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """No note is made and every other sample is held to what the version before answers."""
    told(live, monkeypatch, reading(Meaning.REMARK, 0.9, is_sure=True))
    trained = []
    train = live.parts.learner._candidates.train

    async def training(update_id, parent, samples, learn):  # type: ignore[no-untyped-def]
        trained.extend(samples)
        return await train(update_id, parent, samples, learn)

    monkeypatch.setattr(live.parts.learner._candidates, "train", training)
    user_id = await live.person()
    answer = await live.ask(user_id, QUESTION)
    with live.open_gates():
        outcome = await live.teach(answer, "no emoji please")
    assert (outcome.reading, outcome.note, outcome.is_unsure) == ("remark", None, False)
    taught = [s for s in trained if s.kind in ("correction", "counterfactual")]
    own = live.parts.context.prompts.prompt_token_ids(answer.messages)
    assert {tuple(s.student_ids) for s in taught} == {tuple(own)}
    held = [s for s in trained if s.kind == "anchor"]
    assert len([s for s in held if s.teacher == "current"]) >= 3
    assert all(s.student_ids == s.teacher_ids for s in held)
    assert await live.notes(user_id) == []


@pytest.mark.engine
@pytest.mark.parametrize("is_left", [True, False])
async def test_a_remark_that_would_change_other_answers_is_not_learned(
    live: Live, monkeypatch: pytest.MonkeyPatch, is_left: bool
) -> None:
    """It is tried once, refused by what other prompts are answered, and kept for this answer alone."""
    told(live, monkeypatch, reading(Meaning.REMARK, 0.9, is_sure=True))
    examined: list[int] = []

    async def examine(self: Bystanders, _candidate: AdapterRef, verdict: Verdict) -> Verdict:
        examined.append(len(self.conversations))
        return verdict.and_checks({CHECK: is_left}, {CHECK: REASON}, {})

    monkeypatch.setattr(Bystanders, "examine", examine)
    user_id = await live.person()
    with live.open_gates():
        outcome = await live.teach(await live.ask(user_id, QUESTION), "no emoji please")
    assert examined == [NUM_BYSTANDERS]
    if is_left:
        assert (outcome.status, outcome.adapter_version) == ("learned", 1)
    else:
        assert (outcome.status, outcome.adapter_version, outcome.reason) == ("kept", 0, REASON)
        assert (await live.feedback(outcome.feedback_id)).status == FeedbackStatus.KEPT
    assert await live.notes(user_id) == []


@pytest.mark.engine
async def test_an_unsure_wish_that_moves_other_prompts_is_one(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both legs agree, so the person is not asked."""
    told(live, monkeypatch, reading(Meaning.WISH, 0.1, is_sure=False))
    user_id = await live.person()
    with live.open_gates():
        outcome = await live.teach(await live.ask(user_id, QUESTION), "no emoji please")
    assert (outcome.reading, outcome.is_unsure, outcome.note) == ("wish", False, "no emoji please")


@pytest.mark.engine
async def test_what_is_unsure_reaches_no_other_prompt(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is taught as a remark, the outcome says so, and the stored outcome, too."""
    told(live, monkeypatch, reading(Meaning.REMARK, 0.1, is_sure=False, second=Meaning.WISH))
    user_id = await live.person()
    with live.open_gates():
        outcome = await live.teach(await live.ask(user_id, QUESTION), "no emoji please")
    assert (outcome.reading, outcome.is_unsure, outcome.note) == ("remark", True, None)
    again = await live.engine.learn(outcome.feedback_id)
    assert (again.reading, again.is_unsure) == ("remark", True)


@pytest.mark.engine
async def test_a_pressed_scope_is_kept_beside_the_reading(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on makes a wish of what was read as a remark; the row has both."""
    told(live, monkeypatch, reading(Meaning.REMARK, 0.9, is_sure=True))
    user_id = await live.person()
    answer = await live.ask(user_id, QUESTION)
    with live.open_gates():
        outcome = await live.teach(answer, "no emoji please", scope=Scope.ALWAYS)
    row = await live.feedback(outcome.feedback_id)
    assert (outcome.reading, outcome.note) == ("wish", "no emoji please")
    assert (row.scope, row.reading) == ("always", "remark")
