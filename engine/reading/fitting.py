"""The fitting of a model's probe as a part of its calibration."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from engine.reading import store
from engine.reading.reactions import read_reactions
from engine.reading.reader import ReactionReader


async def fit_and_keep(
    reader: ReactionReader, fingerprint: str, data_dir: Path, progress: Callable[[str], None]
) -> Path:
    """Fit the probe of the model that runs, use it from now on, and keep it for the next start. Return its file."""
    probe = await reader.fit(read_reactions())
    use = "" if probe.is_usable else ": too few, so what feedback moves on other prompts decides alone"
    progress(f"reactions read rightly in cross-validation: {probe.choice.accuracy:.0%}{use}")
    return await asyncio.to_thread(store.keep, probe, fingerprint, data_dir)
