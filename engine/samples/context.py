"""The parts of a running engine that learning needs, built once when the engine has started."""

from dataclasses import dataclass

from engine.adapters.active import ActiveAdapters
from engine.config import EngineConfig
from engine.host.trainer_client import TrainerClient
from engine.host.vllm_host import VllmHost
from engine.prompts.bank import Bank
from engine.prompts.builder import PromptBuilder
from engine.reading.reader import ReactionReader
from engine.samples.rollouts import RolloutStore
from storage.database import Database


@dataclass(frozen=True)
class LearningContext:
    """The parts that lessons, consolidations and audits share."""

    config: EngineConfig
    database: Database
    host: VllmHost
    trainer: TrainerClient
    prompts: PromptBuilder
    rollouts: RolloutStore
    bank: Bank
    active: ActiveAdapters
    reader: ReactionReader
