"""The operator's dashboards below /admin: rendered on the server, shown only after signing in with the password."""
