"""Which adapter a person is answered with: the active version, verified and in vLLM, or the nearest good one.

Invariant: a request never names a version that was not verified and added first; a damaged one is flagged once, in
storage, and its nearest accepted ancestor takes its place (0, the base model, at worst), with its notes in the prompt.
"""

import logging

from engine import history
from engine.adapter_ref import ZERO_ADAPTER, AdapterRef
from engine.adapters import AdapterStore
from engine.errors import AdapterDamaged, AdapterLoadError
from engine.vllm_host import VllmHost
from storage import people, versions
from storage.database import Database, Session
from storage.tables import AdapterVersion

log = logging.getLogger(__name__)


class ServedAdapters:
    """The adapters that requests may name."""

    def __init__(self, base_model: str, database: Database, store: AdapterStore, host: VllmHost) -> None:
        """`base_model`: its fingerprint; versions trained on another are never served."""
        self.base_model = base_model
        self._database = database
        self._store = store
        self._host = host
        self._verified: set[int] = set()  # lora_int_ids whose files were checked in this process

    async def active(self, user_id: str) -> AdapterRef:
        """The person's adapter, ready to be named by a request. Raises PersonNotFound, EngineRestarting."""
        while True:
            version = await self._database.read(lambda s: _active_version(s, user_id))
            if version is None or version.base_model != self.base_model:
                return ZERO_ADAPTER
            try:
                return await self.ready(version)
            except (AdapterDamaged, AdapterLoadError) as error:
                log.warning("version %d of a person cannot be served: %s", version.number, error)
                number = version.number
                await self._database.write(lambda s, n=number: history.fall_back(s, user_id, n))  # type: ignore[misc]

    async def ready(self, version: AdapterVersion) -> AdapterRef:
        """Verifies a version once and gives it to vLLM. Raises AdapterDamaged, AdapterLoadError."""
        ref = self._store.ref(version)
        if ref.lora_int_id not in self._verified:
            await self._store.verify(version)
            self._verified.add(ref.lora_int_id)
        await self._host.add_adapter(ref)
        return ref

    async def publish(self, ref: AdapterRef) -> None:
        """Gives a version to vLLM whose files this process has just written. Raises AdapterLoadError."""
        await self._host.add_adapter(ref)
        self._verified.add(ref.lora_int_id)


def _active_version(s: Session, user_id: str) -> AdapterVersion | None:
    number = people.get(s, user_id).active_version
    return versions.get(s, user_id, number) if number else None
