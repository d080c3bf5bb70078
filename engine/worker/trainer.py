"""The trainer as vLLM worker extension: it runs inside the vLLM worker process, between decode steps or beside them.

vLLM adds `TrainerExtension` to the worker's base classes; `collective_rpc` calls its `heed_*` methods. Owns the
training model, the adapter registry and the one update that may be open. Invariants: no method raises (an exception
here comes back as a string or ends the worker): each returns a plain record with `ok` and `error`; a failing update
leaves serving untouched; a version that is not finite is never registered.
"""

import functools
import json
import logging
import math
import os
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load as load_safetensors

from engine.adapter_ref import CONFIG_FILE, TENSORS_FILE
from engine.config import LearnConfig
from engine.sample import Passage, Sample
from engine.training.adapter_tensors import AdapterTensors, require_fitting, require_whole
from engine.training.base_states import BaseStates
from engine.training.lean_model import LeanModel
from engine.training.lora_slot import LoraShape
from engine.training.model import TrainingModel, gpu_training_model, is_lean, load_base, load_training_model
from engine.training.openings import first_tokens
from engine.training.pooling import pooled_states
from engine.training.scoring import score_samples
from engine.training.shared_weights import served_embedding, share_weights
from engine.training.training_update import OptimizerState, TrainingUpdate
from engine.worker import kept_memory, norms, punica, queue_wait
from engine.worker.beside import Beside, WorkLost
from engine.worker.lora_registry import LoraRegistry, check_servable, install
from engine.worker.settings import WorkerSettings
from engine.worker.spare_cores import SpareCores
from engine.worker.watchdog import family, watch

MAX_OPTIMIZERS = 64  # each twice the size of an adapter
BESIDE_S = 2.0  # that one call computes beside decoding, piece by piece: it holds nothing up
WARM_UP_WIDTHS = range(32, 104, 8)  # tokens of prompt and answer: the micro-batches a short answer makes

logger = logging.getLogger(__name__)
Record = dict[str, Any]
Method = Callable[..., Record]


def _guarded(method: Method) -> Method:
    """Turn every exception into a record, and allow gradients in any mode that vLLM has left switched on."""

    @functools.wraps(method)
    def call(self: Any, *args: Any) -> Record:
        try:
            with torch.inference_mode(mode=False), torch.enable_grad():
                return {"ok": True, "error": ""} | method(self, *args)
        except Exception as error:
            logger.warning("%s failed", method.__name__, exc_info=True)
            is_lost = isinstance(error, WorkLost)
            return {"ok": False, "is_lost": is_lost, "error": f"{type(error).__name__}: {error}"}

    return call


@dataclass
class Trainer:
    """The extension's state between calls."""

    model: TrainingModel
    registry: LoraRegistry
    lora_manager: Any
    max_rank: int
    teacher: TrainingModel | None = None  # the external one, if there is one
    beside: Beside | None = None  # None: the model is too small to gain by it, or it computes on a GPU
    base_states: BaseStates = field(init=False)
    update_id: str | None = None
    run: TrainingUpdate | None = None
    optimizers: OrderedDict[int, OptimizerState] = field(default_factory=OrderedDict)  # by the version they made

    def __post_init__(self) -> None:
        """Begin with what belongs to the model alone."""
        self.base_states = BaseStates(self.model)

    def cores(self) -> AbstractContextManager[object]:
        """Return the context to compute in: the worker's own cores, and those that are free."""
        return self.beside.cores.borrowed() if self.beside is not None else nullcontext()

    def advance(self, run: TrainingUpdate, budget_s: float) -> None:
        """Work for about `budget_s`; beside decoding for longer, each piece on the cores that are free then."""
        if self.beside is None:
            run.advance(budget_s)
            return
        ends = time.monotonic() + BESIDE_S
        while not run.is_done and time.monotonic() < ends:
            with self.cores():
                run.advance(0.0)

    def open(self, update_id: str, run: TrainingUpdate) -> None:
        """Make `run` the open update; an earlier one is abandoned."""
        self.update_id, self.run = update_id, run

    def close(self) -> None:
        """Forget the open update; of a large one, the memory, too."""
        self.update_id = self.run = None
        self.give_back()

    def give_back(self) -> None:
        """Free the slots of a large model, behind the work that is under way, and hand back what its work has freed."""
        if self.beside is not None:
            self.beside.begin(self._give_back)

    def _give_back(self) -> Record:
        if self.run is None:
            self.model.forget_slots()
        return {"gave_back": kept_memory.give_back()}

    def current(self, update_id: str) -> TrainingUpdate:
        """Return the open update. Raises WorkLost if it is not `update_id`."""
        if self.run is None or self.update_id != update_id:
            raise WorkLost(f"update {update_id} is not open")
        return self.run

    def adapter(self, reference: Record | None) -> AdapterTensors | None:
        """Return the adapter of {"lora_int_id", "path"}, or None for None (the base model)."""
        return self.registry.get(reference["lora_int_id"], reference["path"]) if reference else None

    def optimizer(self, reference: Record | None) -> OptimizerState | None:
        """Return the optimizer state that made a version, or None if it is no longer in memory."""
        return self.optimizers.get(reference["lora_int_id"]) if reference else None

    def keep_optimizer(self, lora_int_id: int, run: TrainingUpdate) -> None:
        """Store the optimizer state for updates that go on with it; of the newest versions only, never on disk."""
        if run.learn.keeps_optimizer:
            self.optimizers[lora_int_id] = run.optimizer_state
            while len(self.optimizers) > MAX_OPTIMIZERS:
                self.optimizers.popitem(last=False)


