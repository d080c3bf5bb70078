"""The pocket model: a small Qwen3-architecture chat model made by this project from a synthetic world.

Owns the world (subjects, styles, wishes), its tokenizer, its training and its committed weights. It goes
through exactly the code a Qwen3-8B goes through and is what runs when no model is configured.
"""

from pathlib import Path

WEIGHTS = Path(__file__).parent / "weights"
