"""engine.prompts.turn_rules: conversations that a strict chat template takes, with nothing lost."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from engine.errors import ModelUnsuitable
from engine.pocket import WEIGHTS
from engine.prompts.builder import PromptBuilder
from engine.prompts.hindsight import with_notes
from engine.prompts.turn_rules import TurnRules, require_template
from engine.requests import ChatMessage
from tests.tiny_model import CHAT_TEMPLATE, STRICT_TEMPLATE, tiny_tokenizer

SILENT = "{% for m in messages if m['role'] != 'system' %}[{{ m['role'] }}] {{ m['content'] }}\n{% endfor %}"
LED = "{% if messages[0]['role'] != 'system' %}<|im_start|>system\nYou are Tiny.<|im_end|>\n{% endif %}" + CHAT_TEMPLATE
FORGIVING, DEAF = TurnRules(), TurnRules(takes_system=False)
GEMMA = TurnRules(takes_system=False, takes_repeats=False, takes_answer_first=False)


def tokenizer_with(template: str | None) -> Any:
    """Return a tokenizer with a chat template."""
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = template
    return tokenizer


def chat(*turns: tuple[str, str]) -> list[ChatMessage]:
    """Return a conversation."""
    return [{"role": role, "content": content} for role, content in turns]


@pytest.mark.parametrize(("template", "rules"), [(CHAT_TEMPLATE, FORGIVING), (STRICT_TEMPLATE, GEMMA), (SILENT, DEAF)])
def test_the_rules_are_found_by_trying(template: str, rules: TurnRules) -> None:
    """A template that leaves system messages out is no better than one that refuses them."""
    assert TurnRules.of(tokenizer_with(template)) == rules


def test_notes_stand_behind_the_newest_question() -> None:
    """A system message of the person's, the operator's or the template's own stays as it is, and so do other turns."""
    asked = chat(("user", "a"), ("assistant", "b"), ("user", "c"))
    noted = chat(("user", "a"), ("assistant", "b"), ("user", "c\n\nInstructions:\nBe brief.\nNo emoji."))
    said = ["Be brief.", "No emoji."]
    assert FORGIVING.obeyed(with_notes(asked, said)) == noted
    pirate = chat(("system", "Talk like a pirate."))
    assert FORGIVING.obeyed(with_notes([*pirate, *asked], said)) == [*pirate, *noted]
    led = PromptBuilder(tokenizer_with(LED), 512)
    own = chat(("system", "You are Tiny."))
    assert led.prompt_token_ids(with_notes(asked, said)) == led.prompt_token_ids([*own, *noted])
    assert FORGIVING.obeyed(with_notes(pirate, said)) == with_notes(pirate, said)  # no question to stand behind


def test_a_model_that_was_trained_so_has_its_notes_in_the_system_message() -> None:
    """Its tokenizer says so."""
    noted = with_notes(chat(("user", "a")), ["Be brief."])
    assert TurnRules(has_notes_in_system=True).obeyed(noted) == noted
    assert TurnRules.of(AutoTokenizer.from_pretrained(WEIGHTS)).has_notes_in_system


def test_what_a_template_takes_stays_as_it_is() -> None:
    """Nothing is rewritten without need."""
    messages = chat(("system", "s"), ("user", "a"), ("user", "b"), ("assistant", "c"))
    assert FORGIVING.obeyed(messages) == messages


def test_a_system_message_goes_to_the_head_of_the_first_question() -> None:
    """The notes, which stand in it, are read with a template that has no place for them."""
    messages = chat(("system", "Notes"), ("user", "a"), ("assistant", "b"), ("user", "c"))
    assert GEMMA.obeyed(messages) == chat(("user", "Notes\n\na"), ("assistant", "b"), ("user", "c"))
    assert GEMMA.obeyed(chat(("user", "a"), ("system", "late"))) == chat(("user", "a\n\nlate"))
    assert messages[1] == {"role": "user", "content": "a"}


def test_neighbours_of_one_role_become_one_turn() -> None:
    """Two messages in a row are read as one."""
    assert GEMMA.obeyed(chat(("user", "a"), ("user", "b"), ("assistant", "c"))) == chat(
        ("user", "a\n\nb"), ("assistant", "c")
    )


def test_a_prompt_is_made_with_a_strict_template() -> None:
    """The whole way: a system message and two questions in a row, as token ids, with both texts in them."""
    tokenizer = tokenizer_with(STRICT_TEMPLATE)
    messages = chat(("system", "Be short."), ("user", "Hi"), ("user", "there"))
    ids = PromptBuilder(tokenizer, 2048).prompt_token_ids(messages)
    assert tokenizer.decode(ids) == "<|im_start|>user\nBe short.\n\nHi\n\nthere<|im_end|>\n<|im_start|>model\n"


def test_an_answer_that_nothing_came_before_gets_an_empty_question() -> None:
    """A client may begin with the assistant's greeting; what stood in the system message comes first all the same."""
    greeted = chat(("system", "Be short."), ("assistant", "Hello!"), ("user", "Hi"))
    assert GEMMA.obeyed(greeted) == chat(("user", "Be short."), ("assistant", "Hello!"), ("user", "Hi"))
    assert GEMMA.obeyed(greeted[1:]) == chat(("user", ""), ("assistant", "Hello!"), ("user", "Hi"))
    assert FORGIVING.obeyed(greeted) == greeted
    tokenizer = tokenizer_with(STRICT_TEMPLATE)
    shown = tokenizer.decode(PromptBuilder(tokenizer, 2048).prompt_token_ids(greeted))
    assert shown.startswith("<|im_start|>user\nBe short.<|im_end|>\n<|im_start|>model\nHello!<|im_end|>")


@pytest.mark.parametrize(
    "template", ["{% broken", "{{ raise_exception('not today') }}", "{{ messages[5].content }}", None]
)
def test_a_template_that_cannot_be_used_is_refused_with_the_remedy(template: str | None, tmp_path: Path) -> None:
    """It is found out at the start, and not at the first question; one that works passes."""
    with pytest.raises(ModelUnsuitable, match=r"chat template.*Fetch the model again.*HEED_MODEL") as caught:
        require_template(tokenizer_with(template), tmp_path)
    assert str(tmp_path) in str(caught.value)
    require_template(tokenizer_with(STRICT_TEMPLATE), tmp_path)


@given(roles=st.lists(st.sampled_from(["system", "user", "assistant"]), min_size=1, max_size=8))
def test_no_text_is_lost_whatever_the_order(roles: list[str]) -> None:
    """Each text is there once, and no two neighbours have one role."""
    messages = chat(*((role, f"text{i}") for i, role in enumerate(roles)))
    obeyed = GEMMA.obeyed(messages)
    said = " ".join(m["content"] for m in obeyed).split()
    assert sorted(said) == [f"text{i}" for i in range(len(roles))]
    assert all(a["role"] != b["role"] for a, b in pairwise(obeyed))
    assert "system" not in {m["role"] for m in obeyed}
