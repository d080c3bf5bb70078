"""Tests of the generator with the real engine: streams, limits, notes and adapters of an answer."""

import asyncio

import pytest

from engine.errors import PromptTooLongError
from engine.requests import Delta, GenerateRequest, Sampling
from storage.errors import PersonNotFound
from storage.kinds import FeedbackKind, NoteState
from storage.learning import notes
from storage.tables import Note
from tests.engine.live import Live
from tests.patience import until

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="session")]

QUESTION = "Tell me about the koala"


async def deltas(live: Live, user_id: str, text: str = QUESTION, sampling: Sampling | None = None) -> list[Delta]:
    """Return a whole stream."""
    messages = [{"role": "user", "content": text}]
    request = GenerateRequest(user_id, messages, sampling or Sampling())
    return [delta async for delta in live.engine.generate(request)]


# -- generation ------------------------------------------------------------------------------------------------------


# -- what feedback becomes -------------------------------------------------------------------------------------------


async def test_a_stream_comes_in_pieces_and_ends_with_its_result(live: Live) -> None:
    """The result is the sum of the pieces: text, token ids and one log-probability each."""
    async with live.midway(await live.person(), QUESTION) as stream:
        assert (await anext(stream)).token_ids
    found = await deltas(live, await live.person())
    assert all(delta.result is None for delta in found[:-1])
    result = found[-1].result
    assert result is not None
    assert result.text == "".join(d.text for d in found)
    assert result.completion_token_ids == [t for d in found for t in d.token_ids]
    assert result.logprobs == [p for d in found for p in d.logprobs]
    assert len(result.logprobs) == len(result.completion_token_ids)
    assert all(p <= 0 for p in result.logprobs)
    assert 0 < result.time_to_first_token_s <= result.duration_s


async def test_a_finished_answer_ends_with_the_end_of_its_turn(live: Live) -> None:
    """The end-of-turn token is kept, for training, and is no part of the text."""
    result = await live.result(await live.person(), QUESTION)
    assert result.finish_reason == "stop"
    assert result.completion_token_ids[-1] == live.host.tokenizer.eos_token_id
    assert "<|im_end|>" not in result.text


async def test_an_answer_with_tools_may_repeat_itself(live: Live) -> None:
    """A file that it writes may; any other answer is ended there (`engine.host.vllm_types`)."""
    tool = {"type": "function", "function": {"name": "look", "description": "Look.", "parameters": {}}}
    user, brief = await live.person(), Sampling(max_tokens=2)
    answers = [await live.result(user, QUESTION, sampling=brief, tools=tools) for tools in ((), (tool,))]
    assert [answer.sampling["may_repeat"] for answer in answers] == [False, True]


async def test_a_stopped_answer_ends_with_what_was_written(live: Live) -> None:
    """It has the tokens so far, its reason is its own, and vLLM writes no more of it."""
    stop = asyncio.Event()
    never_ends = Sampling(logit_bias={str(live.host.tokenizer.eos_token_id): -100.0})  # in one piece, on a busy machine
    messages = [{"role": "user", "content": QUESTION}]
    request = GenerateRequest(await live.person(), messages, never_ends, stop=stop)
    found = []
    async for delta in live.engine.generate(request):
        found.append(delta)
        stop.set()
    result = found[-1].result
    assert result is not None
    assert (result.finish_reason, len(found)) == ("stopped", 2)
    assert result.completion_token_ids == found[0].token_ids
    assert result.text == "".join(delta.text for delta in found)
    await until(lambda: live.host.num_running == 0)


async def test_notes_in_the_prompt_are_those_of_an_answer(live: Live) -> None:
    """Of twenty notes the engine names those that the next answer has, and a note's size with the most it may have."""
    user_id = await live.person()
    answer = await live.ask(user_id, QUESTION)
    for number in range(20):
        await live.teach(answer, f"wish {number}", kind=FeedbackKind.NOTE)
    result = await live.result(user_id, QUESTION)
    standing = await live.notes(user_id)
    assert [note.text for note in await live.engine.prompt_notes(standing, 0)] == result.notes
    assert 0 < len(result.notes) < 20
    size, most = await live.engine.note_size("wish 1")
    assert 0 < size == standing[1].num_tokens < most


async def test_an_answer_is_as_long_as_it_may_be(live: Live) -> None:
    """`max_tokens` cuts the answer, and the result holds the limit that applied."""
    result = await live.result(await live.person(), QUESTION, sampling=Sampling(max_tokens=4))
    assert len(result.completion_token_ids) == 4
    assert (result.finish_reason, result.sampling["max_tokens"]) == ("length", 4)


async def test_more_tokens_than_fit_become_what_fits(live: Live) -> None:
    """A limit beyond the context is no error."""
    result = await live.result(await live.person(), QUESTION, sampling=Sampling(max_tokens=10**6))
    assert result.finish_reason == "stop"
    assert result.sampling["max_tokens"] < live.host.max_model_len


async def test_greedy_answers_agree_and_seeds_repeat(live: Live) -> None:
    """The same question gives the same greedy answer, and the same seed the same sampled one."""
    user_id = await live.person()
    greedy = [await live.result(user_id, QUESTION) for _ in range(2)]
    assert greedy[0].completion_token_ids == greedy[1].completion_token_ids
    warm = Sampling(temperature=1.5, seed=11)
    sampled = [await live.result(user_id, QUESTION, sampling=warm) for _ in range(2)]
    assert sampled[0].completion_token_ids == sampled[1].completion_token_ids


