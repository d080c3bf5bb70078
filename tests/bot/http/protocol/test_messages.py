"""bot.http.protocol.messages: each refusal is a sentence that names the field and repeats a short wrong value."""

from typing import Any

import pytest

from bot.errors import InvalidField
from bot.http.claas.bodies import BatchBody
from bot.http.continualcode.sessions import SessionBody
from bot.http.protocol import bodies, messages


@pytest.mark.parametrize(
    ("kind", "data", "message"),
    [
        (bodies.ChatBody, {"max_tokens": "abc"}, "max_tokens must be a whole number, not 'abc'."),
        (bodies.ChatBody, {"max_tokens": 0}, "max_tokens must be at least 1, not 0."),
        (bodies.ChatBody, {"temperature": 2.5}, "temperature must be at most 2.0, not 2.5."),
        (bodies.ChatBody, {"temperature": None, "top_p": 0}, "top_p must be greater than 0.0, not 0."),
        (bodies.ChatBody, {"stream": "yes"}, "stream must be true or false, not 'yes'."),
        (bodies.ChatBody, {"messages": "hello"}, "messages must be a list, not 'hello'."),
        (bodies.ChatBody, {"messages": "h" * 50}, "messages must be a list."),
        (bodies.ChatBody, {"heed": []}, "heed must be an object."),
        (bodies.ChatBody, {"stop": [""]}, "stop.0 must not be empty."),
        (bodies.ChatBody, {"messages": [{"role": "user"}]}, "messages.0 has no content."),
        (bodies.ChatBody, {"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]},
         "messages.0.content.0 is of the type 'input_audio', and heed reads words. Send text alone."),
        (bodies.ChatBody, {"user": "u" * 65}, "user must have at most 64 characters."),
        (bodies.RollbackBody, {}, "version is missing."),
        (bodies.RollbackBody, {"version": 10**50}, "version must be less than 2147483648."),
        (bodies.FeedbackBody, {"kind": True}, "kind must be 'correction', 'ideal', 'approval', 'reaction' or 'note', "
         "not true."),
        (BatchBody, {"requests": []}, "requests must not be empty."),
        (SessionBody, {"prompt": "x"}, "prompt is not a field of this call."),
    ],
)  # fmt: skip
def test_a_wrong_field_is_told_in_a_sentence(kind: Any, data: dict[str, Any], message: str) -> None:
    """The sentence names the field, its rule and the value, if the value is short."""
    with pytest.raises(InvalidField) as refusal:
        bodies.checked(kind, data)
    assert refusal.value.message == message


def test_every_message_is_a_sentence() -> None:
    """It begins with a capital, heed's name or the name of a field, and ends with a full stop."""
    sentences = {name: text for name, text in vars(messages).items() if name.isupper() and isinstance(text, str)}
    fields = ("heed", "messages", "retry", "completion_id", "lora_id", "target_modules", "minutes",
              "before", "after", "version", "{")  # fmt: skip
    assert len(sentences) > 40
    for text in sentences.values():
        assert text[0].isupper() or text.startswith(fields), text
        assert text.endswith("."), text
