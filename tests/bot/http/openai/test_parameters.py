"""bot.http.openai.parameters: parameters of other servers are refused by name, never ignored."""

from typing import Any, get_type_hints

import pytest
from openai.types.chat import completion_create_params
from openai.types.completion_create_params import CompletionCreateParamsNonStreaming

from bot.errors import NotSupported
from bot.http.openai.parameters import REFUSED, refuse
from bot.http.protocol import bodies
from tests.bot.conftest import Heed

CHAT_PARAMETERS = get_type_hints(completion_create_params.CompletionCreateParamsNonStreaming)
TEXT_PARAMETERS = get_type_hints(CompletionCreateParamsNonStreaming)


@pytest.mark.parametrize("name", REFUSED)
def test_the_refusal_names_the_parameter(name: str) -> None:
    """The error has the parameter's name, also in its sentence, and OpenAI's code; null asks for nothing."""
    with pytest.raises(NotSupported, match=name) as refused:
        refuse({name: {}})
    assert (refused.value.param, refused.value.code) == (name, "unsupported_parameter")
    refuse({name: None})


@pytest.mark.parametrize(
    ("kind", "names"), [(bodies.ChatBody, CHAT_PARAMETERS), (bodies.TextBody, TEXT_PARAMETERS)], ids=["chat", "text"]
)
def test_every_parameter_of_the_openai_client_is_known(kind: type[bodies.Body], names: dict[str, Any]) -> None:
    """Each parameter that the installed client documents is a field of the call or is refused by name."""
    assert [name for name in names if name not in kind.model_fields and name not in REFUSED] == []


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
async def test_a_refused_parameter_reaches_no_model(heed: Heed, path: str) -> None:
    """Both calls refuse before anything is done."""
    call = {"messages": [{"role": "user", "content": "bees"}], "prompt": "bees", "guided_regex": "a*"}
    status, answer = await heed.post(path, call)
    assert (status, answer["error"]["param"]) == (400, "guided_regex")
    assert heed.engine.requests == []
