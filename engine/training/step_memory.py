"""The memory of a training step: most of all its activations, kept for the backward pass or computed a second time.

Pure. A layer that is computed again needs its input alone until then: a third more computing, and of all that the
layers compute only what one of them does is there at once (Chen et al., arXiv 1604.06174, a segment for each layer).
All sizes are bytes.
"""

from dataclasses import dataclass

KEPT_SHARE = 0.15  # of a GPU's memory that activations may take before layers are computed again
KEPT_ON_CPU = 4 << 30
CHUNK_ELEMENTS = 1 << 25  # logits held at once: 128 MB in float32
KEPT_BYTES = 1 << 28  # a teacher's log-probabilities kept per update; above it hidden states are kept
_INPUT_BYTES = 2  # for each value of a layer's input: bfloat16
_LAYER_BYTES = 8  # for each value that a layer computes, some of them in float32 (measured on an 8B model)


@dataclass(frozen=True)
class StepMemory:
    """The memory of the steps of a model with these sizes."""

    num_layers: int
    hidden: int
    intermediate: int

    @property
    def _of_layer(self) -> int:
        """The bytes that one layer computes for one token."""
        return _LAYER_BYTES * (3 * self.hidden + 2 * self.intermediate)

    def kept(self, num_tokens: int) -> int:
        """Return what a step of so many tokens keeps if nothing is computed again."""
        return num_tokens * self.num_layers * self._of_layer

    def recomputed(self, num_tokens: int) -> int:
        """Return what it needs if every layer is computed again."""
        return num_tokens * (self.num_layers * _INPUT_BYTES * self.hidden + self._of_layer)

    def most(self, longest: int, limit: int) -> int:
        """Return the most that any step of up to `longest` tokens needs if it keeps no more than `limit`."""
        return min(self.kept(longest), max(limit, self.recomputed(longest)))
