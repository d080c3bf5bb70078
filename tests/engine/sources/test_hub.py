"""engine.sources.hub: by name from a hub over HTTP, with a bar; what fails says what to do, and goes on later."""

import errno
import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest

from engine.errors import ModelFetchError
from engine.sources import hub
from tests.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[3]
COMMIT = "a" * 40
FILES = {
    "config.json": b'{"model_type": "qwen3"}',
    "model.safetensors": os.urandom(1 << 20),
    "tokenizer.json": b"{}",
    "code.py": b"print(1)",
}
DOWNLOAD = "import sys; from engine.sources import hub; print(hub.download(sys.argv[1], print))"


class Hub(ThreadingHTTPServer):
    """The calls of a hub that a download makes. `mode` is what it does with them."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), HubCalls)
        self.mode = "well"
        self.asked: list[str] = []


class HubCalls(BaseHTTPRequestHandler):
    """One call."""

    server: Hub

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        name = self.path.partition("?")[0].rpartition("/")[2]
        if self.server.mode in ("RepoNotFound", "GatedRepo"):
            self._json(401, {"error": "Access is restricted."}, {"X-Error-Code": self.server.mode})
        elif "/tree/" in self.path:
            self._json(200, [{"type": "file", "path": n, "size": len(c), "oid": n} for n, c in FILES.items()])
        elif self.path.startswith("/api/models/"):
            self._json(200, {"id": "own/tiny", "sha": COMMIT, "siblings": [{"rfilename": n} for n in FILES]})
        elif name in FILES:
            self._file(name)
        else:
            self._json(404, {})

    def _file(self, name: str) -> None:
        self.server.asked.append(f"{self.command} {name}")
        content = FILES[name]
        self.send_response(200)
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            is_cut = self.server.mode == "cut" and name.endswith("safetensors")
            self.wfile.write(content[: len(content) // 2] if is_cut else content)

    def _json(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, *_words: object) -> None:
        """Keep quiet."""


@pytest.fixture
def tiny_hub() -> Iterator[Hub]:
    """A hub with one model."""
    server = Hub()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def download(tiny_hub: Hub, home: Path, name: str = "own/tiny", port: int = 0) -> subprocess.CompletedProcess[str]:
    """Download in a process of its own: the library reads where the hub is when it is imported."""
    kept = {
        k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy") and not k.startswith(("HF_", "TQDM_"))
    }
    kept |= {"PYTHONPATH": str(ROOT), "HF_HOME": str(home)}
    kept["HF_ENDPOINT"] = f"http://127.0.0.1:{port or tiny_hub.server_port}"
    words = [sys.executable, "-c", DOWNLOAD, name]
    return subprocess.run(words, capture_output=True, text=True, env=kept, timeout=PATIENCE_S, check=False)


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    """Return the error that ended a download."""
    return done.stderr.strip().splitlines()[-1]


def test_a_model_is_downloaded_once_with_a_bar_and_without_its_code(tiny_hub: Hub, tmp_path: Path) -> None:
    """Weights, configuration and tokenizer come; the second time they are here, also when the hub is away."""
    done = download(tiny_hub, tmp_path)
    told, folder = done.stdout.splitlines()
    assert told == "downloading own/tiny from the hub, unless it is here"
    assert {path.name: path.read_bytes() for path in Path(folder).iterdir()} == {
        name: content for name, content in FILES.items() if name != "code.py"
    }
    assert "100%" in done.stderr
    asked = len(tiny_hub.asked)
    assert download(tiny_hub, tmp_path, port=9).stdout.splitlines()[-1] == folder
    assert len(tiny_hub.asked) == asked


def test_a_download_that_broke_off_says_so_and_goes_on(tiny_hub: Hub, tmp_path: Path) -> None:
    """A connection that ends early is one sentence; the next start asks for the missing file only."""
    tiny_hub.mode = "cut"
    broken = last_line(download(tiny_hub, tmp_path))
    assert "ModelFetchError: The download of own/tiny broke off (" in broken
    assert broken.endswith("Start heed again, and the download goes on where it was; HEED_MODEL=pocket needs none.")
    tiny_hub.mode = "well"
    tiny_hub.asked.clear()
    folder = Path(download(tiny_hub, tmp_path).stdout.splitlines()[-1])
    assert (folder / "model.safetensors").read_bytes() == FILES["model.safetensors"]
    assert [asked for asked in tiny_hub.asked if asked.startswith("GET")] == ["GET model.safetensors"]


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("RepoNotFound", "The hub has no model own/tiny, or not for everyone: check the name in HEED"),
        ("GatedRepo", "The model own/tiny is handed out only to people who have agreed to its terms"),
    ],
)
def test_a_model_that_is_not_there_or_not_for_everyone_names_the_remedy(
    tiny_hub: Hub, tmp_path: Path, mode: str, words: str
) -> None:
    """The name is wrong, or its terms have to be agreed to, or a token is missing."""
    tiny_hub.mode = mode
    refused = last_line(download(tiny_hub, tmp_path))
    assert f"ModelNotFoundError: {words}" in refused
    assert "HF_TOKEN" in refused


def test_a_hub_out_of_reach_is_one_sentence(tiny_hub: Hub, tmp_path: Path) -> None:
    """It names the network, and a model that needs none."""
    refused = last_line(download(tiny_hub, tmp_path, port=9))
    assert "ModelFetchError: The model own/tiny is not here and cannot be downloaded (" in refused
    assert "Check the network." in refused


def test_a_full_disk_names_the_folder_to_choose(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache can lie elsewhere."""

    def full(*_args: object, **_kwargs: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", full)
    with pytest.raises(ModelFetchError, match=r"no room on the disk for the model own/tiny.*HF_HOME"):
        hub.download("own/tiny", lambda _line: None)
