"""A Bot API server on a loopback socket: what python-telegram-bot talks to in the tests.

It keeps to what the Bot API documents and to the descriptions the real server answers: `getUpdates` blocks until there
is something and forgets what an offset confirms, a second poller ends the first, `allowed_updates` is remembered, texts
are counted in UTF-16 units after parsing. People are played by `say`, `edit`, `react`, `press`; what goes wrong is
asked for with `fail`; `redeliver` and `shuffle` make delivery as bad as it may be.
"""

import asyncio
import json
import random
import re
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import ClientError, ClientSession, ClientTimeout, web

from tests.contract.telegram_html import ParseError, parse, utf16
from tests.patience import PATIENCE_S

Json = dict[str, Any]

TOKEN = "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"
TEXT_LIMIT = 4096
DEFAULT_UPDATES = frozenset({"message", "edited_message", "callback_query", "my_chat_member"})
_TOKEN = re.compile(r"[0-9]+:[A-Za-z0-9_-]{30,}")
_ENTITY = re.compile(r"(?<!\S)/[A-Za-z0-9_]{1,64}(?:@\w+)?|(?<!\w)@\w{3,}")

ANA: Json = {"id": 111, "is_bot": False, "first_name": "Ana", "username": "ana", "language_code": "en"}
BEN: Json = {"id": 222, "is_bot": False, "first_name": "Ben", "last_name": "Beck", "language_code": "en"}
GROUP: Json = {"id": -1001, "type": "supergroup", "title": "Bees"}
FORUM: Json = {"id": -1002, "type": "supergroup", "title": "Hives", "is_forum": True}
SMALL_GROUP: Json = {"id": -77, "type": "group", "title": "Ants"}


def private(user: Json) -> Json:
    """Return the private chat with a person."""
    return {"id": user["id"], "type": "private", "first_name": user["first_name"]}


@dataclass(frozen=True)
class Call:
    """One request that was made, also one that was made to fail."""

    method: str
    params: Json
    files: dict[str, tuple[str, bytes]] = field(default_factory=dict)


@dataclass(frozen=True)
class Fault:
    """A fault injected into one request. `is_done`: the server does it all the same."""

    status: int = 0
    description: str = ""
    retry_after: int | None = None
    body: bytes | None = None  # answered instead of JSON
    hangs: bool = False
    cuts: bool = False  # the connection ends without an answer
    is_done: bool = False


class ApiError(Exception):
    """A refusal of the Bot API."""

    def __init__(self, status: int, description: str, **parameters: int) -> None:
        super().__init__(description)
        self.status = status
        self.description = description
        self.parameters = parameters


def bad(description: str) -> ApiError:
    """A 400."""
    return ApiError(400, f"Bad Request: {description}")


