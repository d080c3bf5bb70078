"""`heed agent`: work on the files of a folder, in a terminal, with a model that asks before each step."""
