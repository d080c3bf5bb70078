"""bot.http.claas.adapters: adapters by CLaaS's names."""

import io
import zipfile
from typing import Any

import pytest

from bot.errors import InvalidField
from bot.http.claas.adapters import canonical
from tests.bot.conftest import Heed, StartHeed

INIT = "/v1/lora/init"


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("user/my-lora", "user/my-lora"),
        ("user/my-lora-init", "user/my-lora"),
        ("/user/my-lora-latest/", "user/my-lora"),
        ("user/my-lora-20260225-101500", "user/my-lora"),
        ("a-init-latest", "a"),
        (" ana ", "ana"),
        ("latest", "latest"),
    ],
)
def test_a_lora_has_one_name(given: str, name: str) -> None:
    """CLaaS's endings and the slashes around a name are ignored."""
    assert canonical(given) == canonical(canonical(given)) == name


@pytest.mark.parametrize("given", ["", "/", "-init", "a//b", "../a", "a/..", "a/-latest", "./a"])
def test_what_names_nothing_is_refused(given: str) -> None:
    """A lora_id without a name, or with path segments, is refused."""
    with pytest.raises(InvalidField):
        canonical(given)


async def test_adapters_are_made_listed_and_deleted(heed: Heed) -> None:
    """Making an adapter again changes nothing, and deleting a missing one is no error."""
    for lora_id in ("user/b", "user/a-init", "other", "user/a-latest"):
        assert (await heed.post(INIT, {"lora_id": lora_id}))[0] == 200
    assert (await heed.get("/v1/lora"))[1] == {"loras": ["other", "user/a", "user/b"]}
    assert (await heed.get("/v1/lora?prefix=user/"))[1] == {"loras": ["user/a", "user/b"]}
    for is_there in (True, False):
        response = await heed.client.delete("/v1/lora", params={"lora_id": "user/a-latest"})
        assert (response.status, await response.json()) == (200, {"deleted": is_there})
    assert (await heed.get("/v1/lora?prefix=user/"))[1] == {"loras": ["user/b"]}


async def test_making_one_again_keeps_what_it_learned(heed: Heed) -> None:
    """Making an adapter again keeps its person and lessons."""
    answer = await heed.ask("bees", user="ana")
    await heed.correct(answer["id"], "too long", user="ana")
    assert (await heed.post(INIT, {"lora_id": "ana-latest"}))[1] == {"lora_id": "ana"}
    assert (await heed.get("/v1/users/ana"))[1]["active_version"] == 1


async def shape_of(heed: Heed, user: str = "a") -> Any:
    """Return the stored shape of an adapter."""
    return (await heed.get(f"/v1/users/{user}/export"))[1]["user"]["lora_shape"]


async def test_an_adapter_has_the_shape_it_was_made_with(heed: Heed) -> None:
    """Only values that differ from the settings are stored, so that a later setting holds for the others."""
    learn = heed.core.settings.learn
    as_set = {"lora_r": learn.lora_rank, "lora_alpha": learn.lora_alpha, "target_modules": [*learn.target_modules]}
    claas = {"lora_r": 32, "lora_alpha": 64, "target_modules": ["v_proj", "q_proj"]}
    for shape, kept in (
        (as_set, None),
        (
            {"base_model": "pocket", **claas},
            {"lora_rank": 32, "lora_alpha": 64, "target_modules": ["q_proj", "v_proj"]},
        ),
        ({}, {"lora_rank": 32, "lora_alpha": 64, "target_modules": ["q_proj", "v_proj"]}),
        (as_set, None),
    ):
        assert (await heed.post(INIT, {"lora_id": "a", **shape}))[0] == 200
        assert await shape_of(heed) == kept


