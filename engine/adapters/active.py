"""The adapter that answers a person: the active version, verified and in vLLM, or the nearest good one.

Invariant: a request never names a version that was not verified and added first; a damaged one is flagged once, in
storage, and its nearest accepted ancestor takes its place (0, the base model, at worst), with its notes in the prompt;
a version that a request uses is neither pruned nor taken from vLLM.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from engine.adapter_ref import ZERO_ADAPTER, AdapterRef
from engine.adapters import undo
from engine.adapters.store import AdapterStore
from engine.errors import AdapterDamaged, AdapterLoadError, EngineError
from engine.host.vllm_host import VllmHost
from storage.coalescing import Coalescer
from storage.database import Database, Session
from storage.errors import PersonNotFound, StorageError
from storage.learning import versions
from storage.learning.serving_state import ServingState, serving_states
from storage.tables import AdapterVersion, Note

logger = logging.getLogger(__name__)


class AdapterCounts(NamedTuple):
    """Of the versions of everybody."""

    num_adapters: int  # that can answer without being read again
    num_read: int  # and checked before their first answer here
    num_fetched: int  # of these, from the object store


class ActiveAdapters:
    """The adapters that requests may name."""

    def __init__(self, base_model: str, database: Database, store: AdapterStore, host: VllmHost) -> None:
        """`base_model`: its fingerprint; versions trained on another are never served."""
        self.base_model = base_model
        self._database = database
        self._store = store
        self._host = host
        self._verified: set[int] = set()  # lora_int_ids whose files were checked in this process
        self._num_read = 0  # versions whose files were, for an answer
        self._uses: Counter[int] = Counter()  # requests that hold a version, by lora_int_id
        self._retiring: set[asyncio.Task[None]] = set()
        self._states: Coalescer[str, ServingState | None] = Coalescer(self._read_states, "serving state")

    async def active(self, user_id: str) -> AdapterRef:
        """Return the person's adapter, ready to be named by a request. Raise PersonNotFound, EngineRestarting."""
        return (await self.active_with_notes(user_id))[0]

    async def active_with_notes(self, user_id: str) -> tuple[AdapterRef, list[Note]]:
        """Return what `active` returns, with the notes that hold beside that version, oldest first."""
        while True:
            now = await self._states.ask(user_id)
            if now is None:
                raise PersonNotFound(f"no person {user_id!r}")
            ref = await self.served(user_id, now.version)
            if ref is not None:
                return ref, now.notes

    async def served(self, user_id: str, version: AdapterVersion | None) -> AdapterRef | None:
        """Return the adapter of the person's active version, None for the base model, ready to be named by a request.

        Return None after falling back, if that version cannot be served: another one is active now.
        """
        if version is None or version.base_model != self.base_model:
            return ZERO_ADAPTER
        try:
            return await self.ready(version)
        except (AdapterDamaged, AdapterLoadError) as error:
            logger.warning("version %d of a person cannot be served: %s", version.number, error)
            await self._database.write(lambda s: undo.fall_back(s, user_id, version.number))
            return None

    async def ready(self, version: AdapterVersion) -> AdapterRef:
        """Verify a version once and give it to vLLM. Raise AdapterDamaged, AdapterLoadError."""
        ref = self._store.ref(version)
        if ref.lora_int_id not in self._verified:
            await self._store.verify(version)
            self._verified.add(ref.lora_int_id)
            self._num_read += 1
        await self._host.add_adapter(ref)
        return ref

    async def publish(self, ref: AdapterRef) -> None:
        """Give vLLM a version whose files this process has just written. Raise AdapterLoadError."""
        await self._host.add_adapter(ref)
        self._verified.add(ref.lora_int_id)

    @contextmanager
    def using(self, ref: AdapterRef) -> Iterator[None]:
        """Hold the version in use for the duration of the block. Enter it before the next await after `active`."""
        self._uses[ref.lora_int_id] += 1
        try:
            yield
        finally:
            self._uses -= Counter([ref.lora_int_id])  # also forgets versions that no request holds

    def counts(self) -> AdapterCounts:
        """Return how many versions answer without being read again, and how many were read and fetched so far."""
        return AdapterCounts(len(self._verified), self._num_read, self._store.num_fetched)

    @property
    def in_use(self) -> set[int]:
        """The `lora_int_id`s of versions that requests hold."""
        return set(self._uses)

    async def flip(self, user_id: str, keep: int, accept: Callable[[Session], object], replaced: int = 0) -> None:
        """Make a new version active by `accept`, prune the one it replaces and the oldest beyond `keep`, at once."""
        in_use = self.in_use

        def flipped(s: Session) -> list[AdapterVersion]:
            accept(s)
            return versions.prune(s, user_id, keep, in_use, replaced)

        self.retire(await self._database.write(flipped))

    def retire(self, pruned: Sequence[AdapterVersion]) -> None:
        """Remove pruned versions from vLLM, memory and disk, in the background."""
        for version in pruned:
            task = asyncio.create_task(self._retire(version), name=f"heed-retire-{version.lora_int_id}")
            self._retiring.add(task)
            task.add_done_callback(self._retiring.discard)

    async def stop(self) -> None:
        """Cancel the removals that still run; the sweep at the next start does the rest."""
        for task in self._retiring:
            task.cancel()
        await asyncio.gather(*self._retiring, return_exceptions=True)

    async def _read_states(self, user_ids: list[str]) -> list[ServingState | None]:
        return await self._database.read(lambda s: serving_states(s, user_ids))

    async def _retire(self, version: AdapterVersion) -> None:
        ref = self._store.ref(version)
        self._verified.discard(ref.lora_int_id)
        with suppress(EngineError):  # a dead engine remembers nothing
            await self._host.remove_adapter(ref)
        try:
            await self._store.remove(version)
        except (OSError, StorageError) as error:
            logger.warning("the files of a pruned version stay until the next start: %s", error)
