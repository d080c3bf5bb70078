"""engine.samples.rollouts: answers of the adapter that is about to learn, made before they are needed."""

import asyncio
import copy
import random
from dataclasses import replace
from typing import Any

import pytest

from engine.adapter_ref import ZERO_ADAPTER, AdapterRef
from engine.config import LearnConfig
from engine.prompts.bank import Bank
from engine.prompts.builder import PromptBuilder
from engine.prompts.hindsight import plain_messages
from engine.prompts.tool_messages import carried, carrying
from engine.requests import TOOLS, ChatMessage
from engine.samples.rollouts import (
    Rollout,
    RolloutStore,
    conversation,
    of_kind,
    own_rollouts,
    rollout_tokens,
    workplace,
)
from storage.tables import Completion
from tests.engine.live import Live
from tests.engine.rows import completion

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="session")]

BANK = Bank(
    ("Tell me about judo", "What is paella?", "Where is Oslo?"),
    ("What is 2 plus 3?", "Repeat: blue river"),
    tasks=((("user", "Fix it."),), (("user", "Look."), ("assistant", "I look."), ("tool", "a file"))),
    task_tools=("read",),
)
READ = {"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}
WORK = carrying([{"role": "system", "content": "You work."}, {"role": "user", "content": "Do it."}], [READ])


def asked(question: str, version: int = 1, **fields: object) -> Completion:
    """A stored answer to a question."""
    messages = [{"role": "user", "content": question}]
    return completion("u", messages=messages, adapter_version=version, **fields)


def store_of(live: Live, anchors: int = 0, **learn: object) -> RolloutStore:
    """A store with this module's bank, or one of that many anchors."""
    config = LearnConfig.from_dict(LearnConfig().to_dict() | learn)
    bank = replace(BANK, anchors=tuple(f"Say {n}." for n in range(anchors))) if anchors else BANK
    return RolloutStore(live.host, live.parts.context.trainer, live.parts.context.prompts, bank, config)


async def test_a_persons_answers_of_the_version_are_rollouts_as_they_are() -> None:
    """Only answers this very version gave without notes in the prompt are on-policy; one per question, newest first."""
    recent = [
        asked("newest", text="second"),
        asked("noted", notes=["be brief"]),
        asked("older version", version=0),
        asked("empty", completion_token_ids=[], logprobs=[]),
        asked("newest", text="first"),
        asked("oldest"),
    ]
    found = own_rollouts(recent, 1)
    assert [r.messages[-1]["content"] for r in found] == ["newest", "oldest"]
    assert found[0].response_token_ids == [4, 5]
    assert found[0].logprobs == [-0.25, -1.5]


async def test_prepared_rollouts_are_ready_for_the_update(live: Live) -> None:
    """As many as an update uses, each with its prompt, its tokens and a log-probability per token."""
    store = store_of(live, num_counterfactuals=3)
    await store.prepare(ZERO_ADAPTER, [])
    taken = await store.take(ZERO_ADAPTER, [], 3)
    assert sorted(r.messages[-1]["content"] for r in taken) == sorted(BANK.topics)
    for rollout in taken:
        assert rollout.prompt_token_ids == live.parts.context.prompts.prompt_token_ids(rollout.messages)
        assert len(rollout.logprobs) == len(rollout.response_token_ids) > 0
        assert all(p <= 0 for p in rollout.logprobs)


async def test_a_finished_rollout_ends_with_the_end_of_its_turn(live: Live) -> None:
    """The end-of-turn token is among the trained ones, and nothing is longer than allowed."""
    store = store_of(live, max_rollout_tokens=100)
    end = live.host.tokenizer.eos_token_id
    anchors = await store.anchors(ZERO_ADAPTER, 2)
    assert all(r.response_token_ids[-1] == end for r in anchors)
    cut = await store_of(live, max_rollout_tokens=3).prepare(ZERO_ADAPTER, [])
    assert all(len(r.response_token_ids) <= 3 for r in cut)
    assert all(end not in r.response_token_ids for r in cut)  # it did not end, so no ending is taught


async def test_anchors_are_the_base_models_own_greedy_answers(live: Live) -> None:
    """Asked twice they are the same, whatever the random source says about which are drawn."""
    first = {r.messages[-1]["content"]: r.response_token_ids for r in await store_of(live).anchors(ZERO_ADAPTER, 9)}
    second = {r.messages[-1]["content"]: r.response_token_ids for r in await store_of(live).anchors(ZERO_ADAPTER, 9)}
    assert first == second
    assert first.keys() == {*BANK.anchors}


async def test_a_lesson_waits_for_the_anchors_it_needs_and_none_is_answered_twice(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some are ready before all that are kept, also where two ask at once."""
    store, answered = store_of(live, anchors=40), list[str]()
    answer = store._answer

    async def counted(ref: AdapterRef, asked: list[list[ChatMessage]], temperature: float) -> list[Rollout]:
        answered.extend(messages[-1]["content"] for messages in asked)
        return await answer(ref, asked, temperature)

    monkeypatch.setattr(store, "_answer", counted)
    found = await asyncio.gather(*(store.anchors(ZERO_ADAPTER, 8) for _ in range(2)))
    assert [len(anchors) for anchors in found] == [8, 8]
    assert 8 <= len(answered) < 40
    await asyncio.gather(store.prepare_anchors(ZERO_ADAPTER), store.anchors(ZERO_ADAPTER, 40))
    assert sorted(answered) == sorted(set(answered)) == sorted(f"Say {n}." for n in range(40))


async def test_one_persons_prompts_are_never_used_for_another(live: Live) -> None:
    """Rollouts of the base model, which all people share, never hold a person's words."""
    store = store_of(live)
    await store.prepare(ZERO_ADAPTER, [asked("my secret", version=0)])
    taken = await store.take(ZERO_ADAPTER, [], 3)
    assert {r.messages[-1]["content"] for r in taken} <= {*BANK.topics}


async def test_a_persons_own_prompts_come_first(live: Live) -> None:
    """With an adapter of their own, half of the rollouts answer the person's recent prompts, without notes."""
    user_id, outcome = await live.pupil()
    ref = await live.parts.context.active.active(user_id)
    assert ref.number == outcome.adapter_version
    store = store_of(live, num_counterfactuals=4)
    ready = await store.prepare(ref, [asked("Where is Lima?", version=0), asked("What is golf?", version=0)])
    assert {r.messages[-1]["content"] for r in ready[:2]} == {"Where is Lima?", "What is golf?"}
    assert all("Notes about" not in live.host.tokenizer.decode(r.prompt_token_ids) for r in ready)
    store.drop(ref.name)
    own = [asked("Tell me about golf", version=ref.number)]
    taken = await store.take(ref, own, 4)
    assert taken[0].messages == own[0].messages
    assert len(taken) == 4


async def test_no_question_is_taken_twice(live: Live) -> None:
    """A person's stored answer replaces the ready rollout of the same question."""
    store = store_of(live, num_counterfactuals=3)
    await store.prepare(ZERO_ADAPTER, [])
    taken = await store.take(ZERO_ADAPTER, [asked("What is paella?", version=0)], 3)
    assert sorted(r.messages[-1]["content"] for r in taken) == sorted(BANK.topics)
    assert taken[0].response_token_ids == [4, 5]


async def test_the_question_that_is_left_out_is_never_taken(live: Live) -> None:
    """Neither from the ready rollouts nor from the person's own answers: another prompt than the corrected one."""
    store = store_of(live, num_counterfactuals=3)
    corrected = [{"role": "user", "content": "What is paella?"}]
    for _ in range(3):
        await store.prepare(ZERO_ADAPTER, [])
        own = [asked("What is paella?", version=0), asked("Where is Lima?", version=0)]
        for count in (1, 2):
            taken = await store.take(ZERO_ADAPTER, own, count, without=corrected)
            assert len(taken) == count
            assert "What is paella?" not in {r.asked for r in taken}


async def test_rollouts_are_sampled_with_the_set_temperature(live: Live) -> None:
    """At temperature 0 two preparations agree; an update's own are drawn from the model's distribution."""
    store = store_of(live, rollout_temperature=0.0, num_counterfactuals=len(BANK.topics))
    first, second = [
        {r.messages[-1]["content"]: r.response_token_ids for r in await store.prepare(ZERO_ADAPTER, [])}
        for _ in range(2)
    ]
    assert first == second
    assert LearnConfig().rollout_temperature == 1.0


async def test_topics_of_the_bank_fill_up_what_the_teacher_is_asked(live: Live) -> None:
    """The given conversations come first; with enough of them the bank is not asked, with more they are cut."""
    given = [[{"role": "user", "content": text}] for text in ("one?", "two?")]
    store = store_of(live)
    filled = store.with_topics(given, 4)
    assert filled[:2] == given
    assert {c[0]["content"] for c in filled[2:]} <= {*BANK.topics}
    assert len(filled) == 4
    assert store.with_topics(given, 2) == given
    assert store.with_topics(given, 1) == given[:1]


async def test_topics_of_an_agents_work_are_tasks_in_its_place(live: Live) -> None:
    """With the system message and the tools of the work; with other tools the topics are those of every chat."""
    store = store_of(live)
    given, *tasks = store.with_topics([WORK], 3, like=WORK)
    assert given == WORK
    assert [[message["content"] for message in task] for task in sorted(tasks, key=len)] == [
        ["You work.", "Fix it."], ["You work.", "Look.", "I look.", "a file"],
    ]  # fmt: skip
    assert [carried(task) for task in tasks] == [[READ], [READ]]
    weather = [READ | {"function": {"name": "weather"}}]
    (topic,) = store.with_topics([], 1, like=carrying(WORK, weather))
    assert topic[0]["content"] in BANK.topics


async def test_rollouts_at_work_are_ready_for_that_place_alone(live: Live) -> None:
    """What a person's agent is told reaches nobody else's rollouts of the same version, nor a chat's."""
    store = store_of(live, num_counterfactuals=1)
    taken = await store.take(ZERO_ADAPTER, [], 2, without=WORK)
    assert {r.messages[0]["content"] for r in taken} == {"You work."}
    elsewhere = [{**WORK[0], "content": "You work for Ana."}, *WORK[1:]]
    for like, known in ((elsewhere, "You work for Ana."), ((), "")):
        found = await store.take(ZERO_ADAPTER, [], 2, without=like)
        systems = {r.messages[0]["content"] for r in found if r.messages[0]["role"] == "system"}
        assert systems == ({known} if known else set())
    assert len({workplace(WORK), workplace(elsewhere), workplace([])}) == 3
    store.drop(ZERO_ADAPTER.name)
    assert not store._ready


async def test_own_answers_count_where_they_are_of_the_same_kind() -> None:
    """A chat's for a chat, an agent's for its work; each carries the tools that were in its prompt."""
    chat, work = asked("hello"), asked("do it", sampling={TOOLS: [READ]})
    assert of_kind([chat, work], []) == [chat]
    assert of_kind([chat, work], WORK) == [work]
    assert (carried(conversation(work)), carried(conversation(chat))) == ([READ], [])
    assert own_rollouts([work], 1)[0].messages == conversation(work)


async def test_a_teacher_answers_what_it_was_shown(live: Live) -> None:
    """One answer per conversation, in order, each ending its turn; a short one where brevity was asked for."""
    plain = [{"role": "user", "content": "Tell me about the koala"}]
    told = [{"role": "system", "content": "keep it short"}, *plain]
    store = store_of(live, rollout_temperature=0.0, num_counterfactuals=len(BANK.topics))
    long, short = await store.by_teacher(ZERO_ADAPTER, [plain, told])
    end = live.host.tokenizer.eos_token_id
    assert (long[-1], short[-1]) == (end, end)
    assert len(short) < len(long)


async def test_the_draw_is_a_function_of_the_seed() -> None:
    """The same seed draws the same topics from a bank."""
    assert BANK.sample_topics(2, random.Random(4)) == BANK.sample_topics(2, random.Random(4))


async def test_thoughts_of_a_rollout_come_to_an_end(live: Live, pocket_tokenizer: Any) -> None:
    """A template that opens thoughts, and a model that never ends them: they are ended, and the answer follows."""
    tokenizer = copy.deepcopy(pocket_tokenizer)
    tokenizer.chat_template += "{{ '<think>\\n' }}"
    prompts = PromptBuilder(tokenizer, live.host.max_model_len)
    store = RolloutStore(live.host, live.parts.context.trainer, prompts, BANK, LearnConfig(max_rollout_tokens=4))
    for rollout in await store.prepare(ZERO_ADAPTER, [], 2):
        assert prompts.opens_thoughts(rollout.prompt_token_ids)
        count = prompts.num_thought_tokens(rollout.response_token_ids, is_open=True)
        assert count == 4 + len(prompts.closing_token_ids)
        assert 0 < len(rollout.response_token_ids) - count <= 4
        assert len(rollout.logprobs) == len(rollout.response_token_ids)


@pytest.mark.parametrize(
    ("lengths", "tokens"),
    [([], 100), ([20, 30], 100), ([200] * 9, 200), ([150, 150, 150, 150, 400], 150), ([900] * 3, 300)],
)
async def test_rollouts_are_as_long_as_most_of_a_persons_answers(lengths: list[int], tokens: int) -> None:
    """Never below the floor, never above the longest; one endless answer does not set the length."""
    assert rollout_tokens(lengths, LearnConfig(max_rollout_tokens=100, longest_rollout_tokens=300)) == tokens


async def test_the_rollouts_of_a_lesson_share_its_time() -> None:
    """Many rollouts are shorter than few, down to the floor."""
    few, many = (LearnConfig(num_teacher_rollouts=n, lesson_rollout_tokens=4096) for n in (9, 200))
    assert rollout_tokens([500], few) == 409
    assert rollout_tokens([500], many) == many.max_rollout_tokens


async def test_longer_answers_make_longer_rollouts(live: Live) -> None:
    """Of a person whose answers are long; a person without answers has the floor. Thoughts do not count."""
    store = store_of(live, max_rollout_tokens=3)
    thoughts = live.host.tokenizer.encode("<think>" + "why " * 50 + "</think>", add_special_tokens=False)
    told = [asked("Where is Oslo?", completion_token_ids=[*thoughts, *range(40, 50)])]
    assert (store.length_for([]), store.length_for(told)) == (3, 10)
    long = await store.prepare(ZERO_ADAPTER, told)
    assert max(len(r.response_token_ids) for r in long) > 3
    by_teacher = await store.by_teacher(ZERO_ADAPTER, [r.messages for r in long], store.length_for(told))
    assert 3 < max(map(len, by_teacher)) <= 10


@pytest.mark.parametrize(
    ("question", "is_own"), [("Wie koche ich einen guten Kaffee?", True), ("Tell me about the koala", False)]
)
async def test_to_a_person_of_another_language_their_own_prompts_are_topics(
    live: Live, question: str, is_own: bool
) -> None:
    """The bank is English: a lesson in German would be taught on questions that are never asked."""
    store = live.parts.context.rollouts
    recent = [asked(question)]
    given = [[{"role": "user", "content": "Und jetzt?"}]]
    found = [messages[-1]["content"] for messages in store.with_topics(given, 4, recent)]
    assert (len(found), found[0]) == (4, "Und jetzt?")
    assert (question in found) is is_own


ASKED = [[{"role": "user", "content": f"Tell me about the {animal}"}] for animal in ("koala", "panda")]
SEEN = [[{"role": "system", "content": "keep it short"}, *messages] for messages in ASKED]
GUIDED = LearnConfig(guidance_scale=1.5, teacher_temperature=0.0)
LONGEST = 12


def begin_with(monkeypatch: pytest.MonkeyPatch, live: Live, *tokens: int) -> None:
    """Let the guided teacher's answers begin with these tokens."""

    async def first_tokens(prompts: list[object], _learn: LearnConfig) -> list[int]:
        return list(tokens)[: len(prompts)]

    monkeypatch.setattr(live.parts.context.trainer, "first_tokens", first_tokens)


async def test_a_guided_teachers_answers_begin_as_it_does(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest goes on from there, within the same length."""
    hello, well = (live.host.tokenizer(word)["input_ids"][0] for word in ("Hello", "Well"))
    begin_with(monkeypatch, live, hello, well)
    answers = await live.parts.context.rollouts.as_taught(ZERO_ADAPTER, ASKED, SEEN, GUIDED, LONGEST)
    assert [answer[0] for answer in answers] == [hello, well]
    assert all(1 < len(answer) <= LONGEST for answer in answers)


async def test_how_it_begins_is_guided_away_from_a_plain_note(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trainer gets the teacher's prompts, each with that of a note which asks for nothing."""
    asked: list[tuple[list[int], list[int]]] = []

    async def first_tokens(prompts: list[tuple[list[int], list[int]]], _learn: LearnConfig) -> list[int]:
        asked.extend(prompts)
        return [4] * len(prompts)

    monkeypatch.setattr(live.parts.context.trainer, "first_tokens", first_tokens)
    await live.parts.context.rollouts.as_taught(ZERO_ADAPTER, ASKED, SEEN, GUIDED, LONGEST)
    prompts = live.parts.context.prompts
    plain = [prompts.prompt_token_ids(plain_messages(messages)) for messages in ASKED]
    assert asked == [*zip(map(prompts.prompt_token_ids, SEEN), plain, strict=True)]


async def test_an_answer_does_not_begin_with_its_end(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the guided teacher would say nothing at all, the model's own answer is what it teaches."""
    end = live.parts.context.prompts.end_token_id
    begin_with(monkeypatch, live, end, end)
    answers = await live.parts.context.rollouts.as_taught(ZERO_ADAPTER, ASKED, SEEN, GUIDED, LONGEST)
    assert all(answer[0] != end for answer in answers)


async def test_first_tokens_of_the_real_trainer(live: Live) -> None:
    """Asked of the worker; with a guide that goes no further the teacher says what it says by itself."""
    plain = await live.parts.context.rollouts.greedy_answers(ZERO_ADAPTER, SEEN, LONGEST)
    nearly = LearnConfig(guidance_scale=1.000001, teacher_temperature=0.0)
    answers = await live.parts.context.rollouts.as_taught(ZERO_ADAPTER, ASKED, SEEN, nearly, LONGEST)
    assert [answer[0] for answer in answers] == [answer[0] for answer in plain]


@pytest.mark.parametrize("learn", [LearnConfig(), LearnConfig(guidance_scale=1.5, teacher="current")])
async def test_a_teacher_that_is_not_guided_is_not_asked_how_it_begins(
    live: Live, monkeypatch: pytest.MonkeyPatch, learn: LearnConfig
) -> None:
    """Its answers are the model's from the first token on."""
    monkeypatch.delattr(live.parts.context.trainer.__class__, "first_tokens")
    assert all(await live.parts.context.rollouts.as_taught(ZERO_ADAPTER, ASKED, SEEN, learn, LONGEST))


async def test_a_conversation_that_cannot_be_read_has_no_answer(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its place stays, so that answers and conversations go together."""
    prompts, unread = live.parts.context.prompts, [ASKED[0], SEEN[0]]
    real = prompts.training_prompts
    monkeypatch.setattr(
        prompts, "training_prompts", lambda views, *words: [] if views[0] in unread else real(views, *words)
    )
    answers = await live.parts.context.rollouts.as_taught(ZERO_ADAPTER, ASKED, SEEN, GUIDED, LONGEST)
    assert answers[0] == []
    assert answers[1]


async def test_nothing_asked_is_nothing_answered(live: Live) -> None:
    """A lesson asks about further topics where answers taught nothing, and often there are none."""
    assert await live.parts.context.rollouts.as_taught(ZERO_ADAPTER, [], [], GUIDED, LONGEST) == []
