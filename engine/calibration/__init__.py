"""The rates and gates that one model needs: measured on it, shipped with heed, or estimated from its size."""
