"""continualcode's wire format: sessions and their metrics."""
