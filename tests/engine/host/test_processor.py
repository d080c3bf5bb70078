"""engine.host.processor: weights that this processor's kernels cannot multiply are refused before vLLM is started."""

import json
import shutil
from pathlib import Path

import pytest

from engine.config import EngineConfig
from engine.errors import ModelUnsuitable
from engine.host import processor, vllm_host
from engine.host.processor import check_processor
from engine.host.vllm_host import VllmHost

AVX2 = "processor\t: 0\nflags\t\t: fpu sse2 avx avx2 fma\n"
AVX512 = "processor\t: 0\nflags\t\t: fpu avx2 fma avx512f avx512dq avx512cd avx512bw avx512vl\n"
PART = AVX512.replace(" avx512vl", "")
ARM = "processor\t: 0\nFeatures\t: fp asimd\n"


def flags(path: Path, text: str) -> Path:
    """Return the file in which a processor says what it can do."""
    found = path / "cpuinfo"
    found.write_text(text)
    return found


@pytest.mark.parametrize("method", ["AWQ", "GPTQ", "compressed-tensors"])
@pytest.mark.parametrize("text", [AVX2, PART], ids=["avx2", "a part of avx512"])
def test_four_bits_without_avx512_are_refused(method: str, text: str, tmp_path: Path) -> None:
    """One sentence: the model, how it is quantised, what is missing, and the setting to change."""
    with pytest.raises(ModelUnsuitable) as refused:
        check_processor(tmp_path / "m", method, has_gpu=False, cpu_info=flags(tmp_path, text))
    sentence = str(refused.value)
    assert all(word in sentence for word in (str(tmp_path / "m"), f"({method})", "AVX-512", "HEED_MODEL"))
    assert sentence.count(". ") == 0


def test_what_can_be_served_passes(tmp_path: Path) -> None:
    """AVX-512, a GPU, weights of 16 bits, another architecture, and a machine that does not tell."""
    check_processor(tmp_path, "AWQ", has_gpu=False, cpu_info=flags(tmp_path, AVX512))
    check_processor(tmp_path, "AWQ", has_gpu=False, cpu_info=flags(tmp_path, ARM))
    check_processor(tmp_path, "AWQ", has_gpu=True, cpu_info=flags(tmp_path, AVX2))
    check_processor(tmp_path, "", has_gpu=False, cpu_info=flags(tmp_path, AVX2))
    check_processor(tmp_path, "AWQ", has_gpu=False, cpu_info=tmp_path / "nothing")


async def test_the_start_refuses_before_anything_is_loaded(
    pocket: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole model folder that says it was quantised by AWQ, on a processor with AVX2 alone."""
    folder = Path(shutil.copytree(pocket, tmp_path / "model"))
    config = json.loads((folder / "config.json").read_text())
    config |= {"quantization_config": {"quant_method": "awq", "bits": 4}}
    (folder / "config.json").write_text(json.dumps(config))
    monkeypatch.setattr(processor, "CPU_INFO", flags(tmp_path, AVX2))
    monkeypatch.setattr(vllm_host, "has_gpu", lambda: False)
    host = VllmHost(EngineConfig(str(folder), tmp_path / "data"))

    async def launch(_progress: object) -> None:
        raise AssertionError("vLLM was started")

    monkeypatch.setattr(host, "_launch", launch)
    with pytest.raises(ModelUnsuitable, match=r"quantised to 4 bits \(AWQ\)"):
        await host.start()
    await host.stop()
