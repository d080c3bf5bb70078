"""engine.samples.pairs: the one place where a stored conversation becomes a sample."""

from dataclasses import asdict, replace
from typing import Any

import pytest

from engine.prompts.builder import PromptBuilder
from engine.prompts.hindsight import Hindsight, plain_messages, teacher_messages
from engine.requests import Sampling
from engine.samples import pairs
from engine.samples.pairs import Views
from engine.samples.rollouts import Rollout
from tests.engine.rows import completion

LIMIT = 120
TALK = [
    {"role": "system", "content": "You are kind."},
    *({"role": role, "content": f"{role} number {i}"} for i in range(30) for role in ("user", "assistant")),
    {"role": "user", "content": "what is a koala?"},
]


@pytest.fixture(scope="module")
def prompts(pocket_tokenizer: Any) -> PromptBuilder:
    """Prompts of the pocket model, of which training reads little."""
    return PromptBuilder(pocket_tokenizer, 4096, max_training_tokens=LIMIT)


def rollout(messages: list[dict[str, str]], answer: list[int], prompt: list[int] | None = None) -> Rollout:
    """A stored answer."""
    return Rollout(messages, prompt or [9], answer, [-0.5] * len(answer))


def views(messages: list[dict[str, str]], feedback: str = "too long") -> Views:
    """The conversation and what the teacher sees of it."""
    return Views(messages, teacher_messages(messages, ["no emoji"], Hindsight(feedback=feedback)))


def test_a_long_conversation_loses_its_oldest_turns_in_both_views(
    prompts: PromptBuilder, pocket_tokenizer: Any
) -> None:
    """System message, newest turns, notes and feedback stay; the two views differ by notes and feedback alone."""
    sample = pairs.pair("correction", rollout(TALK, [4, 5, 2]), views(TALK), prompts)
    student, teacher = (pocket_tokenizer.decode(ids) for ids in (sample.student_ids, sample.teacher_ids))
    assert sample.num_tokens <= LIMIT
    assert sample.response_ids == [4, 5, 2]
    assert all(text in student and text in teacher for text in ("You are kind.", "what is a koala?"))
    assert "no emoji" in teacher
    assert student.count("number") == teacher.count("number")
    assert 0 < student.count("number") < 60
    assert "number 0" not in student


def test_a_plain_view_is_shortened_alike(prompts: PromptBuilder, pocket_tokenizer: Any) -> None:
    """It counts among what training reads, and keeps the turns that the others keep; without one there is none."""
    both = views(TALK)
    sample = pairs.pair("correction", rollout(TALK, [4, 5, 2]), replace(both, plain=plain_messages(TALK)), prompts)
    student, plain = (pocket_tokenizer.decode(sample.prompt(view)) for view in ("student", "plain"))
    assert sample.num_tokens <= LIMIT
    assert (student.count("number"), "Answer the question." in plain) == (plain.count("number"), True)
    assert pairs.pair("correction", rollout(TALK, [4, 5, 2]), both, prompts).plain_ids is None


def test_a_single_message_is_cut_from_its_front(prompts: PromptBuilder, pocket_tokenizer: Any) -> None:
    """Its end stays, in both views; a sign of several tokens is not cut in two."""
    said = [{"role": "user", "content": "🐾é " * 300 + "and the end"}]
    sample = pairs.pair("correction", rollout(said, [4, 2]), views(said), prompts)
    student, teacher = (pocket_tokenizer.decode(ids) for ids in (sample.student_ids, sample.teacher_ids))
    assert sample.num_tokens <= LIMIT
    assert "and the end<" in student
    assert "and the end\n" in teacher
    assert "\ufffd" not in student + teacher


def test_an_answer_that_is_too_long_loses_its_end(prompts: PromptBuilder) -> None:
    """It keeps at least half of what training reads, and its log-probabilities as far as it is kept."""
    endless = rollout(TALK, list(range(4, 404)))
    sample = pairs.with_behaviour(pairs.pair("correction", endless, views(TALK), prompts), endless, prompts)
    assert sample.num_tokens == LIMIT
    assert len(sample.response_ids) >= LIMIT // 2
    assert sample.response_ids == endless.response_token_ids[: len(sample.response_ids)]
    sample.check()


