"""The parts of a running engine, built once vLLM runs."""

from dataclasses import dataclass

from engine.adapters.active import ActiveAdapters
from engine.adapters.store import AdapterStore
from engine.adapters.transfer import Transfer
from engine.config import EngineConfig
from engine.consolidation.consolidator import Consolidator
from engine.consolidation.drift_audit import DriftAudit
from engine.generation.generator import Generator
from engine.host.model_sampling import own_sampling
from engine.host.trainer_client import TrainerClient
from engine.host.vllm_host import VllmHost
from engine.learning.candidates import Candidates
from engine.learning.foresight import Foresight
from engine.learning.import_trial import ImportTrial
from engine.learning.learner import Learner
from engine.learning.note_probe import NoteProbe
from engine.prompts.bank import load_bank
from engine.prompts.builder import PromptBuilder
from engine.prompts.turn_rules import require_template
from engine.reading import store
from engine.reading.reader import ReactionReader
from engine.requests import EngineLoad, Sampling
from engine.samples.context import LearningContext
from engine.samples.facts import Facts
from engine.samples.rollouts import RolloutStore
from storage.database import Database


@dataclass(frozen=True)
class Parts:
    """One of each; none before the engine has started."""

    context: LearningContext
    candidates: Candidates
    generator: Generator
    learner: Learner
    foresight: Foresight
    note_probe: NoteProbe
    audit: DriftAudit
    consolidator: Consolidator
    transfer: Transfer
    sampling: Sampling  # as the model's own files ask for it

    def load(self, num_lessons: int) -> EngineLoad:
        """Return what the engine has to do and has done; `num_lessons` wait or run."""
        counts = self.context.active.counts()._asdict()
        return EngineLoad(num_streams=self.context.host.num_running, num_lessons=num_lessons, **counts)

    @classmethod
    def build(
        cls, config: EngineConfig, database: Database, host: VllmHost, adapters: AdapterStore, base_model: str
    ) -> "Parts":
        """Build everything over a running host; `base_model` is the model's fingerprint. Raises ModelUnsuitable."""
        require_template(host.tokenizer, host.model_folder)
        prompts = PromptBuilder(
            host.tokenizer,
            host.max_model_len,
            is_thinking=config.is_thinking,
            max_training_tokens=config.learn.max_sequence_tokens,
        )
        bank = load_bank(host.model_folder)
        trainer = TrainerClient(host)
        context = LearningContext(
            config,
            database,
            host,
            trainer,
            prompts,
            RolloutStore(host, trainer, prompts, bank, config.learn),
            bank,
            ActiveAdapters(base_model, database, adapters, host),
            ReactionReader(trainer, prompts, store.find(base_model, config.data_dir)),
        )
        candidates, facts = Candidates(context, adapters), Facts(context)
        learner = Learner(context, candidates, facts)
        return cls(
            context,
            candidates,
            Generator(context),
            learner,
            Foresight(context, learner),
            NoteProbe(context),
            DriftAudit(context),
            Consolidator(context, candidates, facts),
            Transfer(config, database, host, adapters, context.active, ImportTrial(context).check),
            own_sampling(host.model_folder),
        )
