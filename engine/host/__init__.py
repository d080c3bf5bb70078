"""vLLM as heed sees it: start, stream, restart, calls into the trainer."""
