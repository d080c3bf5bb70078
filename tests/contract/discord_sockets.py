"""The gateway half of the Discord server: sessions, sequence numbers, heartbeats, resuming, and breaking it all.

As documented by Discord: HELLO first, then IDENTIFY or RESUME; events carry a sequence; a session that lost its socket
keeps what it missed and replays it on RESUME; frames are one zlib stream where the client asks for it.
"""

import json
import zlib
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from aiohttp import WSMsgType, web

Json = dict[str, Any]

DISPATCH, HEARTBEAT, IDENTIFY, RESUME, RECONNECT, INVALID, HELLO, ACK = 0, 1, 2, 6, 7, 9, 10, 11
MESSAGE_CONTENT = 1 << 15


@dataclass
class Session:
    """The server's memory of a client."""

    id: str
    shard: tuple[int, int] = (0, 1)  # number and count, as the client said
    sequence: int = 0
    sent: list[Json] = field(default_factory=list)
    line: "Line | None" = None

    def hears(self, server: str) -> bool:
        """Whether what happens on a server comes here, by the formula of Discord's documentation; "" for private."""
        number, count = self.shard
        return (int(server or 0) >> 22) % count == number


class Line:
    """One socket."""

    def __init__(self, socket: web.WebSocketResponse, *, is_compressed: bool) -> None:
        self.socket = socket
        self._zlib = zlib.compressobj() if is_compressed else None

    async def send(self, text: str) -> None:
        if self._zlib is None:
            await self.socket.send_str(text)
        else:
            data = text.encode()
            await self.socket.send_bytes(self._zlib.compress(data) + self._zlib.flush(zlib.Z_SYNC_FLUSH))


class Sockets:
    """Every session and socket of one bot."""

    def __init__(self, token: str) -> None:
        self.token = token
        self.sessions: dict[str, Session] = {}
        self.lines: set[Line] = set()
        self.identified: list[Json] = []  # payloads of IDENTIFY
        self.resumed: list[Json] = []  # payloads of RESUME
        self.heartbeats = 0
        self.heartbeat_ms = 41_250
        self.is_deaf = False  # heartbeats are not acknowledged
        self.has_message_content = True
        self.on_ready: Any = None  # session -> (READY's data, events after it)
        self._ids = count(1)

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(max_msg_size=0)
        await socket.prepare(request)
        line = Line(socket, is_compressed=request.query.get("compress") == "zlib-stream")
        self.lines.add(line)
        session: Session | None = None
        try:
            await line.send(json.dumps({"op": HELLO, "d": {"heartbeat_interval": self.heartbeat_ms}}))
            async for message in socket:
                if message.type == WSMsgType.TEXT:
                    session = await self._receive(line, json.loads(message.data), session)
        except (ConnectionError, RuntimeError):
            pass
        finally:
            self.lines.discard(line)
            if session is not None and session.line is line:
                session.line = None
                if socket.close_code in (1000, 1001):  # the client ended the session
                    self.sessions.pop(session.id, None)
        return socket

    async def send(self, event: str, data: Any) -> None:
        """An event for every session that hears its server; those without a socket get it when they resume."""
        for session in list(self.sessions.values()):
            if not isinstance(data, dict) or session.hears(data.get("guild_id") or ""):
                await self._dispatch(session, event, data)

    async def send_raw(self, text: str) -> None:
        """Anything at all, to every socket."""
        for line in list(self.lines):
            await line.send(text)

    async def close(self, code: int) -> None:
        """Close every socket with a code of Discord's."""
        for line in list(self.lines):
            await line.socket.close(code=code)

    def cut(self) -> None:
        """Break every connection off, as a dead network does."""
        for line in list(self.lines):
            if line.socket._req is not None and line.socket._req.transport is not None:
                line.socket._req.transport.abort()

    def forget(self) -> None:
        """Lose every session: nothing can be resumed, and events sent meanwhile are lost."""
        self.sessions.clear()

    @property
    def is_connected(self) -> bool:
        return any(session.line is not None for session in self.sessions.values())

    @property
    def last_sequence(self) -> int:
        """The number of the last event sent to a client that is connected; 0 where none is."""
        return max((session.sequence for session in self.sessions.values() if session.line is not None), default=0)

    async def _receive(self, line: Line, frame: Json, session: Session | None) -> Session | None:
        match frame.get("op"):
            case 1:
                self.heartbeats += 1
                if not self.is_deaf:
                    await line.send(json.dumps({"op": ACK}))
            case 2:
                return await self._identify(line, frame["d"])
            case 6:
                return await self._resume(line, frame["d"])
        return session

    async def _identify(self, line: Line, data: Json) -> Session | None:
        self.identified.append(data)
        if data["token"] != self.token:
            await line.socket.close(code=4004, message=b"Authentication failed.")
            return None
        if data["intents"] & MESSAGE_CONTENT and not self.has_message_content:
            await line.socket.close(code=4014, message=b"Disallowed intent(s).")
            return None
        number, of = data.get("shard", (0, 1))
        session = Session(f"session-{next(self._ids)}", (number, of), line=line)
        self.sessions[session.id] = session
        ready, events = self.on_ready(session)
        await self._dispatch(session, "READY", ready)
        for event, payload in events:
            await self._dispatch(session, event, payload)
        return session

    async def _resume(self, line: Line, data: Json) -> Session | None:
        self.resumed.append(data)
        session = self.sessions.get(data["session_id"])
        if session is None or data["token"] != self.token:
            await line.send(json.dumps({"op": INVALID, "d": False}))
            return None
        session.line = line
        for frame in [frame for frame in session.sent if frame["s"] > data["seq"]]:
            await line.send(json.dumps(frame))
        await self._dispatch(session, "RESUMED", {})
        return session

    async def _dispatch(self, session: Session, event: str, data: Any) -> None:
        session.sequence += 1
        frame = {"op": DISPATCH, "t": event, "s": session.sequence, "d": data}
        session.sent.append(frame)
        if session.line is not None:
            try:
                await session.line.send(json.dumps(frame))
            except (ConnectionError, RuntimeError):
                session.line = None
