"""`heed eval real`: does any model that heed serves learn from one correction? `run` is the command."""
