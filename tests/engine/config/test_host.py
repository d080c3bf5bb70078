"""engine.config.host: settings that vLLM would refuse."""

from typing import Any

import pytest

from engine.config import ConfigError, HostConfig


@pytest.mark.parametrize(
    "values",
    [
        {"max_num_seqs": 0},
        {"block_size": 24},
        {"max_lora_rank": 24},
        {"adapter_cache_bytes": 1000},
        {"gpu_memory_utilization": 1.5},
        {"watch_interval_s": 60.0},
    ],
)
def test_a_host_setting_that_vllm_would_refuse_is_refused_before_it_starts(values: dict[str, Any]) -> None:
    """The settings are refused before minutes are spent on loading a large model."""
    with pytest.raises(ConfigError, match=next(iter(values))):
        HostConfig(**values)
