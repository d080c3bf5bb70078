"""The processor, checked for what vLLM's kernels ask of it before vLLM is started.

vLLM brings one library of kernels for processors with AVX-512 and one for those with AVX2 alone. The product of weights
packed to 4 bits (`cpu_gemm_wna16`: AWQ, GPTQ, compressed-tensors' "pack-quantized") is in the first one only; without
it the first answer would fail deep inside vLLM. Invariant: what the kernels of a GPU or of another architecture can do
is left to vLLM.
"""

import re
from pathlib import Path

from engine.errors import ModelUnsuitable

CPU_INFO = Path("/proc/cpuinfo")
_AVX512 = {"avx512f", "avx512bw", "avx512dq", "avx512vl"}  # as torch.cpu asks, by which vLLM chooses its library
_FLAGS = re.compile(r"^flags\s*:(.*)$", re.MULTILINE)  # x86 alone has this line
_REFUSAL = (
    "The model in {folder} is quantised to 4 bits ({method}), and vLLM multiplies such weights only on a processor "
    "with AVX-512, which this one does not have: set HEED_MODEL to the same model as it was before it was quantised, "
    "or run heed on another machine."
)


def check_processor(folder: Path, packed: str, *, has_gpu: bool, cpu_info: Path | None = None) -> None:
    """Raise ModelUnsuitable if vLLM cannot multiply a model's weights here. Blocking: a small file.

    `packed` is the method by which they were packed to 4 bits, empty for others.
    """
    if packed and not has_gpu and _lacks_avx512(cpu_info or CPU_INFO):
        raise ModelUnsuitable(_REFUSAL.format(folder=folder, method=packed))


def _lacks_avx512(cpu_info: Path) -> bool:
    try:
        found = _FLAGS.search(cpu_info.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return False
    return found is not None and not set(found[1].split()) >= _AVX512
