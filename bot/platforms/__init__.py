"""One module per place people talk to heed from; only these know how a platform looks."""
