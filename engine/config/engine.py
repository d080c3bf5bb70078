"""The engine's settings as one record. Nothing else in `engine/` reads the environment or repeats a default."""

from dataclasses import dataclass, field
from pathlib import Path

from engine.config.checks import changed_settings, require
from engine.config.host import HostConfig
from engine.config.learning import FactConfig, GateConfig, LearnConfig, NoteConfig, VersionConfig
from engine.config.nightly import AuditConfig, BetterAnswersConfig, ConsolidationConfig


@dataclass(frozen=True)
class EngineConfig:
    """The whole engine: its model, its data folder and the groups of settings."""

    model: str
    data_dir: Path
    object_store: str = ""  # where copies of adapters are kept, such as s3://bucket/heed; empty: nowhere
    host: HostConfig = field(default_factory=HostConfig)
    learn: LearnConfig = field(default_factory=LearnConfig)
    gate: GateConfig = field(default_factory=GateConfig)
    note: NoteConfig = field(default_factory=NoteConfig)
    fact: FactConfig = field(default_factory=FactConfig)
    sleep: ConsolidationConfig = field(default_factory=ConsolidationConfig)
    versions: VersionConfig = field(default_factory=VersionConfig)
    curriculum: BetterAnswersConfig = field(default_factory=BetterAnswersConfig)
    audit: AuditConfig = field(default_factory=AuditConfig)
    is_thinking: bool = False  # handed to the chat template of reasoning models
    is_calibrated: bool = True  # False: rates and gates of this model are only estimated
    chosen: frozenset[str] | None = None  # "group.name" of what the operator set; None: what is no default

    def __post_init__(self) -> None:
        """Refuse combinations that no single group can see."""
        require(bool(self.model), "model is empty: give a Hugging Face name or a folder")
        require(
            self.learn.lora_rank <= self.host.max_lora_rank,
            f"learn.lora_rank {self.learn.lora_rank} is above host.max_lora_rank {self.host.max_lora_rank}",
        )
        self.check_teacher(self.learn)

    @property
    def model_name(self) -> str:
        """The model's public name: of a folder only the last part that names it, for the rest is this machine's."""
        if not self.model.startswith(("/", ".", "~")):
            return self.model
        return next((part for part in reversed(Path(self.model).parts) if part != "weights"), self.model)

    @property
    def chosen_settings(self) -> frozenset[str]:
        """The settings of learning and gates that a calibration must leave alone, as "group.name"."""
        if self.chosen is not None:
            return self.chosen
        groups = {"learn": self.learn, "gate": self.gate}
        return frozenset(f"{name}.{key}" for name, group in groups.items() for key in changed_settings(group))

    def check_teacher(self, learn: LearnConfig) -> None:
        """Raise ConfigError if an update wants a teacher that is not loaded."""
        is_there = learn.teacher != "external" or bool(self.host.teacher_model)
        require(is_there, 'learn.teacher is "external": set host.teacher_model to the folder of that model, too')