class TelegramServer:
    """One bot's Bot API."""

    def __init__(self, token: str = TOKEN, username: str = "heed_bot") -> None:
        self.token = token
        self.me: Json = {
            "id": int(token.partition(":")[0]),
            "is_bot": True,
            "first_name": "heed",
            "username": username,
            "can_join_groups": True,
            "can_read_all_group_messages": True,
            "supports_inline_queries": False,
        }
        self.calls: list[Call] = []
        self.has_drafts = True
        self.drafts: dict[tuple[int, int], list[str]] = defaultdict(list)  # (chat, draft) -> texts shown
        self.answered: dict[str, str] = {}  # callback query -> notice
        self.commands: dict[str, list[Json]] = {}  # scope as JSON -> commands
        self.webhook: Json = {}
        self.push_error = ""  # why the webhook was last not given an update
        self.webhook_gateway = ""  # where a webhook's calls really go: the tests' reverse proxy
        self.blocked: set[int] = set()
        self.allowed_updates: frozenset[str] = DEFAULT_UPDATES
        self.chats: dict[int, Json] = {}
        self.messages: dict[int, dict[int, Json]] = defaultdict(dict)  # chat -> id -> message
        self.num_open = 0  # calls that are being read
        self.moved: dict[int, int] = {}
        self.threads: set[tuple[int, int]] = set()
        self.polled = asyncio.Event()  # set while a client waits in getUpdates
        self._pending: dict[int, Json] = {}
        self._confirmed: list[Json] = []
        self._queries: set[str] = set()
        self._faults: dict[str, deque[Fault]] = defaultdict(deque)
        self._changed = asyncio.Condition()
        self._release = asyncio.Event()
        self._shuffle: random.Random | None = None
        self._next_update = 700_000_000
        self._next_query = 5_000_000
        self._poll = 0
        self._runner: web.AppRunner | None = None
        self._port = 0
        self._tasks: set[asyncio.Task[Any]] = set()

    # ---------------------------------------------------------------------------------------------- life

    @property
    def url(self) -> str:
        """The value for HEED_TELEGRAM_API_BASE."""
        return f"http://127.0.0.1:{self._port}"

    async def __aenter__(self) -> "TelegramServer":
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen; on the same port as before, if it was up before."""
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_route("*", "/bot{token:[^/]*}/{method}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self._port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Listen no more and drop who is connected; nothing is forgotten."""
        self._release.set()
        for task in list(self._tasks):
            task.cancel()
        if self._runner is not None:
            await self._runner.cleanup()
        self._runner = None
        self._release.clear()

    # ---------------------------------------------------------------------------------------------- people

    def say(
        self,
        text: str,
        *,
        sender: Json = ANA,
        chat: Json | None = None,
        reply_to: int | None = None,
        thread: int | None = None,
        **fields: Any,
    ) -> Json:
        """Write a message as a person; in private if no chat is given."""
        chat = self.meet(chat or private(sender))
        message = self._new_message(chat, sender, **fields)
        message |= {"text": text, "entities": fields.get("entities", entities(text))}
        if thread is not None:
            self.threads.add((chat["id"], thread))
            message |= {"message_thread_id": thread, "is_topic_message": True}
        if reply_to is not None:
            message["reply_to_message"] = self._shallow(self.messages[chat["id"]][reply_to])
        self.emit("message", message)
        return message

    def edit(self, message: Json, text: str) -> None:
        """Edit a person's own message."""
        message |= {"text": text, "entities": entities(text), "edit_date": int(time.time())}
        self.emit("edited_message", dict(message))

    def react(
        self, chat: Json, message_id: int, new: Iterable[str], old: Iterable[str] = (), sender: Json | None = ANA
    ) -> None:
        """Change a person's reactions to a message; without a sender, a group does so in their place."""
        who = {"user": sender} if sender else {"actor_chat": chat}
        change = {"chat": chat, "message_id": message_id, "date": int(time.time()), **who}
        change |= {"old_reaction": [reaction(text) for text in old], "new_reaction": [reaction(text) for text in new]}
        self.emit("message_reaction", change)

    def count(self, chat: Json, message_id: int, counts: dict[str, int]) -> None:
        """Anonymous reactions arrive as counts only."""
        found = [{"type": reaction(text), "total_count": count} for text, count in counts.items()]
        change = {"chat": chat, "message_id": message_id, "date": int(time.time()), "reactions": found}
        self.emit("message_reaction_count", change)

    def press(self, chat: Json, message_id: int, data: str, sender: Json = ANA) -> str:
        """Press a button as a person; return the id of the callback query."""
        self._next_query += 1
        query_id = str(self._next_query)
        self._queries.add(query_id)
        message = self.messages[chat["id"]].get(message_id)
        shown = self._shallow(message) if message else {"chat": chat, "message_id": message_id, "date": 0}
        query = {"id": query_id, "from": sender, "chat_instance": "1", "message": shown, "data": data}
        self.emit("callback_query", query)
        return query_id

    def forget_queries(self) -> None:
        """Every callback query is too old from now on."""
        self._queries.clear()

    def migrate(self, old: Json, new: Json) -> None:
        """A group becomes a supergroup: both chats are told."""
        self.meet(old)
        self.meet(new)
        self.moved[old["id"]] = new["id"]
        self.emit("message", {**self._new_message(old, ANA), "migrate_to_chat_id": new["id"]})
        self.emit("message", {**self._new_message(new, ANA), "migrate_from_chat_id": old["id"]})

    def meet(self, chat: Json) -> Json:
        """Make a chat known; the chat."""
        self.chats.setdefault(chat["id"], chat)
        return chat

    def shown(self, chat: Json) -> list[Json]:
        """Return the bot's messages in a chat, in order."""
        return [message for _, message in sorted(self.messages[chat["id"]].items()) if message["from"] == self.me]

    def texts(self, chat: Json) -> list[str]:
        """The visible texts of the bot's messages in a chat."""
        return [str(message.get("text", message.get("caption", ""))) for message in self.shown(chat)]

    def called(self, method: str) -> list[Call]:
        """The requests of one method so far."""
        return [call for call in self.calls if call.method == method]

    # ---------------------------------------------------------------------------------------------- delivery

    def emit(self, kind: str, content: Json) -> int | None:
        """An update for the bot; its id, None where allowed_updates leaves it out."""
        if kind not in self.allowed_updates:
            return None
        self._next_update += 1
        return self.emit_raw({"update_id": self._next_update, kind: content})

    def emit_raw(self, update: Json) -> int | None:
        """An update as it is."""
        self._pending[update.get("update_id", 0)] = json.loads(json.dumps(update))
        self._spawn(self._notify())
        return update.get("update_id")

    def restart_ids(self, update_id: int) -> None:
        """The next update's id: Telegram chooses anew after a week without updates."""
        self._next_update = update_id - 1

    def redeliver(self) -> int:
        """Put everything that was confirmed into the queue again; how many."""
        again = {update["update_id"]: update for update in self._confirmed}
        self._pending = dict(sorted({**again, **self._pending}.items()))
        self._spawn(self._notify())
        return len(again)

    def shuffle(self, seed: int | None) -> None:
        """Hand out updates in a random order from now on (None: in order)."""
        self._shuffle = None if seed is None else random.Random(seed)

    def fail(self, method: str, *faults: Fault) -> None:
        """The next requests of a method go wrong, one fault each."""
        self._faults[method].extend(faults)

    def release(self) -> None:
        """Let what hangs go on."""
        self._release.set()
        self._release = asyncio.Event()

    @property
    def num_pending(self) -> int:
        """Updates that no offset has confirmed."""
        return len(self._pending)

    async def until(self, is_true: Callable[[], Any]) -> None:
        """Wait until something holds; it is looked at after every request and update."""
        async with asyncio.timeout(PATIENCE_S):
            async with self._changed:
                await self._changed.wait_for(lambda: bool(is_true()))

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()
        if self.webhook.get("url") and not any(task.get_name() == "webhook" for task in self._tasks):
            self._spawn(asyncio.create_task(self._push(), name="webhook"))

    async def _push(self) -> None:
        headers = {"X-Telegram-Bot-Api-Secret-Token": self.webhook.get("secret_token", "")}
        path = "/" + self.webhook["url"].split("/", 3)[-1]
        async with ClientSession(timeout=ClientTimeout(total=10)) as session:
            while self._pending and self.webhook.get("url"):
                update_id, update = self._batch(1)[0]
                try:
                    async with session.post(self.webhook_gateway + path, json=update, headers=headers) as answer:
                        status = answer.status
                except ClientError:
                    status = 0
                if 200 <= status < 300:
                    self._confirm([update_id])
                else:
                    self.push_error = f"Wrong response from the webhook: {status}"
                    await asyncio.sleep(0.02)
                async with self._changed:
                    self._changed.notify_all()

    # ---------------------------------------------------------------------------------------------- requests

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        method, token = request.match_info["method"], request.match_info["token"]
        self.num_open += 1
        try:
            call = await read_call(method, request)
        except ConnectionError:
            return web.Response(status=400)  # to no one: the caller gave up while sending
        finally:
            self.num_open -= 1
        self.calls.append(call)
        await self._notify()
        faults = self._faults[method]
        fault = faults.popleft() if faults else None
        try:
            if token != self.token:
                is_formed = _TOKEN.fullmatch(token)
                raise ApiError(401, "Unauthorized") if is_formed else ApiError(404, "Not Found")
            if fault and not fault.is_done:
                return await self._go_wrong(request, fault)
            result = await self._act(call)
        except ApiError as error:
            return refusal(error)
        finally:
            await self._notify()
        if fault:
            return await self._go_wrong(request, fault)
        return web.json_response({"ok": True, "result": result})

    async def _go_wrong(self, request: web.Request, fault: Fault) -> web.StreamResponse:
        if fault.hangs:
            await self._release.wait()
        if fault.cuts or fault.hangs:
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=500)
        if fault.retry_after is not None:
            text = f"Too Many Requests: retry after {fault.retry_after}"
            return refusal(ApiError(429, text, retry_after=fault.retry_after))
        if fault.body is not None:
            return web.Response(status=fault.status or 200, body=fault.body)
        return refusal(ApiError(fault.status, fault.description))

    async def _act(self, call: Call) -> Any:
        action = getattr(self, "do_" + re.sub(r"(?=[A-Z])", "_", call.method).lower(), None)
        if action is None:
            raise ApiError(404, "Not Found")
        result = action(call)
        return await result if asyncio.iscoroutine(result) else result

    def do_get_me(self, _: Call) -> Json:
        return self.me

    async def do_get_updates(self, call: Call) -> list[Json]:
        if self.webhook.get("url"):
            text = "can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
            raise ApiError(409, f"Conflict: {text}")
        self._take_allowed(call)
        offset, limit = int(call.params.get("offset", 0)), int(call.params.get("limit", 100))
        if offset > 0:
            self._confirm([update_id for update_id in self._pending if update_id < offset])
        elif offset < 0:
            self._confirm(sorted(self._pending)[:offset])
        self._poll += 1
        mine = self._poll
        async with self._changed:
            self._changed.notify_all()
            self.polled.set()
            try:
                async with asyncio.timeout(float(call.params.get("timeout", 0))):
                    await self._changed.wait_for(lambda: self._batch(1, offset) or self._poll != mine)
            except TimeoutError:
                pass
            finally:
                self.polled.clear()
        if self._poll != mine:
            text = "terminated by other getUpdates request; make sure that only one bot instance is running"
            raise ApiError(409, f"Conflict: {text}")
        return [update for _, update in self._batch(limit, offset)]

    def _batch(self, limit: int, offset: int = 0) -> list[tuple[int, Json]]:
        batch = [item for item in sorted(self._pending.items(), key=lambda item: item[0]) if item[0] >= offset][:limit]
        if self._shuffle is not None:
            self._shuffle.shuffle(batch)
        return batch

    def _confirm(self, update_ids: list[int]) -> None:
        self._confirmed.extend(self._pending.pop(update_id) for update_id in update_ids)

    def _take_allowed(self, call: Call) -> None:
        if "allowed_updates" in call.params:
            self.allowed_updates = frozenset(call.params["allowed_updates"]) or DEFAULT_UPDATES

    def do_get_webhook_info(self, _: Call) -> Json:
        return {
            "url": self.webhook.get("url", ""),
            "has_custom_certificate": False,
            "pending_update_count": self.num_pending,
            "allowed_updates": sorted(self.allowed_updates),
        } | ({"last_error_date": 1, "last_error_message": self.push_error} if self.push_error else {})

    def do_set_webhook(self, call: Call) -> bool:
        if not call.params.get("url", "").startswith("https://"):
            raise bad("bad webhook: An HTTPS URL must be provided for webhook")
        self._take_allowed(call)
        self.webhook = call.params
        return True

    def do_delete_webhook(self, _: Call) -> bool:
        self.webhook = {}
        return True

    def do_get_my_commands(self, call: Call) -> list[Json]:
        return self.commands.get(scope(call), [])

    def do_set_my_commands(self, call: Call) -> bool:
        commands = call.params["commands"]
        if len(commands) > 100:
            raise bad("BOT_COMMANDS_TOO_MUCH")
        for command in commands:
            if not re.fullmatch(r"[a-z0-9_]{1,32}", command["command"]):
                raise bad("BOT_COMMAND_INVALID")
            if not 1 <= len(command["description"]) <= 256:
                raise bad("BOT_COMMAND_DESCRIPTION_INVALID")
        if json.loads(scope(call)).get("type") == "chat":
            self._writable(json.loads(scope(call)))
        self.commands[scope(call)] = commands
        return True

    def do_delete_my_commands(self, call: Call) -> bool:
        self.commands.pop(scope(call), None)
        return True

    def do_send_message(self, call: Call) -> Json:
        chat = self._writable(call.params)
        text, found = checked_text(call)
        return self._post(chat, call, {"text": text, "entities": found})

    def do_send_document(self, call: Call) -> Json:
        chat = self._writable(call.params)
        name, content = next(iter(call.files.values()))
        document = {"file_id": name, "file_unique_id": name, "file_name": name, "file_size": len(content)}
        return self._post(chat, call, {"document": document, **self._caption(call)})

    def do_send_photo(self, call: Call) -> Json:
        chat = self._writable(call.params)
        name, content = next(iter(call.files.values()))
        if not content.startswith((b"\x89PNG", b"\xff\xd8")):
            raise bad("IMAGE_PROCESS_FAILED")
        size = {"file_id": name, "file_unique_id": name, "width": 1, "height": 1, "file_size": len(content)}
        return self._post(chat, call, {"photo": [size], **self._caption(call)})

    def _caption(self, call: Call) -> Json:
        if not call.params.get("caption"):
            return {}
        text, found = parsed(call.params["caption"], call.params.get("parse_mode"))
        if utf16(text) > 1024:
            raise bad("message caption is too long")
        return {"caption": text, "caption_entities": found}

    def _own_message(self, call: Call) -> Json:
        """The bot's message that a call is to edit."""
        chat = self._writable(call.params)
        message = self.messages[chat["id"]].get(int(call.params["message_id"]))
        if message is None:
            raise bad("message to edit not found")
        if message["from"] != self.me:
            raise bad("message can't be edited")
        return message

    def do_edit_message_text(self, call: Call) -> Json:
        message = self._own_message(call)
        text, found = checked_text(call)
        keyboard = checked_markup(call)
        if (message.get("text"), message.get("entities"), message.get("reply_markup")) == (text, found, keyboard):
            raise bad(
                "message is not modified: specified new message content and reply markup are exactly the same "
                "as a current content and reply markup of the message"
            )
        message |= {"text": text, "entities": found, "reply_markup": keyboard, "edit_date": int(time.time())}
        return self._clean(message)

    def do_edit_message_reply_markup(self, call: Call) -> Json:
        message = self._own_message(call)
        keyboard = checked_markup(call)
        if message.get("reply_markup") == keyboard:
            raise bad("message is not modified: specified new message content and reply markup are exactly the same")
        message["reply_markup"] = keyboard
        return self._clean(message)

    def do_delete_message(self, call: Call) -> bool:
        chat = self._writable(call.params)
        if self.messages[chat["id"]].pop(int(call.params["message_id"]), None) is None:
            raise bad("message to delete not found")
        return True

    def do_send_chat_action(self, call: Call) -> bool:
        chat = self._writable(call.params)
        thread = call.params.get("message_thread_id")
        if thread is not None and int(thread) != 1 and (chat["id"], int(thread)) not in self.threads:
            raise bad("message thread not found")
        return True

    def do_send_message_draft(self, call: Call) -> bool:
        if not self.has_drafts:
            raise ApiError(404, "Not Found")
        chat = self._writable(call.params)
        if chat["type"] != "private":
            raise bad("PEER_ID_INVALID")
        if int(call.params["draft_id"]) == 0:
            raise bad("RANDOM_ID_INVALID")
        text, _ = parsed(call.params.get("text", ""), call.params.get("parse_mode"))
        if utf16(text) > TEXT_LIMIT:
            raise bad("message is too long")
        self.drafts[chat["id"], int(call.params["draft_id"])].append(text)
        return True

    def do_answer_callback_query(self, call: Call) -> bool:
        query_id = str(call.params["callback_query_id"])
        if query_id not in self._queries:
            raise bad("query is too old and response timeout expired or query ID is invalid")
        if len(call.params.get("text", "")) > 200:
            raise bad("MESSAGE_TOO_LONG")
        self._queries.discard(query_id)
        self.answered[query_id] = call.params.get("text", "")
        return True

    # ---------------------------------------------------------------------------------------------- messages

    def _writable(self, params: Json) -> Json:
        chat_id = int(params["chat_id"])
        if chat_id in self.moved:
            text = "Bad Request: group chat was upgraded to a supergroup chat"
            raise ApiError(400, text, migrate_to_chat_id=self.moved[chat_id])
        if chat_id not in self.chats:
            raise bad("chat not found")
        if chat_id in self.blocked:
            is_person = chat_id > 0
            whom = "bot was blocked by the user" if is_person else "bot was kicked from the supergroup chat"
            raise ApiError(403, f"Forbidden: {whom}")
        return self.chats[chat_id]

    def _post(self, chat: Json, call: Call, content: Json) -> Json:
        extra: Json = {"reply_markup": checked_markup(call)}
        thread = call.params.get("message_thread_id")
        if thread is not None:
            if (chat["id"], int(thread)) not in self.threads:
                raise bad("message thread not found")
            extra |= {"message_thread_id": int(thread), "is_topic_message": True}
        reply = call.params.get("reply_parameters")
        if reply:
            target = self.messages[chat["id"]].get(int(reply["message_id"]))
            if target is None and not reply.get("allow_sending_without_reply"):
                raise bad("message to be replied not found")
            if target is not None:
                extra["reply_to_message"] = self._shallow(target)
        message = self._new_message(chat, self.me)
        message |= {**content, **extra}
        return self._clean(message)

    def _new_message(self, chat: Json, sender: Json, **fields: Any) -> Json:
        message_id = max(self.messages[chat["id"]], default=0) + 1
        message: Json = {"message_id": message_id, "date": int(time.time()), "chat": chat, "from": sender, **fields}
        self.messages[chat["id"]][message_id] = message
        return message

    def _shallow(self, message: Json) -> Json:
        return {key: value for key, value in self._clean(message).items() if key != "reply_to_message"}

    @staticmethod
    def _clean(message: Json) -> Json:
        keyboard = message.get("reply_markup") or {}
        drop = "reply_markup" if "inline_keyboard" not in keyboard else ""
        return {key: value for key, value in message.items() if key != drop}


