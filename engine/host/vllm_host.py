"""vLLM inside heed: start it, stream from it, call the trainer in its worker, restart it when it dies.

Owns the one life of AsyncLLM (`RunningEngine`) and the identity of adapters (`AdapterRef` -> LoRARequest).
Invariants: an adapter is verified in the worker and added before a request names it; no version is removed while a
stream uses it; when the engine dies every stream in flight ends with EngineRestarting and the next one waits for the
new engine.
"""

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from engine.adapter_ref import ZERO_ADAPTER, AdapterRef
from engine.config import EngineConfig
from engine.errors import AdapterLoadError, EngineDown, EngineRestarting, EngineStartError, PromptTooLongError
from engine.host import architectures, fork_server, start_failure, vllm_types
from engine.host.architectures import Trainability
from engine.host.model_check import check_folder
from engine.host.model_files import local_model_folder, teacher_folder
from engine.host.processor import check_processor
from engine.host.running_engine import HEALTH_INTERVAL_S, RunningEngine
from engine.host.vllm_settings import engine_args, has_gpu, learns_here, set_environment
from engine.host.vllm_types import HostChunk
from engine.requests import Sampling
from engine.worker.imports import uncollected
from engine.worker.watchdog import ProcessId

__all__ = ["ZERO_ADAPTER", "AdapterRef", "HostChunk", "VllmHost"]

logger = logging.getLogger(__name__)
Progress = Callable[[str], None]

STATUS_INTERVAL_S = 10.0  # how often the host asks the worker for versions that could not be loaded
WARM_UP_TOKENS = 8


