"""The parts of a running engine that learning needs, handed around as one record."""

from dataclasses import dataclass

from engine.adapters.active import ActiveAdapters
from engine.config import EngineConfig
from engine.host.trainer_client import TrainerClient
from engine.host.vllm_host import VllmHost
from engine.prompts.bank import Bank
from engine.prompts.builder import PromptBuilder
from engine.samples.rollouts import RolloutStore
from storage.database import Database


@dataclass(frozen=True)
class LearningContext:
    """Built once by the engine, when vLLM runs."""

    config: EngineConfig
    database: Database
    host: VllmHost
    trainer: TrainerClient
    prompts: PromptBuilder
    rollouts: RolloutStore
    bank: Bank
    active: ActiveAdapters

    @property
    def max_model_len(self) -> int:
        """Tokens of prompt and answer together."""
        return self.host.max_model_len
