"""The name of one adapter version everywhere in the engine.

Invariant: two versions never share a name, an integer id or a path, so nothing that vLLM caches for one (prefix
cache by name and path, batches by name, slots by id) can be served for another.
"""

from dataclasses import dataclass
from typing import Any

ZERO_LORA_INT_ID = 2_000_000_000  # the base model as an adapter; far above any database id, within int32
CONFIG_FILE = "adapter_config.json"  # the two files of a PEFT adapter directory
TENSORS_FILE = "adapter_model.safetensors"


@dataclass(frozen=True)
class AdapterRef:
    """One adapter version. `path` is absolute. Number 0 is the zero adapter, the base model, shared by all people."""

    user_id: str
    number: int
    lora_int_id: int
    path: str

    @property
    def name(self) -> str:
        """A name that is unique per version."""
        return f"{self.user_id}@{self.number}"

    def to_dict(self) -> dict[str, Any] | None:
        """Return the reference as the trainer takes it; None is the base model."""
        return {"lora_int_id": self.lora_int_id, "path": self.path} if self.number else None


ZERO_ADAPTER = AdapterRef("base", 0, ZERO_LORA_INT_ID, "/heed/zero-adapter")  # never read from disk
