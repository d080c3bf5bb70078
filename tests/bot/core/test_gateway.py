"""bot.core.gateway: conversations as the model sees them, and answers that are stored before they end."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from bot.config import ChatSettings, HttpSettings
from bot.core.gateway import Turn, check_text, choice_id, conversation, question, sampling_of
from bot.errors import AnswerTimeout, InvalidField, NotReady, Overloaded
from bot.events import Author, Message, Place
from engine.errors import EngineRestarting
from engine.requests import Delta, Sampling
from storage.conversations import chats
from storage.conversations.chats import Context
from storage.people import people
from storage.tables import Completion
from tests.bot.conftest import Heed, StartHeed
from tests.patience import until
from tests.storage.stored import all_ids

ANA = Author("http", "ana", "ana")
HOME = Place("http", "home")


def said(text: str) -> Message:
    """A message of Ana's at home."""
    return Message(ANA, HOME, text)


async def answered(heed: Heed, text: str) -> Completion:
    """One turn of Ana's conversation."""
    gateway = heed.core.gateway
    return await gateway.answer(await gateway.turn(said(text)))


async def test_the_next_turn_sees_the_conversation(heed: Heed) -> None:
    """A kept conversation is sent with every message, newest last."""
    first = await answered(heed, "bees")
    turn = await heed.core.gateway.turn(said("and wasps"))
    assert turn.messages == [
        {"role": "user", "content": "bees"},
        {"role": "assistant", "content": first.text},
        {"role": "user", "content": "and wasps"},
    ]


async def test_a_retried_answer_takes_its_place(heed: Heed) -> None:
    """After a retry of an older turn the model sees the new answer, where the old one stood."""
    gateway = heed.core.gateway
    first = await answered(heed, "bees")
    await answered(heed, "wasps")
    again = await gateway.answer(gateway.again(first, Sampling(temperature=1.0, seed=3)))
    assert again.text != first.text
    turns = await gateway.turns(first.chat_id or "")
    assert [(question(turn), turn.text == again.text) for turn in turns] == [("bees", True), ("wasps", False)]


async def test_history_keeps_what_was_replaced(heed: Heed) -> None:
    """A turn's history has all its answers, the one that counts last, also after two retries."""
    gateway = heed.core.gateway
    first = await answered(heed, "bees")
    second = await gateway.answer(gateway.again(first, gateway.varied(first)))
    third = await gateway.answer(gateway.again(second, gateway.varied(second)))
    ((*answers,),) = await gateway.history(first.chat_id or "")
    assert [answer.id for answer in answers] == [first.id, second.id, third.id]


async def test_a_persona_comes_first(heed: Heed) -> None:
    """The person's persona is the system message of kept conversations."""
    user_id = await heed.core.gateway.person(ANA)
    await heed.core.database.write(lambda s: people.set_persona(s, user_id, "You are a pirate."))
    turn = await heed.core.gateway.turn(said("bees"))
    assert turn.messages[0] == {"role": "system", "content": "You are a pirate."}


async def test_reset_starts_anew(heed: Heed) -> None:
    """After a reset no earlier turn is sent."""
    first = await answered(heed, "bees")
    await heed.core.database.write(lambda s: chats.reset(s, first.chat_id or ""))
    assert len((await heed.core.gateway.turn(said("wasps"))).messages) == 1


async def test_people_do_not_share_a_conversation(heed: Heed) -> None:
    """Two people at a place of the same name have two conversations."""
    await answered(heed, "bees")
    turn = await heed.core.gateway.turn(Message(Author("http", "bob"), HOME, "hello"))
    assert [message["content"] for message in turn.messages] == ["hello"]


async def test_who_speaks_at_the_same_moment_gets_their_own_conversation(heed: Heed) -> None:
    """Conversations that are read together are not mixed up, and one that is new stands beside one that is not."""
    gateway = heed.core.gateway
    await answered(heed, "bees")
    authors = [Author("http", "bob"), ANA, Author("http", "cy")]
    turns = await asyncio.gather(*(gateway.turn(Message(author, HOME, author.account)) for author in authors))
    asked = [[message["content"] for message in turn.messages if message["role"] == "user"] for turn in turns]
    assert asked == [["bob"], ["bees", ANA.account], ["cy"]]
    assert len({turn.chat_id for turn in turns}) == 3
    assert [turn.user_id for turn in turns] == [await gateway.person(author) for author in authors]


async def test_an_answer_is_stored_before_it_ends(heed: Heed) -> None:
    """When the piece with the result comes out, the turn is already in storage with its token ids."""
    gateway = heed.core.gateway
    turn = await gateway.turn(said("bees"))
    async for delta in gateway.stream(turn):
        if delta.result is not None:
            stored = await gateway.completion(turn.user_id, turn.completion_id)
            assert stored.completion_token_ids == delta.result.completion_token_ids
            assert stored.logprobs == delta.result.logprobs
            return
    pytest.fail("no result came")


async def test_closing_a_stream_aborts_it(heed: Heed) -> None:
    """A stream that is closed early ends the generation and stores nothing."""
    gateway = heed.core.gateway
    turn = await gateway.turn(said("bees"))
    stream = gateway.stream(turn)
    await anext(stream)
    await stream.aclose()
    assert heed.engine.num_aborted == 1
    assert await gateway.turns(turn.chat_id or "") == []


