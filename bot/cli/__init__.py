"""The `heed` command: its client, the doctor, backups, the terminal chat."""
