"""Every default of the engine, once, with its unit and its source."""

from engine.config.checks import ConfigError, changed_settings
from engine.config.engine import EngineConfig
from engine.config.host import VLLM_LORA_RANKS, HostConfig
from engine.config.learning import (
    LORA_TARGET_MODULES,
    Divergence,
    FactConfig,
    GateConfig,
    LearnConfig,
    NoteConfig,
    Schedule,
    Teacher,
    VersionConfig,
)
from engine.config.nightly import AuditConfig, BetterAnswersConfig, ConsolidationConfig

__all__ = [
    "LORA_TARGET_MODULES",
    "VLLM_LORA_RANKS",
    "AuditConfig",
    "BetterAnswersConfig",
    "ConfigError",
    "ConsolidationConfig",
    "Divergence",
    "EngineConfig",
    "FactConfig",
    "GateConfig",
    "HostConfig",
    "LearnConfig",
    "NoteConfig",
    "Schedule",
    "Teacher",
    "VersionConfig",
    "changed_settings",
]
