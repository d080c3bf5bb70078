"""Export and import of adapters as files.

Owns the export (verified files, packed) and the import (checked, written, made active). Invariants: a refused file
has changed nothing; an imported adapter's values are finite and of a possible size, its rank, modules and base model
fit, and it was tried before it answers. It is the person's newest lesson from then on, so that an undo removes it.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress

from engine.adapter_ref import CONFIG_FILE, TENSORS_FILE, AdapterRef
from engine.adapters import training_batch, undo, zip_format
from engine.adapters.active import ActiveAdapters
from engine.adapters.store import AdapterStore, check_values
from engine.adapters.training_batch import BATCH_FILE, Origin
from engine.adapters.zip_format import AdapterPackage
from engine.config import EngineConfig
from engine.errors import AdapterDamaged, AdapterRefused, BatchNotKept, EngineError, TrainerError
from engine.host.trainer_client import TrainerClient
from engine.host.vllm_host import VllmHost
from storage.database import Database, Session
from storage.learning import feedback, updates, versions
from storage.people import people
from storage.tables import AdapterVersion, UpdateRun

Trial = Callable[[AdapterRef], Awaitable[None]]  # raises AdapterRefused
KIND = "import"  # of the update that stands for an import in the log


class Transfer:
    """Exports and imports adapters."""

    def __init__(
        self,
        config: EngineConfig,
        database: Database,
        host: VllmHost,
        adapters: AdapterStore,
        active: ActiveAdapters,
        trial: Trial,
    ) -> None:
        """`adapters` reads and writes the files, `active` serves an import that `trial` does not refuse."""
        self._config = config
        self._database = database
        self._host = host
        self._trainer = TrainerClient(host)
        self._adapters = adapters
        self._active = active
        self._trial = trial

    async def export(self, user_id: str, number: int) -> bytes:
        """Return a version as a zip file. Raises VersionNotFound, VersionStateError, AdapterDamaged."""
        version = await self._database.read(lambda s: versions.accepted(s, user_id, number))
        files = await self._adapters.read(version)
        return await asyncio.to_thread(zip_format.pack, files, version.base_model, self._config.model_name, number)

    async def batch(self, user_id: str, number: int) -> bytes:
        """Return the training data of a version, as a zip file.

        Raises VersionNotFound, VersionStateError, AdapterDamaged, BatchNotKept.
        """
        version = await self._database.read(lambda s: versions.accepted(s, user_id, number))
        content = (await self._adapters.read(version)).get(BATCH_FILE)
        if content is None:
            raise BatchNotKept(f"what v{number} was trained on was not kept")
        words = await self._database.read(lambda s: _words(s, version))
        origin = Origin(self._config.model_name, version.base_model, number, words)
        return await asyncio.to_thread(training_batch.pack, content, origin, self._host.tokenizer.decode)

    async def check(self, content: bytes) -> AdapterPackage:
        """Return the content of a zip file that fits the running model; nothing is changed. Raise AdapterRefused."""
        package = await asyncio.to_thread(zip_format.unpack, content, self._config.versions.max_import_bytes)
        if package.base_model != self._active.base_model:
            raise AdapterRefused(
                f"the adapter was made for another base model ({package.base_model[:32]!r}, "
                f"not {self._active.base_model!r})"
            )
        highest = self._config.host.max_lora_rank
        if package.config["r"] > highest:
            raise AdapterRefused(f"the adapter has rank {package.config['r']}, above host.max_lora_rank {highest}")
        try:
            check_values({CONFIG_FILE: json.dumps(package.config).encode(), TENSORS_FILE: package.tensors})
        except AdapterDamaged as error:
            raise AdapterRefused(str(error)) from error
        try:
            config = await self._trainer.fitted_config(package.tensors, package.config)
        except TrainerError as error:
            raise AdapterRefused(f"the adapter does not fit the model: {str(error).partition(': ')[2]}") from error
        return AdapterPackage(config, package.tensors, package.base_model, package.origin)

    async def take_in(self, user_id: str, package: AdapterPackage) -> int:
        """Make a checked package the person's active version and return its number. The caller holds their turn.

        Raises AdapterRefused if its answers to neutral prompts are garbage, AdapterLoadError, EngineRestarting.
        """
        version = await self._database.write(lambda s: self._begin(s, user_id))
        ref = self._adapters.ref(version)
        try:
            config = json.dumps(package.config, indent=2, sort_keys=True)
            sha256, size_bytes = await self._adapters.write(version, package.tensors, config)
            await self._active.publish(ref)
            await self._trial(ref)
        except BaseException as error:
            await self._give_up(version, str(error) or type(error).__name__)
            raise

        def accept(s: Session) -> None:
            undo.take_in(s, version, f"imported: {package.origin}", sha256, size_bytes)
            updates.finish(s, version.update_id or "", status="accepted", version=version.number)

        await self._active.flip(user_id, self._config.versions.keep, accept)
        return ref.number

    def _begin(self, s: Session, user_id: str) -> AdapterVersion:
        parent = people.get(s, user_id).active_version
        run = updates.start(s, UpdateRun(user_id=user_id, kind=KIND, parent_version=parent))
        return versions.allocate(s, user_id, parent, self._active.base_model, None, run.id)

    async def _give_up(self, version: AdapterVersion, reason: str) -> None:
        """Close the row of an import that failed, and remove it from vLLM and from disk."""

        def give_up(s: Session) -> None:
            updates.finish(s, version.update_id or "", status="failed", error=reason)
            versions.reject(s, version.user_id, version.number)

        await self._database.write(give_up)
        with suppress(EngineError):  # a dead engine remembers nothing
            await self._host.remove_adapter(self._adapters.ref(version))
        await self._adapters.remove(version)


def _words(s: Session, version: AdapterVersion) -> str | None:
    """Return the feedback that taught a version, None if several signals did, as in a consolidation."""
    return feedback.get(s, version.feedback_id).text if version.feedback_id else None
