"""The paths of the dashboards."""

from aiohttp import web

from bot.http.admin import conversations, engine, evals, live, login, model, overview, people, updates

_PERSON = "/admin/people/{person:[0-9a-f]{32}}"

ROUTES = (
    web.get("/admin/login", login.page),
    web.post("/admin/login", login.sign_in),
    web.post("/admin/logout", login.sign_out),
    web.get("/admin/events", live.events),
    web.get("/admin", overview.page),
    web.get("/admin/conversations", conversations.page),
    web.get("/admin/conversations/{person:[0-9a-f]{32}}/{chat:[0-9a-z-]{1,64}}", conversations.one),
    web.get("/admin/updates", updates.page),
    web.get("/admin/updates/{id:[0-9a-z-]{1,64}}", updates.one),
    web.get("/admin/people", people.page),
    web.get(_PERSON, people.one),
    web.get(f"{_PERSON}/diff", people.compare),
    web.get(f"{_PERSON}/adapters/{{version:[0-9]{{1,9}}}}", people.export),
    web.post(f"{_PERSON}/rollback", people.roll_back),
    web.get("/admin/evals", evals.page),
    web.post("/admin/evals", evals.add),
    web.get("/admin/evals/{id:[0-9a-f]{32}}", evals.one),
    web.get("/admin/model", model.page),
    web.get("/admin/engine", engine.page),
)
