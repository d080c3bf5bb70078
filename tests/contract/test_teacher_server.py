"""The endpoint of the tests keeps to OpenAI's form: what heed's own call would be fooled by is seen here."""

from aiohttp import ClientSession

from tests.contract.teacher_server import KEY, Fault, TeacherServer

BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


async def ask(server: TeacherServer, key: str = KEY) -> tuple[int, str]:
    """One call over a real socket."""
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        ClientSession() as session,
        session.post(f"{server.url}/chat/completions", json=BODY, headers=headers) as r,
    ):
        return r.status, await r.text()


async def test_it_answers_in_openais_form_and_wants_its_key() -> None:
    """One choice with a message; another key is 401."""
    async with TeacherServer(lambda messages: messages[-1]["content"].upper()) as server:
        status, text = await ask(server)
        assert (status, '"content": "HI"' in text, '"finish_reason": "stop"' in text) == (200, True, True)
        assert (await ask(server, "another"))[0] == 401


async def test_faults_come_once_and_in_order() -> None:
    """Then it answers again."""
    async with TeacherServer() as server:
        server.fail(Fault(500), Fault(body=b"rubbish"))
        assert [await ask(server) for _ in range(2)] == [(500, ""), (200, "rubbish")]
        assert (await ask(server))[0] == 200
        assert len(server.calls) == 3
