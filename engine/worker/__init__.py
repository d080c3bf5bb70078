"""Code that runs inside vLLM's processes: worker extension, executor, watchdog, LoRA kernels."""
