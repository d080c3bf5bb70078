"""Who may do what: accounts, consent, API keys, the admin password, personal data exports."""
