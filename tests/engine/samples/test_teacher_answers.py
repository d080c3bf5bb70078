"""engine.samples.teacher_answers: what the teacher says where the student is to say it, guided and not."""

import pytest

from engine.adapter_ref import ZERO_ADAPTER
from engine.config import LearnConfig
from engine.samples.teacher_answers import TeacherAnswers
from tests.engine.live import Live

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="session")]

ASKED = [[{"role": "user", "content": f"Tell me about the {animal}"}] for animal in ("koala", "panda")]
SEEN = [[{"role": "system", "content": "keep it short"}, *messages] for messages in ASKED]
GUIDED = LearnConfig(guidance_scale=1.5, teacher_temperature=0.0)
LONGEST = 12


@pytest.fixture
def teacher(live: Live) -> TeacherAnswers:
    """The teacher of the running engine."""
    return TeacherAnswers(live.parts.context)


def begin_with(monkeypatch: pytest.MonkeyPatch, live: Live, *tokens: int) -> None:
    """Let the guided teacher's answers begin with these tokens."""

    async def first_tokens(prompts: list[object], _learn: LearnConfig) -> list[int]:
        return list(tokens)[: len(prompts)]

    monkeypatch.setattr(live.parts.context.trainer, "first_tokens", first_tokens)


async def test_a_guided_teachers_answers_begin_as_it_does(
    live: Live, teacher: TeacherAnswers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest goes on from there, within the same length."""
    hello, well = (live.host.tokenizer(word)["input_ids"][0] for word in ("Hello", "Well"))
    begin_with(monkeypatch, live, hello, well)
    answers = await teacher.to(ZERO_ADAPTER, ASKED, SEEN, GUIDED, LONGEST)
    assert [answer[0] for answer in answers] == [hello, well]
    assert all(1 < len(answer) <= LONGEST for answer in answers)


async def test_an_answer_does_not_begin_with_its_end(
    live: Live, teacher: TeacherAnswers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the guided teacher would say nothing at all, the model's own answer is what it teaches."""
    end = live.parts.context.prompts.end_token_id
    begin_with(monkeypatch, live, end, end)
    answers = await teacher.to(ZERO_ADAPTER, ASKED, SEEN, GUIDED, LONGEST)
    assert all(answer[0] != end for answer in answers)


async def test_first_tokens_of_the_real_trainer(live: Live, teacher: TeacherAnswers) -> None:
    """Asked of the worker; with a guide that goes no further the teacher says what it says by itself."""
    plain = await live.parts.context.rollouts.greedy_answers(ZERO_ADAPTER, SEEN, LONGEST)
    nearly = LearnConfig(guidance_scale=1.000001, teacher_temperature=0.0)
    answers = await teacher.to(ZERO_ADAPTER, ASKED, SEEN, nearly, LONGEST)
    assert [answer[0] for answer in answers] == [answer[0] for answer in plain]


@pytest.mark.parametrize("learn", [LearnConfig(), LearnConfig(guidance_scale=1.5, teacher="current")])
async def test_a_teacher_that_is_not_guided_is_not_asked_how_it_begins(
    live: Live, teacher: TeacherAnswers, monkeypatch: pytest.MonkeyPatch, learn: LearnConfig
) -> None:
    """Its answers are the model's from the first token on."""
    monkeypatch.delattr(live.parts.context.trainer.__class__, "first_tokens")
    assert all(await teacher.to(ZERO_ADAPTER, ASKED, SEEN, learn, LONGEST))


async def test_a_conversation_that_cannot_be_read_has_no_answer(
    live: Live, teacher: TeacherAnswers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its place stays, so that answers and conversations go together."""
    prompts, unread = live.parts.context.prompts, [ASKED[0], SEEN[0]]
    real = prompts.training_prompts
    monkeypatch.setattr(
        prompts, "training_prompts", lambda views, *words: [] if views[0] in unread else real(views, *words)
    )
    answers = await teacher.to(ZERO_ADAPTER, ASKED, SEEN, GUIDED, LONGEST)
    assert answers[0] == []
    assert answers[1]


async def test_nothing_asked_is_nothing_answered(teacher: TeacherAnswers) -> None:
    """A lesson asks about further topics where answers taught nothing, and often there are none."""
    assert await teacher.to(ZERO_ADAPTER, [], [], GUIDED, LONGEST) == []
