"""The rules about who imports what and who may do what, read off the source with ast.

A rule that has an exception names it here, with the reason.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Package -> what it may import of the others. bot and engine know storage, nothing knows bot but what measures it.
MAY_IMPORT = {
    "storage": set[str](),
    "engine": {"storage"},
    "bot": {"engine", "storage"},
    "evals": {"bot", "engine", "storage"},
    "bench": {"bot", "engine", "evals", "storage"},  # the client and the heed that is measured are those of evals
    "tools": set[str](),
}

# Rooms from the top floor down. A room may import rooms on lower floors, never one on its own floor or above.
# A module that is no package is a room of its own.
FLOORS = {
    "engine": (
        {"engine.cluster"},
        {"engine.engine", "engine.models"},
        {"engine.parts"},
        {"engine.calibration", "engine.consolidation", "engine.generation", "engine.pocket"},
        {"engine.learning"},
        {"engine.samples"},
        {"engine.adapters", "engine.reading"},
        {"engine.host"},
        {"engine.worker"},
        {"engine.training"},
        {"engine.gates", "engine.sample", "engine.prompts", "engine.sources"},
        {"engine.config", "engine.requests", "engine.adapter_ref", "engine.errors"},
    ),
    "bot": (
        {"bot.__main__"},
        {"bot.cli"},
        {"bot.app"},
        {"bot.http", "bot.membership", "bot.messaging", "bot.platforms"},
        {"bot.agent"},
        {"bot.commands"},
        {"bot.housekeeping"},
        {"bot.core"},
        {"bot.access"},
        {"bot.channel", "bot.config"},
        {"bot.account_settings", "bot.events", "bot.errors", "bot.monitoring", "bot.backoff"},
    ),
    "bot.http": (
        {"bot.http.server", "bot.http.port"},
        {"bot.http.openai"},
        {"bot.http.claas", "bot.http.admin"},
        {"bot.http.api", "bot.http.continualcode", "bot.http.web"},
        {"bot.http.agent"},
        {"bot.http.protocol"},
    ),
    "bot.platforms": (
        {"bot.platforms.registry"},
        {"bot.platforms.telegram", "bot.platforms.discord"},
    ),
    "storage": (
        {"storage.reports", "storage.backup"},
        {"storage.learning"},
        {"storage.people", "storage.conversations", "storage.lease_keeper"},
        {"storage.database"},
        {"storage.sql"},
        {"storage.fencing"},
        {"storage.migrations", "storage.settings", "storage.coalescing", "storage.object_store"},
        {"storage.leases"},
        {"storage.files"},
        {"storage.tables"},
        {"storage.kinds"},
        {"storage.errors"},
    ),
}
# Arrows that the floors would allow, and that are wrong all the same: importing room -> rooms.
FORBIDDEN = {
    "engine.pocket": {"engine.learning", "engine.adapters", "engine.host", "engine.worker"},
    "engine.generation": {"engine.learning"},
    "bot.platforms.telegram": {"bot.commands", "bot.housekeeping", "bot.core", "bot.access"},
    "bot.platforms.discord": {"bot.commands", "bot.housekeeping", "bot.core", "bot.access"},
}
# Arrows that run back up, each with its reason: (importing room, imported room).
MAY_RUN_UP: dict[tuple[str, str], str] = {}
ENGINE_FACADE = {
    "engine.engine",
    "engine.models",
    "engine.requests",
    "engine.errors",
    "engine.config",
    "engine.pocket",
    "engine.cluster",
}

PLAIN_STEPS = "bench/training.py"  # as a training script has them, which heed's are held against
GPU_BENCH = "bench/gpu"  # times a device, also where nothing but PyTorch and Hugging Face is installed
# Third party -> the only folder that may import it.
HOMES = {
    "torch": ("engine/training", "engine/worker", "engine/pocket", "engine/sources", PLAIN_STEPS, GPU_BENCH),
    "vllm": ("engine/host", "engine/worker"),
    "peft": ("engine/training", "engine/worker", "engine/pocket", PLAIN_STEPS),
    "transformers": ("engine/training", "engine/worker", "engine/pocket", "engine/sources", PLAIN_STEPS, GPU_BENCH),
    "ray": ("engine/cluster",),
    "safetensors": ("engine",),
    "simpy": ("bench",),
    "tokenizers": ("engine", GPU_BENCH),
    "sqlmodel": ("storage",),
    "sqlalchemy": ("storage",),
    "alembic": ("storage",),
    "asyncpg": ("storage/sql",),
    "fsspec": ("storage/object_store.py",),
    "telegram": ("bot/platforms/telegram",),
    "discord": ("bot/platforms/discord",),
    "mcp": ("bot/cli/mcp",),
    "prompt_toolkit": ("bot/cli",),
    "matplotlib": ("bot", "evals"),
    "linkify_it": ("bot/http/web",),
    "markdown_it": ("bot/http/web",),
    "nh3": ("bot/http/web",),
    "pygments": ("bot/http/web",),
}
NEVER_SHIPPED = {"moto", "boto3", "trl", "pytest", "hypothesis", "playwright", "simcord"}

MAY_TOUCH_ENVIRONMENT = {
    "bot/config.py": "the settings tree",
    "engine/cluster/__init__.py": "sets what Ray and its processes read, before Ray is imported; reads nothing of ours",
    "engine/host/fork_server.py": "hands EngineCore the environment as it is; reads nothing of ours",
    "engine/host/vllm_settings.py": "sets what vLLM's children read, before vLLM is imported; reads nothing of ours",
    "engine/sources/wheel.py": "hands pip the environment as it is, with a temporary folder of its own",
    "engine/worker/fork.py": "says to vLLM how its worker starts, after vLLM has said otherwise; reads nothing",
}
MAY_WRITE_FILES = {
    "storage/files/atomic.py": "the one writer of what must survive",
    "engine/host/vllm_settings.py": "vLLM's logging configuration, written anew at each start",
}
MAY_WRITE_FOLDERS = {
    "bot/agent/workspaces.py": "people's scratch folders, whose files the person's tools write",
    "engine/pocket": "makes the weights in a checkout, before anything runs",
    "engine/sources": "a model that is checked by its hashes and made again, before heed runs",
    "evals": "reports",
    "bench": "reports",
    "tools": "set-up, before heed runs",
}
NEEDS_NO_TEST = {
    "tools/errors.py": "two exception classes without behaviour",
    "storage/migrations/env.py": "Alembic's entry; tests/storage/test_migrations.py runs it",
    "storage/migrations/versions/0001_first_tables.py": "a migration; tests/storage/test_migrations.py runs it",
    "storage/migrations/versions/0002_consent_and_access.py": "as 0001",
    "storage/migrations/versions/0003_message_role.py": "as 0001",
    "storage/migrations/versions/0004_outbox_without_leases.py": "as 0001",
    "storage/migrations/versions/0005_consolidated_by.py": "as 0001",
    "storage/migrations/versions/0006_better_answers.py": "as 0001",
    "storage/migrations/versions/0007_note_questions.py": "as 0001",
    "storage/migrations/versions/0008_took_back.py": "as 0001",
    "storage/migrations/versions/0009_lora_shape.py": "as 0001",
    "storage/migrations/versions/0010_keys_and_dashboards.py": "as 0001",
    "storage/migrations/versions/0011_reading.py": "as 0001",
    "storage/migrations/versions/0012_chat_titles.py": "as 0001",
    "storage/migrations/versions/0013_agent_work.py": "as 0001",
    "storage/migrations/versions/0014_feedback_context.py": "as 0001",
    "storage/migrations/versions/0015_workspace_note.py": "as 0001",
    "storage/migrations/versions/0016_lease.py": "as 0001",
    "storage/migrations/versions/0017_inbox_server.py": "as 0001",
}

WRITING_CALLS = {"write_text", "write_bytes", "save_file", "save_pretrained", "copyfile", "copytree", "copy2"}
WRITING_FUNCTIONS = {("os", "replace"), ("os", "rename"), ("shutil", "move"), ("shutil", "copy"), ("torch", "save")}
ENVIRONMENT_NAMES = {"environ", "environb", "getenv", "putenv", "unsetenv"}


def sources() -> list[Path]:
    """Every module of the packages, relative to the root."""
    return sorted(path.relative_to(ROOT) for package in MAY_IMPORT for path in (ROOT / package).rglob("*.py"))


def tree_of(source: Path) -> ast.Module:
    """The syntax tree of a module."""
    return ast.parse((ROOT / source).read_text(encoding="utf-8"), str(source))


def imports(tree: ast.Module) -> Iterator[str]:
    """The dotted names of every import, also of those inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def top_level_imports(source: Path) -> set[str]:
    """The packages that a module imports from."""
    return {name.partition(".")[0] for name in imports(tree_of(source))}


