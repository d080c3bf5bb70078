"""The operator's dashboards below /admin: rendered here, signed in to with a password, never without."""
