"""Text and tokens: chat template, hindsight, reasoning marks, the bank of neutral prompts."""
