"""People, access, consent, API keys, erasure, personal data."""
