"""A Discord server on a loopback socket: what discord.py talks to in the tests, over HTTP and over the gateway.

It keeps to what Discord documents: error codes, nonces that are enforced, interactions that are answered once and
expire, a history newest first. People are played by `say`, `edit`, `react`, `press`, `command`, `submit`; what goes
wrong is asked for with `fail`, and through `sockets` for the gateway.
"""

import asyncio
import json
import re
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from tests.contract.discord_sockets import Session, Sockets
from tests.contract.discord_world import (
    ALREADY_ANSWERED,
    ANA,
    APPLICATION,
    BOT,
    DM,
    NOT_AUTHOR,
    SERVER,
    TEXT,
    THREAD,
    TOKEN,
    TOO_MANY_OLD_EDITS,
    UNKNOWN_INTERACTION,
    UNKNOWN_MESSAGE,
    UNKNOWN_WEBHOOK,
    Channel,
    Interaction,
    Json,
    Refusal,
    World,
    check_body,
    check_commands,
    shown,
    stamp,
)
from tests.patience import PATIENCE_S

Handler = Callable[[web.Request], Awaitable[Any]]
BODY: web.RequestKey[Any] = web.RequestKey("body", object)
FILES: web.RequestKey[Any] = web.RequestKey("files", object)
OPEN = ("/interactions/", "/webhooks/")  # their secret is in the path


@dataclass(frozen=True)
class Call:
    """One request that was made, also one that was made to fail."""

    method: str
    path: str
    body: Any = None
    files: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True)
class Fault:
    """A fault injected into one request. `is_done`: the server does it all the same."""

    status: int = 0
    body: bytes = b"{}"
    content_type: str = "application/json"
    retry_after: float | None = None
    hangs: bool = False
    is_done: bool = False


