"""The chat side of heed: everything a person or a platform touches."""