class VllmHost:
    """The model process, as the engine sees it."""

    def __init__(self, config: EngineConfig, on_state: Callable[[str, str], None] | None = None) -> None:
        """Prepare a host. `on_state(state, reason)` gets "ready", "restarting" and "down", on the event loop."""
        self._config = config
        self._on_state = on_state or (lambda _state, _reason: None)
        self._model_folder = Path()
        self._trainability = Trainability("")
        self._teacher_folder: Path | None = None
        self._running: RunningEngine | None = None
        self._is_stopping = False
        self._down_reason = ""
        self._ready = asyncio.Event()
        self._adapter_lock = asyncio.Lock()
        self._in_flight: Counter[int] = Counter()
        self._is_idle = asyncio.Condition()
        self._restarts: deque[float] = deque(maxlen=config.host.max_restarts)
        self._has_died = asyncio.Event()
        self._watch: asyncio.Task[None] | None = None
        self._tokenizer: Any = None

    # -- life --------------------------------------------------------------------------------------------------------

    async def start(self, progress: Progress = lambda _line: None) -> None:
        """Start vLLM and warm it up.

        Raises ModelNotFoundError, ArchitectureNotSupported, TokenizerMismatch or EngineStartError.
        """
        progress(f"finding the model {self._config.model}")
        self._model_folder = await asyncio.to_thread(
            local_model_folder, self._config.model, self._config.data_dir, progress
        )
        self._trainability = await asyncio.to_thread(architectures.check, self._model_folder)
        await asyncio.to_thread(check_folder, self._model_folder)
        check_processor(self._model_folder, self._trainability.packed, has_gpu=has_gpu())
        teacher = self._config.host.teacher_model
        self._teacher_folder = await asyncio.to_thread(
            teacher_folder, teacher, self._model_folder, self._config.data_dir, progress
        )
        try:
            await self._launch(progress)
        except EngineRestarting as error:
            raise EngineStartError(f"The model process died while it was started. See {self._log_file}.") from error
        self._watch = asyncio.create_task(self._watch_engine(), name="heed-engine-watch")

    async def stop(self) -> None:
        """Stop vLLM and its children. Streams in flight end with EngineRestarting."""
        self._is_stopping = True
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
        await self._end()

    async def _launch(self, progress: Progress) -> None:
        started = time.monotonic()
        logged_before = start_failure.size_of(self._log_file)
        progress("loading the model into vLLM")
        try:
            async with asyncio.timeout(self._config.host.start_timeout_s):
                llm = await asyncio.to_thread(self._build, progress)
        except asyncio.CancelledError:
            self._is_stopping = True  # the thread goes on
            raise
        except EngineStartError:
            raise
        except Exception as error:
            raise EngineStartError(start_failure.told(error, self._log_file, logged_before)) from error
        self._running = RunningEngine(llm, self._config.host.rpc_timeout_s, self._note_death)
        self._tokenizer = llm.get_tokenizer()
        progress("loading the trainer" if self.trainability.can_learn else self.trainability.reason)
        await self._prepare_worker(self._running)
        progress("warming up")
        await self._warm_up()
        self._ready.set()
        self._on_state("ready", f"{time.monotonic() - started:.1f} s")

    @uncollected()
    def _build(self, progress: Progress) -> Any:
        set_environment(self._config.host, self._log_file)
        fork_server.begin()
        from vllm.v1.engine.async_llm import AsyncLLM

        fork_server.install()
        self._trainability = learns_here(self._model_folder, self._trainability, self._config)
        llm = AsyncLLM.from_engine_args(
            engine_args(
                self._model_folder,
                self._trainability,
                self._config,
                ProcessId.current(),
                self._log_file,
                lambda remark: progress(remark) if remark else None,
            )
        )
        if self._is_stopping:
            llm.shutdown()  # no one else has it, and Python waits for its processes before it ends
        return llm

    async def _prepare_worker(self, running: RunningEngine) -> None:
        """Load the trainer, if the model can learn, and note the worker's processes and the size of its vocabulary."""
        record = await (self._prepare_trainer(running) if self.trainability.can_learn else running.rpc("heed_serve"))
        if not record["ok"]:
            raise EngineStartError(f"The trainer did not start: {record['error']}.")
        running.children = [ProcessId(*pair) for pair in record["processes"]]
        running.vocab_size = record["vocab_size"]

    async def _prepare_trainer(self, running: RunningEngine) -> dict[str, Any]:
        spec = {
            "model": str(self._model_folder),
            "base_name": self._config.model,
            "target_modules": list(self._config.learn.target_modules),
            "max_rank": self._config.host.max_lora_rank,
            "registry_bytes": self._config.host.cache_bytes(is_cpu=not has_gpu()),
            "learn": self._config.learn.to_dict(),
            "teacher_model": str(self._teacher_folder or ""),
        }
        return await running.rpc("heed_prepare", spec)

    async def _warm_up(self) -> None:
        """Generate a short answer: the first pass costs seconds in some kernels, which no person should wait for."""
        self._ready.set()
        sampling = Sampling(max_tokens=WARM_UP_TOKENS)
        async for _ in self.generate([1] * WARM_UP_TOKENS, sampling, ZERO_ADAPTER, "warm-up", 0):
            pass

    async def _end(self) -> None:
        self._ready.clear()
        running, self._running = self._running, None
        if running is not None:
            await running.stop()

    async def _watch_engine(self) -> None:
        last_status = time.monotonic()
        while not self._is_stopping:
            with suppress(TimeoutError):
                async with asyncio.timeout(HEALTH_INTERVAL_S):
                    await self._has_died.wait()
            if self._has_died.is_set() or (self._running is not None and self._running.has_ended()):
                await self._restart("the model process died")
            elif time.monotonic() - last_status > STATUS_INTERVAL_S:
                last_status = time.monotonic()
                with suppress(EngineRestarting):
                    await self._forget_failed()

    async def _forget_failed(self) -> None:
        """Forget versions that vLLM could not read again, so that the next request for one gets the error."""
        running = await self._current()
        record = await running.rpc("heed_status")
        for lora_int_id in map(int, record.get("failed", {})):
            running.loaded.discard(lora_int_id)
            await running.alone(running.llm.remove_lora, lora_int_id)

    async def _restart(self, reason: str) -> None:
        logger.warning("restarting the engine: %s", reason)
        self._on_state("restarting", reason)
        await self._end()
        self._has_died.clear()
        try:
            self._count_restart()
            await self._launch(lambda _line: None)
        except EngineRestarting:
            self._has_died.set()  # again, and so soon: once more
        except (EngineStartError, EngineDown) as error:
            await self._end()
            self._down_reason = str(error)
            self._ready.set()  # waiting streams go on and are told
            self._on_state("down", self._down_reason)
            self._is_stopping = True

    def _count_restart(self) -> None:
        now, window_s = time.monotonic(), self._config.host.restart_window_s
        if len(self._restarts) == self._restarts.maxlen and now - self._restarts[0] < window_s:
            raise EngineDown(
                f"The model process died {len(self._restarts) + 1} times within {window_s:.0f} s. "
                f"See {self._log_file} and restart heed."
            )
        self._restarts.append(now)

    # -- state -------------------------------------------------------------------------------------------------------

    @property
    def _log_file(self) -> Path:
        return self._config.data_dir / "logs" / "vllm.log"

    @property
    def tokenizer(self) -> Any:
        """The model's tokenizer (a Hugging Face tokenizer)."""
        return self._tokenizer

    @property
    def model_folder(self) -> Path:
        """The folder of the base model's files, once started."""
        return self._model_folder

    @property
    def trainability(self) -> Trainability:
        """The model's architecture, and if adapters can be trained on it, once started."""
        return self._trainability

    @property
    def num_running(self) -> int:
        """Streams in flight."""
        return self._in_flight.total()

    @property
    def is_alive(self) -> bool:
        """Return True if the engine runs and answers."""
        return self._ready.is_set() and self._running is not None and not self._running.is_dead

    @property
    def vocab_size(self) -> int:
        """Rows of the model's output matrix; token ids from outside must be below it."""
        return self._running.vocab_size if self._running else 0

    @property
    def max_model_len(self) -> int:
        """Tokens of prompt and answer together."""
        return int(self._running.llm.model_config.max_model_len) if self._running else 0

    async def _current(self) -> RunningEngine:
        if self._running is not None and self._running.is_dead:
            self._note_death(self._running)
        await self._ready.wait()
        if self._down_reason:
            raise EngineDown(self._down_reason)
        if self._running is None:
            raise EngineRestarting("The engine is stopped. Ask again once heed has started.")
        return self._running

    # -- generation --------------------------------------------------------------------------------------------------

    async def generate(
        self,
        prompt_token_ids: list[int],
        sampling: Sampling,
        adapter: AdapterRef,
        request_id: str,
        priority: int = 0,
    ) -> AsyncGenerator[HostChunk, None]:
        """Stream an answer; leaving the iteration aborts it. Waits while the engine restarts.

        Raises PromptTooLongError, RequestRefused or AdapterLoadError at first, EngineRestarting or EngineDown any time.
        """
        outputs = self._outputs(prompt_token_ids, vllm_types.in_pieces(sampling), adapter, request_id, priority)
        async with aclosing(outputs):
            async for output in outputs:
                yield vllm_types.chunk_of(output, sampling)

    async def complete(
        self,
        prompt_token_ids: list[int],
        sampling: Sampling,
        adapter: AdapterRef,
        request_id: str,
        priority: int = 0,
    ) -> HostChunk:
        """Generate an answer that is not streamed: its token ids in one piece, without text, at a fifth less cost.

        Raises what `generate` raises. Stop texts are not looked for.
        """
        params = vllm_types.in_one_piece(sampling)
        outputs = self._outputs(prompt_token_ids, params, adapter, request_id, priority)
        async with aclosing(outputs):
            async for output in outputs:
                return vllm_types.chunk_of(output, sampling)
        raise EngineRestarting("The answer broke off. Ask again.")

    async def logprobs(self, prompt_token_ids: list[int], answer_token_ids: list[int], request_id: str) -> list[float]:
        """Return the base model's log-probability of each token of an answer, in nats. Raises as `generate`."""
        read = [*prompt_token_ids, *answer_token_ids]
        outputs = self._outputs(read, vllm_types.reading_only(), ZERO_ADAPTER, request_id, 0)
        async with aclosing(outputs):
            async for output in outputs:
                return vllm_types.last_logprobs(output, len(answer_token_ids))
        raise EngineRestarting("The answer broke off. Ask again.")

    async def _outputs(
        self, prompt_token_ids: list[int], params: Any, adapter: AdapterRef, request_id: str, priority: int
    ) -> AsyncGenerator[Any, None]:
        if len(prompt_token_ids) >= self.max_model_len > 0:
            raise PromptTooLongError(
                f"The conversation has {len(prompt_token_ids)} tokens and the model takes {self.max_model_len - 1}. "
                "Shorten it or begin a new one."
            )
        await self.add_adapter(adapter)
        running = await self._current()
        async with self._counted(adapter):
            outputs = running.llm.generate(
                vllm_types.tokens_input(prompt_token_ids),
                params,
                request_id,
                lora_request=vllm_types.lora_request(adapter) if self.trainability.can_learn else None,
                priority=priority,
            )
            with running.watched(vllm_types.form_field(params)):
                async with aclosing(outputs):
                    async for output in outputs:
                        yield output

    @asynccontextmanager
    async def _counted(self, adapter: AdapterRef) -> AsyncIterator[None]:
        self._in_flight[adapter.lora_int_id] += 1
        try:
            yield
        finally:
            self._in_flight[adapter.lora_int_id] -= 1
            async with self._is_idle:
                self._is_idle.notify_all()

    # -- calls into the worker ---------------------------------------------------------------------------------------

    async def rpc(self, method: str, *args: Any) -> dict[str, Any]:
        """Call a `heed_*` method of the trainer; its record has `ok`. Raises EngineRestarting or EngineDown."""
        return await (await self._current()).rpc(method, *args)

    def _note_death(self, running: RunningEngine) -> None:
        """Have a dead engine restarted. A late call of an earlier life changes nothing."""
        if running is self._running:
            self._ready.clear()
            self._has_died.set()

    async def add_adapter(self, adapter: AdapterRef) -> None:
        """Verify the version in the worker and give it to vLLM. Raises AdapterLoadError; others are not affected.

        A model that cannot learn has no adapters: its answers are the base model's.
        """
        running = await self._current()
        if adapter.lora_int_id in running.loaded or not self.trainability.can_learn:
            return
        async with self._adapter_lock:
            if adapter.lora_int_id not in running.loaded:
                await self._add(running, adapter)

    async def _add(self, running: RunningEngine, adapter: AdapterRef) -> None:
        record = await running.rpc("heed_register", adapter.lora_int_id, adapter.path)
        if not record["ok"]:
            raise AdapterLoadError(f"Version {adapter.name} cannot be served: {record['error']}.")
        is_added = await running.alone(running.llm.add_lora, vllm_types.lora_request(adapter))
        if not is_added:
            raise AdapterLoadError(f"Version {adapter.name} cannot be served: vLLM refused it.")
        running.loaded.add(adapter.lora_int_id)

    async def remove_adapter(self, adapter: AdapterRef) -> None:
        """Remove the version from vLLM and from the trainer's memory after the streams that use it have ended."""
        async with self._is_idle:
            await self._is_idle.wait_for(lambda: not self._in_flight[adapter.lora_int_id])
        running = await self._current()
        if not self.trainability.can_learn:
            return
        running.loaded.discard(adapter.lora_int_id)
        await running.alone(running.llm.remove_lora, adapter.lora_int_id)
        await running.rpc("heed_drop", adapter.lora_int_id)

    async def reset_prefix_cache(self) -> None:
        """Forget all cached prompts of every adapter."""
        running = await self._current()
        await running.answer(running.llm.reset_prefix_cache())