async def test_what_was_learned_keeps_its_shape(heed: Heed) -> None:
    """Another shape for a taught adapter is refused; the same one or none is accepted."""
    await heed.post(INIT, {"lora_id": "a", "lora_r": 8})
    await heed.correct((await heed.ask("bees", user="a"))["id"], "too long", user="a")
    for fields, status in (({"lora_r": 32}, 409), ({"lora_r": 8}, 200), ({}, 200)):
        assert (await heed.post(INIT, {"lora_id": "a", **fields}))[0] == status
    assert await shape_of(heed) == {"lora_rank": 8}


@pytest.mark.parametrize(
    ("fields", "status", "param"),
    [
        ({"base_model": "Qwen/Qwen3-8B"}, 403, "base_model"),
        ({"lora_r": 2}, 400, "lora_r"),
        ({"lora_r": 129}, 400, "lora_r"),
        ({"lora_r": 128}, 400, "lora_r"),
        ({"lora_r": 33}, 400, "lora_r"),
        ({"lora_alpha": 257}, 400, "lora_alpha"),
        ({"target_modules": ["lm_head"]}, 400, "target_modules"),
        ({"target_modules": []}, 400, "target_modules"),
        ({"lora_id": "a/../b"}, 400, "lora_id"),
        ({"lora_id": "a" * 65}, 400, "lora_id"),
        ({"lora_id": "a\u202eb"}, 400, "lora_id"),
        ({"lora_id": 3}, 400, "lora_id"),
    ],
)
async def test_what_cannot_be_made_is_refused_by_name(
    heed: Heed, fields: dict[str, Any], status: int, param: str
) -> None:
    """A shape that cannot be served is refused, and no person is created."""
    found, answer = await heed.post(INIT, {"lora_id": "x", **fields})
    assert (found, answer["error"]["param"]) == (status, param), answer
    assert (await heed.get("/v1/lora"))[1] == {"loras": []}


async def test_an_adapter_leaves_as_a_zip_file(heed: Heed) -> None:
    """The export has the active version without optimizer state."""
    answer = await heed.ask("bees", user="user/a")
    await heed.correct(answer["id"], "too long", user="user/a")
    response = await heed.client.get("/v1/lora/export", params={"lora_id": "user/a-latest"})
    assert (response.status, response.content_type) == (200, "application/zip")
    assert response.headers["Content-Disposition"] == 'attachment; filename="user__a.zip"'
    names = zipfile.ZipFile(io.BytesIO(await response.read())).namelist()
    assert {"adapter_config.json", "adapter_model.safetensors"} <= set(names)
    assert not any("optimizer" in name for name in names)


@pytest.mark.parametrize(("query", "status"), [("?lora_id=nobody", 404), ("?lora_id=fresh", 404), ("", 400)])
async def test_nothing_to_export_is_said(heed: Heed, query: str, status: int) -> None:
    """An unknown adapter, an untaught one and a missing name are refused with a reason."""
    await heed.post(INIT, {"lora_id": "fresh"})
    found, answer = await heed.get(f"/v1/lora/export{query}")
    assert (found, answer["error"]["param"]) == (status, "lora_id")


async def test_a_key_sees_its_own_adapters(start_heed: StartHeed) -> None:
    """A key lists and deletes only its own adapters, by its own names."""
    heed = await start_heed(http={"api_keys": {"ana": "a" * 20, "an": "b" * 20}})
    ana, an = ({"Authorization": f"Bearer {letter * 20}"} for letter in "ab")
    for lora_id in ("ana", "user/x"):
        await heed.post(INIT, {"lora_id": lora_id}, headers=ana)
    await heed.post(INIT, {"lora_id": "y"}, headers=an)
    assert (await heed.get("/v1/lora", headers=ana))[1] == {"loras": ["ana", "user/x"]}
    assert (await heed.get("/v1/lora", headers=an))[1] == {"loras": ["y"]}
    response = await heed.client.delete("/v1/lora", params={"lora_id": "user/x"}, headers=an)
    assert (await response.json()) == {"deleted": False}
    assert (await heed.get("/v1/lora"))[0] == 401