class DiscordServer:
    """One server with one bot on it."""

    def __init__(self) -> None:
        self.world = World()
        self.sockets = Sockets(TOKEN)
        self.sockets.on_ready = self._ready
        self.calls: list[Call] = []
        self.sessions_left = 1000
        self.sessions_back_ms = 50
        self.is_token_valid = True
        self._faults: dict[tuple[str, str], deque[Fault]] = defaultdict(deque)
        self._port = 0
        self._runner: web.AppRunner | None = None
        self._changed = asyncio.Event()

    @property
    def api_base(self) -> str:
        return f"http://127.0.0.1:{self._port}/api/v10"

    async def start(self) -> None:
        app = web.Application(client_max_size=32 * 1024 * 1024)
        app.router.add_get("/gateway", self.sockets.serve)
        for method, path, handler in self._routes():
            app.router.add_route(method, f"/api/v10{path}", self._answer(handler))
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self._port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Go away, as a server does that is down; `start` brings it back on the same port."""
        self.sockets.cut()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    # ---- what happens ------------------------------------------------------------------------------------------

    def dm(self, channel_id: str = "500") -> Channel:
        """The private chat with Ana."""
        return self.world.channels.setdefault(channel_id, Channel(channel_id, DM))

    def text(self, channel_id: str = "600", server: str = SERVER) -> Channel:
        """A channel of a server."""
        return self.world.channels.setdefault(channel_id, Channel(channel_id, TEXT, server))

    def thread(self, channel_id: str = "700") -> Channel:
        """A thread of the server."""
        return self.world.channels.setdefault(channel_id, Channel(channel_id, THREAD))

    @property
    def last_sequence(self) -> int:
        """The number of the last event sent to a client that is connected; 0 where none is."""
        return self.sockets.last_sequence

    async def say(
        self,
        channel: Channel,
        content: str,
        *,
        author: Json = ANA,
        reply_to: str | None = None,
        age_s: float = 0.0,
        **fields: Any,
    ) -> Json:
        """Write a message as a person."""
        mentions = [BOT] if f"<@{BOT['id']}>" in content else []
        fields = {"mentions": mentions} | self.world.reply(channel, reply_to) | fields
        message = self.world.add(channel, author, content, age_s=age_s, **fields)
        await self.sockets.send("MESSAGE_CREATE", self._event(channel, message))
        return message

    async def edit(self, message: Json, content: str) -> None:
        """Edit a person's message."""
        message |= {"content": content, "edited_timestamp": stamp()}
        await self.sockets.send("MESSAGE_UPDATE", self._event(self.world.channels[message["channel_id"]], message))

    async def react(self, message: Json, emoji: str, *, user: Json = ANA, on: bool = True) -> None:
        """Put a person's emoji on a message, or take it off."""
        users = message.setdefault("_reactions", {}).setdefault(emoji, {})
        if on:
            users[user["id"]] = user
        else:
            users.pop(user["id"], None)
        channel = self.world.channels[message["channel_id"]]
        data: Json = {
            "user_id": user["id"], "channel_id": channel.id, "message_id": message["id"],
            "emoji": {"id": None, "name": emoji}, "burst": False, "type": 0,
        }  # fmt: skip
        if channel.kind != DM:
            data |= {"guild_id": channel.server}
        if on:
            data |= {"message_author_id": message["author"]["id"]}
        await self.sockets.send(f"MESSAGE_REACTION_{'ADD' if on else 'REMOVE'}", data)

    async def command(self, channel: Channel, name: str, text: str = "", *, user: Json = ANA) -> Interaction:
        """Give a slash command as a person."""
        options = [{"name": "text", "type": 3, "value": text}] if text else []
        return await self._interact(2, channel, user, {"id": "1", "name": name, "type": 1, "options": options})

    async def complete(self, channel: Channel, name: str, typed: str) -> Interaction:
        """Type a command's argument as a person."""
        options = [{"name": "text", "type": 3, "value": typed, "focused": True}]
        return await self._interact(4, channel, ANA, {"id": "1", "name": name, "type": 1, "options": options})

    async def press(self, message: Json, action: str, *, user: Json = ANA, **fields: Any) -> Interaction:
        """Press a button as a person."""
        channel = self.world.channels[message["channel_id"]]
        data = {"custom_id": action, "component_type": 2}
        return await self._interact(3, channel, user, data, message=shown(message), **fields)

    async def submit(self, opened: Interaction, text: str) -> Interaction:
        """Fill the form that an interaction opened."""
        assert opened.first is not None
        form = opened.first["data"]
        box = form["components"][0]["components"][0]
        components = [{"type": 1, "components": [{"type": 4, "custom_id": box["custom_id"], "value": text}]}]
        payload = opened.payload
        channel = self.world.channels[payload["channel_id"]]
        data = {"custom_id": form["custom_id"], "components": components}
        return await self._interact(5, channel, _user(payload), data, message=payload["message"])

    def fail(self, method: str, pattern: str, *faults: Fault) -> None:
        """The next requests of a method to paths like `pattern` go wrong, one fault each."""
        self._faults[method, pattern].extend(faults)

    def made(self, method: str, pattern: str) -> list[Call]:
        """The requests that were made of a kind."""
        return [call for call in self.calls if call.method == method and re.fullmatch(pattern, call.path)]

    async def until(self, is_so: Callable[[], object]) -> None:
        """Wait until something is so."""
        async with asyncio.timeout(PATIENCE_S):
            while not is_so():  # noqa: ASYNC110 - what is waited for belongs to others
                await asyncio.sleep(0.005)

    def said(self, channel: Channel) -> list[str]:
        """Return the messages heed wrote in a channel."""
        return [m["content"] for m in channel.messages.values() if m["author"]["id"] == BOT["id"]]

    # ---- gateway -----------------------------------------------------------------------------------------------

    def _ready(self, session: Session) -> tuple[Json, list[tuple[str, Json]]]:
        servers = [server for server in self.world.servers if session.hears(server)]
        ready = {
            "v": 10, "user": BOT, "session_id": session.id, "resume_gateway_url": self._gateway, "guilds": [
                {"id": server, "unavailable": True} for server in servers
            ], "application": {"id": APPLICATION, "flags": 1 << 19},
        }  # fmt: skip
        return ready, [("GUILD_CREATE", self._guild(server)) for server in servers]

    def _guild(self, server: str) -> Json:
        channels = [c.payload for c in self.world.channels.values() if c.kind == TEXT and c.server == server]
        return {
            "id": server, "name": "Bees", "owner_id": "1", "roles": [], "emojis": [], "stickers": [], "features": [],
            "members": [], "member_count": 3, "voice_states": [], "presences": [], "large": False,
            "channels": channels, "threads": [],
        }  # fmt: skip

    @property
    def _gateway(self) -> str:
        return f"ws://127.0.0.1:{self._port}/gateway"

    def _event(self, channel: Channel, message: Json) -> Json:
        return shown(message) | ({"guild_id": channel.server} if channel.kind != DM else {})

    async def _interact(self, kind: int, channel: Channel, user: Json, data: Json, **fields: Any) -> Interaction:
        number = self.world.new_id()
        flags = {key: fields.pop(key) for key in ("is_too_late", "is_expired") if key in fields}
        who = {"user": user} if channel.kind == DM else {"member": _member(user), "guild_id": channel.server}
        payload: Json = {
            "id": number, "application_id": APPLICATION, "type": kind, "data": data, "channel_id": channel.id,
            "token": f"secret:{number}", "version": 1, "entitlements": [], "locale": "en-US",
            "app_permissions": "0",
            "attachment_size_limit": 10_485_760, "authorizing_integration_owners": {}, "channel": channel.payload,
        } | who | fields  # fmt: skip
        interaction = Interaction(payload, **flags)
        self.world.interactions[payload["token"]] = interaction
        await self.sockets.send("INTERACTION_CREATE", payload)
        return interaction

    # ---- HTTP --------------------------------------------------------------------------------------------------

    def _routes(self) -> list[tuple[str, str, Handler]]:
        messages = "/channels/{channel}/messages"
        original = "/webhooks/{app}/{token}/messages/@original"
        return [
            ("GET", "/users/@me", self._me),
            ("GET", "/oauth2/applications/@me", self._application),
            ("GET", "/gateway/bot", self._gateway_bot),
            ("GET", "/applications/{app}/commands", self._get_commands),
            ("PUT", "/applications/{app}/commands", self._put_commands),
            ("GET", "/channels/{channel}", self._get_channel),
            ("GET", messages, self._history),
            ("POST", messages, self._post),
            ("PATCH", f"{messages}/{{message}}", self._patch),
            ("GET", f"{messages}/{{message}}/reactions/{{emoji}}", self._reactions),
            ("POST", "/channels/{channel}/typing", self._typing),
            ("POST", "/interactions/{id}/{token}/callback", self._callback),
            ("POST", "/webhooks/{app}/{token}", self._follow_up),
            ("GET", original, self._get_original),
            ("PATCH", original, self._edit_original),
            ("DELETE", original, self._delete_original),
        ]

    def _answer(self, handler: Handler) -> Handler:
        async def answer(request: web.Request) -> web.StreamResponse:
            path = request.path.removeprefix("/api/v10")
            request[BODY], request[FILES] = await _read(request)
            self.calls.append(Call(request.method, path, request[BODY], request[FILES]))
            fault = self._fault(request.method, path)
            if fault is not None and not fault.is_done:
                return await self._broken(fault)
            is_known = request.headers.get("Authorization") == f"Bot {TOKEN}" and self.is_token_valid
            if not is_known and not path.startswith(OPEN):
                return _json({"message": "401: Unauthorized", "code": 0}, status=401)
            response = await _result(handler, request)
            return await self._broken(fault) if fault is not None else response

        return answer

    def _fault(self, method: str, path: str) -> Fault | None:
        for (wanted, pattern), faults in self._faults.items():
            if faults and wanted == method and re.fullmatch(pattern, path):
                return faults.popleft()
        return None

    async def _broken(self, fault: Fault) -> web.Response:
        if fault.hangs:
            await asyncio.Event().wait()
        if fault.retry_after is not None:
            body = {"message": "You are being rate limited.", "retry_after": fault.retry_after, "global": False}
            headers = {"Via": "1.1 google", "Retry-After": str(fault.retry_after)}
            return _json(body, status=429, headers=headers)
        return web.Response(status=fault.status, body=fault.body, content_type=fault.content_type)

    async def _me(self, _: web.Request) -> Json:
        return BOT | {"verified": True, "mfa_enabled": False, "flags": 0}

    async def _application(self, _: web.Request) -> Json:
        return {
            "id": APPLICATION, "name": "heed", "icon": None, "description": "", "bot_public": True, "verify_key": "0",
            "bot_require_code_grant": False, "owner": ANA, "flags": (1 << 19) * self.sockets.has_message_content,
        }  # fmt: skip

    async def _gateway_bot(self, _: web.Request) -> Json:
        limit = {
            "total": 1000,
            "remaining": self.sessions_left,
            "reset_after": self.sessions_back_ms,
            "max_concurrency": 1,
        }
        return {"url": self._gateway, "shards": 1, "session_start_limit": limit}

    async def _get_commands(self, _: web.Request) -> Any:
        return self.world.commands

    async def _put_commands(self, request: web.Request) -> Any:
        check_commands(request[BODY])
        extra = {"application_id": APPLICATION, "version": "1", "dm_permission": True, "nsfw": False}
        self.world.commands = [command | extra | {"id": self.world.new_id()} for command in request[BODY]]
        return self.world.commands

    async def _get_channel(self, request: web.Request) -> Json:
        return self._channel(request).payload

    async def _history(self, request: web.Request) -> Any:
        before = int(request.query.get("before", 1 << 63))
        ids = sorted((int(key) for key in self._channel(request).messages if int(key) < before), reverse=True)
        limit = int(request.query.get("limit", 50))
        return [shown(self._channel(request).messages[str(key)]) for key in ids[:limit]]

    async def _post(self, request: web.Request) -> Json:
        channel, body = self._channel(request), request[BODY]
        check_body(body, has_files=bool(request[FILES]))
        nonce = body.get("nonce")
        if nonce and body.get("enforce_nonce") and nonce in channel.nonces:
            return shown(channel.messages[channel.nonces[nonce]])
        reply_to = (body.get("message_reference") or {}).get("message_id")
        message = self._write(channel, body, **self.world.reply(channel, reply_to))
        if nonce:
            channel.nonces[nonce] = message["id"]
        await self.sockets.send("MESSAGE_CREATE", self._event(channel, message))
        return shown(message)

    async def _patch(self, request: web.Request) -> Json:
        message = self.world.message(request.match_info["channel"], request.match_info["message"])
        if message["author"]["id"] != BOT["id"]:
            raise Refusal(403, NOT_AUTHOR, "Cannot edit a message authored by another user")
        if message.get("_is_old"):
            raise Refusal(400, TOO_MANY_OLD_EDITS, "Maximum number of edits to old messages reached")
        check_body({"content": message["content"]} | request[BODY])
        message |= {key: request[BODY][key] for key in ("content", "components") if key in request[BODY]}
        message["_edits"] = message.get("_edits", 0) + 1
        return shown(message)

    async def _reactions(self, request: web.Request) -> Any:
        message = self.world.message(request.match_info["channel"], request.match_info["message"])
        return list(message.get("_reactions", {}).get(request.match_info["emoji"], {}).values())

    async def _typing(self, request: web.Request) -> None:
        self._channel(request).typed += 1

    async def _callback(self, request: web.Request) -> None:
        interaction = self._interaction(request, UNKNOWN_INTERACTION)
        if interaction.is_too_late:
            raise Refusal(404, UNKNOWN_INTERACTION, "Unknown interaction")
        if interaction.first is not None:
            raise Refusal(400, ALREADY_ANSWERED, "Interaction has already been acknowledged.")
        interaction.first = request[BODY]

    async def _follow_up(self, request: web.Request) -> Json:
        interaction = self._interaction(request, UNKNOWN_WEBHOOK)
        check_body(request[BODY], has_files=bool(request[FILES]))
        follow_up = request[BODY] | {"id": self.world.new_id(), "_files": [name for name, _ in request[FILES]]}
        interaction.follow_ups.append(follow_up)
        return shown(follow_up)

    async def _get_original(self, request: web.Request) -> Json:
        interaction = self._interaction(request, UNKNOWN_WEBHOOK)
        if interaction.first is None or interaction.deleted:
            raise Refusal(404, UNKNOWN_MESSAGE, "Unknown Message")
        return {"id": interaction.original or self.world.new_id(), "content": ""}

    async def _edit_original(self, request: web.Request) -> Json:
        interaction = self._interaction(request, UNKNOWN_WEBHOOK)
        channel = self.world.channels[interaction.payload["channel_id"]]
        if interaction.first is None or interaction.deleted:
            raise Refusal(404, UNKNOWN_MESSAGE, "Unknown Message")
        check_body(request[BODY], has_files=bool(request[FILES]))
        if not interaction.original:
            interaction.original = self._write(channel, request[BODY], _is_private=interaction.is_private)["id"]
        message = channel.messages[interaction.original]
        message |= {"content": request[BODY]["content"], "_files": [name for name, _ in request[FILES]]}
        return shown(message)

    async def _delete_original(self, request: web.Request) -> None:
        self._interaction(request, UNKNOWN_WEBHOOK).deleted = True

    def _channel(self, request: web.Request) -> Channel:
        return self.world.channel(request.match_info["channel"])

    def _interaction(self, request: web.Request, code: int) -> Interaction:
        interaction = self.world.interactions.get(request.match_info["token"])
        if interaction is None or interaction.is_expired:
            raise Refusal(404, code, "Unknown")
        return interaction

    def _write(self, channel: Channel, body: Json, **fields: Any) -> Json:
        components = body.get("components", [])
        extra = {"_body": body, "components": components} | fields
        return self.world.add(channel, BOT, body.get("content", ""), **extra)


