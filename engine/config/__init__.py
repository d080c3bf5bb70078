"""Every default of the engine, once, with its unit and its source."""

from engine.config.engine import (
    LORA_TARGET_MODULES,
    VLLM_LORA_RANKS,
    AuditConfig,
    ConfigError,
    CurriculumConfig,
    Divergence,
    EngineConfig,
    FactConfig,
    GateConfig,
    HostConfig,
    LearnConfig,
    NoteConfig,
    Schedule,
    SleepConfig,
    Teacher,
    VersionConfig,
)

__all__ = [
    "LORA_TARGET_MODULES",
    "VLLM_LORA_RANKS",
    "AuditConfig",
    "ConfigError",
    "CurriculumConfig",
    "Divergence",
    "EngineConfig",
    "FactConfig",
    "GateConfig",
    "HostConfig",
    "LearnConfig",
    "NoteConfig",
    "Schedule",
    "SleepConfig",
    "Teacher",
    "VersionConfig",
]