async def test_an_answer_waits_for_its_place(start_heed: StartHeed) -> None:
    """Above http.max_streams the next answer waits until one has ended, and says how long."""
    heed = await start_heed(http=HttpSettings(max_streams=1))
    gateway = heed.core.gateway
    stream = gateway.stream(await gateway.turn(said("bees")))
    await anext(stream)
    second = asyncio.create_task(last(gateway.stream(await gateway.turn(said("wasps")))))
    await until(lambda: heed.core.metrics.waiting._value.get() == 1)
    await stream.aclose()
    result = (await second).result
    assert result is not None
    assert result.waited_s > 0
    assert gateway.num_streams == 0


async def test_an_adapter_is_made_ready_while_its_person_waits(
    start_heed: StartHeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not for one who is answered at once, nor where it cannot be: then it is loaded with the question."""
    heed = await start_heed(http=HttpSettings(max_streams=1))
    gateway, engine = heed.core.gateway, heed.engine
    first, second = await gateway.turn(said("bees")), await gateway.turn(said("wasps"))
    stream = gateway.stream(first)
    await anext(stream)
    assert engine.prepared == []
    waiting = asyncio.create_task(last(gateway.stream(second)))
    await until(lambda: engine.prepared == [second.user_id])

    async def fail(_user_id: str) -> None:
        raise EngineRestarting("it is being started")

    monkeypatch.setattr(engine, "prepare", fail)
    third = asyncio.create_task(last(gateway.stream(await gateway.turn(said("ants")))))
    await until(lambda: heed.core.metrics.waiting._value.get() == 2)
    await stream.aclose()
    assert all(piece.result is not None for piece in await asyncio.gather(waiting, third))


async def last(stream: AsyncGenerator[Delta, None]) -> Delta:
    """Return the last piece of a stream."""
    return [delta async for delta in stream][-1]


async def test_too_many_answers_at_once_are_refused(start_heed: StartHeed) -> None:
    """Where none may wait the next answer is refused; when one ends, there is room again."""
    heed = await start_heed(http=HttpSettings(max_streams=1, max_waiting=0))
    gateway = heed.core.gateway
    stream = gateway.stream(await gateway.turn(said("bees")))
    await anext(stream)
    with pytest.raises(Overloaded):
        await anext(gateway.stream(await gateway.turn(said("wasps"))))
    await stream.aclose()
    assert (await answered(heed, "wasps")).text


async def test_a_silent_model_is_not_waited_for(start_heed: StartHeed) -> None:
    """Without a token for chat.stream_timeout_s the answer ends with an error and the generation with it."""
    heed = await start_heed(chat=ChatSettings(stream_timeout_s=0.5))
    heed.engine.token_delay_s = 30
    with pytest.raises(AnswerTimeout):
        await answered(heed, "bees")
    assert heed.engine.num_aborted == 1


async def test_no_answer_before_the_engine_is_ready(heed: Heed) -> None:
    """While the model loads, a turn is refused with what is missing."""
    heed.engine.is_ready = False
    with pytest.raises(NotReady, match="starting"):
        await answered(heed, "bees")


async def test_a_person_is_made_once(heed: Heed) -> None:
    """Ten calls at the same time for a new account give one person, who learns from the start."""
    gateway = heed.core.gateway
    ids = await asyncio.gather(*(gateway.person(ANA) for _ in range(10)))
    assert len(set(ids)) == 1
    assert (await gateway.user(ids[0])).is_learning


async def test_looking_makes_nobody(heed: Heed) -> None:
    """`known` of a stranger is an unstored row, and leaves no person behind."""
    assert (await heed.core.gateway.known(ANA)).id == ""
    assert await heed.core.database.read(all_ids) == []


async def test_after_forgetting_a_person_is_new(heed: Heed) -> None:
    """The remembered id goes with the person."""
    gateway = heed.core.gateway
    before = await gateway.person(ANA)
    await gateway.forget(before)
    assert await gateway.person(ANA) != before


async def test_a_retry_is_varied(heed: Heed) -> None:
    """An answer asked for once more is sampled warm enough to differ, with a seed of its own."""
    gateway = heed.core.gateway
    first = await answered(heed, "bees")
    varied = gateway.varied(first)
    assert varied.temperature >= gateway.settings.retry_temperature
    assert varied.seed is not None


async def test_a_stored_answer_keeps_all_of_its_sampling(heed: Heed) -> None:
    """A retry after a lesson is sampled as its answer was; the model's own wishes are part of that."""
    heed.engine.sampling = Sampling(0.6, 0.95, top_k=20, repetition_penalty=1.05)
    first = await answered(heed, "bees")
    assert sampling_of(first) == heed.core.gateway.sampling()
    assert heed.core.gateway.varied(first).top_k == 20


def test_a_text_that_cannot_be_stored_is_refused() -> None:
    """NUL, half a surrogate pair and too many characters are refused before the model sees them."""
    for text in ("a\x00b", "\ud800", "x" * 11):
        with pytest.raises(InvalidField):
            check_text(text, 10, "text")
    assert check_text("né 🙂", 10, "text") == "né 🙂"


def test_choices_share_an_id() -> None:
    """Choice 0 has the completion's id itself."""
    assert (choice_id("c", 0), choice_id("c", 2)) == ("c", "c.2")


def test_a_conversation_without_turns_is_the_message() -> None:
    """No persona and no turns: the text alone."""
    assert conversation(Context("c", None, []), "hi") == [{"role": "user", "content": "hi"}]


def test_a_turn_has_an_id_of_its_own() -> None:
    """Two turns never share a completion id."""
    assert Turn("u", [], Sampling()).completion_id != Turn("u", [], Sampling()).completion_id