def test_a_prompt_that_is_too_long_to_be_read_is_not_compared(prompts: PromptBuilder) -> None:
    """The importance weight needs the very prompt an answer was sampled with; without it there is none."""
    made = pairs.pair("correction", rollout(TALK, [4, 2]), views(TALK), prompts)
    read = pairs.with_behaviour(made, rollout(TALK, [4, 2], [9] * (LIMIT - 2)), prompts)
    unread = pairs.with_behaviour(made, rollout(TALK, [4, 2], [9] * (LIMIT - 1)), prompts)
    assert read.behaviour_logprobs == [-0.5, -0.5]
    assert unread.behaviour_logprobs is None
    assert unread.num_tokens <= LIMIT


def test_logprobs_that_are_not_the_models_own_weigh_nothing(prompts: PromptBuilder) -> None:
    """Nothing is compared with what temperature, a cut of the tail, a penalty, a bias or a grammar has changed."""
    stored = completion("ana", sampling={"temperature": 0.6, "top_p": 1.0, "top_k": 20})
    changed: list[dict[str, object]] = [
        {"repetition_penalty": 1.1},
        {"frequency_penalty": 0.5},
        {"presence_penalty": -0.5},
        {"logit_bias": {"7": 1}},
        {"json_schema": {"type": "object"}},
        {"structural_tag": "{}"},
    ]
    others = [completion("ana", sampling={"temperature": 0.0, **more}) for more in changed]
    for answer in (stored, *others):
        made = pairs.pair("correction", Rollout.of(answer), views(TALK), prompts)
        assert pairs.with_behaviour(made, Rollout.of(answer), prompts).behaviour_logprobs is None
    whole = Rollout.of(completion("ana", sampling=asdict(Sampling(temperature=1.0, seed=3))))
    made = pairs.pair("correction", whole, views(TALK), prompts)
    assert pairs.with_behaviour(made, whole, prompts).behaviour_logprobs == whole.logprobs


def test_nothing_is_left_of_what_cannot_fit(prompts: PromptBuilder) -> None:
    """Feedback that fills everything leaves a sample without a response, which its maker leaves out."""
    sample = pairs.pair("correction", rollout(TALK, [4, 2]), views(TALK, "no " * LIMIT), prompts)
    assert sample.response_ids == []
    assert pairs.usable([sample]) == []


THOUGHTS, ANSWER = "<think>\nwhy is that so?\n</think>\n\n", "Because."


def test_nothing_is_trained_on_thoughts(prompts: PromptBuilder, pocket_tokenizer: Any) -> None:
    """They stand before the answer in both views; the answer alone is trained, with its own log-probabilities."""
    said, thoughts, answer = TALK[-1:], *(prompts._encoded(text) for text in (THOUGHTS, ANSWER))
    stored = Rollout(
        said, prompts.prompt_token_ids(said), [*thoughts, *answer], [-1.0] * len(thoughts) + [-2.0] * len(answer)
    )
    sample = pairs.with_behaviour(pairs.pair("correction", stored, views(said), prompts), stored, prompts)
    assert sample.response_ids == answer
    assert sample.behaviour_logprobs == [-2.0] * len(answer)
    for side in (sample.student_ids, sample.teacher_ids, sample.behaviour_ids or []):
        assert pocket_tokenizer.decode(side).endswith(THOUGHTS)
    assert "too long" in pocket_tokenizer.decode(sample.teacher_ids)


def test_thoughts_that_never_end_teach_nothing(prompts: PromptBuilder) -> None:
    """There is no answer behind them."""
    endless = rollout(TALK[-1:], prompts._encoded("<think> and so on and on"))
    sample = pairs.with_behaviour(pairs.pair("correction", endless, views(TALK[-1:]), prompts), endless, prompts)
    assert pairs.usable([sample]) == []


def test_long_thoughts_leave_room_for_the_answer(prompts: PromptBuilder) -> None:
    """The end of the thoughts stays, and the whole sample fits."""
    answer = prompts._encoded(ANSWER)
    stored = rollout(TALK, [*prompts._encoded("<think>" + "why " * 2 * LIMIT + "</think>\n\n"), *answer])
    sample = pairs.pair("correction", stored, views(TALK), prompts)
    assert sample.response_ids == answer
    assert sample.num_tokens <= LIMIT


def test_thoughts_go_where_thinking_is_off_by_now(prompts: PromptBuilder, pocket_tokenizer: Any) -> None:
    """An answer that was thought about under another template is taught without its thoughts."""
    answer, asked = prompts._encoded(ANSWER), prompts.prompt_token_ids(TALK[-1:])
    stored = rollout(
        TALK[-1:], [*prompts._encoded("why?</think>\n\n"), *answer], [*asked, *prompts._encoded("<think>\n")]
    )
    sample = pairs.pair("correction", stored, views(TALK[-1:]), prompts)
    assert sample.response_ids == answer
    assert sample.student_ids == asked
