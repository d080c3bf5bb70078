"""Permissions: accounts, consent, API keys, the admin password, exports of personal data."""
