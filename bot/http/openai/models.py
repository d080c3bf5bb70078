"""The names that a call's `model` may have, and the adapter that each one means: `GET /v1/models`.

`heed` is the caller's own adapter and `heed-base` the model without one. Without API keys, when every caller is the
operator, an adapter's name (`bot.http.claas.adapters`) is a model, too, also in vLLM's form with dashes for slashes.
"""

import re

from aiohttp import web

from bot.access.api_keys import OPERATOR
from bot.errors import InvalidField, UnknownModel
from bot.events import Author
from bot.http.claas.adapters import canonical, names_of
from bot.http.openai import responses
from bot.http.protocol import messages
from bot.http.protocol.app_keys import CORE
from bot.http.protocol.auth import author, holder
from bot.http.protocol.bodies import OWN_MODELS, ModelBody
from bot.http.protocol.openapi import gives


@gives(responses.Models)
async def list_models(request: web.Request) -> web.Response:
    """List the caller's own adapter, the base model, and other adapters by their names (`GET /v1/models`)."""
    names = [*OWN_MODELS, *await _adapters(request)]
    data = [_model(request, name) for name in names]
    return web.json_response(responses.Models(object="list", data=data))


@gives(responses.Model, refuses=(404,))
async def one_model(request: web.Request) -> web.Response:
    """Return one model (`GET /v1/models/{model}`)."""
    name = request.match_info["model"]
    if name not in OWN_MODELS and await _adapter(request, name) is None:
        raise UnknownModel(_no_model(name), "model")
    return web.json_response(_model(request, name))


async def asker(request: web.Request, body: ModelBody) -> Author:
    """Return the account that a call to a model speaks for. Raises UnknownModel, or InvalidField for a person's name
    beside another's adapter."""
    if body.model in OWN_MODELS:
        return author(request, body.user)
    name = await _adapter(request, body.model)
    if name is None:
        raise UnknownModel(_no_model(body.model), "model")
    if body.user.strip() not in ("", name):
        raise InvalidField(messages.MODEL_IS_ADAPTER.format(name=name), "user")
    return author(request, name)


async def _adapter(request: web.Request, model: str) -> str | None:
    """Return the adapter that a model's name means, if there is one."""
    try:
        wanted = canonical(model)
    except InvalidField:
        return None
    names = await _adapters(request)
    return wanted if wanted in names else next((name for name in names if as_in_vllm(name) == wanted), None)


async def _adapters(request: web.Request) -> list[str]:
    if holder(request) is not OPERATOR:
        return []
    return [name for name in await names_of(request) if name not in OWN_MODELS]


def as_in_vllm(name: str) -> str:
    """Return an adapter's name as CLaaS gives it to vLLM."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-")


def _model(request: web.Request, name: str) -> responses.Model:
    owner = request.app[CORE].settings.model_name
    return responses.Model(id=name, object="model", created=0, owned_by=owner)


def _no_model(name: str) -> str:
    return messages.NO_MODEL.format(name=name[:64], models=" or ".join(OWN_MODELS))