def warm_up(model: TrainingModel, learn: LearnConfig) -> None:
    """Run one step over full micro-batches of usual widths and discard it: the first pass of a kernel is slow."""
    for width in WARM_UP_WIDTHS:
        half = [1] * (width // 2)
        samples = [Sample("correction", half, 2 * half, half)] * max(1, learn.micro_batch_tokens // width)
        TrainingUpdate(model, replace(learn, steps=1, teacher="base"), samples, None).advance(math.inf)


class TrainerExtension:
    """Mixed into vLLM's worker: `self.model_runner` is the worker's. Only `heed_*` names, so that nothing clashes."""

    heed_trainer: Trainer | None = None

    def __new__(cls, vllm_config: Any, *_args: Any, **_kwargs: Any) -> "TrainerExtension":
        """Start the watchdog before the worker is built and, on a CPU, install heed's arithmetic."""
        settings = WorkerSettings.of(vllm_config)
        watch(settings.owner, settings.watch_interval_s)
        if settings.is_cpu:
            punica.install()
            norms.install(vllm_config)
            kept_memory.install()
            served = vllm_config.model_config
            takes_turns = is_lean(served.hf_config, served.dtype, settings.num_weights)
            queue_wait.install(queue_wait.WORKER_SPIN_S if takes_turns else 0.0)
        return super().__new__(cls)

    @property
    def heed_settings(self) -> WorkerSettings:
        """The settings that heed's process gave its children (`engine.host.vllm_settings`)."""
        return WorkerSettings.of(self.vllm_config)  # type: ignore[attr-defined]

    @property
    def heed_model_runner(self) -> Any:
        """vLLM's model runner, reached in this one place."""
        return self.model_runner  # type: ignore[attr-defined]

    def heed_load_teacher(self, folder: str, model: TrainingModel) -> TrainingModel | None:
        """Load the external teacher beside the model. Raises ValueError if their outputs are of different sizes."""
        if not folder:
            return None
        path = Path(folder)
        if self.heed_settings.is_cpu:
            teacher = load_training_model(path, path.name)
        else:
            teacher = gpu_training_model(load_base(path).to(model.device), path.name)
        if teacher.vocab_size != model.vocab_size:
            raise ValueError(f"the teacher {path} has {teacher.vocab_size} outputs, the model {model.vocab_size}")
        return teacher

    def heed_load_model(self, folder: Path, base_name: str) -> TrainingModel:
        """Load the training model: on a GPU on vLLM's own tensors, on a CPU a copy but for the embedding."""
        served = self.heed_model_runner.model
        if self.heed_settings.is_cpu:
            dtype = self.vllm_config.model_config.dtype  # type: ignore[attr-defined]
            return load_training_model(folder, base_name, dtype, served_embedding(served))
        return gpu_training_model(share_weights(folder, served), base_name)

    @_guarded
    def heed_prepare(self, spec: Record) -> Record:
        """Load the training model and an external teacher, and install the registry. Called once after the start."""
        started = time.perf_counter()
        model = self.heed_load_model(Path(spec["model"]), spec["base_name"])
        lora_manager = self.heed_model_runner.lora_manager
        dtype = lora_manager.lora_config.lora_dtype
        zero = model.zero_adapter(tuple(spec["target_modules"])).rounded(dtype)
        registry = LoraRegistry(spec["registry_bytes"], zero, dtype, spec["max_rank"])
        install(lora_manager, registry)
        teacher = self.heed_load_teacher(spec["teacher_model"], model)
        self.heed_trainer = Trainer(model, registry, lora_manager, spec["max_rank"], teacher)
        if isinstance(model, LeanModel):
            warm_up(model, LearnConfig.from_dict(spec["learn"]))
        elif self.heed_settings.is_cpu:
            self.heed_trainer.beside = Beside(SpareCores(os.sched_getaffinity(os.getppid())))
            self.heed_trainer.give_back()
        processes = self.heed_processes()
        return {"duration_ms": (time.perf_counter() - started) * 1e3, "vocab_size": model.vocab_size} | processes

    @_guarded
    def heed_serve(self) -> Record:
        """Return what `heed_prepare` returns, for a model that is served and not trained."""
        return {"vocab_size": self.vllm_config.model_config.get_vocab_size()} | self.heed_processes()  # type: ignore[attr-defined]

    def heed_processes(self) -> Record:
        """Return the processes that belong to this heed's vLLM."""
        found = family(self.heed_settings.owner)
        return {"processes": [[process.pid, process.started] for process in found]}

    @_guarded
    def heed_compute(self, method: str, args: list[Any], is_read: bool) -> Record:
        """Return the record of a method that computes, or the number of the job that it has become beside decoding.

        `is_read`: somewhere a stream is being read, which the worker's own cores are left to.
        """
        trainer = self.heed_require()
        work: Callable[[], Record] = functools.partial(getattr(self, method), *args)
        if trainer.beside is None:
            return work()
        trainer.beside.cores.is_decoding = is_read
        return {"job": trainer.beside.begin(work)}

    @_guarded
    def heed_result(self, job: int, is_read: bool) -> Record:
        """Return the record that a job has made, or its number again while it lasts."""
        trainer = self.heed_require()
        if trainer.beside is None:
            raise LookupError("nothing is computed beside decoding here")
        trainer.beside.cores.is_decoding = is_read
        return trainer.beside.result(job) or {"job": job}

    @_guarded
    def heed_open_update(self, spec: Record) -> Record:
        """Open an update (`engine.training.training_update`). An update that is still open is abandoned."""
        trainer = self.heed_require()
        learn = LearnConfig.from_dict(spec["learn"])
        samples = [Sample.from_dict(values) for values in spec["samples"]]
        parent = trainer.adapter(spec["parent"])
        state = trainer.optimizer(spec["parent"]) if learn.keeps_optimizer else None
        trainer.open(spec["update_id"], TrainingUpdate(trainer.model, learn, samples, parent, state, trainer.teacher))
        return {}

    @_guarded
    def heed_advance(self, update_id: str, budget_ms: float) -> Record:
        """Work for about `budget_ms`, then return so that decoding goes on."""
        trainer = self.heed_require()
        run = trainer.current(update_id)
        trainer.advance(run, budget_ms / 1e3)
        measured = run.measured
        record: Record = {
            "done": run.is_done,
            "phase": "steps" if run.phase == "final" else run.phase,
            "steps": measured.steps,
            "divergence_before": measured.divergence_before,
            "divergence_after": measured.divergence_after,
            "anchor_divergence_after": measured.anchor_divergence_after,
            "phases_ms": dict(measured.phases_ms),
            "finite": measured.is_finite,
        }
        if run.is_done:
            record |= {"heat": measured.heat, "is_weights": measured.importance, "losses": measured.losses}
            record |= {"figures": measured.figures, "agreement": measured.agreement}
        return record

    @_guarded
    def heed_publish(self, update_id: str, lora_int_id: int, name: str) -> Record:
        """Copy the trained values into the registry, as they are served, and return them as PEFT files.

        `name` is for the log.
        """
        trainer = self.heed_require()
        run = trainer.current(update_id)
        adapter = run.slot.export().rounded(trainer.registry.dtype)
        is_finite = run.measured.is_finite and adapter.is_finite
        if is_finite:
            require_fitting(adapter, trainer.registry.zero, trainer.max_rank)
            trainer.registry.put(lora_int_id, adapter)
            trainer.keep_optimizer(lora_int_id, run)
        else:
            logger.warning("update %s made %s not finite; it is not published", update_id, name)
        files = adapter.files() if is_finite else {}
        return {
            "finite": is_finite,
            "update_norm": run.update_norm,
            "value_change": run.value_change,
            "tensors": files.get(TENSORS_FILE, b""),
            "config": files.get(CONFIG_FILE, b"").decode(),
        }

    @_guarded
    def heed_close_update(self, update_id: str) -> Record:
        """Forget an update; an unknown one is no error."""
        trainer = self.heed_require()
        if trainer.update_id == update_id:
            trainer.close()
        return {}

    @_guarded
    def heed_score(self, samples: list[Record], adapter: Record | None) -> Record:
        """Score samples (`engine.training.scoring`), one record each."""
        trainer = self.heed_require()
        parsed = [Sample.from_dict(values) for values in samples]
        with trainer.cores():
            return {"scores": score_samples(trainer.model, parsed, trainer.adapter(adapter), trainer.base_states)}

    @_guarded
    def heed_first_tokens(self, prompts: list[list[list[int]]], scale: float, temperature: float, seed: int) -> Record:
        """Return how the teacher's answers begin (`engine.training.openings`): the fields of `FirstToken`, each."""
        trainer = self.heed_require()
        pairs = [(seen, asked) for seen, asked in prompts]
        with trainer.cores():
            tokens = first_tokens(trainer.base_states, pairs, scale, temperature, seed)
        return {"tokens": [list(token) for token in tokens]}

    @_guarded
    def heed_states(self, passages: list[Record], depths: list[float]) -> Record:
        """Return the base model's pooled states (`engine.training.pooling`) as float32 bytes, with their axes."""
        trainer = self.heed_require()
        with trainer.cores():
            states = pooled_states(trainer.model, [Passage(**values) for values in passages], depths)
        return {"states": states.numpy().tobytes(), "axes": list(states.shape)}

    @_guarded
    def heed_register(self, lora_int_id: int, path: str) -> Record:
        """Check that the version can be served: from memory, else read from disk.

        A version that is on disk by now may leave memory when room is needed.
        """
        trainer = self.heed_require()
        trainer.registry.failed.pop(lora_int_id, None)
        check_servable(trainer.lora_manager, trainer.registry.get(lora_int_id, path))
        if (Path(path) / TENSORS_FILE).is_file():
            trainer.registry.mark_on_disk(lora_int_id)
        return {}

    @_guarded
    def heed_fits(self, tensors: bytes, config: str) -> Record:
        """Check that an imported adapter fits, and return its configuration as heed writes it. Keeps nothing."""
        trainer = self.heed_require()
        shape = LoraShape.of(json.loads(config))
        zero = trainer.registry.zero
        adapter = AdapterTensors(shape.config(zero.config["base_model_name_or_path"]), load_safetensors(tensors))
        require_fitting(adapter, zero, trainer.max_rank)
        require_whole(adapter, zero)
        check_servable(trainer.lora_manager, adapter)
        return {"config": adapter.config}

    @_guarded
    def heed_drop(self, lora_int_id: int) -> Record:
        """Forget a version in memory."""
        self.heed_require().registry.drop(lora_int_id)
        return {}

    @_guarded
    def heed_status(self) -> Record:
        """Return the versions that could not be loaded when they were wanted, and the open update."""
        trainer = self.heed_require()
        return {
            "failed": {str(key): reason for key, reason in trainer.registry.failed.items()},
            "open": trainer.update_id,
        }

    def heed_require(self) -> Trainer:
        """Return the trainer. Raises RuntimeError before `heed_prepare`."""
        if self.heed_trainer is None:
            raise RuntimeError("heed_prepare has not run")
        return self.heed_trainer