async def test_top_log_probabilities_come_when_asked_for(live: Live) -> None:
    """Each token brings its likeliest alternatives, itself among them when greedy."""
    found = await deltas(live, await live.person(), sampling=Sampling(top_logprobs=3, max_tokens=3))
    for delta in found:
        assert delta.top_logprobs is not None
        for token, alternatives in zip(delta.token_ids, delta.top_logprobs, strict=True):
            assert len(alternatives) >= 3
            assert alternatives[token] == max(alternatives.values())


async def test_a_conversation_is_context(live: Live) -> None:
    """Earlier turns reach the model, and the result holds the conversation as it was."""
    prior = ({"role": "user", "content": "my dog is called Bingo"}, {"role": "assistant", "content": "Got it."})
    result = await live.result(await live.person(), "what is my dog called?", prior=prior)
    assert result.messages[:2] == [*prior]
    assert "Bingo" in live.host.tokenizer.decode(result.prompt_token_ids)


async def test_a_message_longer_than_the_context_is_refused(live: Live) -> None:
    """The error says so before anything is generated."""
    with pytest.raises(PromptTooLongError, match="Shorten the message"):
        await live.result(await live.person(), "word " * 3000)


async def test_a_long_conversation_keeps_its_notes_and_newest_turns(live: Live) -> None:
    """The oldest turns are left out."""
    user_id, outcome = await live.pupil()
    roles = ("user", "assistant")
    prior = tuple({"role": r, "content": f"{r} turn {i} " + "word " * 20} for i in range(60) for r in roles)
    result = await live.result(user_id, QUESTION, prior=prior)
    text = live.host.tokenizer.decode(result.prompt_token_ids)
    assert len(result.prompt_token_ids) < live.host.max_model_len
    assert str(outcome.note) in text or (await live.notes(user_id))[0].state == NoteState.IN_WEIGHTS
    assert "user turn 59 " in text
    assert "user turn 0 " not in text
    assert len(result.messages) == 121


async def test_long_notes_leave_a_person_their_answers(live: Live) -> None:
    """However long the notes are, the newest that fit are in the prompt and the question is answered."""
    user_id = await live.person()
    answer = await live.ask(user_id, QUESTION)
    for i in range(5):
        await live.teach(answer, f"note {i} " + "hello " * 150, kind=FeedbackKind.NOTE)
    result = await live.result(user_id, QUESTION, sampling=Sampling(max_tokens=8))
    assert result.text
    said = [int(n.split()[1]) for n in result.notes]
    assert said == [0, 1, 2, 3, 4][-len(said) :]
    assert 1 <= len(said) < 5


async def test_nobody_is_answered_who_is_not_known(live: Live) -> None:
    """An unknown person is an error."""
    with pytest.raises(PersonNotFound):
        await live.result("nobody", QUESTION)


async def test_leaving_a_stream_ends_it(live: Live) -> None:
    """A reader who goes away leaves no stream behind."""
    await live.engine.settled()  # what earlier lessons still probe is a stream, too
    async with live.midway(await live.person(), QUESTION):
        assert live.host.num_running == 1
    assert live.host.num_running == 0


async def test_a_remark_is_read_beside_the_notes_of_one_answer(live: Live) -> None:
    """It is no note: the next answer is without it."""
    user_id = await live.person()
    messages = [{"role": "user", "content": QUESTION}]
    request = GenerateRequest(user_id, messages, remark="answer in capital letters")
    (*_, last) = [delta async for delta in live.engine.generate(request)]
    assert last.result is not None
    assert last.result.notes == ["answer in capital letters"]
    assert "capital letters" in live.host.tokenizer.decode(last.result.prompt_token_ids)
    assert (await live.result(user_id, QUESTION)).notes == []


async def test_a_fact_that_the_question_calls_up_is_read_twice_and_told_once(live: Live) -> None:
    """The pocket model does not know its city by the note alone; what the answer is said to have read is one note."""
    user_id, fact = await live.person(), "i live in Rome"
    note = Note(user_id=user_id, text=fact, state=NoteState.WHEN_ASKED, num_tokens=8)
    await live.database.write(lambda s: notes.add(s, note))
    found = await live.result(user_id, "which city do i live in?")
    assert "Rome" in found.text
    assert found.notes == [fact]
    assert live.host.tokenizer.decode(found.prompt_token_ids).count(fact) == 2
    assert (await live.result(user_id, QUESTION)).notes == []
    request = GenerateRequest(user_id, [{"role": "user", "content": "which city do i live in?"}])
    adopted = await live.engine.adopt(request, "Rome.")
    assert (adopted.notes, adopted.prompt_token_ids) == ([fact], found.prompt_token_ids)


async def test_weights_alone_and_the_base_model_can_be_asked(live: Live) -> None:
    """`notes` off leaves the notes out; the base adapter leaves both out."""
    user_id, outcome = await live.lesson()
    both, weights, base = [
        await live.result(user_id, QUESTION, **options) for options in ({}, {"notes": "off"}, {"adapter": "base"})
    ]  # type: ignore[arg-type]
    assert (both.adapter_version, both.notes) == (1, [outcome.note])
    assert (weights.adapter_version, weights.notes) == (1, [])
    assert (base.adapter_version, base.notes) == (0, [])
    fresh = await live.result(await live.person(), QUESTION)
    assert base.completion_token_ids == fresh.completion_token_ids
