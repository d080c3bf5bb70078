"""The scope that an API key needs for each call: one table, by method and route.

Invariant: a guarded call that is not in the table needs the admin scope, so that a new call starts closed.
"""

from aiohttp import web

from bot.access.api_keys import Holder, Scope
from bot.errors import ScopeMissing
from bot.http.protocol import messages

_USER = "/v1/users/{user}"
_SESSIONS = "/api/sessions"
_SESSION = f"{_SESSIONS}/{{id}}"
_NEEDED: dict[tuple[str, str], Scope] = {
    ("GET", "/metrics"): "metrics",
    ("GET", "/v1/models"): "chat",
    ("GET", "/v1/models/{model}"): "chat",
    ("POST", "/v1/chat/completions"): "chat",
    ("POST", "/v1/chat/completions/{id}/stop"): "chat",
    ("POST", "/v1/completions"): "chat",
    ("POST", "/v1/score"): "chat",
    ("POST", "/v1/embeddings"): "chat",
    ("POST", "/v1/markdown"): "chat",
    ("POST", "/v1/feedback"): "feedback",
    ("GET", "/v1/feedback/{id}"): "feedback",
    ("POST", "/v1/feedback/{id}/cancel"): "feedback",
    ("POST", "/v1/feedback/{id}/scope"): "feedback",
    ("GET", "/v1/health"): "chat",
    ("GET", "/v1/lora"): "adapters",
    ("DELETE", "/v1/lora"): "person",  # it erases the person, too
    ("POST", "/v1/lora/init"): "adapters",
    ("GET", "/v1/lora/export"): "adapters",
    ("GET", "/api/profiles"): "chat",
    ("GET", _SESSIONS): "person",
    ("POST", _SESSIONS): "chat",
    ("GET", _SESSION): "person",
    ("DELETE", _SESSION): "person",
    ("POST", f"{_SESSION}/clear"): "chat",
    ("POST", f"{_SESSION}/prompt"): "chat",
    ("POST", f"{_SESSION}/feedback"): "feedback",
    ("GET", "/api/workspaces"): "chat",
    ("POST", "/api/workspaces/notes"): "chat",
    ("GET", f"{_SESSION}/events"): "person",
    ("POST", f"{_SESSION}/approve"): "chat",
    ("POST", f"{_SESSION}/deny"): "feedback",
    ("POST", f"{_SESSION}/edit"): "feedback",
    ("POST", f"{_SESSION}/continue"): "chat",
    ("POST", f"{_SESSION}/notes"): "feedback",
    ("POST", f"{_SESSION}/stop"): "chat",
    ("GET", f"{_USER}/notes"): "feedback",
    ("DELETE", f"{_USER}/notes/{{id}}"): "feedback",
    ("GET", f"{_USER}/adapters"): "adapters",
    ("POST", f"{_USER}/adapters"): "adapters",
    ("GET", f"{_USER}/adapters/{{version}}/export"): "adapters",
    ("GET", f"{_USER}/adapters/{{version}}/batch"): "adapters",
    ("POST", f"{_USER}/rollback"): "adapters",
    ("POST", f"{_USER}/consolidate"): "adapters",
    ("POST", f"{_USER}/rebuild"): "adapters",
    ("POST", f"{_USER}/prepare"): "chat",
    ("POST", f"{_USER}/undo"): "adapters",
    ("GET", _USER): "person",
    ("DELETE", _USER): "person",
    ("GET", f"{_USER}/history"): "person",
    ("GET", f"{_USER}/chats"): "person",
    ("PATCH", f"{_USER}/chats/{{chat}}"): "person",
    ("DELETE", f"{_USER}/chats/{{chat}}"): "person",
    ("GET", f"{_USER}/export"): "person",
    ("POST", f"{_USER}/commands"): "person",
}


def needed(method: str, canonical: str) -> Scope:
    """Return the scope that a call to a route needs."""
    return _NEEDED.get(("GET" if method == "HEAD" else method, canonical), "admin")


def check(request: web.Request, holder: Holder) -> None:
    """Raise ScopeMissing if this key may not make this call. An unknown path needs no scope: it is a 404."""
    resource = request.match_info.route.resource
    if resource is not None:
        require(holder, needed(request.method, resource.canonical))


def require(holder: Holder, *scopes: Scope) -> None:
    """Raise ScopeMissing for the first of these scopes that the key does not have."""
    for scope in scopes:
        if scope not in holder.scopes:
            raise ScopeMissing(messages.SCOPE_MISSING.format(scope=scope))
