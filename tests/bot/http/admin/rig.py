"""An operator who uses the dashboards of a heed over plain HTTP."""

import re
from typing import Any

from aiohttp import ClientResponse

from bot.access import admin_password
from tests.bot.conftest import Heed

TOKEN = re.compile(r'name="csrf" value="([^"]*)"')


class Operator:
    """A client with cookies of its own; `csrf` is the token of its session once it has signed in."""

    def __init__(self, heed: Heed) -> None:
        self.heed = heed
        self.csrf = ""
        self.origin = str(heed.client.make_url("/")).rstrip("/")

    async def get(self, path: str, **options: Any) -> ClientResponse:
        """GET a path; redirects are not followed."""
        response = await self.heed.client.get(path, allow_redirects=False, **options)
        await response.read()
        return response

    async def text(self, path: str) -> str:
        """Return the page at a path."""
        response = await self.get(path)
        assert response.status == 200, (path, response.status, await response.text())
        return await response.text()

    async def post(self, path: str, fields: dict[str, Any], **headers: str) -> ClientResponse:
        """POST a form as a browser on heed's page would; `headers` override the browser's."""
        given = {"Origin": self.origin, **headers}
        response = await self.heed.client.post(path, data=fields, headers=given, allow_redirects=False)
        await response.read()
        return response

    async def act(self, path: str, **fields: Any) -> ClientResponse:
        """POST a form with the token of the session."""
        return await self.post(path, {"csrf": self.csrf, **fields})

    async def sign_in(self, password: str | None = None, next_page: str = "", **headers: str) -> ClientResponse:
        """Fill in the sign-in form, with a new right password if none is given."""
        password = password or await admin_password.another(self.heed.core.database)
        form = await self.text(f"/admin/login?next={next_page}")
        fields = {"csrf": TOKEN.findall(form)[0], "password": password, "next": next_page}
        response = await self.post("/admin/login", fields, **headers)
        if response.status == 303:
            self.csrf = TOKEN.findall(await self.text("/admin"))[0]
        return response
