"""engine.host.vllm_settings: the environment, the log and the arguments that vLLM gets."""

import json
import logging
import logging.config
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.config import LORA_TARGET_MODULES, EngineConfig, HostConfig
from engine.host import vllm_settings
from engine.host.architectures import Trainability
from engine.host.gpu_plan import gpu_plan
from engine.host.model_shape import ModelShape
from engine.host.sizing import MOST_OF_GPU
from engine.host.vllm_settings import engine_args, set_environment
from engine.worker.watchdog import ProcessId

OWNER = ProcessId(1, 2)
QWEN = Trainability("Qwen3")
WITH_A_SOCKET = """
import sys
from pathlib import Path

from engine.config import HostConfig
from engine.host.vllm_settings import set_environment

set_environment(HostConfig(), Path(sys.argv[1]))
from vllm.utils.network_utils import get_open_zmq_ipc_path

socket = Path(get_open_zmq_ipc_path().removeprefix("ipc://"))
socket.touch()
print(socket)
"""
SHAPES = """
import psutil, torch
torch.set_num_threads(1)
weight, rows = torch.ones(256, 64).bfloat16(), torch.ones(1200, 64).bfloat16()
for count in range(200, 1200):
    rows[:count] @ weight.t()
    if count in (600, 1199):
        print(psutil.Process().memory_info().rss)
"""


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Restore the environment and the loggers after a test."""
    kept = dict(os.environ)
    handlers = {name: list(logging.getLogger(name).handlers) for name in ("vllm", "py.warnings")}
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "40")
    yield
    os.environ.clear()
    os.environ.update(kept)
    for name, found in handlers.items():
        logging.getLogger(name).handlers = found
        logging.getLogger(name).propagate = True


def test_nothing_phones_home(environment: None, tmp_path: Path) -> None:
    """Usage statistics, telemetry and the hub are off before vLLM is imported."""
    set_environment(HostConfig(), tmp_path / "logs" / "vllm.log")
    wanted = {"VLLM_NO_USAGE_STATS": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_OFFLINE": "1"}
    assert wanted.items() <= os.environ.items()


def test_vllm_writes_to_the_log_file_and_not_to_the_terminal(environment: None, tmp_path: Path) -> None:
    """Records go to the file in heed's process and, by the configuration file, in the children."""
    log_file = tmp_path / "logs" / "vllm.log"
    set_environment(HostConfig(log_level="INFO"), log_file)
    logging.getLogger("vllm.some.module").info("a line of vLLM's")
    assert "a line of vLLM's" in log_file.read_text()
    config = json.loads(Path(os.environ["VLLM_LOGGING_CONFIG_PATH"]).read_text())
    assert config["loggers"]["vllm"]["handlers"] == ["file"]
    assert config["handlers"]["file"]["filename"] == str(log_file)


def test_on_a_cpu_nothing_is_compiled_and_the_cache_size_is_heeds(
    environment: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compiled kernel costs 14 s at the first answer and needs a compiler; the variable would claim 40 GiB."""
    monkeypatch.setattr(vllm_settings, "has_gpu", lambda: False)
    monkeypatch.setattr(vllm_settings.allocator, "preloads", lambda before: {"LD_PRELOAD": f"tcmalloc:{before}"})
    monkeypatch.setenv("LD_PRELOAD", "other")
    set_environment(HostConfig(), tmp_path / "vllm.log")
    assert os.environ["LD_PRELOAD"] == "tcmalloc:other"
    assert vllm_settings.CPU_ONLY.items() <= os.environ.items()
    assert "VLLM_CPU_KVCACHE_SPACE" not in os.environ


def test_sockets_go_with_the_process_that_had_them_made(tmp_path: Path) -> None:
    """vLLM leaves them where they are: they lie in a folder of this process, which is gone when it has ended."""
    temporary, log_file = tmp_path / "temporary", tmp_path / "vllm.log"
    temporary.mkdir()
    environment = {name: value for name, value in os.environ.items() if name != vllm_settings.SOCKETS}
    words = (sys.executable, "-c", WITH_A_SOCKET, str(log_file))
    done = subprocess.run(words, capture_output=True, text=True, env=environment | {"TMPDIR": str(temporary)})
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).parent.parent == temporary
    assert list(temporary.iterdir()) == []


def test_an_operator_says_where_sockets_are(environment: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that is named already is vLLM's, too, and stays."""
    monkeypatch.setenv(vllm_settings.SOCKETS, str(tmp_path))
    set_environment(HostConfig(), tmp_path / "vllm.log")
    assert os.environ[vllm_settings.SOCKETS] == str(tmp_path)


def test_products_of_many_shapes_leave_little_memory_behind() -> None:
    """PyTorch and oneDNN keep a kernel for each number of rows, where a CPU computes in bfloat16 by itself."""
    words, environment = (sys.executable, "-c", SHAPES), os.environ | vllm_settings.CPU_ONLY
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=environment)
    after_some, after_all = map(int, done.stdout.split())
    assert after_all - after_some < 64 << 20  # 420 MB with the thousand kernels that each keeps otherwise


