"""The reader: texts through the model and its probe, and the fitting of a probe for a model that has none.

A reaction is shown to the base model as a person's turn behind some answer, without the conversation: so what it says
decides, and reading costs a few dozen tokens. Invariant: reading trains nothing and stores nothing.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from engine.host.trainer_client import States
from engine.prompts.builder import PromptBuilder
from engine.reading.probe import DEPTHS, MeaningProbe, ReactionReading
from engine.reading.reactions import LabelledReaction
from engine.sample import Passage

MAX_TOKENS = 200  # of a reaction: what it is about is said at its beginning


class StateSource(Protocol):
    """The model: the trainer in vLLM's worker, or one that was loaded by itself."""

    async def states(self, passages: Sequence[Passage], depths: Sequence[float]) -> States:
        """Return the base model's pooled states, axes [N, depths, 2 H]."""


class ReactionReader:
    """Reads what people meant. `probe` None: the model has none, and nothing can be read."""

    def __init__(self, source: StateSource, prompts: PromptBuilder, probe: MeaningProbe | None) -> None:
        self._source = source
        self._prompts = prompts
        self.probe = probe

    async def read(self, text: str) -> ReactionReading | None:
        """Return what a text was taken for, or None without a usable probe or words. Raises as the trainer does."""
        is_readable = self.probe is not None and self.probe.is_usable and bool(text.strip())
        found = await self.read_all([text]) if is_readable else []
        return found[0] if found else None

    async def read_all(self, texts: Sequence[str]) -> list[ReactionReading]:
        """Return what texts were taken for; nothing without a probe. Raises as the trainer does."""
        return self.probe.read(await self._states(texts), texts) if self.probe is not None else []

    async def fit(self, reactions: Sequence[LabelledReaction]) -> MeaningProbe:
        """Fit the probe of this model to labelled reactions and use it from now on. Takes a minute or two."""
        texts = [reaction.text for reaction in reactions]
        states = await self._states(texts)
        meanings = [reaction.meaning for reaction in reactions]
        self.probe = await asyncio.to_thread(MeaningProbe.fit, states, texts, meanings)
        return self.probe

    async def _states(self, texts: Sequence[str]) -> States:
        passages = [Passage(*self._prompts.turn(text, MAX_TOKENS)) for text in texts]
        return await self._source.states(passages, DEPTHS)