def dotted_imports(source: Path) -> set[str]:
    """Return the full names of our own modules that a module imports."""
    found = set[str]()
    for node in ast.walk(tree_of(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name.partition(".")[0] in MAY_IMPORT}


def room_of(name: str, building: str) -> str:
    """Return the room of `building` that a dotted name lies in, or an empty string if it lies outside."""
    depth = building.count(".") + 2
    parts = name.split(".")
    is_inside = name.startswith(f"{building}.") and len(parts) >= depth
    return ".".join(parts[:depth]) if is_inside else ""


def module_name(source: Path) -> str:
    """Return the dotted name of a module."""
    return ".".join(source.with_suffix("").parts)


def arrows(building: str) -> Iterator[tuple[str, str, Path]]:
    """Yield each import from one room of a building into another, with the importing file."""
    for source in sources():
        room = room_of(module_name(source), building)
        if room and source.name != "__init__.py":
            others = {room_of(name, building) for name in dotted_imports(source)} - {room, ""}
            yield from ((room, other, source) for other in sorted(others))


def is_environment(node: ast.AST) -> bool:
    """Whether the node is `os.environ` or a relative of it."""
    if isinstance(node, ast.Attribute):
        return isinstance(node.value, ast.Name) and node.value.id == "os" and node.attr in ENVIRONMENT_NAMES
    return (
        isinstance(node, ast.ImportFrom)
        and node.module == "os"
        and any(alias.name in ENVIRONMENT_NAMES for alias in node.names)
    )


def is_write(node: ast.AST) -> bool:
    """Whether the node is a call that makes or replaces a file."""
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name == "open":
        modes = (
            node.args[1:2] if isinstance(node.func, ast.Name) else node.args[:1]
        )  # open(path, mode), path.open(mode)
        return any(map(is_writing_mode, [*modes, *(word.value for word in node.keywords)]))
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    return name in WRITING_CALLS or (isinstance(owner, ast.Name) and (owner.id, name) in WRITING_FUNCTIONS)


def is_writing_mode(node: ast.AST) -> bool:
    """Whether the node is a mode of open() that writes, such as "wb"."""
    if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        return False
    return bool(node.value) and set(node.value) <= set("rwxabt+") and bool(set(node.value) & set("wxa+"))


def mirrored(source: Path) -> Path:
    """Return where the tests of a module stand: the same path below tests/."""
    return Path("tests") / source.with_name(f"test_{source.name}")


def needs_test(source: Path) -> bool:
    """Whether a module must have a test module of its name."""
    return source.stem not in ("__init__", "__main__") and str(source) not in NEEDS_NO_TEST


def test_packages_import_only_downwards() -> None:
    """bot imports engine and storage, engine imports storage, storage imports neither."""
    wrong = [
        f"{source} imports {name}"
        for source in sources()
        for name in sorted(top_level_imports(source) & set(MAY_IMPORT))
        if name != source.parts[0] and name not in MAY_IMPORT[source.parts[0]]
    ]
    assert wrong == []


@pytest.mark.parametrize("building", FLOORS)
def test_every_room_stands_on_one_floor(building: str) -> None:
    """Each package and module of a building is named on exactly one floor, and no floor names one that is gone."""
    folder = ROOT / building.replace(".", "/")
    packages = {path.name for path in folder.iterdir() if (path / "__init__.py").exists()}
    modules = {path.stem for path in folder.glob("*.py") if path.stem != "__init__"}
    named = [room for floor in FLOORS[building] for room in sorted(floor)]
    assert sorted(named) == sorted(f"{building}.{name}" for name in packages | modules)


@pytest.mark.parametrize("building", FLOORS)
def test_rooms_import_only_downwards(building: str) -> None:
    """No room imports one on its own floor or above."""
    floor_of = {room: number for number, floor in enumerate(FLOORS[building]) for room in floor}
    wrong = [
        f"{source} imports {other}"
        for room, other, source in arrows(building)
        if floor_of[other] <= floor_of[room] and (room, other) not in MAY_RUN_UP
    ]
    assert wrong == []


@pytest.mark.parametrize("room", FORBIDDEN)
def test_forbidden_arrows_are_not_drawn(room: str) -> None:
    """Nothing in the room imports what its line in FORBIDDEN names."""
    folder = Path(room.replace(".", "/"))
    wrong = [
        f"{source} imports {name}"
        for source in sources()
        if source.is_relative_to(folder)
        for name in sorted(dotted_imports(source))
        if any(name == other or name.startswith(f"{other}.") for other in FORBIDDEN[room])
    ]
    assert wrong == []


def test_bot_talks_to_the_engine_through_its_facade() -> None:
    """bot/ imports engine.engine, .requests, .errors, .config, .models and the pocket's PACKAGED, and nothing else."""
    wrong = [
        f"{source} imports {name}"
        for source in sources()
        if source.parts[0] == "bot"
        for name in sorted(dotted_imports(source))
        if name.startswith("engine.") and ".".join(name.split(".")[:2]) not in ENGINE_FACADE
    ]
    beyond_weights = [
        f"{source} imports {name}"
        for source in sources()
        if source.parts[0] == "bot"
        for name in sorted(dotted_imports(source))
        if name.startswith("engine.pocket.") and name != "engine.pocket.PACKAGED"
    ]
    assert wrong + beyond_weights == []


def test_third_parties_stay_home() -> None:
    """torch, vllm, peft and transformers stay in engine/, SQL in storage/, each chat library in bot/platforms/."""
    wrong = [
        f"{source} imports {name}, whose home is {' and '.join(HOMES[name])}"
        for source in sources()
        for name in sorted(top_level_imports(source) & set(HOMES))
        if not any(source.is_relative_to(home) for home in HOMES[name])
    ]
    assert wrong == []


def test_test_tools_are_not_shipped() -> None:
    """Nothing that only requirements/dev.txt installs is imported outside tests/."""
    assert [str(source) for source in sources() if top_level_imports(source) & NEVER_SHIPPED] == []


@pytest.mark.parametrize("package", ["bot", "engine", "storage"])
def test_only_the_configuration_touches_the_environment(package: str) -> None:
    """os.environ is used in the configuration modules and nowhere else, so every setting has one place."""
    using = [str(s) for s in sources() if s.parts[0] == package and any(map(is_environment, ast.walk(tree_of(s))))]
    assert [source for source in using if source not in MAY_TOUCH_ENVIRONMENT] == []


def test_only_the_atomic_writer_writes_files() -> None:
    """What must survive a crash is written by storage/files/atomic.py alone."""
    writing = [source for source in sources() if any(map(is_write, ast.walk(tree_of(source))))]
    in_free_folder = [
        source for source in writing if any(source.is_relative_to(folder) for folder in MAY_WRITE_FOLDERS)
    ]
    assert [str(s) for s in writing if s not in in_free_folder and str(s) not in MAY_WRITE_FILES] == []


def test_every_module_has_its_tests_at_the_same_path() -> None:
    """bot/core/gateway.py has tests/bot/core/test_gateway.py, and so on for every module."""
    missing = [
        mirrored(source) for source in sources() if needs_test(source) and not (ROOT / mirrored(source)).exists()
    ]
    assert missing == []


@pytest.mark.parametrize("exceptions", [MAY_TOUCH_ENVIRONMENT, MAY_WRITE_FILES, MAY_WRITE_FOLDERS, NEEDS_NO_TEST])
def test_every_exception_still_exists(exceptions: dict[str, str]) -> None:
    """An exception for a module that is gone is removed here, too."""
    assert [path for path in exceptions if not (ROOT / path).exists()] == []


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("open('a', 'w')", True),
        ("path.open('ab')", True),
        ("open('a', mode='x')", True),
        ("path.write_bytes(b'')", True),
        ("os.replace(a, b)", True),
        ("torch.save(x, f)", True),
        ("open('a')", False),
        ("open('a', 'rb')", False),
        ("text.replace('a', 'b')", False),
    ],
)
def test_the_writing_rule_sees_writes(code: str, expected: bool) -> None:
    """The rule above recognises each way of writing a file, and leaves reading alone."""
    assert any(map(is_write, ast.walk(ast.parse(code)))) is expected


@pytest.mark.parametrize("code", ["os.environ['A']", "os.getenv('A')", "from os import environ"])
def test_the_environment_rule_sees_each_way(code: str) -> None:
    """The rule above recognises each way of reaching the environment."""
    assert any(map(is_environment, ast.walk(ast.parse(code))))
