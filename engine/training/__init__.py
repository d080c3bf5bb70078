"""PyTorch: losses, batches, training models, LoRA slots, one update."""