def entities(text: str) -> list[Json]:
    """The commands and mentions that Telegram finds in a text."""
    return [
        {
            "type": "bot_command" if match.group().startswith("/") else "mention",
            "offset": utf16(text[: match.start()]),
            "length": utf16(match.group()),
        }
        for match in _ENTITY.finditer(text)
    ]


def reaction(text: str) -> Json:
    """A reaction: an emoji, or a custom one by its number."""
    return {"type": "custom_emoji", "custom_emoji_id": text} if text.isdigit() else {"type": "emoji", "emoji": text}


def scope(call: Call) -> str:
    """The scope of a list of commands."""
    return json.dumps(call.params.get("scope") or {"type": "default"}, sort_keys=True)


def refusal(error: ApiError) -> web.Response:
    """A refusal as the Bot API writes it."""
    body: Json = {"ok": False, "error_code": error.status, "description": error.description}
    if error.parameters:
        body["parameters"] = error.parameters
    return web.json_response(body, status=error.status)


def parsed(text: str, mode: str | None) -> tuple[str, list[Json]]:
    """A text as it is shown. Raises ApiError."""
    if not mode:
        return text.strip(), []
    try:
        visible, found = parse(text)
    except ParseError as error:
        raise bad(f"can't parse entities: {error}") from None
    return visible.strip(), found


