"""The pocket model: a small Qwen3-architecture chat model made by this project from a synthetic world.

Owns the world (subjects, styles, wishes), its tokenizer, its training and its committed weights: those of the chats,
which run when no model is configured, and those of the workshop, where an agent works on files. Both go through exactly
the code a Qwen3-8B goes through.
"""

from pathlib import Path

WEIGHTS = Path(__file__).parent / "weights"
WORKSHOP_WEIGHTS = Path(__file__).parent / "workshop" / "weights"
PACKAGED = {"pocket": WEIGHTS, "workshop": WORKSHOP_WEIGHTS}  # by the name that HEED_MODEL gives
