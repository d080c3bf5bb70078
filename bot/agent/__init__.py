"""An agent's hands: tools that read, change and run things in one folder, each of them in a sandbox."""
