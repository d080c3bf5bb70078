"""Programs that prepare a machine for heed: set-up, locks, a browser for the tests. Standard library only."""