def _user(payload: Json) -> Json:
    user: Json = (payload.get("member") or payload)["user"]
    return user


def _member(user: Json) -> Json:
    return {
        "user": user,
        "roles": [],
        "joined_at": stamp(),
        "deaf": False,
        "mute": False,
        "permissions": "0",
        "flags": 0,
    }


async def _result(handler: Handler, request: web.Request) -> web.StreamResponse:
    try:
        result = await handler(request)
    except Refusal as refusal:
        return _json({"message": str(refusal), "code": refusal.code}, status=refusal.status)
    return web.Response(status=204) if result is None else _json(result)


async def _read(request: web.Request) -> tuple[Any, tuple[tuple[str, bytes], ...]]:
    if not request.content_type.startswith("multipart/"):
        text = await request.text()
        return (json.loads(text) if text else None), ()
    body: Any = None
    files: list[tuple[str, bytes]] = []
    async for part in await request.multipart():
        if part.name == "payload_json":  # type: ignore[union-attr]
            body = json.loads(await part.text())  # type: ignore[union-attr]
        else:
            files.append((part.filename or "", bytes(await part.read())))  # type: ignore[union-attr]
    return body, tuple(files)


def _json(data: Any, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    # discord.py reads JSON only where the content type is exactly this one.
    return web.Response(body=json.dumps(data).encode(), status=status, headers=headers, content_type="application/json")
