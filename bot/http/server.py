"""The aiohttp application: routes, edges and limits in one place."""

from aiohttp import web

from bot.agent.service import AgentService
from bot.core.core import Core
from bot.http.admin import live
from bot.http.admin import routes as admin
from bot.http.admin.attempts import ADMIN_ATTEMPTS, Attempts
from bot.http.admin.gate import gate
from bot.http.admin.sessions import ADMIN_SESSIONS, AdminSessions
from bot.http.agent import sessions as work
from bot.http.api import adapters, chats, health, notes, users
from bot.http.api import feedback as given
from bot.http.claas import adapters as lora
from bot.http.claas import feedback
from bot.http.continualcode import sessions
from bot.http.openai import chat, completions, models, score
from bot.http.protocol import auth, connections, errors, openapi, request_ids
from bot.http.protocol.app_keys import CORE, PLATFORMS, Platforms
from bot.http.web import markdown, page

ROUTES = (
    web.get("/", page.page),
    web.get("/healthz", health.healthz),
    web.get("/readyz", health.readyz),
    web.get("/health", health.health),
    web.get("/v1/health", health.health),
    web.get("/metrics", health.metrics),
    web.get("/v1/models", models.list_models),
    web.get("/v1/models/{model:.+}", models.one_model),
    web.post("/v1/completions", completions.completions),
    web.post("/v1/score", score.score),
    web.post("/v1/embeddings", chat.embeddings),
    web.post("/v1/chat/completions", chat.chat_completions),
    web.post("/v1/chat/completions/{id}/stop", chat.stop),
    web.post("/v1/feedback", feedback.give),
    web.get("/v1/feedback/{id}", given.show),
    web.post("/v1/feedback/{id}/cancel", given.cancel),
    web.post("/v1/feedback/{id}/scope", given.choose),
    web.get("/v1/dashboard", feedback.dashboard),
    web.get("/v1/eval", feedback.evals),
    web.get("/v1/lora", lora.list_loras),
    web.delete("/v1/lora", lora.delete),
    web.post("/v1/lora/init", lora.init),
    web.get("/v1/lora/export", lora.export),
    web.get("/api/profiles", sessions.profiles),
    web.get("/api/sessions", sessions.list_sessions),
    web.post("/api/sessions", sessions.create),
    web.get("/api/sessions/{id}", sessions.show),
    web.delete("/api/sessions/{id}", sessions.delete),
    web.post("/api/sessions/{id}/clear", sessions.clear),
    web.post("/api/sessions/{id}/prompt", sessions.prompt),
    web.post("/api/sessions/{id}/feedback", sessions.feedback),
    web.get("/api/workspaces", work.workspaces),
    web.post("/api/workspaces/notes", work.workspace_notes),
    web.get("/api/sessions/{id}/events", work.events),
    web.post("/api/sessions/{id}/approve", work.approve),
    web.post("/api/sessions/{id}/deny", work.deny),
    web.post("/api/sessions/{id}/edit", work.edit),
    web.post("/api/sessions/{id}/continue", work.go_on),
    web.post("/api/sessions/{id}/notes", work.tell),
    web.post("/api/sessions/{id}/stop", work.stop),
    web.get("/v1/users/{user:[^/]+}", users.summary),
    web.delete("/v1/users/{user:[^/]+}", users.forget),
    web.get("/v1/users/{user:[^/]+}/history", users.history),
    web.get("/v1/users/{user:[^/]+}/chats", chats.list_chats),
    web.patch("/v1/users/{user:[^/]+}/chats/{chat:.+}", chats.rename),
    web.delete("/v1/users/{user:[^/]+}/chats/{chat:.+}", chats.delete),
    web.get("/v1/users/{user:[^/]+}/export", users.export),
    web.post("/v1/users/{user:[^/]+}/commands", users.command),
    web.get("/v1/users/{user:[^/]+}/adapters", adapters.list_versions),
    web.post("/v1/users/{user:[^/]+}/adapters", adapters.import_version),
    web.get("/v1/users/{user:[^/]+}/adapters/{version:[0-9]{1,9}}/export", adapters.export),
    web.get("/v1/users/{user:[^/]+}/adapters/{version:[0-9]{1,9}}/batch", adapters.export_batch),
    web.post("/v1/users/{user:[^/]+}/rollback", adapters.roll_back),
    web.post("/v1/users/{user:[^/]+}/consolidate", adapters.consolidate),
    web.post("/v1/users/{user:[^/]+}/rebuild", adapters.rebuild),
    web.post("/v1/users/{user:[^/]+}/prepare", adapters.prepare),
    web.post("/v1/users/{user:[^/]+}/undo", adapters.undo),
    web.get("/v1/users/{user:[^/]+}/notes", notes.list_notes),
    web.delete("/v1/users/{user:[^/]+}/notes/{id}", notes.delete_note),
    web.post("/v1/markdown", markdown.render),
    web.get("/static/{name}", page.file),
    web.get("/openapi.json", openapi.openapi),
)


def application(core: Core, platforms: Platforms | None = None, agents: AgentService | None = None) -> web.Application:
    """Build the HTTP application over the given parts. A platform's routes check their callers themselves."""
    platforms = platforms or Platforms()
    limit = core.settings.http.body_limit_bytes
    app = web.Application(middlewares=[errors.as_json, connections.in_time, auth.guard, gate], client_max_size=limit)
    app[CORE] = core
    app[PLATFORMS] = platforms
    app[ADMIN_SESSIONS], app[ADMIN_ATTEMPTS] = AdminSessions(), Attempts()
    app.add_routes(platforms.routes)
    app.on_response_prepare.append(page.harden)
    app.on_response_prepare.append(request_ids.sign)
    app.add_routes([*ROUTES, *admin.ROUTES])
    live.prepare(app)
    work.prepare(app, agents or AgentService(core))
    app.on_shutdown.extend([live.end, work.end])
    return app
