"""An agent's sessions over HTTP: sessions with a workspace, whose calls of tools wait for their person."""