def checked_text(call: Call) -> tuple[str, list[Json]]:
    """The text of a message. Raises ApiError."""
    text, found = parsed(call.params.get("text", ""), call.params.get("parse_mode"))
    if not text:
        raise bad("message text is empty")
    if utf16(text) > TEXT_LIMIT:
        raise bad("message is too long")
    return text, found


def checked_markup(call: Call) -> Json | None:
    """The keyboard of a message. Raises ApiError."""
    keyboard: Json | None = call.params.get("reply_markup")
    for row in (keyboard or {}).get("inline_keyboard", []):
        for button in row:
            if not 1 <= len(button.get("callback_data", "").encode()) <= 64:
                raise bad("BUTTON_DATA_INVALID")
    return keyboard


async def read_call(method: str, request: web.Request) -> Call:
    """The parameters of a request, as JSON where they are JSON."""
    params: Json = {}
    files: dict[str, tuple[str, bytes]] = {}
    for name, value in (await request.post()).items():
        if isinstance(value, web.FileField):
            files[name] = (value.filename, value.file.read())
        else:
            params[name] = from_form(name, str(value))
    return Call(method, params, files)


def from_form(name: str, value: str) -> Any:
    """A value of a form: texts stay texts, everything else is JSON."""
    if name in ("text", "caption", "callback_query_id", "url", "secret_token"):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value
