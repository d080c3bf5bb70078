"""Adapters by CLaaS's names, `/v1/lora`, and the person that a `lora_id` names.

A `lora_id` is the name that `user` gives in heed's own calls; CLaaS's endings `-init`, `-latest` and a time stamp, and
slashes around it, are ignored. With API keys it is a name behind the caller's own key.
"""

import re
from collections.abc import Iterable
from typing import Any

from aiohttp import web

from bot.access.api_keys import OPERATOR
from bot.core.core import Core
from bot.errors import InvalidField, ModelRefused, NotFound, ShapeTaken
from bot.events import Author
from bot.http.claas import responses
from bot.http.claas.bodies import InitBody, LoraQuery, PrefixQuery
from bot.http.protocol import bodies, messages
from bot.http.protocol.app_keys import CORE
from bot.http.protocol.auth import author, holder
from bot.http.protocol.openapi import gives
from storage.people import people
from storage.tables import User

Json = dict[str, Any]
ENDINGS = re.compile(r"(?:-init|-latest|-[0-9]{8}-[0-9]{6})+$")


def canonical(lora_id: str) -> str:
    """Return the one name for CLaaS's variants of a `lora_id`. Raises InvalidField if nothing is left of it."""
    name = ENDINGS.sub("", lora_id.strip().strip("/"))
    if any(part.strip() in ("", ".", "..") for part in name.split("/")):
        raise InvalidField(messages.LORA_ID, "lora_id")
    return name


def owner(request: web.Request, lora_id: str) -> Author:
    """Return the account an adapter belongs to. Raises InvalidField."""
    return author(request, canonical(lora_id), "lora_id")


async def person(request: web.Request, lora_id: str) -> User:
    """Return the person an adapter belongs to. Raises InvalidField, or NotFound if it was never made."""
    user = await request.app[CORE].gateway.known(owner(request, lora_id))
    if not user.id:
        raise NotFound(messages.NO_ADAPTER.format(name=canonical(lora_id)), "lora_id")
    return user


@gives(responses.Lora, takes=InitBody, refuses=(409,))
async def init(request: web.Request) -> web.Response:
    """Make an adapter with this name; an existing one stays as it is (`POST /v1/lora/init`)."""
    core = request.app[CORE]
    body = await bodies.read(request, InitBody)
    who = owner(request, body.lora_id)
    _check_model(core, body)
    shape = _shape(core, body)
    known = await core.gateway.known(who)
    if known.active_version and _is_shaped(body) and shape != known.lora_shape:
        raise ShapeTaken(messages.OTHER_SHAPE.format(name=canonical(body.lora_id)), "lora_id")
    user_id = await core.gateway.person(who)
    if _is_shaped(body):
        await core.database.write(lambda s: people.set_lora_shape(s, user_id, shape))
    return web.json_response(responses.Lora(lora_id=canonical(body.lora_id)))


@gives(responses.Loras, asks=PrefixQuery)
async def list_loras(request: web.Request) -> web.Response:
    """List the caller's adapters by name (`GET /v1/lora?prefix=`)."""
    prefix = bodies.query(request, PrefixQuery).prefix.lstrip("/")
    names = [name for name in await names_of(request) if name.startswith(prefix)]
    return web.json_response(responses.Loras(loras=names))


async def names_of(request: web.Request) -> list[str]:
    """Return the names of the caller's adapters, sorted."""
    accounts = await request.app[CORE].database.read(lambda s: people.accounts(s, "http"))
    return sorted(filter(_is_name, _names(request, accounts)))


@gives(responses.LoraDeleted, asks=LoraQuery)
async def delete(request: web.Request) -> web.Response:
    """Delete an adapter and everything stored about its person; harmless to repeat (`DELETE /v1/lora?lora_id=`)."""
    core = request.app[CORE]
    user = await core.gateway.known(owner(request, bodies.query(request, LoraQuery).lora_id))
    if user.id:
        await core.gateway.forget(user.id)
    return web.json_response(responses.LoraDeleted(deleted=bool(user.id)))


@gives("application/zip", asks=LoraQuery, refuses=(404,))
async def export(request: web.Request) -> web.Response:
    """Send the active version as a zip file without optimizer state (`GET /v1/lora/export?lora_id=`)."""
    core = request.app[CORE]
    core.gateway.require_ready()
    lora_id = bodies.query(request, LoraQuery).lora_id
    user = await person(request, lora_id)
    if not user.active_version:
        raise NotFound(messages.NOTHING_LEARNED.format(name=canonical(lora_id)), "lora_id")
    content = await core.engine.export_adapter(user.id, user.active_version)
    name = re.sub(r"[^A-Za-z0-9._-]", "", canonical(lora_id).replace("/", "__")) or "adapter"
    headers = {"Content-Disposition": f'attachment; filename="{name}.zip"'}
    return web.Response(body=content, content_type="application/zip", headers=headers)


def _names(request: web.Request, accounts: Iterable[str]) -> list[str]:
    if holder(request) is OPERATOR:
        return list(accounts)
    key = holder(request).account
    return [key if account == key else account.removeprefix(f"{key}/") for account in accounts if _is_of(key, account)]


def _is_of(key: str, account: str) -> bool:
    return account == key or account.startswith(f"{key}/")


def _is_name(name: str) -> bool:
    """Return True if a `lora_id` can reach this name: it has none of CLaaS's endings."""
    try:
        return canonical(name) == name
    except InvalidField:
        return False


def _check_model(core: Core, body: InitBody) -> None:
    known = ("heed-base", core.settings.model, core.settings.model_name)
    if body.base_model is not None and body.base_model not in known:
        raise ModelRefused(
            messages.OTHER_MODEL.format(model=core.settings.model_name, wanted=body.base_model[:64]), "base_model"
        )


def _is_shaped(body: InitBody) -> bool:
    """Return True if the body asks for any shape."""
    return (body.lora_r, body.lora_alpha, body.target_modules) != (None, None, None)


def _shape(core: Core, body: InitBody) -> Json | None:
    """Return the requested shape where it differs from the settings, in LearnConfig's names. Raises InvalidField."""
    learn, highest = core.settings.learn, core.settings.host.max_lora_rank
    if body.lora_r is not None and body.lora_r > highest:
        raise InvalidField(messages.RANK_TOO_HIGH.format(highest=highest), "lora_r")
    if not set(body.target_modules or ()) <= set(learn.target_modules):
        raise InvalidField(messages.OTHER_MODULES.format(modules=", ".join(learn.target_modules)), "target_modules")
    modules = None if body.target_modules is None else [m for m in learn.target_modules if m in body.target_modules]
    known = learn.to_dict()
    asked = {"lora_rank": body.lora_r, "lora_alpha": body.lora_alpha, "target_modules": modules}
    return {name: value for name, value in asked.items() if value is not None and value != known[name]} or None