def test_the_driver_folder_of_a_host_is_no_gpu(tmp_path: Path) -> None:
    """A container sees the host's driver in /proc; only a device file means that a GPU can be used."""
    (tmp_path / "nvidiactl").touch()
    assert not vllm_settings.has_gpu(tmp_path)
    (tmp_path / "nvidia0").touch()
    assert vllm_settings.has_gpu(tmp_path)


def test_the_engine_gets_what_the_host_needs(tiny_model: Path, tmp_path: Path) -> None:
    """The arguments have adapters on all linear layers, a slot for every stream and no code from the model."""
    config = EngineConfig(model="tiny", data_dir=tmp_path)
    args = engine_args(tiny_model, QWEN, config, OWNER, tmp_path / "vllm.log")
    assert args.enable_lora
    assert set(args.lora_target_modules) == {*LORA_TARGET_MODULES, "qkv_proj", "gate_up_proj"}  # the last two: Phi-3
    assert args.max_loras == config.host.max_num_seqs + 1
    assert args.max_cpu_loras == args.max_loras  # what is in no slot is in the worker's registry
    assert not args.trust_remote_code
    assert args.disable_log_stats
    assert args.additional_config.owner == OWNER
    assert args.additional_config.num_weights == ModelShape.in_folder(tiny_model).num_weights


def test_the_cpu_computes_in_float32_unless_told_otherwise(tiny_model: Path, tmp_path: Path) -> None:
    """The trainer and vLLM then agree to rounding."""
    assert engine_args(tiny_model, QWEN, EngineConfig("m", tmp_path), OWNER, tmp_path / "l").dtype == "float32"
    told = EngineConfig("m", tmp_path, host=HostConfig(dtype="bfloat16"))
    assert engine_args(tiny_model, QWEN, told, OWNER, tmp_path / "l").dtype == "bfloat16"


def test_on_a_gpu_a_model_that_learns_leaves_room_for_it(tiny_model: Path, tmp_path: Path) -> None:
    """The room follows from the model and the longest sample; a quantised one needs none."""
    config = EngineConfig("m", tmp_path)
    shape = ModelShape.of(json.loads((tiny_model / "config.json").read_text()))
    training = gpu_plan(shape, config, 5 << 30).training
    learning = vllm_settings.sizing_on_gpu(tiny_model, config, QWEN, 5 << 30)
    assert learning.gpu_share == pytest.approx(1 - training / (5 << 30))
    quantised = Trainability("Llama", "AWQ")
    assert vllm_settings.sizing_on_gpu(tiny_model, config, quantised, 5 << 30).gpu_share == MOST_OF_GPU


def test_on_a_cpu_every_model_that_learns_may(tiny_model: Path, tmp_path: Path) -> None:
    """The plan is a GPU's."""
    assert vllm_settings.learns_here(tiny_model, QWEN, EngineConfig("m", tmp_path)) is QWEN


def test_a_quantised_model_gets_no_adapters_and_a_type_its_kernels_take(tiny_model: Path, tmp_path: Path) -> None:
    """Nothing is trained on it, so that there is nothing to serve beside it."""
    args = engine_args(tiny_model, Trainability("Llama", "AWQ"), EngineConfig("m", tmp_path), OWNER, tmp_path / "l")
    assert not args.enable_lora
    assert args.dtype == "bfloat16"


def test_a_context_is_as_long_as_wanted_but_no_longer_than_longrope_has_one_rotation(
    tiny_model: Path, tmp_path: Path
) -> None:
    """The shortest of all limits holds; what the operator wants may be longer than the model's own."""
    long = Trainability("Phi-3", longest_context=4096)
    limit = json.loads((tiny_model / "config.json").read_text())["max_position_embeddings"]
    for trainability, wanted, expected in (
        (QWEN, None, limit),
        (QWEN, 900, 900),
        (long, None, min(limit, 4096)),
        (long, 9000, 4096),
    ):
        config = EngineConfig("m", tmp_path, host=HostConfig(max_model_len=wanted))
        assert engine_args(tiny_model, trainability, config, OWNER, tmp_path / "l").max_model_len == expected
