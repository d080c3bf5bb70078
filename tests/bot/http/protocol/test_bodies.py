"""bot.http.protocol.bodies: the shapes of request bodies."""

import pytest
from pydantic import ValidationError

from bot.http.protocol.bodies import ChatBody, FeedbackBody, MessageBody
from tests.bot.conftest import Heed


def test_fields_of_other_servers_are_ignored() -> None:
    """Unknown fields of OpenAI's clients are ignored."""
    assert ChatBody.model_validate({"messages": [], "keep_alive": 1, "options": {}}).n == 1


def test_numbers_are_not_taken_from_text() -> None:
    """The text "5" is not the number 5."""
    with pytest.raises(ValidationError):
        ChatBody.model_validate({"messages": [], "n": "5"})


def test_whole_numbers_are_numbers() -> None:
    """A temperature of 1 is accepted as 1.0."""
    assert ChatBody.model_validate({"messages": [], "temperature": 1}).temperature == 1.0


def test_not_a_number_is_refused() -> None:
    """JSON's NaN and Infinity are refused."""
    with pytest.raises(ValidationError):
        ChatBody.model_validate({"messages": [], "temperature": float("nan")})


def test_parts_become_one_text() -> None:
    """A message in parts is the text of its parts, in order."""
    message = MessageBody.model_validate(
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}
    )
    assert message.plain() == {"role": "user", "content": "ab"}


def test_feedback_waits_by_default() -> None:
    """wait is true and retry false unless the body says otherwise."""
    body = FeedbackBody.model_validate({"kind": "note", "text": "x"})
    assert (body.wait, body.retry) == (True, False)


@pytest.mark.parametrize("path", ["/v1/feedback", "/v1/users/local/adapters"])
async def test_a_body_that_is_not_packed_as_it_says_is_refused(heed: Heed, path: str) -> None:
    """A body that does not match its Content-Encoding is 400."""
    response = await heed.client.post(path, data=b"not deflated", headers={"Content-Encoding": "deflate"})
    assert (response.status, (await response.json())["error"]["type"]) == (400, "invalid_request_error")


async def test_numbers_of_a_query_are_texts(heed: Heed) -> None:
    """A query has no other values; a text that is no number is refused by its name."""
    path = "/v1/users/ana/history?limit="
    assert (await heed.get(f"{path}7"))[0] == 200
    status, refused = await heed.get(f"{path}seven")
    assert (status, refused["error"]["param"]) == (400, "limit")
